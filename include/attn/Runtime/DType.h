//===- DType.h - Element types of tensors and scalars -----------*- C++ -*-===//

#ifndef ATTN_RUNTIME_DTYPE_H
#define ATTN_RUNTIME_DTYPE_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace attn {

/// Element types, named as in MLIR. `I1` takes one byte in memory (0 or 1).
enum class DType : uint8_t {
  F8E4M3FN,
  F8E5M2,
  F16,
  BF16,
  F32,
  F64,
  I1,
  I8,
  I16,
  I32,
  I64
};

/// "f16, bf16, ...", for messages.
constexpr llvm::StringLiteral kAllDTypeNames =
    "f8E4M3FN, f8E5M2, f16, bf16, f32, f64, i1, i8, i16, i32, i64";

/// "f16", "i1", ...
llvm::StringRef getName(DType dtype);

std::optional<DType> parseDType(llvm::StringRef name);

/// Bytes of one element in memory.
int64_t getByteSize(DType dtype);

bool isFloat(DType dtype);

/// Reads the element at `src`, which need not be aligned. Exact, except that an
/// i64 beyond 2^53 is rounded.
double loadAsDouble(DType dtype, const void *src);

/// Writes `value` to `dst`, which need not be aligned: rounded once, to
/// nearest, ties to even. Integers and f8E4M3FN, which has no infinity,
/// saturate; integers take NaN as 0; i1 is `value != 0`.
void storeFromDouble(DType dtype, double value, void *dst);

} // namespace attn

#endif // ATTN_RUNTIME_DTYPE_H
