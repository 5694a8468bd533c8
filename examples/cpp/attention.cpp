//===- attention.cpp - Attention with rules of one's own, from C++ --------===//
//
// Builds a mask as a C++ lambda, compiles the kernel for the CPU and runs it on
// memory of this program.
//
//===----------------------------------------------------------------------===//

#include "attn/Compiler/CompiledKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cstdio>

using namespace attn;

static constexpr int64_t kHeads = 2, kLength = 6, kDim = 8;

/// Keys of the same parity as the query.
static mlir::Value maskParity(mlir::ImplicitLocOpBuilder &builder,
                              const mlir::attn::ModIndices &at) {
  using namespace mlir::arith;
  mlir::Value one = ConstantOp::create(builder, builder.getI32IntegerAttr(1));
  mlir::Value difference = XOrIOp::create(builder, at.query, at.key);
  mlir::Value parity = AndIOp::create(builder, difference, one);
  return CmpIOp::create(builder, CmpIPredicate::ne, parity, one);
}

static llvm::Error run() {
  AttentionSpec spec;
  spec.dtype = DType::F32;
  spec.numQueryHeads = spec.numKVHeads = kHeads;
  spec.qkHeadDim = spec.vHeadDim = kDim;
  spec.maskMod =
      mlir::attn::intersectMasks(mlir::attn::getCausalMask(), maskParity);

  KernelOptions options;
  options.target = "cpu";
  llvm::Expected<CompiledKernel> kernel =
      CompiledKernel::compile(spec, options);
  if (!kernel)
    return kernel.takeError();

  // All scores are equal, so that a result is the mean of the values that are
  // seen, the positions of the keys.
  const int64_t size = kHeads * kLength * kDim;
  std::vector<float> q(size), k(size), v(size), o(size);
  for (int64_t i = 0; i < size; ++i)
    v[i] = i / kDim % kLength;
  const int64_t shape[] = {1, kHeads, kLength, kDim};
  const int64_t strides[] = {size, kLength * kDim, kDim, 1};
  auto view = [&](std::vector<float> &tensor) {
    return TensorView{DType::F32, shape, strides, tensor.data()};
  };
  if (llvm::Error error =
          kernel->launch({}, {view(q), view(k), view(v), view(o)}))
    return error;
  for (int64_t i = 0; i < kLength; ++i)
    std::printf("o[0, 0, %d, 0] = %g\n", int(i), o[i * kDim]);
  return llvm::Error::success();
}

int main() {
  if (llvm::Error error = run()) {
    llvm::errs() << llvm::toString(std::move(error)) << '\n';
    return EXIT_FAILURE;
  }
}
