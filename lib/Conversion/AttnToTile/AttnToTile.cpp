//===- AttnToTile.cpp - attn.attention to one fused kernel ----------------===//

#include "KeyPadding.h"
#include "MaskPrepass.h"
#include "RuleReader.h"
#include "ScoreTerms.h"
#include "SequenceBuilder.h"
#include "TransposeValues.h"
#include "attn/Analysis/KVRanges.h"
#include "attn/Analysis/MaskAnalysis.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/IR/AttnSupport.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "attn/Dialect/Tile/Transforms/RegionInliner.h"
#include "attn/Target/ScheduleTable.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::attn {
#define GEN_PASS_DEF_CONVERTATTNTOTILE
#include "attn/Conversion/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
/// How the matrix products of one kernel run, and what its name calls it.
struct MatmulChoice {
  tile::MatmulPath path;
  StringRef name;
};

MatmulChoice chooseMatmul(Type element, const TargetInfo &target,
                          bool hasRoles) {
  bool isF32 = element.isF32();
  if (!target.isGPU)
    return {isF32 ? tile::MatmulPath::FMA : tile::MatmulPath::MMA, "cpu"};
  if (isF32)
    return {tile::MatmulPath::TF32x3, "s1688_tf32x3"};
  if (hasRoles)
    return {tile::MatmulPath::MMA, "wgmma"};
  return {tile::MatmulPath::MMA, "s16816"};
}

/// The query heads of `op` that share a KV head.
int64_t getGroupSize(AttentionOp op) {
  int64_t numKVHeads = std::max<int64_t>(op.getNumKVHeads(), 1);
  return std::max<int64_t>(op.getNumQueryHeads() / numKVHeads, 1);
}

/// The query lengths from `first` to `last` and the schedule for them.
struct ScheduledLengths {
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  ScheduleAttr schedule;
  int64_t first = 0;
  int64_t last = kNoLimit;

  bool isAll() const { return first == 0 && last == kNoLimit; }
};

SmallVector<ScheduledLengths> getScheduledLengths(AttentionOp op) {
  SmallVector<ScheduledLengths> result;
  int64_t first = 0;
  if (ArrayAttr shorter = op.getShortSchedulesAttr())
    for (auto entry : shorter.getAsRange<ShortScheduleAttr>()) {
      result.push_back({entry.getSchedule(), first, entry.getMaxQLen()});
      first = entry.getMaxQLen() + 1;
    }
  result.push_back({op.getScheduleAttr(), first});
  return result;
}

std::string getKernelName(AttentionOp op, MatmulChoice matmul) {
  std::string name;
  llvm::raw_string_ostream os(name);
  os << "fused_attn_" << matmul.name << '_' << op.getElementType() << "_d"
     << op.getQKHeadDim();
  if (op.getVHeadDim() != op.getQKHeadDim())
    os << '_' << op.getVHeadDim();
  return name;
}

std::string getKernelName(AttentionOp op, MatmulChoice matmul,
                          const ScheduledLengths &lengths) {
  std::string name = getKernelName(op, matmul);
  llvm::raw_string_ostream os(name);
  if (lengths.schedule.getDecode())
    os << "_decode";
  if (lengths.last != ScheduledLengths::kNoLimit)
    os << "_q" << lengths.last;
  return name;
}

/// What a launch of a kernel whose keys may be in several parts passes beside
/// the operator's operands.
struct PartOperands {
  /// f32, [batch, KV head, part, row, dim]: sums of values, weighted by
  /// exponentials; and [batch, KV head, 2 * part, row]: what the exponentials
  /// are relative to, which is above the scores or near, and behind it their
  /// sum. An lse instead of both wouldn't do for scores of 1e38.
  Value outputs, statistics;
  /// i32.
  Value numParts;

  static SmallVector<Type> getTypes(AttentionOp op, int64_t vColumns) {
    Type f32 = Float32Type::get(op.getContext());
    Type i32 = IntegerType::get(op.getContext(), 32);
    constexpr int64_t kDynamic = ShapedType::kDynamic;
    int64_t heads = op.getNumKVHeads();
    return {
        MemRefType::get({kDynamic, heads, kDynamic, kDynamic, vColumns}, f32),
        MemRefType::get({kDynamic, heads, kDynamic, kDynamic}, f32), i32};
  }
  static PartOperands get(ValueRange values) {
    return {values[0], values[1], values[2]};
  }
  SmallVector<Value> getValues() const {
    return {outputs, statistics, numParts};
  }
};

/// How the kernel's warps share the work; none if `target` has no such kernels.
WarpRolesAttr getWarpRoles(ScheduleAttr schedule, const TargetInfo &target) {
  if (!target.hasWarpRoles || schedule.getDecode())
    return {};
  WarpRolesAttr roles = schedule.getWarpRoles();
  return roles ? roles : WarpRolesAttr::getDefault(schedule.getContext());
}

/// 8-bit weights are those of f32 times 2 to this power, which uses the type's
/// exponents: tile-defer-rescale lets them grow by 2^3 more, to 2^8.
constexpr int32_t kQuantizedExponent = 5;

/// The merge of so many parts or fewer reads memory for as many.
constexpr int64_t kMergePadding = 4;

/// Whether kernels with this schedule read V from a transposed copy. Others
/// leave it to convert-tile-to-hopper to have it transposed.
static bool hasTransposedValues(AttentionOp op, ScheduleAttr schedule) {
  WarpRolesAttr roles = schedule.getWarpRoles();
  bool isInKernel = roles && roles.getVTranspose() == VTranspose::Producer;
  return op.isQuantized() && !isInKernel;
}

/// Builds the body of the fused kernel of one attention op.
class FusedKernelBuilder {
public:
  FusedKernelBuilder(AttentionOp op, const TargetInfo &target,
                     const ScheduledLengths &lengths, Value valueOperand,
                     const std::optional<MaskTiles> &maskTiles)
      : op(op), valueOperand(valueOperand), maskTiles(maskTiles),
        lengths(lengths), schedule(lengths.schedule),
        roles(getWarpRoles(schedule, target)), decode(schedule.getDecode()),
        matmul(chooseMatmul(op.getElementType(), target, bool(roles))),
        builder(op.getLoc(), op.getContext()), sequences(op, args, builder),
        interleave(decode ? getGroupSize(op) : 1), blockM(schedule.getBlockM()),
        blockN(schedule.getBlockN()), columnGranule(target.columnGranule),
        columns(schedule.getVColumnsOf(padHeadDim(op.getVHeadDim()))),
        isGPU(target.isGPU) {}

  /// The operands that the kernel takes, in the order of its arguments.
  /// `values` is v, or what stands for it.
  static SmallVector<Value>
  getKernelOperands(AttentionOp op, Value values,
                    const std::optional<MaskTiles> &maskTiles = std::nullopt) {
    SmallVector<Value> operands = {op.getQ(), op.getK(), values, op.getO()};
    if (op.getLse())
      operands.push_back(op.getLse());
    if (op.getScaleValue())
      operands.push_back(op.getScaleValue());
    if (op.getSink())
      operands.push_back(op.getSink());
    for (Value scale : {op.getQScale(), op.getKScale(), op.getVScale()})
      if (scale)
        operands.push_back(scale);
    llvm::append_range(operands, op.getCaptures());
    for (Value operand :
         {op.getCuQ(), op.getCuK(), op.getKvLen(), op.getBlockTable()})
      if (operand)
        operands.push_back(operand);
    if (maskTiles)
      operands.append({maskTiles->ranges, maskTiles->tiles});
    return operands;
  }

  tile::KernelOp build() {
    tile::KernelOp kernel =
        createKernel(getKernelName(op, matmul, lengths),
                     static_cast<int32_t>(schedule.getNumWarps()));
    kernel.setNumStages(static_cast<uint32_t>(schedule.getNumStages()));
    if (roles)
      kernel->setAttr(WarpRolesAttr::getKernelAttrName(), roles);
    buildProgram();
    inputScale = buildInputScale();
    softmaxScale = floatConstant(1.0f);
    q = loadTile(sequences.getQueries(op.getQ()),
                 {blockM, padHeadDim(op.getQKHeadDim())}, {head, qStart, zero},
                 interleave);
    buildKVLoop();
    Value acc = loop.getResult(0), max = loop.getResult(1),
          sum = loop.getResult(2);
    if (hasParts())
      buildPartEpilogue(acc, max, sum);
    else
      buildEpilogue(acc, max, sum);
    tile::ReturnOp::create(builder);
    return kernel;
  }

  /// Whether the kernel's results may be of parts of the keys.
  bool hasParts() const { return decode && decode.splits(); }

  /// The kernel that merges parts, a few rows a program.
  tile::KernelOp buildMerge() {
    blockM = getMergeRows();
    columns = getMergeColumns();
    tile::KernelOp kernel =
        createKernel((getKernelName(op, matmul) + "_merge"), /*numWarps=*/1);
    buildMergeProgram();
    softmaxScale = floatConstant(1.0f);
    scf::ForOp merged = buildMergeLoop();
    buildEpilogue(merged.getResult(0), merged.getResult(1),
                  merged.getResult(2));
    tile::ReturnOp::create(builder);
    return kernel;
  }

  int64_t getVColumns() { return padHeadDim(op.getVHeadDim()); }

  /// The programs that share the columns of a tile's output, and those of a
  /// merge.
  int64_t getColumnPrograms() {
    return llvm::divideCeil(getVColumns(), columns);
  }
  int64_t getMergeColumnPrograms() {
    return llvm::divideCeil(getVColumns(), getMergeColumns());
  }

  /// A merge has a warp on a GPU: as many rows as it holds at a time, if each
  /// thread stores 16 bytes.
  int64_t getMergeRows() {
    int64_t bytes = op.getOutputElementType().getIntOrFloatBitWidth() / 8;
    return isGPU ? std::max<int64_t>(512 / (getMergeColumns() * bytes), 1) : 1;
  }

private:
  //===--------------------------------------------------------------------===//
  // Small values
  //===--------------------------------------------------------------------===//

  Value arg(Value operand) { return args.lookup(operand); }
  Value constant(TypedAttr attr) {
    return arith::ConstantOp::create(builder, attr);
  }
  Value floatConstant(float value) {
    return constant(builder.getF32FloatAttr(value));
  }
  Value splat(float value, ArrayRef<int64_t> shape) {
    auto type = RankedTensorType::get(shape, builder.getF32Type());
    return constant(DenseElementsAttr::get(type, value));
  }
  RankedTensorType rowType() {
    return RankedTensorType::get(blockM, builder.getF32Type());
  }
  /// A row statistic, repeated along the columns of a tile.
  Value broadcastRows(Value rows, Value tileValue) {
    return tile::BroadcastOp::create(builder, tileValue.getType(), rows,
                                     /*dim=*/0);
  }
  Value getSize(Value operand, int64_t dim) {
    Value size = builder.createOrFold<memref::DimOp>(builder.getLoc(),
                                                     arg(operand), dim);
    return builder.createOrFold<arith::IndexCastOp>(builder.getLoc(),
                                                    builder.getI32Type(), size);
  }

  //===--------------------------------------------------------------------===//
  // Kernel
  //===--------------------------------------------------------------------===//

  tile::KernelOp createKernel(const Twine &name, int32_t numWarps) {
    SmallVector<Value> operands =
        getKernelOperands(op, valueOperand, maskTiles);
    auto types = llvm::to_vector(ValueRange(operands).getTypes());
    if (hasParts())
      llvm::append_range(types, PartOperands::getTypes(op, getVColumns()));
    auto kernel = tile::KernelOp::create(builder, name.str(), types, numWarps);
    kernel->setAttr(ScheduleAttr::getKernelAttrName(), schedule);
    auto arguments = ValueRange(kernel.getBody().getArguments());
    args.map(operands, arguments.take_front(operands.size()));
    builder.setInsertionPointToStart(&kernel.getBody().front());
    if (hasParts())
      parts = PartOperands::get(arguments.drop_front(operands.size()));
    zero = i32(0);
    minusInf = floatConstant(-std::numeric_limits<float>::infinity());
    return kernel;
  }

  Value i32(int64_t value) {
    return constant(builder.getI32IntegerAttr(value));
  }
  template <typename OpT>
  Value binary(Value a, Value b) {
    return OpT::create(builder, a, b);
  }

  void buildProgram() {
    if (decode)
      return buildDecodeProgram();
    Value numTiles = sequences.countTiles(blockM);
    // An operator without heads launches no program, but must not divide by 0.
    Value heads = i32(std::max<int64_t>(op.getNumQueryHeads(), 1));
    Value id =
        takeColumns(tile::ProgramIdOp::create(builder, builder.getI32Type()));
    Value rowTile = op.getCuQ() ? takePackedTile(id, numTiles)
                                : takeTile(id, numTiles, heads);
    batch = sequences.getSequence();
    qLen = sequences.getQueryLength();
    kvLen = sequences.getKeyLength();
    qStart = binary<arith::MulIOp>(rowTile, i32(blockM));
    firstTile =
        maskTiles && op.getCuQ() ? sequences.getFirstTile(blockM) : zero;
    kvHead = buildKVHead();
    keysBegin = zero;
    keysEnd = kvLen;
    if (!op.getCuQ())
      return;
    hideKeysOfNoRow();
    keysEnd = kvLen;
  }

  /// Decides on the columns of V, neighbours among the programs, which read the
  /// same keys; returns the number of the rest.
  Value takeColumns(Value id) {
    firstColumn = zero;
    if (getColumnPrograms() == 1)
      return id;
    auto [number, rest] = takeOff(id, i32(getColumnPrograms()));
    firstColumn = binary<arith::MulIOp>(number, i32(columns));
    return rest;
  }

  /// Whether captures that are read by position are the same in all batches.
  bool sharesCapturesOfHead() {
    auto isBroadcast = [](OpOperand &use) {
      auto load = dyn_cast<CaptureLoadOp>(use.getOwner());
      return load && use.getOperandNumber() > 0 &&
             load.isBroadcast(use.getOperandNumber() - 1);
    };
    return op.readsCapturesByPosition() &&
           llvm::all_of(
               ArrayRef<Region *>{&op.getScoreMod(), &op.getMaskMod()},
               [&](Region *mod) {
                 // A score_mod takes the score first.
                 unsigned batchNumber = mod == &op.getScoreMod() ? 1 : 0;
                 return mod->empty() ||
                        llvm::all_of(mod->getArgument(batchNumber).getUses(),
                                     isBroadcast);
               });
  }

  /// Decides on head and sequence; returns the row tile.
  Value takeTile(Value id, Value numTiles, Value heads) {
    // Heads that share a capture read the same part of it at the same time,
    // out of the L2.
    bool isGrouped = roles && roles.getPersistent() &&
                     (op.hasMaskMod() || op.readsCapturesByPosition());
    auto [headAndBatch, rowTile] = isGrouped
                                       ? orderLongestFirst(id, numTiles, heads)
                                       : orderByHead(id, numTiles);
    if (isGrouped && sharesCapturesOfHead()) {
      Value batches = binary<arith::MaxSIOp>(getSize(op.getQ(), 0), i32(1));
      head = binary<arith::DivUIOp>(headAndBatch, batches);
      sequences.setSequence(binary<arith::RemUIOp>(headAndBatch, batches));
    } else {
      head = binary<arith::RemUIOp>(headAndBatch, heads);
      sequences.setSequence(binary<arith::DivUIOp>(headAndBatch, heads));
    }
    if (op.hasMaskMod())
      rowTile = binary<arith::SubIOp>(binary<arith::SubIOp>(numTiles, i32(1)),
                                      rowTile);
    return rowTile;
  }

  /// The same for packed sequences: all of one head, from the last row if there
  /// is a mask, which most often hides keys from the first ones.
  Value takePackedTile(Value id, Value numTiles) {
    Value number;
    std::tie(head, number) = orderByHead(id, numTiles);
    if (op.hasMaskMod())
      number = binary<arith::SubIOp>(binary<arith::SubIOp>(numTiles, i32(1)),
                                     number);
    sequences.setSequence(sequences.findSequence(number, blockM));
    return sequences.getTileInSequence(number, blockM);
  }

  /// `number` less whole multiples of `size`, and how many of them there are.
  std::pair<Value, Value> takeOff(Value number, Value size) {
    return {binary<arith::RemUIOp>(number, size),
            binary<arith::DivUIOp>(number, size)};
  }

  Value divideRoundingUp(Value number, Value size) {
    Value rest = binary<arith::SubIOp>(size, i32(1));
    return binary<arith::DivUIOp>(binary<arith::AddIOp>(number, rest), size);
  }

  /// The rows of all heads that share a KV head.
  Value getNumRows() { return binary<arith::MulIOp>(qLen, i32(interleave)); }

  /// Programs with the same keys, for other rows, come one after the other;
  /// behind them those of other parts, of other KV heads, and of other batches,
  /// of which packed sequences have one.
  void buildDecodeProgram() {
    Value id =
        takeColumns(tile::ProgramIdOp::create(builder, builder.getI32Type()));
    auto [tile, rest] = takeOff(id, sequences.countTiles(blockM, interleave));
    if (hasParts())
      std::tie(part, rest) = takeOff(rest, parts.numParts);
    std::tie(kvHead, rest) = takeOffHeads(rest);
    if (op.getCuQ()) {
      sequences.setSequence(sequences.findSequence(tile, blockM, interleave));
      tile = sequences.getTileInSequence(tile, blockM, interleave);
    } else {
      sequences.setSequence(rest);
    }
    batch = sequences.getSequence();
    qLen = sequences.getQueryLength();
    kvLen = sequences.getKeyLength();
    qStart = binary<arith::MulIOp>(tile, i32(blockM));
    if (op.getCuQ())
      hideKeysOfNoRow();
    setKeys();
  }

  std::pair<Value, Value> takeOffHeads(Value number) {
    auto [first, rest] =
        takeOff(number, i32(std::max<int64_t>(op.getNumKVHeads(), 1)));
    head = binary<arith::MulIOp>(first, i32(interleave));
    return {first, rest};
  }

  /// Rows that don't exist see no key.
  void hideKeysOfNoRow() {
    Value exists = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt,
                                         qStart, getNumRows());
    kvLen = arith::SelectOp::create(builder, exists, kvLen, zero);
  }

  /// The keys of the program's part: whole steps, evenly, also of a sequence
  /// that is shorter than the tensor.
  void setKeys() {
    keysBegin = zero;
    keysEnd = kvLen;
    if (!hasParts())
      return;
    Value partKeys = i32(decode.getSplitKeys());
    if (decode.getSplitKeys() == 0) {
      Value steps = divideRoundingUp(kvLen, i32(blockN));
      partKeys = binary<arith::MulIOp>(divideRoundingUp(steps, parts.numParts),
                                       i32(blockN));
    }
    keysBegin =
        binary<arith::MinSIOp>(kvLen, binary<arith::MulIOp>(part, partKeys));
    keysEnd = binary<arith::MinSIOp>(
        kvLen, binary<arith::AddIOp>(keysBegin, partKeys));
  }

  /// Returns (head and batch, row tile).
  std::pair<Value, Value> orderByHead(Value id, Value numTiles) {
    Value rowTile = binary<arith::RemUIOp>(id, numTiles);
    return {binary<arith::DivUIOp>(id, numTiles), rowTile};
  }

  /// Programs that take one tile after the other should come to the long ones
  /// first, which under most masks are those of the last rows. So the later
  /// half of every head's tiles goes first, and the earlier half fills up what
  /// that leaves uneven. In each half the order is by length over as many heads
  /// as have their keys and values in the L2 together. Returns (head and batch,
  /// row tile from the last).
  std::pair<Value, Value> orderLongestFirst(Value id, Value numTiles,
                                            Value heads) {
    constexpr int64_t kL2Bytes = 32 << 20;
    int64_t keyBytes = (op.getQKHeadDim() + op.getVHeadDim()) *
                       op.getElementType().getIntOrFloatBitWidth() / 8;
    Value all = binary<arith::MulIOp>(heads, getSize(op.getQ(), 0));
    Value keys = binary<arith::MaxSIOp>(sequences.getKeyRoom(), i32(1));
    Value fitting = binary<arith::DivUIOp>(i32(kL2Bytes / keyBytes), keys);
    fitting = binary<arith::MulIOp>(fitting, i32(getGroupSize(op)));

    Value numShort = binary<arith::DivUIOp>(numTiles, i32(2));
    Value numLong = binary<arith::SubIOp>(numTiles, numShort);
    Value longTiles = binary<arith::MulIOp>(all, numLong);
    Value isLong = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, id,
                                         longTiles);
    auto choose = [&](Value ifLong, Value ifShort) -> Value {
      return arith::SelectOp::create(builder, isLong, ifLong, ifShort);
    };
    Value number = choose(id, binary<arith::SubIOp>(id, longTiles));
    // Divisors are at least 1, also for numbers beyond the last tile, which
    // only checks of the kernel ask for.
    auto atLeastOne = [&](Value value) {
      return binary<arith::MaxSIOp>(value, i32(1));
    };
    Value numInHead = atLeastOne(choose(numLong, numShort));
    // The earlier rows see half of the keys.
    fitting = choose(fitting, binary<arith::MulIOp>(fitting, i32(2)));

    Value group = atLeastOne(binary<arith::MinSIOp>(fitting, all));
    Value tilesOfGroup = binary<arith::MulIOp>(group, numInHead);
    Value first = binary<arith::MulIOp>(
        binary<arith::DivUIOp>(number, tilesOfGroup), group);
    Value rest = binary<arith::RemUIOp>(number, tilesOfGroup);
    // The last group may be smaller.
    Value size = atLeastOne(
        binary<arith::MinSIOp>(group, binary<arith::SubIOp>(all, first)));
    Value headAndBatch =
        binary<arith::AddIOp>(first, binary<arith::RemUIOp>(rest, size));
    Value rowTile = binary<arith::AddIOp>(choose(zero, numLong),
                                          binary<arith::DivUIOp>(rest, size));
    return {headAndBatch, rowTile};
  }

  Value buildKVHead() {
    int64_t groupSize = getGroupSize(op);
    return groupSize == 1 ? head : binary<arith::DivUIOp>(head, i32(groupSize));
  }

  /// Loads fill the columns beyond the head dimension with zeros, and stores
  /// drop them.
  int64_t padHeadDim(int64_t dim) {
    // The products of 8-bit types are twice as deep.
    return llvm::alignTo(std::max<int64_t>(dim, 1),
                         op.isQuantized() ? 2 * columnGranule : columnGranule);
  }

  //===--------------------------------------------------------------------===//
  // Scales of 8-bit inputs
  //===--------------------------------------------------------------------===//

  /// What the program's values of an input count; null if there is no scale.
  Value loadInputScale(Value scale, Value tensorHead) {
    if (!scale)
      return {};
    auto type = cast<MemRefType>(scale.getType());
    bool isForTensor = type.getRank() == 1 && type.getDimSize(0) == 1;
    SmallVector<Value> indices = {isForTensor ? zero : tensorHead};
    SmallVector<int64_t> inBounds = {0};
    if (type.getRank() == 2) {
      indices.insert(indices.begin(), batch);
      inBounds.push_back(1);
    }
    return tile::GatherOp::create(builder, builder.getF32Type(), arg(scale),
                                  indices, inBounds);
  }

  /// Of q times k; null if neither has one.
  Value buildInputScale() {
    Value ofQ = loadInputScale(op.getQScale(), head);
    Value ofK = loadInputScale(op.getKScale(), kvHead);
    if (ofQ && ofK)
      return binary<arith::MulFOp>(ofQ, ofK);
    return ofQ ? ofQ : ofK;
  }

  /// The first columns of a tensor's rows.
  Value loadTile(SequenceBuilder::Part part, std::array<int64_t, 2> shape,
                 ValueRange position, int64_t interleave = 1) {
    auto memref = cast<MemRefType>(part.memref.getType());
    auto type = RankedTensorType::get(shape, memref.getElementType());
    SmallVector<Value> indices = {part.batch};
    llvm::append_range(indices, position);
    return tile::LoadOp::create(builder, type, part.memref, indices,
                                interleave);
  }

  //===--------------------------------------------------------------------===//
  // KV loop
  //===--------------------------------------------------------------------===//

  void buildKVLoop() {
    SmallVector<Value> inits = {
        splat(0.0f, {blockM, columns}),
        tensor::SplatOp::create(builder, rowType(), minusInf),
        splat(0.0f, {blockM})};
    keys = sequences.getKeys(op.getK());
    // The transposed keys go to the end of the tensor (verifyTarget), with 0
    // where it is padding.
    if (!hasTransposedValues(op, schedule))
      values = sequences.getKeys(op.getV(), countVisibleKeys());
    loop = tile::KVLoopOp::create(
        builder, ValueRange(inits).getTypes(), keysBegin, keysBegin, keysBegin,
        keysEnd, blockN, inits, binary<arith::SubIOp>(getNumRows(), qStart),
        /*unordered=*/true);
    TypeRange carried = loop.getResultTypes();
    SmallVector<Value> qk =
        buildRegion(loop.getQk(), {}, carried,
                    [&](ValueRange args) { return buildQK(args[0]); });
    SmallVector<Value> score = buildRegion(
        loop.getScore(), ValueRange(qk).getTypes(), carried,
        [&](ValueRange args) { return buildScore(args[0], args[1]); });
    SmallVector<Value> softmax = buildRegion(
        loop.getSoftmax(), ValueRange(score).getTypes(), carried,
        [&](ValueRange args) { return buildSoftmax(args.drop_front()); });
    buildRegion(loop.getPv(), ValueRange(softmax).getTypes(), carried,
                [&](ValueRange args) { return buildPV(args); });
    if (scoreRamp.slope)
      startAtRamp();
  }

  /// Of V's rows; null if all of the sequence's count.
  Value countVisibleKeys() {
    if (!op.hasMaskMod())
      return {};
    RuleContext context;
    context.batch = batch;
    // Packed rows are of several.
    context.head = interleave > 1 ? Value() : head;
    context.qLen = qLen;
    context.kvLen = kvLen;
    for (Value capture : op.getCaptures())
      context.captures.push_back(arg(capture));
    return attn::countVisibleKeys(builder, op.getMaskMod(), context);
  }

  /// Fills a region with arguments (kv, what the last one yielded, carried).
  SmallVector<Value>
  buildRegion(Region &region, TypeRange previous, TypeRange carried,
              function_ref<SmallVector<Value>(ValueRange)> body) {
    OpBuilder::InsertionGuard guard(builder);
    SmallVector<Type> types = {builder.getI32Type()};
    llvm::append_range(types, previous);
    llvm::append_range(types, carried);
    Block *block =
        builder.createBlock(&region, region.end(), types,
                            SmallVector<Location>(types.size(), op.getLoc()));
    SmallVector<Value> yielded = body(block->getArguments());
    tile::YieldOp::create(builder, yielded);
    return yielded;
  }

  SmallVector<Value> buildQK(Value kv) {
    Value k = loadTile(keys, {blockN, padHeadDim(op.getQKHeadDim())},
                       {kvHead, kv, zero});
    Value init = splat(0.0f, {blockM, blockN});
    return {tile::MmaOp::create(builder, init.getType(), matmul.path, q, k,
                                init, /*transpose_b=*/true)};
  }

  SmallVector<Value> buildScore(Value kv, Value scores) {
    if (op.hasScoreMod())
      scores = buildScoreMod(kv, scores);
    else if (!foldIntoSoftmax(getScale()))
      scores = arith::MulFOp::create(
          builder, scores,
          tensor::SplatOp::create(builder, scores.getType(), getScale()));
    auto mask =
        tile::MaskOp::create(builder, scores.getType(), scores, qStart, kv);
    buildMask(mask.getBody());
    if (maskTiles) {
      mask.getBoundsMutable().assign(arg(maskTiles->ranges));
      mask.getBoundsIndicesMutable().assign(
          {maskTiles->hasBatches ? batch : zero,
           maskTiles->hasHeads ? head : zero, firstTile});
      mask.setBoundsRows(maskTiles->rows);
      mask.getTilesMutable().assign(arg(maskTiles->tiles));
    }
    return {mask};
  }

  /// Makes a positive constant factor of the scores the softmax's scale, which
  /// takes no operation of its own.
  bool foldIntoSoftmax(Value factor) {
    // That of 8-bit inputs, which is positive, goes along.
    auto product = factor.getDefiningOp<arith::MulFOp>();
    bool hasInputScale =
        inputScale && product && product.getRhs() == inputScale;
    if (hasInputScale)
      factor = product.getLhs();
    APFloat constant(0.0f);
    if (!matchPattern(factor, m_ConstantFloat(&constant)) ||
        constant.isNegative() || !constant.isNormal())
      return false;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loop);
    softmaxScale = floatConstant(constant.convertToFloat());
    if (hasInputScale)
      softmaxScale = binary<arith::MulFOp>(softmaxScale, inputScale);
    return true;
  }

  /// The body gets the scores before scaling. As far as it is linear in them,
  /// scaling and what it adds are one multiply-add, or no operation at all.
  Value buildScoreMod(Value kv, Value scores) {
    auto mod =
        tile::ScoreModOp::create(builder, scores.getType(), scores, qStart, kv);
    inlineScoreMod(mod.getBody());
    Block &body = mod.getBody().front();
    ScoreTerms terms;
    // A row's term would be in what parts are merged by, at its own precision.
    if (decode)
      terms.element = body.getTerminator()->getOperand(0);
    else
      terms = splitScore(body, qStart);
    if (terms.row)
      rowTerm = buildRowTerm(body, terms.row);

    OpBuilder::InsertionGuard guard(builder);
    auto yield = cast<tile::YieldOp>(body.getTerminator());
    builder.setInsertionPoint(yield);
    Value factor;
    if (terms.factor)
      factor = builder.createOrFold<arith::MulFOp>(builder.getLoc(),
                                                   terms.factor, getScale());
    if (factor && !terms.element && foldIntoSoftmax(factor)) {
      mod.erase();
      return scores;
    }
    std::optional<KeyRamp> ramp;
    if (factor && terms.element && canStartAtRamp())
      ramp = matchKeyRamp(body, terms.element);
    if (ramp && foldIntoSoftmax(factor)) {
      builder.setInsertionPoint(loop);
      scoreRamp = {cloneFrom(body, ramp->slope), cloneFrom(body, ramp->offset)};
      mod.erase();
      return scores;
    }
    yield->setOperand(0, combineTerms(body.getArgument(0), factor, terms));
    // What the terms replace.
    for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(body)))
      if (isOpTriviallyDead(&inner))
        inner.erase();
    return mod;
  }

  /// On targets with warp roles a product may start at a ramp, for nothing an
  /// element. Scales of 8-bit inputs aren't known to have an inverse, and wide
  /// outputs leave no registers for the ramp's operand.
  bool canStartAtRamp() {
    return roles && !op.isQuantized() && op.getVHeadDim() <= 128;
  }

  /// Lets the product of Q and K accumulate onto scoreRamp.
  ///
  /// What is added early is rounded with the product, and the softmax tells
  /// sooner that its base will do if that is positive. So the ramp is relative
  /// to a key where it is near its greatest, or a little before, and the
  /// difference goes to the term of the row.
  void startAtRamp() {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loop);
    auto [slope, offset] = scoreRamp;
    Value start = binary<arith::SubIOp>(zero, getRampOrigin());
    // Of scores that the softmax scales.
    Value scale = binary<arith::DivFOp>(floatConstant(1.0f), softmaxScale);
    Value ownSlope = binary<arith::MulFOp>(slope, scale);
    tile::MmaOp product = *loop.getQk().getOps<tile::MmaOp>().begin();
    builder.setInsertionPoint(product);
    Value first = binary<arith::AddIOp>(loop.getQk().getArgument(0), start);
    product.getAccMutable().assign(buildRamp(ownSlope, first));

    builder.setInsertionPointAfter(rowTerm ? rowTerm.getDefiningOp() : loop);
    Value rest = arith::SIToFPOp::create(builder, builder.getF32Type(),
                                         binary<arith::SubIOp>(offset, start));
    Value term = tensor::SplatOp::create(builder, rowType(),
                                         binary<arith::MulFOp>(rest, slope));
    rowTerm = rowTerm ? binary<arith::AddFOp>(rowTerm, term) : term;
  }

  /// The key that the ramp is relative to. Falling, it is greatest at the first
  /// visible one. Rising, it is so at the end of the keys or, under a mask, at
  /// each row's last visible one: behind the tile's first query, if the ramp is
  /// relative to that, or within a tile's rows of the last row's.
  Value getRampOrigin() {
    auto [slope, offset] = scoreRamp;
    tile::KeyInterval keys = getVisibleKeys();
    Value high = keys.end;
    if (op.hasMaskMod())
      high = dependsOn(offset, qStart)
                 ? binary<arith::SubIOp>(zero, offset)
                 : binary<arith::SubIOp>(keys.end, i32(blockM));
    Value isRising = arith::CmpFOp::create(builder, arith::CmpFPredicate::OGT,
                                           slope, floatConstant(0.0f));
    return arith::SelectOp::create(builder, isRising, high, keys.begin);
  }

  /// By some row of the program.
  tile::KeyInterval getVisibleKeys() {
    tile::KeyInterval keys = {keysBegin, keysEnd};
    SmallVector<Operation *> opaque;
    loop.getScore().walk([&](tile::MaskOp mask) {
      keys = tile::analyzeMask(builder, loop, mask, {keysBegin, keysEnd},
                               std::nullopt, opaque)
                 .visible;
    });
    return keys;
  }

  static bool dependsOn(Value value, Value source) {
    llvm::SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.omitBlockArguments = true;
    options.inclusive = true;
    // It doesn't fail without block arguments.
    (void)getBackwardSlice(value, &slice, options);
    return value == source || llvm::any_of(slice, [&](Operation *def) {
             return llvm::is_contained(def->getOperands(), source);
           });
  }

  /// slope * (first + column), for each score of a tile.
  Value buildRamp(Value slope, Value first) {
    Type f32 = builder.getF32Type();
    auto indices = RankedTensorType::get(blockN, builder.getI32Type());
    auto numbers = indices.clone(f32);
    Value columns = arith::SIToFPOp::create(
        builder, numbers, tile::IotaOp::create(builder, indices));
    Value start = arith::SIToFPOp::create(builder, f32, first);
    Value sum = binary<arith::AddFOp>(
        columns, tensor::SplatOp::create(builder, numbers, start));
    Value ramp = binary<arith::MulFOp>(
        sum, tensor::SplatOp::create(builder, numbers, slope));
    return tile::BroadcastOp::create(
        builder, RankedTensorType::get({blockM, blockN}, f32), ramp, /*dim=*/1);
  }

  /// `value` of `body`, which depends on none of its arguments, where `builder`
  /// is.
  Value cloneFrom(Block &body, Value value) {
    llvm::SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.omitBlockArguments = true;
    options.inclusive = true;
    options.filter = [&](Operation *def) { return def->getBlock() == &body; };
    // It doesn't fail without block arguments.
    (void)getBackwardSlice(value, &slice, options);
    IRMapping mapping;
    for (Operation *inner : slice)
      builder.clone(*inner, mapping);
    return mapping.lookupOrDefault(value);
  }

  /// factor * score + element, where the element's own scores are scaled.
  Value combineTerms(Value score, Value factor, const ScoreTerms &terms) {
    Value result = terms.element;
    if (!factor && !result)
      return floatConstant(0.0f);
    if (result && !score.use_empty())
      result = scaleScores(score, result);
    if (!factor)
      return result;
    if (!result)
      return binary<arith::MulFOp>(score, factor);
    return math::FmaOp::create(builder, score, factor, result);
  }

  /// Replaces the score in the body around by the scaled one. Returns what
  /// `element` is then.
  Value scaleScores(Value score, Value element) {
    Block *body = score.getParentBlock();
    auto uses = llvm::map_to_vector(score.getUses(),
                                    [](OpOperand &use) { return &use; });
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(body);
    Value scale = getScale();
    Value scaled = binary<arith::MulFOp>(score, scale);
    for (OpOperand *use : uses)
      use->set(scaled);
    if (element == score)
      return scaled;
    // score * scale / cap is one product.
    for (Operation *user : llvm::make_early_inc_range(scaled.getUsers()))
      if (std::optional<float> factor =
              getConstantFactor(user, scaled, scale)) {
        builder.setInsertionPoint(user);
        Value product = binary<arith::MulFOp>(score, floatConstant(*factor));
        user->replaceAllUsesWith(ValueRange(product));
        if (element == user->getResult(0))
          element = product;
        user->erase();
      }
    return element;
  }

  /// scale * f where `op` is `scaled` times or by a constant and f that factor.
  static std::optional<float> getConstantFactor(Operation *op, Value scaled,
                                                Value scale) {
    APFloat result(0.0f), other(0.0f);
    if (!isa<arith::MulFOp, arith::DivFOp>(op) || op->getOperand(0) != scaled ||
        !matchPattern(scale, m_ConstantFloat(&result)) ||
        !matchPattern(op->getOperand(1), m_ConstantFloat(&other)))
      return std::nullopt;
    if (isa<arith::MulFOp>(op))
      result.multiply(other, APFloat::rmNearestTiesToEven);
    else
      result.divide(other, APFloat::rmNearestTiesToEven);
    if (!result.isNormal())
      return std::nullopt;
    return result.convertToFloat();
  }

  /// The row term of a score_mod, whose body is still there, behind the loop.
  Value buildRowTerm(Block &body, Value term) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(loop);
    auto type = RankedTensorType::get({blockM, blockN}, builder.getF32Type());
    tile::RegionInliner inliner(builder, op.getLoc(), type);
    inliner.mapIndex(body.getArgument(1), qStart, tile::Extent::Rows);
    llvm::SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.omitBlockArguments = true;
    options.inclusive = true;
    options.filter = [&](Operation *def) { return def->getBlock() == &body; };
    // Neither fails on the elementwise ops that attn.attention allows.
    (void)getBackwardSlice(term, &slice, options);
    for (Operation *inner : slice)
      (void)inliner.inlineOp(*inner);
    return inliner.lift(term, tile::Extent::Rows);
  }

  Value getScale() {
    Value scale = op.getScaleValue() ? arg(op.getScaleValue())
                                     : floatConstant(*op.getConstantScale());
    return inputScale ? binary<arith::MulFOp>(scale, inputScale) : scale;
  }

  /// args are (scores, acc, max, sum).
  SmallVector<Value> buildSoftmax(ValueRange args) {
    auto softmax = tile::OnlineSoftmaxOp::create(
        builder, TypeRange{args[0].getType(), rowType(), rowType(), rowType()},
        args[0], args[2], args[3], softmaxScale,
        op.isQuantized() ? kQuantizedExponent : 0);
    return softmax->getResults();
  }

  /// args are (kv, p, max, sum, alpha, acc, old max, old sum).
  SmallVector<Value> buildPV(ValueRange args) {
    Value kv = args[0], p = args[1], max = args[2], sum = args[3],
          alpha = args[4], acc = args[5];
    bool isTransposed = hasTransposedValues(op, schedule);
    Value v = isTransposed ? loadTransposedValues(kv)
                           : loadTile(values, {blockN, columns},
                                      {kvHead, kv, firstColumn});
    Value rescaled =
        arith::MulFOp::create(builder, acc, broadcastRows(alpha, acc));
    Value next = tile::MmaOp::create(builder, acc.getType(), matmul.path,
                                     truncate(p, getWeightType()), v, rescaled,
                                     /*transpose_b=*/isTransposed,
                                     /*permuted_k=*/isTransposed);
    return {next, max, sum};
  }

  /// Of 8-bit types the one with more precision, whichever v has.
  Type getWeightType() {
    return op.isQuantized() ? Float8E4M3FNType::get(op.getContext())
                            : op.getElementType();
  }

  Value loadTransposedValues(Value kv) {
    auto memref = cast<MemRefType>(valueOperand.getType());
    auto type =
        RankedTensorType::get({columns, blockN}, memref.getElementType());
    return tile::LoadOp::create(builder, type, arg(valueOperand),
                                ValueRange{batch, kvHead, firstColumn, kv});
  }

  Value truncate(Value value, Type element) {
    if (element.isF32())
      return value;
    auto type = cast<RankedTensorType>(value.getType());
    return arith::TruncFOp::create(builder, type.clone(element), value);
  }

  //===--------------------------------------------------------------------===//
  // Regions
  //===--------------------------------------------------------------------===//

  /// Clones the ops of a mod region, with lengths as scalars of the kernel, and
  /// returns what it yields. `modArgs` are its arguments without the captures.
  Value cloneMod(Region &mod, ValueRange modArgs) {
    IRMapping mapping;
    mapping.map(mod.getArguments().take_front(modArgs.size()), modArgs);
    mapping.map(mod.getArguments().drop_front(modArgs.size()),
                llvm::map_to_vector(op.getCaptures(), [&](Value capture) {
                  return arg(capture);
                }));
    for (Operation &inner : mod.front().without_terminator()) {
      if (auto load = dyn_cast<CaptureLoadOp>(inner)) {
        mapping.map(load.getResult(), buildGather(load, mapping));
        continue;
      }
      if (isa<QLenOp>(inner))
        mapping.map(inner.getResult(0), qLen);
      else if (isa<KVLenOp>(inner))
        mapping.map(inner.getResult(0), kvLen);
      else
        builder.clone(inner, mapping);
    }
    return mapping.lookupOrDefault(mod.front().getTerminator()->getOperand(0));
  }

  Value buildGather(CaptureLoadOp load, const IRMapping &mapping) {
    SmallVector<Value> indices;
    for (auto [dim, index] : llvm::enumerate(load.getIndices()))
      indices.push_back(load.isBroadcast(dim) ? zero : mapping.lookup(index));
    OpBuilder::InsertionGuard guard(builder);
    // What doesn't depend on the query and the key is read once.
    if (llvm::all_of(indices, [&](Value index) {
          return index.getParentBlock() == loop->getBlock();
        }))
      builder.setInsertionPoint(loop);
    return createGather(builder, load, mapping.lookup(load.getSource()),
                        indices, batch, modHead);
  }

  /// The query that a row is of; sets the head of what is cloned next.
  Value getQuery(Value row) {
    modHead = head;
    if (interleave == 1)
      return row;
    auto [inGroup, query] = takeOff(row, i32(interleave));
    modHead = binary<arith::AddIOp>(head, inGroup);
    return query;
  }

  void inlineScoreMod(Region &body) {
    OpBuilder::InsertionGuard guard(builder);
    Type i32 = builder.getI32Type();
    SmallVector<Location> locs(3, op.getLoc());
    Block *block = builder.createBlock(&body, body.end(),
                                       {builder.getF32Type(), i32, i32}, locs);
    Value qIdx = getQuery(block->getArgument(1));
    Value score =
        cloneMod(op.getScoreMod(), {block->getArgument(0), batch, modHead, qIdx,
                                    block->getArgument(2)});
    tile::YieldOp::create(builder, score);
  }

  /// kv_idx < kv_len, and mask_mod.
  void buildMask(Region &body) {
    OpBuilder::InsertionGuard guard(builder);
    Type i32 = builder.getI32Type();
    SmallVector<Location> locs(2, op.getLoc());
    Block *block = builder.createBlock(&body, body.end(), {i32, i32}, locs);
    Value kvIdx = block->getArgument(1);
    Value visible = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt,
                                          kvIdx, keysEnd);
    if (op.hasMaskMod()) {
      Value qIdx = getQuery(block->getArgument(0));
      Value keep = cloneMod(op.getMaskMod(), {batch, modHead, qIdx, kvIdx});
      visible = arith::AndIOp::create(builder, visible, keep);
    }
    tile::YieldOp::create(builder, visible);
  }

  //===--------------------------------------------------------------------===//
  // Epilogue
  //===--------------------------------------------------------------------===//

  Value isZero(Value value) {
    Value zeros =
        constant(cast<TypedAttr>(builder.getZeroAttr(value.getType())));
    return arith::CmpFOp::create(builder, arith::CmpFPredicate::OEQ, value,
                                 zeros);
  }

  void buildEpilogue(Value acc, Value max, Value sum) {
    Value ones = splat(1.0f, {blockM});
    Value total = sum, lse;
    if (op.getSink()) {
      lse = buildLse(max, sum);
      // exp(sink) / exp(lse), which scales the sum to the whole denominator.
      Value difference = binary<arith::SubFOp>(loadSink(), lse);
      Value weight = math::ExpOp::create(builder, difference);
      total = binary<arith::MulFOp>(sum, binary<arith::AddFOp>(ones, weight));
    }
    Value one = ones;
    if (Value scale = loadInputScale(op.getVScale(), kvHead))
      one = tensor::SplatOp::create(builder, rowType(), scale);
    Value output = scaleRows(acc, binary<arith::DivFOp>(one, total), sum);
    if (rowTerm)
      output = applyRowTerm(output);
    // Made behind the loop, where the offsets take no registers in it.
    SequenceBuilder::Part o = sequences.getQueries(op.getO());
    tile::StoreOp::create(
        builder, truncate(output, op.getOutputElementType()), o.memref,
        ValueRange{o.batch, head, qStart, firstColumn}, interleave);
    if (!op.getLse())
      return;
    // Programs for other columns have the same sums and store the same.
    lse = op.getSink() ? addSinkToLse(lse, loadSink()) : buildLse(max, sum);
    SequenceBuilder::Part lses = sequences.getQueries(op.getLse());
    tile::StoreOp::create(builder, lse, lses.memref,
                          ValueRange{lses.batch, head, qStart}, interleave);
  }

  /// The rows of `acc` times `factors`, 0 where `sum` is.
  Value scaleRows(Value acc, Value factors, Value sum) {
    Value scaled =
        arith::MulFOp::create(builder, acc, broadcastRows(factors, acc));
    // The sum is 0 only in a row that sees no key: any other has a term of 1.
    return arith::SelectOp::create(
        builder, isZero(broadcastRows(sum, acc)),
        splat(0.0f, cast<ShapedType>(acc.getType()).getShape()), scaled);
  }

  /// Where the statistics of part `number` are.
  std::pair<Value, Value> getStatistics(Value number) {
    Value first = binary<arith::MulIOp>(number, i32(2));
    return {first, binary<arith::AddIOp>(first, i32(1))};
  }

  /// The result, or with several parts that of this one.
  void buildPartEpilogue(Value acc, Value max, Value sum) {
    Value isWhole = arith::CmpIOp::create(builder, arith::CmpIPredicate::sle,
                                          parts.numParts, i32(1));
    auto branch = scf::IfOp::create(builder, isWhole, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    buildEpilogue(acc, max, sum);
    builder.setInsertionPointToStart(branch.elseBlock());
    SequenceBuilder::Part outputs =
        sequences.getQueryRows(parts.outputs, /*rowDim=*/3, interleave);
    SequenceBuilder::Part statistics =
        sequences.getQueryRows(parts.statistics, /*rowDim=*/3, interleave);
    tile::StoreOp::create(
        builder, acc, outputs.memref,
        ValueRange{outputs.batch, kvHead, part, qStart, firstColumn});
    // After the loop only the lse has a meaning, not the maximum.
    Value base = binary<arith::SubFOp>(buildLse(max, sum),
                                       math::LogOp::create(builder, sum));
    Value empty = tensor::SplatOp::create(builder, rowType(), minusInf);
    base = arith::SelectOp::create(builder, isZero(sum), empty, base);
    auto [first, second] = getStatistics(part);
    tile::StoreOp::create(builder, base, statistics.memref,
                          ValueRange{statistics.batch, kvHead, first, qStart});
    tile::StoreOp::create(builder, sum, statistics.memref,
                          ValueRange{statistics.batch, kvHead, second, qStart});
  }

  /// Over the keys. After the loop only scale * max + log(sum) has a meaning:
  /// the maximum of a loop that defers rescaling isn't the maximum.
  Value buildLse(Value max, Value sum) {
    Value scales = tensor::SplatOp::create(builder, rowType(), softmaxScale);
    Value lse = arith::AddFOp::create(
        builder, arith::MulFOp::create(builder, max, scales),
        math::LogOp::create(builder, sum));
    if (op.isQuantized())
      lse = binary<arith::SubFOp>(
          lse, splat(static_cast<float>(kQuantizedExponent * M_LN2), {blockM}));
    if (rowTerm)
      lse = arith::AddFOp::create(builder, lse, rowTerm);
    Value empty = tensor::SplatOp::create(builder, rowType(), minusInf);
    return arith::SelectOp::create(builder, isZero(sum), empty, lse);
  }

  /// A term that all scores of a row share changes no output, unless it is -inf
  /// (all scores are), NaN or inf.
  Value applyRowTerm(Value output) {
    Value poison = binary<arith::MulFOp>(rowTerm, splat(0.0f, {blockM}));
    Value poisoned =
        binary<arith::AddFOp>(output, broadcastRows(poison, output));
    auto type = cast<RankedTensorType>(output.getType());
    Value isEmpty = arith::CmpFOp::create(
        builder, arith::CmpFPredicate::OEQ, broadcastRows(rowTerm, output),
        tensor::SplatOp::create(builder, type, minusInf));
    return arith::SelectOp::create(builder, isEmpty,
                                   splat(0.0f, type.getShape()), poisoned);
  }

  /// The sink of each row's head.
  Value loadSink() {
    Type element = cast<MemRefType>(op.getSink().getType()).getElementType();
    Type type = interleave > 1 ? Type(rowType().clone(element)) : element;
    Type f32 = interleave > 1 ? Type(rowType()) : builder.getF32Type();
    Value sink = tile::GatherOp::create(
        builder, type, arg(op.getSink()),
        ValueRange{interleave > 1 ? getRowHeads() : head},
        /*in_bounds=*/ArrayRef<int64_t>{0});
    if (!element.isF32())
      sink = arith::ExtFOp::create(builder, f32, sink);
    return interleave > 1 ? sink
                          : tensor::SplatOp::create(builder, rowType(), sink);
  }

  Value getRowHeads() {
    Type type = rowType().clone(builder.getI32Type());
    auto repeat = [&](Value value) -> Value {
      return tensor::SplatOp::create(builder, type, value);
    };
    Value row = binary<arith::AddIOp>(
        repeat(qStart), tile::IotaOp::create(builder, type).getResult());
    return binary<arith::AddIOp>(
        repeat(head), binary<arith::RemUIOp>(row, repeat(i32(interleave))));
  }

  /// log(exp(lse) + exp(sink)).
  Value addSinkToLse(Value lse, Value sink) {
    Value distance =
        math::AbsFOp::create(builder, binary<arith::SubFOp>(lse, sink));
    // Equal infinities have no difference.
    Value equal =
        arith::CmpFOp::create(builder, arith::CmpFPredicate::OEQ, lse, sink);
    distance = arith::SelectOp::create(builder, equal, splat(0.0f, {blockM}),
                                       distance);
    Value smaller = math::ExpOp::create(
        builder, arith::NegFOp::create(builder, distance).getResult());
    return binary<arith::AddFOp>(binary<arith::MaximumFOp>(lse, sink),
                                 math::Log1pOp::create(builder, smaller));
  }

  //===--------------------------------------------------------------------===//
  // Merge
  //===--------------------------------------------------------------------===//

  /// Packed queries are merged as those of one sequence.
  void buildMergeProgram() {
    Value id =
        takeColumns(tile::ProgramIdOp::create(builder, builder.getI32Type()));
    qLen = getSize(op.getQ(), 2);
    auto [rowTile, rest] =
        takeOff(id, divideRoundingUp(getNumRows(), i32(blockM)));
    qStart = binary<arith::MulIOp>(rowTile, i32(blockM));
    std::tie(kvHead, batch) = takeOffHeads(rest);
    if (op.getCuQ())
      sequences.setAllQueries();
    else
      sequences.setSequence(batch);
  }

  /// A power of two, so that all threads have a share; loads fill it up with
  /// zeros. More would have no room in registers.
  int64_t getMergeColumns() {
    constexpr int64_t kLeast = 64, kMost = 256;
    return isGPU ? std::clamp<int64_t>(llvm::PowerOf2Ceil(getVColumns()),
                                       kLeast, kMost)
                 : getVColumns();
  }

  struct Part {
    Value base, sum, output;
  };

  /// Brings the sums of all parts to the largest base. Carries what the loop
  /// over keys does.
  scf::ForOp buildMergeLoop() {
    SmallVector<Value> inits = {
        splat(0.0f, {blockM, columns}),
        tensor::SplatOp::create(builder, rowType(), minusInf),
        splat(0.0f, {blockM})};
    if (!isGPU)
      return buildMergeLoop(zero, parts.numParts, /*count=*/1, inits);
    // The loads of many parts are under way together.
    constexpr int64_t kGroup = 16;
    Value grouped = binary<arith::SubIOp>(
        parts.numParts, binary<arith::RemUIOp>(parts.numParts, i32(kGroup)));
    scf::ForOp groups = buildMergeLoop(zero, grouped, kGroup, inits);
    return buildMergeLoop(grouped, parts.numParts, kMergePadding,
                          groups.getResults());
  }

  /// Takes `count` parts at a time; of the last ones not all need to exist.
  scf::ForOp buildMergeLoop(Value begin, Value end, int64_t count,
                            ValueRange inits) {
    auto merged = scf::ForOp::create(builder, begin, end, i32(count), inits);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(merged.getBody());
    ValueRange carried = merged.getRegionIterArgs();
    SmallVector<Part> loaded = loadParts(merged.getInductionVar(), count, end);
    Value max = carried[1];
    for (const Part &next : loaded)
      max = binary<arith::MaximumFOp>(max, next.base);
    Value one = floatConstant(1.0f);
    Value alpha = tile::ExpDiffOp::create(builder, carried[1], max, one);
    Value acc =
        binary<arith::MulFOp>(carried[0], broadcastRows(alpha, carried[0]));
    Value sum = binary<arith::MulFOp>(carried[2], alpha);
    for (const Part &next : loaded) {
      Value weight = tile::ExpDiffOp::create(builder, next.base, max, one);
      sum = math::FmaOp::create(builder, next.sum, weight, sum);
      acc = math::FmaOp::create(builder, next.output,
                                broadcastRows(weight, next.output), acc);
    }
    scf::YieldOp::create(builder, ValueRange{acc, max, sum});
    return merged;
  }

  /// Loads `count` parts from `first`. There is memory for all of them, so that
  /// no position depends on how many there are: they are one position and
  /// constant steps from it.
  SmallVector<Part> loadParts(Value first, int64_t count, Value end) {
    SmallVector<Part> loaded;
    Value firstStatistics = binary<arith::MulIOp>(first, i32(2));
    auto outputType =
        RankedTensorType::get({blockM, columns}, builder.getF32Type());
    for (int64_t i = 0; i < count; ++i) {
      auto load = [&](int64_t step) -> Value {
        return tile::LoadOp::create(
            builder, rowType(), parts.statistics,
            ValueRange{batch, kvHead, stepFrom(firstStatistics, step), qStart});
      };
      Value number = stepFrom(first, i);
      Part part{load(2 * i), load(2 * i + 1),
                tile::LoadOp::create(
                    builder, outputType, parts.outputs,
                    ValueRange{batch, kvHead, number, qStart, firstColumn})};
      loaded.push_back(count > kMergePadding || i == 0
                           ? part
                           : emptyFrom(number, end, part));
    }
    return loaded;
  }

  /// Part `number`, empty from `end` on.
  Part emptyFrom(Value number, Value end, const Part &part) {
    Value exists =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, number, end);
    auto orElse = [&](Value value, float other) {
      auto shape = cast<ShapedType>(value.getType()).getShape();
      return arith::SelectOp::create(builder, exists, value,
                                     splat(other, shape));
    };
    return {orElse(part.base, -std::numeric_limits<float>::infinity()),
            orElse(part.sum, 0.0f), orElse(part.output, 0.0f)};
  }

  /// `value + step`, which doesn't wrap.
  Value stepFrom(Value value, int64_t step) {
    return arith::AddIOp::create(builder, value, i32(step),
                                 arith::IntegerOverflowFlags::nsw);
  }

  AttentionOp op;
  /// v, or what stands for it.
  Value valueOperand;
  const std::optional<MaskTiles> &maskTiles;
  const ScheduledLengths &lengths;
  ScheduleAttr schedule;
  WarpRolesAttr roles;
  DecodeAttr decode;
  MatmulChoice matmul;
  ImplicitLocOpBuilder builder;
  IRMapping args;
  SequenceBuilder sequences;
  /// Heads whose rows come in turn.
  int64_t interleave;
  int64_t blockM, blockN, columnGranule;
  /// Of the output, from `firstColumn` on.
  int64_t columns;
  bool isGPU;
  PartOperands parts;
  Value qLen, kvLen, batch, head, kvHead, qStart, firstColumn;
  /// The number of the tile that begins with the sequence's first query.
  Value firstTile;
  SequenceBuilder::Part keys, values;
  /// With `interleave`, `head` is the first of the rows' heads, and a region is
  /// of `modHead`.
  Value modHead;
  /// The program's keys, of part `part`.
  Value keysBegin, keysEnd, part;
  Value zero, minusInf, inputScale, softmaxScale, q;
  /// What the score_mod adds to all scores of a row, if anything.
  Value rowTerm;
  /// What it adds to scores by their key, if that is no part of the loop.
  KeyRamp scoreRamp;
  tile::KVLoopOp loop;
};

/// Builds the launch of a fused kernel before the op.
class LaunchBuilder {
public:
  LaunchBuilder(AttentionOp op, Value values, const ScheduledLengths &lengths)
      : op(op), values(values), lengths(lengths), schedule(lengths.schedule),
        builder(op.getLoc(), op) {}

  /// 0 or 1; none if the launch takes every length.
  Value contains() {
    if (lengths.isAll())
      return {};
    return contains(lengths, getMeanLength(op.getQ(), op.getCuQ()));
  }

  void build(tile::KernelOp kernel, int64_t columnPrograms,
             const std::optional<MaskTiles> &maskTiles) {
    Value grid = countPrograms(columnPrograms);
    launch(kernel, onlyFor(grid),
           FusedKernelBuilder::getKernelOperands(op, values, maskTiles));
  }

  /// With `merge`, of a kernel whose keys may be in parts.
  void build(tile::KernelOp kernel, tile::KernelOp merge,
             FusedKernelBuilder &kernelBuilder) {
    int64_t vColumns = kernelBuilder.getVColumns();
    Value programs = countPrograms(kernelBuilder.getColumnPrograms());
    Value numParts = countParts(programs);
    Value grid = onlyFor(product({programs, numParts}));
    // No memory and no launch for one part.
    Value isSplit = toIndex(isLess(constant(1), numParts));
    Value numStored = onlyFor(product({numParts, isSplit}));
    Value rows = countTileRows();
    Value batches = getSize(op.getQ(), 0);

    PartOperands parts;
    SmallVector<Type> types = PartOperands::getTypes(op, vColumns);
    Value padding = constant(kMergePadding);
    Value numRead =
        product({binary<arith::CeilDivSIOp>(numStored, padding), padding});
    SmallVector<Value> sizes = {batches, numRead, rows};
    parts.outputs =
        memref::AllocOp::create(builder, cast<MemRefType>(types[0]), sizes);
    parts.statistics = memref::AllocOp::create(
        builder, cast<MemRefType>(types[1]),
        ValueRange{batches, product({numRead, constant(2)}), rows});
    parts.numParts = toI32(numParts);
    SmallVector<Value> operands =
        FusedKernelBuilder::getKernelOperands(op, values);
    llvm::append_range(operands, parts.getValues());
    launch(kernel, grid, operands);

    Value heads = product({batches, constant(op.getNumKVHeads())});
    SmallVector<Value> mergeTiles = {
        heads, binary<arith::CeilDivSIOp>(
                   rows, constant(kernelBuilder.getMergeRows()))};
    if (int64_t programs = kernelBuilder.getMergeColumnPrograms(); programs > 1)
      mergeTiles.push_back(constant(programs));
    Value isStored = toIndex(isLess(constant(0), numStored));
    Value elements = product({heads, rows, numStored, constant(vColumns + 2)});
    tile::LaunchOp::create(builder, merge.getSymName(),
                           product({product(mergeTiles), isStored}), operands,
                           product({elements, constant(sizeof(float))}),
                           // Multiply and add.
                           product({elements, constant(2)}));
  }

private:
  void launch(tile::KernelOp kernel, Value grid, ValueRange operands) {
    tile::LaunchOp::create(builder, kernel.getSymName(), grid, operands,
                           countBytes(), countFlops());
  }

  /// A launch of no program is skipped.
  Value onlyFor(Value grid) {
    Value isOwn = contains();
    return isOwn ? product({grid, isOwn}) : grid;
  }

  /// The rows of a KV head's tiles.
  Value countTileRows() {
    return product({getSize(op.getQ(), 2), constant(getGroupSize(op))});
  }

  /// One for each part of the keys.
  Value countPrograms(int64_t columnPrograms) {
    bool isDecode(schedule.getDecode());
    Value tiles =
        countTiles(schedule.getBlockM(), isDecode ? getGroupSize(op) : 1);
    Value heads =
        constant(isDecode ? op.getNumKVHeads() : op.getNumQueryHeads());
    SmallVector<Value> factors = {tiles, heads, getSize(op.getQ(), 0)};
    if (columnPrograms > 1)
      factors.push_back(constant(columnPrograms));
    return product(factors);
  }

  /// How many parts the keys are cut into, at least one.
  Value countParts(Value programs) {
    DecodeAttr decode = schedule.getDecode();
    Value one = constant(1);
    Value keys = inPages(getSize(op.getK(), 2));
    if (int64_t partKeys = decode.getSplitKeys())
      return binary<arith::MaxSIOp>(
          binary<arith::CeilDivSIOp>(keys, constant(partKeys)), one);
    Value wanted = product(
        {tile::NumSMsOp::create(builder), constant(decode.getProgramsPerSm())});
    wanted = binary<arith::FloorDivSIOp>(wanted,
                                         binary<arith::MaxSIOp>(programs, one));
    wanted = binary<arith::MinSIOp>(wanted, constant(decode.getMaxSplits()));
    wanted = binary<arith::MaxSIOp>(wanted, one);
    // As few as have no more steps each than so many would.
    Value steps = binary<arith::CeilDivSIOp>(
        inPages(getMeanLength(op.getK(), op.getCuK())),
        constant(schedule.getBlockN()));
    steps = binary<arith::MaxSIOp>(steps, one);
    return binary<arith::CeilDivSIOp>(
        steps, binary<arith::CeilDivSIOp>(steps, wanted));
  }

  template <typename OpT>
  Value binary(Value a, Value b) {
    return OpT::create(builder, a, b);
  }
  Value isLess(Value a, Value b) {
    return arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, a, b);
  }
  Value toIndex(Value condition) {
    return arith::IndexCastUIOp::create(builder, builder.getIndexType(),
                                        condition);
  }
  Value toI32(Value index) {
    return arith::IndexCastOp::create(builder, builder.getI32Type(), index);
  }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, value);
  }
  Value getSize(Value operand, int64_t dim) {
    return builder.createOrFold<memref::DimOp>(builder.getLoc(), operand, dim);
  }
  Value countSequences(Value offsets) {
    return arith::SubIOp::create(builder, getSize(offsets, 0), constant(1));
  }
  /// As SequenceBuilder::countTiles.
  Value countTiles(int64_t block, int64_t interleave) {
    Value rows = getSize(op.getQ(), 2);
    if (interleave > 1)
      rows = product({rows, constant(interleave)});
    if (!op.getCuQ())
      return arith::CeilDivSIOp::create(builder, rows, constant(block));
    Value whole = arith::FloorDivSIOp::create(builder, rows, constant(block));
    Value tiles =
        arith::AddIOp::create(builder, whole, countSequences(op.getCuQ()));
    // Without a query no program runs.
    Value hasRows = arith::MinSIOp::create(builder, rows, constant(1));
    return arith::MulIOp::create(builder, tiles, hasRows);
  }
  /// The rows of one sequence, a mean where they are packed.
  Value getMeanLength(Value operand, Value offsets) {
    Value rows = getSize(operand, 2);
    if (!offsets)
      return rows;
    Value count =
        arith::MaxSIOp::create(builder, countSequences(offsets), constant(1));
    return arith::CeilDivSIOp::create(builder, rows, count);
  }
  /// The most keys of a sequence, `rows` of k or as many in each of its pages.
  Value inPages(Value rows) {
    if (!op.getBlockTable())
      return rows;
    return product({rows, getSize(op.getBlockTable(), 1)});
  }
  /// The rows of all batches.
  Value countRows(Value operand) {
    return product({getSize(operand, 0), getSize(operand, 2)});
  }
  /// 1 or 0.
  Value contains(const ScheduledLengths &lengths, Value qLen) {
    auto isAtMost = [&](Value a, Value b) -> Value {
      Value result =
          arith::CmpIOp::create(builder, arith::CmpIPredicate::sle, a, b);
      return arith::IndexCastUIOp::create(builder, builder.getIndexType(),
                                          result);
    };
    SmallVector<Value> conditions;
    if (lengths.first > 0)
      conditions.push_back(isAtMost(constant(lengths.first), qLen));
    if (lengths.last != ScheduledLengths::kNoLimit)
      conditions.push_back(isAtMost(qLen, constant(lengths.last)));
    return product(conditions);
  }
  Value product(ArrayRef<Value> factors) {
    Value result = factors.front();
    for (Value factor : factors.drop_front())
      result = arith::MulIOp::create(builder, result, factor);
    return result;
  }

  /// q, k, v, o, lse and captures once each, all that a cache has room for.
  /// Sinks, scales, offsets and lengths are too few to count.
  Value countBytes() {
    auto getRowBytes = [](Value operand) {
      auto type = cast<MemRefType>(operand.getType());
      return type.getDimSize(3) * type.getElementTypeBitWidth() / 8;
    };
    int64_t lseBytes = op.getLse() ? sizeof(float) : 0;
    Value queryBytes = product(
        {countRows(op.getQ()), constant(op.getNumQueryHeads() *
                                        (getRowBytes(op.getQ()) +
                                         getRowBytes(op.getO()) + lseBytes))});
    Value keyBytes =
        product({countRows(op.getK()),
                 constant(op.getNumKVHeads() *
                          (getRowBytes(op.getK()) + getRowBytes(op.getV())))});
    Value bytes = arith::AddIOp::create(builder, queryBytes, keyBytes);
    for (Value capture : op.getCaptures())
      bytes = arith::AddIOp::create(builder, bytes, countBytes(capture));
    return bytes;
  }

  Value countBytes(Value capture) {
    auto type = cast<MemRefType>(capture.getType());
    SmallVector<Value> factors = {
        constant(llvm::divideCeil(type.getElementTypeBitWidth(), 8))};
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      factors.push_back(getSize(capture, dim));
    return product(factors);
  }

  /// Both matrix products, dense.
  Value countFlops() {
    int64_t perPair =
        2 * op.getNumQueryHeads() * (op.getQKHeadDim() + op.getVHeadDim());
    Value keys = inPages(getMeanLength(op.getK(), op.getCuK()));
    return product({countRows(op.getQ()), keys, constant(perPair)});
  }

  AttentionOp op;
  Value values;
  const ScheduledLengths &lengths;
  ScheduleAttr schedule;
  ImplicitLocOpBuilder builder;
};

/// The innermost dimension of every memref must be contiguous.
LogicalResult verifyInnermostStrides(AttentionOp op) {
  for (Value operand : FusedKernelBuilder::getKernelOperands(op, op.getV())) {
    auto memref = dyn_cast<MemRefType>(operand.getType());
    if (memref && memref.getRank() > 0 && !memref.isLastDimUnitStride())
      return op.emitOpError("takes memrefs with innermost stride 1, not ")
             << memref << "; copy it to a contiguous one first";
  }
  return success();
}

LogicalResult verifyConvertible(AttentionOp op, const TargetInfo &target) {
  if (!op.hasBufferSemantics())
    return op.emitOpError("is on tensors; run attn-bufferize first");
  if (failed(verifySupported(op)) || failed(verifyInnermostStrides(op)))
    return failure();
  if (!op.getScheduleAttr())
    return op.emitOpError("has no schedule; run attn-select-schedule first");
  return verifySchedules(op, target);
}

struct ConvertAttnToTilePass
    : attn::impl::ConvertAttnToTileBase<ConvertAttnToTilePass> {
  using ConvertAttnToTileBase::ConvertAttnToTileBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const TargetInfo *info =
        TargetInfo::lookupOrEmitError(target, module.getLoc());
    if (!info)
      return signalPassFailure();
    SmallVector<AttentionOp> ops;
    module.walk([&](AttentionOp op) { ops.push_back(op); });
    SymbolTable symbols(module);
    for (AttentionOp op : ops) {
      if (failed(verifyConvertible(op, *info)))
        return signalPassFailure();
      convert(op, *info, symbols);
    }
  }

  static void convert(AttentionOp op, const TargetInfo &info,
                      SymbolTable &symbols) {
    // They are the same for all schedules.
    Value transposed;
    tile::KernelOp merge;
    for (const ScheduledLengths &lengths : getScheduledLengths(op)) {
      Value values = op.getV();
      if (hasTransposedValues(op, lengths.schedule)) {
        if (!transposed)
          transposed = transposeValues(op, symbols);
        values = transposed;
      }
      std::optional<MaskTiles> maskTiles =
          buildPrepass(op, info, lengths, values, symbols);
      FusedKernelBuilder kernelBuilder(op, info, lengths, values, maskTiles);
      tile::KernelOp kernel = kernelBuilder.build();
      // The table makes the name unique.
      symbols.insert(kernel);
      if (!kernelBuilder.hasParts()) {
        LaunchBuilder(op, values, lengths)
            .build(kernel, kernelBuilder.getColumnPrograms(), maskTiles);
        continue;
      }
      if (!merge) {
        merge = FusedKernelBuilder(op, info, lengths, values, maskTiles)
                    .buildMerge();
        symbols.insert(merge);
      }
      LaunchBuilder(op, values, lengths).build(kernel, merge, kernelBuilder);
    }
    op.erase();
  }

  /// Adds the kernels that list tiles, if one range of keys for each tile of
  /// queries isn't known to say what the mask hides.
  static std::optional<MaskTiles> buildPrepass(AttentionOp op,
                                               const TargetInfo &info,
                                               const ScheduledLengths &lengths,
                                               Value values,
                                               SymbolTable &symbols) {
    ScheduleAttr schedule = lengths.schedule;
    // Few queries would wait longer for a list than for the keys. The kernel
    // for more of them says so.
    bool isForFew = schedule.getDecode() && !lengths.isAll();
    if (!op.hasMaskMod() || isForFew ||
        hasExactRanges(op, info, lengths, values) || schedule.getDecode())
      return std::nullopt;
    std::string name = getKernelName(
        op, chooseMatmul(op.getElementType(), info, info.hasWarpRoles),
        lengths);
    auto getFactor = [&] {
      return LaunchBuilder(op, op.getV(), lengths).contains();
    };
    return buildMaskPrepass(
        op, name, {schedule.getBlockM(), schedule.getBlockN(), getFactor},
        symbols);
  }

  /// Asks the analysis of tile-split-kv-ranges about a kernel without a list.
  /// Says what it can't see through if the answer is no.
  static bool hasExactRanges(AttentionOp op, const TargetInfo &info,
                             const ScheduledLengths &lengths, Value values) {
    OwningOpRef<tile::KernelOp> kernel =
        FusedKernelBuilder(op, info, lengths, values, std::nullopt).build();
    auto loop = *kernel->getBody().getOps<tile::KVLoopOp>().begin();
    ImplicitLocOpBuilder builder(loop.getLoc(), loop);
    SmallVector<Operation *> opaque;
    if (tile::computeKVRanges(builder, loop, std::nullopt, opaque).isExact)
      return true;
    // Once for all schedules.
    if (lengths.last != ScheduledLengths::kNoLimit)
      return false;
    InFlightDiagnostic remark = emitRemark(
        op.getLoc(), "one range of keys for each tile of queries doesn't say "
                     "what this mask hides; ");
    constexpr StringLiteral kNoList =
        "kernels for few queries don't wait for a list, visit all tiles in the "
        "range, and evaluate the mask";
    if (lengths.schedule.getDecode())
      remark << kNoList;
    else
      remark << "kernels that run first list the tiles to visit";
    for (Operation *reason : opaque)
      remark.attachNote(reason->getLoc())
          << "mask analysis can't see through this";
    if (!lengths.schedule.getDecode() && hasDecodeSchedule(op))
      remark.attachNote(op.getLoc()) << kNoList;
    return false;
  }

  static bool hasDecodeSchedule(AttentionOp op) {
    return llvm::any_of(getScheduledLengths(op),
                        [](const ScheduledLengths &lengths) {
                          return bool(lengths.schedule.getDecode());
                        });
  }
};
} // namespace
