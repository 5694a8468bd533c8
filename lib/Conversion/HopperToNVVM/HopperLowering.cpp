//===- HopperLowering.cpp - One warp-specialised kernel to NVVM -----------===//

#include "HopperLowering.h"
#include "TransposeTile.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::hopper;
using namespace mlir::tile;

// 128-byte swizzle atoms repeat every 1024 bytes of the address.
static constexpr int64_t kSlotAlignment = 1024;
static constexpr int64_t kBarrierBytes = 8;
static constexpr int64_t kNumberBytes = 4;
static constexpr int64_t kWarpsPerWarpgroup = 4;
static constexpr int64_t kProductBits = 256;
static constexpr int64_t kTensorMapBytes = 128;
static constexpr int64_t kTensorMapAlignment = 64;
/// Column j of the tile that ramps are products of, K-major without a swizzle:
/// what the 8 first k multiply. The 8 others are the same bytes again (a
/// leading offset of 0).
static constexpr int64_t kRampRowBytes = 16;

//===----------------------------------------------------------------------===//
// Frame
//===----------------------------------------------------------------------===//

LogicalResult HopperLowering::run() {
  if (failed(findRoles()) || failed(checkLayouts()) ||
      llvm::any_of(roles.getRoles(),
                   [&](Region *role) { return failed(verifyRole(*role)); }) ||
      failed(allocateRings()) || failed(collectTensorMaps()))
    return failure();
  describeParameters();
  createFunction();
  bindArguments();
  bindTileCounter();
  bindTensorMaps();
  initBarriers();
  if (failed(lowerRoles()))
    return failure();
  emit.create<LLVM::ReturnOp>(ValueRange());
  return success();
}

LogicalResult HopperLowering::findRoles() {
  for (Operation &op : kernel.getBody().front()) {
    if (auto found = dyn_cast<WarpSpecializeOp>(op)) {
      if (roles)
        return found.emitOpError("is the second in its kernel; there can be "
                                 "only one");
      roles = found;
    } else if (!isa<CreateRingOp, tile::ReturnOp>(op)) {
      return op.emitOpError("stands outside of the roles of a kernel with "
                            "warp roles; only hopper.create_ring may");
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// What can be lowered
//===----------------------------------------------------------------------===//

static bool isHopperType(Type type) {
  return isa<RingType, SlotType, PendingType>(type);
}

/// Rings are arguments of the roles, straight from a create_ring.
bool HopperLowering::isRing(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner()->getParentOp() != roles)
    return false;
  return roles.getArgs()[argument.getArgNumber()].getDefiningOp<CreateRingOp>();
}

LogicalResult HopperLowering::verifyRows(Operation *op, int64_t rows) {
  int64_t expected =
      WarpSpecializeOp::kRowsPerWarpgroup * roles.getWarpgroups();
  if (rows == expected)
    return success();
  return op->emitOpError("has ")
         << rows << " rows, but the " << roles.getWarpgroups()
         << " consumer warpgroups hold " << expected;
}

LogicalResult HopperLowering::verifyRead(ReadOp op) {
  constexpr int64_t kColumns = 16;
  RankedTensorType tile = op.getType();
  if (failed(verifyRows(op, tile.getDimSize(0))))
    return failure();
  auto layout = MmaLayoutAttr::get(op.getContext(),
                                   kWarpsPerWarpgroup * roles.getWarpgroups());
  if (tile.getEncoding() != layout)
    return op.emitOpError("needs a tile with the layout ")
           << layout << "; run hopper-assign-layouts first";
  if (tile.getDimSize(1) % kColumns != 0)
    return op.emitOpError("reads ")
           << tile.getDimSize(1) << " columns, which must be a multiple of "
           << kColumns;
  return success();
}

LogicalResult HopperLowering::verifyProduct(WgmmaOp op) {
  if (failed(verifyRows(op, op.getType().getTile().getDimSize(0))))
    return failure();
  auto layout = MmaLayoutAttr::get(op.getContext(),
                                   kWarpsPerWarpgroup * roles.getWarpgroups());
  auto a = dyn_cast<RankedTensorType>(op.getA().getType());
  bool isRightA =
      !a || a.getEncoding() == OperandLayoutAttr::get(op.getContext(), layout);
  if (op.getType().getTile().getEncoding() != layout || !isRightA)
    return op.emitOpError("needs tiles with the layout ")
           << layout << "; run hopper-assign-layouts first";
  return success();
}

LogicalResult HopperLowering::verifyOperand(Operation *op, Value operand) {
  Operation *source = operand.getDefiningOp();
  bool isKnown = isRing(operand) ||
                 isa_and_present<AcquireOp, WaitOp, SlotOp>(source) ||
                 isa<PendingType>(operand.getType());
  bool isKnownUser = isa<HopperDialect>(op->getDialect()) ||
                     (isa<scf::SCFDialect>(op->getDialect()) &&
                      isa<PendingType>(operand.getType()));
  if (isKnown && isKnownUser)
    return success();
  return op->emitOpError("takes a ")
         << operand.getType()
         << " on a way that has no lowering: rings come from the role's "
            "arguments, slots from the operation that takes them, and only "
            "pending products go through scf";
}

/// Whether `op` has a place in `role`.
static bool isForRole(Operation *op, WarpSpecializeOp roles, Region &role) {
  bool isProducer = &role == &roles.getProducer();
  bool isConsumer = &role == &roles.getConsumer();
  if (isa<TmaLoadOp, PutOp, NextTileOp>(op))
    return isProducer;
  if (isa<AcquireOp, CommitOp>(op))
    return !isConsumer;
  if (isa<WaitOp, SlotOp, ReleaseOp, GetOp>(op))
    return !isProducer;
  if (isa<TransposeOp>(op))
    return !isProducer && !isConsumer;
  return isConsumer ||
         !isa<ReadOp, TmaStoreOp, WgmmaOp, WgmmaWaitOp, WarpgroupIdOp>(op);
}

LogicalResult HopperLowering::verifyOp(Operation *op, Region &role) {
  if (!isForRole(op, roles, role))
    return op->emitOpError("has no place in the ")
           << roles.getRoleName(role) << " role";
  for (Value operand : op->getOperands())
    if (isHopperType(operand.getType()) && failed(verifyOperand(op, operand)))
      return failure();
  if (isa<NextTileOp, NumTilesOp>(op))
    persistent = true;
  if (auto read = dyn_cast<ReadOp>(op))
    return verifyRead(read);
  auto product = dyn_cast<WgmmaOp>(op);
  return product ? verifyProduct(product) : success();
}

LogicalResult HopperLowering::verifyRole(Region &role) {
  WalkResult result = role.walk([&](Operation *op) {
    return failed(verifyOp(op, role)) ? WalkResult::interrupt()
                                      : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Parameters and shared memory
//===----------------------------------------------------------------------===//

LogicalResult HopperLowering::allocateRings() {
  int64_t bytes = 0;
  for (auto op : kernel.getBody().getOps<CreateRingOp>()) {
    auto type = cast<RingType>(op.getType());
    rings[op] = {type, bytes, 0};
    bytes +=
        type.isNumber() ? 0 : llvm::alignTo(type.getBytes(), kSlotAlignment);
  }
  roles.walk([&](WgmmaOp op) {
    if (op.getSlope())
      rampColumns = std::max(rampColumns, op.getType().getTile().getDimSize(1));
  });
  rampOffset = bytes;
  bytes += kRampRowBytes * rampColumns;
  for (auto &[op, ring] : rings) {
    if (!ring.type.isNumber())
      continue;
    ring.slots = bytes;
    bytes += llvm::alignTo(ring.type.getBytes(), kBarrierBytes);
  }
  for (auto &[op, ring] : rings) {
    ring.barriers = bytes;
    bytes += 2 * kBarrierBytes * ring.type.getStages();
  }
  for (auto &[op, ring] : rings)
    ringOf[op->getResult(0)] = &ring;
  // The driver aligns dynamic shared memory to 16 bytes only.
  sharedBytes = bytes + kSlotAlignment;
  if (sharedBytes <= target.maxSharedBytes)
    return success();
  InFlightDiagnostic diag =
      kernel.emitOpError("needs ")
      << sharedBytes << " bytes of shared memory, but a program may use "
      << target.maxSharedBytes << "; use smaller tiles or fewer num_stages";
  for (auto &[op, ring] : rings)
    diag.attachNote(op->getLoc())
        << ring.type.getBytes() << " bytes for " << ring.type;
  return diag;
}

BlockArgument HopperLowering::getKernelArgument(Value roleArgument) {
  auto argument = dyn_cast<BlockArgument>(roleArgument);
  if (!argument || argument.getOwner()->getParentOp() != roles)
    return {};
  return dyn_cast<BlockArgument>(roles.getArgs()[argument.getArgNumber()]);
}

/// How a slot's tile lies in it.
static RingType getRing(SlotType slot) {
  return RingType::get(slot.getContext(), /*stages=*/1, slot.getTile());
}

/// Some rows of a rank-4 memref and all else of it.
static bool isPartByRows(memref::SubViewOp part) {
  MemRefType source = part.getSourceType();
  if (source.getRank() != 4 || !part.hasUnitStride() ||
      part.getDroppedDims().any())
    return false;
  for (auto [dim, offset] : llvm::enumerate(part.getMixedOffsets()))
    if (dim != 2 && !isConstantIntValue(offset, 0))
      return false;
  return true;
}

std::optional<HopperLowering::MapKey>
HopperLowering::getMapKey(Value memref, SlotType slot, int64_t rows) {
  auto part = memref.getDefiningOp<memref::SubViewOp>();
  if (part && !isPartByRows(part))
    return std::nullopt;
  BlockArgument argument = getKernelArgument(part ? part.getSource() : memref);
  if (!argument)
    return std::nullopt;
  return MapKey(argument.getArgNumber(), rows, getRing(slot).getBlockColumns(),
                part ? 1 : 0);
}

LogicalResult HopperLowering::collectTensorMaps() {
  auto add = [&](Operation *op, Value memref, SlotType slot, int64_t rows) {
    std::optional<MapKey> key = getMapKey(memref, slot, rows);
    if (!key) {
      op->emitOpError("must name an argument of the kernel, or rows of one of "
                      "rank 4: its tensor map is made at launch");
      return WalkResult::interrupt();
    }
    tensorMaps.insert({*key, Value()});
    return WalkResult::advance();
  };
  WalkResult result = roles.walk([&](Operation *op) {
    if (auto load = dyn_cast<TmaLoadOp>(op)) {
      SlotType slot = load.getSlot().getType();
      return add(op, load.getSource(), slot, slot.getTile().getDimSize(0));
    }
    if (auto store = dyn_cast<TmaStoreOp>(op))
      return add(op, store.getTarget(), store.getSlot().getType(),
                 WarpSpecializeOp::kRowsPerWarpgroup);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

SmallVector<TensorMap> HopperLowering::getTensorMaps() const {
  return llvm::map_to_vector(tensorMaps, [](const auto &entry) {
    auto [argument, rows, columns, isForParts] = entry.first;
    return TensorMap{argument, rows, columns, isForParts == 1};
  });
}

void HopperLowering::describeParameters() {
  MLIRContext *context = emit.getContext();
  if (persistent)
    extraParameters = {LLVM::LLVMPointerType::get(context, /*global*/ 1),
                       emit.getI32Type()};
  extraParameters.append(tensorMaps.size(),
                         LLVM::LLVMPointerType::get(context));
}

void HopperLowering::bindTileCounter() {
  if (!persistent)
    return;
  unsigned first = function.getNumArguments() -
                   static_cast<unsigned>(extraParameters.size());
  tileCounter = function.getArgument(first);
  numTiles = function.getArgument(first + 1);
}

/// Tensor maps are the last parameters, by value in constant memory.
void HopperLowering::bindTensorMaps() {
  Type storage = LLVM::LLVMArrayType::get(emit.getI8Type(), kTensorMapBytes);
  unsigned number = function.getNumArguments() - tensorMaps.size();
  for (auto &[key, map] : tensorMaps) {
    function.setArgAttr(number, LLVM::LLVMDialect::getByValAttrName(),
                        TypeAttr::get(storage));
    function.setArgAttr(number, NVVM::NVVMDialect::getGridConstantAttrName(),
                        emit.getUnitAttr());
    function.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(),
                        emit.getI64IntegerAttr(kTensorMapAlignment));
    map = function.getArgument(number++);
  }
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    emit.getI32IntegerAttr(1));
}

/// Of a tile's full and empty barrier: one thread of the producer, or each warp
/// of the other roles.
std::pair<int64_t, int64_t> HopperLowering::countArrivals(Value ring) {
  const int64_t consumerWarps = kWarpsPerWarpgroup * roles.getWarpgroups();
  constexpr int64_t kTransposerWarps = WarpSpecializeOp::kTransposerWarps;
  Region &transposer = roles.getTransposer();
  int64_t fullCount = roles.fills(transposer, ring) ? kTransposerWarps : 1;
  int64_t emptyCount = 0;
  if (roles.takes(transposer, ring))
    emptyCount += kTransposerWarps;
  if (roles.takes(roles.getConsumer(), ring) || emptyCount == 0)
    emptyCount += consumerWarps;
  return {fullCount, emptyCount};
}

void HopperLowering::initBarriers() {
  Value unaligned = emit.add(sharedBase, emit.i32(kSlotAlignment - 1));
  alignedBase = emit.andBits(unaligned, emit.i32(-kSlotAlignment));
  Value warpgroup = emit.div(thread, WarpSpecializeOp::kWarpgroupThreads);
  warpgroupIndex = makeUniform(warpgroup);
  isFirstLane = emit.equal(lane, emit.i32(0));
  isFirstOfGroup = emit.equal(
      emit.rem(thread, WarpSpecializeOp::kWarpgroupThreads), emit.i32(0));

  emit.createIf(
      emit.equal(thread, emit.i32(0)),
      [&] {
        for (auto &[op, ring] : rings) {
          int64_t stages = ring.type.getStages();
          auto [fullCount, emptyCount] = countArrivals(op->getResult(0));
          for (int64_t i = 0; i < 2 * stages; ++i) {
            Value barrier = emit.add(
                alignedBase, emit.i32(ring.barriers + kBarrierBytes * i));
            initBarrier(emit, barrier, i < stages ? fullCount : emptyCount);
          }
        }
        fenceBarrierInit(emit);
      },
      [] {});
  if (rampColumns > 0)
    fillRampColumns();
  emit.create<NVVM::BarrierOp>();
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

LogicalResult HopperLowering::lowerRoles() {
  Value isProducer = emit.equal(warpgroupIndex, emit.i32(0));
  LogicalResult producer = success(), consumer = success();
  emit.createIf(
      isProducer, [&] { producer = lowerProducer(); },
      [&] { consumer = lowerConsumer(); });
  return success(succeeded(producer) && succeeded(consumer));
}

LogicalResult HopperLowering::lowerRole(Region &region) {
  for (auto [operand, argument] :
       llvm::zip_equal(roles.getArgs(), region.getArguments())) {
    if (Ring *ring = ringOf.lookup(operand))
      ringOf[argument] = ring;
    else if (isa<MemRefType>(operand.getType())) {
      MemRefArgument memref = memrefs.lookup(operand);
      memrefs[argument] = memref;
    } else
      scalars.map(argument, scalars.lookup(operand));
  }
  return lowerBlock(region.front());
}

LogicalResult HopperLowering::lowerProducer() {
  emit.create<NVVM::SetMaxRegisterOp>(roles.getProducerRegisters(),
                                      NVVM::SetMaxRegisterAction::decrease);
  // One thread issues; the others of its warp are done.
  LogicalResult producer = success(), transposer = success();
  auto lowerOthers = [&] {
    if (roles.hasTransposer())
      emit.createIf(
          emit.less(emit.i32(0), warp), [&] { transposer = lowerTransposer(); },
          [] {});
  };
  emit.createIf(
      emit.equal(thread, emit.i32(0)),
      [&] {
        isInProducer = true;
        producer = lowerRole(roles.getProducer());
        isInProducer = false;
      },
      lowerOthers);
  return success(succeeded(producer) && succeeded(transposer));
}

LogicalResult HopperLowering::lowerTransposer() {
  Value warpOfProgram = std::exchange(warp, emit.sub(warp, emit.i32(1)));
  LogicalResult result = lowerRole(roles.getTransposer());
  warp = warpOfProgram;
  return result;
}

LogicalResult HopperLowering::lowerConsumer() {
  emit.create<NVVM::SetMaxRegisterOp>(roles.getConsumerRegisters(),
                                      NVVM::SetMaxRegisterAction::increase);
  thread = emit.sub(thread, emit.i32(WarpSpecializeOp::kWarpgroupThreads));
  warp = emit.sub(warp, emit.i32(kWarpsPerWarpgroup));
  warpgroupIndex = emit.sub(warpgroupIndex, emit.i32(1));
  return lowerRole(roles.getConsumer());
}

/// A shuffle tells ptxas that the whole warp agrees: descriptors and barriers
/// stay in uniform registers. The producer is a single thread.
Value HopperLowering::makeUniform(Value value) {
  if (isInProducer || matchPattern(value, m_Constant()))
    return value;
  return emit.create<NVVM::ShflOp>(emit.getI32Type(), emit.i32(-1), value,
                                   emit.i32(0), emit.i32(31),
                                   NVVM::ShflKind::idx, UnitAttr());
}

LogicalResult HopperLowering::lowerOp(Operation *op) {
  auto done = [](auto &&lower) {
    lower();
    return success();
  };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](AcquireOp op) { return done([&] { lowerAcquire(op); }); })
      .Case([&](WaitOp op) { return done([&] { lowerWait(op); }); })
      .Case([&](SlotOp op) {
        return done([&] {
          slots[op.getSlot()] =
              getSlot(op.getRing(), getScalar(op.getNumber()));
        });
      })
      .Case([&](TmaLoadOp op) { return done([&] { lowerTmaLoad(op); }); })
      .Case([&](TmaStoreOp op) { return done([&] { lowerTmaStore(op); }); })
      .Case([&](ReadOp op) { return done([&] { lowerRead(op); }); })
      .Case([&](WarpgroupIdOp op) {
        return done([&] { scalars.map(op.getResult(), warpgroupIndex); });
      })
      .Case([&](NumTilesOp op) {
        return done([&] { scalars.map(op.getResult(), numTiles); });
      })
      .Case([&](NextTileOp op) { return done([&] { lowerNextTile(op); }); })
      .Case([&](PutOp op) { return done([&] { lowerPut(op); }); })
      .Case([&](GetOp op) { return done([&] { lowerGet(op); }); })
      .Case([&](CommitOp op) { return done([&] { lowerCommit(op); }); })
      .Case([&](TransposeOp op) { return done([&] { lowerTranspose(op); }); })
      .Case([&](ReleaseOp op) {
        return done([&] {
          arriveBarrierIf(emit, isFirstLane, slots[op.getSlot()].empty);
        });
      })
      .Case([&](WgmmaOp op) { return done([&] { lowerWgmma(op); }); })
      .Case([&](WgmmaWaitOp op) { return done([&] { lowerWgmmaWait(op); }); })
      .Case([&](ExpDiffOp op) { return done([&] { lowerExpDiff(op); }); })
      .Case([&](arith::TruncFOp op) {
        if (getElementTypeOrSelf(op.getType()).getIntOrFloatBitWidth() != 8)
          return KernelLowering::lowerOp(op);
        return done([&] { lowerTruncF(op); });
      })
      .Default([&](Operation *op) { return KernelLowering::lowerOp(op); });
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

HopperLowering::Slot HopperLowering::getSlot(Value ringValue, Value number) {
  Ring &ring = *ringOf[ringValue];
  int64_t stages = ring.type.getStages();
  Value index = emit.rem(number, stages);
  Value offset = emit.mul(index, emit.i32(ring.type.getSlotBytes()));
  Value address = emit.add(emit.add(alignedBase, emit.i32(ring.slots)), offset);
  Value full = emit.add(emit.add(alignedBase, emit.i32(ring.barriers)),
                        emit.mul(index, emit.i32(kBarrierBytes)));
  return {address, full, emit.add(full, emit.i32(kBarrierBytes * stages))};
}

Value HopperLowering::getParity(RingType type, Value number) {
  return emit.andBits(emit.div(number, type.getStages()), emit.i32(1));
}

void HopperLowering::lowerAcquire(AcquireOp op) {
  Value number = getScalar(op.getNumber());
  Slot slot = getSlot(op.getRing(), number);
  // The first time around every slot is empty: the phase before the first
  // counts as complete.
  Value parity = getParity(op.getRing().getType(), number);
  waitBarrier(emit, slot.empty, emit.xorBits(parity, emit.i32(1)));
  slots[op.getSlot()] = slot;
}

void HopperLowering::lowerWait(WaitOp op) {
  Value number = getScalar(op.getNumber());
  Slot slot = getSlot(op.getRing(), number);
  waitBarrier(emit, slot.full, getParity(op.getRing().getType(), number));
  slots[op.getSlot()] = slot;
}

void HopperLowering::lowerCommit(CommitOp op) {
  Value full = slots[op.getSlot()].full;
  if (isInProducer)
    return arriveBarrier(emit, full);
  arriveBarrierIf(emit, isFirstLane, full);
}

/// Innermost first. With R rows in the memref, row `row` of a part that ends
/// with row `end` is row R - length + row of the map's rows that are moved by
/// `end` (see TensorMap).
SmallVector<Value> HopperLowering::getCoordinates(Value memref,
                                                  ValueRange indices) {
  SmallVector<Value> coordinates;
  for (Value index : llvm::reverse(indices))
    coordinates.push_back(getScalar(index));
  auto part = memref.getDefiningOp<memref::SubViewOp>();
  if (!part)
    return coordinates;
  Value length = memrefs[memref].sizes[2];
  Value end = length;
  OpFoldResult start = part.getMixedOffsets()[2];
  if (auto value = dyn_cast<Value>(start))
    end = emit.add(length, emit.resize(getScalar(value), emit.getI32Type()));
  else
    end = emit.add(length, emit.i32(*getConstantIntValue(start)));
  Value rows = memrefs[part.getSource()].sizes[2];
  coordinates[1] = emit.add(emit.sub(rows, length), coordinates[1]);
  coordinates.push_back(end);
  return coordinates;
}

void HopperLowering::lowerTmaLoad(TmaLoadOp op) {
  const Slot &slot = slots[op.getSlot()];
  RingType ring = getRing(op.getSlot().getType());
  int64_t columns = ring.getBlockColumns();
  int64_t rows = ring.getTile().getDimSize(0);
  Value map =
      tensorMaps[*getMapKey(op.getSource(), op.getSlot().getType(), rows)];
  SmallVector<Value> coordinates =
      getCoordinates(op.getSource(), op.getIndices());
  expectBytes(emit, slot.full, ring.getSlotBytes());
  Value firstColumn = coordinates[0];
  for (int64_t block = 0; block < ring.getNumBlocks(); ++block) {
    coordinates[0] = emit.add(firstColumn, emit.i32(block * columns));
    loadTensor(emit,
               emit.add(slot.address, emit.i32(block * ring.getBlockBytes())),
               map, coordinates, slot.full);
  }
}

/// Rows of a tile that one warp holds.
static constexpr int64_t kWarpRows = 16;
static constexpr int64_t kChunkBytes = 16;
static constexpr int64_t kSwizzleBytes = 128;

/// Where a thread's rows of 16-bit 8x8 blocks lie in a slot at `address`, for
/// each 16 of the first `columns` columns: lane i of a warp gives row i mod 16
/// of the warp's rows, in the first or the second chunk of 8 columns.
SmallVector<Value> HopperLowering::getMatrixAddresses(RingType ring,
                                                      int64_t columns,
                                                      Value address) {
  constexpr int64_t kColumns = 16;
  Value row =
      emit.add(emit.mul(warp, emit.i32(kWarpRows)), emit.rem(lane, kWarpRows));
  Value rowAddress =
      emit.add(address, emit.mul(row, emit.i32(ring.getBlockRowBytes())));
  Value swizzle = emit.rem(lane, 8), half = emit.div(lane, 16);
  int64_t steps = ring.getBlockColumns() / kColumns;
  SmallVector<Value> addresses;
  for (int64_t step = 0; step < columns / kColumns; ++step) {
    Value chunk =
        emit.xorBits(emit.add(emit.i32(step % steps * 2), half), swizzle);
    Value block =
        emit.add(rowAddress, emit.i32(step / steps * ring.getBlockBytes()));
    addresses.push_back(
        emit.add(block, emit.mul(chunk, emit.i32(kChunkBytes))));
  }
  return addresses;
}

/// Writes this thread's values of the tile to `address`, swizzled as TMA reads
/// them.
void HopperLowering::stageTile(TmaStoreOp op, Value address) {
  ArrayRef<Value> words = getFragment(op.getTile());
  SmallVector<Value> targets =
      getMatrixAddresses(getRing(op.getSlot().getType()),
                         op.getTile().getType().getDimSize(1), address);
  for (auto [step, target] : llvm::enumerate(targets))
    storeMatrix(emit, target, words.slice(4 * step, 4));
}

/// A 16-bit tile: an 8x8 block is in ldmatrix's layout what it is in an
/// accumulator's.
SmallVector<Value> HopperLowering::readMatrices(RingType ring, Value address) {
  auto pair = VectorType::get(2, ring.getTile().getElementType());
  SmallVector<Value> values;
  for (Value block :
       getMatrixAddresses(ring, ring.getTile().getDimSize(1), address))
    for (Value word : emit.ldmatrix(block, /*offset=*/0, /*transpose=*/false))
      values.push_back(emit.bitcast(word, pair));
  return values;
}

/// A tile of 8 or 32 bits: two neighbouring elements a load.
SmallVector<Value> HopperLowering::readPairs(RingType ring, Value address) {
  constexpr int64_t kBlockColumns = 8, kPair = 2;
  Type element = ring.getTile().getElementType();
  int64_t bytes = ring.getElementBytes();
  int64_t rowBytes = ring.getBlockRowBytes();
  Value rowInBlock = emit.div(lane, 4);
  Value row = emit.add(emit.mul(warp, emit.i32(kWarpRows)), rowInBlock);
  Value rowAddress = emit.add(address, emit.mul(row, emit.i32(rowBytes)));
  // Of 8 rows, as many as fill 128 bytes are swizzled alike.
  Value swizzle = emit.mul(emit.div(rowInBlock, kSwizzleBytes / rowBytes),
                           emit.i32(kChunkBytes));
  Value threadByte = emit.mul(emit.rem(lane, 4), emit.i32(kPair * bytes));
  SmallVector<Value> values;
  for (int64_t column = 0; column < ring.getTile().getDimSize(1);
       column += kBlockColumns) {
    int64_t block = column / ring.getBlockColumns();
    int64_t byteInRow = column % ring.getBlockColumns() * bytes;
    Value byte =
        emit.xorBits(emit.add(emit.i32(byteInRow), threadByte), swizzle);
    Value first = emit.add(
        emit.add(rowAddress, emit.i32(block * ring.getBlockBytes())), byte);
    for (int64_t half : {0, 1}) {
      Value pair = emit.add(first, emit.i32(half * kBlockColumns * rowBytes));
      for (Value value : loadPair(emit, pair, bytes))
        values.push_back(bytes == 1 && element.isInteger(1)
                             ? emit.create<LLVM::TruncOp>(element, value)
                             : emit.bitcast(value, element));
    }
  }
  return values;
}

void HopperLowering::lowerRead(ReadOp op) {
  RingType ring = getRing(op.getSlot().getType());
  Value address = slots[op.getSlot()].address;
  SmallVector<Value> values = ring.getElementBytes() == 2
                                  ? readMatrices(ring, address)
                                  : readPairs(ring, address);
  // One lane gives the slot back, for all, and the next copy into it may not
  // overtake the reads.
  fenceAsyncShared(emit);
  emit.create<NVVM::SyncWarpOp>(emit.i32(-1));
  fragments[op.getResult()] = Fragment(values.begin(), values.end());
}

void HopperLowering::lowerTranspose(TransposeOp op) {
  auto getTile = [&](TypedValue<SlotType> slot) {
    return TileInSlot{getRing(slot.getType()), slots[slot].address};
  };
  transposeTile(emit, getTile(op.getSource()), getTile(op.getTarget()), warp,
                lane);
  // One lane gives both slots away, for all: products see what was written, and
  // the next copy doesn't overtake what was read.
  fenceAsyncShared(emit);
  emit.create<NVVM::SyncWarpOp>(emit.i32(-1));
}

/// A warpgroup's rows: staged by all of its threads, stored by one. The rows of
/// warpgroup w are those of the slot's rows 64 w and up.
void HopperLowering::lowerTmaStore(TmaStoreOp op) {
  RankedTensorType tile = op.getTile().getType();
  RingType ring = getRing(op.getSlot().getType());
  int64_t blockColumns = ring.getBlockColumns();
  Value address = slots[op.getSlot()].address;
  constexpr int64_t kRows = WarpSpecializeOp::kRowsPerWarpgroup;
  stageTile(op, address);
  fenceAsyncShared(emit);
  syncWarpgroup(emit, warpgroupIndex);
  Value map =
      tensorMaps[*getMapKey(op.getTarget(), op.getSlot().getType(), kRows)];
  SmallVector<Value> coordinates =
      getCoordinates(op.getTarget(), op.getIndices());
  Value firstRow = emit.mul(warpgroupIndex, emit.i32(kRows));
  coordinates[1] = emit.add(coordinates[1], firstRow);
  Value firstColumn = coordinates[0];
  Value source = emit.add(address, emit.mul(firstRow, emit.i32(128)));
  auto store = [&] {
    for (int64_t column = 0; column < tile.getDimSize(1);
         column += blockColumns) {
      coordinates[0] = emit.add(firstColumn, emit.i32(column));
      int64_t block = column / blockColumns;
      storeTensor(emit, map, coordinates,
                  emit.add(source, emit.i32(block * ring.getBlockBytes())));
    }
    waitStoresRead(emit);
  };
  emit.createIf(isFirstOfGroup, store, [] {});
  emit.create<NVVM::SyncWarpOp>(emit.i32(-1));
}

//===----------------------------------------------------------------------===//
// Tiles of queries
//===----------------------------------------------------------------------===//

/// Programs ask once for every tile, so that the counter is asked `numTiles`
/// times and wraps around to 0 with the last.
void HopperLowering::lowerNextTile(NextTileOp op) {
  Value last = emit.sub(numTiles, emit.i32(1));
  Value taken = emit.create<LLVM::AtomicRMWOp>(
      LLVM::AtomicBinOp::uinc_wrap, tileCounter, last,
      LLVM::AtomicOrdering::monotonic, "device");
  Value programs = emit.create<NVVM::GridDimXOp>(emit.getI32Type(),
                                                 LLVM::ConstantRangeAttr());
  scalars.map(op.getResult(), emit.add(taken, programs));
}

void HopperLowering::lowerPut(PutOp op) {
  Value address = slots[op.getSlot()].address;
  for (auto [index, value] : llvm::enumerate(op.getValues()))
    storeWord(emit, emit.add(address, emit.i32(kNumberBytes * index)),
              getScalar(value));
}

void HopperLowering::lowerGet(GetOp op) {
  Value offset = emit.mul(getScalar(op.getFirst()), emit.i32(kNumberBytes));
  Value address = emit.add(slots[op.getSlot()].address, offset);
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    Value number =
        loadWord(emit, emit.add(address, emit.i32(kNumberBytes * index)));
    scalars.map(result, makeUniform(number));
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

// Matrix descriptors (PTX ISA, "Matrix descriptor format"): addresses and
// offsets in units of 16 bytes, the leading offset from bit 16 and the stride
// offset, of 8 rows, from bit 32 on, and the swizzle mode in bits 62 and 63.
static constexpr int64_t kDescriptorUnit = 16;
static constexpr int64_t kLeadingOffsetShift = 16;
static constexpr int64_t kStrideOffsetShift = 32;
static constexpr int64_t kSwizzleShift = 62;

static int64_t getSwizzleMode(int64_t rowBytes) {
  return rowBytes == 128 ? 1 : rowBytes == 64 ? 2 : 3;
}

struct HopperLowering::Operand {
  /// Of the first row, in descriptor units.
  Value address;
  int64_t rows, blockRowBytes;

  /// Where step `step` of a K-major tile begins: 32 bytes further in the rows
  /// of a block, and behind the last in the next block. In descriptor units.
  int64_t getKMajorOffset(int64_t step) const {
    constexpr int64_t kStepBytes = kProductBits / 8;
    int64_t steps = blockRowBytes / kStepBytes;
    return (step % steps * kStepBytes + step / steps * getBlockBytes()) /
           kDescriptorUnit;
  }
  int64_t getBlockBytes() const { return rows * blockRowBytes; }
};

HopperLowering::Operand HopperLowering::getOperand(SlotType slot,
                                                   Value address) {
  return {emit.create<LLVM::LShrOp>(address, emit.i32(4)),
          slot.getTile().getDimSize(0), getRing(slot).getBlockRowBytes()};
}

/// `offset` from the operand's address, in descriptor units.
Value HopperLowering::makeDescriptor(const Operand &operand,
                                     int64_t leadingOffset, int64_t offset) {
  Value low =
      emit.add(operand.address,
               emit.i32(offset + (leadingOffset << kLeadingOffsetShift)));
  Value wide = emit.create<LLVM::ZExtOp>(emit.getI64Type(), low);
  int64_t strideOffset = 8 * operand.blockRowBytes / kDescriptorUnit;
  return emit.orBits(
      wide, emit.i64((getSwizzleMode(operand.blockRowBytes) << kSwizzleShift) |
                     (strideOffset << kStrideOffsetShift)));
}

//===----------------------------------------------------------------------===//
// Ramps
//===----------------------------------------------------------------------===//
//
// slope * (start + j) in column j is a product with a depth of 6: slope and
// slope * start, in three bf16 parts each that hold all of an f32's bits, by j
// and 1, which bf16 holds for the 256 columns that there may be. Other k of the
// instruction's 16 are 0 on the left.

void HopperLowering::fillRampColumns() {
  constexpr int32_t kOne = 0x3f80; // bf16
  emit.createIf(
      emit.less(thread, emit.i32(rampColumns)),
      [&] {
        Value number =
            emit.bitcast(emit.create<LLVM::SIToFPOp>(emit.getF32Type(), thread),
                         emit.getI32Type());
        Value upper = emit.andBits(number, emit.i32(int32_t(0xffff0000)));
        Value lower = emit.create<LLVM::LShrOp>(number, emit.i32(16));
        Value address = emit.add(emit.add(alignedBase, emit.i32(rampOffset)),
                                 emit.mul(thread, emit.i32(kRampRowBytes)));
        Value words[] = {emit.orBits(upper, lower),
                         emit.orBits(lower, emit.i32(kOne << 16)),
                         emit.i32(kOne << 16 | kOne), emit.i32(0)};
        for (auto [index, word] : llvm::enumerate(words))
          storeWord(emit, emit.add(address, emit.i32(4 * index)), word);
        fenceAsyncShared(emit);
      },
      [] {});
}

/// A thread's registers of the left operand, the same in all rows.
SmallVector<Value> HopperLowering::splitRamp(Value slope, Value start) {
  Value mask = emit.i32(int32_t(0xffff0000));
  auto split = [&](Value number) {
    SmallVector<Value> parts;
    for (int i = 0; i < 3; ++i) {
      Value bits = emit.andBits(emit.bitcast(number, emit.getI32Type()), mask);
      parts.push_back(bits);
      number = emit.create<LLVM::FSubOp>(number,
                                         emit.bitcast(bits, emit.getF32Type()));
    }
    return parts;
  };
  SmallVector<Value> parts = split(slope);
  llvm::append_range(parts, split(emit.create<LLVM::FMulOp>(slope, start)));
  // Thread t of four holds k = 2t and 2t + 1.
  Value own = emit.rem(lane, 4);
  Value word = emit.i32(0);
  for (int i = 2; i >= 0; --i) {
    Value lower = emit.create<LLVM::LShrOp>(parts[2 * i], emit.i32(16));
    word = emit.select(emit.equal(own, emit.i32(i)),
                       emit.orBits(parts[2 * i + 1], lower), word);
  }
  return {word, word, emit.i32(0), emit.i32(0)};
}

/// The product of a ramp's numbers, as one instruction.
WarpgroupProduct HopperLowering::getRampProduct(WgmmaOp op) {
  WarpgroupProduct product;
  product.columns = op.getType().getTile().getDimSize(1);
  product.elementA = product.elementB = emit.getBF16Type();
  product.isBTransposed = false;
  product.a = splitRamp(getScalar(op.getSlope()), getScalar(op.getStart()));
  Value address = emit.create<LLVM::LShrOp>(
      emit.add(alignedBase, emit.i32(rampOffset)), emit.i32(4));
  constexpr int64_t kStrideOffset = 8 * kRampRowBytes / kDescriptorUnit;
  product.b = emit.orBits(emit.create<LLVM::ZExtOp>(emit.getI64Type(), address),
                          emit.i64(kStrideOffset << kStrideOffsetShift));
  return product;
}

void HopperLowering::lowerWgmma(WgmmaOp op) {
  SlotType slotB = op.getB().getType();
  RankedTensorType tileB = slotB.getTile();
  bool isKMajor = op.getTransposeB();
  int64_t depth = tileB.getDimSize(isKMajor ? 1 : 0);
  int64_t productDepth = kProductBits / tileB.getElementTypeBitWidth();
  // Descriptors of Q don't change in the loop, but so many fill the registers:
  // what a shuffle yields stays in the step, and they with it.
  constexpr int64_t kMaxKeptDescriptors = 16;
  bool isDeep = depth / productDepth > kMaxKeptDescriptors;
  Operand b = getOperand(slotB, slots[op.getB()].address), a;
  auto slotA = dyn_cast<SlotType>(op.getA().getType());
  if (slotA) {
    int64_t warpgroupBytes =
        WarpSpecializeOp::kRowsPerWarpgroup * getRing(slotA).getBlockRowBytes();
    Value offset = emit.mul(warpgroupIndex, emit.i32(warpgroupBytes));
    a = getOperand(slotA, emit.add(slots[op.getA()].address, offset));
    if (isDeep)
      a.address = makeUniform(a.address);
  }

  WarpgroupProduct product;
  product.columns = tileB.getDimSize(isKMajor ? 0 : 1);
  product.elementA =
      slotA ? slotA.getTile().getElementType()
            : cast<RankedTensorType>(op.getA().getType()).getElementType();
  product.elementB = tileB.getElementType();
  product.isBTransposed = !isKMajor;
  SmallVector<Value> accumulator;
  if (op.getAcc())
    accumulator.assign(getFragment(op.getAcc()).begin(),
                       getFragment(op.getAcc()).end());

  std::optional<WarpgroupProduct> ramp;
  if (op.getSlope())
    ramp = getRampProduct(op);
  emit.create<NVVM::WgmmaFenceAlignedOp>();
  for (int64_t step = 0; step < depth / productDepth; ++step) {
    product.a.clear();
    if (slotA) {
      product.a.push_back(
          makeDescriptor(a, /*leadingOffset=*/1, a.getKMajorOffset(step)));
    } else {
      for (Value word : ArrayRef(getFragment(op.getA())).slice(4 * step, 4))
        product.a.push_back(emit.bitcast(word, emit.getI32Type()));
    }
    // [K, N]: a step is 16 rows further, and the leading offset leads to the
    // next block of columns.
    product.b =
        isKMajor
            ? makeDescriptor(b, /*leadingOffset=*/1, b.getKMajorOffset(step))
            : makeDescriptor(b, b.getBlockBytes() / kDescriptorUnit,
                             step * productDepth * b.blockRowBytes /
                                 kDescriptorUnit);
    accumulator = multiply(emit, product, accumulator);
  }
  // Last, so that the others round what is smaller.
  if (ramp)
    accumulator = multiply(emit, *ramp, accumulator);
  emit.create<NVVM::WgmmaGroupSyncAlignedOp>();
  fragments[op.getResult()] = Fragment(accumulator.begin(), accumulator.end());
}

/// f32 to 8-bit floats, four to a register: of a row, the columns of two
/// neighbouring n8 blocks, which is the order of #tile.operand.
void HopperLowering::lowerTruncF(arith::TruncFOp op) {
  Type element = getElementTypeOrSelf(op.getType());
  ArrayRef<Value> source = getFragment(op.getIn());
  Fragment result;
  // A thread's elements of a block are two of each of two rows.
  constexpr size_t kBlock = 4;
  for (size_t first = 0; first < source.size(); first += 2 * kBlock)
    for (size_t row = first; row < first + kBlock; row += 2) {
      Value pair =
          emit.create<LLVM::PoisonOp>(VectorType::get(2, emit.getI16Type()));
      for (int64_t block : {0, 1}) {
        size_t i = row + block * kBlock;
        Value half = convertToFloat8(emit, source[i], source[i + 1], element);
        pair = emit.create<LLVM::InsertElementOp>(pair, half, emit.i32(block));
      }
      result.push_back(emit.bitcast(pair, emit.getI32Type()));
    }
  fragments[op.getResult()] = std::move(result);
}

void HopperLowering::lowerWgmmaWait(WgmmaWaitOp op) {
  SmallVector<Value> values =
      waitProducts(emit, op.getInFlight(), getFragment(op.getPending()));
  fragments[op.getResult()] = Fragment(values.begin(), values.end());
}

//===----------------------------------------------------------------------===//
// Exponentials
//===----------------------------------------------------------------------===//

/// Beyond this, scores that differ do so by 64 or more after scaling.
static constexpr float kHugeExponent = 1 << 30;

/// Scales row statistics for lowerExpDiff.
HopperLowering::ScaledRows HopperLowering::scaleRows(ArrayRef<Value> rows,
                                                     Value scale) {
  Value mantissaMask = emit.i32(int32_t(0xff800000));
  Value exactScale = emit.bitcast(
      emit.andBits(emit.bitcast(scale, emit.getI32Type()), mantissaMask),
      emit.getF32Type());
  ScaledRows result;
  for (Value row : rows) {
    Value product = emit.create<LLVM::FMulOp>(row, scale);
    Value magnitude = emit.create<LLVM::FAbsOp>(product);
    Value isHuge = emit.create<LLVM::FCmpOp>(
        LLVM::FCmpPredicate::ogt, magnitude, emit.f32(kHugeExponent));
    Value rowScale = emit.select(isHuge, exactScale, scale);
    result.isHuge.push_back(isHuge);
    result.scales.push_back(rowScale);
    result.products.push_back(emit.create<LLVM::FMulOp>(row, rowScale));
  }
  return result;
}

/// exp(scale * (x - max)) as exp2(fma(x, c, -round(c * max))) with c = scale *
/// log2(e): one instruction less than the subtraction and the product. Why the
/// rounding can't show:
///
/// - All exponentials of a row are off by one factor, 2^r, with r what the
///   rounding of c * max left. The normalisation cancels it, and alpha, the
///   difference of two rounded products, changes it to the next step's.
/// - For |c * max| <= 2^30, |r| <= 32: far from overflow.
/// - Beyond, c becomes the power of two below it, which makes r = 0. Scores
///   that differ do so by 64 or more after scaling, or by 32 with that power:
///   their exponential is 0 to f32's precision either way. For the same reason
///   alpha is 0 where only one of both maxima is in this range.
void HopperLowering::lowerExpDiff(ExpDiffOp op) {
  auto type = cast<RankedTensorType>(op.getSource().getType());
  Value scale = emit.create<LLVM::FMulOp>(
      getScalar(op.getScale()), emit.f32(static_cast<float>(M_LOG2E)));
  Value zero = emit.f32(0), minusInf = emit.f32(-INFINITY);
  SmallVector<Value> maxima;
  for (Value max : getFragment(op.getMax())) {
    // Where the maximum is -inf so is the element; subtracting 0 keeps it.
    Value isMasked =
        emit.create<LLVM::FCmpOp>(LLVM::FCmpPredicate::oeq, max, minusInf);
    maxima.push_back(emit.select(isMasked, zero, max));
  }
  ScaledRows rows = scaleRows(maxima, scale);
  Fragment result;
  if (type.getRank() == 1) {
    ScaledRows source = scaleRows(getFragment(op.getSource()), scale);
    for (size_t i = 0; i < maxima.size(); ++i) {
      Value alpha = emitExp2(
          emit.create<LLVM::FSubOp>(source.products[i], rows.products[i]));
      Value differ = emit.xorBits(source.isHuge[i], rows.isHuge[i]);
      result.push_back(emit.select(differ, zero, alpha));
    }
  } else {
    SmallVector<Value> addends =
        llvm::map_to_vector(rows.products, [&](Value value) -> Value {
          return emit.create<LLVM::FNegOp>(value);
        });
    for (auto [row, value] : llvm::zip_equal(getLayout(type).getRowIndices(),
                                             getFragment(op.getSource())))
      result.push_back(emitExp2(
          emit.create<LLVM::FMAOp>(value, rows.scales[row], addends[row])));
  }
  fragments[op.getResult()] = std::move(result);
}

Value HopperLowering::emitExp2(Value exponent) {
  return emit.intrinsic("llvm.nvvm.ex2.approx.ftz", emit.getF32Type(),
                        exponent);
}
