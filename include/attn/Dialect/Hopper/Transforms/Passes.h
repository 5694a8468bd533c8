//===- Passes.h - Passes on the hopper dialect ------------------*- C++ -*-===//

#ifndef ATTN_DIALECT_HOPPER_TRANSFORMS_PASSES_H
#define ATTN_DIALECT_HOPPER_TRANSFORMS_PASSES_H

#include "attn/Dialect/Hopper/IR/HopperOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::hopper {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Dialect/Hopper/Transforms/Passes.h.inc"
} // namespace mlir::hopper

#endif // ATTN_DIALECT_HOPPER_TRANSFORMS_PASSES_H
