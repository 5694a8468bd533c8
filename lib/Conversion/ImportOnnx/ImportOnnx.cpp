//===- ImportOnnx.cpp - ONNX Attention nodes to attn ----------------------===//

#include "attn/Conversion/ImportOnnx.h"
#include "AttentionNode.h"
#include "attn/Dialect/Attn/IR/AttnDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <limits>

using namespace mlir;
using namespace mlir::attn;
using namespace ::attnc::onnx;

/// The opsets whose Attention is known: 23, 24, and 25 with its windows, which
/// the ones up to 27 leave as it is.
static constexpr int64_t kFirstOpset = 23, kLastOpset = 27;

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {
/// Keeps the first error of protobuf's text parser.
class ErrorKeeper : public google::protobuf::io::ErrorCollector {
public:
  void AddError(int line, int column, const std::string &message) override {
    if (first.empty())
      first = "line " + std::to_string(line + 1) + ", column " +
              std::to_string(column + 1) + ": " + message;
  }
  std::string first;
};
} // namespace

static bool isText(StringRef path) {
  return path.ends_with(".textproto") || path.ends_with(".pbtxt") ||
         path.ends_with(".prototxt");
}

static LogicalResult parse(llvm::MemoryBufferRef buffer, Location loc,
                           ModelProto &model) {
  StringRef data = buffer.getBuffer();
  if (data.size() > std::numeric_limits<int>::max())
    return emitError(loc) << "is larger than the 2 GB that protobuf reads";
  // Errors are this function's to report.
  google::protobuf::LogSilencer silencer;
  if (!isText(buffer.getBufferIdentifier())) {
    if (model.ParseFromArray(data.data(), data.size()))
      return success();
    return emitError(loc) << "is no ONNX model, or a damaged one: protobuf "
                             "can't parse it";
  }
  google::protobuf::io::ArrayInputStream stream(data.data(), data.size());
  google::protobuf::TextFormat::Parser parser;
  ErrorKeeper errors;
  parser.RecordErrorsTo(&errors);
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(100);
  if (parser.Parse(&stream, &model))
    return success();
  return emitError(loc) << "is no ONNX model in text form: " << errors.first;
}

/// The version of ONNX's own operators that the model uses.
static FailureOr<int64_t> getOpset(const ModelProto &model, Location loc) {
  for (const OperatorSetIdProto &opset : model.opset_import()) {
    if (!opset.domain().empty() && opset.domain() != "ai.onnx")
      continue;
    if (opset.version() >= kFirstOpset && opset.version() <= kLastOpset)
      return opset.version();
    return emitError(loc) << "imports opset " << opset.version()
                          << "; Attention of opsets " << kFirstOpset << " to "
                          << kLastOpset
                          << " is known (onnx.version_converter changes it)";
  }
  return emitError(loc) << "imports no opset of ONNX's own operators";
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Negative sizes are some exporters' way to say that they don't know.
static OnnxDim getDim(const TensorShapeProto::Dimension &dim) {
  OnnxDim result;
  if (dim.has_dim_param())
    result.symbol = dim.dim_param();
  else if (dim.has_dim_value() && dim.dim_value() >= 0)
    result.size = dim.dim_value();
  return result;
}

static LogicalResult verifySizes(Location loc, StringRef name,
                                 const OnnxValue &value) {
  constexpr int64_t kMaxSize = int64_t(1) << 30;
  if (value.shape)
    for (const OnnxDim &dim : *value.shape)
      if (dim.isStatic() && (dim.size < 0 || dim.size > kMaxSize))
        return emitError(loc) << "'" << name << "' has a size of " << dim.size
                              << "; kernels take sizes up to " << kMaxSize;
  return success();
}

static LogicalResult addValue(Location loc, const ValueInfoProto &info,
                              OnnxValues &values) {
  if (!info.type().has_tensor_type())
    return success();
  const TypeProto::Tensor &type = info.type().tensor_type();
  OnnxValue &value = values[info.name()];
  if (type.has_elem_type())
    value.elementType = type.elem_type();
  if (type.has_shape())
    value.shape = llvm::map_to_vector(type.shape().dim(), getDim);
  return verifySizes(loc, info.name(), value);
}

static LogicalResult addConstant(Location loc, StringRef name,
                                 const TensorProto &tensor,
                                 OnnxValues &values) {
  OnnxValue &value = values[name];
  value.elementType = tensor.data_type();
  value.shape = llvm::map_to_vector(tensor.dims(), [](int64_t size) {
    OnnxDim dim;
    dim.size = size;
    return dim;
  });
  value.constant = &tensor;
  return verifySizes(loc, name, value);
}

static bool isOwnOp(const NodeProto &node, StringRef type) {
  return node.op_type() == type &&
         (node.domain().empty() || node.domain() == "ai.onnx");
}

/// The tensor of a Constant node; null for other nodes and other constants.
static const TensorProto *getConstant(const NodeProto &node) {
  if (!isOwnOp(node, "Constant") || node.attribute_size() != 1 ||
      node.output_size() != 1 || !node.attribute(0).has_t())
    return nullptr;
  return &node.attribute(0).t();
}

static FailureOr<OnnxValues> collectValues(const GraphProto &graph,
                                           Location loc) {
  OnnxValues values;
  for (const auto *infos :
       {&graph.value_info(), &graph.input(), &graph.output()})
    for (const ValueInfoProto &info : *infos)
      if (failed(addValue(loc, info, values)))
        return failure();
  for (const TensorProto &tensor : graph.initializer())
    if (failed(addConstant(loc, tensor.name(), tensor, values)))
      return failure();
  for (const NodeProto &node : graph.node())
    if (const TensorProto *tensor = getConstant(node))
      if (failed(addConstant(loc, node.output(0), *tensor, values)))
        return failure();
  return values;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

static bool hasAttention(const GraphProto &graph);

static bool hasAttentionInside(const NodeProto &node) {
  return llvm::any_of(node.attribute(), [](const AttributeProto &attribute) {
    return hasAttention(attribute.g()) ||
           llvm::any_of(attribute.graphs(), hasAttention);
  });
}

static bool hasAttention(const GraphProto &graph) {
  return llvm::any_of(graph.node(), [](const NodeProto &node) {
    return isOwnOp(node, "Attention") || hasAttentionInside(node);
  });
}

static std::string getFullType(const NodeProto &node) {
  return node.domain().empty() ? node.op_type()
                               : node.domain() + "." + node.op_type();
}

/// The types of the operators that aren't imported, each once.
static SmallVector<std::string> getForeignOps(const GraphProto &graph) {
  SmallVector<std::string> types;
  for (const NodeProto &node : graph.node()) {
    std::string type = getFullType(node);
    if (!isOwnOp(node, "Attention") && !getConstant(node) &&
        !llvm::is_contained(types, type))
      types.push_back(type);
  }
  return types;
}

static LogicalResult emitNoAttention(const GraphProto &graph, Location loc) {
  InFlightDiagnostic diag =
      emitError(loc) << "holds no Attention node of ONNX's own operators";
  if (hasAttention(graph))
    diag.attachNote() << "there is one in a subgraph of If, Loop or Scan; move "
                         "it to a graph of its own (onnx.utils.extract_model)";
  else if (graph.node_size() > 0)
    diag.attachNote() << "its operators: "
                      << llvm::join(getForeignOps(graph), ", ");
  return diag;
}

namespace {
struct NamedNode {
  const NodeProto *proto;
  std::string name;
  bool isChosen = true;
};
} // namespace

/// The Attention nodes, each with a name of its own.
static SmallVector<NamedNode> nameNodes(const GraphProto &graph) {
  SmallVector<NamedNode> nodes;
  llvm::StringSet<> names;
  for (const NodeProto &node : graph.node()) {
    if (!isOwnOp(node, "Attention"))
      continue;
    std::string base = node.name().empty() ? "attention" : node.name();
    std::string name = base;
    for (unsigned number = 1; !names.insert(name).second; ++number)
      name = base + "_" + std::to_string(number);
    nodes.push_back({&node, name});
  }
  return nodes;
}

/// All Attention nodes.
static FailureOr<SmallVector<NamedNode>>
chooseNodes(const GraphProto &graph, Location loc,
            const ImportOnnxOptions &options) {
  SmallVector<NamedNode> nodes = nameNodes(graph);
  if (nodes.empty())
    return emitNoAttention(graph, loc);
  auto getNames = [&] {
    return llvm::join(
        llvm::map_range(nodes, [](const NamedNode &node) { return node.name; }),
        ", ");
  };
  if (!options.node.empty()) {
    for (NamedNode &node : nodes)
      node.isChosen = node.name == options.node;
    if (llvm::none_of(nodes,
                      [](const NamedNode &node) { return node.isChosen; }))
      return emitError(loc) << "has no Attention node '" << options.node
                            << "'; there are: " << getNames();
    return nodes;
  }
  SmallVector<std::string> foreign = getForeignOps(graph);
  if (!foreign.empty() && !options.extract) {
    InFlightDiagnostic diag = emitError(loc)
                              << "has other operators than Attention: "
                              << llvm::join(foreign, ", ");
    diag.attachNote() << "--extract leaves them out, --node=NAME imports one "
                         "of: "
                      << getNames();
    return diag;
  }
  return nodes;
}

/// What a node that isn't imported says of its values, for those that read
/// them.
static void inferSizes(const NamedNode &named, int64_t opset,
                       OnnxValues &values, MLIRContext &context) {
  ScopedDiagnosticHandler silencer(&context,
                                   [](Diagnostic &) { return success(); });
  auto node = AttentionNode::read(*named.proto, opset, named.name, &context);
  if (succeeded(node))
    (void)node->resolve(values);
}

OwningOpRef<ModuleOp> attn::importOnnx(llvm::MemoryBufferRef buffer,
                                       MLIRContext &context,
                                       const ImportOnnxOptions &options) {
  context.loadDialect<
      arith::ArithDialect, AttnDialect, bufferization::BufferizationDialect,
      cf::ControlFlowDialect, func::FuncDialect, linalg::LinalgDialect,
      math::MathDialect, memref::MemRefDialect, tensor::TensorDialect>();
  Location loc =
      FileLineColLoc::get(&context, buffer.getBufferIdentifier(), 0, 0);
  ModelProto model;
  if (failed(parse(buffer, loc, model)))
    return {};
  if (!model.has_graph()) {
    emitError(loc) << "is no ONNX model: it has no graph";
    return {};
  }
  FailureOr<int64_t> opset = getOpset(model, loc);
  if (failed(opset))
    return {};
  auto nodes = chooseNodes(model.graph(), loc, options);
  auto values = collectValues(model.graph(), loc);
  if (failed(nodes) || failed(values))
    return {};

  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  for (const NamedNode &named : *nodes) {
    if (!named.isChosen) {
      inferSizes(named, *opset, *values, context);
      continue;
    }
    auto node = AttentionNode::read(*named.proto, *opset, named.name, &context);
    if (failed(node) || failed(node->resolve(*values)) ||
        failed(emitFunction(*node, named.name, *values, builder)))
      return {};
  }
  if (failed(verify(*module)))
    return {};
  return module;
}
