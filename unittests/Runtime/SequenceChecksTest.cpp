//===- SequenceChecksTest.cpp - Offsets, lengths and pages ----------------===//

#include "attn/Runtime/SequenceChecks.h"
#include "TestUtils.h"
#include <deque>

using namespace attn;
using namespace attn::test;

namespace {
/// Sequences in arrays of a test.
class SequenceChecksTest : public testing::Test {
protected:
  SequenceChecksTest() {
    manifest.entry = "f";
    manifest.sequences.emplace_back();
    plan.sequenceLimits.push_back({/*qRows=*/10, /*kBatches=*/4, /*kRows=*/16});
  }

  void add(std::optional<unsigned> SequenceCheck::*operand, std::string name,
           std::vector<int32_t> values, std::vector<int64_t> shape) {
    manifest.sequences[0].*operand = manifest.arguments.size();
    Argument &argument = manifest.arguments.emplace_back();
    argument.name = std::move(name);
    arrays.push_back(std::move(values));
    tensors.push_back(Tensor::borrow(
        DType::I32, shape, getRowMajorStrides(shape), arrays.back().data()));
  }
  void addVector(std::optional<unsigned> SequenceCheck::*operand,
                 std::string name, std::vector<int32_t> values) {
    const int64_t size = values.size();
    add(operand, std::move(name), std::move(values), {size});
  }

  std::string check() {
    return llvm::toString(checkSequences(
        manifest, plan, [&](unsigned argument) -> llvm::Expected<Tensor> {
          return tensors[argument];
        }));
  }

  Manifest manifest;
  BoundPlan plan;
  std::deque<std::vector<int32_t>> arrays;
  std::vector<Tensor> tensors;
};
} // namespace

TEST_F(SequenceChecksTest, TakesEmptySequencesAndUnusedRows) {
  addVector(&SequenceCheck::cuQ, "ends", {0, 0, 7, 7});
  addVector(&SequenceCheck::cuK, "k_ends", {0, 5, 5, 16});
  EXPECT_EQ(check(), "");
}

TEST_F(SequenceChecksTest, RefusesOffsetsThatDoNotBeginWithZero) {
  addVector(&SequenceCheck::cuQ, "ends", {1, 7});
  EXPECT_EQ(check(), "'f': ends[0] is 1; offsets begin with 0");
}

TEST_F(SequenceChecksTest, RefusesOffsetsThatDecrease) {
  addVector(&SequenceCheck::cuK, "ends", {0, 9, 7});
  EXPECT_TRUE(contains(check(), "ends[2] is 7, less than the 9 before it"));
}

TEST_F(SequenceChecksTest, RefusesOffsetsPastTheEnd) {
  addVector(&SequenceCheck::cuQ, "ends", {0, 11});
  EXPECT_TRUE(contains(check(), "ends[1] is 11, past the 10 rows"));
}

TEST_F(SequenceChecksTest, RefusesLengthsBeyondTheRoom) {
  addVector(&SequenceCheck::kvLen, "lens", {16, 17});
  EXPECT_TRUE(contains(check(), "lens[1] is 17, but the sequence has room for "
                                "0 to 16 keys"));
}

TEST_F(SequenceChecksTest, RefusesNegativeLengths) {
  addVector(&SequenceCheck::kvLen, "lens", {-1});
  EXPECT_TRUE(contains(check(), "lens[0] is -1"));
}

TEST_F(SequenceChecksTest, MeasuresPackedRoomByTheNextOffset) {
  addVector(&SequenceCheck::cuK, "ends", {0, 4, 16});
  addVector(&SequenceCheck::kvLen, "lens", {5, 12});
  EXPECT_TRUE(contains(check(), "lens[0] is 5, but the sequence has room for "
                                "0 to 4 keys"));
}

TEST_F(SequenceChecksTest, LooksAtPagesInUseOnly) {
  addVector(&SequenceCheck::kvLen, "lens", {17, 0});
  add(&SequenceCheck::blockTable, "table", {3, 0, 99, -1, 99, 99}, {2, 3});
  EXPECT_EQ(check(), "");
}

TEST_F(SequenceChecksTest, RefusesPagesThatDoNotExist) {
  addVector(&SequenceCheck::kvLen, "lens", {17, 33});
  add(&SequenceCheck::blockTable, "table", {3, 0, 99, 1, 2, 4}, {2, 3});
  EXPECT_TRUE(contains(check(), "table[1, 2] is 4, but there are 4 pages"));
}

TEST_F(SequenceChecksTest, RefusesLengthsBeyondTheTable) {
  addVector(&SequenceCheck::kvLen, "lens", {49});
  add(&SequenceCheck::blockTable, "table", {0, 1, 2}, {1, 3});
  EXPECT_TRUE(contains(check(), "room for 0 to 48 keys"));
}
