//===- OccupancyTest.cpp - Blocks an SM -----------------------------------===//
//
// Expected values are those of CUDA 13.0's cuda_occupancy.h.
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Occupancy.h"
#include "gtest/gtest.h"

using namespace attn;

static Occupancy compute(llvm::StringRef arch, BlockDemand demand) {
  return computeOccupancy(*SMLimits::lookup(arch), demand);
}

TEST(OccupancyTest, RegistersLimitFlashAttention2) {
  // 128 threads of 255 registers: two blocks, 12.5 %.
  Occupancy occupancy = compute("sm_80", {128, 255, 48 << 10});
  EXPECT_EQ(occupancy.blocksPerSM, 2);
  EXPECT_EQ(occupancy.limit, "registers");
  EXPECT_DOUBLE_EQ(occupancy.getFraction(), 0.125);
}

TEST(OccupancyTest, SharedMemoryLimits) {
  // 2 x (81 + 1) KB is exactly what sm_80 has; a byte more leaves one block.
  EXPECT_EQ(compute("sm_80", {128, 32, 81 << 10}).blocksPerSM, 2);
  Occupancy occupancy = compute("sm_80", {128, 32, (81 << 10) + 1});
  EXPECT_EQ(occupancy.blocksPerSM, 1);
  EXPECT_EQ(occupancy.limit, "shared memory");
  EXPECT_EQ(compute("sm_90", {128, 32, 113 << 10}).blocksPerSM, 2);
}

TEST(OccupancyTest, WhatDoesNotFitCannotRun) {
  EXPECT_EQ(compute("sm_80", {128, 32, 163 << 10}).blocksPerSM, 1);
  Occupancy occupancy = compute("sm_80", {128, 32, (163 << 10) + 1});
  EXPECT_EQ(occupancy.blocksPerSM, 0);
  EXPECT_EQ(occupancy.limit, "shared memory");
  EXPECT_EQ(compute("sm_90a", {128, 32, 227 << 10}).blocksPerSM, 1);
  EXPECT_EQ(compute("sm_80", {1024, 128, 0}).blocksPerSM, 0);
}

TEST(OccupancyTest, ThreadsAndBlocksLimit) {
  Occupancy threads = compute("sm_80", {256, 32, 0});
  EXPECT_EQ(threads.blocksPerSM, 8);
  EXPECT_EQ(threads.getFraction(), 1);
  Occupancy blocks = compute("sm_80", {32, 16, 0});
  EXPECT_EQ(blocks.blocksPerSM, 32);
  EXPECT_EQ(blocks.limit, "blocks");
  EXPECT_DOUBLE_EQ(blocks.getFraction(), 0.5);
}

TEST(OccupancyTest, RegistersAreGivenInUnitsOf256AWarp) {
  // 33 registers take 40 (1280 a warp): 12 warps a partition, 48 in all.
  EXPECT_EQ(compute("sm_80", {64, 33, 0}).blocksPerSM, 24);
  EXPECT_EQ(compute("sm_80", {64, 40, 0}).blocksPerSM, 24);
  EXPECT_EQ(compute("sm_80", {64, 41, 0}).blocksPerSM, 20);
  // Odd numbers of warps.
  EXPECT_EQ(compute("sm_80", {96, 168, 0}).blocksPerSM, 4);
  EXPECT_EQ(compute("sm_80", {160, 100, 5000}).blocksPerSM, 3);
}

TEST(OccupancyTest, UnknownArchitecture) {
  EXPECT_FALSE(SMLimits::lookup("sm_10"));
  EXPECT_FALSE(SMLimits::lookup("cpu"));
}
