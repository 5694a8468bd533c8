//===- AttentionNode.cpp - What an ONNX Attention node says ---------------===//

#include "AttentionNode.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;
using ::attnc::onnx::AttributeProto;
using ::attnc::onnx::NodeProto;
using ::attnc::onnx::TensorProto;

/// Kernels take sizes as i32 and add tiles' sizes to positions.
static constexpr int64_t kMaxSize = int64_t(1) << 30;

static constexpr StringLiteral kInputNames[] = {
    "Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"};
static constexpr StringLiteral kOutputNames[] = {
    "Y", "present_key", "present_value", "qk_matmul_output"};

Type attn::getElementType(int32_t onnxType, MLIRContext *context) {
  Builder builder(context);
  switch (onnxType) {
  case TensorProto::FLOAT:
    return builder.getF32Type();
  case TensorProto::FLOAT16:
    return builder.getF16Type();
  case TensorProto::BFLOAT16:
    return builder.getBF16Type();
  case TensorProto::BOOL:
    return builder.getI1Type();
  case TensorProto::INT64:
    return builder.getI64Type();
  default:
    return {};
  }
}

std::string attn::getElementTypeName(int32_t onnxType) {
  if (TensorProto::DataType_IsValid(onnxType))
    return StringRef(TensorProto::DataType_Name(
                         static_cast<TensorProto::DataType>(onnxType)))
        .lower();
  return "type " + std::to_string(onnxType);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

FailureOr<AttentionNode> AttentionNode::read(const NodeProto &proto,
                                             int64_t opset, StringRef name,
                                             MLIRContext *context) {
  AttentionNode node(NameLoc::get(StringAttr::get(context, name)), name, opset);
  int numInputs = opset >= 24 ? kNumInputs : kNumInputs - 1;
  if (proto.input_size() > numInputs)
    return node.emitError()
           << "has " << proto.input_size() << " inputs; in "
           << "opset " << opset << " Attention takes up to " << numInputs;
  if (proto.output_size() > static_cast<int>(kNumOutputs))
    return node.emitError() << "has " << proto.output_size()
                            << " outputs; Attention has up to " << kNumOutputs;
  llvm::copy(proto.input(), node.inputs.begin());
  llvm::copy(proto.output(), node.outputs.begin());
  if (failed(node.readAttributes(proto)) || failed(node.verifyForm()))
    return failure();
  return node;
}

LogicalResult AttentionNode::readNumber(const AttributeProto &attribute,
                                        int64_t least, int64_t greatest,
                                        int64_t &value) {
  if (attribute.type() != AttributeProto::INT)
    return emitError() << "attribute '" << attribute.name()
                       << "' must be an integer";
  value = attribute.i();
  if (value >= least && value <= greatest)
    return success();
  return emitError() << "attribute '" << attribute.name() << "' is " << value
                     << "; it must be from " << least << " to " << greatest;
}

LogicalResult AttentionNode::readNumber(const AttributeProto &attribute,
                                        float &value) {
  if (attribute.type() != AttributeProto::FLOAT)
    return emitError() << "attribute '" << attribute.name()
                       << "' must be a float";
  value = attribute.f();
  if (std::isfinite(value) && value >= 0)
    return success();
  return emitError() << "attribute '" << attribute.name()
                     << "' must be a finite number that isn't negative";
}

LogicalResult AttentionNode::readAttribute(const AttributeProto &attribute) {
  if (!attribute.ref_attr_name().empty())
    return emitError() << "attribute '" << attribute.name()
                       << "' refers to an attribute of a function; inline the "
                          "model's functions first (onnx.inliner)";
  const StringRef name = attribute.name();
  int64_t number = 0;
  float value = 0;
  if (name == "scale" || name == "softcap") {
    if (failed(readNumber(attribute, value)))
      return failure();
    if (name == "scale")
      scale = value;
    else if (value > 0)
      softcap = value;
    return success();
  }
  if (name == "is_causal") {
    if (failed(readNumber(attribute, 0, 1, number)))
      return failure();
    isCausal = number;
    return success();
  }
  if (name == "q_num_heads" || name == "kv_num_heads") {
    if (failed(readNumber(attribute, 1, kMaxSize, number)))
      return failure();
    (name == "q_num_heads" ? givenQueryHeads : givenKVHeads) = number;
    return success();
  }
  if (name == "qk_matmul_output_mode") {
    if (failed(readNumber(attribute, 0, 3, number)))
      return failure();
    scoreOutput = static_cast<ScoreOutput>(number);
    return success();
  }
  if (name == "softmax_precision") {
    if (failed(readNumber(attribute, 0, kMaxSize, number)))
      return failure();
    if (number == TensorProto::DOUBLE)
      emitWarning(loc) << "the softmax is computed in float32, not in double "
                          "as softmax_precision asks for";
    else if (number != TensorProto::FLOAT && number != TensorProto::FLOAT16 &&
             number != TensorProto::BFLOAT16)
      return emitError() << "attribute 'softmax_precision' is "
                         << getElementTypeName(number)
                         << ", which is no float type";
    return success();
  }
  if (opset >= 25 &&
      (name == "left_window_size" || name == "right_window_size")) {
    if (failed(readNumber(attribute, -1, kMaxSize, number)))
      return failure();
    (name == "left_window_size" ? leftWindow : rightWindow) = number;
    return success();
  }
  return emitError() << "attribute '" << name << "' is none of Attention's in "
                     << "opset " << opset;
}

LogicalResult AttentionNode::readAttributes(const NodeProto &proto) {
  llvm::StringMap<bool> seen;
  for (const AttributeProto &attribute : proto.attribute()) {
    if (!seen.try_emplace(attribute.name(), true).second)
      return emitError() << "attribute '" << attribute.name()
                         << "' is given twice";
    if (failed(readAttribute(attribute)))
      return failure();
  }
  return success();
}

/// Which inputs and outputs go together.
LogicalResult AttentionNode::verifyForm() const {
  for (Input input : {Input::Q, Input::K, Input::V})
    if (!has(input))
      return emitError() << "has no input "
                         << kInputNames[static_cast<unsigned>(input)];
  if (!has(Output::Y))
    return emitError() << "has no output Y";
  for (auto [index, output] : llvm::enumerate(outputs))
    if (!output.empty() && llvm::is_contained(inputs, output))
      return emitError() << "output " << kOutputNames[index] << " '" << output
                         << "' is also an input";
  if (has(Input::PastKey) != has(Input::PastValue))
    return emitError() << "has one of past_key and past_value; they go "
                          "together";
  if (has(Input::NonpadKVSeqLen) && hasPast())
    return emitError() << "has both past_key and nonpad_kv_seqlen, which are "
                          "two ways to say what is in the cache";
  return success();
}

//===----------------------------------------------------------------------===//
// Types and sizes
//===----------------------------------------------------------------------===//

LogicalResult AttentionNode::resolve(OnnxValues &values) {
  if (failed(resolveRank(values)) || failed(resolveElementType(values)))
    return failure();
  // What is found out about one value may be new for another role that it has.
  for (int round = 0; round < 2; ++round)
    if (failed(resolveSizes(values)))
      return failure();
  if (failed(verifySizes()) || failed(resolveMask(values)) ||
      failed(resolveLengths(values)))
    return failure();
  return success();
}

LogicalResult AttentionNode::resolveRank(const OnnxValues &values) {
  std::optional<size_t> rank;
  for (Input input : {Input::Q, Input::K, Input::V}) {
    const auto &shape = values.lookup(get(input)).shape;
    if (!shape)
      continue;
    if (rank && *rank != shape->size())
      return emitError() << "Q, K and V have different ranks";
    rank = shape->size();
    if (rank != 3 && rank != 4)
      return emitError() << "input '" << get(input) << "' has rank " << *rank
                         << "; Q, K and V have 3 or 4 dimensions";
  }
  if (!rank)
    return emitError() << "the model doesn't say the shapes of Q, K and V; "
                          "let onnx.shape_inference.infer_shapes add them";
  isPacked = *rank == 3;
  if (isPacked && (!givenQueryHeads || !givenKVHeads))
    return emitError() << "has 3-D inputs, which need q_num_heads and "
                          "kv_num_heads";
  if (givenQueryHeads)
    queryHeads.size = *givenQueryHeads;
  if (givenKVHeads)
    kvHeads.size = *givenKVHeads;
  return success();
}

LogicalResult AttentionNode::resolveElementType(OnnxValues &values) {
  SmallVector<StringRef> names = {
      get(Input::Q),           get(Input::K),
      get(Input::V),           get(Input::PastKey),
      get(Input::PastValue),   get(Output::Y),
      get(Output::PresentKey), get(Output::PresentValue),
      get(Output::Scores)};
  llvm::erase(names, StringRef());
  int32_t type = TensorProto::UNDEFINED;
  StringRef typed;
  for (StringRef name : names) {
    int32_t other = values.lookup(name).elementType;
    if (other == TensorProto::UNDEFINED)
      continue;
    if (type != TensorProto::UNDEFINED && other != type)
      return emitError() << "'" << typed << "' is " << getElementTypeName(type)
                         << " and '" << name << "' is "
                         << getElementTypeName(other)
                         << "; q, k, v and the results share one type here";
    type = other;
    typed = name;
  }
  if (type == TensorProto::UNDEFINED)
    return emitError() << "the model doesn't say the element type of Q, K and "
                          "V; let onnx.shape_inference.infer_shapes add it";
  elementType = getElementType(type, loc.getContext());
  if (!isa_and_present<FloatType>(elementType))
    return emitError() << "'" << typed << "' is " << getElementTypeName(type)
                       << "; supported are float16, bfloat16 and float";
  for (StringRef name : names)
    values[name].elementType = type;
  return success();
}

namespace {
/// One dimension of a tensor as the operator's specification names it.
struct Slot {
  OnnxDim *dim;
  StringLiteral what;
  /// The dimension is as many times larger; may be null.
  const OnnxDim *heads = nullptr;
};
} // namespace

/// The dimension of a value whose slot it is.
static OnnxDim getGivenDim(const Slot &slot) {
  if (!slot.heads)
    return *slot.dim;
  OnnxDim dim;
  if (slot.heads->isStatic() && slot.dim->isStatic())
    dim.size = slot.heads->size * slot.dim->size;
  return dim;
}

/// Adds what is known of the dimensions that `slots` are to a value.
static void refine(OnnxValue &value, ArrayRef<Slot> slots) {
  SmallVector<OnnxDim> known = llvm::map_to_vector(slots, getGivenDim);
  if (!value.shape) {
    value.shape = known;
    return;
  }
  for (auto [dim, other] : llvm::zip_equal(*value.shape, known))
    if (!dim.isStatic() && (other.isStatic() || dim.symbol.empty()))
      dim = other;
}

static LogicalResult merge(Location loc, const Twine &value, const Slot &slot,
                           OnnxDim given) {
  if (slot.heads && given.isStatic()) {
    if (given.size % slot.heads->size)
      return emitError(loc) << value << " has " << given.size
                            << " columns, which don't divide into "
                            << slot.heads->size << " heads";
    given.size /= slot.heads->size;
  }
  OnnxDim &dim = *slot.dim;
  if (given.isStatic() && dim.isStatic() && given.size != dim.size)
    return emitError(loc) << value << " has " << given.size << " as "
                          << slot.what << ", where the node's other tensors or "
                          << "attributes have " << dim.size;
  if (given.isStatic())
    dim.size = given.size;
  if (!slot.heads && dim.symbol.empty())
    dim.symbol = given.symbol;
  return success();
}

LogicalResult AttentionNode::resolveSizes(OnnxValues &values) {
  auto getSlots = [&](OnnxDim &heads, StringLiteral headsName, OnnxDim &length,
                      StringLiteral lengthName, OnnxDim &dim,
                      StringLiteral dimName, bool packed) {
    SmallVector<Slot> slots = {{&batch, "the batch size"}};
    if (!packed)
      slots.push_back({&heads, headsName});
    slots.push_back({&length, lengthName});
    slots.push_back({&dim, dimName, packed ? &heads : nullptr});
    return slots;
  };
  auto getQuerySlots = [&](OnnxDim &dim, StringLiteral name, bool packed) {
    return getSlots(queryHeads, "the number of query heads", queries,
                    "the query length", dim, name, packed);
  };
  auto getKVSlots = [&](OnnxDim &length, StringLiteral lengthName, OnnxDim &dim,
                        bool packed) {
    return getSlots(kvHeads, "the number of key/value heads", length,
                    lengthName, dim, "the head size", packed);
  };
  constexpr StringLiteral kNew = "the key length", kPast = "the past length",
                          kAll = "the total length";
  const std::pair<StringRef, SmallVector<Slot>> tensors[] = {
      {get(Input::Q), getQuerySlots(qkDim, "the head size", isPacked)},
      {get(Input::K), getKVSlots(newKeys, kNew, qkDim, isPacked)},
      {get(Input::V), getKVSlots(newKeys, kNew, vDim, isPacked)},
      {get(Input::PastKey), getKVSlots(pastKeys, kPast, qkDim, false)},
      {get(Input::PastValue), getKVSlots(pastKeys, kPast, vDim, false)},
      {get(Output::Y), getQuerySlots(vDim, "the head size", isPacked)},
      {get(Output::PresentKey), getKVSlots(keys, kAll, qkDim, false)},
      {get(Output::PresentValue), getKVSlots(keys, kAll, vDim, false)},
      {get(Output::Scores), getQuerySlots(keys, kAll, false)}};

  for (const auto &[name, slots] : tensors) {
    auto found = values.find(name);
    if (name.empty() || found == values.end() || !found->second.shape)
      continue;
    SmallVector<OnnxDim> &shape = *found->second.shape;
    if (shape.size() != slots.size())
      return emitError() << "'" << name << "' has rank " << shape.size()
                         << "; it must have " << slots.size();
    // ONNX's shape inference takes symbols for 0 where it adds these up.
    if (name == get(Output::Scores) &&
        !(newKeys.isStatic() && (pastKeys.isStatic() || !hasPast())))
      shape.back() = OnnxDim();
    for (auto [slot, dim] : llvm::zip_equal(slots, shape))
      if (failed(merge(loc, "'" + name + "'", slot, dim)))
        return failure();
  }
  if (!hasPast()) {
    pastKeys.size = 0;
    if (failed(merge(loc, "the output", {&newKeys, kNew}, keys)) ||
        failed(merge(loc, "the output", {&keys, kAll}, newKeys)))
      return failure();
  } else if (pastKeys.isStatic() && newKeys.isStatic()) {
    OnnxDim sum;
    sum.size = pastKeys.size + newKeys.size;
    if (failed(merge(loc, "past and new keys together", {&keys, kAll}, sum)))
      return failure();
  }
  for (const auto &[name, slots] : tensors)
    if (!name.empty())
      refine(values[name], slots);
  return success();
}

LogicalResult AttentionNode::verifySizes() const {
  for (auto [dim, what] : {std::pair(&queryHeads, "number of query heads"),
                           {&kvHeads, "number of key/value heads"},
                           {&qkDim, "head size of Q and K"},
                           {&vDim, "head size of V"}}) {
    if (!dim->isStatic())
      return emitError() << "the " << what
                         << " must be a number in the model, of which a kernel "
                            "is made; export it with that dimension fixed, or "
                            "let onnx.shape_inference.infer_shapes find it";
    if (dim->size == 0)
      return emitError() << "the " << what << " is 0";
  }
  if (queryHeads.size % kvHeads.size)
    return emitError() << "has " << queryHeads.size << " query heads, which is "
                       << "no multiple of the " << kvHeads.size
                       << " key/value heads";
  return success();
}

LogicalResult AttentionNode::resolveMask(const OnnxValues &values) {
  if (!has(Input::Mask))
    return success();
  StringRef name = get(Input::Mask);
  const OnnxValue value = values.lookup(name);
  if (!value.shape)
    return emitError() << "the model doesn't say the shape of attn_mask '"
                       << name
                       << "'; let onnx.shape_inference.infer_shapes add it";
  maskElementType = getElementType(value.elementType, loc.getContext());
  if (!maskElementType || maskElementType.isInteger(64))
    return emitError() << "attn_mask '" << name << "' is "
                       << getElementTypeName(value.elementType)
                       << "; a mask is bool, or a bias of float16, bfloat16 or "
                          "float: insert a Cast";
  maskShape = *value.shape;
  if (maskShape.size() > 4)
    return emitError() << "attn_mask '" << name << "' has rank "
                       << maskShape.size() << "; up to 4 are broadcast";
  const OnnxDim *targets[] = {&keys, &queries, &queryHeads, &batch};
  for (auto [fromEnd, dim] : llvm::enumerate(llvm::reverse(maskShape))) {
    const OnnxDim &target = *targets[fromEnd];
    if (!dim.isStatic() || !target.isStatic() || dim.size == target.size)
      continue;
    bool isPadded = fromEnd == 0 && padsMask() && dim.size < target.size;
    if (!isPadded && dim.size != 1)
      return emitError() << "attn_mask '" << name << "' has size " << dim.size
                         << " in dimension " << maskShape.size() - 1 - fromEnd
                         << ", which can't be broadcast to " << target.size;
  }
  return success();
}

LogicalResult AttentionNode::resolveLengths(const OnnxValues &values) {
  if (!has(Input::NonpadKVSeqLen))
    return success();
  StringRef name = get(Input::NonpadKVSeqLen);
  const OnnxValue value = values.lookup(name);
  if (value.elementType != TensorProto::INT64 &&
      value.elementType != TensorProto::UNDEFINED)
    return emitError() << "nonpad_kv_seqlen '" << name << "' is "
                       << getElementTypeName(value.elementType)
                       << "; it must be int64";
  if (!value.shape)
    return success();
  if (value.shape->size() != 1)
    return emitError() << "nonpad_kv_seqlen '" << name << "' has rank "
                       << value.shape->size() << "; it must have 1";
  return merge(loc, "'" + name + "'", {&batch, "the batch size"},
               value.shape->front());
}

static RankedTensorType getTensorType(ArrayRef<OnnxDim> dims, Type element) {
  return RankedTensorType::get(
      llvm::map_to_vector(dims, [](const OnnxDim &dim) { return dim.size; }),
      element);
}

static RankedTensorType getHeadsType(const OnnxDim &batch, const OnnxDim &heads,
                                     const OnnxDim &length, const OnnxDim &dim,
                                     Type element, bool packed) {
  if (!packed)
    return getTensorType({batch, heads, length, dim}, element);
  OnnxDim hidden;
  hidden.size = heads.size * dim.size;
  return getTensorType({batch, length, hidden}, element);
}

RankedTensorType AttentionNode::getType(Input input) const {
  switch (input) {
  case Input::Q:
    return getHeadsType(batch, queryHeads, queries, qkDim, elementType,
                        isPacked);
  case Input::K:
    return getHeadsType(batch, kvHeads, newKeys, qkDim, elementType, isPacked);
  case Input::V:
    return getHeadsType(batch, kvHeads, newKeys, vDim, elementType, isPacked);
  case Input::Mask:
    return getTensorType(maskShape, maskElementType);
  case Input::PastKey:
    return getHeadsType(batch, kvHeads, pastKeys, qkDim, elementType, false);
  case Input::PastValue:
    return getHeadsType(batch, kvHeads, pastKeys, vDim, elementType, false);
  case Input::NonpadKVSeqLen:
    return getTensorType(batch, IntegerType::get(loc.getContext(), 64));
  }
  llvm_unreachable("unknown input");
}

RankedTensorType AttentionNode::getType(Output output) const {
  switch (output) {
  case Output::Y:
    return getHeadsType(batch, queryHeads, queries, vDim, elementType,
                        isPacked);
  case Output::PresentKey:
    return getHeadsType(batch, kvHeads, keys, qkDim, elementType, false);
  case Output::PresentValue:
    return getHeadsType(batch, kvHeads, keys, vDim, elementType, false);
  case Output::Scores:
    return getHeadsType(batch, queryHeads, queries, keys, elementType, false);
  }
  llvm_unreachable("unknown output");
}
