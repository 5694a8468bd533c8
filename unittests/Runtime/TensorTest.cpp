//===- TensorTest.cpp - Strided arrays ------------------------------------===//

#include "attn/Runtime/Tensor.h"
#include "TestUtils.h"

using namespace attn;
using namespace attn::test;

TEST(TensorTest, AllocatesRowMajorZeros) {
  Tensor tensor = get(Tensor::allocate(DType::F32, {2, 3, 4}));
  EXPECT_EQ(tensor.getStrides(), llvm::ArrayRef<int64_t>({12, 4, 1}));
  EXPECT_EQ(tensor.getFootprintBytes(), 96);
  EXPECT_TRUE(tensor.isRowMajor());
  EXPECT_EQ(tensor.toDoubles(), std::vector<double>(24, 0.0));
  EXPECT_EQ(tensor.getTypeString(), "2x3x4xf32");
}

TEST(TensorTest, RefusesSizesThatOverflow) {
  const int64_t huge = int64_t(1) << 40;
  EXPECT_TRUE(contains(getError(Tensor::allocate(DType::F32, {huge, huge})),
                       "overflows"));
  EXPECT_TRUE(contains(getError(Tensor::allocate(DType::F32, {huge, huge, 0})),
                       "overflows"));
  EXPECT_TRUE(
      contains(getError(Tensor::allocate(DType::F32, {-1})), "overflows"));
}

TEST(TensorTest, WalksStridedViewsInLogicalOrder) {
  float data[6] = {0, 1, 2, 3, 4, 5};
  Tensor transposed = Tensor::borrow(DType::F32, {3, 2}, {1, 3}, data);
  EXPECT_FALSE(transposed.isRowMajor());
  EXPECT_EQ(transposed.toDoubles(), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  Tensor dense = get(transposed.toRowMajor());
  EXPECT_TRUE(dense.isRowMajor());
  EXPECT_EQ(dense.toDoubles(), transposed.toDoubles());
}

TEST(TensorTest, BroadcastAndGapsCountInTheFootprint) {
  float data[16] = {};
  EXPECT_EQ(
      Tensor::borrow(DType::F32, {4, 2}, {0, 1}, data).getFootprintBytes(), 8);
  EXPECT_EQ(
      Tensor::borrow(DType::F32, {4, 2}, {4, 1}, data).getFootprintBytes(), 56);
  EXPECT_EQ(
      Tensor::borrow(DType::F32, {0, 2}, {4, 1}, data).getFootprintBytes(), 0);
}

TEST(TensorTest, EmptyAndScalar) {
  Tensor empty = get(Tensor::allocate(DType::F16, {2, 0, 3}));
  EXPECT_EQ(empty.getNumElements(), 0);
  EXPECT_TRUE(empty.toDoubles().empty());
  Tensor scalar = get(Tensor::scalar(DType::F32, 0.125));
  EXPECT_EQ(scalar.getRank(), 0);
  EXPECT_EQ(scalar.toDoubles(), std::vector<double>{0.125});
}
