//===- TileOrderTest.cpp - Which tile of queries a program computes -------===//

#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <set>

using namespace mlir;

namespace {
constexpr int64_t kBatches = 2, kHeads = 3, kBlockM = 64;

struct Lengths {
  int64_t queries, keys;
  bool isPersistent;
};

struct TilePosition {
  int64_t batch, head, row;
  bool operator<(const TilePosition &other) const {
    return std::tie(batch, head, row) <
           std::tie(other.batch, other.head, other.row);
  }
};

std::string getSource(const Lengths &lengths) {
  auto type = [&](int64_t length) -> std::string {
    return llvm::formatv("memref<{0}x{1}x{2}x64xbf16>", kBatches, kHeads,
                         length);
  };
  return llvm::formatv(R"mlir(
func.func @attention(%q: {0}, %k: {1}, %v: {1}, %o: {0}) {{
  attn.attention ins(%q, %k, %v : {0}, {1}, {1}) outs(%o : {0})
    {{schedule = #attn.schedule<block_m = {2}, block_n = 64, num_stages = 2,
      num_warps = 8, warp_roles = <persistent = {3}>>}
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {{
      %visible = arith.cmpi sle, %kv_idx, %q_idx : i32
      attn.yield %visible : i1
    }
  return
})mlir",
                       type(lengths.queries), type(lengths.keys), kBlockM,
                       lengths.isPersistent ? "true" : "false");
}

class TileOrderTest : public testing::TestWithParam<Lengths> {
protected:
  TileOrderTest() {
    DialectRegistry registry;
    mlir::attn::registerAttncDialects(registry);
    context.appendDialectRegistry(registry);
    module = parseSourceString<ModuleOp>(getSource(GetParam()), &context);
    PassManager pm(&context);
    pm.addPass(mlir::attn::createConvertAttnToTile({"sm_90a"}));
    pm.addPass(mlir::attn::createConvertHostToPlan());
    EXPECT_TRUE(succeeded(pm.run(*module)));
  }

  /// Where program `number` loads its queries: the canonicalizer computes it.
  std::optional<TilePosition> getTile(int64_t number) {
    OwningOpRef<ModuleOp> program = module->clone();
    program->walk([&](tile::ProgramIdOp id) {
      OpBuilder builder(id);
      id.replaceAllUsesWith(
          arith::ConstantOp::create(builder, id.getLoc(),
                                    builder.getI32IntegerAttr(number))
              .getResult());
    });
    PassManager pm(&context);
    pm.addPass(createCanonicalizerPass());
    if (failed(pm.run(*program)))
      return std::nullopt;
    std::optional<TilePosition> position;
    program->walk([&](tile::LoadOp load) {
      if (load.getSource() !=
          load->getParentOfType<tile::KernelOp>().getBody().getArgument(0))
        return;
      SmallVector<int64_t> indices;
      for (Value index : load.getIndices())
        indices.push_back(getConstantIntValue(index).value_or(-1));
      position = {indices[0], indices[1], indices[2]};
    });
    return position;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_P(TileOrderTest, TakesEveryTileOnce) {
  int64_t tiles = llvm::divideCeil(GetParam().queries, kBlockM);
  std::set<TilePosition> seen;
  for (int64_t number = 0; number < kBatches * kHeads * tiles; ++number) {
    std::optional<TilePosition> tile = getTile(number);
    ASSERT_TRUE(tile);
    EXPECT_TRUE(tile->batch >= 0 && tile->batch < kBatches);
    EXPECT_TRUE(tile->head >= 0 && tile->head < kHeads);
    EXPECT_TRUE(tile->row >= 0 && tile->row < GetParam().queries);
    EXPECT_EQ(tile->row % kBlockM, 0);
    EXPECT_TRUE(seen.insert(*tile).second) << number;
  }
}

/// Persistent programs take numbers in order: none of the longer half may be
/// left to the end.
TEST_P(TileOrderTest, TakesTheLongerHalfFirst) {
  if (!GetParam().isPersistent)
    return;
  int64_t tiles = llvm::divideCeil(GetParam().queries, kBlockM);
  int64_t numLong = kBatches * kHeads * (tiles - tiles / 2);
  for (int64_t number = 0; number < kBatches * kHeads * tiles; ++number) {
    std::optional<TilePosition> tile = getTile(number);
    ASSERT_TRUE(tile);
    EXPECT_EQ(tile->row >= tiles / 2 * kBlockM, number < numLong) << number;
  }
}

// The L2 holds keys and values of all heads, of four, two, one, and of none.
INSTANTIATE_TEST_SUITE_P(
    Lengths, TileOrderTest,
    testing::Values(Lengths{400, 400, false}, Lengths{400, 400, true},
                    Lengths{400, 30000, true}, Lengths{384, 60000, true},
                    Lengths{400, 100000, true}, Lengths{400, 1000000, true},
                    Lengths{1, 1, true}));
} // namespace
