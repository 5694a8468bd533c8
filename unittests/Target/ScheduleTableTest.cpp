//===- ScheduleTableTest.cpp - Every row of the table, through ptxas ------===//

#include "attn/Target/ScheduleTable.h"
#include "attn/Compiler/Assembler.h"
#include "attn/Target/PTX.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {
constexpr char kCausal[] = R"mlir(
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32{0}) {{
      %visible = arith.cmpi sle, %kv_idx, %q_idx : i32
      attn.yield %visible : i1
    })mlir";

/// A window of 512 keys up to the query, that of the last key if there are
/// fewer queries.
constexpr char kWindow[] = R"mlir(
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32{0}) {{
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %position = arith.addi %q_idx, %shift : i32
      %distance = arith.subi %position, %kv_idx : i32
      %size = arith.constant 512 : i32
      %visible = arith.cmpi ult, %distance, %size : i32
      attn.yield %visible : i1
    })mlir";

/// The captures of a row that is for them: a bias of each score.
constexpr char kBiasType[] = ", tensor<?x8x{0}x?x{1}>";
constexpr char kBias[] = R"mlir(
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %t: tensor<?x8x{0}x?x{1}>) {{
      %x = attn.capture_load %t[%b, %h, %q_idx, %kv_idx] : tensor<?x8x{0}x?x{1}> -> {1}
      %f = {2} %x : {1} to f32
      %y = arith.addf %s, %f : f32
      attn.yield %y : f32
    })mlir";

/// Of a row for documents: the number of a query's and of a key's.
constexpr char kDocumentType[] = "tensor<?x?xi32>";
constexpr char kDocuments[] = R"mlir(
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %t: tensor<?x?xi32>) {{
      %query = attn.capture_load %t[%b, %q_idx] : tensor<?x?xi32> -> i32
      %key = attn.capture_load %t[%b, %kv_idx] : tensor<?x?xi32> -> i32
      %same = arith.cmpi eq, %query, %key : i32
      %before = arith.cmpi sle, %kv_idx, %q_idx : i32
      %visible = arith.andi %same, %before : i1
      attn.yield %visible : i1
    })mlir";

StringRef getName(CaptureKind kind) {
  switch (kind) {
  case CaptureKind::Any:
    return "";
  case CaptureKind::ByPosition:
    return "_captures";
  case CaptureKind::Planes16Bit:
    return "_planes_of_16_bits";
  case CaptureKind::PairsOfIntegers:
    return "_pairs_of_integers";
  }
  llvm_unreachable("unknown kind");
}

/// A class of operators that one row of the table serves.
struct Problem {
  const ScheduleRow *row;
  const char *element;
  MaskKind mask;
};

StringRef getName(MaskKind kind) {
  switch (kind) {
  case MaskKind::Any:
  case MaskKind::Without:
    return "";
  case MaskKind::With:
    return "_masked";
  case MaskKind::Window:
    return "_window";
  }
  llvm_unreachable("unknown kind");
}

/// Of that kind and no narrower one, in a format for further arguments.
StringRef getMask(MaskKind kind) {
  if (kind == MaskKind::With)
    return kCausal;
  return kind == MaskKind::Window ? kWindow : "";
}

std::string getName(const Problem &problem) {
  const ScheduleRow &row = *problem.row;
  std::string queries =
      row.maxQLen == kAnyLength ? "" : "_q" + std::to_string(row.maxQLen);
  return llvm::formatv("{0}_{1}_d{2}{3}{4}{5}", row.target, problem.element,
                       row.maxHeadDim, queries, getName(problem.mask),
                       getName(row.captures));
}

void PrintTo(const Problem &problem, std::ostream *os) {
  *os << getName(problem);
}

/// 3xTF32 holds each operand in two parts: with D = 128 in registers, and with
/// the result of D = 256, every tile that was tried spills some.
template <typename Row>
bool isKnownToSpill(const Row &row) {
  return row.elementBits == 32 &&
         (row.maxHeadDim == 128 || row.maxHeadDim == 256);
}

std::vector<Problem> getProblems(bool isGPU) {
  std::vector<Problem> problems;
  for (const ScheduleRow &row : getScheduleTable()) {
    if (TargetInfo::lookup(row.target)->isGPU != isGPU)
      continue;
    SmallVector<const char *, 2> elements = {"f16", "bf16"};
    if (row.elementBits == 32)
      elements = {"f32"};
    if (row.elementBits == 8)
      elements = {"f8E4M3FN", "f8E5M2"};
    SmallVector<MaskKind, 2> masks = {row.mask};
    if (row.mask == MaskKind::Any)
      masks = {MaskKind::Without, MaskKind::With};
    for (const char *element : elements)
      for (MaskKind mask : masks)
        problems.push_back({&row, element, mask});
  }
  return problems;
}

/// The longest lengths of the rows of `table` that an operator with `qLen`
/// queries ("?" for any number) needs on sm_80.
std::vector<int64_t> lookupLengths(ArrayRef<ScheduleRow> table,
                                   const Twine &qLen) {
  DialectRegistry registry;
  registerAttncDialects(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(llvm::formatv(R"mlir(
func.func @attention(%x: tensor<1x8x{0}x64xf16>) -> tensor<1x8x{0}x64xf16> {{
  %r = attn.attention ins(%x, %x, %x : tensor<1x8x{0}x64xf16>, tensor<1x8x{0}x64xf16>, tensor<1x8x{0}x64xf16>)
                      outs(%x : tensor<1x8x{0}x64xf16>) -> tensor<1x8x{0}x64xf16>
  return %r : tensor<1x8x{0}x64xf16>
})mlir",
                                                qLen.str())
                                      .str(),
                                  &context);
  std::vector<int64_t> lengths;
  module->walk([&](AttentionOp op) {
    for (const ScheduleRow *row :
         lookupRows(op, *TargetInfo::lookup("sm_80"), table))
      lengths.push_back(row->maxQLen);
  });
  return lengths;
}

/// The kind of the mask whose last value is what `body` computes as %visible.
MaskKind getKind(StringRef body) {
  DialectRegistry registry;
  registerAttncDialects(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      R"mlir(
func.func @attention(%x: tensor<1x8x?x64xf16>, %t: tensor<8xi32>) -> tensor<1x8x?x64xf16> {
  %r = attn.attention ins(%x, %x, %x, %t : tensor<1x8x?x64xf16>, tensor<1x8x?x64xf16>, tensor<1x8x?x64xf16>, tensor<8xi32>)
                      outs(%x : tensor<1x8x?x64xf16>)
    mask_mod (%b: i32, %h: i32, %q: i32, %k: i32, %table: tensor<8xi32>) {
      %distance = arith.subi %q, %k : i32
      %size = arith.constant 64 : i32
)mlir" + body.str() +
          R"mlir(
      attn.yield %visible : i1
    } -> tensor<1x8x?x64xf16>
  return %r : tensor<1x8x?x64xf16>
})mlir",
      &context);
  MaskKind kind = MaskKind::Any;
  if (module)
    module->walk([&](AttentionOp op) { kind = getMaskKind(op); });
  return kind;
}

TEST(MaskKindTest, TellsWindowsFromOthers) {
  EXPECT_EQ(getKind("%visible = arith.cmpi ult, %distance, %size : i32"),
            MaskKind::Window);
  EXPECT_EQ(getKind(R"mlir(
      %far = math.absi %distance : i32
      %visible = arith.cmpi sle, %far, %size : i32)mlir"),
            MaskKind::Window);
  // What is open to one side.
  EXPECT_EQ(getKind("%visible = arith.cmpi sle, %k, %q : i32"), MaskKind::With);
  EXPECT_EQ(getKind("%visible = arith.cmpi sle, %distance, %size : i32"),
            MaskKind::With);
  // A prefix that all see.
  EXPECT_EQ(getKind("%visible = arith.cmpi slt, %k, %size : i32"),
            MaskKind::Window);
  // A pattern.
  EXPECT_EQ(getKind(R"mlir(
      %row = arith.divui %q, %size : i32
      %other = arith.divui %k, %size : i32
      %visible = arith.cmpi eq, %row, %other : i32)mlir"),
            MaskKind::With);
  // A size that only the device knows.
  EXPECT_EQ(getKind(R"mlir(
      %read = attn.capture_load %table[%h] : tensor<8xi32> -> i32
      %visible = arith.cmpi ult, %distance, %read : i32)mlir"),
            MaskKind::With);
}

TEST(ScheduleLookupTest, TakesTheFirstRowThatServesALength) {
  using Lengths = std::vector<int64_t>;
  const ScheduleRow table[] = {
      {"cpu", 16, 64, MaskKind::Any, kAnyLength, 64, 64, 1, 1},
      {"sm_80", 32, 64, MaskKind::Any, kAnyLength, 64, 64, 2, 4},
      {"sm_80", 16, 32, MaskKind::Any, kAnyLength, 64, 64, 2, 4},
      {"sm_80", 16, 64, MaskKind::With, 100, 64, 64, 2, 4},
      {"sm_80", 16, 64, MaskKind::Without, 512, 64, 64, 2, 4},
      {"sm_80", 16, 64, MaskKind::Any, 256, 64, 64, 2, 4},
      {"sm_80", 16, 128, MaskKind::Any, 2048, 64, 64, 2, 4},
      {"sm_80", 16, 128, MaskKind::Any, kAnyLength, 64, 64, 2, 4},
      {"sm_80", 16, 256, MaskKind::Any, kAnyLength, 64, 64, 2, 4}};
  EXPECT_EQ(lookupLengths(table, "?"), (Lengths{512, 2048, kAnyLength}));
  EXPECT_EQ(lookupLengths(table, "0"), Lengths{512});
  EXPECT_EQ(lookupLengths(table, "512"), Lengths{512});
  EXPECT_EQ(lookupLengths(table, "513"), Lengths{2048});
  EXPECT_EQ(lookupLengths(table, "2049"), Lengths{kAnyLength});
  EXPECT_EQ(lookupLengths(ArrayRef(table).take_front(4), "?"), Lengths());
}

class ScheduleTableTest : public testing::TestWithParam<Problem> {
protected:
  ScheduleTableTest() {
    DialectRegistry registry;
    registerAttncDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<AttnDialect>();
    context.printOpOnDiagnostic(false);
  }

  /// An operator of the row's class; without a schedule if `schedule` is empty,
  /// and with a dynamic query length if `qLen` is.
  OwningOpRef<ModuleOp> parse(const Twine &schedule, const Twine &qLen) {
    const Problem &problem = GetParam();
    std::string type = llvm::formatv("tensor<?x8x{0}x{1}x{2}>", qLen.str(),
                                     problem.row->maxHeadDim, problem.element);
    std::string keys = llvm::formatv("tensor<?x8x?x{0}x{1}>",
                                     problem.row->maxHeadDim, problem.element);
    std::string output =
        problem.row->elementBits == 8
            ? llvm::formatv("tensor<?x8x{0}x{1}xbf16>", qLen.str(),
                            problem.row->maxHeadDim)
            : type;
    std::string argument, capture, captureType, mods;
    const bool hasDocuments =
        problem.row->captures == CaptureKind::PairsOfIntegers;
    if (hasDocuments) {
      captureType = std::string(", ") + kDocumentType;
      argument = ", %documents: " + captureType.substr(2);
      capture = ", %documents";
      mods = llvm::formatv(kDocuments);
    } else if (problem.row->captures != CaptureKind::Any) {
      bool is16Bit = problem.row->captures == CaptureKind::Planes16Bit;
      const char *element = is16Bit ? "f16" : "i32";
      const char *convert = is16Bit ? "arith.extf" : "arith.sitofp";
      captureType = llvm::formatv(kBiasType, qLen.str(), element);
      argument = ", %bias: " + captureType.substr(2);
      capture = ", %bias";
      mods = llvm::formatv(kBias, qLen.str(), element, convert);
    }
    if (StringRef mask = getMask(problem.mask); !mask.empty() && !hasDocuments)
      mods += llvm::formatv(
          mask.data(),
          captureType.empty() ? "" : ", %t: " + captureType.substr(2));
    return parseSourceString<ModuleOp>(llvm::formatv(R"mlir(
func.func @attention(%q: {0}, %k: {1}, %v: {1}, %o: {7}{4}) -> {7} {{
  %r = attn.attention ins(%q, %k, %v{5} : {0}, {1}, {1}{6}) outs(%o : {7}) {{{2}}
    {3} -> {7}
  return %r : {7}
})mlir",
                                                     type, keys, schedule.str(),
                                                     mods, argument, capture,
                                                     captureType, output)
                                           .str(),
                                       &context);
  }

  std::string getScheduleText() {
    std::string text = "schedule = ";
    parse("", "?")->walk([&](AttentionOp op) {
      llvm::raw_string_ostream(text) << GetParam().row->getSchedule(op);
    });
    return text;
  }

  /// Compiles the row's schedule to machine code; empty, with the reason in
  /// `diagnostics`, if that fails.
  std::string assemble(bool werrorPerf) {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      llvm::raw_string_ostream(diagnostics) << diagnostic << '\n';
      return success();
    });
    OwningOpRef<ModuleOp> module = parse(getScheduleText(), "?");
    if (!module)
      return "";
    ::attn::CompileOptions options;
    options.target = GetParam().row->target.str();
    llvm::Expected<std::string> code = assemble(*module, options, werrorPerf);
    if (code)
      return std::move(*code);
    diagnostics += llvm::toString(code.takeError());
    return "";
  }

  static llvm::Expected<std::string>
  assemble(ModuleOp module, const ::attn::CompileOptions &options,
           bool werrorPerf) {
    auto lowered = ::attn::lower(module, options);
    if (!lowered)
      return lowered.takeError();
    auto ptx = translateToPTX(::attn::getGPUModule(**lowered), options.target);
    if (!ptx)
      return ptx.takeError();
    auto assembled = ::attn::assemble(**lowered, *ptx, options, {werrorPerf});
    if (!assembled)
      return assembled.takeError();
    return std::move(assembled->cubin);
  }

  MLIRContext context;
  std::string diagnostics;
};

/// The assembler's counterpart, if there is one; its output goes to a file.
std::optional<std::string> findDisassembler() {
  for (StringRef name : {"nvdisasm", "cuobjdump"})
    if (auto path = llvm::sys::findProgramByName(name))
      return *path;
  return std::nullopt;
}

std::string disassemble(StringRef disassembler, StringRef cubin) {
  SmallString<128> input, output;
  if (llvm::sys::fs::createTemporaryFile("attnc", "cubin", input) ||
      llvm::sys::fs::createTemporaryFile("attnc", "sass", output))
    return "";
  llvm::FileRemover removeInput(input), removeOutput(output);
  std::error_code error;
  llvm::raw_fd_ostream(input, error) << cubin;
  SmallVector<StringRef> args = {disassembler};
  if (disassembler.ends_with("cuobjdump"))
    args.push_back("-sass");
  args.push_back(input);
  llvm::sys::ExecuteAndWait(disassembler, args, std::nullopt,
                            {std::nullopt, StringRef(output), std::nullopt});
  auto text = llvm::MemoryBuffer::getFile(output);
  return text ? (*text)->getBuffer().str() : "";
}

/// No row is shadowed by an earlier one, and some row serves every length.
TEST_P(ScheduleTableTest, IsReachable) {
  const ScheduleRow &row = *GetParam().row;
  const TargetInfo &target = *TargetInfo::lookup(row.target);
  auto lookup = [&](const Twine &qLen) {
    OwningOpRef<ModuleOp> module = parse("", qLen);
    SmallVector<const ScheduleRow *> rows;
    module->walk([&](AttentionOp op) { rows = lookupRows(op, target); });
    return rows;
  };
  SmallVector<const ScheduleRow *> rows = lookup("?");
  EXPECT_TRUE(llvm::is_contained(rows, &row));
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.back()->maxQLen, kAnyLength);
  for (auto [shorter, longer] : llvm::zip(rows, llvm::drop_begin(rows)))
    EXPECT_LT(shorter->maxQLen, longer->maxQLen);
  // A length that is known has one row.
  const int64_t longest = std::min<int64_t>(row.maxQLen, 1 << 20);
  EXPECT_EQ(lookup(Twine(longest)), SmallVector<const ScheduleRow *>{&row});
}

TEST_P(ScheduleTableTest, FitsTheTarget) {
  const TargetInfo &target = *TargetInfo::lookup(GetParam().row->target);
  OwningOpRef<ModuleOp> module = parse(getScheduleText(), "?");
  ASSERT_TRUE(module);
  module->walk([&](AttentionOp op) {
    EXPECT_TRUE(succeeded(verifySchedules(op, target)));
  });
}

class GPUScheduleTest : public ScheduleTableTest {};

TEST_P(GPUScheduleTest, PleasesPtxas) {
  auto ptxas = ::attn::findPtxas();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  // A row that stops spilling must lose its exception.
  EXPECT_EQ(assemble(/*werrorPerf=*/true).empty(),
            isKnownToSpill(*GetParam().row))
      << diagnostics;
}

/// The driver of a newer GPU assembles the same PTX.
TEST_P(GPUScheduleTest, PleasesPtxasOfNewerGPUs) {
  auto ptxas = ::attn::findPtxas();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  const ScheduleRow &row = *GetParam().row;
  // PTX for sm_90a is for no other GPU.
  if (TargetInfo::lookup(row.target)->hasWarpRoles || isKnownToSpill(row))
    return;
  OwningOpRef<ModuleOp> module = parse(getScheduleText(), "?");
  ASSERT_TRUE(module);
  ::attn::CompileOptions options;
  options.target = row.target.str();
  auto program = ::attn::compile(*module, options);
  ASSERT_TRUE(static_cast<bool>(program))
      << llvm::toString(program.takeError());
  auto assembled = ::attn::runPtxas(program->ptx, "sm_90");
  ASSERT_TRUE(static_cast<bool>(assembled))
      << llvm::toString(assembled.takeError());
  ASSERT_EQ(assembled->kernels.size(), 1u);
  EXPECT_EQ(assembled->kernels.front().spillStoreBytes, 0) << assembled->log;
}

TEST_P(GPUScheduleTest, UsesTheMatrixUnit) {
  auto ptxas = ::attn::findPtxas();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  std::optional<std::string> disassembler = findDisassembler();
  if (!disassembler)
    GTEST_SKIP() << "no nvdisasm or cuobjdump in $PATH";
  const bool hasWgmma =
      TargetInfo::lookup(GetParam().row->target)->hasWarpRoles;
  const std::string code = assemble(/*werrorPerf=*/false);
  ASSERT_FALSE(code.empty()) << diagnostics;
  EXPECT_NE(disassemble(*disassembler, code).find(hasWgmma ? "GMMA" : "HMMA"),
            std::string::npos);
}

//===----------------------------------------------------------------------===//
// Few queries
//===----------------------------------------------------------------------===//

class DecodeTableTest : public testing::Test {
protected:
  DecodeTableTest() {
    DialectRegistry registry;
    registerAttncDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<AttnDialect>();
  }

  /// Calls `fn` with an operator of `numQueries` ("?" for any number) queries
  /// of 8 heads, of which four share a KV head.
  void withOperator(StringRef element, int64_t dim, const Twine &numQueries,
                    function_ref<void(ModuleOp, AttentionOp)> fn) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
        llvm::formatv(R"mlir(
func.func @attention(%q: tensor<?x8x{0}x{1}x{2}>, %k: tensor<?x2x?x{1}x{2}>) -> tensor<?x8x{0}x{1}x{2}> {{
  %r = attn.attention ins(%q, %k, %k : tensor<?x8x{0}x{1}x{2}>, tensor<?x2x?x{1}x{2}>, tensor<?x2x?x{1}x{2}>)
                      outs(%q : tensor<?x8x{0}x{1}x{2}>) -> tensor<?x8x{0}x{1}x{2}>
  return %r : tensor<?x8x{0}x{1}x{2}>
})mlir",
                      numQueries.str(), dim, element)
            .str(),
        &context);
    ASSERT_TRUE(module);
    module->walk([&](AttentionOp op) { fn(*module, op); });
  }

  static StringRef getElement(const DecodeRow &row) {
    return row.elementBits == 32 ? "f32" : "bf16";
  }

  MLIRContext context;
};

TEST_F(DecodeTableTest, TakesTheFirstRowThatHoldsTheRowsOfAllHeads) {
  const DecodeRow table[] = {{"sm_80", 16, 32, 64, 16, 64, 2, 1, 4},
                             {"sm_80", 16, 64, 16, 16, 64, 2, 1, 4},
                             {"sm_80", 32, 64, 16, 16, 64, 2, 1, 4},
                             {"sm_80", 16, 128, 70, 64, 64, 2, 4, 2}};
  auto lookup = [&](const Twine &numQueries) {
    std::vector<int64_t> lengths;
    withOperator("f16", 64, numQueries, [&](ModuleOp, AttentionOp op) {
      for (const DecodeRow *row :
           lookupDecodeRows(op, *TargetInfo::lookup("sm_80"), table))
        lengths.push_back(row->getMaxQLen(op));
    });
    return lengths;
  };
  using Lengths = std::vector<int64_t>;
  EXPECT_EQ(lookup("?"), (Lengths{4, 17}));
  EXPECT_EQ(lookup("0"), Lengths{4});
  EXPECT_EQ(lookup("4"), Lengths{4});
  EXPECT_EQ(lookup("5"), Lengths{17});
  EXPECT_EQ(lookup("18"), Lengths());
}

TEST_F(DecodeTableTest, FitsTheTarget) {
  for (const DecodeRow &row : getDecodeTable())
    withOperator(
        getElement(row), row.maxHeadDim, "?", [&](ModuleOp, AttentionOp op) {
          EXPECT_TRUE(succeeded(verifySchedule(
              op, row.getSchedule(op), *TargetInfo::lookup(row.target))));
        });
}

TEST_F(DecodeTableTest, DoesNotSpill) {
  auto ptxas = ::attn::findPtxas();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  for (const DecodeRow &row : getDecodeTable()) {
    if (!TargetInfo::lookup(row.target)->isGPU)
      continue;
    SCOPED_TRACE(llvm::formatv("{0}, {1} bits, D {2}, {3} rows", row.target,
                               row.elementBits, row.maxHeadDim, row.maxRows)
                     .str());
    withOperator(getElement(row), row.maxHeadDim, "?",
                 [&](ModuleOp module, AttentionOp op) {
                   op.setScheduleAttr(row.getSchedule(op));
                   ::attn::CompileOptions options;
                   options.target = row.target.str();
                   auto program = ::attn::compile(module, options);
                   ASSERT_TRUE(static_cast<bool>(program))
                       << llvm::toString(program.takeError());
                   auto assembled =
                       ::attn::runPtxas(program->ptx, options.target);
                   ASSERT_TRUE(static_cast<bool>(assembled))
                       << llvm::toString(assembled.takeError());
                   EXPECT_EQ(assembled->kernels.size(), 2u);
                   int64_t spilled = 0;
                   for (const auto &kernel : assembled->kernels)
                     spilled += kernel.spillStoreBytes.value_or(0);
                   // A row that stops spilling must lose its exception.
                   EXPECT_EQ(spilled > 0, isKnownToSpill(row))
                       << assembled->log;
                 });
  }
}

std::string getTestName(const testing::TestParamInfo<Problem> &info) {
  return getName(info.param);
}

INSTANTIATE_TEST_SUITE_P(CPU, ScheduleTableTest,
                         testing::ValuesIn(getProblems(/*isGPU=*/false)),
                         getTestName);
INSTANTIATE_TEST_SUITE_P(GPU, ScheduleTableTest,
                         testing::ValuesIn(getProblems(/*isGPU=*/true)),
                         getTestName);
INSTANTIATE_TEST_SUITE_P(GPU, GPUScheduleTest,
                         testing::ValuesIn(getProblems(/*isGPU=*/true)),
                         getTestName);
} // namespace
