//===- TensorValues.h - The values of ONNX tensors --------------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_IMPORTONNX_TENSORVALUES_H
#define ATTN_LIB_CONVERSION_IMPORTONNX_TENSORVALUES_H

#include "OnnxModel.pb.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace mlir::attn {

/// The values of an initializer, in the shape of `type`, a tensor or memref
/// type that follows from it. Errors are at `loc` and name the tensor.
FailureOr<DenseElementsAttr>
readTensor(Location loc, const ::attnc::onnx::TensorProto &tensor, Type type);

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_IMPORTONNX_TENSORVALUES_H
