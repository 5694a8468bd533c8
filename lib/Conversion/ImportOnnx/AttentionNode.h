//===- AttentionNode.h - What an ONNX Attention node says -------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_IMPORTONNX_ATTENTIONNODE_H
#define ATTN_LIB_CONVERSION_IMPORTONNX_ATTENTIONNODE_H

#include "OnnxModel.pb.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::attn {

/// A size of a tensor: a number, a name that equal sizes share, or neither.
struct OnnxDim {
  int64_t size = ShapedType::kDynamic;
  std::string symbol;

  bool isStatic() const { return !ShapedType::isDynamic(size); }
  /// Whether the model says that both are the same.
  bool isSame(const OnnxDim &other) const {
    return isStatic() ? size == other.size
                      : !symbol.empty() && symbol == other.symbol;
  }
};

/// What a model says of one of its values.
struct OnnxValue {
  /// TensorProto::UNDEFINED if it doesn't.
  int32_t elementType = ::attnc::onnx::TensorProto::UNDEFINED;
  std::optional<SmallVector<OnnxDim>> shape;
  /// Of an initializer, or the output of a Constant node.
  const ::attnc::onnx::TensorProto *constant = nullptr;
};

using OnnxValues = llvm::StringMap<OnnxValue>;

/// The positions of the operator's inputs and outputs.
enum class Input { Q, K, V, Mask, PastKey, PastValue, NonpadKVSeqLen };
enum class Output { Y, PresentKey, PresentValue, Scores };
constexpr unsigned kNumInputs = 7, kNumOutputs = 4;

/// The contents of the output qk_matmul_output.
enum class ScoreOutput { Product, Softcapped, Masked, Softmax };

/// An `Attention` node of opset 23 or later, checked against the operator's
/// specification.
class AttentionNode {
public:
  /// `name` is what errors call it.
  static FailureOr<AttentionNode> read(const ::attnc::onnx::NodeProto &proto,
                                       int64_t opset, StringRef name,
                                       MLIRContext *context);

  /// Fills in sizes and types from what the model says of the node's values,
  /// and tells `values` what follows for those.
  LogicalResult resolve(OnnxValues &values);

  /// The name of a value; empty if it is absent.
  StringRef get(Input input) const {
    return inputs[static_cast<unsigned>(input)];
  }
  StringRef get(Output output) const {
    return outputs[static_cast<unsigned>(output)];
  }
  bool has(Input input) const { return !get(input).empty(); }
  bool has(Output output) const { return !get(output).empty(); }
  bool hasPast() const { return has(Input::PastKey); }

  /// The types of the values as ONNX has them; of rank 3 or 4, but for the mask
  /// and the lengths.
  RankedTensorType getType(Input input) const;
  RankedTensorType getType(Output output) const;

  /// The last dimension of the mask may be shorter than the keys, and hides
  /// those beyond.
  bool padsMask() const { return opset >= 24; }

  Location loc;
  std::string name;
  int64_t opset;

  // Attributes.
  bool isCausal = false;
  std::optional<float> scale;
  std::optional<float> softcap;
  ScoreOutput scoreOutput = ScoreOutput::Product;
  int32_t leftWindow = -1, rightWindow = -1;

  // What resolve() finds. The keys are those of the past and the new ones.
  Type elementType, maskElementType;
  bool isPacked = false;
  OnnxDim batch, queryHeads, kvHeads, queries, newKeys, pastKeys, keys, qkDim,
      vDim;
  SmallVector<OnnxDim> maskShape;

private:
  AttentionNode(Location loc, StringRef name, int64_t opset)
      : loc(loc), name(name), opset(opset) {}

  InFlightDiagnostic emitError() const { return mlir::emitError(loc); }
  LogicalResult readAttributes(const ::attnc::onnx::NodeProto &proto);
  LogicalResult readAttribute(const ::attnc::onnx::AttributeProto &attribute);
  LogicalResult readNumber(const ::attnc::onnx::AttributeProto &attribute,
                           int64_t least, int64_t greatest, int64_t &value);
  LogicalResult readNumber(const ::attnc::onnx::AttributeProto &attribute,
                           float &value);
  LogicalResult verifyForm() const;

  LogicalResult resolveRank(const OnnxValues &values);
  LogicalResult resolveElementType(OnnxValues &values);
  LogicalResult resolveSizes(OnnxValues &values);
  LogicalResult resolveMask(const OnnxValues &values);
  LogicalResult resolveLengths(const OnnxValues &values);
  LogicalResult verifySizes() const;

  std::array<std::string, kNumInputs> inputs;
  std::array<std::string, kNumOutputs> outputs;
  std::optional<int64_t> givenQueryHeads, givenKVHeads;
};

/// The MLIR type of an ONNX element type; null if no argument may have it.
Type getElementType(int32_t onnxType, MLIRContext *context);

/// "float16"; "type 77" if unknown.
std::string getElementTypeName(int32_t onnxType);

/// Appends `node`'s function, `name`, to a module.
LogicalResult emitFunction(const AttentionNode &node, StringRef name,
                           const OnnxValues &values, OpBuilder &builder);

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_IMPORTONNX_ATTENTIONNODE_H
