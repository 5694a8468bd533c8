//===- AttentionSpec.cpp - Attention in numbers and rules -----------------===//

#include "attn/Compiler/AttentionSpec.h"
#include "Diagnostics.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using ::attn::AttentionSpec;

static llvm::Expected<Type> getElementType(::attn::DType dtype,
                                           Builder &builder) {
  switch (dtype) {
  case ::attn::DType::F16:
    return builder.getF16Type();
  case ::attn::DType::BF16:
    return builder.getBF16Type();
  case ::attn::DType::F32:
    return builder.getF32Type();
  default:
    return llvm::createStringError("attention takes f16, bf16 or f32, not " +
                                   ::attn::getName(dtype));
  }
}

static llvm::Error checkSizes(const AttentionSpec &spec) {
  for (auto [name, size] : {std::pair("numQueryHeads", spec.numQueryHeads),
                            std::pair("numKVHeads", spec.numKVHeads),
                            std::pair("qkHeadDim", spec.qkHeadDim),
                            std::pair("vHeadDim", spec.vHeadDim)})
    if (size < 1)
      return llvm::createStringError(
          llvm::Twine(name) + " must be positive, not " + llvm::Twine(size));
  return llvm::Error::success();
}

static constexpr llvm::StringLiteral kArgumentNames[] = {"q", "k", "v", "o",
                                                         "lse"};

/// func @attention(q, k, v, o [, lse]) with one attn.attention.
static OwningOpRef<ModuleOp> buildModule(const AttentionSpec &spec,
                                         Type element, MLIRContext &context) {
  auto location = FileLineColLoc::get(&context, "attention", 1, 1);
  ImplicitLocOpBuilder builder(location, &context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  constexpr int64_t kDynamic = ShapedType::kDynamic;
  auto getType = [&](int64_t heads, int64_t headDim) {
    return RankedTensorType::get({kDynamic, heads, kDynamic, headDim}, element);
  };
  SmallVector<Type> inputs = {getType(spec.numQueryHeads, spec.qkHeadDim),
                              getType(spec.numKVHeads, spec.qkHeadDim),
                              getType(spec.numKVHeads, spec.vHeadDim)};
  SmallVector<Type> outputs = {getType(spec.numQueryHeads, spec.vHeadDim)};
  if (spec.returnLse)
    outputs.push_back(RankedTensorType::get(
        {kDynamic, spec.numQueryHeads, kDynamic}, builder.getF32Type()));
  SmallVector<Type> arguments = inputs;
  llvm::append_range(arguments, outputs);

  builder.setInsertionPointToEnd(module->getBody());
  auto function = func::FuncOp::create(
      builder, "attention", builder.getFunctionType(arguments, outputs));
  for (unsigned index = 0; index < arguments.size(); ++index)
    function.setArgAttr(index, "attn.name",
                        builder.getStringAttr(kArgumentNames[index]));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  Value none;
  auto attention = mlir::attn::AttentionOp::create(
      builder, outputs, body->getArgument(0), body->getArgument(1),
      body->getArgument(2), /*captures=*/ValueRange(), /*scale_value=*/none,
      /*sink=*/none, /*cu_q=*/none, /*cu_k=*/none, /*kv_len=*/none,
      /*block_table=*/none, /*q_scale=*/none, /*k_scale=*/none,
      /*v_scale=*/none, body->getArgument(3),
      spec.returnLse ? body->getArgument(4) : none,
      spec.scale ? builder.getF32FloatAttr(*spec.scale) : FloatAttr(),
      /*schedule=*/{}, /*short_schedules=*/{});
  if (spec.scoreMod)
    mlir::attn::setScoreMod(attention, spec.scoreMod);
  if (spec.maskMod)
    mlir::attn::setMaskMod(attention, spec.maskMod);
  builder.setInsertionPointToEnd(body);
  func::ReturnOp::create(builder, attention.getResults());
  return module;
}

llvm::Expected<std::string> AttentionSpec::print() const {
  if (llvm::Error error = checkSizes(*this))
    return std::move(error);
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, mlir::attn::AttnDialect,
                  func::FuncDialect, math::MathDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  Builder builder(&context);
  llvm::Expected<Type> element = getElementType(dtype, builder);
  if (!element)
    return element.takeError();
  ::attn::ErrorCollector errors(context);
  OwningOpRef<ModuleOp> module = buildModule(*this, *element, context);
  if (failed(verify(*module)))
    return errors.takeError("the operator isn't valid");
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  return text;
}
