//===- VerifyProtocolTest.cpp - Mutants of the shipped schedules ----------===//
//
// Changes one operation of a kernel's protocol at a time. Whatever hangs, races
// or reads too early on ProtocolMachine must be refused by
// hopper-verify-protocol.
//
//===----------------------------------------------------------------------===//

#include "ProtocolMachine.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Hopper/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <mutex>
#include <random>

using namespace mlir;
using namespace mlir::hopper;

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

static bool isProtocolOp(Operation *op) {
  return isa<AcquireOp, TmaLoadOp, PutOp, CommitOp, WaitOp, SlotOp, GetOp,
             ReadOp, TmaStoreOp, ReleaseOp, WgmmaOp, WgmmaWaitOp, NextTileOp,
             TransposeOp>(op);
}

/// Each changes the operation, or returns false if it has nothing to change.
namespace {
/// The slot is named without the wait for it.
bool skipWait(Operation *op) {
  if (!isa<AcquireOp, WaitOp>(op))
    return false;
  OpBuilder builder(op);
  Value slot = SlotOp::create(builder, op->getLoc(), op->getOperand(0),
                              op->getOperand(1));
  op->replaceAllUsesWith(ValueRange(slot));
  op->erase();
  return true;
}

bool drop(Operation *op) {
  if (!isa<CommitOp, ReleaseOp, PutOp, TmaLoadOp, TransposeOp>(op))
    return false;
  op->erase();
  return true;
}

template <typename... OpTys>
bool duplicate(Operation *op) {
  if (!isa<OpTys...>(op))
    return false;
  OpBuilder(op).clone(*op);
  return true;
}

template <int difference, typename... OpTys>
bool renumber(Operation *op) {
  if (!isa<OpTys...>(op))
    return false;
  OpBuilder builder(op);
  Value constant = arith::ConstantOp::create(
      builder, op->getLoc(), builder.getI32IntegerAttr(difference));
  op->setOperand(1, arith::AddIOp::create(builder, op->getLoc(),
                                          op->getOperand(1), constant));
  return true;
}

/// A slot is committed instead of released, or the other way around.
bool giveOtherwise(Operation *op) {
  if (!isa<CommitOp, ReleaseOp>(op))
    return false;
  OpBuilder builder(op);
  if (isa<CommitOp>(op))
    ReleaseOp::create(builder, op->getLoc(), op->getOperand(0));
  else
    CommitOp::create(builder, op->getLoc(), op->getOperand(0));
  op->erase();
  return true;
}

bool transposeBack(Operation *op) {
  auto transpose = dyn_cast<TransposeOp>(op);
  if (!transpose)
    return false;
  Value source = transpose.getSource();
  transpose.getSourceMutable().assign(transpose.getTarget());
  transpose.getTargetMutable().assign(source);
  return true;
}

/// What a wait without an effect leaves in flight.
constexpr int32_t kAllProducts = 1000;

template <int32_t difference>
bool leaveInFlight(Operation *op) {
  auto wait = dyn_cast<WgmmaWaitOp>(op);
  if (wait)
    wait.setInFlight(wait.getInFlight() + difference);
  return wait != nullptr;
}

/// Runs the operation before the one of the protocol that is before it.
bool moveUp(Operation *op) {
  Operation *previous = op->getPrevNode();
  while (previous && !isProtocolOp(previous) && previous->getNumRegions() == 0)
    previous = previous->getPrevNode();
  if (!previous)
    return false;
  for (Operation *between = previous; between != op;
       between = between->getNextNode())
    if (llvm::any_of(op->getOperands(), [&](Value operand) {
          return operand.getDefiningOp() == between;
        }))
      return false;
  op->moveBefore(previous);
  return true;
}

/// What the pass must do with a mutant.
enum class Verdict {
  /// Refuse it.
  Refused,
  /// Refuse it if the machine finds a fault. Harmless are: naming a slot again,
  /// or the slot of the tile next to it while the role holds that one too
  /// (which gives a wrong result, but no race); loading, putting, getting or
  /// storing the same twice; a wait for a product that another wait has
  /// completed before; and two operations whose order doesn't matter, such as
  /// releases of two rings.
  AsTheMachine,
};

struct Mutation {
  const char *name;
  bool (*apply)(Operation *);
  Verdict verdict;
};

constexpr Mutation kMutations[] = {
    {"slot taken without a wait", skipWait, Verdict::Refused},
    {"dropped", drop, Verdict::Refused},
    {"given otherwise", giveOtherwise, Verdict::Refused},
    {"transposed back", transposeBack, Verdict::Refused},
    {"twice",
     duplicate<AcquireOp, CommitOp, WaitOp, ReleaseOp, WgmmaWaitOp, NextTileOp>,
     Verdict::Refused},
    {"next tile", renumber<1, AcquireOp, WaitOp>, Verdict::Refused},
    {"previous tile", renumber<-1, AcquireOp, WaitOp>, Verdict::Refused},
    {"twice",
     duplicate<SlotOp, PutOp, GetOp, TmaLoadOp, TmaStoreOp, TransposeOp>,
     Verdict::AsTheMachine},
    {"slot of the next tile", renumber<1, SlotOp>, Verdict::AsTheMachine},
    {"slot of the previous tile", renumber<-1, SlotOp>, Verdict::AsTheMachine},
    {"one more product in flight", leaveInFlight<1>, Verdict::AsTheMachine},
    {"all products in flight", leaveInFlight<kAllProducts>,
     Verdict::AsTheMachine},
    {"moved up", moveUp, Verdict::AsTheMachine},
};

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// How a kernel is pipelined, whatever the table says.
struct Roles {
  mlir::attn::RolePipeline pipeline;
  bool isPersistent;
  int64_t qStages;
  bool tmaStore;
};

struct Mask {
  const char *name, *region;
  /// The type of a capture.
  const char *capture = nullptr;
};

constexpr Mask kNoMask = {"no mask", ""};
constexpr Mask kCausal = {"causal", R"mlir(
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %visible = arith.cmpi sle, %kv_idx, %q_idx : i32
      attn.yield %visible : i1
    })mlir"};
constexpr Mask kWindow = {"window", R"mlir(
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %size = arith.constant 300 : i32
      %first = arith.subi %q_idx, %size : i32
      %before = arith.cmpi sle, %kv_idx, %q_idx : i32
      %inside = arith.cmpi sgt, %kv_idx, %first : i32
      %visible = arith.andi %before, %inside : i1
      attn.yield %visible : i1
    })mlir"};

constexpr Mask kBias = {"bias and causal", R"mlir(
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %t: memref<1x8x?x?xf32>) {
      %x = attn.capture_load %t[%b, %h, %q_idx, %kv_idx] : memref<1x8x?x?xf32> -> f32
      %y = arith.addf %s, %x : f32
      attn.yield %y : f32
    }
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %t: memref<1x8x?x?xf32>) {
      %visible = arith.cmpi sle, %kv_idx, %q_idx : i32
      attn.yield %visible : i1
    })mlir",
                        "memref<1x8x?x?xf32>"};

struct Kernel {
  int64_t headDim;
  Mask mask;
  /// Those of the table if there are none.
  std::optional<Roles> roles;
  /// 8-bit inputs, with `roles`.
  bool transposesV = false;
};

void PrintTo(const Kernel &kernel, std::ostream *os) {
  *os << "D = " << kernel.headDim << ", " << kernel.mask.name;
  if (kernel.roles)
    *os << ", " << stringifyRolePipeline(kernel.roles->pipeline).str()
        << (kernel.roles->isPersistent ? ", persistent" : "");
  if (kernel.transposesV)
    *os << ", 8-bit";
}

std::string getSource(const Kernel &kernel) {
  auto getType = [&](const char *element) -> std::string {
    return llvm::formatv("memref<?x8x?x{0}x{1}, strided<[?, ?, ?, 1]>>",
                         kernel.headDim, element);
  };
  std::string type = getType(kernel.transposesV ? "f8E4M3FN" : "bf16");
  const char *schedule =
      kernel.transposesV
          ? "{schedule = #attn.schedule<block_m = 192, block_n = 64, "
            "num_stages = 2, num_warps = 16, "
            "warp_roles = <v_transpose = producer>>} "
          : "";
  std::string argument, operand, operandType;
  if (const char *capture = kernel.mask.capture) {
    argument = llvm::formatv(", %t: {0}", capture);
    operand = ", %t";
    operandType = llvm::formatv(", {0}", capture);
  }
  return llvm::formatv(R"mlir(
func.func @attention(%q: {0}, %k: {0}, %v: {0}, %o: {5}{2}) {{
  attn.attention ins(%q, %k, %v{3} : {0}, {0}, {0}{4}) outs(%o : {5}) {6}{1}
  return
})mlir",
                       type, kernel.mask.region, argument, operand, operandType,
                       getType("bf16"), schedule);
}

SmallVector<Operation *> getProtocolOps(ModuleOp module) {
  SmallVector<Operation *> ops;
  module->walk([&](Operation *op) {
    if (isProtocolOp(op))
      ops.push_back(op);
  });
  return ops;
}

/// An operator may have kernels for several lengths.
SmallVector<WarpSpecializeOp> getPrograms(ModuleOp module) {
  SmallVector<WarpSpecializeOp> programs;
  module->walk([&](WarpSpecializeOp op) { programs.push_back(op); });
  return programs;
}

class VerifyProtocolTest : public testing::TestWithParam<Kernel> {
protected:
  static void SetUpTestSuite() {
    static std::once_flag once;
    std::call_once(once, mlir::attn::registerAttncPasses);
  }

  VerifyProtocolTest() : verify(&context) {
    DialectRegistry registry;
    mlir::attn::registerAttncDialects(registry);
    context.appendDialectRegistry(registry);
    module = parseSourceString<ModuleOp>(getSource(GetParam()), &context);
    PassManager pm(&context);
    pm.addNestedPass<func::FuncOp>(
        mlir::attn::createAttnSelectSchedule({"sm_90a"}));
    pm.addPass(mlir::attn::createConvertAttnToTile({"sm_90a"}));
    pm.addPass(mlir::attn::createConvertHostToPlan());
    pm.addNestedPass<tile::KernelOp>(tile::createTileSplitKVRanges());
    EXPECT_TRUE(succeeded(pm.run(*module)));
    if (GetParam().roles)
      setRoles(*GetParam().roles);
    PassManager split(&context);
    EXPECT_TRUE(succeeded(parsePassPipeline(
        "tile.kernel(hopper-stage-captures, convert-tile-to-hopper)", split)));
    EXPECT_TRUE(succeeded(split.run(*module)));
    verify.addNestedPass<tile::KernelOp>(createHopperVerifyProtocol());
  }

  void setRoles(const Roles &roles) {
    using mlir::attn::WarpRolesAttr;
    auto attr = WarpRolesAttr::get(&context, roles.pipeline,
                                   /*lazy_rescale=*/false, roles.isPersistent,
                                   roles.qStages, roles.tmaStore,
                                   mlir::attn::VTranspose::Prepass);
    module->walk([&](tile::KernelOp kernel) {
      kernel->setAttr(WarpRolesAttr::getKernelAttrName(), attr);
    });
  }

  bool isLegal(ModuleOp mutant) {
    ScopedDiagnosticHandler silence(&context,
                                    [](Diagnostic &) { return success(); });
    return succeeded(verify.run(mutant));
  }

  /// What goes wrong in a program.
  std::string findFaultIn(ModuleOp mutant) {
    static constexpr ProblemSample kSamples[] = {
        {1000, 0, 1, 7, 9},     {1000, 1, 5, 7, 20},   {1000, 300, 0, 7, 20},
        {1000, 380, 3, 7, 20},  {1000, 520, 2, 7, 40}, {1000, 600, 0, 7, 20},
        {1000, 1500, 0, 7, 30}, {129, 1000, 1, 7, 3},
    };
    ScopedDiagnosticHandler silence(&context,
                                    [](Diagnostic &) { return success(); });
    for (WarpSpecializeOp op : getPrograms(mutant)) {
      ProgramInterpreter interpreter(op);
      for (const ProblemSample &sample : kSamples) {
        FailureOr<ProgramTrace> program = interpreter.run(sample);
        if (failed(program))
          return "can't be run";
        std::string fault = findFault(op, *program);
        if (!fault.empty())
          return fault + " " + sample.describe();
      }
    }
    return "";
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  PassManager verify;
};

TEST_P(VerifyProtocolTest, AcceptsTheKernel) {
  EXPECT_TRUE(isLegal(*module));
  EXPECT_EQ(findFaultIn(*module), "");
}

/// Adds the operations that `op` runs for some program of some problem.
void collectLiveOps(WarpSpecializeOp op, DenseSet<Operation *> &live) {
  constexpr int kNumProblems = 300;
  ProgramInterpreter interpreter(op);
  std::mt19937 random;
  auto upTo = [&](int64_t limit) { return int64_t(random() % (limit + 1)); };
  for (int i = 0; i < kNumProblems; ++i) {
    int64_t program = upTo(40);
    ProblemSample sample{1 + upTo(2000), upTo(2000), program, 7,
                         program + 1 + upTo(20)};
    FailureOr<ProgramTrace> trace = interpreter.run(sample);
    if (failed(trace))
      return;
    trace->warpgroups.push_back(std::move(trace->producer));
    if (trace->transposer)
      trace->warpgroups.push_back(std::move(*trace->transposer));
    for (const RoleTrace &role : trace->warpgroups)
      for (const RoleEvent &event : role.events)
        live.insert(event.op);
  }
}

/// Positions of such operations among those of the protocol.
std::vector<size_t> findLiveOps(ModuleOp module) {
  DenseSet<Operation *> live;
  for (WarpSpecializeOp op : getPrograms(module))
    collectLiveOps(op, live);
  std::vector<size_t> positions;
  for (auto [index, op] : llvm::enumerate(getProtocolOps(module)))
    if (live.contains(op))
      positions.push_back(index);
  return positions;
}

TEST_P(VerifyProtocolTest, RefusesMutants) {
  // Code for which there is no program can't go wrong.
  std::vector<size_t> live = findLiveOps(*module);
  unsigned numMutants = 0, numRefused = 0;
  for (const Mutation &mutation : kMutations) {
    bool isFaultSeen = mutation.verdict != Verdict::Refused;
    unsigned numBefore = numMutants;
    for (size_t index : live) {
      OwningOpRef<ModuleOp> mutant = module->clone();
      Operation *op = getProtocolOps(*mutant)[index];
      std::string text;
      llvm::raw_string_ostream(text) << mutation.name << ": " << *op;
      if (!mutation.apply(op))
        continue;
      ++numMutants;
      bool legal = isLegal(*mutant);
      numRefused += !legal;
      if (mutation.verdict == Verdict::Refused)
        EXPECT_FALSE(legal) << text;
      if (legal)
        EXPECT_EQ(findFaultIn(*mutant), "") << text;
      else if (!isFaultSeen)
        isFaultSeen = !findFaultIn(*mutant).empty();
    }
    // The machine must see what the check is for.
    if (numMutants > numBefore)
      EXPECT_TRUE(isFaultSeen) << mutation.name;
  }
  EXPECT_GT(numMutants, 70u);
  EXPECT_GT(2 * numRefused, numMutants);
}

constexpr Roles kRoles[] = {
    {mlir::attn::RolePipeline::Simple, false, 1, false},
    {mlir::attn::RolePipeline::Overlap, false, 1, false},
    {mlir::attn::RolePipeline::Ahead, false, 1, true},
    {mlir::attn::RolePipeline::Overlap, true, 1, true},
    {mlir::attn::RolePipeline::Ahead, true, 2, true},
};

std::vector<Kernel> getKernels() {
  std::vector<Kernel> kernels;
  for (int64_t headDim : {64, 128, 256})
    for (const Mask &mask : {kNoMask, kCausal, kBias})
      kernels.push_back({headDim, mask, std::nullopt});
  // A window has KV tiles that only some warpgroups need, at both ends.
  for (const Mask &mask : {kNoMask, kCausal, kWindow, kBias})
    for (const Roles &roles : kRoles)
      kernels.push_back({64, mask, roles});
  for (const Mask &mask : {kWindow, kBias})
    for (const Roles &roles : {kRoles[0], kRoles[3], kRoles[4]})
      kernels.push_back({64, mask, roles, /*transposesV=*/true});
  return kernels;
}

INSTANTIATE_TEST_SUITE_P(Schedules, VerifyProtocolTest,
                         testing::ValuesIn(getKernels()));
} // namespace
