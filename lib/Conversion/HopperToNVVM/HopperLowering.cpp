//===- HopperLowering.cpp - One warp-specialised kernel to NVVM -----------===//

#include "HopperLowering.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::hopper;
using namespace mlir::tile;

// 128-byte swizzle atoms repeat every 1024 bytes of the address.
static constexpr int64_t kSlotAlignment = 1024;
static constexpr int64_t kBarrierBytes = 8;
static constexpr int64_t kWarpsPerWarpgroup = 4;
static constexpr int64_t kProductDepth = 16;
static constexpr int64_t kTensorMapBytes = 128;
static constexpr int64_t kTensorMapAlignment = 64;

//===----------------------------------------------------------------------===//
// Frame
//===----------------------------------------------------------------------===//

LogicalResult HopperLowering::run() {
  if (failed(findRoles()) || failed(checkLayouts()) ||
      failed(verifyRole(roles.getProducer(), /*isProducer=*/true)) ||
      failed(verifyRole(roles.getConsumer(), /*isProducer=*/false)) ||
      failed(allocateRings()) || failed(collectTensorMaps()))
    return failure();
  describeParameters();
  createFunction();
  bindArguments();
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

LogicalResult HopperLowering::verifyProduct(WgmmaOp op) {
  int64_t rows = op.getType().getTile().getDimSize(0);
  int64_t expected =
      WarpSpecializeOp::kRowsPerWarpgroup * roles.getWarpgroups();
  if (rows != expected)
    return op.emitOpError("has ")
           << rows << " rows, but the " << roles.getWarpgroups()
           << " consumer warpgroups hold " << expected;
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

LogicalResult HopperLowering::verifyOp(Operation *op, bool isProducer) {
  bool isForProducer = isa<AcquireOp, CommitOp, TmaLoadOp>(op);
  bool isForConsumer = isa<WaitOp, ReleaseOp, WgmmaOp, WgmmaWaitOp>(op);
  if (isProducer ? isForConsumer : isForProducer)
    return op->emitOpError("has no place in the ")
           << (isProducer ? "producer" : "consumer") << " role";
  for (Value operand : op->getOperands()) {
    if (!isHopperType(operand.getType()))
      continue;
    Operation *source = operand.getDefiningOp();
    bool isKnown =
        isRing(operand) || isa_and_present<AcquireOp, WaitOp, WgmmaOp>(source);
    if (!(isForProducer || isForConsumer) || !isKnown)
      return op->emitOpError("takes a ")
             << operand.getType()
             << " on a way that has no lowering: rings come from the role's "
                "arguments, slots and pending products from the operation "
                "that makes them";
  }
  auto product = dyn_cast<WgmmaOp>(op);
  return product ? verifyProduct(product) : success();
}

LogicalResult HopperLowering::verifyRole(Region &region, bool isProducer) {
  WalkResult result = region.walk([&](Operation *op) {
    return failed(verifyOp(op, isProducer)) ? WalkResult::interrupt()
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
    bytes += llvm::alignTo(type.getBytes(), kSlotAlignment);
  }
  firstBarrier = bytes;
  for (auto &[op, ring] : rings) {
    ring.barriers = bytes;
    bytes += 2 * kBarrierBytes * ring.type.getStages();
  }
  for (auto &[op, ring] : rings)
    ringOf[op->getResult(0)] = &ring;
  // The driver aligns dynamic shared memory to 16 bytes only.
  sharedBytes = bytes + kSlotAlignment;
  if (sharedBytes <= maxSharedBytes)
    return success();
  InFlightDiagnostic diag =
      kernel.emitOpError("needs ")
      << sharedBytes << " bytes of shared memory, but a program may use "
      << maxSharedBytes << "; use smaller tiles or fewer num_stages";
  for (auto &[op, ring] : rings)
    diag.attachNote(op->getLoc())
        << ring.type.getBytes() << " bytes for " << ring.type;
  return diag;
}

unsigned HopperLowering::getKernelArgument(Value roleArgument) {
  unsigned number = cast<BlockArgument>(roleArgument).getArgNumber();
  return cast<BlockArgument>(roles.getArgs()[number]).getArgNumber();
}

LogicalResult HopperLowering::collectTensorMaps() {
  WalkResult result = roles.getProducer().walk([&](TmaLoadOp op) {
    auto argument = dyn_cast<BlockArgument>(op.getSource());
    if (!argument || argument.getOwner() != &roles.getProducer().front() ||
        !isa<BlockArgument>(roles.getArgs()[argument.getArgNumber()])) {
      op.emitOpError("must load from an argument of the kernel: its tensor map "
                     "is made at launch");
      return WalkResult::interrupt();
    }
    int64_t rows = op.getSlot().getType().getTile().getDimSize(0);
    tensorMaps.insert({{getKernelArgument(argument), rows}, Value()});
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

SmallVector<TensorMap> HopperLowering::getTensorMaps() const {
  return llvm::map_to_vector(tensorMaps, [](const auto &entry) {
    auto [argument, rows] = entry.first;
    return TensorMap{argument, rows, RingType::kBlockColumns};
  });
}

void HopperLowering::describeParameters() {
  extraParameters.assign(tensorMaps.size(),
                         LLVM::LLVMPointerType::get(emit.getContext()));
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

void HopperLowering::initBarriers() {
  Value unaligned = emit.add(sharedBase, emit.i32(kSlotAlignment - 1));
  alignedBase = emit.andBits(unaligned, emit.i32(-kSlotAlignment));
  Value warpgroup = emit.div(thread, WarpSpecializeOp::kWarpgroupThreads);
  // A shuffle tells ptxas that the whole warp agrees: descriptors stay in
  // uniform registers.
  warpgroupIndex = emit.create<NVVM::ShflOp>(
      emit.getI32Type(), emit.i32(-1), warpgroup, emit.i32(0), emit.i32(31),
      NVVM::ShflKind::idx, UnitAttr());
  isFirstLane = emit.equal(lane, emit.i32(0));

  emit.createIf(
      emit.equal(thread, emit.i32(0)),
      [&] {
        int64_t emptyCount = kWarpsPerWarpgroup * roles.getWarpgroups();
        for (auto &[op, ring] : rings) {
          int64_t stages = ring.type.getStages();
          for (int64_t i = 0; i < 2 * stages; ++i) {
            Value barrier = emit.add(
                alignedBase, emit.i32(ring.barriers + kBarrierBytes * i));
            initBarrier(emit, barrier, i < stages ? 1 : emptyCount);
          }
        }
        fenceBarrierInit(emit);
      },
      [] {});
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
  // One thread issues; the others are done.
  LogicalResult result = success();
  emit.createIf(
      emit.equal(thread, emit.i32(0)),
      [&] { result = lowerRole(roles.getProducer()); }, [] {});
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

LogicalResult HopperLowering::lowerOp(Operation *op) {
  auto done = [](auto &&lower) {
    lower();
    return success();
  };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](AcquireOp op) { return done([&] { lowerAcquire(op); }); })
      .Case([&](WaitOp op) { return done([&] { lowerWait(op); }); })
      .Case([&](TmaLoadOp op) { return done([&] { lowerTmaLoad(op); }); })
      .Case([&](CommitOp op) {
        return done([&] { arriveBarrier(emit, slots[op.getSlot()].full); });
      })
      .Case([&](ReleaseOp op) {
        return done([&] {
          arriveBarrierIf(emit, isFirstLane, slots[op.getSlot()].empty);
        });
      })
      .Case([&](WgmmaOp op) { return done([&] { lowerWgmma(op); }); })
      .Case([&](WgmmaWaitOp op) { return done([&] { lowerWgmmaWait(op); }); })
      .Case([&](ExpDiffOp op) { return done([&] { lowerExpDiff(op); }); })
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

void HopperLowering::lowerTmaLoad(TmaLoadOp op) {
  const Slot &slot = slots[op.getSlot()];
  RankedTensorType tile = op.getSlot().getType().getTile();
  Value map =
      tensorMaps[{getKernelArgument(op.getSource()), tile.getDimSize(0)}];
  SmallVector<Value> coordinates;
  for (Value index : llvm::reverse(op.getIndices()))
    coordinates.push_back(getScalar(index));
  auto ring = RingType::get(op.getContext(), /*stages=*/1, tile);
  expectBytes(emit, slot.full, ring.getSlotBytes());
  Value firstColumn = coordinates[0];
  for (int64_t block = 0; block < ring.getNumBlocks(); ++block) {
    coordinates[0] =
        emit.add(firstColumn, emit.i32(block * RingType::kBlockColumns));
    loadTensor(emit,
               emit.add(slot.address, emit.i32(block * ring.getBlockBytes())),
               map, coordinates, slot.full);
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

// Matrix descriptors (PTX ISA, "Matrix descriptor format"): addresses and
// offsets in units of 16 bytes, the stride offset in bits 32 to 45 and the
// 128-byte swizzle mode in bits 62 and 63.
static constexpr int64_t kDescriptorUnit = 16;
static constexpr int64_t kAtomBytes = 1024;
static constexpr int64_t kDescriptorHigh =
    (int64_t(1) << 62) | (kAtomBytes / kDescriptorUnit) << 32;
static constexpr int64_t kLeadingOffsetShift = 16;

/// `offset` from `address`, both in descriptor units.
Value HopperLowering::makeDescriptor(Value address, int64_t leadingOffset,
                                     int64_t offset) {
  Value low = emit.add(
      address, emit.i32(offset + (leadingOffset << kLeadingOffsetShift)));
  Value wide = emit.create<LLVM::ZExtOp>(emit.getI64Type(), low);
  return emit.orBits(wide, emit.i64(kDescriptorHigh));
}

/// Where k16 step `step` of a K-major tile of `rows` rows begins: 32 bytes
/// further in the 128-byte rows, and in the next block of 64 columns every 4.
static int64_t getKMajorOffset(int64_t step, int64_t rows) {
  constexpr int64_t kSteps = RingType::kBlockColumns / kProductDepth;
  return (step % kSteps) * 32 / kDescriptorUnit +
         (step / kSteps) * rows * 128 / kDescriptorUnit;
}

void HopperLowering::lowerWgmma(WgmmaOp op) {
  RankedTensorType tileB = op.getB().getType().getTile();
  bool isKMajor = op.getTransposeB();
  int64_t rowsB = tileB.getDimSize(0);
  int64_t depth = tileB.getDimSize(isKMajor ? 1 : 0);
  Value addressB =
      emit.create<LLVM::LShrOp>(slots[op.getB()].address, emit.i32(4));
  auto slotA = dyn_cast<SlotType>(op.getA().getType());
  Value addressA;
  if (slotA) {
    int64_t warpgroupBytes = WarpSpecializeOp::kRowsPerWarpgroup * 128;
    Value offset = emit.mul(warpgroupIndex, emit.i32(warpgroupBytes));
    addressA = emit.create<LLVM::LShrOp>(
        emit.add(slots[op.getA()].address, offset), emit.i32(4));
  }

  WarpgroupProduct product;
  product.columns = tileB.getDimSize(isKMajor ? 0 : 1);
  product.element = tileB.getElementType();
  product.isBTransposed = !isKMajor;
  SmallVector<Value> accumulator;
  if (op.getAcc())
    accumulator.assign(getFragment(op.getAcc()).begin(),
                       getFragment(op.getAcc()).end());

  emit.create<NVVM::WgmmaFenceAlignedOp>();
  for (int64_t step = 0; step < depth / kProductDepth; ++step) {
    product.a.clear();
    if (slotA) {
      int64_t rowsA = slotA.getTile().getDimSize(0);
      product.a.push_back(makeDescriptor(addressA, /*leadingOffset=*/1,
                                         getKMajorOffset(step, rowsA)));
    } else {
      for (Value pair : ArrayRef(getFragment(op.getA())).slice(4 * step, 4))
        product.a.push_back(emit.bitcast(pair, emit.getI32Type()));
    }
    // [K, N]: a step is 16 rows of 128 bytes further, and the leading offset
    // leads to the next block of 64 columns.
    product.b =
        isKMajor ? makeDescriptor(addressB, /*leadingOffset=*/1,
                                  getKMajorOffset(step, rowsB))
                 : makeDescriptor(addressB, rowsB * 128 / kDescriptorUnit,
                                  step * kProductDepth * 128 / kDescriptorUnit);
    accumulator = multiply(emit, product, accumulator);
  }
  emit.create<NVVM::WgmmaGroupSyncAlignedOp>();
  fragments[op.getResult()] = Fragment(accumulator.begin(), accumulator.end());
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
