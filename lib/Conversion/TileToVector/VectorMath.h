//===- VectorMath.h - exp2, log2 and exp in vector code ---------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_TILETOVECTOR_VECTORMATH_H
#define ATTN_LIB_CONVERSION_TILETOVECTOR_VECTORMATH_H

#include "Emitter.h"

namespace mlir::tile::cpu {

/// True for operations of the math dialect that emitMath or LLVM's CPU
/// backends turn into inline code.
bool isSupportedMath(Operation *op);

/// Names of the operations that isSupportedMath, for messages.
StringRef getSupportedMathNames();

/// exp(x) for f32 x <= 0, -inf and NaN; results below the least normal number
/// are 0.
Value emitExpOfNonPositive(Emitter &e, Value x);

/// Replaces math.exp2 and math.log2 under `op`, scalar or vector, by
/// arithmetic, and on demand conversions between bf16 and f32.
void expandMath(Operation *op, bool expandBF16);

} // namespace mlir::tile::cpu

#endif // ATTN_LIB_CONVERSION_TILETOVECTOR_VECTORMATH_H
