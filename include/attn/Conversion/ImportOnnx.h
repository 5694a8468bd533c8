//===- ImportOnnx.h - ONNX Attention nodes to attn ----------------*- C++
//-*-===//

#ifndef ATTN_CONVERSION_IMPORTONNX_H
#define ATTN_CONVERSION_IMPORTONNX_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace mlir::attn {

struct ImportOnnxOptions {
  /// The node to import, by name; all of them if empty.
  std::string node;
  /// Whether the model may hold other operators, which are left out. `node`
  /// implies it.
  bool extract = false;
};

/// A module with one function for each `Attention` node of the main graph of an
/// ONNX model. `model` is in protobuf's binary form, or in its text form if its
/// identifier ends in .textproto, .pbtxt or .prototxt. Null after an error;
/// errors about a node are at a NameLoc of it.
OwningOpRef<ModuleOp> importOnnx(llvm::MemoryBufferRef model,
                                 MLIRContext &context,
                                 const ImportOnnxOptions &options);

} // namespace mlir::attn

#endif // ATTN_CONVERSION_IMPORTONNX_H
