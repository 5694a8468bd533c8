//===- ManifestTest.cpp - Manifests and expressions -----------------------===//

#include "attn/Runtime/Manifest.h"
#include "TestUtils.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>

using namespace attn;
using namespace attn::test;

static constexpr llvm::StringLiteral kManifest = R"({
  "version": 1, "producer": {"attnc": "0.1.0", "llvm": "22.1.8"},
  "entry": "causal", "variant": "naive", "target": "sm_80",
  "arguments": [
    {"name": "q", "kind": "tensor", "dtype": "bf16", "shape": [null, 16, null, 64], "role": "input"},
    {"name": "scale", "kind": "scalar", "dtype": "f32", "role": "input"},
    {"name": "o", "kind": "tensor", "dtype": "bf16", "shape": [null, 16, null, 64], "role": "output"}],
  "checks": [{"expr": ["eq", "q.dim2", "o.dim2"], "message": "lengths differ"}],
  "kernels": [{"name": "k", "block": [128, 1, 1], "cluster": [1, 1, 1],
               "dynamic_smem_bytes": 65536, "static_smem_bytes": 0, "schedule": "m128"}],
  "plan": [
    {"op": "alloc", "buffer": "t0", "bytes": ["mul", "q.dim0", 4]},
    {"op": "memset", "buffer": "t0", "value": 0, "bytes": 4},
    {"op": "launch", "kernel": "k", "grid": ["ceildiv", "q.dim2", 128],
     "args": [{"type": "ptr", "buffer": "q", "offset_bytes": 16}, {"type": "ptr", "buffer": "t0"},
              {"type": "i32", "value": "q.dim2"}, {"type": "i64", "value": "q.stride1"},
              {"type": "f32", "scalar": "scale"}],
     "bytes": 1, "flops": 2},
    {"op": "copy", "src": "t0", "dst": "o", "bytes": 4},
    {"op": "free", "buffer": "t0"}],
  "min_bytes": 8, "max_intermediate_bytes": ["mul", "q.dim0", 4]})";

/// kManifest with `from` replaced by `to`.
static std::string edit(llvm::StringRef from, llvm::StringRef to) {
  std::string text = kManifest.str();
  const size_t position = text.find(from.str());
  EXPECT_NE(position, std::string::npos) << from.str();
  return text.replace(position, from.size(), to.str());
}

TEST(ManifestTest, Parses) {
  Manifest manifest = get(Manifest::parse(kManifest));
  EXPECT_EQ(manifest.entry, "causal");
  EXPECT_EQ(manifest.target, "sm_80");
  EXPECT_EQ(manifest.kernelTarget, "sm_80");
  EXPECT_EQ(get(Manifest::parse(edit("\"target\": \"sm_80\"",
                                     "\"target\": \"sm_90a\", "
                                     "\"kernel_target\": \"sm_80\"")))
                .kernelTarget,
            "sm_80");
  ASSERT_EQ(manifest.arguments.size(), 3u);
  EXPECT_EQ(
      manifest.arguments[0].shape,
      (llvm::SmallVector<int64_t, 4>{kDynamicSize, 16, kDynamicSize, 64}));
  EXPECT_FALSE(manifest.arguments[1].isTensor);
  EXPECT_TRUE(manifest.arguments[2].isOutput);
  EXPECT_EQ(manifest.kernels[0].dynamicSharedBytes, 65536);
  EXPECT_FALSE(manifest.usesCudnn());
  EXPECT_TRUE(get(Manifest::parse(
                      edit("\"schedule\": \"m128\"", "\"library\": \"cudnn\"")))
                  .usesCudnn());
  ASSERT_EQ(manifest.plan.size(), 5u);
  EXPECT_EQ(manifest.plan[2].arguments[4].kind, KernelArgument::Kind::Scalar);
  EXPECT_EQ(manifest.buffers[manifest.plan[3].buffer].name, "o");
}

TEST(ManifestTest, ErrorsNameThePathAndTheProblem) {
  auto expectError = [](const std::string &json, const char *message,
                        const char *path) {
    const std::string error = getError(Manifest::parse(json));
    EXPECT_TRUE(contains(error, message));
    EXPECT_TRUE(contains(error, path));
  };
  expectError("{", "malformed manifest", "");
  expectError("[]", "needs an object", "manifest");
  expectError(std::string(1000000, '['), "nested deeper", "");
  expectError(edit("\"version\": 1", "\"version\": 2"),
              "needs 1, the version of this runtime", "manifest.version");
  expectError(edit("\"entry\"", "\"antry\""), "needs a string",
              "manifest.entry");
  expectError(edit("\"bf16\"", "\"f8\""), "needs one of f16, bf16",
              "arguments[0].dtype");
  expectError(edit("[null, 16", "[null, -16"), "nonnegative integer, or null",
              "arguments[0].shape[1]");
  expectError(edit("\"name\": \"scale\"", "\"name\": \"q\""),
              "another argument has this name", "arguments[1].name");
  expectError(
      edit("\"f32\", \"role\": \"input\"", "\"f32\", \"role\": \"output\""),
      "a scalar is always an input", "arguments[1].role");
  expectError(edit("[128, 1, 1]", "[128, 16, 1]"), "more than 1024 threads",
              "kernels[0].block");
  expectError(edit("[128, 1, 1]", "[0, 1, 1]"), "from 1 to 1024",
              "kernels[0].block[0]");
  expectError(edit("65536", "-1"), "nonnegative",
              "kernels[0].dynamic_smem_bytes");
  expectError(edit("\"schedule\": \"m128\"", "\"library\": \"cublas\""),
              "needs 'cudnn', or no such key", "kernels[0].library");
  expectError(edit("\"schedule\": \"m128\"}",
                   "\"library\": \"cudnn\"}, {\"name\": \"l\", "
                   "\"block\": [1, 1, 1], \"cluster\": [1, 1, 1], "
                   "\"dynamic_smem_bytes\": 0, \"static_smem_bytes\": 0}"),
              "needs that of the first kernel", "kernels[1].library");
  expectError(edit("\"kernel\": \"k\"", "\"kernel\": \"j\""),
              "name of one of 'kernels'", "plan[2].kernel");
  const std::string pointer = "{\"type\": \"ptr\", \"buffer\": \"t0\"}";
  auto tensorMap = [&](const std::string &dims, const std::string &strides,
                       const std::string &box) {
    return edit(pointer, pointer +
                             ", {\"type\": \"tensor_map\", \"buffer\": \"q\", "
                             "\"dtype\": \"bf16\", \"dims\": " +
                             dims + ", \"strides\": " + strides +
                             ", \"box\": " + box + "}");
  };
  Manifest manifest = get(Manifest::parse(
      tensorMap("[64, \"q.dim2\"]", "[\"q.stride2\"]", "[64, 128]")));
  const KernelArgument &map = manifest.plan[2].arguments[2];
  EXPECT_EQ(map.kind, KernelArgument::Kind::TensorMap);
  ASSERT_TRUE(map.tensorMap);
  EXPECT_EQ(map.tensorMap->box, (std::vector<int64_t>{64, 128}));
  expectError(tensorMap("[64]", "[]", "[64]"), "needs 2 to 5 dimensions",
              "plan[2].args[2].dims");
  expectError(tensorMap("[64, 1]", "[64, 64]", "[64, 128]"),
              "needs one less than 'dims'", "plan[2].args[2].strides");
  expectError(tensorMap("[64, 1]", "[64]", "[64]"), "needs as many as 'dims'",
              "plan[2].args[2].box");
  expectError(tensorMap("[64, 1]", "[64]", "[64, 512]"),
              "needs an integer from 1 to 256", "plan[2].args[2].box[1]");
  expectError(edit("\"op\": \"copy\"", "\"op\": \"move\""), "needs 'alloc'",
              "plan[3].op");
  expectError(edit("\"dst\": \"o\"", "\"dst\": \"q\""),
              "an input can't be written", "plan[3].dst");
  expectError(edit("\"src\": \"t0\"", "\"src\": \"t1\""),
              "a buffer that is allocated here", "plan[3].src");
  expectError(
      edit("\"free\", \"buffer\": \"t0\"", "\"free\", \"buffer\": \"q\""),
      "an argument can't be freed", "plan[4].buffer");
  expectError(edit("{\"op\": \"memset\", \"buffer\": \"t0\", \"value\": 0, "
                   "\"bytes\": 4}",
                   "{\"op\": \"free\", \"buffer\": \"t0\"}"),
              "a buffer that is allocated here", "plan[2].args[1].buffer");
  expectError(
      edit("\"alloc\", \"buffer\": \"t0\"", "\"alloc\", \"buffer\": \"q\""),
      "another buffer has this name", "plan[0].buffer");
  expectError(edit("\"alloc\",", "\"alloc\", \"zeroed\": 1,"),
              "needs true or false", "plan[0].zeroed");
  expectError(edit("\"launch\",", "\"launch\", \"prepass\": 1,"),
              "needs true or false", "plan[2].prepass");
  expectError(edit("\"value\": 0", "\"value\": 256"), "needs a byte",
              "plan[1].value");
  expectError(
      edit("\"type\": \"f32\", \"scalar\"", "\"type\": \"i32\", \"scalar\""),
      "needs the dtype of the scalar", "plan[2].args[4].type");
  expectError(edit("\"scalar\": \"scale\"", "\"scalar\": \"q\""),
              "needs the name of a scalar", "plan[2].args[4].scalar");
  expectError(edit("\"type\": \"i32\"", "\"type\": \"i31\""), "needs 'ptr'",
              "plan[2].args[2].type");
  expectError(edit("\"min_bytes\": 8, ", ""), "needs an expression",
              "manifest.min_bytes");
}

TEST(ManifestTest, AllocationsAreZeroedOnRequest) {
  auto isZeroed = [](llvm::StringRef fields) {
    Manifest manifest =
        get(Manifest::parse(edit("\"alloc\",", "\"alloc\"," + fields.str())));
    return manifest.buffers[manifest.plan[0].buffer].isZeroed;
  };
  EXPECT_FALSE(isZeroed(""));
  EXPECT_FALSE(isZeroed("\"zeroed\": false,"));
  EXPECT_TRUE(isZeroed("\"zeroed\": true,"));
}

TEST(ManifestTest, CostsAreOptional) {
  Manifest manifest =
      get(Manifest::parse(edit(",\n     \"bytes\": 1, \"flops\": 2}", "}")));
  EXPECT_FALSE(manifest.plan[2].bytes);
  EXPECT_FALSE(manifest.plan[2].flops);
}

TEST(ManifestTest, InfersOutputShapesFromChecks) {
  const std::string json = edit(
      "\"checks\": [",
      R"("checks": [{"expr": ["eq", "q.dim0", "o.dim0"], "message": ""},)");
  using Shapes = std::vector<llvm::SmallVector<int64_t, 4>>;
  Manifest manifest = get(Manifest::parse(json));
  EXPECT_EQ(get(manifest.inferShapes({{2, 16, 100, 64}, {}})),
            Shapes({{2, 16, 100, 64}, {}, {2, 16, 100, 64}}));
  EXPECT_TRUE(contains(getError(manifest.inferShapes({{2, 16, 100, 64}})),
                       "no shape for input 'scale'"));
  EXPECT_TRUE(contains(getError(manifest.inferShapes({{2, 16, 100}, {}})),
                       "input 'q' needs 4 dimensions, got 3"));
  // A size may be an expression of others.
  const std::string sum = edit(
      "\"checks\": [",
      R"("checks": [{"expr": ["eq", ["add", "q.dim0", 3], "o.dim0"], "message": ""},)");
  EXPECT_EQ(get(get(Manifest::parse(sum)).inferShapes({{2, 16, 100, 64}, {}})),
            Shapes({{2, 16, 100, 64}, {}, {5, 16, 100, 64}}));
  // o.dim0 is free in the manifest as it stands.
  EXPECT_TRUE(contains(
      getError(
          get(Manifest::parse(kManifest)).inferShapes({{2, 16, 100, 64}, {}})),
      "the size of output 'o' does not follow"));
}

TEST(ManifestTest, InputsMayHaveValues) {
  auto parse = [](const char *value, const char *shape = "[3]") {
    return Manifest::parse(edit(
        R"("dtype": "bf16", "shape": [null, 16, null, 64], "role": "input")",
        std::string(R"("dtype": "i8", "role": "input", "shape": )") + shape +
            ", \"value\": " + value));
  };
  EXPECT_FALSE(get(Manifest::parse(kManifest)).arguments[0].value);
  // The plan of kManifest names q.dim2.
  const char *rank3 = "[1, 1, 3]";
  EXPECT_EQ(get(parse("\"AQID\"", rank3)).arguments[0].value, "\1\2\3");
  for (const char *value : {"\"AQI\"", "\"AQI=\"", "1", "\"?\""})
    EXPECT_TRUE(contains(getError(parse(value, rank3)), "arguments[0].value"));
  EXPECT_TRUE(contains(getError(parse("\"AQID\"", "[1, 1, null]")),
                       "needs as many bytes as the shape has"));
}

TEST(ManifestTest, ErrorsInExpressionsNameTheOperand) {
  auto expectError = [](llvm::StringRef expr, const char *message,
                        const char *path) {
    const std::string error =
        getError(Manifest::parse(edit("[\"ceildiv\", \"q.dim2\", 128]", expr)));
    EXPECT_TRUE(contains(error, message));
    EXPECT_TRUE(contains(error, path));
  };
  expectError("null", "needs an integer, a symbol", "plan[2].grid");
  expectError("1.5", "needs an integer, a symbol", "plan[2].grid");
  expectError("[]", "needs an operator", "plan[2].grid");
  expectError("[\"pow\", 1, 2]", "needs an operator", "plan[2].grid");
  expectError("[\"add\", 1]", "needs two operands or more", "plan[2].grid");
  expectError("[\"sub\", 1, 2, 3]", "needs two operands", "plan[2].grid");
  expectError("[\"add\", 1, \"k.dim0\"]", "names no tensor argument",
              "plan[2].grid[2]");
  expectError("[\"add\", 1, \"scale.dim0\"]", "names no tensor argument",
              "plan[2].grid[2]");
  expectError("\"num_SMs\"", "isn't 'num_sms'", "plan[2].grid");
  expectError("\"q.dim4\"", "beyond the argument's rank", "plan[2].grid");
  expectError("\"q.dim\"", "beyond the argument's rank", "plan[2].grid");
  expectError("\"q.size0\"", "such as 'q.dim2'", "plan[2].grid");
}

TEST(ManifestTest, SurvivesDamage) {
  fuzz(kManifest.str(), 5000, [](const std::string &json) {
    llvm::Expected<Manifest> manifest = Manifest::parse(json);
    if (!manifest)
      llvm::consumeError(manifest.takeError());
  });
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

static llvm::Expected<int64_t> evaluate(Expr::Op op,
                                        std::vector<int64_t> operands) {
  std::vector<Expr> exprs;
  for (int64_t operand : operands)
    exprs.push_back(Expr::constant(operand));
  return Expr::apply(op, exprs).evaluate([](const Symbol &) { return 0; });
}

TEST(ExprTest, Evaluates) {
  using Op = Expr::Op;
  EXPECT_EQ(get(evaluate(Op::Add, {1, 2, 3})), 6);
  EXPECT_EQ(get(evaluate(Op::Mul, {2, 3, 4})), 24);
  EXPECT_EQ(get(evaluate(Op::Sub, {2, 3})), -1);
  EXPECT_EQ(get(evaluate(Op::FloorDiv, {7, 2})), 3);
  EXPECT_EQ(get(evaluate(Op::FloorDiv, {-7, 2})), -4);
  EXPECT_EQ(get(evaluate(Op::CeilDiv, {7, 2})), 4);
  EXPECT_EQ(get(evaluate(Op::CeilDiv, {-7, 2})), -3);
  EXPECT_EQ(get(evaluate(Op::CeilDiv, {0, 2})), 0);
  EXPECT_EQ(get(evaluate(Op::Mod, {7, 4})), 3);
  EXPECT_EQ(get(evaluate(Op::Mod, {-7, 4})), 1);
  EXPECT_EQ(get(evaluate(Op::Min, {3, 1, 2})), 1);
  EXPECT_EQ(get(evaluate(Op::Max, {3, 1, 2})), 3);
  EXPECT_EQ(get(evaluate(Op::Eq, {3, 3})), 1);
  EXPECT_EQ(get(evaluate(Op::Le, {4, 3})), 0);
  EXPECT_EQ(get(evaluate(Op::Lt, {3, 3})), 0);
  EXPECT_EQ(get(evaluate(Op::And, {1, 2, 0})), 0);
  EXPECT_EQ(get(evaluate(Op::And, {1, 2})), 1);
}

TEST(ExprTest, OverflowAndDivisionByZeroAreErrors) {
  using Op = Expr::Op;
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  EXPECT_TRUE(contains(getError(evaluate(Op::Add, {kMax, 1})), "overflow"));
  EXPECT_TRUE(contains(getError(evaluate(Op::Sub, {kMin, 1})), "overflow"));
  EXPECT_TRUE(contains(getError(evaluate(Op::Mul, {kMax, 2})), "overflow"));
  EXPECT_TRUE(
      contains(getError(evaluate(Op::FloorDiv, {kMin, -1})), "overflow"));
  EXPECT_TRUE(contains(getError(evaluate(Op::CeilDiv, {1, 0})), "by zero"));
  EXPECT_TRUE(contains(getError(evaluate(Op::Mod, {1, 0})), "by zero"));
}

TEST(ExprTest, ReadsSymbols) {
  const Expr expr =
      Expr::apply(Expr::Op::Mul, {Expr::symbol({1, Symbol::Kind::Dim, 2}),
                                  Expr::symbol({1, Symbol::Kind::Stride, 0})});
  EXPECT_EQ(get(expr.evaluate([](const Symbol &symbol) {
              EXPECT_EQ(symbol.argument, 1u);
              return symbol.kind == Symbol::Kind::Dim ? 10 + symbol.dim : 7;
            })),
            84);
}
