//===- AttentionSpec.cpp - Attention in numbers and rules -----------------===//

#include "attn/Compiler/AttentionSpec.h"
#include "Diagnostics.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using ::attn::AttentionSpec;

static Type getElementType(::attn::DType dtype, Builder &builder) {
  switch (dtype) {
  case ::attn::DType::F8E4M3FN:
    return Float8E4M3FNType::get(builder.getContext());
  case ::attn::DType::F8E5M2:
    return Float8E5M2Type::get(builder.getContext());
  case ::attn::DType::F16:
    return builder.getF16Type();
  case ::attn::DType::BF16:
    return builder.getBF16Type();
  case ::attn::DType::F32:
    return builder.getF32Type();
  case ::attn::DType::F64:
    return builder.getF64Type();
  case ::attn::DType::I1:
    return builder.getI1Type();
  case ::attn::DType::I8:
  case ::attn::DType::I16:
  case ::attn::DType::I32:
  case ::attn::DType::I64:
    return builder.getIntegerType(8 * ::attn::getByteSize(dtype));
  }
  llvm_unreachable("unknown dtype");
}

static Type getCaptureType(const ::attn::CaptureSpec &capture,
                           Builder &builder) {
  SmallVector<int64_t> shape;
  for (int64_t size : capture.shape)
    shape.push_back(size == ::attn::kDynamicSize ? ShapedType::kDynamic : size);
  return RankedTensorType::get(shape, getElementType(capture.dtype, builder));
}

static llvm::Error checkSizes(const AttentionSpec &spec) {
  for (auto [name, size] : {std::pair("numQueryHeads", spec.numQueryHeads),
                            std::pair("numKVHeads", spec.numKVHeads),
                            std::pair("qkHeadDim", spec.qkHeadDim),
                            std::pair("vHeadDim", spec.vHeadDim)})
    if (size < 1)
      return llvm::createStringError(
          llvm::Twine(name) + " must be positive, not " + llvm::Twine(size));
  for (const ::attn::CaptureSpec &capture : spec.captures)
    for (int64_t size : capture.shape)
      if (size < 0 && size != ::attn::kDynamicSize)
        return llvm::createStringError("capture '" + capture.name +
                                       "' has a size of " + llvm::Twine(size));
  return llvm::Error::success();
}

namespace {
/// The arguments that say where sequences lie, and their types.
struct SequenceArgument {
  StringRef name;
  bool isThere;
  int64_t rank;
};
} // namespace

static std::array<SequenceArgument, 4>
getSequenceArguments(const AttentionSpec &spec) {
  return {{{"cu_seqlens_q", spec.hasCuSeqlensQ, 1},
           {"cu_seqlens_k", spec.hasCuSeqlensK, 1},
           {"seqused_k", spec.hasSeqUsedK, 1},
           {"block_table", spec.pageSize.has_value(), 2}}};
}

/// No operation takes null for a value.
static LogicalResult setRules(mlir::attn::AttentionOp attention,
                              const AttentionSpec &spec) {
  LogicalResult result = success();
  auto refuse = [&](llvm::StringRef why) {
    result = mlir::emitError(attention.getLoc(), why);
  };
  if (spec.scoreMod)
    mlir::attn::setScoreMod(attention, [&](ImplicitLocOpBuilder &builder,
                                           Value score,
                                           const mlir::attn::ModIndices &at) {
      if (Value changed = spec.scoreMod(builder, score, at))
        return changed;
      refuse("scoreMod returned no value; return the score");
      return score;
    });
  if (spec.maskMod)
    mlir::attn::setMaskMod(attention, [&](ImplicitLocOpBuilder &builder,
                                          const mlir::attn::ModIndices &at) {
      if (Value visible = spec.maskMod(builder, at))
        return visible;
      refuse("maskMod returned no value; return whether the key is "
             "visible");
      return at.query;
    });
  return result;
}

/// func @attention(q, k, v, captures..., [sink,] [scales,] sequences..., o
/// [, lse]) with one attn.attention. Null where a rule is none, with an error.
static OwningOpRef<ModuleOp> buildModule(const AttentionSpec &spec,
                                         MLIRContext &context) {
  auto location =
      FileLineColLoc::get(&context, AttentionSpec::kSourceName, 1, 1);
  ImplicitLocOpBuilder builder(location, &context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  constexpr int64_t kDynamic = ShapedType::kDynamic;
  const int64_t qBatch = spec.hasCuSeqlensQ ? 1 : kDynamic;
  auto getQueryType = [&](int64_t headDim, ::attn::DType dtype) {
    return RankedTensorType::get(
        {qBatch, spec.numQueryHeads, kDynamic, headDim},
        getElementType(dtype, builder));
  };
  auto getKeyType = [&](int64_t headDim) {
    return RankedTensorType::get({spec.hasCuSeqlensK ? 1 : kDynamic,
                                  spec.numKVHeads,
                                  spec.pageSize.value_or(kDynamic), headDim},
                                 getElementType(spec.dtype, builder));
  };
  SmallVector<Type> inputs = {getQueryType(spec.qkHeadDim, spec.dtype),
                              getKeyType(spec.qkHeadDim),
                              getKeyType(spec.vHeadDim)};
  SmallVector<StringRef> names = {"q", "k", "v"};
  for (const ::attn::CaptureSpec &capture : spec.captures) {
    inputs.push_back(getCaptureType(capture, builder));
    names.push_back(capture.name);
  }
  if (spec.sinkDType) {
    inputs.push_back(RankedTensorType::get(
        {spec.numQueryHeads}, getElementType(*spec.sinkDType, builder)));
    names.push_back("sink");
  }
  if (spec.hasInputScales) {
    for (int64_t heads : {spec.numQueryHeads, spec.numKVHeads, spec.numKVHeads})
      inputs.push_back(
          RankedTensorType::get({kDynamic, heads}, builder.getF32Type()));
    names.append({"q_scale", "k_scale", "v_scale"});
  }
  for (const SequenceArgument &argument : getSequenceArguments(spec)) {
    if (!argument.isThere)
      continue;
    inputs.push_back(RankedTensorType::get(
        SmallVector<int64_t>(argument.rank, kDynamic), builder.getI32Type()));
    names.push_back(argument.name);
  }
  names.append({"o", "lse"});
  const ::attn::DType defaultOutput =
      ::attn::getByteSize(spec.dtype) == 1 ? ::attn::DType::BF16 : spec.dtype;
  SmallVector<Type> outputs = {
      getQueryType(spec.vHeadDim, spec.outputDType.value_or(defaultOutput))};
  if (spec.returnLse)
    outputs.push_back(RankedTensorType::get(
        {qBatch, spec.numQueryHeads, kDynamic}, builder.getF32Type()));
  SmallVector<Type> arguments = inputs;
  llvm::append_range(arguments, outputs);

  builder.setInsertionPointToEnd(module->getBody());
  auto function = func::FuncOp::create(
      builder, "attention", builder.getFunctionType(arguments, outputs));
  for (size_t index = 0; index < arguments.size(); ++index)
    function.setArgAttr(index, "attn.name",
                        builder.getStringAttr(names[index]));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  const auto values = body->getArguments();
  const Value output = values[inputs.size()];
  const Value none;
  size_t next = 3 + spec.captures.size();
  const Value sink = spec.sinkDType ? Value(values[next++]) : none;
  const auto scales = values.slice(next, spec.hasInputScales ? 3 : 0);
  next += scales.size();
  auto getScale = [&](size_t index) {
    return scales.empty() ? none : Value(scales[index]);
  };
  std::array<Value, 4> sequences;
  for (auto [value, argument] :
       llvm::zip_equal(sequences, getSequenceArguments(spec)))
    if (argument.isThere)
      value = values[next++];
  auto attention = mlir::attn::AttentionOp::create(
      builder, outputs, values[0], values[1], values[2],
      /*captures=*/ValueRange(values.slice(3, spec.captures.size())),
      /*scale_value=*/none, sink, /*cu_q=*/sequences[0], /*cu_k=*/sequences[1],
      /*kv_len=*/sequences[2], /*block_table=*/sequences[3],
      /*q_scale=*/getScale(0), /*k_scale=*/getScale(1),
      /*v_scale=*/getScale(2), output, spec.returnLse ? values.back() : none,
      spec.scale ? builder.getF32FloatAttr(*spec.scale) : FloatAttr(),
      /*schedule=*/{}, /*short_schedules=*/{});
  attention.setBatchInvariant(spec.batchInvariant);
  if (failed(setRules(attention, spec)))
    return nullptr;
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
  ::attn::ErrorCollector errors(context);
  OwningOpRef<ModuleOp> module = buildModule(*this, context);
  if (!module || failed(verify(*module)))
    return errors.takeError("the operator isn't valid");
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  return text;
}
