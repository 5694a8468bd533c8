//===- Manifest.cpp - Parsing and validating manifests --------------------===//

#include "attn/Runtime/Manifest.h"
#include "attn/Runtime/CudnnKernel.h"
#include "attn/Runtime/JSONUtils.h"
#include "attn/Runtime/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Base64.h"
#include <limits>

using namespace attn;
using llvm::StringLiteral;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Path;
using llvm::json::Value;

/// CUDA's limit on the threads of a block, which no target exceeds.
static constexpr int64_t kMaxThreadsPerBlock = 1024;

namespace {

/// A buffer as the plan's steps come by.
struct BufferState {
  unsigned index;
  bool isLive;
  bool isReadOnly;
};

/// Parses one manifest. As is the custom of llvm::json, functions return false
/// after having reported an error at their path.
class ManifestParser {
public:
  bool parse(const Value &root, Path path);

  Manifest manifest;

private:
  bool parseVersion(const Object &root, Path path);
  bool parseArgument(const Value &json, Path path);
  bool parseShape(const Object &json, Argument &argument, Path path);
  bool parseValue(const Object &json, Argument &argument, Path path);
  bool parseCheck(const Value &json, Path path);
  bool parseSequences(const Value &json, Path path);
  bool parseKernel(const Value &json, Path path);
  bool parseExtents(const Object &json, StringLiteral key,
                    std::array<int64_t, 3> &extents, Path path);
  bool parseStep(const Value &json, Path path);
  bool parseAlloc(const Object &json, Step &step, Path path);
  bool parseLaunch(const Object &json, Step &step, Path path);
  bool parseCopy(const Object &json, Step &step, Path path);
  bool parseMemset(const Object &json, Step &step, Path path);
  bool parseFree(const Object &json, Step &step, Path path);
  bool parseKernelArgument(const Value &json, KernelArgument &argument,
                           Path path);
  bool parseScalarArgument(const Object &json, llvm::StringRef type,
                           KernelArgument &argument, Path path);
  bool parseTensorMap(const Object &json, TensorMapRecipe &map, Path path);
  bool parseExpr(const Value &json, Expr &expr, Path path);
  bool parseSymbol(llvm::StringRef text, Expr &expr, Path path);
  bool parseOperator(const Array &json, Expr &expr, Path path);

  bool getExpr(const Object &json, StringLiteral key, Expr &expr, Path path);
  bool getExpr(const Object &json, StringLiteral key, std::optional<Expr> &expr,
               Path path);
  bool getLiveBuffer(const Object &json, StringLiteral key, bool isWritten,
                     unsigned &index, Path path);

  llvm::StringMap<unsigned> argumentIndices;
  llvm::StringMap<unsigned> kernelIndices;
  llvm::StringMap<BufferState> bufferStates;
};

} // namespace

/// Limits of tensor maps (CUDA driver API, cuTensorMapEncodeTiled).
static constexpr size_t kMaxTensorMapRank = 5;
/// A row of a box is as long as its swizzle is wide.
static constexpr int64_t kSwizzleWidths[] = {32, 64, 128};
static constexpr int64_t kMaxBoxExtent = 256;

static bool fail(Path path, StringLiteral message) {
  path.report(message);
  return false;
}

static bool getString(const Object &json, StringLiteral key, std::string &out,
                      Path path) {
  const std::optional<llvm::StringRef> text = json.getString(key);
  if (!text)
    return fail(path.field(key), "needs a string");
  out = text->str();
  return true;
}

static bool getNonnegative(const Object &json, StringLiteral key, int64_t &out,
                           Path path) {
  const std::optional<int64_t> value = json.getInteger(key);
  if (!value || *value < 0)
    return fail(path.field(key), "needs a nonnegative integer");
  out = *value;
  return true;
}

/// Calls `parseElement(element, path)` for each element of the array `key`.
template <typename Fn>
static bool forEachElement(const Object &json, StringLiteral key, Path path,
                           Fn parseElement) {
  const Array *array = json.getArray(key);
  if (!array)
    return fail(path.field(key), "needs an array");
  for (const auto &[index, element] : llvm::enumerate(*array))
    if (!parseElement(element, path.field(key).index(index)))
      return false;
  return true;
}

bool ManifestParser::parse(const Value &rootValue, Path path) {
  const Object *root = rootValue.getAsObject();
  if (!root)
    return fail(path, "needs an object");
  // Without the key, it is the target's own.
  manifest.kernelTarget = root->getString("kernel_target")
                              .value_or(root->getString("target").value_or(""));
  return parseVersion(*root, path) &&
         getString(*root, "entry", manifest.entry, path) &&
         getString(*root, "variant", manifest.variant, path) &&
         getString(*root, "target", manifest.target, path) &&
         forEachElement(
             *root, "arguments", path,
             [&](const Value &v, Path p) { return parseArgument(v, p); }) &&
         forEachElement(
             *root, "checks", path,
             [&](const Value &v, Path p) { return parseCheck(v, p); }) &&
         (!root->get("sequences") ||
          forEachElement(
              *root, "sequences", path,
              [&](const Value &v, Path p) { return parseSequences(v, p); })) &&
         forEachElement(
             *root, "kernels", path,
             [&](const Value &v, Path p) { return parseKernel(v, p); }) &&
         forEachElement(
             *root, "plan", path,
             [&](const Value &v, Path p) { return parseStep(v, p); }) &&
         getExpr(*root, "min_bytes", manifest.minBytes, path) &&
         getExpr(*root, "max_intermediate_bytes", manifest.maxIntermediateBytes,
                 path);
}

bool ManifestParser::parseVersion(const Object &root, Path path) {
  if (root.getInteger("version") != Manifest::kVersion)
    return fail(path.field("version"), "needs 1, the version of this runtime");
  const Object *producer = root.getObject("producer");
  if (!producer)
    return fail(path.field("producer"), "needs an object");
  return getString(*producer, "attnc", manifest.attncVersion,
                   path.field("producer")) &&
         getString(*producer, "llvm", manifest.llvmVersion,
                   path.field("producer"));
}

//===----------------------------------------------------------------------===//
// Arguments, checks, kernels
//===----------------------------------------------------------------------===//

bool ManifestParser::parseArgument(const Value &value, Path path) {
  const Object *json = value.getAsObject();
  if (!json)
    return fail(path, "needs an object");
  Argument argument;
  if (!getString(*json, "name", argument.name, path))
    return false;
  if (!argumentIndices.try_emplace(argument.name, manifest.arguments.size())
           .second)
    return fail(path.field("name"), "another argument has this name");

  const std::optional<llvm::StringRef> kind = json->getString("kind");
  if (kind != "tensor" && kind != "scalar")
    return fail(path.field("kind"), "needs 'tensor' or 'scalar'");
  argument.isTensor = kind == "tensor";
  const std::optional<llvm::StringRef> role = json->getString("role");
  if (role != "input" && role != "output")
    return fail(path.field("role"), "needs 'input' or 'output'");
  argument.isOutput = role == "output";
  if (argument.isOutput && !argument.isTensor)
    return fail(path.field("role"), "a scalar is always an input");

  const std::optional<DType> dtype =
      parseDType(json->getString("dtype").value_or(""));
  if (!dtype)
    return fail(path.field("dtype"), "needs one of f16, bf16, f32, f64, i1, "
                                     "i8, i16, i32, i64");
  argument.dtype = *dtype;
  if (argument.isTensor) {
    if (!parseShape(*json, argument, path) ||
        !parseValue(*json, argument, path))
      return false;
    bufferStates[argument.name] = {unsigned(manifest.buffers.size()),
                                   /*isLive=*/true,
                                   /*isReadOnly=*/!argument.isOutput};
    manifest.buffers.push_back({argument.name,
                                unsigned(manifest.arguments.size()),
                                /*isZeroed=*/false});
  }
  manifest.arguments.push_back(std::move(argument));
  return true;
}

bool ManifestParser::parseShape(const Object &json, Argument &argument,
                                Path path) {
  return forEachElement(json, "shape", path, [&](const Value &v, Path p) {
    const std::optional<int64_t> size = v.getAsInteger();
    if (!v.getAsNull() && (!size || *size < 0))
      return fail(p, "needs a nonnegative integer, or null if dynamic");
    argument.shape.push_back(size.value_or(kDynamicSize));
    return true;
  });
}

bool ManifestParser::parseValue(const Object &json, Argument &argument,
                                Path path) {
  if (!json.get("value"))
    return true;
  const std::optional<llvm::StringRef> text = json.getString("value");
  std::vector<char> bytes;
  if (argument.isOutput || !text ||
      llvm::errorToBool(llvm::decodeBase64(*text, bytes)))
    return fail(path.field("value"), "needs an input's bytes in base64");
  const bool isStatic = !llvm::is_contained(argument.shape, kDynamicSize);
  if (!isStatic || getDenseBytes(argument.dtype, argument.shape) !=
                       static_cast<int64_t>(bytes.size()))
    return fail(path.field("value"), "needs as many bytes as the shape has");
  argument.value.emplace(bytes.begin(), bytes.end());
  return true;
}

bool ManifestParser::parseCheck(const Value &value, Path path) {
  const Object *json = value.getAsObject();
  if (!json)
    return fail(path, "needs an object");
  Check check;
  if (!getExpr(*json, "expr", check.condition, path) ||
      !getString(*json, "message", check.message, path))
    return false;
  manifest.checks.push_back(std::move(check));
  return true;
}

bool ManifestParser::parseSequences(const Value &value, Path path) {
  const Object *json = value.getAsObject();
  if (!json)
    return fail(path, "needs an object");
  SequenceCheck check;
  if (!getExpr(*json, "q_rows", check.qRows, path) ||
      !getExpr(*json, "k_batches", check.kBatches, path) ||
      !getExpr(*json, "k_rows", check.kRows, path))
    return false;
  struct Operand {
    StringLiteral key;
    std::optional<unsigned> *argument;
    size_t rank;
  };
  for (auto [key, argument, rank] : {Operand{"cu_q", &check.cuQ, 1},
                                     {"cu_k", &check.cuK, 1},
                                     {"kv_len", &check.kvLen, 1},
                                     {"block_table", &check.blockTable, 2}}) {
    if (!json->get(key))
      continue;
    auto found = argumentIndices.find(json->getString(key).value_or(""));
    if (found == argumentIndices.end())
      return fail(path.field(key), "needs the name of an argument");
    const Argument &tensor = manifest.arguments[found->second];
    if (!tensor.isTensor || tensor.dtype != DType::I32 ||
        tensor.shape.size() != rank)
      return fail(path.field(key), "needs a tensor of i32 numbers");
    *argument = found->second;
  }
  if (check.blockTable && !check.kvLen)
    return fail(path.field("block_table"), "needs 'kv_len' beside it");
  manifest.sequences.push_back(std::move(check));
  return true;
}

bool ManifestParser::parseExtents(const Object &json, StringLiteral key,
                                  std::array<int64_t, 3> &extents, Path path) {
  const Array *array = json.getArray(key);
  if (!array || array->size() != extents.size())
    return fail(path.field(key), "needs an array of three integers");
  for (const auto &[index, value] : llvm::enumerate(*array)) {
    const std::optional<int64_t> extent = value.getAsInteger();
    if (!extent || *extent < 1 || *extent > kMaxThreadsPerBlock)
      return fail(path.field(key).index(index),
                  "needs an integer from 1 to 1024");
    extents[index] = *extent;
  }
  return true;
}

bool ManifestParser::parseKernel(const Value &value, Path path) {
  const Object *json = value.getAsObject();
  if (!json)
    return fail(path, "needs an object");
  Kernel kernel;
  if (!getString(*json, "name", kernel.name, path))
    return false;
  if (!kernelIndices.try_emplace(kernel.name, manifest.kernels.size()).second)
    return fail(path.field("name"), "another kernel has this name");
  if (!parseExtents(*json, "block", kernel.block, path) ||
      !parseExtents(*json, "cluster", kernel.cluster, path) ||
      !getNonnegative(*json, "dynamic_smem_bytes", kernel.dynamicSharedBytes,
                      path) ||
      !getNonnegative(*json, "static_smem_bytes", kernel.staticSharedBytes,
                      path))
    return false;
  if (kernel.getThreadsPerBlock() > kMaxThreadsPerBlock)
    return fail(path.field("block"), "more than 1024 threads in a block");
  kernel.schedule = json->getString("schedule").value_or("").str();
  kernel.library = json->getString("library").value_or("").str();
  if (!kernel.library.empty() && kernel.library != kCudnnLibrary)
    return fail(path.field("library"), "needs 'cudnn', or no such key");
  if (!manifest.kernels.empty() &&
      kernel.library != manifest.kernels.front().library)
    return fail(path.field("library"), "needs that of the first kernel");
  manifest.kernels.push_back(std::move(kernel));
  return true;
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

bool ManifestParser::parseStep(const Value &value, Path path) {
  const Object *json = value.getAsObject();
  if (!json)
    return fail(path, "needs an object");
  using ParseFn = bool (ManifestParser::*)(const Object &, Step &, Path);
  const ParseFn parseFn =
      llvm::StringSwitch<ParseFn>(json->getString("op").value_or(""))
          .Case("alloc", &ManifestParser::parseAlloc)
          .Case("launch", &ManifestParser::parseLaunch)
          .Case("copy", &ManifestParser::parseCopy)
          .Case("memset", &ManifestParser::parseMemset)
          .Case("free", &ManifestParser::parseFree)
          .Default(nullptr);
  if (!parseFn)
    return fail(path.field("op"),
                "needs 'alloc', 'launch', 'copy', 'memset' or 'free'");
  Step step;
  if (!(this->*parseFn)(*json, step, path))
    return false;
  manifest.plan.push_back(std::move(step));
  return true;
}

bool ManifestParser::parseAlloc(const Object &json, Step &step, Path path) {
  step.kind = Step::Kind::Alloc;
  std::string name;
  if (!getString(json, "buffer", name, path))
    return false;
  step.buffer = manifest.buffers.size();
  if (!bufferStates
           .try_emplace(name, BufferState{step.buffer, /*isLive=*/true,
                                          /*isReadOnly=*/false})
           .second)
    return fail(path.field("buffer"), "another buffer has this name");
  const Value *zeroed = json.get("zeroed");
  if (zeroed && !zeroed->getAsBoolean())
    return fail(path.field("zeroed"), "needs true or false");
  manifest.buffers.push_back(
      {name, std::nullopt, zeroed && *zeroed->getAsBoolean()});
  return getExpr(json, "bytes", step.bytes, path);
}

bool ManifestParser::parseFree(const Object &json, Step &step, Path path) {
  step.kind = Step::Kind::Free;
  if (!getLiveBuffer(json, "buffer", /*isWritten=*/false, step.buffer, path))
    return false;
  if (manifest.buffers[step.buffer].argument)
    return fail(path.field("buffer"), "an argument can't be freed");
  bufferStates[manifest.buffers[step.buffer].name].isLive = false;
  return true;
}

bool ManifestParser::parseCopy(const Object &json, Step &step, Path path) {
  step.kind = Step::Kind::Copy;
  return getLiveBuffer(json, "src", /*isWritten=*/false, step.source, path) &&
         getLiveBuffer(json, "dst", /*isWritten=*/true, step.buffer, path) &&
         getExpr(json, "bytes", step.bytes, path);
}

bool ManifestParser::parseMemset(const Object &json, Step &step, Path path) {
  step.kind = Step::Kind::Memset;
  const std::optional<int64_t> fill = json.getInteger("value");
  if (!fill || *fill < 0 || *fill > 255)
    return fail(path.field("value"), "needs a byte, 0 to 255");
  step.fill = *fill;
  return getLiveBuffer(json, "buffer", /*isWritten=*/true, step.buffer, path) &&
         getExpr(json, "bytes", step.bytes, path);
}

bool ManifestParser::parseLaunch(const Object &json, Step &step, Path path) {
  step.kind = Step::Kind::Launch;
  auto kernel = kernelIndices.find(json.getString("kernel").value_or(""));
  if (kernel == kernelIndices.end())
    return fail(path.field("kernel"), "needs the name of one of 'kernels'");
  step.kernel = kernel->second;
  const Value *prepass = json.get("prepass");
  if (prepass && !prepass->getAsBoolean())
    return fail(path.field("prepass"), "needs true or false");
  step.isPrepass = prepass && *prepass->getAsBoolean();
  return getExpr(json, "grid", step.grid, path) &&
         (!json.get("bytes") || getExpr(json, "bytes", step.bytes, path)) &&
         (!json.get("flops") || getExpr(json, "flops", step.flops, path)) &&
         forEachElement(json, "args", path, [&](const Value &v, Path p) {
           return parseKernelArgument(v, step.arguments.emplace_back(), p);
         });
}

bool ManifestParser::parseKernelArgument(const Value &value,
                                         KernelArgument &argument, Path path) {
  const Object *json = value.getAsObject();
  if (!json)
    return fail(path, "needs an object");
  const llvm::StringRef type = json->getString("type").value_or("");
  if (type == "ptr" || type == "tensor_map") {
    argument.kind = KernelArgument::Kind::Pointer;
    if (type == "tensor_map") {
      argument.kind = KernelArgument::Kind::TensorMap;
      if (!parseTensorMap(*json, argument.tensorMap.emplace(), path))
        return false;
    }
    if (json->get("offset_bytes") &&
        !getExpr(*json, "offset_bytes", argument.value, path))
      return false;
    // Which buffers a kernel writes is not in the manifest.
    return getLiveBuffer(*json, "buffer", /*isWritten=*/false, argument.buffer,
                         path);
  }
  if (json->get("scalar"))
    return parseScalarArgument(*json, type, argument, path);
  if (type != "i32" && type != "i64")
    return fail(path.field("type"), "needs 'ptr', 'tensor_map', 'i32', 'i64', "
                                    "or the dtype of a 'scalar'");
  argument.kind =
      type == "i32" ? KernelArgument::Kind::I32 : KernelArgument::Kind::I64;
  return getExpr(*json, "value", argument.value, path);
}

bool ManifestParser::parseTensorMap(const Object &json, TensorMapRecipe &map,
                                    Path path) {
  static constexpr DType kDTypes[] = {
      DType::F16,    DType::BF16, DType::F32, DType::F8E4M3FN,
      DType::F8E5M2, DType::I1,   DType::I8,  DType::I32};
  const std::optional<DType> dtype =
      parseDType(json.getString("dtype").value_or(""));
  if (!dtype || !llvm::is_contained(kDTypes, *dtype))
    return fail(path.field("dtype"),
                "needs f16, bf16, f32, f8E4M3FN, f8E5M2, i1, i8 or i32");
  map.dtype = *dtype;
  auto parseExprs = [&](StringLiteral key, std::vector<Expr> &exprs) {
    return forEachElement(json, key, path, [&](const Value &v, Path p) {
      return parseExpr(v, exprs.emplace_back(), p);
    });
  };
  auto parseExtent = [&](const Value &v, Path p) {
    map.box.push_back(v.getAsInteger().value_or(0));
    if (map.box.back() < 1 || map.box.back() > kMaxBoxExtent)
      return fail(p, "needs an integer from 1 to 256");
    return true;
  };
  if (!parseExprs("dims", map.dims) || !parseExprs("strides", map.strides) ||
      !forEachElement(json, "box", path, parseExtent))
    return false;
  if (json.get("lead") && !getExpr(json, "lead", map.lead, path))
    return false;
  const size_t rank = map.dims.size();
  if (rank < 2 || rank > kMaxTensorMapRank)
    return fail(path.field("dims"), "needs 2 to 5 dimensions");
  if (map.strides.size() != rank - 1)
    return fail(path.field("strides"), "needs one less than 'dims'");
  if (map.box.size() != rank)
    return fail(path.field("box"), "needs as many as 'dims'");
  if (!llvm::is_contained(kSwizzleWidths,
                          map.box.front() * getByteSize(map.dtype)))
    return fail(path.field("box"), "needs rows of 32, 64 or 128 bytes");
  return true;
}

bool ManifestParser::parseScalarArgument(const Object &json,
                                         llvm::StringRef type,
                                         KernelArgument &argument, Path path) {
  argument.kind = KernelArgument::Kind::Scalar;
  auto found = argumentIndices.find(json.getString("scalar").value_or(""));
  if (found == argumentIndices.end() ||
      manifest.arguments[found->second].isTensor)
    return fail(path.field("scalar"), "needs the name of a scalar argument");
  argument.argument = found->second;
  if (parseDType(type) != manifest.arguments[found->second].dtype)
    return fail(path.field("type"), "needs the dtype of the scalar argument");
  return true;
}

bool ManifestParser::getLiveBuffer(const Object &json, StringLiteral key,
                                   bool isWritten, unsigned &index, Path path) {
  auto found = bufferStates.find(json.getString(key).value_or(""));
  if (found == bufferStates.end() || !found->second.isLive)
    return fail(path.field(key),
                "needs a tensor argument or a buffer that is allocated here");
  if (isWritten && found->second.isReadOnly)
    return fail(path.field(key), "an input can't be written");
  index = found->second.index;
  return true;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

bool ManifestParser::getExpr(const Object &json, StringLiteral key, Expr &expr,
                             Path path) {
  const Value *value = json.get(key);
  if (!value)
    return fail(path.field(key), "needs an expression");
  return parseExpr(*value, expr, path.field(key));
}

bool ManifestParser::getExpr(const Object &json, StringLiteral key,
                             std::optional<Expr> &expr, Path path) {
  return getExpr(json, key, expr.emplace(), path);
}

bool ManifestParser::parseExpr(const Value &json, Expr &expr, Path path) {
  if (const std::optional<int64_t> integer = json.getAsInteger()) {
    expr = Expr::constant(*integer);
    return true;
  }
  if (const std::optional<llvm::StringRef> text = json.getAsString())
    return parseSymbol(*text, expr, path);
  if (const Array *array = json.getAsArray())
    return parseOperator(*array, expr, path);
  return fail(path, "needs an integer, a symbol or [operator, operands...]");
}

bool ManifestParser::parseSymbol(llvm::StringRef text, Expr &expr, Path path) {
  if (text == "num_sms") {
    expr = Expr::symbol({0, Symbol::Kind::NumSMs, 0});
    return true;
  }
  auto [name, property] = text.rsplit('.');
  auto found = argumentIndices.find(name);
  if (found == argumentIndices.end() ||
      !manifest.arguments[found->second].isTensor)
    return fail(path,
                "the symbol names no tensor argument and isn't 'num_sms'");
  Symbol symbol = {found->second, Symbol::Kind::Dim, 0};
  if (property.consume_front("stride"))
    symbol.kind = Symbol::Kind::Stride;
  else if (!property.consume_front("dim"))
    return fail(path, "needs a symbol such as 'q.dim2' or 'q.stride1'");
  if (property.getAsInteger(10, symbol.dim) ||
      symbol.dim >= manifest.arguments[found->second].shape.size())
    return fail(path, "the symbol's dimension is beyond the argument's rank");
  expr = Expr::symbol(symbol);
  return true;
}

bool ManifestParser::parseOperator(const Array &json, Expr &expr, Path path) {
  struct OpInfo {
    Expr::Op op;
    bool isVariadic;
  };
  const llvm::StringRef name =
      json.empty() ? "" : json.front().getAsString().value_or("");
  const std::optional<OpInfo> info =
      llvm::StringSwitch<std::optional<OpInfo>>(name)
          .Case("add", OpInfo{Expr::Op::Add, true})
          .Case("mul", OpInfo{Expr::Op::Mul, true})
          .Case("and", OpInfo{Expr::Op::And, true})
          .Case("min", OpInfo{Expr::Op::Min, true})
          .Case("max", OpInfo{Expr::Op::Max, true})
          .Case("sub", OpInfo{Expr::Op::Sub, false})
          .Case("floordiv", OpInfo{Expr::Op::FloorDiv, false})
          .Case("ceildiv", OpInfo{Expr::Op::CeilDiv, false})
          .Case("mod", OpInfo{Expr::Op::Mod, false})
          .Case("eq", OpInfo{Expr::Op::Eq, false})
          .Case("le", OpInfo{Expr::Op::Le, false})
          .Case("lt", OpInfo{Expr::Op::Lt, false})
          .Default(std::nullopt);
  if (!info)
    return fail(path, "needs an operator: add, mul, sub, floordiv, ceildiv, "
                      "mod, min, max, eq, le, lt, and");
  const size_t count = json.size() - 1;
  if (count < 2 || (count > 2 && !info->isVariadic))
    return fail(path, info->isVariadic ? StringLiteral("needs two operands or "
                                                       "more")
                                       : StringLiteral("needs two operands"));
  std::vector<Expr> operands(count);
  for (size_t i = 0; i < count; ++i)
    if (!parseExpr(json[i + 1], operands[i], path.index(i + 1)))
      return false;
  expr = Expr::apply(info->op, std::move(operands));
  return true;
}

//===----------------------------------------------------------------------===//
// Manifest
//===----------------------------------------------------------------------===//

bool Argument::accepts(DType otherDType,
                       llvm::ArrayRef<int64_t> otherShape) const {
  return otherDType == dtype && otherShape.size() == shape.size() &&
         llvm::equal(shape, otherShape, [](int64_t declared, int64_t given) {
           return declared == kDynamicSize || declared == given;
         });
}

std::string Argument::getTypeString() const {
  std::string text;
  for (int64_t size : shape)
    text += (size == kDynamicSize ? "?" : std::to_string(size)) + "x";
  return text + getName(dtype).str();
}

llvm::Expected<Manifest> Manifest::parse(llvm::StringRef json) {
  llvm::Expected<Value> value = parseUntrustedJSON(json);
  if (!value)
    return llvm::createStringError("malformed manifest: " +
                                   llvm::toString(value.takeError()));
  ManifestParser parser;
  Path::Root root("manifest");
  if (!parser.parse(*value, root))
    return root.getError();
  return std::move(parser.manifest);
}

using Shapes = std::vector<llvm::SmallVector<int64_t, 4>>;

/// The value of `expr`; none where it depends on more than sizes in `shapes`
/// that are known.
static std::optional<int64_t> evaluateSizes(const Expr &expr,
                                            const Shapes &shapes) {
  bool isKnown = true;
  llvm::Expected<int64_t> value = expr.evaluate([&](const Symbol &symbol) {
    int64_t size = symbol.kind == Symbol::Kind::Dim
                       ? shapes[symbol.argument][symbol.dim]
                       : kDynamicSize;
    isKnown &= size != kDynamicSize;
    return size;
  });
  if (value)
    return isKnown && *value >= 0 ? std::optional(*value) : std::nullopt;
  llvm::consumeError(value.takeError());
  return std::nullopt;
}

/// Sets a size that isn't known, if `condition` says what it equals. Returns
/// whether it did.
static bool inferSize(const Expr &condition, Shapes &shapes) {
  if (condition.getOp() != Expr::Op::Eq)
    return false;
  const std::vector<Expr> &sides = condition.getOperands();
  for (auto [size, definition] :
       {std::pair(&sides[0], &sides[1]), {&sides[1], &sides[0]}}) {
    const std::optional<Symbol> symbol = size->getSymbol();
    if (!symbol || symbol->kind != Symbol::Kind::Dim ||
        shapes[symbol->argument][symbol->dim] != kDynamicSize)
      continue;
    if (std::optional<int64_t> value = evaluateSizes(*definition, shapes)) {
      shapes[symbol->argument][symbol->dim] = *value;
      return true;
    }
  }
  return false;
}

llvm::Expected<std::vector<llvm::SmallVector<int64_t, 4>>>
Manifest::inferShapes(
    llvm::ArrayRef<llvm::SmallVector<int64_t, 4>> inputShapes) const {
  Shapes shapes;
  for (const Argument &argument : arguments) {
    shapes.push_back(argument.shape);
    if (argument.isOutput)
      continue;
    if (inputShapes.empty())
      return llvm::createStringError("no shape for input '" + argument.name +
                                     "'");
    if (inputShapes.front().size() != argument.shape.size())
      return llvm::createStringError("input '" + argument.name + "' needs " +
                                     llvm::Twine(argument.shape.size()) +
                                     " dimensions, got " +
                                     llvm::Twine(inputShapes.front().size()));
    shapes.back() = inputShapes.front();
    inputShapes = inputShapes.drop_front();
  }
  if (!inputShapes.empty())
    return llvm::createStringError("more shapes than inputs");

  // One size may follow from another that a later check gives.
  while (llvm::any_of(checks, [&](const Check &check) {
    return inferSize(check.condition, shapes);
  })) {
  }
  for (auto [argument, shape] : llvm::zip_equal(arguments, shapes))
    if (llvm::is_contained(shape, kDynamicSize))
      return llvm::createStringError(
          "the size of output '" + argument.name +
          "' does not follow from the inputs; give it a static shape");
  return shapes;
}
