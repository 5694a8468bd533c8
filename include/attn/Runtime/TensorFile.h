//===- TensorFile.h - Reading and writing .npy, .safetensors ----*- C++ -*-===//

#ifndef ATTN_RUNTIME_TENSORFILE_H
#define ATTN_RUNTIME_TENSORFILE_H

#include "attn/Runtime/Tensor.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace attn {

/// Reads a NumPy array: format versions 1 to 3, little endian, C or Fortran
/// order (kept, as strides), the dtypes of DType. bf16 is the 2-byte void that
/// ml_dtypes writes. Errors name the file and what is wrong with it.
llvm::Expected<Tensor> readNpy(llvm::StringRef path);
/// The same from memory; errors name the buffer's identifier.
llvm::Expected<Tensor> parseNpy(llvm::MemoryBufferRef buffer);

/// Writes `tensor` in C order; `path` is replaced as a whole or not touched.
llvm::Error writeNpy(llvm::StringRef path, const Tensor &tensor);

/// Reads every tensor of a .safetensors file, by name.
llvm::Expected<llvm::StringMap<Tensor>> readSafetensors(llvm::StringRef path);
llvm::Expected<llvm::StringMap<Tensor>>
parseSafetensors(llvm::MemoryBufferRef buffer);

} // namespace attn

#endif // ATTN_RUNTIME_TENSORFILE_H
