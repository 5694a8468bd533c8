//===- VerifyProtocolTest.cpp - Mutants of the shipped schedules ----------===//
//
// Every change of one ring or wait operation of a kernel that would hang, race
// or read too early must be refused by hopper-verify-protocol.
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Hopper/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::hopper;

static constexpr char kSource[] = R"mlir(
!mem = memref<?x8x?x64xbf16, strided<[?, ?, ?, 1]>>
func.func @attention(%q: !mem, %k: !mem, %v: !mem, %o: !mem) {
  attn.attention ins(%q, %k, %v : !mem, !mem, !mem) outs(%o : !mem)
    {schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 12>}
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %visible = arith.cmpi sle, %kv_idx, %q_idx : i32
      attn.yield %visible : i1
    }
  return
})mlir";

namespace {
/// Whether the schedule overlaps products and softmax.
class VerifyProtocolTest : public testing::TestWithParam<bool> {
protected:
  VerifyProtocolTest() {
    DialectRegistry registry;
    mlir::attn::registerAttncDialects(registry);
    context.appendDialectRegistry(registry);
    module = parseSourceString<ModuleOp>(kSource, &context);
    PassManager pm(&context);
    pm.addPass(mlir::attn::createConvertAttnToTile({"sm_90a"}));
    pm.addPass(mlir::attn::createConvertHostToPlan());
    pm.addNestedPass<tile::KernelOp>(tile::createTileSplitKVRanges());
    pm.addNestedPass<tile::KernelOp>(
        mlir::attn::createConvertTileToHopper({GetParam()}));
    EXPECT_TRUE(succeeded(pm.run(*module)));
  }

  static bool isLegal(ModuleOp mutant) {
    ScopedDiagnosticHandler silence(mutant.getContext(),
                                    [](Diagnostic &) { return success(); });
    PassManager pm(mutant.getContext());
    pm.addNestedPass<tile::KernelOp>(createHopperVerifyProtocol());
    return succeeded(pm.run(mutant));
  }

  /// Applies `change` to one OpTy after the other, each in a fresh copy.
  /// `change` may decline by returning false.
  template <typename OpTy, typename Fn>
  void expectRefused(const char *name, Fn change) {
    unsigned count = 0, numOps = 0;
    module->walk([&](OpTy) { ++numOps; });
    ASSERT_GT(numOps, 0u) << name;
    for (unsigned index = 0; index < numOps; ++index) {
      OwningOpRef<ModuleOp> mutant = module->clone();
      SmallVector<OpTy> ops;
      mutant->walk([&](OpTy op) { ops.push_back(op); });
      std::string text;
      llvm::raw_string_ostream(text) << ops[index];
      if (!change(ops[index]))
        continue;
      ++count;
      EXPECT_FALSE(isLegal(*mutant)) << name << " #" << index << ": " << text;
    }
    EXPECT_GT(count, 0u) << name;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

template <typename OpTy>
bool duplicate(OpTy op) {
  OpBuilder builder(op);
  builder.clone(*op.getOperation());
  return true;
}

template <typename OpTy>
bool remove(OpTy op) {
  op.erase();
  return true;
}

/// Takes the tile after the right one.
template <typename OpTy>
bool takeNext(OpTy op) {
  OpBuilder builder(op);
  Value one = arith::ConstantOp::create(builder, op.getLoc(),
                                        builder.getI32IntegerAttr(1));
  op.getNumberMutable().assign(
      arith::AddIOp::create(builder, op.getLoc(), op.getNumber(), one));
  return true;
}

TEST_P(VerifyProtocolTest, AcceptsTheSchedule) {
  EXPECT_TRUE(isLegal(*module));
}

TEST_P(VerifyProtocolTest, RefusesDuplicates) {
  expectRefused<AcquireOp>("acquire twice", duplicate<AcquireOp>);
  expectRefused<CommitOp>("commit twice", duplicate<CommitOp>);
  expectRefused<WaitOp>("wait twice", duplicate<WaitOp>);
  expectRefused<ReleaseOp>("release twice", duplicate<ReleaseOp>);
}

TEST_P(VerifyProtocolTest, RefusesMissing) {
  expectRefused<CommitOp>("no commit", remove<CommitOp>);
  expectRefused<ReleaseOp>("no release", remove<ReleaseOp>);
}

TEST_P(VerifyProtocolTest, RefusesOtherTiles) {
  expectRefused<AcquireOp>("acquire of the next tile", takeNext<AcquireOp>);
  expectRefused<WaitOp>("wait for the next tile", takeNext<WaitOp>);
}

TEST_P(VerifyProtocolTest, RefusesWaitsThatLeaveTheProductInFlight) {
  expectRefused<WgmmaWaitOp>("one more in flight", [](WgmmaWaitOp op) {
    op.setInFlight(op.getInFlight() + 1);
    return true;
  });
}

TEST_P(VerifyProtocolTest, RefusesReleaseBeforeTheProductIsComplete) {
  expectRefused<ReleaseOp>("early release", [](ReleaseOp op) {
    Operation *previous = op->getPrevNode();
    if (!isa_and_present<WgmmaWaitOp>(previous))
      return false;
    op->moveBefore(previous);
    return true;
  });
}

INSTANTIATE_TEST_SUITE_P(Schedules, VerifyProtocolTest, testing::Bool());
} // namespace
