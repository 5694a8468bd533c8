//===- TileToVector.cpp - Lower tile kernels to vector code ---------------===//

#include "KernelLowering.h"
#include "VectorMath.h"
#include "attn/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::attn {
#define GEN_PASS_DEF_CONVERTTILETOVECTOR
#include "attn/Conversion/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

namespace {

struct ConvertTileToVectorPass
    : attn::impl::ConvertTileToVectorBase<ConvertTileToVectorPass> {
  using Base::Base;

  void runOnOperation() override {
    if (vectorBits != 128 && vectorBits != 256 && vectorBits != 512) {
      emitError(getOperation().getLoc())
          << "vector-bits must be 128, 256 or 512, not " << vectorBits;
      return signalPassFailure();
    }
    for (KernelOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      if (failed(KernelLowering(kernel, vectorBits).run()))
        return signalPassFailure();
    // Narrower vectors than AVX-512's come with CPUs on which LLVM converts to
    // bf16 by calls.
    expandMath(getOperation(), /*expandBF16=*/vectorBits < 512);
  }
};

} // namespace
