//===- AttentionSpecTest.cpp - Attention in numbers and rules -------------===//

#include "attn/Compiler/AttentionSpec.h"
#include "TestUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace attn;
using namespace attn::test;

static AttentionSpec getSpec() {
  AttentionSpec spec;
  spec.numQueryHeads = 8;
  spec.numKVHeads = 2;
  spec.qkHeadDim = 64;
  spec.vHeadDim = 32;
  return spec;
}

TEST(AttentionSpecTest, PrintsTypesScaleAndLse) {
  AttentionSpec spec = getSpec();
  spec.scale = 0.5f;
  spec.returnLse = true;
  const std::string text = get(spec.print());
  for (const char *part : {"%arg0: tensor<?x8x?x64xbf16> {attn.name = \"q\"}",
                           "%arg1: tensor<?x2x?x64xbf16> {attn.name = \"k\"}",
                           "%arg2: tensor<?x2x?x32xbf16> {attn.name = \"v\"}",
                           "%arg3: tensor<?x8x?x32xbf16> {attn.name = \"o\"}",
                           "%arg4: tensor<?x8x?xf32> {attn.name = \"lse\"}",
                           "scale = 5.000000e-01 : f32"})
    EXPECT_TRUE(contains(text, part));
  EXPECT_EQ(text.find("mask_mod"), std::string::npos);
}

TEST(AttentionSpecTest, TakesSequences) {
  AttentionSpec spec = getSpec();
  spec.hasCuSeqlensQ = spec.hasSeqUsedK = true;
  spec.pageSize = 16;
  const std::string text = get(spec.print());
  for (const char *part :
       {"%arg0: tensor<1x8x?x64xbf16> {attn.name = \"q\"}",
        "%arg1: tensor<?x2x16x64xbf16> {attn.name = \"k\"}",
        "%arg3: tensor<?xi32> {attn.name = \"cu_seqlens_q\"}",
        "%arg4: tensor<?xi32> {attn.name = \"seqused_k\"}",
        "%arg5: tensor<?x?xi32> {attn.name = \"block_table\"}",
        "%arg6: tensor<1x8x?x32xbf16> {attn.name = \"o\"}",
        "cu_q(%arg3 : tensor<?xi32>) kv_len(%arg4 : tensor<?xi32>) "
        "block_table(%arg5 : tensor<?x?xi32>)"})
    EXPECT_TRUE(contains(text, part));
}

TEST(AttentionSpecTest, RefusesPagesWithoutLengths) {
  AttentionSpec spec = getSpec();
  spec.pageSize = 16;
  EXPECT_TRUE(contains(getError(spec.print()), "block_table needs kv_len"));
}

TEST(AttentionSpecTest, TakesRulesAsLambdas) {
  AttentionSpec spec = getSpec();
  spec.maskMod = [](mlir::ImplicitLocOpBuilder &builder,
                    const mlir::attn::ModIndices &at) -> mlir::Value {
    return mlir::arith::CmpIOp::create(builder, mlir::arith::CmpIPredicate::ult,
                                       at.key, at.query);
  };
  spec.scoreMod = mlir::attn::getSoftcap(30);
  const std::string text = get(spec.print());
  EXPECT_TRUE(contains(text, "arith.cmpi ult"));
  EXPECT_TRUE(contains(text, "math.tanh"));
}

TEST(AttentionSpecTest, TakesCaptures) {
  AttentionSpec spec = getSpec();
  spec.captures = {{"bias", DType::F16, {1, 8, kDynamicSize}}};
  spec.scoreMod = [](mlir::ImplicitLocOpBuilder &builder, mlir::Value score,
                     const mlir::attn::ModIndices &at) -> mlir::Value {
    mlir::Value bias = mlir::attn::CaptureLoadOp::create(
        builder, builder.getF16Type(), at.captures[0],
        mlir::ValueRange{at.batch, at.head, at.key});
    bias = mlir::arith::ExtFOp::create(builder, score.getType(), bias);
    return mlir::arith::AddFOp::create(builder, score, bias);
  };
  const std::string text = get(spec.print());
  EXPECT_TRUE(contains(text,
                       "%arg3: tensor<1x8x?xf16> {attn.name = \"bias\"}, "
                       "%arg4: tensor<?x8x?x32xbf16> {attn.name = \"o\"}"));
  EXPECT_TRUE(contains(text, "attn.capture_load"));
  spec.captures[0].shape[0] = -2;
  EXPECT_TRUE(contains(getError(spec.print()), "'bias' has a size of -2"));
}

TEST(AttentionSpecTest, TakesASink) {
  AttentionSpec spec = getSpec();
  spec.captures = {{"slopes", DType::F32, {8}}};
  spec.sinkDType = DType::F32;
  spec.hasSeqUsedK = true;
  const std::string text = get(spec.print());
  for (const char *part : {"%arg3: tensor<8xf32> {attn.name = \"slopes\"}",
                           "%arg4: tensor<8xf32> {attn.name = \"sink\"}",
                           "%arg5: tensor<?xi32> {attn.name = \"seqused_k\"}",
                           "sink(%arg4 : tensor<8xf32>) "
                           "kv_len(%arg5 : tensor<?xi32>)"})
    EXPECT_TRUE(contains(text, part));
  spec.sinkDType = DType::I32;
  EXPECT_TRUE(contains(getError(spec.print()), "sink must hold one f16"));
}

TEST(AttentionSpecTest, TakesEightBitInputs) {
  AttentionSpec spec = getSpec();
  spec.dtype = DType::F8E4M3FN;
  std::string text = get(spec.print());
  EXPECT_TRUE(contains(text, "%arg2: tensor<?x2x?x32xf8E4M3FN>"));
  EXPECT_TRUE(
      contains(text, "%arg3: tensor<?x8x?x32xbf16> {attn.name = \"o\""));
  spec.hasInputScales = true;
  spec.outputDType = DType::F32;
  text = get(spec.print());
  EXPECT_TRUE(contains(text,
                       "%arg3: tensor<?x8xf32> {attn.name = \"q_scale\"}, "
                       "%arg4: tensor<?x2xf32> {attn.name = \"k_scale\"}, "
                       "%arg5: tensor<?x2xf32> {attn.name = \"v_scale\"}, "
                       "%arg6: tensor<?x8x?x32xf32> {attn.name = \"o\"}"));
  EXPECT_TRUE(contains(text, "v_scale(%arg5 : tensor<?x2xf32>)"));
  spec.dtype = DType::F32;
  EXPECT_TRUE(contains(getError(spec.print()), "q_scale is for q, k and v of"));
}

TEST(AttentionSpecTest, RefusesWhatIsNoAttention) {
  auto getErrorOf = [](auto change) {
    AttentionSpec spec = getSpec();
    change(spec);
    return getError(spec.print());
  };
  EXPECT_TRUE(
      contains(getErrorOf([](AttentionSpec &spec) { spec.dtype = DType::I32; }),
               "error: "));
  EXPECT_TRUE(
      contains(getErrorOf([](AttentionSpec &spec) { spec.numKVHeads = 0; }),
               "numKVHeads must be positive, not 0"));
  EXPECT_TRUE(contains(
      getErrorOf([](AttentionSpec &spec) {
        spec.maskMod = [](auto &, const auto &) { return mlir::Value(); };
      }),
      "error: maskMod returned no value; return whether the key is visible"));
  EXPECT_TRUE(contains(getErrorOf([](AttentionSpec &spec) {
                         spec.scoreMod = [](auto &, auto, const auto &) {
                           return mlir::Value();
                         };
                       }),
                       "error: scoreMod returned no value; return the score"));
  EXPECT_TRUE(
      contains(getErrorOf([](AttentionSpec &spec) { spec.numKVHeads = 3; }),
               "error: 'attn.attention' op"));
  // A mask that is no i1.
  EXPECT_TRUE(contains(getErrorOf([](AttentionSpec &spec) {
                         spec.maskMod = [](mlir::ImplicitLocOpBuilder &,
                                           const mlir::attn::ModIndices &at) {
                           return at.key;
                         };
                       }),
                       "error: "));
}
