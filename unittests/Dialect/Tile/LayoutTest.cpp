//===- LayoutTest.cpp - Tests of the layout algebra -----------------------===//

#include "attn/Dialect/Tile/Layout.h"
#include "attn/Dialect/Tile/IR/TileDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"
#include <map>
#include <set>

using namespace mlir;
using namespace mlir::tile;

namespace {
class LayoutTest : public ::testing::Test {
protected:
  LayoutTest() { context.loadDialect<TileDialect>(); }

  RegisterLayout get(ArrayRef<int64_t> shape, Attribute encoding) {
    auto type =
        RankedTensorType::get(shape, Float32Type::get(&context), encoding);
    auto emitError = [&] { return mlir::emitError(UnknownLoc::get(&context)); };
    FailureOr<RegisterLayout> layout = RegisterLayout::get(type, emitError);
    EXPECT_TRUE(succeeded(layout));
    return *layout;
  }

  /// How many (thread, element) pairs hold each position.
  std::map<std::pair<int64_t, int64_t>, int> count(const RegisterLayout &layout,
                                                   int64_t threads) {
    std::map<std::pair<int64_t, int64_t>, int> counts;
    for (int64_t thread = 0; thread < threads; ++thread)
      for (size_t i = 0; i < layout.getOffsets().size(); ++i) {
        TilePosition position = layout.getPosition(thread, i);
        ++counts[{position.row, position.col}];
      }
    return counts;
  }

  void expectEachOnce(ArrayRef<int64_t> shape, Attribute encoding,
                      int64_t threads) {
    auto counts = count(get(shape, encoding), threads);
    EXPECT_EQ(counts.size(), static_cast<size_t>(shape[0] * shape[1]));
    for (auto &[position, times] : counts) {
      EXPECT_EQ(times, 1);
      EXPECT_LT(position.first, shape[0]);
      EXPECT_LT(position.second, shape[1]);
    }
  }

  MLIRContext context;
};

TEST_F(LayoutTest, MmaHoldsEachElementOnce) {
  for (int64_t warps : {1, 2, 4, 8})
    for (int64_t rows : {16 * warps, 32 * warps})
      for (int64_t cols : {8, 64, 96})
        expectEachOnce({rows, cols}, MmaLayoutAttr::get(&context, warps),
                       32 * warps);
}

// The table of mma.sync's m16n8 accumulator in the PTX manual: c0, c1 in row
// lane / 4 and c2, c3 eight rows below, at columns 2 * (lane % 4) + (i & 1).
TEST_F(LayoutTest, MmaIsTheAccumulatorOfThePtxManual) {
  RegisterLayout layout = get({16, 8}, MmaLayoutAttr::get(&context, 1));
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(
          layout.getPosition(lane, i),
          (TilePosition{lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)}));
}

// The A fragment of m16n8k16: a0,a1 row g, k 2t..; a2,a3 row g+8; a4,a5 row g,
// k 2t+8..; a6,a7 row g+8, k 2t+8...
TEST_F(LayoutTest, OperandIsTheAFragmentOfThePtxManual) {
  auto mma = MmaLayoutAttr::get(&context, 1);
  RegisterLayout layout = get({16, 16}, OperandLayoutAttr::get(&context, mma));
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < 8; ++i) {
      int64_t row = (i < 2 || (i >= 4 && i < 6)) ? lane / 4 : lane / 4 + 8;
      int64_t col = lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0);
      EXPECT_EQ(layout.getPosition(lane, i), (TilePosition{row, col}));
    }
}

// The A fragment of m16n8k32, and of wgmma's k32: a0 to a3 row g, k 4t..; a4 to
// a7 eight rows below; a8 to a15 the same, k 4t+16... Under the permutation all
// are columns that the thread holds of the accumulator, each once.
TEST_F(LayoutTest, PermutedOperandIsTheEightBitFragmentOfThePtxManual) {
  RegisterLayout layout = get({16, 32}, MmaLayoutAttr::get(&context, 1));
  for (int64_t lane = 0; lane < 32; ++lane) {
    std::map<std::pair<int64_t, int64_t>, int> held;
    for (int64_t i = 0; i < 16; ++i) {
      TilePosition position = layout.getPosition(lane, i);
      ++held[{position.row, position.col}];
    }
    for (int64_t i = 0; i < 16; ++i) {
      int64_t row = i % 8 < 4 ? lane / 4 : lane / 4 + 8;
      int64_t slot = lane % 4 * 4 + i % 4 + (i < 8 ? 0 : 16);
      EXPECT_EQ(--(held[{row, getOperandColumn(slot)}]), 0);
    }
  }
}

TEST_F(LayoutTest, BlockedHoldsEachElementOnce) {
  expectEachOnce({16, 1024}, BlockedLayoutAttr::get(&context, 8, 32, 4), 128);
  expectEachOnce({64, 64}, BlockedLayoutAttr::get(&context, 8, 8, 4), 128);
  expectEachOnce({32, 32}, BlockedLayoutAttr::get(&context, 4, 8, 2), 64);
}

TEST_F(LayoutTest, BlockedMayLeaveThreadsBelowTheLastRow) {
  auto encoding = BlockedLayoutAttr::get(&context, 8, 8, 4);
  EXPECT_TRUE(get({2, 64}, encoding).mayExceedRows());
  EXPECT_FALSE(get({16, 64}, encoding).mayExceedRows());
}

TEST_F(LayoutTest, RankOneBlockedHoldsEachElementOnce) {
  RegisterLayout layout =
      get({4096}, BlockedLayoutAttr::get(&context, 8, 32, 4));
  std::set<int64_t> seen;
  for (int64_t thread = 0; thread < 128; ++thread)
    for (size_t i = 0; i < layout.getOffsets().size(); ++i)
      EXPECT_TRUE(seen.insert(layout.getPosition(thread, i).col).second);
  EXPECT_EQ(seen.size(), 4096u);
  EXPECT_EQ(*seen.rbegin(), 4095);
}

// An element's row value is the one of the same row, in every thread.
TEST_F(LayoutTest, RowAndColumnValuesBelongToTheElements) {
  for (Attribute parent :
       {Attribute(MmaLayoutAttr::get(&context, 4)),
        Attribute(BlockedLayoutAttr::get(&context, 4, 16, 4))}) {
    RegisterLayout tile = get({128, 64}, parent);
    RegisterLayout rows = get({128}, RowLayoutAttr::get(&context, parent));
    RegisterLayout cols = get({64}, ColLayoutAttr::get(&context, parent));
    SmallVector<int64_t> rowIndices = tile.getRowIndices();
    SmallVector<int64_t> colIndices = tile.getColIndices();
    for (int64_t thread = 0; thread < 128; ++thread)
      for (size_t i = 0; i < tile.getOffsets().size(); ++i) {
        TilePosition position = tile.getPosition(thread, i);
        EXPECT_EQ(position.row, rows.getPosition(thread, rowIndices[i]).row);
        EXPECT_EQ(position.col, cols.getPosition(thread, colIndices[i]).col);
      }
  }
}

TEST_F(LayoutTest, RefusesShapesThatDoNotSplit) {
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &) {});
  auto emitError = [&] { return mlir::emitError(UnknownLoc::get(&context)); };
  auto type = RankedTensorType::get({48, 64}, Float32Type::get(&context),
                                    MmaLayoutAttr::get(&context, 4));
  EXPECT_TRUE(failed(RegisterLayout::get(type, emitError)));
}

// Swizzling permutes the chunks of a row, and 8 rows' chunks of one column
// fall into 8 different groups of 4 banks.
TEST_F(LayoutTest, SwizzleAvoidsBankConflicts) {
  for (int64_t cols : {8, 16, 32, 64, 96, 128, 256}) {
    auto type = RankedTensorType::get({64, cols}, BFloat16Type::get(&context));
    SharedSwizzle swizzle = SharedSwizzle::get(type);
    int64_t chunks = cols / 8;
    std::set<int64_t> offsets;
    for (int64_t row = 0; row < 64; ++row)
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        int64_t offset = swizzle.getOffset(row, chunk);
        EXPECT_EQ(offset / swizzle.rowBytes, row);
        offsets.insert(offset);
      }
    EXPECT_EQ(offsets.size(), static_cast<size_t>(64 * chunks));
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      std::set<int64_t> banks;
      for (int64_t row = 8; row < 16; ++row)
        banks.insert(swizzle.getOffset(row, chunk) % 128);
      EXPECT_EQ(banks.size(), 8u) << cols << " columns";
    }
  }
}
} // namespace
