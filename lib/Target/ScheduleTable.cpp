//===- ScheduleTable.cpp - Measured schedules per problem class -----------===//
//
// One row per problem class; the first that matches is taken. Rows come from
// measurements (docs/Benchmarks.md).
//
//===----------------------------------------------------------------------===//

#include "attn/Target/ScheduleTable.h"
#include "attn/Analysis/ScalarInterpreter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

static constexpr RolePipeline kIgnored = RolePipeline::Overlap;
static constexpr CaptureKind kByPosition = CaptureKind::ByPosition;
static constexpr CaptureKind kPlanes16Bit = CaptureKind::Planes16Bit;
static constexpr CaptureKind kPairsOfIntegers = CaptureKind::PairsOfIntegers;
static constexpr VTranspose kByProducer = VTranspose::Producer;

// clang-format off
static constexpr ScheduleRow kTable[] = {
    // target   bits  D   mask               queries      m    n  stages  warps
    {"cpu",     16,  576, MaskKind::Any,     kAnyLength,  64,  64,  1,      1},
    {"cpu",     32,  576, MaskKind::Any,     kAnyLength,  64,  64,  1,      1},
    // Chosen so that nothing spills, not yet by time.
    {"sm_80",   16,   96, MaskKind::Any,     kAnyLength, 128,  32,  2,      4, kIgnored, false, false, 1, false, kByPosition},
    {"sm_80",   16,  128, MaskKind::Any,     kAnyLength,  64,  96,  2,      4, kIgnored, false, false, 1, false, kByPosition},
    {"sm_80",   16,   96, MaskKind::Any,     kAnyLength, 128,  64,  2,      4},
    {"sm_80",   16,  128, MaskKind::Any,     kAnyLength, 128,  32,  3,      4},
    {"sm_80",   16,  192, MaskKind::Any,     kAnyLength, 128,  64,  2,      8},
    {"sm_80",   16,  256, MaskKind::Any,     kAnyLength, 128,  32,  2,      8},
    {"sm_80",   16,  576, MaskKind::Any,     kAnyLength,  64,  16,  2,      4},
    {"sm_80",   32,   64, MaskKind::Any,     kAnyLength,  64,  32,  2,      4},
    {"sm_80",   32,  128, MaskKind::Any,     kAnyLength,  64,  32,  2,      4},
    {"sm_80",   32,  192, MaskKind::Any,     kAnyLength,  64,  32,  2,      4},
    {"sm_80",   32,  256, MaskKind::Any,     kAnyLength,  64,  16,  2,      4},
    {"sm_80",   32,  576, MaskKind::Any,     kAnyLength,  16,  16,  2,      1},
    //                                                                             pipeline               lazy   persistent Q  TMA store
    // What reads a bias is limited by the L2: rows save reads of K and V.
    {"sm_90a",  16,   64, MaskKind::Any,     kAnyLength, 192,  64,  4,     16, RolePipeline::Overlap, true,  true,      2, true,  kPlanes16Bit},
    {"sm_90a",  16,  128, MaskKind::Any,     kAnyLength, 192,  64,  3,     16, RolePipeline::Overlap, true,  true,      1, true,  kPlanes16Bit},
    {"sm_90a",  16,   64, MaskKind::With,    kAnyLength, 192,  96,  4,     16, RolePipeline::Overlap, true,  true,      2, true,  kPairsOfIntegers},
    {"sm_90a",  16,  128, MaskKind::With,    kAnyLength, 192,  64,  4,     16, RolePipeline::Overlap, true,  true,      2, true,  kPairsOfIntegers},
    {"sm_90a",  16,   64, MaskKind::Any,     kAnyLength, 128, 128,  4,     12, RolePipeline::Overlap, true,  true,      2, true,  kByPosition},
    {"sm_90a",  16,  128, MaskKind::Any,     kAnyLength, 128,  96,  3,     12, RolePipeline::Overlap, true,  true,      1, true,  kByPosition},
    {"sm_90a",  16,   64, MaskKind::Window,  kAnyLength, 192,  64,  4,     16, RolePipeline::Overlap, true,  true,      2, true},
    {"sm_90a",  16,   64, MaskKind::Any,     kAnyLength, 192, 128,  4,     16, RolePipeline::Overlap, true,  true,      2, true},
    {"sm_90a",  16,  128, MaskKind::Window,  kAnyLength, 192,  64,  4,     16, RolePipeline::Overlap, true,  true,      2, true},
    {"sm_90a",  16,  128, MaskKind::Without, kAnyLength, 192,  64,  4,     16, RolePipeline::Overlap, true,  true,      2, true},
    {"sm_90a",  16,  128, MaskKind::With,          4096, 192,  64,  4,     16, RolePipeline::Overlap, true,  true,      2, true},
    {"sm_90a",  16,  128, MaskKind::With,    kAnyLength, 192,  64,  5,     16, RolePipeline::Overlap, true,  true,      1, false},
    {"sm_90a",  16,  192, MaskKind::Any,     kAnyLength, 128,  64,  3,     12, RolePipeline::Overlap, true,  true,      1, false},
    {"sm_90a",  16,  256, MaskKind::Without, kAnyLength, 128,  64,  2,     12, RolePipeline::Overlap, true,  true,      1, false},
    {"sm_90a",  16,  256, MaskKind::With,          8192, 128,  64,  2,     12, RolePipeline::Overlap, true,  true,      1, false},
    {"sm_90a",  16,  256, MaskKind::With,    kAnyLength, 128,  64,  2,     12, RolePipeline::Overlap, true,  false,     1, true},
    // Chosen so that nothing spills, not yet by time.
    {"sm_90a",  16,  576, MaskKind::Any,     kAnyLength,  64,  32,  2,      8, RolePipeline::Overlap, true,  true,      1, false},
    // The output is wider than Q's slot.
    {"sm_90a",   8,   64, MaskKind::Any,     kAnyLength, 128, 128,  4,     12, RolePipeline::Overlap, true,  true,      2, false, kByPosition},
    {"sm_90a",   8,  128, MaskKind::Any,     kAnyLength, 128,  96,  4,     12, RolePipeline::Overlap, true,  true,      2, false, kByPosition, kByProducer},
    {"sm_90a",   8,  256, MaskKind::Any,     kAnyLength, 128,  64,  3,     12, RolePipeline::Overlap, true,  true,      2, false, kByPosition},
    {"sm_90a",   8,   64, MaskKind::Any,     kAnyLength, 192, 128,  4,     16, RolePipeline::Overlap, true,  true,      2, false},
    {"sm_90a",   8,  128, MaskKind::Any,     kAnyLength, 192,  96,  4,     16, RolePipeline::Overlap, true,  true,      2, false, CaptureKind::Any, kByProducer},
    {"sm_90a",   8,  192, MaskKind::Any,     kAnyLength, 128, 128,  3,     12, RolePipeline::Overlap, true,  true,      2, false},
    {"sm_90a",   8,  256, MaskKind::Any,     kAnyLength, 128,  96,  3,     12, RolePipeline::Overlap, true,  true,      2, false},
};

// A program of one warp has all 16 rows of a matrix instruction; what it lacks
// in bytes under way, its neighbours on the multiprocessor have. sm_90a's for
// 16 rows are chosen by time (docs/Benchmarks.md): 96 KiB a multiprocessor are
// best, twice that up to 15 % worse. The others are chosen by those bytes.
static constexpr DecodeRow kDecodeTable[] = {
    // target   bits  D    rows   m   n  stages  warps  programs an SM
    {"cpu",     16,  576,    64, 16, 64,  1,      1,     1},
    {"cpu",     32,  576,    64, 16, 64,  1,      1,     1},
    {"sm_80",   16,   64,    16, 16, 64,  3,      1,     3},
    {"sm_80",   16,  128,    16, 16, 32,  3,      1,     3},
    {"sm_80",   16,  256,    16, 16, 32,  2,      1,     2},
    {"sm_80",   16,  576,    16, 16, 16,  2,      1,     2},
    {"sm_80",   16,   32,   128, 64, 32,  2,      4,     6},
    {"sm_80",   16,  128,   128, 64, 64,  2,      4,     2},
    {"sm_80",   16,  256,   128, 64, 32,  2,      4,     1},
    {"sm_80",   16,  576,   128, 64, 16,  2,      4,     1},
    {"sm_80",   32,  128,    16, 16, 16,  2,      1,     4},
    {"sm_80",   32,  256,    16, 16, 16,  2,      1,     2},
    {"sm_80",   32,  576,    16, 16, 16,  2,      1,     1},
    {"sm_90a",  16,   64,    16, 16, 64,  3,      1,     2},
    {"sm_90a",  16,   96,    16, 16, 64,  2,      1,     2},
    {"sm_90a",  16,  128,    16, 16, 32,  3,      1,     2},
    {"sm_90a",  16,  192,    16, 16, 16,  3,      1,     3},
    {"sm_90a",  16,  256,    16, 16, 32,  2,      1,     2},
    {"sm_90a",  16,  576,    16, 16, 16,  2,      1,     3},
    {"sm_90a",  16,  128,   128, 64, 64,  2,      4,     2},
    {"sm_90a",  16,  256,   128, 64, 32,  2,      4,     2},
    {"sm_90a",  16,  576,    64, 64, 32,  2,      4,     1},
    // One tile for all of 128 heads: what reads K and V again does so out of
    // the L2.
    {"sm_90a",  16,  576,   128, 128, 16, 3,      8,     1},
};
// clang-format on

/// Parts of the keys at most: the merge reads 16 of them at a time.
static constexpr int64_t kMaxSplits = 64;
/// Of results that must not depend on the batch.
static constexpr int64_t kInvariantSplitKeys = 1024;

ArrayRef<ScheduleRow> attn::getScheduleTable() { return kTable; }

/// Whether rules of `op` read captures at (..., query, key), all of 16 bits.
static bool reads16BitPlanes(AttentionOp op) {
  bool readsAny = false, readsOthers = false;
  for (Region *mod : {&op.getScoreMod(), &op.getMaskMod()}) {
    // A score_mod takes the score first; batch and head follow.
    unsigned query = mod == &op.getScoreMod() ? 3 : 2;
    mod->walk([&](CaptureLoadOp load) {
      ValueRange indices = load.getIndices();
      ValueRange position = mod->getArguments().slice(query, 2);
      if (indices.size() < 2 || indices.take_back(2) != position)
        return;
      bool is16Bit = load.getType().getIntOrFloatBitWidth() == 16;
      (is16Bit ? readsAny : readsOthers) = true;
    });
  }
  return readsAny && !readsOthers;
}

/// Whether the only rule of `op` is a mask that reads at most one integer of
/// each query and one of each key.
static bool readsPairsOfIntegers(AttentionOp op) {
  Region &mod = op.getMaskMod();
  if (op.hasScoreMod() || mod.empty())
    return false;
  // Batch and head come first, and are the same for all of a tile.
  ValueRange position = mod.getArguments().slice(2, 2);
  auto isSame = [&](Value index) {
    return llvm::is_contained(mod.getArguments().take_front(2), index) ||
           matchPattern(index, m_Constant());
  };
  int64_t numLoads[2] = {0, 0};
  WalkResult result = mod.walk([&](CaptureLoadOp load) {
    ValueRange indices = load.getIndices();
    if (llvm::all_of(indices, isSame))
      return WalkResult::advance();
    const bool isOfKey = indices.back() == position[1];
    if ((!isOfKey && indices.back() != position[0]) ||
        !llvm::all_of(indices.drop_back(), isSame) ||
        !load.getType().isInteger() ||
        load.getType().getIntOrFloatBitWidth() == 1 ||
        load.getType().getIntOrFloatBitWidth() > 32 || ++numLoads[isOfKey] > 1)
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return !result.wasInterrupted();
}

CaptureKind attn::getCaptureKind(AttentionOp op) {
  if (!op.readsCapturesByPosition())
    return CaptureKind::Any;
  if (reads16BitPlanes(op))
    return CaptureKind::Planes16Bit;
  return readsPairsOfIntegers(op) ? CaptureKind::PairsOfIntegers
                                  : CaptureKind::ByPosition;
}

/// Whether a row for `kind` serves captures that are of kind `own`.
static bool includes(CaptureKind kind, CaptureKind own) {
  return kind == CaptureKind::Any || kind == own ||
         (kind == CaptureKind::ByPosition && own != CaptureKind::Any);
}

/// Whether the mask shows a query the key that lies `distance` behind it, of
/// queries and keys that are many more than that.
static FailureOr<bool> isVisible(Region &mask, int64_t distance) {
  constexpr int64_t kLength = 1 << 28;
  // What has no value, as of a shift too far, is no error here.
  tile::ScalarInterpreter interpreter(/*isQuiet=*/true);
  // Batch and head are the first.
  const int64_t position[] = {0, 0, kLength / 2, kLength / 2 - distance};
  for (auto [argument, value] :
       llvm::zip(mask.getArguments().take_front(4), position))
    interpreter.set(argument, value);
  mask.walk([&](Operation *op) {
    if (isa<QLenOp, KVLenOp>(op))
      interpreter.set(op->getResult(0), kLength);
  });
  FailureOr<int64_t> visible =
      interpreter.evaluate(mask.front().getTerminator()->getOperand(0));
  if (failed(visible))
    return failure();
  return *visible != 0;
}

/// Whether the mask is integer arithmetic on positions and lengths that always
/// has a value. Divisions, which make patterns, aren't taken.
static bool isPlainArithmetic(Region &mask) {
  auto isInteger = [](Type type) { return type.isInteger(); };
  WalkResult result = mask.walk([&](Operation *op) {
    bool isTaken = isa<QLenOp, KVLenOp, YieldOp, math::AbsIOp>(op) ||
                   (isa<arith::ArithDialect>(op->getDialect()) &&
                    !isa<arith::CeilDivSIOp, arith::CeilDivUIOp, arith::DivSIOp,
                         arith::DivUIOp, arith::FloorDivSIOp, arith::RemSIOp,
                         arith::RemUIOp>(op));
    bool hasIntegers = llvm::all_of(op->getOperandTypes(), isInteger) &&
                       llvm::all_of(op->getResultTypes(), isInteger);
    return isTaken && hasIntegers ? WalkResult::advance()
                                  : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

MaskKind attn::getMaskKind(AttentionOp op) {
  // Wider ones are as fast with the rows for all masks.
  constexpr int64_t kFar = 2048;
  if (!op.hasMaskMod())
    return MaskKind::Without;
  if (!isPlainArithmetic(op.getMaskMod()))
    return MaskKind::With;
  bool seesFar =
      llvm::any_of(ArrayRef<int64_t>{-kFar, kFar}, [&](int64_t distance) {
        FailureOr<bool> visible = isVisible(op.getMaskMod(), distance);
        return failed(visible) || *visible;
      });
  return seesFar ? MaskKind::With : MaskKind::Window;
}

/// Whether a row for `kind` serves the mask of `op`, which is only evaluated
/// for windows.
static bool includes(MaskKind kind, AttentionOp op) {
  switch (kind) {
  case MaskKind::Any:
    return true;
  case MaskKind::Without:
    return !op.hasMaskMod();
  case MaskKind::With:
    return op.hasMaskMod();
  case MaskKind::Window:
    return getMaskKind(op) == MaskKind::Window;
  }
  llvm_unreachable("unknown kind of mask");
}

bool ScheduleRow::serves(AttentionOp op, const TargetInfo &info) const {
  return target == info.name && includes(captures, getCaptureKind(op)) &&
         elementBits == op.getElementType().getIntOrFloatBitWidth() &&
         std::max(op.getQKHeadDim(), op.getVHeadDim()) <= maxHeadDim &&
         includes(mask, op);
}

/// Of the output, whose rows a warp holds in registers.
static constexpr int64_t kMaxProgramColumns = 256;

/// Columns of V that a program computes: where the output has no room in the
/// registers, programs share them evenly.
static int64_t getVColumns(AttentionOp op, StringRef target) {
  constexpr int64_t kGranule = 64;
  int64_t columns = op.getVHeadDim();
  bool isWide = std::max(op.getQKHeadDim(), columns) > kMaxProgramColumns;
  // Next to the parts that f32 is split into for its products.
  int64_t maxColumns = op.getElementType().isF32() && isWide
                           ? kMaxProgramColumns / 2
                           : kMaxProgramColumns;
  if (columns <= maxColumns || !TargetInfo::lookup(target)->isGPU)
    return 0;
  int64_t programs = llvm::divideCeil(columns, maxColumns);
  return llvm::alignTo(llvm::divideCeil(columns, programs), kGranule);
}

ScheduleAttr ScheduleRow::getSchedule(AttentionOp op) const {
  MLIRContext *context = op.getContext();
  WarpRolesAttr roles;
  if (TargetInfo::lookup(target)->hasWarpRoles)
    roles = WarpRolesAttr::get(context, pipeline, lazyRescale, persistent,
                               qStages, tmaStore, vTranspose);
  return ScheduleAttr::get(context, blockM, blockN, numStages, numWarps, roles,
                           DecodeAttr(), getVColumns(op, target));
}

SmallVector<const ScheduleRow *> attn::lookupRows(AttentionOp op,
                                                  const TargetInfo &target,
                                                  ArrayRef<ScheduleRow> table) {
  int64_t qLen = cast<ShapedType>(op.getQ().getType()).getDimSize(2);
  SmallVector<const ScheduleRow *> rows;
  // Lengths up to this one have a row.
  int64_t covered = ShapedType::isDynamic(qLen) ? 0 : qLen - 1;
  for (const ScheduleRow &row : table) {
    if (!row.serves(op, target) || row.maxQLen <= covered)
      continue;
    rows.push_back(&row);
    covered = row.maxQLen;
    if (!ShapedType::isDynamic(qLen))
      break;
  }
  return rows;
}

//===----------------------------------------------------------------------===//
// Few queries
//===----------------------------------------------------------------------===//

ArrayRef<DecodeRow> attn::getDecodeTable() { return kDecodeTable; }

bool DecodeRow::serves(AttentionOp op, const TargetInfo &info) const {
  return target == info.name &&
         elementBits == op.getElementType().getIntOrFloatBitWidth() &&
         std::max(op.getQKHeadDim(), op.getVHeadDim()) <= maxHeadDim;
}

int64_t DecodeRow::getMaxQLen(AttentionOp op) const {
  return op.getNumQueryHeads() == 0
             ? 0
             : maxRows * op.getNumKVHeads() / op.getNumQueryHeads();
}

ScheduleAttr DecodeRow::getSchedule(AttentionOp op) const {
  MLIRContext *context = op.getContext();
  auto decode =
      DecodeAttr::get(context, kMaxSplits, programsPerSM,
                      op.getBatchInvariant() ? kInvariantSplitKeys : 0);
  return ScheduleAttr::get(context, blockM, blockN, numStages, numWarps,
                           WarpRolesAttr(), decode, getVColumns(op, target));
}

SmallVector<const DecodeRow *>
attn::lookupDecodeRows(AttentionOp op, const TargetInfo &target,
                       ArrayRef<DecodeRow> table) {
  int64_t qLen = cast<ShapedType>(op.getQ().getType()).getDimSize(2);
  // Only the device knows how many of them a packed sequence has.
  if (op.getCuQ())
    qLen = ShapedType::kDynamic;
  SmallVector<const DecodeRow *> rows;
  // Lengths up to this one have a row.
  int64_t covered =
      ShapedType::isDynamic(qLen) ? 0 : std::max<int64_t>(qLen, 1) - 1;
  for (const DecodeRow &row : table) {
    if (!row.serves(op, target) || row.getMaxQLen(op) <= covered)
      continue;
    rows.push_back(&row);
    covered = row.getMaxQLen(op);
    if (!ShapedType::isDynamic(qLen))
      break;
  }
  return rows;
}

// Limits of kernels with warp roles.
static constexpr int64_t kWarpgroupRows = 64;
static constexpr int64_t kWarpgroupWarps = 4;
static constexpr int64_t kMaxRoleBlockN = 256;
static constexpr int64_t kRoleBlockBytes = 128;
static constexpr int64_t kQuantizedBlockBytes = 32;
// Barriers, posted numbers and the alignment of tiles, rounded up.
static constexpr int64_t kRoleReservedBytes = 2048;
// What a consumer's thread holds beside tiles: state of its rows, addresses.
static constexpr int64_t kReservedRegisters = 28;

/// A head dimension whose rows TMA doesn't take: it needs a multiple of 16
/// bytes.
static std::optional<int64_t> getHeadDimWithoutTMA(AttentionOp op) {
  int64_t bytes = op.getElementType().getIntOrFloatBitWidth() / 8;
  for (int64_t dim : {op.getQKHeadDim(), op.getVHeadDim()})
    if (dim == 0 || dim * bytes % 16 != 0)
      return dim;
  return std::nullopt;
}

std::string attn::getUnserved(AttentionOp op, const TargetInfo &target) {
  std::string what;
  llvm::raw_string_ostream os(what);
  int64_t bits = op.getElementType().getIntOrFloatBitWidth();
  bool isServedType = op.isQuantized() ? target.hasWarpRoles
                                       : !target.hasWarpRoles || bits == 16;
  if (!isServedType)
    os << '\'' << op.getElementType() << '\'';
  else if (auto dim = getHeadDimWithoutTMA(op); target.hasWarpRoles && dim)
    os << "a head dimension of " << *dim;
  else if (op.isQuantized() && op.hasDeviceLengths())
    os << "8-bit floats with lengths that only the device knows";
  else if (target.hasWarpRoles && op.getBlockTable())
    os << "a block_table, whose pages TMA can't follow,";
  return what;
}

LogicalResult attn::verifyTarget(AttentionOp op, const TargetInfo &target) {
  std::string unserved = getUnserved(op, target);
  if (unserved.empty())
    return success();
  InFlightDiagnostic diag = op.emitOpError("has no kernel for ")
                            << target.name << ", which doesn't serve "
                            << unserved;
  if (!op.isQuantized())
    return diag << "; use target sm_80, which the same GPU runs";
  if (target.hasWarpRoles)
    return diag << "; leave cu_q, cu_k, kv_len and block_table out, or convert "
                   "q, k and v to bf16";
  return diag << "; 8-bit floats need the fused kernel of sm_90a, and tensors "
                 "that lie at multiples of 16 bytes: convert q, k and v to "
                 "bf16 for others";
}

static RolePipeline getPipeline(ScheduleAttr schedule) {
  WarpRolesAttr roles = schedule.getWarpRoles();
  if (!roles)
    roles = WarpRolesAttr::getDefault(schedule.getContext());
  return roles.getPipeline();
}

/// Where the output alone is too wide.
static void adviseColumns(AttentionOp op, InFlightDiagnostic &diag) {
  if (op.getVHeadDim() > kMaxProgramColumns)
    diag << ", or set v_columns to " << kMaxProgramColumns << " or less";
}

/// Refuses tiles that ptxas has no registers for, or only if it serialises the
/// products. The softmax makes P of scores in place. `overlap` holds the last
/// step's P beside the scores; `ahead` does so too, but what exceeds the
/// registers by that alone works, if slowly, and ptxas warns of it.
static LogicalResult verifyRegisters(AttentionOp op, ScheduleAttr schedule,
                                     const TargetInfo &target,
                                     int64_t available) {
  // Of 128 threads with 64 rows: f32 takes a register, P half or a quarter of
  // one.
  int64_t vColumns = schedule.getVColumnsOf(
      llvm::alignTo(op.getVHeadDim(), target.columnGranule));
  int64_t output = vColumns / 2;
  int64_t scores = schedule.getBlockN() / 2;
  int64_t weightsPerRegister = op.isQuantized() ? 4 : 2;
  RolePipeline pipeline = getPipeline(schedule);
  bool isAhead = pipeline == RolePipeline::Ahead;
  int64_t weights =
      pipeline == RolePipeline::Overlap ? scores / weightsPerRegister : 0;
  int64_t needed =
      output + (isAhead ? 2 : 1) * scores + weights + kReservedRegisters;
  if (needed <= available)
    return success();
  InFlightDiagnostic diag = op.emitOpError("schedule needs about ");
  diag << needed << " registers a consumer thread, which has " << available
       << " with block_m = " << schedule.getBlockM() << ": output " << output
       << " + scores " << (isAhead ? "2 * " : "") << scores;
  if (weights)
    diag << " + weights " << weights;
  diag << " + " << kReservedRegisters << "; lower block_n or block_m";
  if (pipeline != RolePipeline::Simple)
    diag << ", or take pipeline = simple";
  adviseColumns(op, diag);
  return diag;
}

/// Refuses an output that one product of a consumer can't have. ptxas gives an
/// instruction no more registers than a thread has at the launch, whatever
/// setmaxnreg adds.
static LogicalResult verifyOutputRegisters(AttentionOp op,
                                           ScheduleAttr schedule,
                                           const TargetInfo &target) {
  constexpr int64_t kRegistersOfSM = 65536;
  int64_t threads = 32 * schedule.getNumWarps();
  int64_t atLaunch = llvm::alignDown(kRegistersOfSM / threads, 8);
  int64_t output = schedule.getVColumnsOf(
                       llvm::alignTo(op.getVHeadDim(), target.columnGranule)) /
                   2;
  if (output + kReservedRegisters <= atLaunch)
    return success();
  InFlightDiagnostic diag = op.emitOpError("schedule needs about ");
  diag << output + kReservedRegisters << " registers for a product, and "
       << threads << " threads begin with " << atLaunch << " each: output "
       << output << " + " << kReservedRegisters << "; lower block_m";
  adviseColumns(op, diag);
  return diag;
}

/// What a kernel with warp roles can serve.
static LogicalResult verifyWarpRoles(AttentionOp op, ScheduleAttr schedule,
                                     const TargetInfo &target) {
  if (failed(verifyTarget(op, target)))
    return failure();
  int64_t warpgroups = schedule.getBlockM() / kWarpgroupRows;
  const RegisterSplit *split = RegisterSplit::lookup(warpgroups);
  if (schedule.getBlockM() % kWarpgroupRows != 0 || !split)
    return op.emitOpError("schedule: block_m = ")
           << schedule.getBlockM()
           << " must be 64, 128, 192 or 256: 64 rows a consumer warpgroup";
  int64_t numWarps = kWarpgroupWarps * (1 + warpgroups);
  if (schedule.getNumWarps() != numWarps)
    return op.emitOpError("schedule: num_warps = ")
           << schedule.getNumWarps() << " must be " << numWarps
           << ": 4 for the producer and 4 for every 64 rows of block_m";
  if (schedule.getBlockN() > kMaxRoleBlockN)
    return op.emitOpError("schedule: block_n = ")
           << schedule.getBlockN() << " must be at most " << kMaxRoleBlockN;
  if (getPipeline(schedule) == RolePipeline::Ahead &&
      schedule.getNumStages() < 2)
    return op.emitOpError("schedule: num_stages = ")
           << schedule.getNumStages()
           << " must be at least 2 with pipeline = ahead, whose consumers hold "
              "two K tiles at a time";
  WarpRolesAttr roles = schedule.getWarpRoles();
  if (roles && roles.getVTranspose() == VTranspose::Producer &&
      !op.isQuantized())
    return op.emitOpError("schedule: v_transpose = producer is for 8-bit "
                          "inputs; products of ")
           << op.getElementType() << " take v as it lies, leave it out";
  if (failed(verifyRegisters(op, schedule, target, split->consumer)))
    return failure();
  return verifyOutputRegisters(op, schedule, target);
}

LogicalResult attn::verifySchedule(AttentionOp op, ScheduleAttr schedule,
                                   const TargetInfo &target) {
  DecodeAttr decode = schedule.getDecode();
  if (decode && op.isQuantized())
    return op.emitOpError("on 8-bit inputs has no kernel for decode; leave "
                          "decode out of the schedule");
  if (op.getBatchInvariant() && decode && decode.splits() &&
      decode.getSplitKeys() == 0)
    return op.emitOpError("is batch_invariant, but its schedule chooses parts "
                          "by the device and the batch; set split_keys, or "
                          "max_splits = 1");
  if (!target.isGPU)
    return success();
  bool hasRoles = target.hasWarpRoles && !decode;
  if (hasRoles && failed(verifyWarpRoles(op, schedule, target)))
    return failure();
  if (!hasRoles && !llvm::isPowerOf2_64(schedule.getNumWarps()))
    return op.emitOpError("schedule: num_warps = ")
           << schedule.getNumWarps() << " must be a power of two on "
           << target.name;
  int64_t rowsPerWarpStep = 16 * schedule.getNumWarps();
  if (!hasRoles && schedule.getBlockM() % rowsPerWarpStep != 0)
    return op.emitOpError("schedule: block_m = ")
           << schedule.getBlockM()
           << " must be a multiple of 16 * num_warps = " << rowsPerWarpStep;
  // The depth of a matrix instruction.
  int64_t depth = op.isQuantized() ? 32 : 16;
  if (schedule.getBlockN() % depth != 0)
    return op.emitOpError("schedule: block_n = ")
           << schedule.getBlockN() << " must be a multiple of " << depth;
  int64_t bytes = op.getElementType().getIntOrFloatBitWidth() / 8;
  // TMA fills whole blocks of columns.
  int64_t granule = target.columnGranule;
  if (hasRoles)
    granule = op.isQuantized() ? kQuantizedBlockBytes : kRoleBlockBytes / bytes;
  int64_t qkColumns = llvm::alignTo(op.getQKHeadDim(), granule);
  int64_t vColumns =
      schedule.getVColumnsOf(llvm::alignTo(op.getVHeadDim(), granule));
  if (schedule.getVColumns() % granule != 0)
    return op.emitOpError("schedule: v_columns = ")
           << schedule.getVColumns() << " must be a multiple of " << granule
           << " on " << target.name;
  int64_t q = schedule.getBlockM() * qkColumns * bytes;
  int64_t k = schedule.getBlockN() * qkColumns * bytes;
  int64_t v = schedule.getBlockN() * vColumns * bytes;
  WarpRolesAttr roles = schedule.getWarpRoles();
  int64_t staging = 0;
  if (hasRoles && roles) {
    q *= roles.getQStages();
    if (roles.getVTranspose() == VTranspose::Producer)
      staging = kStagedValueTiles * v;
  }
  int64_t reserved = hasRoles ? kRoleReservedBytes : 0;
  int64_t total = q + schedule.getNumStages() * (k + v) + staging + reserved;
  if (total <= target.maxSharedBytes)
    return success();
  InFlightDiagnostic diag = op.emitOpError("schedule needs ");
  diag << total << " bytes of shared memory, but a program of " << target.name
       << " may use " << target.maxSharedBytes << ": q tile " << q << " + "
       << schedule.getNumStages() << " stages * (k tile " << k << " + v tile "
       << v << ")";
  if (staging)
    diag << " + " << kStagedValueTiles << " * v tile " << v
         << " that v_transpose = producer transposes";
  if (reserved)
    diag << " + " << reserved << " for barriers";
  diag << "; lower num_stages, block_n or block_m";
  adviseColumns(op, diag);
  return diag;
}

LogicalResult attn::verifySchedules(AttentionOp op, const TargetInfo &target) {
  if (op.getBatchInvariant() && op.getCuQ() && op.getShortSchedulesAttr())
    return op.emitOpError("is batch_invariant, but takes one of its schedules "
                          "by the mean length of packed sequences; leave "
                          "short_schedules out");
  if (ArrayAttr shorter = op.getShortSchedulesAttr())
    for (auto entry : shorter.getAsRange<ShortScheduleAttr>())
      if (failed(verifySchedule(op, entry.getSchedule(), target)))
        return failure();
  return verifySchedule(op, op.getScheduleAttr(), target);
}
