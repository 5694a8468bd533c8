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
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::hopper;

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

static bool isProtocolOp(Operation *op) {
  return isa<AcquireOp, TmaLoadOp, PutOp, CommitOp, WaitOp, SlotOp, GetOp,
             TmaStoreOp, ReleaseOp, WgmmaOp, WgmmaWaitOp, NextTileOp>(op);
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
  if (!isa<CommitOp, ReleaseOp, PutOp, TmaLoadOp>(op))
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
    {"twice",
     duplicate<AcquireOp, CommitOp, WaitOp, ReleaseOp, WgmmaWaitOp, NextTileOp>,
     Verdict::Refused},
    {"next tile", renumber<1, AcquireOp, WaitOp>, Verdict::Refused},
    {"previous tile", renumber<-1, AcquireOp, WaitOp>, Verdict::Refused},
    {"twice", duplicate<SlotOp, PutOp, GetOp, TmaLoadOp, TmaStoreOp>,
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

struct Kernel {
  int64_t headDim;
  bool isCausal, overlap;
};

void PrintTo(const Kernel &kernel, std::ostream *os) {
  *os << "D = " << kernel.headDim << (kernel.isCausal ? ", causal" : "")
      << (kernel.overlap ? ", overlapped" : "");
}

std::string getSource(const Kernel &kernel) {
  constexpr char kCausal[] = R"mlir(
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %visible = arith.cmpi sle, %kv_idx, %q_idx : i32
      attn.yield %visible : i1
    })mlir";
  std::string type = llvm::formatv(
      "memref<?x8x?x{0}xbf16, strided<[?, ?, ?, 1]>>", kernel.headDim);
  return llvm::formatv(R"mlir(
func.func @attention(%q: {0}, %k: {0}, %v: {0}, %o: {0}) {{
  attn.attention ins(%q, %k, %v : {0}, {0}, {0}) outs(%o : {0}) {1}
  return
})mlir",
                       type, kernel.isCausal ? kCausal : "");
}

class VerifyProtocolTest : public testing::TestWithParam<Kernel> {
protected:
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
    pm.addNestedPass<tile::KernelOp>(
        mlir::attn::createConvertTileToHopper({GetParam().overlap}));
    EXPECT_TRUE(succeeded(pm.run(*module)));
    verify.addNestedPass<tile::KernelOp>(createHopperVerifyProtocol());
  }

  bool isLegal(ModuleOp mutant) {
    ScopedDiagnosticHandler silence(&context,
                                    [](Diagnostic &) { return success(); });
    return succeeded(verify.run(mutant));
  }

  /// What goes wrong in the program, which the interpreter must understand.
  std::string findFaultIn(ModuleOp mutant) {
    static constexpr ProblemSample kSamples[] = {
        {1000, 0, 1, 7, 9},     {1000, 1, 5, 7, 20},   {1000, 300, 0, 7, 20},
        {1000, 380, 3, 7, 20},  {1000, 520, 2, 7, 40}, {1000, 600, 0, 7, 20},
        {1000, 1500, 0, 7, 30}, {129, 1000, 1, 7, 3},
    };
    WarpSpecializeOp roles;
    mutant->walk([&](WarpSpecializeOp op) { roles = op; });
    ProgramInterpreter interpreter(roles);
    ScopedDiagnosticHandler silence(&context,
                                    [](Diagnostic &) { return success(); });
    for (const ProblemSample &sample : kSamples) {
      FailureOr<ProgramTrace> program = interpreter.run(sample);
      if (failed(program))
        return "can't be run";
      std::string fault = findFault(roles, *program);
      if (!fault.empty())
        return fault + " " + sample.describe();
    }
    return "";
  }

  static SmallVector<Operation *> getProtocolOps(ModuleOp module) {
    SmallVector<Operation *> ops;
    module->walk([&](Operation *op) {
      if (isProtocolOp(op))
        ops.push_back(op);
    });
    return ops;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  PassManager verify;
};

TEST_P(VerifyProtocolTest, AcceptsTheKernel) {
  EXPECT_TRUE(isLegal(*module));
  EXPECT_EQ(findFaultIn(*module), "");
}

TEST_P(VerifyProtocolTest, RefusesMutants) {
  size_t numOps = getProtocolOps(*module).size();
  int numMutants = 0, numFaults = 0;
  for (const Mutation &mutation : kMutations) {
    int numFaultsBefore = numFaults;
    for (size_t index = 0; index < numOps; ++index) {
      OwningOpRef<ModuleOp> mutant = module->clone();
      Operation *op = getProtocolOps(*mutant)[index];
      std::string text;
      llvm::raw_string_ostream(text) << *op;
      if (!mutation.apply(op))
        continue;
      ++numMutants;
      bool legal = isLegal(*mutant);
      std::string fault = findFaultIn(*mutant);
      numFaults += !fault.empty();
      if (mutation.verdict == Verdict::Refused || !fault.empty())
        EXPECT_FALSE(legal) << mutation.name << ": " << text << "\n" << fault;
    }
    // The machine must see what the rule is for.
    if (mutation.verdict == Verdict::Refused)
      EXPECT_GT(numFaults, numFaultsBefore) << mutation.name;
  }
  EXPECT_GT(numMutants, 70);
  EXPECT_GT(2 * numFaults, numMutants);
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, VerifyProtocolTest,
    testing::Values(Kernel{64, false, true}, Kernel{64, true, true},
                    Kernel{64, true, false}, Kernel{128, false, true},
                    Kernel{128, true, true}, Kernel{128, true, false}));
} // namespace
