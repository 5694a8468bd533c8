//===- AttentionEmitter.cpp - The function of an ONNX Attention node ------===//

#include "AttentionNode.h"
#include "TensorValues.h"
#include "attn/Dialect/Attn/IR/AttnMods.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::attn;

static constexpr Input kAllInputs[] = {Input::Q,
                                       Input::K,
                                       Input::V,
                                       Input::Mask,
                                       Input::PastKey,
                                       Input::PastValue,
                                       Input::NonpadKVSeqLen};
static constexpr Output kAllOutputs[] = {Output::Y, Output::PresentKey,
                                         Output::PresentValue, Output::Scores};

namespace {
/// Builds the function of one node. Tensors of rank 4 are arguments as they
/// are; those of rank 3, whose heads lie next to each other in the last
/// dimension, are memrefs of which the operator gets a view.
class FunctionEmitter {
public:
  FunctionEmitter(const AttentionNode &node, const OnnxValues &values,
                  OpBuilder &builder)
      : node(node), values(values), builder(node.loc, builder) {}

  LogicalResult emit(StringRef name);

private:
  struct Argument {
    Type type;
    bool isOutput;
  };

  //===--------------------------------------------------------------------===//
  // Arguments
  //===--------------------------------------------------------------------===//

  LogicalResult collectArguments();
  Type getArgumentType(RankedTensorType type, bool isPacked);
  LogicalResult addFunction(StringRef name);
  template <typename Role>
  Value getArgument(Role role) {
    return arguments[node.get(role)];
  }
  /// A rank-4 view of a memref [batch, length, heads * dim].
  Value getHeadsView(Value packed, int64_t heads);
  /// The tensor [batch, heads, length, dim] of an input.
  Value getHeads(Input input, const OnnxDim &heads);

  //===--------------------------------------------------------------------===//
  // Sizes
  //===--------------------------------------------------------------------===//

  /// Each is read once, which keeps the function short.
  OpFoldResult getSize(Value tensor, int64_t dim) {
    OpFoldResult &size = knownSizes[{tensor, dim}];
    if (!size)
      size = tensor::getMixedSize(builder, builder.getLoc(), tensor, dim);
    return size;
  }
  SmallVector<OpFoldResult> getSizes(Value tensor) {
    SmallVector<OpFoldResult> all;
    for (int64_t dim = 0; dim < cast<ShapedType>(tensor.getType()).getRank();
         ++dim)
      all.push_back(getSize(tensor, dim));
    return all;
  }
  Value toValue(OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(builder, builder.getLoc(), size);
  }
  OpFoldResult addSizes(OpFoldResult a, OpFoldResult b);
  void requireEqual(OpFoldResult a, OpFoldResult b, const Twine &message);
  void requireSizes(Value tensor, StringRef name,
                    ArrayRef<std::pair<int64_t, OpFoldResult>> sizes);
  void addChecks();

  //===--------------------------------------------------------------------===//
  // Keys and values
  //===--------------------------------------------------------------------===//

  bool hasPastKeys() { return node.hasPast() && node.pastKeys.size != 0; }
  Value concatenate(Input past, Value fresh, Output present);

  //===--------------------------------------------------------------------===//
  // Rules
  //===--------------------------------------------------------------------===//

  void addCaptures();
  /// The key of a query's own position: its number plus those of the keys in
  /// front of the first query.
  Value getPosition(ImplicitLocOpBuilder &body, const ModIndices &indices);
  Value loadNonpad(ImplicitLocOpBuilder &body, const ModIndices &indices);
  /// The number of keys that the mask has, where there may be more.
  std::optional<int64_t> getMaskLimit();
  Value loadMask(ImplicitLocOpBuilder &body, const ModIndices &indices);
  MaskMod getMaskMod();
  ScoreMod getScoreMod();

  //===--------------------------------------------------------------------===//
  // Operators
  //===--------------------------------------------------------------------===//

  AttentionOp addAttention(Value o);
  Value addScores(AttentionOp op);
  Value addProduct(AttentionOp op, Value init);
  Value buildScore(ImplicitLocOpBuilder &body, AttentionOp op, ValueRange args);
  Value inlineRule(ImplicitLocOpBuilder &body, AttentionOp op, Region &rule,
                   ValueRange leading, ValueRange lengths);

  const AttentionNode &node;
  const OnnxValues &values;
  ImplicitLocOpBuilder builder;
  llvm::MapVector<StringRef, Argument> argumentTypes;
  llvm::StringMap<Value> arguments;
  func::FuncOp function;
  Value q, newK, newV, k, v, presentKey, presentValue;
  SmallVector<Value> captures;
  unsigned maskCapture = 0, nonpadCapture = 0;
  std::optional<unsigned> pastCapture;
  DenseMap<std::pair<Value, int64_t>, OpFoldResult> knownSizes;
};
} // namespace

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// Outer strides are the caller's, as those of a tensor argument are.
Type FunctionEmitter::getArgumentType(RankedTensorType type, bool isPacked) {
  if (!isPacked)
    return type;
  constexpr int64_t kDynamic = ShapedType::kDynamic;
  auto layout = StridedLayoutAttr::get(builder.getContext(), kDynamic,
                                       {kDynamic, kDynamic, 1});
  return MemRefType::get(type.getShape(), type.getElementType(), layout);
}

/// A value that the node reads twice is one argument.
LogicalResult FunctionEmitter::collectArguments() {
  for (Input input : kAllInputs) {
    if (!node.has(input))
      continue;
    bool isPacked = node.isPacked && input <= Input::V;
    Type type = getArgumentType(node.getType(input), isPacked);
    auto [entry, isNew] =
        argumentTypes.insert({node.get(input), {type, /*isOutput=*/false}});
    if (!isNew && entry->second.type != type)
      return emitError(node.loc)
             << "input '" << node.get(input) << "' is used as " << type
             << " and as " << entry->second.type;
  }
  for (Output output : kAllOutputs) {
    if (!node.has(output))
      continue;
    bool isPacked = node.isPacked && output == Output::Y;
    Type type = getArgumentType(node.getType(output), isPacked);
    if (!argumentTypes.insert({node.get(output), {type, /*isOutput=*/true}})
             .second)
      return emitError(node.loc)
             << "output '" << node.get(output) << "' is given twice";
  }
  return success();
}

LogicalResult FunctionEmitter::addFunction(StringRef name) {
  SmallVector<Type> types, results;
  for (auto &[argument, info] : argumentTypes) {
    types.push_back(info.type);
    if (info.isOutput && isa<TensorType>(info.type))
      results.push_back(info.type);
  }
  function = func::FuncOp::create(builder, name,
                                  builder.getFunctionType(types, results));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  for (auto [index, entry] : llvm::enumerate(argumentTypes)) {
    auto &[argument, info] = entry;
    arguments[argument] = body->getArgument(index);
    function.setArgAttr(index, "attn.name", builder.getStringAttr(argument));
    if (info.isOutput)
      function.setArgAttr(index, "attn.output", builder.getUnitAttr());
    const auto *constant = values.lookup(argument).constant;
    if (!constant)
      continue;
    FailureOr<DenseElementsAttr> value =
        readTensor(node.loc, *constant, info.type);
    if (failed(value))
      return failure();
    function.setArgAttr(index, "attn.value", *value);
  }
  return success();
}

Value FunctionEmitter::getHeadsView(Value packed, int64_t heads) {
  auto type = cast<MemRefType>(packed.getType());
  SmallVector<int64_t> shape(type.getShape().drop_back());
  shape.append({heads, type.getDimSize(2) / heads});
  const SmallVector<ReassociationIndices> groups = {{0}, {1}, {2, 3}};
  auto expandedType =
      memref::ExpandShapeOp::computeExpandedType(type, shape, groups);
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim : {0, 1})
    sizes.push_back(
        memref::getMixedSize(builder, builder.getLoc(), packed, dim));
  sizes.push_back(builder.getIndexAttr(shape[2]));
  sizes.push_back(builder.getIndexAttr(shape[3]));
  Value expanded = memref::ExpandShapeOp::create(builder, *expandedType, packed,
                                                 groups, sizes);
  auto order = AffineMap::getPermutationMap(ArrayRef<unsigned>{0, 2, 1, 3},
                                            builder.getContext());
  return memref::TransposeOp::create(builder, expanded,
                                     AffineMapAttr::get(order));
}

static Value toTensor(ImplicitLocOpBuilder &builder, Value memref,
                      bool writable) {
  auto type = cast<MemRefType>(memref.getType());
  return bufferization::ToTensorOp::create(
      builder, RankedTensorType::get(type.getShape(), type.getElementType()),
      memref, /*restrict=*/true, writable);
}

Value FunctionEmitter::getHeads(Input input, const OnnxDim &heads) {
  Value argument = getArgument(input);
  if (isa<TensorType>(argument.getType()))
    return argument;
  return toTensor(builder, getHeadsView(argument, heads.size),
                  /*writable=*/false);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

OpFoldResult FunctionEmitter::addSizes(OpFoldResult a, OpFoldResult b) {
  std::optional<int64_t> left = getConstantIntValue(a);
  std::optional<int64_t> right = getConstantIntValue(b);
  if (left && right)
    return builder.getIndexAttr(*left + *right);
  if (left == 0)
    return b;
  return arith::AddIOp::create(builder, toValue(a), toValue(b)).getResult();
}

void FunctionEmitter::requireEqual(OpFoldResult a, OpFoldResult b,
                                   const Twine &message) {
  if (isEqualConstantIntOrValue(a, b))
    return;
  Value equal = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                      toValue(a), toValue(b));
  cf::AssertOp::create(builder, equal, message.str());
}

void FunctionEmitter::requireSizes(
    Value tensor, StringRef name,
    ArrayRef<std::pair<int64_t, OpFoldResult>> sizes) {
  for (auto [dim, size] : sizes)
    requireEqual(getSize(tensor, dim), size,
                 "dimension " + Twine(dim) + " of '" + name +
                     "' doesn't agree with the other inputs");
}

/// What attn.attention itself doesn't ask of its operands.
void FunctionEmitter::addChecks() {
  OpFoldResult batch = getSize(q, 0), queries = getSize(q, 2);
  OpFoldResult past = builder.getIndexAttr(0);
  if (node.hasPast()) {
    past = getSize(getArgument(Input::PastKey), 2);
    requireSizes(getArgument(Input::PastKey), node.get(Input::PastKey),
                 {{0, batch}});
    requireSizes(getArgument(Input::PastValue), node.get(Input::PastValue),
                 {{0, batch}, {2, past}});
    requireSizes(newV, node.get(Input::V), {{2, getSize(newK, 2)}});
  }
  OpFoldResult keys = addSizes(past, getSize(newK, 2));
  for (Output output : {Output::PresentKey, Output::PresentValue})
    if (node.has(output))
      requireSizes(getArgument(output), node.get(output),
                   {{0, batch}, {2, keys}});
  if (node.has(Output::Scores))
    requireSizes(getArgument(Output::Scores), node.get(Output::Scores),
                 {{0, batch}, {2, queries}, {3, keys}});
  if (node.has(Input::NonpadKVSeqLen))
    requireSizes(getArgument(Input::NonpadKVSeqLen),
                 node.get(Input::NonpadKVSeqLen), {{0, batch}});
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

/// Returns what the operator reads; what `present` holds then is in its
/// argument.
Value FunctionEmitter::concatenate(Input past, Value fresh, Output present) {
  Value result;
  if (node.has(present))
    result = getArgument(present);
  if (!hasPastKeys()) {
    if (result)
      arguments[node.get(present)] =
          linalg::CopyOp::create(builder, fresh, result).getResult(0);
    return fresh;
  }
  Value cache = getArgument(past);
  SmallVector<OpFoldResult> sizes = getSizes(fresh);
  SmallVector<OpFoldResult> starts(4, builder.getIndexAttr(0));
  SmallVector<OpFoldResult> steps(4, builder.getIndexAttr(1));
  OpFoldResult pastLength = getSize(cache, 2), newLength = sizes[2];
  if (!result) {
    sizes[2] = addSizes(pastLength, newLength);
    result = tensor::EmptyOp::create(builder, sizes, node.elementType);
  }
  sizes[2] = pastLength;
  result = tensor::InsertSliceOp::create(builder, cache, result, starts, sizes,
                                         steps);
  starts[2] = pastLength;
  sizes[2] = newLength;
  result = tensor::InsertSliceOp::create(builder, fresh, result, starts, sizes,
                                         steps);
  if (node.has(present))
    arguments[node.get(present)] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

static Value i32(ImplicitLocOpBuilder &builder, int64_t value) {
  return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(value));
}

static Value load(ImplicitLocOpBuilder &body, Value capture,
                  ValueRange position) {
  Type element = cast<ShapedType>(capture.getType()).getElementType();
  return CaptureLoadOp::create(body, element, capture, position);
}

void FunctionEmitter::addCaptures() {
  auto capture = [&](Value value) {
    captures.push_back(value);
    return captures.size() - 1;
  };
  if (node.has(Input::Mask))
    maskCapture = capture(getArgument(Input::Mask));
  if (node.has(Input::NonpadKVSeqLen)) {
    nonpadCapture = capture(getArgument(Input::NonpadKVSeqLen));
    return;
  }
  bool needsPosition =
      node.isCausal || node.leftWindow >= 0 || node.rightWindow >= 0;
  if (!needsPosition || node.pastKeys.isStatic() || node.newKeys.isStatic())
    return;
  if (node.newKeys.isSame(node.queries)) {
    requireEqual(getSize(newK, 2), getSize(q, 2),
                 "the model says that Q and K have the same length");
    return;
  }
  // The rules see the total length only: a tensor holds the past one.
  Value length = toValue(getSize(getArgument(Input::PastKey), 2));
  Value value =
      arith::IndexCastOp::create(builder, builder.getI32Type(), length);
  Value empty = tensor::EmptyOp::create(builder, ArrayRef<int64_t>{1, 1},
                                        builder.getI32Type());
  auto fill = linalg::FillOp::create(builder, value, empty);
  fill->setDiscardableAttr("attn.step", builder.getStringAttr("past_length"));
  pastCapture = capture(fill.getResult(0));
}

Value FunctionEmitter::loadNonpad(ImplicitLocOpBuilder &body,
                                  const ModIndices &indices) {
  Value length = load(body, indices.captures[nonpadCapture], indices.batch);
  return arith::TruncIOp::create(body, body.getI32Type(), length);
}

Value FunctionEmitter::getPosition(ImplicitLocOpBuilder &body,
                                   const ModIndices &indices) {
  auto getLength = [&](auto op) -> Value {
    return decltype(op)::create(body, body.getI32Type());
  };
  auto subtract = [&](Value a, Value b) -> Value {
    return arith::SubIOp::create(body, a, b);
  };
  Value offset;
  if (node.has(Input::NonpadKVSeqLen))
    offset = subtract(loadNonpad(body, indices), getLength(QLenOp()));
  else if (!hasPastKeys())
    return indices.query;
  else if (node.pastKeys.isStatic())
    offset = i32(body, node.pastKeys.size);
  else if (node.newKeys.isStatic())
    offset = subtract(getLength(KVLenOp()), i32(body, node.newKeys.size));
  else if (pastCapture)
    offset = load(body, indices.captures[*pastCapture],
                  {i32(body, 0), i32(body, 0)});
  else
    offset = subtract(getLength(KVLenOp()), getLength(QLenOp()));
  return arith::AddIOp::create(body, indices.query, offset);
}

std::optional<int64_t> FunctionEmitter::getMaskLimit() {
  if (!node.has(Input::Mask) || !node.padsMask() || node.maskShape.empty())
    return std::nullopt;
  const OnnxDim &columns = node.maskShape.back();
  if (!columns.isStatic() || columns.isSame(node.keys))
    return std::nullopt;
  return columns.size;
}

/// Broadcasting aligns the mask's dimensions with the last of the scores'.
Value FunctionEmitter::loadMask(ImplicitLocOpBuilder &body,
                                const ModIndices &indices) {
  Value key = indices.key;
  if (std::optional<int64_t> limit = getMaskLimit())
    key = arith::MinSIOp::create(body, key, i32(body, *limit - 1));
  else if (node.padsMask() && node.has(Input::NonpadKVSeqLen) &&
           !node.maskShape.empty() && !node.maskShape.back().isStatic() &&
           !node.maskShape.back().isSame(node.keys))
    // As long as the longest sequence at least: what is read beyond is hidden.
    // Only a bare index asks for a mask of all keys.
    key = arith::MaxSIOp::create(body, key, i32(body, 0));
  const Value all[] = {indices.batch, indices.head, indices.query, key};
  return load(body, indices.captures[maskCapture],
              ArrayRef(all).take_back(node.maskShape.size()));
}

MaskMod FunctionEmitter::getMaskMod() {
  using Predicate = arith::CmpIPredicate;
  SmallVector<MaskMod> parts;
  auto compare = [](ImplicitLocOpBuilder &body, Predicate predicate, Value a,
                    Value b) -> Value {
    return arith::CmpIOp::create(body, predicate, a, b);
  };
  // A comparison of the key with the query's position plus `distance`.
  auto addBound = [&](Predicate predicate, int64_t distance) {
    parts.push_back([=](ImplicitLocOpBuilder &body, const ModIndices &indices) {
      Value bound = getPosition(body, indices);
      if (distance != 0)
        bound = arith::AddIOp::create(body, bound, i32(body, distance));
      return compare(body, predicate, indices.key, bound);
    });
  };
  if (node.isCausal)
    addBound(Predicate::sle, 0);
  if (node.leftWindow >= 0)
    addBound(Predicate::sge, -static_cast<int64_t>(node.leftWindow));
  if (node.rightWindow >= 0)
    addBound(Predicate::sle, node.rightWindow);
  if (node.has(Input::NonpadKVSeqLen))
    parts.push_back([=](ImplicitLocOpBuilder &body, const ModIndices &indices) {
      return compare(body, Predicate::slt, indices.key,
                     loadNonpad(body, indices));
    });
  if (std::optional<int64_t> limit = getMaskLimit())
    parts.push_back([=](ImplicitLocOpBuilder &body, const ModIndices &indices) {
      return compare(body, Predicate::slt, indices.key, i32(body, *limit));
    });
  if (node.has(Input::Mask) && node.maskElementType.isInteger(1))
    parts.push_back(
        [this](ImplicitLocOpBuilder &body, const ModIndices &indices) {
          return loadMask(body, indices);
        });
  MaskMod all;
  for (MaskMod &part : parts)
    all = all ? intersectMasks(all, part) : part;
  return all;
}

ScoreMod FunctionEmitter::getScoreMod() {
  ScoreMod all;
  if (node.softcap)
    all = getSoftcap(*node.softcap);
  if (!node.has(Input::Mask) || node.maskElementType.isInteger(1))
    return all;
  ScoreMod bias = [this](ImplicitLocOpBuilder &body, Value score,
                         const ModIndices &indices) -> Value {
    Value bias = loadMask(body, indices);
    if (!bias.getType().isF32())
      bias = arith::ExtFOp::create(body, body.getF32Type(), bias);
    return arith::AddFOp::create(body, score, bias);
  };
  return all ? chainScoreMods(all, bias) : bias;
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

AttentionOp FunctionEmitter::addAttention(Value o) {
  const Value none;
  SmallVector<Type> results = {o.getType()};
  Value lse;
  if (node.has(Output::Scores) && node.scoreOutput == ScoreOutput::Softmax) {
    SmallVector<OpFoldResult> rows = getSizes(q);
    rows.pop_back();
    lse = tensor::EmptyOp::create(builder, rows, builder.getF32Type());
    results.push_back(lse.getType());
  }
  FloatAttr scale;
  if (node.scale)
    scale = builder.getF32FloatAttr(*node.scale);
  auto op = AttentionOp::create(
      builder, results, q, k, v, captures, /*scale_value=*/none, /*sink=*/none,
      /*cu_q=*/none, /*cu_k=*/none, /*kv_len=*/none, /*block_table=*/none,
      /*q_scale=*/none, /*k_scale=*/none, /*v_scale=*/none, o, lse, scale,
      /*schedule=*/{}, /*short_schedules=*/{});
  if (ScoreMod mod = getScoreMod())
    setScoreMod(op, mod);
  if (MaskMod mod = getMaskMod())
    setMaskMod(op, mod);
  builder.setInsertionPointAfter(op);
  return op;
}

/// q times k transposed, in f32.
Value FunctionEmitter::addProduct(AttentionOp op, Value init) {
  auto getMap = [&](ArrayRef<unsigned> loops, int64_t headsPerKVHead = 1) {
    SmallVector<AffineExpr> exprs = llvm::map_to_vector(
        loops, [&](unsigned loop) { return builder.getAffineDimExpr(loop); });
    exprs[1] = exprs[1].floorDiv(headsPerKVHead);
    return AffineMap::get(5, 0, exprs, builder.getContext());
  };
  Value zero = arith::ConstantOp::create(builder, builder.getF32FloatAttr(0));
  Value start = linalg::FillOp::create(builder, zero, init).getResult(0);
  int64_t group = node.queryHeads.size / node.kvHeads.size;
  SmallVector<utils::IteratorType> loops(5, utils::IteratorType::parallel);
  loops.back() = utils::IteratorType::reduction;
  auto toF32 = [](OpBuilder &body, Location loc, Value value) -> Value {
    if (value.getType().isF32())
      return value;
    return arith::ExtFOp::create(body, loc, body.getF32Type(), value);
  };
  auto generic = linalg::GenericOp::create(
      builder, init.getType(), ValueRange{q, k}, start,
      ArrayRef{getMap({0, 1, 2, 4}), getMap({0, 1, 3, 4}, group),
               getMap({0, 1, 2, 3})},
      loops, [&](OpBuilder &body, Location loc, ValueRange args) {
        Value product = arith::MulFOp::create(
            body, loc, toF32(body, loc, args[0]), toF32(body, loc, args[1]));
        Value sum = arith::AddFOp::create(body, loc, args[2], product);
        linalg::YieldOp::create(body, loc, sum);
      });
  generic->setDiscardableAttr("attn.step", builder.getStringAttr("scores_qk"));
  return generic.getResult(0);
}

/// Clones a rule of the operator; `lengths` are those of the queries and keys.
Value FunctionEmitter::inlineRule(ImplicitLocOpBuilder &body, AttentionOp op,
                                  Region &rule, ValueRange leading,
                                  ValueRange lengths) {
  Block &block = rule.front();
  IRMapping mapping;
  mapping.map(block.getArguments().take_front(leading.size()), leading);
  mapping.map(block.getArguments().take_back(captures.size()), captures);
  auto indices = block.getArguments().drop_front(leading.size()).take_front(4);
  for (auto [loop, index] : llvm::enumerate(indices)) {
    Value position = linalg::IndexOp::create(body, loop);
    mapping.map(index,
                arith::IndexCastOp::create(body, body.getI32Type(), position)
                    .getResult());
  }
  for (Operation &inner : block.without_terminator()) {
    if (isa<QLenOp, KVLenOp>(inner))
      mapping.map(inner.getResult(0), lengths[isa<KVLenOp>(inner) ? 1 : 0]);
    else
      body.clone(inner, mapping);
  }
  return mapping.lookupOrDefault(block.getTerminator()->getOperand(0));
}

/// `args` are the product, the lengths and, for the softmax, the lse.
Value FunctionEmitter::buildScore(ImplicitLocOpBuilder &body, AttentionOp op,
                                  ValueRange args) {
  Type f32 = body.getF32Type();
  auto constant = [&](float value) -> Value {
    return arith::ConstantOp::create(body, body.getF32FloatAttr(value));
  };
  Value score =
      arith::MulFOp::create(body, args[0], constant(*op.getConstantScale()));
  if (node.scoreOutput == ScoreOutput::Softcapped && node.softcap)
    score = getSoftcap(*node.softcap)(body, score, {});
  if (node.scoreOutput < ScoreOutput::Masked)
    return score;
  ValueRange lengths = args.slice(1, 2);
  Value minusInf = constant(-std::numeric_limits<float>::infinity());
  if (op.hasScoreMod())
    score = inlineRule(body, op, op.getScoreMod(), score, lengths);
  if (op.hasMaskMod()) {
    Value visible = inlineRule(body, op, op.getMaskMod(), {}, lengths);
    score = arith::SelectOp::create(body, visible, score, minusInf);
  }
  if (node.scoreOutput != ScoreOutput::Softmax)
    return score;
  // A row that sees no key has no finite lse.
  Value isHidden =
      arith::CmpFOp::create(body, arith::CmpFPredicate::OEQ, score, minusInf);
  Value exp = math::ExpOp::create(
      body, f32, arith::SubFOp::create(body, score, args[3]).getResult());
  return arith::SelectOp::create(body, isHidden, constant(0.0f), exp);
}

/// The output qk_matmul_output, which fused attention never has in memory.
Value FunctionEmitter::addScores(AttentionOp op) {
  Value output = getArgument(Output::Scores);
  Type f32 = builder.getF32Type(), type = node.elementType;
  Value room = output;
  if (type != f32)
    room = tensor::EmptyOp::create(builder, getSizes(output), f32);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  auto addInput = [&](Value value, ArrayRef<int64_t> loops) {
    inputs.push_back(value);
    maps.push_back(builder.getMultiDimIdentityMap(4).getSubMap(
        SmallVector<unsigned>(loops.begin(), loops.end())));
  };
  Value product = addProduct(op, room);
  if (room != output)
    addInput(product, {0, 1, 2, 3});
  for (Value tensor : {q, k}) {
    Value length = toValue(getSize(tensor, 2));
    addInput(arith::IndexCastOp::create(builder, builder.getI32Type(), length),
             {});
  }
  if (op.getLse())
    addInput(op.getResult(1), {0, 1, 2});
  Value into = room == output ? product : output;
  maps.push_back(builder.getMultiDimIdentityMap(4));
  SmallVector<utils::IteratorType> loops(4, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, output.getType(), inputs, into, maps, loops,
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        ImplicitLocOpBuilder body(loc, nested);
        SmallVector<Value> ordered(args);
        if (room == output)
          std::rotate(ordered.begin(), std::prev(ordered.end()), ordered.end());
        Value score = buildScore(body, op, ordered);
        if (type != f32)
          score = arith::TruncFOp::create(body, type, score);
        linalg::YieldOp::create(body, score);
      });
  generic->setDiscardableAttr("attn.step", builder.getStringAttr("scores"));
  return generic.getResult(0);
}

LogicalResult FunctionEmitter::emit(StringRef name) {
  if (failed(collectArguments()) || failed(addFunction(name)))
    return failure();
  q = getHeads(Input::Q, node.queryHeads);
  newK = getHeads(Input::K, node.kvHeads);
  newV = getHeads(Input::V, node.kvHeads);
  addChecks();
  k = concatenate(Input::PastKey, newK, Output::PresentKey);
  v = concatenate(Input::PastValue, newV, Output::PresentValue);
  addCaptures();

  Value packedOutput, o = getArgument(Output::Y);
  if (node.isPacked) {
    packedOutput = getHeadsView(o, node.queryHeads.size);
    o = toTensor(builder, packedOutput, /*writable=*/true);
  }
  AttentionOp op = addAttention(o);
  if (packedOutput)
    bufferization::MaterializeInDestinationOp::create(
        builder, /*result=*/Type(), op.getResult(0), packedOutput,
        /*restrict=*/true, /*writable=*/true);
  else
    arguments[node.get(Output::Y)] = op.getResult(0);
  if (node.has(Output::Scores)) {
    Value scores = addScores(op);
    arguments[node.get(Output::Scores)] = scores;
  }
  SmallVector<Value> results;
  for (Output output : kAllOutputs)
    if (node.has(output) && isa<TensorType>(getArgument(output).getType()))
      results.push_back(getArgument(output));
  func::ReturnOp::create(builder, results);
  return success();
}

LogicalResult attn::emitFunction(const AttentionNode &node, StringRef name,
                                 const OnnxValues &values, OpBuilder &builder) {
  OpBuilder::InsertionGuard guard(builder);
  return FunctionEmitter(node, values, builder).emit(name);
}
