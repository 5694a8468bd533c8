//===- BackendTest.cpp - Backends, what cuDNN serves, and reasons ---------===//

#include "attn/Compiler/Backend.h"
#include "TestUtils.h"
#include "attn/Compiler/Explain.h"
#include "attn/Conversion/AttnToCudnn.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include <thread>

using namespace attn;
using namespace attn::test;
using mlir::attn::CudnnMatch;
using Status = BackendVerdict::Status;

//===----------------------------------------------------------------------===//
// Scopes
//===----------------------------------------------------------------------===//

TEST(BackendTest, NamesAreParsed) {
  for (Backend backend : getAllBackends())
    EXPECT_EQ(get(parseBackend(stringifyBackend(backend))), backend);
  EXPECT_EQ(get(parseBackend("auto")), Backend::Auto);
  EXPECT_EQ(getError(parseBackend("cuda")),
            "unknown backend 'cuda'; known are auto, fused, naive, inplace, "
            "math, cudnn");
}

TEST(BackendTest, ScopesNestAndAreOfAThread) {
  KernelOptions options;
  options.variant = mlir::attn::Variant::Inplace;
  EXPECT_EQ(getBackend(options), Backend::Inplace);
  {
    BackendScope outer(Backend::Math);
    EXPECT_EQ(getBackend(options), Backend::Math);
    {
      BackendScope inner(Backend::Auto);
      EXPECT_EQ(getBackend(options), Backend::Fused);
      KernelOptions named;
      named.backend = Backend::Naive;
      EXPECT_EQ(getBackend(named), Backend::Naive);
    }
    EXPECT_EQ(getBackend(options), Backend::Math);
    std::thread([&] {
      EXPECT_EQ(getBackend(options), Backend::Inplace);
    }).join();
  }
  EXPECT_EQ(getBackend(options), Backend::Inplace);
}

//===----------------------------------------------------------------------===//
// What cuDNN serves
//===----------------------------------------------------------------------===//

static AttentionSpec getSpec() {
  AttentionSpec spec;
  spec.numQueryHeads = 8;
  spec.numKVHeads = 2;
  spec.qkHeadDim = spec.vHeadDim = 64;
  return spec;
}

namespace {
/// The match of a spec's operator, with what its values live in.
struct Match {
  explicit Match(const AttentionSpec &spec)
      : context(getRegistry(), mlir::MLIRContext::Threading::DISABLED) {
    module =
        mlir::parseSourceString<mlir::ModuleOp>(get(spec.print()), &context);
    module->walk([&](mlir::func::FuncOp entry) {
      match = mlir::attn::matchCudnn(entry);
      inputs.assign(entry.getArguments().begin(), entry.getArguments().end());
    });
  }

  static mlir::DialectRegistry getRegistry() {
    mlir::DialectRegistry registry;
    mlir::attn::registerAttncDialects(registry);
    return registry;
  }
  std::string getUnmet() const { return llvm::join(match.unmet, "; "); }
  const mlir::attn::CudnnAttention *operator->() const {
    return &match.attention;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  CudnnMatch match;
  std::vector<mlir::Value> inputs;
};
} // namespace

TEST(CudnnMatchTest, KnowsPlainAttention) {
  Match match(getSpec());
  EXPECT_EQ(match.getUnmet(), "");
  EXPECT_FALSE(match->hasWindow());
  EXPECT_FALSE(match->bias);
  EXPECT_FALSE(match->lengths);
}

TEST(CudnnMatchTest, KnowsTheLibrarysWindows) {
  AttentionSpec spec = getSpec();
  spec.maskMod = mlir::attn::getCausalMask();
  {
    Match match(spec);
    EXPECT_EQ(match.getUnmet(), "");
    EXPECT_TRUE(match->isBottomRight);
    EXPECT_FALSE(match->left);
    EXPECT_EQ(match->right, 0);
  }
  spec.maskMod = mlir::attn::getCausalTopLeftMask();
  {
    Match match(spec);
    EXPECT_EQ(match.getUnmet(), "");
    EXPECT_FALSE(match->isBottomRight);
    EXPECT_EQ(match->right, 0);
  }
  spec.maskMod = mlir::attn::getSlidingWindowMask(127, 3);
  {
    Match match(spec);
    EXPECT_EQ(match.getUnmet(), "");
    EXPECT_TRUE(match->isBottomRight);
    EXPECT_EQ(match->left, 127);
    EXPECT_EQ(match->right, 3);
  }
  spec.maskMod = mlir::attn::intersectMasks(
      mlir::attn::getCausalMask(), mlir::attn::getSlidingWindowMask(5, 3));
  {
    Match match(spec);
    EXPECT_EQ(match.getUnmet(), "");
    EXPECT_EQ(match->left, 5);
    EXPECT_EQ(match->right, 0);
  }
  spec.maskMod = mlir::attn::getSlidingWindowMask(-1, -1);
  EXPECT_FALSE(Match(spec)->hasWindow());
}

TEST(CudnnMatchTest, KnowsPaddingAndBias) {
  AttentionSpec spec = getSpec();
  spec.captures = {{"bias", DType::BF16, {1, 8, kDynamicSize, kDynamicSize}},
                   {"lengths", DType::I32, {kDynamicSize}}};
  spec.scoreMod = mlir::attn::getBias(0);
  spec.maskMod = mlir::attn::getKeyPaddingMask(1);
  Match match(spec);
  EXPECT_EQ(match.getUnmet(), "");
  EXPECT_EQ(match->bias, match.inputs[3]);
  EXPECT_EQ(match->lengths, match.inputs[4]);
}

TEST(CudnnMatchTest, KnowsLengthsOfACache) {
  AttentionSpec spec = getSpec();
  spec.hasSeqUsedK = true;
  spec.maskMod = mlir::attn::getCausalMask();
  Match match(spec);
  EXPECT_EQ(match.getUnmet(), "");
  EXPECT_EQ(match->lengths, match.inputs[3]);
  EXPECT_TRUE(match->isBottomRight);
}

TEST(CudnnMatchTest, NamesEveryConditionThatIsNotMet) {
  AttentionSpec spec = getSpec();
  spec.dtype = DType::F32;
  spec.qkHeadDim = 20;
  spec.vHeadDim = 512;
  spec.batchInvariant = true;
  EXPECT_EQ(Match(spec).getUnmet(),
            "q, k and v are f32; it takes f16 and bf16; head dim 20 is not a "
            "multiple of 8; head dim 512 > 256; batch_invariant");
}

TEST(CudnnMatchTest, RefusesTheLibrarysOtherRules) {
  using namespace mlir::attn;
  const std::pair<const char *, MaskMod> masks[] = {
      {"arith.cmpi", getPrefixMask(7)},
      {"arith.cmpi", getDilatedWindowMask(3, 2)},
      {"arith.ori", uniteMasks(getCausalMask(), getPrefixMask(7))},
      {"a tensor of i1 [1, 1, ?, ?]", getTensorMask(0)},
      {"a tensor of i32 [?, ?]", getDocumentMask(1, 1)},
      {"a tensor of i64 [?]", getKeyPaddingMask(2)}};
  for (const auto &[condition, mask] : masks) {
    AttentionSpec spec = getSpec();
    spec.captures = {{"mask", DType::I1, {1, 1, kDynamicSize, kDynamicSize}},
                     {"documents", DType::I32, {kDynamicSize, kDynamicSize}},
                     {"lengths", DType::I64, {kDynamicSize}}};
    spec.maskMod = mask;
    EXPECT_TRUE(contains(Match(spec).getUnmet(),
                         (llvm::Twine("mask_mod: ") + condition + ";").str()))
        << Match(spec).getUnmet();
  }
  const std::pair<const char *, ScoreMod> scores[] = {
      {"softcap", getSoftcap(30)},
      {"a function of the positions", getALiBi(ALiBiForm::Causal, 8)},
      {"a bias that is the same for all queries", getBias(0)},
      {"softcap", chainScoreMods(getBias(1), getSoftcap(30))}};
  for (const auto &[condition, score] : scores) {
    AttentionSpec spec = getSpec();
    spec.captures = {
        {"keys", DType::F32, {kDynamicSize, 1, 1, kDynamicSize}},
        {"all", DType::F32, {kDynamicSize, 8, kDynamicSize, kDynamicSize}}};
    spec.scoreMod = score;
    EXPECT_TRUE(contains(Match(spec).getUnmet(),
                         (llvm::Twine("score_mod: ") + condition).str()))
        << Match(spec).getUnmet();
  }
}

TEST(CudnnMatchTest, RefusesPackedSequencesAndPages) {
  AttentionSpec spec = getSpec();
  spec.hasCuSeqlensQ = spec.hasSeqUsedK = true;
  spec.pageSize = 16;
  EXPECT_EQ(Match(spec).getUnmet(),
            "packed sequences (cu_q, cu_k); a cache in pages (block_table)");
}

//===----------------------------------------------------------------------===//
// Reasons
//===----------------------------------------------------------------------===//

static const BackendVerdict &find(const Explanation &explanation,
                                  Backend backend) {
  for (const BackendVerdict &verdict : explanation.verdicts)
    if (verdict.backend == backend)
      return verdict;
  ADD_FAILURE() << "no verdict";
  return explanation.verdicts.front();
}

static ExplainArguments getInputs(int64_t queries, int64_t keys) {
  auto make = [](int64_t heads, int64_t length) {
    const llvm::SmallVector<int64_t, 4> shape = {2, heads, length, 64};
    return Tensor::borrow(DType::BF16, shape, getRowMajorStrides(shape),
                          nullptr);
  };
  return {{make(8, queries), make(2, keys), make(2, keys)}};
}

static KernelOptions getGpuOptions() {
  KernelOptions options;
  options.target = "sm_90a";
  return options;
}

TEST(ExplainTest, GivesAReasonForEachBackend) {
  AttentionSpec spec = getSpec();
  spec.maskMod = mlir::attn::getCausalMask();
  const Explanation explanation =
      get(explain(spec, getGpuOptions(), getInputs(2000, 2000)));
  EXPECT_EQ(explanation.verdicts.size(), getAllBackends().size());
  EXPECT_EQ(explanation.verdicts.front().backend, Backend::Fused);
  EXPECT_EQ(explanation.verdicts.front().status, Status::Chosen);
  EXPECT_TRUE(contains(find(explanation, Backend::Naive).reason,
                       "slower by estimate: 5 kernels and 1 copy that move"));
  const BackendVerdict &cudnn = find(explanation, Backend::Cudnn);
  if (!explanation.device.empty())
    return; // Whether it is there depends on the machine.
  EXPECT_EQ(cudnn.status, Status::Available);
  EXPECT_TRUE(
      contains(cudnn.reason,
               "slower by estimate: 1.24 times fused's time (measured on an "
               "H200, bf16, D=64 causal B=8 N=2048)"));
}

TEST(ExplainTest, DecidesConditionsOnSizes) {
  AttentionSpec spec = getSpec();
  spec.maskMod = mlir::attn::getCausalMask();
  KernelOptions options = getGpuOptions();
  options.backend = Backend::Cudnn;
  const Explanation explanation =
      get(explain(spec, options, getInputs(65, 64)));
  EXPECT_EQ(find(explanation, Backend::Cudnn).status, Status::Unserved);
  EXPECT_TRUE(contains(find(explanation, Backend::Cudnn).reason,
                       "at least as many keys as queries"));
  // Nothing else is chosen in its place.
  EXPECT_EQ(explanation.verdicts.front().status, Status::Available);
}

TEST(ExplainTest, TakesArgumentsInAnyOrder) {
  constexpr llvm::StringLiteral kText = R"mlir(
!t = tensor<?x8x?x64xbf16>
func.func @f(%l: tensor<?xf32>, %o: !t, %v: !t, %k: !t, %q: !t) -> !t {
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t) -> !t
  return %r : !t
})mlir";
  ExplainArguments arguments = getInputs(1, 1);
  arguments.inputs.clear();
  const llvm::SmallVector<int64_t, 1> one = {1};
  arguments.inputs.push_back(
      Tensor::borrow(DType::F32, one, getRowMajorStrides(one), nullptr));
  for (int64_t length : {4096, 4096, 500}) {
    const llvm::SmallVector<int64_t, 4> shape = {2, 8, length, 64};
    arguments.inputs.push_back(
        Tensor::borrow(DType::BF16, shape, getRowMajorStrides(shape), nullptr));
  }
  KernelOptions options = getGpuOptions();
  const Explanation explanation = get(explain(kText, options, arguments));
  EXPECT_EQ(find(explanation, Backend::Fused).status, Status::Chosen);
  if (explanation.device.empty()) {
    EXPECT_TRUE(contains(find(explanation, Backend::Cudnn).reason,
                         "no estimate: nothing like it"));
  }
}

TEST(ExplainTest, AgreesWithCompiling) {
  KernelOptions options;
  options.target = "cpu";
  options.backend = Backend::Cudnn;
  const Explanation explanation = get(explain(getSpec(), options));
  EXPECT_EQ(find(explanation, Backend::Cudnn).reason,
            "it needs a GPU, the target is cpu");
  EXPECT_TRUE(contains(getError(CompiledKernel::compile(getSpec(), options)),
                       "cuDNN needs a GPU, the target is cpu"));
  BackendScope scope(Backend::Naive);
  options.backend = std::nullopt;
  EXPECT_EQ(get(explain(getSpec(), options)).verdicts.front().backend,
            Backend::Naive);
  EXPECT_EQ(
      get(CompiledKernel::compile(getSpec(), options)).getManifest().variant,
      "naive");
}
