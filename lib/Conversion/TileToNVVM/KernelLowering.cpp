//===- KernelLowering.cpp - One tile.kernel to one GPU kernel -------------===//

#include "KernelLowering.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <map>
#include <vector>

using namespace mlir;
using namespace mlir::tile;

static constexpr int64_t kWarpSize = 32;

static RankedTensorType getTileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool isTile(Type type) { return isa<RankedTensorType>(type); }

bool tile::isPacked(RankedTensorType type) {
  return type.getElementTypeBitWidth() == 16 &&
         isa<FloatType>(type.getElementType()) &&
         !isa_and_present<RowLayoutAttr>(type.getEncoding());
}

bool tile::isInShared(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile && isa_and_present<SharedLayoutAttr>(tile.getEncoding());
}

/// The type of one value of a fragment.
static Type getFragmentElementType(RankedTensorType type) {
  if (isInShared(type))
    return IntegerType::get(type.getContext(), 32);
  if (isPacked(type))
    return VectorType::get(2, type.getElementType());
  return type.getElementType();
}

RegisterLayout KernelLowering::getLayout(RankedTensorType type) {
  // checkLayouts has seen every type of the kernel.
  return *RegisterLayout::get(type, [&] { return kernel.emitOpError(); });
}

//===----------------------------------------------------------------------===//
// Frame
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::run() {
  if (failed(checkLayouts()) || failed(allocateBuffers()))
    return failure();
  createFunction();
  bindArguments();
  return lowerBlock(kernel.getBody().front());
}

static bool isFloat8(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(getElementTypeOrSelf(type));
}

/// 8-bit floats in the layouts of products exist as their left operands only:
/// rounded, handed on and multiplied.
static LogicalResult checkFloat8(Operation *op, RankedTensorType tile) {
  if (!isFloat8(tile) ||
      !isa_and_present<MmaLayoutAttr, OperandLayoutAttr>(tile.getEncoding()))
    return success();
  if (!isa<arith::TruncFOp, ConvertLayoutOp>(op) &&
      !isa<scf::SCFDialect>(op->getDialect()))
    return op->emitOpError("makes ")
           << tile
           << "; 8-bit floats in this layout come from arith.truncf only, as "
              "the left operand of a product";
  // A register holds four, of two blocks of 8 columns.
  if (tile.getDimSize(1) % 16 != 0)
    return op->emitOpError("makes ")
           << tile << "; columns of 8-bit floats must be a multiple of 16";
  return success();
}

LogicalResult KernelLowering::checkLayouts() {
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitOpError("must be one block; use scf for control flow");
  auto check = [](Operation *op, Type type) -> LogicalResult {
    if (isa<MemRefType>(type) && !isa<memref::SubViewOp, PagedRowsOp>(op))
      return op->emitOpError("makes a memref inside a kernel; pass it as an "
                             "argument, or take a memref.subview of one");
    if (auto buffer = dyn_cast<BufferType>(type))
      type = buffer.getTile().cloneWithEncoding(
          SharedLayoutAttr::get(type.getContext()));
    auto tile = dyn_cast<RankedTensorType>(type);
    if (!tile)
      return success();
    if (isInShared(type)) {
      int64_t bits = tile.getShape().back() * tile.getElementTypeBitWidth();
      if (tile.getRank() == 2 && bits % (8 * SharedSwizzle::kChunkBytes) == 0)
        return success();
      return op->emitOpError("puts ")
             << tile << " in shared memory, where rows must be a multiple of "
             << SharedSwizzle::kChunkBytes << " bytes";
    }
    auto emitError = [&] { return op->emitOpError(); };
    if (failed(RegisterLayout::get(tile, emitError)))
      return failure();
    return checkFloat8(op, tile);
  };
  WalkResult result = kernel.getBody().walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (failed(check(op, type)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult KernelLowering::allocateBuffers() {
  struct Item {
    Operation *op;
    int64_t bytes;
    RankedTensorType tile;
  };
  SmallVector<Item> items;
  kernel.getBody().walk([&](Operation *op) {
    if (auto alloc = dyn_cast<AllocBufferOp>(op)) {
      auto type = cast<BufferType>(alloc.getType());
      items.push_back({op, type.getBytes(), type.getTile()});
    } else if (auto load = dyn_cast<LoadOp>(op);
               load && isInShared(load.getType())) {
      BufferType type = BufferType::get(op->getContext(), 1, getTileType(load));
      items.push_back({op, type.getBytes(), type.getTile()});
    }
  });
  // ldmatrix and cp.async want 16 bytes, the swizzle the 128 of all banks.
  auto allocate = [&](const Item &item, int64_t &end) {
    sharedOffsets[item.op] = llvm::alignTo(end, 128);
    end = sharedOffsets[item.op] + item.bytes;
  };
  // Loops run one after the other, and a load in one waits until no thread
  // reads what was there before (lowerLoad).
  llvm::MapVector<Operation *, int64_t> endOfLoop;
  auto isInLoop = [&](const Item &item) {
    return isa<LoadOp>(item.op) && item.op->getParentOp() != kernel;
  };
  for (Item &item : items)
    if (!isInLoop(item))
      allocate(item, sharedBytes);
  for (Item &item : llvm::make_filter_range(items, isInLoop)) {
    Operation *loop = kernel.getBody().findAncestorOpInRegion(*item.op);
    int64_t &end = endOfLoop.try_emplace(loop, sharedBytes).first->second;
    allocate(item, end);
  }
  for (auto &[loop, end] : endOfLoop)
    sharedBytes = std::max(sharedBytes, end);
  if (sharedBytes <= target.maxSharedBytes)
    return success();
  InFlightDiagnostic diag =
      kernel.emitOpError("needs ")
      << sharedBytes << " bytes of shared memory, but a program may use "
      << target.maxSharedBytes << "; use smaller tiles or fewer num_stages";
  for (Item &item : items)
    diag.attachNote(item.op->getLoc())
        << item.bytes << " bytes for "
        << item.bytes /
               BufferType::get(item.op->getContext(), 1, item.tile).getBytes()
        << " of " << item.tile;
  return diag;
}

/// The kernel ABI of an argument: see docs of `convert-tile-to-nvvm`.
static void appendParameterTypes(Type type, SmallVectorImpl<Type> &types) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref) {
    types.push_back(type);
    return;
  }
  MLIRContext *context = type.getContext();
  types.push_back(LLVM::LLVMPointerType::get(context, /*global*/ 1));
  types.append(memref.getNumDynamicDims(), IntegerType::get(context, 32));
  if (memref.getLayout().isIdentity())
    return;
  auto [strides, offset] = memref.getStridesAndOffset();
  types.append(llvm::count_if(strides, ShapedType::isDynamic),
               IntegerType::get(context, 64));
}

void KernelLowering::createFunction() {
  SmallVector<Type> types;
  for (Type type : kernel.getArgumentTypes())
    appendParameterTypes(type, types);
  llvm::append_range(types, extraParameters);
  emit.setInsertionPointToEnd(module.getBody());
  auto functionType = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(emit.getContext()), types);
  function = emit.create<LLVM::LLVMFuncOp>(kernel.getName(), functionType);
  int32_t threads = kWarpSize * kernel.getNumWarps();
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    emit.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    emit.getDenseI32ArrayAttr({threads, 1, 1}));
  function->setAttr("attn.dynamic_smem_bytes",
                    emit.getI64IntegerAttr(sharedBytes));
  function->setAttr("attn.num_warps", kernel.getNumWarpsAttr());
  if (Attribute schedule = kernel->getAttr("attn.schedule"))
    function->setAttr("attn.schedule", schedule);
  emit.setInsertionPointToStart(function.addEntryBlock(emit));
  emit.setFunction(function);

  thread = emit.create<NVVM::ThreadIdXOp>(emit.getI32Type(),
                                          LLVM::ConstantRangeAttr());
  warp = emit.div(thread, kWarpSize);
  lane = emit.rem(thread, kWarpSize);
  if (sharedBytes > 0) {
    Value base = emit.create<LLVM::AddressOfOp>(sharedMemory);
    sharedBase = emit.create<LLVM::PtrToIntOp>(emit.getI32Type(), base);
  }
}

void KernelLowering::bindArguments() {
  auto parameter = function.getArguments().begin();
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type) {
      scalars.map(argument, *parameter++);
      continue;
    }
    MemRefArgument &memref = memrefs[argument];
    memref.pointer = *parameter++;
    for (int64_t size : type.getShape())
      memref.sizes.push_back(ShapedType::isDynamic(size) ? Value(*parameter++)
                                                         : emit.i32(size));
    if (type.getLayout().isIdentity()) {
      Value stride = emit.i64(1);
      for (Value size : llvm::reverse(memref.sizes)) {
        memref.strides.insert(memref.strides.begin(), stride);
        stride = emit.mul(stride, emit.extend(size));
      }
      continue;
    }
    auto [strides, offset] = type.getStridesAndOffset();
    for (int64_t stride : strides)
      memref.strides.push_back(ShapedType::isDynamic(stride)
                                   ? Value(*parameter++)
                                   : emit.i64(stride));
  }
}

//===----------------------------------------------------------------------===//
// Dispatch and control flow
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerBlock(Block &block) {
  for (Operation &op : block) {
    emit.setLoc(op.getLoc());
    if (failed(lowerOp(&op)))
      return failure();
  }
  return success();
}

LogicalResult KernelLowering::lowerOp(Operation *op) {
  auto done = [](auto &&lower) {
    lower();
    return success();
  };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ReturnOp) {
        return done([&] { emit.create<LLVM::ReturnOp>(ValueRange()); });
      })
      .Case([&](ProgramIdOp op) {
        return done([&] {
          scalars.map(op.getResult(),
                      emit.create<NVVM::BlockIdXOp>(emit.getI32Type(),
                                                    LLVM::ConstantRangeAttr())
                          .getResult());
        });
      })
      .Case([&](scf::ForOp op) { return lowerFor(op); })
      .Case([&](scf::WhileOp op) { return lowerWhile(op); })
      .Case([&](scf::IfOp op) { return lowerIf(op); })
      .Case([&](AllocBufferOp) { return success(); })
      .Case([&](LoadOp op) { return lowerLoad(op); })
      .Case([&](GatherOp op) { return lowerGather(op); })
      .Case([&](StoreOp op) { return lowerStore(op); })
      .Case([&](StoreElementOp op) {
        return done([&] { lowerStoreElement(op); });
      })
      .Case([&](AsyncLoadOp op) { return lowerAsyncLoad(op); })
      .Case([&](AsyncCommitOp) {
        return done([&] { emit.create<NVVM::CpAsyncCommitGroupOp>(); });
      })
      .Case([&](AsyncWaitOp op) {
        return done([&] {
          emit.create<NVVM::CpAsyncWaitGroupOp>(op.getPending());
          emitBarrier();
        });
      })
      .Case([&](BufferReadOp op) { return done([&] { lowerBufferRead(op); }); })
      .Case([&](MmaOp op) { return lowerMma(op); })
      .Case([&](ReduceOp op) { return done([&] { lowerReduce(op); }); })
      .Case([&](ReduceRangeOp op) { return lowerReduceRange(op); })
      .Case([&](AnyExceedsOp op) { return done([&] { lowerAnyExceeds(op); }); })
      .Case([&](FoldSumOp op) { return lowerFoldSum(op); })
      .Case([&](BroadcastOp op) { return done([&] { lowerBroadcast(op); }); })
      .Case([&](IotaOp op) { return done([&] { lowerIota(op); }); })
      .Case([&](ExpDiffOp op) { return done([&] { lowerExpDiff(op); }); })
      .Case([&](ConvertLayoutOp op) { return lowerConvertLayout(op); })
      .Case([&](tensor::SplatOp op) {
        return done([&] { lowerSplat(op, getScalar(op.getInput())); });
      })
      .Case([&](memref::DimOp op) { return lowerMemRefDim(op); })
      .Case([&](PagedRowsOp op) { return done([&] { lowerPagedRows(op); }); })
      .Case([&](memref::SubViewOp op) { return lowerSubView(op); })
      .Case([&](arith::ConstantOp op) { return lowerConstant(op); })
      .Default([&](Operation *op) -> LogicalResult {
        bool hasTiles = llvm::any_of(op->getOperandTypes(), isTile) ||
                        llvm::any_of(op->getResultTypes(), isTile);
        if (op->getNumRegions() == 0 && op->getNumResults() == 1 &&
            isa<arith::ArithDialect, math::MathDialect>(op->getDialect())) {
          return lowerElementwise(op);
        }
        return op->emitOpError("can't be lowered to ")
               << (hasTiles ? "threads" : "a GPU kernel")
               << "; legal are tile, arith, math, scf.for, scf.while and "
                  "scf.if";
      });
}

LogicalResult KernelLowering::lowerNested(Block &block) {
  for (Operation &op : block.without_terminator()) {
    emit.setLoc(op.getLoc());
    if (failed(lowerOp(&op)))
      return failure();
  }
  return success();
}

/// The values that stand for `values`, tiles expanded.
SmallVector<Value> KernelLowering::getLowered(ValueRange values) {
  SmallVector<Value> result;
  for (Value value : values) {
    if (auto it = fragments.find(value); it != fragments.end())
      llvm::append_range(result, it->second);
    else
      result.push_back(scalars.lookup(value));
  }
  return result;
}

/// Binds `values` to `lowered`, as getLowered orders them; `like` tells how
/// many values each takes.
void KernelLowering::bindLowered(ValueRange values, ValueRange like,
                                 ValueRange lowered) {
  for (auto [value, model] : llvm::zip_equal(values, like)) {
    auto it = fragments.find(model);
    if (it == fragments.end()) {
      scalars.map(value, lowered.front());
      lowered = lowered.drop_front();
      continue;
    }
    size_t count = it->second.size();
    ValueRange own = lowered.take_front(count);
    // The lookup may move what `it` points to.
    fragments[value] = Fragment(own.begin(), own.end());
    lowered = lowered.drop_front(count);
  }
}

LogicalResult KernelLowering::lowerFor(scf::ForOp op) {
  LogicalResult result = success();
  auto body = [&](Value iv, ValueRange carried) {
    scalars.map(op.getInductionVar(), iv);
    bindLowered(op.getRegionIterArgs(), op.getInitArgs(), carried);
    result = lowerNested(*op.getBody());
    if (failed(result))
      return SmallVector<Value>();
    return getLowered(op.getBody()->getTerminator()->getOperands());
  };
  SmallVector<Value> last = emit.createFor(
      makeUniform(getScalar(op.getLowerBound())), getScalar(op.getUpperBound()),
      getScalar(op.getStep()), getLowered(op.getInitArgs()), body);
  if (succeeded(result))
    bindLowered(op.getResults(), op.getInitArgs(), last);
  return result;
}

LogicalResult KernelLowering::lowerWhile(scf::WhileOp op) {
  LogicalResult result = success();
  scf::ConditionOp condition = op.getConditionOp();
  auto before = [&](ValueRange carried) {
    bindLowered(op.getBeforeArguments(), op.getInits(), carried);
    result = lowerNested(*op.getBeforeBody());
    SmallVector<Value> handed = {emit.i1(false)};
    if (failed(result))
      return handed;
    handed = {getScalar(condition.getCondition())};
    llvm::append_range(handed, getLowered(condition.getArgs()));
    return handed;
  };
  auto after = [&](ValueRange handed) {
    if (failed(result))
      return SmallVector<Value>();
    SmallVector<Value> uniform(handed);
    for (Value &value : uniform)
      if (value.getType().isInteger(32))
        value = makeUniform(value);
    bindLowered(op.getAfterArguments(), condition.getArgs(), uniform);
    result = lowerNested(*op.getAfterBody());
    if (failed(result))
      return SmallVector<Value>();
    return getLowered(op.getYieldOp().getResults());
  };
  SmallVector<Value> last =
      emit.createWhile(getLowered(op.getInits()), before, after);
  if (succeeded(result))
    bindLowered(op.getResults(), condition.getArgs(), last);
  return result;
}

LogicalResult KernelLowering::lowerIf(scf::IfOp op) {
  for (Type type : op.getResultTypes())
    if (isInShared(type))
      return op.emitOpError("can't yield a tile that lies in shared memory");
  LogicalResult result = success();
  auto lowerBranch = [&](Region &branch) {
    if (branch.empty() || failed(result))
      return SmallVector<Value>();
    result = lowerNested(branch.front());
    if (failed(result))
      return SmallVector<Value>();
    return getLowered(branch.front().getTerminator()->getOperands());
  };
  SmallVector<Value> values = emit.createIfElse(
      getScalar(op.getCondition()),
      [&] { return lowerBranch(op.getThenRegion()); },
      [&] { return lowerBranch(op.getElseRegion()); });
  if (succeeded(result) && op.getNumResults() > 0)
    bindLowered(op.getResults(), op.thenYield().getOperands(), values);
  return result;
}

//===----------------------------------------------------------------------===//
// Elementwise operations
//===----------------------------------------------------------------------===//

SmallVector<Value> KernelLowering::unpack(RankedTensorType type,
                                          ArrayRef<Value> fragment) {
  if (!isPacked(type))
    return SmallVector<Value>(fragment);
  SmallVector<Value> elements;
  for (Value pair : fragment)
    for (int64_t i : {0, 1})
      elements.push_back(
          emit.create<LLVM::ExtractElementOp>(pair, emit.i32(i)));
  return elements;
}

Fragment KernelLowering::pack(RankedTensorType type, ArrayRef<Value> elements) {
  if (!isPacked(type))
    return Fragment(elements.begin(), elements.end());
  Type pairType = getFragmentElementType(type);
  Fragment fragment;
  for (size_t i = 0; i < elements.size(); i += 2) {
    Value pair = emit.create<LLVM::PoisonOp>(pairType);
    for (int64_t half : {0, 1})
      pair = emit.create<LLVM::InsertElementOp>(pair, elements[i + half],
                                                emit.i32(half));
    fragment.push_back(pair);
  }
  return fragment;
}

static bool isColumnCompare(arith::CmpIOp op);

LogicalResult KernelLowering::lowerElementwise(Operation *op) {
  Value result = op->getResult(0);
  auto isFloat8Type = [](Type type) { return isFloat8(type); };
  if (llvm::any_of(op->getOperandTypes(), isFloat8Type) ||
      isFloat8(result.getType()))
    return op->emitOpError("computes on 8-bit floats, which only products on "
                           "sm_90a take");
  if (!isTile(result.getType())) {
    if (llvm::any_of(op->getOperandTypes(), isTile))
      return op->emitOpError("can't be lowered to threads");
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(getScalar(operand));
    FailureOr<Value> value = lowerMath(op, operands);
    if (failed(value))
      return failure();
    scalars.map(result, *value);
    return success();
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(op);
      compare && isColumnCompare(compare)) {
    if (!keepColumnBits(op, compareColumnBits(compare)))
      lowerColumnCompare(compare);
    return success();
  }
  if (keepColumnBits(op, combineColumnBits(op)) || lowerSelectByColumnBits(op))
    return success();
  if (lowerColumnSum(op))
    return success();
  if (auto product = dyn_cast<arith::MulFOp>(op);
      product && lowerColumnProduct(product))
    return success();
  if (auto trunc = dyn_cast<arith::TruncFOp>(op))
    return lowerTruncF(trunc);
  if (auto ext = dyn_cast<arith::ExtFOp>(op))
    return lowerExtF(ext);

  RankedTensorType type = getTileType(result);
  SmallVector<SmallVector<Value>> operands;
  for (Value operand : op->getOperands()) {
    if (columnBits.contains(operand) && !fragments.contains(operand))
      operands.emplace_back(expandColumnBits(operand));
    else if (isTile(operand.getType()))
      operands.push_back(unpack(getTileType(operand), getFragment(operand)));
    else
      operands.push_back({getScalar(operand)});
  }
  const bool combinesPredicates = type.getElementType().isInteger(1) &&
                                  isa<arith::AndIOp, arith::OrIOp>(op);
  auto lowerElement = [&](ValueRange scalars) -> FailureOr<Value> {
    if (combinesPredicates)
      return emit.combinePredicates(isa<arith::AndIOp>(op) ? "and" : "or",
                                    scalars[0], scalars[1]);
    return lowerMath(op, scalars);
  };
  size_t count = getLayout(type).getOffsets().size();
  SmallVector<Value> elements;
  // Elements of one row or column are often computed from the same values.
  std::map<std::vector<const void *>, Value> known;
  for (size_t i = 0; i < count; ++i) {
    SmallVector<Value> scalarOperands;
    std::vector<const void *> key;
    for (auto &operand : operands) {
      scalarOperands.push_back(operand.size() == 1 ? operand[0] : operand[i]);
      key.push_back(scalarOperands.back().getAsOpaquePointer());
    }
    Value &element = known[key];
    if (!element) {
      FailureOr<Value> made = lowerElement(scalarOperands);
      if (failed(made))
        return failure();
      element = *made;
    }
    elements.push_back(element);
  }
  fragments[result] = pack(type, elements);
  return success();
}

/// 1 / x where an error of an ulp, and 0 instead of a subnormal, will do.
static bool isApproximateInverse(Operation *op) {
  auto div = dyn_cast<arith::DivFOp>(op);
  return div && getElementTypeOrSelf(div.getType()).isF32() &&
         matchPattern(div.getLhs(), m_OneFloat()) &&
         arith::bitEnumContainsAll(div.getFastmath(),
                                   arith::FastMathFlags::afn);
}

/// The LLVM or NVVM intrinsic of an f32 math operation; empty if there is none
/// without a library.
static StringRef getMathIntrinsic(Operation *op) {
  return TypeSwitch<Operation *, StringRef>(op)
      .Case([](math::Exp2Op) { return "llvm.nvvm.ex2.approx.ftz"; })
      .Case([](math::Log2Op) { return "llvm.nvvm.lg2.approx.f"; })
      .Case([](math::RsqrtOp) { return "llvm.nvvm.rsqrt.approx.f"; })
      // Twice the error of the IEEE division, at a fraction of its cost.
      .Case([](arith::DivFOp) { return "llvm.nvvm.div.full"; })
      .Case([](math::SqrtOp) { return "llvm.sqrt.f32"; })
      .Case([](math::AbsFOp) { return "llvm.fabs.f32"; })
      .Case([](math::FloorOp) { return "llvm.floor.f32"; })
      .Case([](math::CeilOp) { return "llvm.ceil.f32"; })
      .Case([](math::TruncOp) { return "llvm.trunc.f32"; })
      .Case([](math::RoundEvenOp) { return "llvm.roundeven.f32"; })
      .Case([](math::CopySignOp) { return "llvm.copysign.f32"; })
      .Case([](math::FmaOp) { return "llvm.fma.f32"; })
      .Default(StringRef());
}

/// One element of an arith or math operation.
FailureOr<Value> KernelLowering::lowerMath(Operation *op, ValueRange operands) {
  Type elementType = getElementTypeOrSelf(op->getResult(0));
  if (isApproximateInverse(op))
    return emit.intrinsic("llvm.nvvm.rcp.approx.ftz.f", elementType,
                          operands.drop_front());
  StringRef name = getMathIntrinsic(op);
  if (!name.empty() && elementType.isF32())
    return emit.intrinsic(name, elementType, operands);
  if (Value value = emit.createArith(op, operands))
    return value;
  return op->emitOpError("on ")
         << elementType
         << " has no GPU instruction; tile-lower-math turns it into those "
            "that have, on f32";
}

LogicalResult KernelLowering::lowerConstant(arith::ConstantOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type) {
    scalars.map(op.getResult(), emit.constant(op.getValue()));
    return success();
  }
  if (isFloat8(type))
    return op.emitOpError("is of 8-bit floats, which come from memory only");
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements || !elements.isSplat())
    return op.emitOpError("must be the same in every element");
  Value scalar =
      emit.constant(cast<TypedAttr>(elements.getSplatValue<Attribute>()));
  lowerSplat(op, scalar);
  return success();
}

void KernelLowering::lowerSplat(Operation *op, Value scalar) {
  RankedTensorType type = getTileType(op->getResult(0));
  size_t count = getLayout(type).getOffsets().size();
  if (!isPacked(type)) {
    fragments[op->getResult(0)] = Fragment(count, scalar);
    return;
  }
  Value pair = pack(type, {scalar, scalar}).front();
  fragments[op->getResult(0)] = Fragment(count / 2, pair);
}

LogicalResult KernelLowering::lowerTruncF(arith::TruncFOp op) {
  RankedTensorType type = getTileType(op.getResult());
  if (!isPacked(type) || !getElementTypeOrSelf(op.getIn()).isF32())
    return op.emitOpError("truncates tiles of f32 to f16 or bf16 only");
  StringRef name = type.getElementType().isBF16() ? "llvm.nvvm.ff2bf16x2.rn"
                                                  : "llvm.nvvm.ff2f16x2.rn";
  ArrayRef<Value> source = getFragment(op.getIn());
  Fragment result;
  for (size_t i = 0; i < source.size(); i += 2)
    // The instruction takes the upper half first.
    result.push_back(emit.intrinsic(name, getFragmentElementType(type),
                                    {source[i + 1], source[i]}));
  fragments[op.getResult()] = std::move(result);
  return success();
}

LogicalResult KernelLowering::lowerExtF(arith::ExtFOp op) {
  RankedTensorType source = getTileType(op.getIn());
  if (!getElementTypeOrSelf(op.getResult()).isF32())
    return op.emitOpError("extends tiles to f32 only");
  Fragment result;
  if (!source.getElementType().isBF16() || !isPacked(source)) {
    for (Value element : unpack(source, getFragment(op.getIn())))
      result.push_back(emit.create<LLVM::FPExtOp>(emit.getF32Type(), element));
  } else {
    // A bf16 is the upper half of its f32.
    for (Value pair : getFragment(op.getIn())) {
      Value bits = emit.bitcast(pair, emit.getI32Type());
      result.push_back(emit.bitcast(emit.shl(bits, 16), emit.getF32Type()));
      result.push_back(emit.bitcast(emit.andBits(bits, emit.i32(0xffff0000)),
                                    emit.getF32Type()));
    }
  }
  fragments[op.getResult()] = std::move(result);
  return success();
}

LogicalResult KernelLowering::lowerMemRefDim(memref::DimOp op) {
  std::optional<int64_t> dim = op.getConstantIndex();
  ArrayRef<Value> sizes = memrefs[op.getSource()].sizes;
  if (!dim || *dim < 0 || *dim >= static_cast<int64_t>(sizes.size()))
    return op.emitOpError("needs a constant dimension of its memref");
  scalars.map(op.getResult(), emit.extend(sizes[*dim]));
  return success();
}

void KernelLowering::lowerPagedRows(PagedRowsOp op) {
  MemRefArgument rows = memrefs[op.getPool()];
  const MemRefArgument &table = memrefs[op.getTable()];
  MemRefArgument::Pages pages;
  Value start =
      emit.mul(emit.extend(getScalar(op.getSequence())), table.strides[0]);
  constexpr int64_t kNumberBytes = 4;
  pages.numbers = emit.globalPointer(table.pointer, start, kNumberBytes);
  pages.stride = table.strides[1];
  pages.lastNumber = emit.sub(rows.sizes[0], emit.i32(1));
  pages.rows = op.getPageRows();
  rows.sizes[0] = emit.i32(1);
  rows.sizes[2] = getScalar(op.getLength());
  rows.pages = pages;
  memrefs[op.getResult()] = rows;
}

LogicalResult KernelLowering::lowerSubView(memref::SubViewOp op) {
  if (!op.hasUnitStride() || op.getDroppedDims().any())
    return op.emitOpError("must have unit strides and keep all dimensions");
  // Values of type index are i64.
  auto get = [&](OpFoldResult value) -> Value {
    if (auto constant = getConstantIntValue(value))
      return emit.i64(*constant);
    return getScalar(cast<Value>(value));
  };
  MemRefArgument part = memrefs[op.getSource()];
  Value offset = emit.i64(0);
  for (auto [start, stride] :
       llvm::zip_equal(op.getMixedOffsets(), part.strides))
    if (!isConstantIntValue(start, 0))
      offset = emit.add(offset, emit.mul(get(start), stride));
  Type element = op.getType().getElementType();
  int64_t bytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  part.pointer = emit.globalPointer(part.pointer, offset, bytes);
  for (auto [size, mixed] : llvm::zip_equal(part.sizes, op.getMixedSizes()))
    size = emit.resize(get(mixed), emit.getI32Type());
  memrefs[op.getResult()] = part;
  return success();
}

//===----------------------------------------------------------------------===//
// Tile operations
//===----------------------------------------------------------------------===//

void KernelLowering::lowerBroadcast(BroadcastOp op) {
  RankedTensorType type = getTileType(op.getResult());
  RegisterLayout layout = getLayout(type);
  SmallVector<int64_t> indices =
      op.getDim() == 0 ? layout.getRowIndices() : layout.getColIndices();
  SmallVector<Value> source =
      unpack(getTileType(op.getSource()), getFragment(op.getSource()));
  SmallVector<Value> elements;
  for (int64_t index : indices)
    elements.push_back(source[index]);
  fragments[op.getResult()] = pack(type, elements);
}

void KernelLowering::lowerIota(IotaOp op) {
  RankedTensorType type = getTileType(op.getResult());
  RegisterLayout layout = getLayout(type);
  bool isRow = isa<RowLayoutAttr>(type.getEncoding());
  Value base = emit.evaluate(
      isRow ? layout.getRowTerms() : layout.getColTerms(), thread);
  Fragment result;
  for (TilePosition offset : layout.getOffsets())
    result.push_back(emit.add(base, emit.i32(isRow ? offset.row : offset.col)));
  fragments[op.getResult()] = std::move(result);
}

/// A signed order between column numbers and something else.
static bool isColumnCompare(arith::CmpIOp op) {
  auto columns = op.getLhs().getDefiningOp<BroadcastOp>();
  if (!columns || columns.getDim() != 1 ||
      !columns.getSource().getDefiningOp<IotaOp>() ||
      !getElementTypeOrSelf(op.getLhs()).isInteger(32))
    return false;
  switch (op.getPredicate()) {
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::sge:
    return true;
  default:
    return false;
  }
}

/// A thread's columns are its first plus constants. Comparing the constants
/// with the bound less the first takes no register for each column. Bounds are
/// moved next to the tile before, so that the difference can't overflow.
void KernelLowering::lowerColumnCompare(arith::CmpIOp op) {
  RankedTensorType type = getTileType(op.getLhs());
  RegisterLayout layout = getLayout(type);
  Value base = emit.evaluate(layout.getColTerms(), thread);
  auto predicate = static_cast<LLVM::ICmpPredicate>(op.getPredicate());
  DenseMap<Value, Value> relative;
  Fragment result;
  for (auto [offset, bound] :
       llvm::zip_equal(layout.getOffsets(), getFragment(op.getRhs()))) {
    Value &limit = relative[bound];
    if (!limit) {
      limit = emit.create<LLVM::SMaxOp>(bound, emit.i32(-1));
      limit = emit.create<LLVM::SMinOp>(limit, emit.i32(type.getDimSize(1)));
      limit = emit.sub(limit, base);
    }
    result.push_back(
        emit.create<LLVM::ICmpOp>(predicate, emit.i32(offset.col), limit));
  }
  fragments[op.getResult()] = std::move(result);
}

/// Whether the elements of `tile` are the numbers of their columns, as f32.
static bool isColumnNumbers(Value tile) {
  if (auto broadcast = tile.getDefiningOp<BroadcastOp>();
      broadcast && broadcast.getDim() == 1)
    tile = broadcast.getSource();
  auto cast = tile.getDefiningOp<arith::SIToFPOp>();
  return cast && cast.getType() != getElementTypeOrSelf(cast.getType()) &&
         getElementTypeOrSelf(cast.getType()).isF32() &&
         cast.getIn().getDefiningOp<IotaOp>() &&
         !isa<RowLayoutAttr>(getTileType(tile).getEncoding());
}

/// Something plus or less the columns' numbers. As in a comparison, the first
/// column goes to the other operand, which is often one for a row, and the rest
/// is constants.
bool KernelLowering::lowerColumnSum(Operation *op) {
  if (!isa<arith::AddFOp, arith::SubFOp>(op) ||
      !isColumnNumbers(op->getOperand(1)))
    return false;
  const bool isDifference = isa<arith::SubFOp>(op);
  RankedTensorType type = getTileType(op->getResult(0));
  RegisterLayout layout = getLayout(type);
  Value base = emit.create<LLVM::SIToFPOp>(
      emit.getF32Type(), emit.evaluate(layout.getColTerms(), thread));
  DenseMap<Value, Value> relative;
  ColumnSum sum;
  Fragment result;
  for (auto [offset, value] :
       llvm::zip_equal(layout.getOffsets(), getFragment(op->getOperand(0)))) {
    Value &first = relative[value];
    if (!first)
      first = isDifference ? emit.create<LLVM::FSubOp>(value, base).getResult()
                           : emit.create<LLVM::FAddOp>(value, base);
    float column = isDifference ? -offset.col : offset.col;
    sum.values.push_back(first);
    sum.columns.push_back(column);
    result.push_back(emit.create<LLVM::FAddOp>(first, emit.f32(column)));
  }
  columnSums[op->getResult(0)] = std::move(sum);
  fragments[op->getResult(0)] = std::move(result);
  return true;
}

/// A factor times such a sum: one FMA an element, to the product of the factor
/// and the value. Where the factor differs between columns nothing is gained.
bool KernelLowering::lowerColumnProduct(arith::MulFOp op) {
  Value factor = op.getLhs(), tile = op.getRhs();
  if (!columnSums.contains(tile))
    std::swap(factor, tile);
  auto it = columnSums.find(tile);
  auto broadcast = factor.getDefiningOp<BroadcastOp>();
  const bool isSameInRow = isa_and_present<tensor::SplatOp, arith::ConstantOp>(
                               factor.getDefiningOp()) ||
                           (broadcast && broadcast.getDim() == 0);
  if (it == columnSums.end() || !isSameInRow)
    return false;
  const ColumnSum &sum = it->second;
  std::map<std::pair<const void *, const void *>, Value> products;
  Fragment result;
  for (auto [value, column, own] :
       llvm::zip_equal(sum.values, sum.columns, getFragment(factor))) {
    Value &product =
        products[{value.getAsOpaquePointer(), own.getAsOpaquePointer()}];
    if (!product)
      product = emit.create<LLVM::FMulOp>(value, own);
    result.push_back(emit.create<LLVM::FMAOp>(own, emit.f32(column), product));
  }
  fragments[op.getResult()] = std::move(result);
  return true;
}

/// Combines values in groups of three, which the GPU has instructions for.
static Value reduceByThree(SmallVector<Value> values,
                           function_ref<Value(Value, Value)> combine) {
  while (values.size() > 1) {
    SmallVector<Value> next;
    for (size_t i = 0; i < values.size(); i += 3) {
      Value value = values[i];
      for (size_t j = i + 1; j < std::min(i + 3, values.size()); ++j)
        value = combine(value, values[j]);
      next.push_back(value);
    }
    values = std::move(next);
  }
  return values.front();
}

void KernelLowering::lowerReduce(ReduceOp op) {
  RegisterLayout layout = getLayout(getTileType(op.getSource()));
  bool isMax = op.getKind() == ReduceKind::Max;
  auto combine = [&](Value a, Value b) -> Value {
    if (isMax)
      return emit.create<LLVM::MaximumOp>(a, b);
    return emit.create<LLVM::FAddOp>(a, b);
  };
  SmallVector<int64_t> rows = layout.getRowIndices();
  SmallVector<SmallVector<Value>> perRow(
      *std::max_element(rows.begin(), rows.end()) + 1);
  for (auto [row, value] : llvm::zip_equal(rows, getFragment(op.getSource())))
    perRow[row].push_back(value);
  Fragment result;
  for (SmallVector<Value> &values : perRow) {
    // A few independent chains, so that latency doesn't add up.
    while (values.size() > 1) {
      SmallVector<Value> next;
      for (size_t i = 0; i + 1 < values.size(); i += 2)
        next.push_back(combine(values[i], values[i + 1]));
      if (values.size() % 2)
        next.push_back(values.back());
      values = std::move(next);
    }
    Value value = values[0];
    for (int64_t d = 1; d < layout.getThreadsPerRow(); d *= 2)
      value = combine(value, emit.shuffleXor(value, d));
    result.push_back(value);
  }
  fragments[op.getResult()] = std::move(result);
}

/// Two floats of which one is not negative are in the order of their bits as
/// signed integers, whose maximum of three is one instruction. A warp answers
/// together, so that the branch doesn't diverge.
void KernelLowering::lowerAnyExceeds(AnyExceedsOp op) {
  RegisterLayout layout = getLayout(getTileType(op.getSource()));
  ArrayRef<Value> limits = getFragment(op.getLimits());
  SmallVector<SmallVector<Value>> rows(limits.size());
  for (auto [row, value] :
       llvm::zip_equal(layout.getRowIndices(), getFragment(op.getSource())))
    rows[row].push_back(emit.bitcast(value, emit.getI32Type()));
  Value any = emit.i1(false);
  for (auto [values, limitValue] : llvm::zip_equal(rows, limits)) {
    Value max = reduceByThree(values, [&](Value a, Value b) -> Value {
      return emit.create<LLVM::SMaxOp>(a, b);
    });
    Value limit = emit.bitcast(limitValue, emit.getI32Type());
    // Two negative floats are in the other order.
    Value isNegative = emit.less(limit, emit.i32(0));
    Value exceeds = emit.less(limit, max);
    any = emit.create<LLVM::OrOp>(any,
                                  emit.create<LLVM::OrOp>(isNegative, exceeds));
  }
  Value vote = emit.create<NVVM::VoteSyncOp>(emit.getI1Type(), emit.i32(-1),
                                             any, NVVM::VoteSyncKind::any);
  scalars.map(op.getResult(), vote);
}

LogicalResult KernelLowering::lowerFoldSum(FoldSumOp op) {
  RankedTensorType type = getTileType(op.getSource());
  if (!isa<MmaLayoutAttr>(type.getEncoding()))
    return op.emitOpError("adds up what one thread holds, which takes a tile "
                          "with the layout #tile.mma, not ")
           << type;
  // In the order of the result's elements: a block of 8 columns is the same
  // elements of a thread everywhere.
  RegisterLayout layout = getLayout(type);
  llvm::MapVector<std::pair<int64_t, int64_t>, Value> sums;
  for (auto [offset, value] :
       llvm::zip_equal(layout.getOffsets(), getFragment(op.getSource()))) {
    Value &sum = sums[{offset.row, offset.col % FoldSumOp::kColumns}];
    sum = sum ? Value(emit.create<LLVM::FAddOp>(sum, value)) : value;
  }
  fragments[op.getResult()] =
      Fragment(llvm::make_second_range(sums.takeVector()));
  return success();
}

void KernelLowering::lowerExpDiff(ExpDiffOp op) {
  RankedTensorType type = getTileType(op.getSource());
  RegisterLayout layout = getLayout(type);
  Value scale = emit.create<LLVM::FMulOp>(
      getScalar(op.getScale()), emit.f32(static_cast<float>(M_LOG2E)));
  // Where the maximum is -inf so is the element; subtracting 0 keeps it.
  SmallVector<Value> max;
  Value zero = emit.f32(0);
  Value minusInf = emit.f32(-INFINITY);
  for (Value value : getFragment(op.getMax())) {
    Value isMasked =
        emit.create<LLVM::FCmpOp>(LLVM::FCmpPredicate::oeq, value, minusInf);
    max.push_back(emit.select(isMasked, zero, value));
  }
  Fragment result;
  for (auto [row, value] :
       llvm::zip_equal(layout.getRowIndices(), getFragment(op.getSource()))) {
    Value difference = emit.create<LLVM::FSubOp>(value, max[row]);
    Value exponent = emit.create<LLVM::FMulOp>(difference, scale);
    result.push_back(emit.intrinsic("llvm.nvvm.ex2.approx.ftz",
                                    emit.getF32Type(), exponent));
  }
  fragments[op.getResult()] = std::move(result);
}

LogicalResult KernelLowering::lowerConvertLayout(ConvertLayoutOp op) {
  RankedTensorType from = getTileType(op.getSource());
  RankedTensorType to = getTileType(op.getResult());
  Attribute source = from.getEncoding(), target = to.getEncoding();
  auto operand = dyn_cast_if_present<OperandLayoutAttr>(target);
  if (operand && source == operand.getParent()) {
    fragments[op.getResult()] = Fragment(getFragment(op.getSource()));
    return success();
  }
  if (!operand || !isInShared(from))
    return op.emitOpError("has no lowering from ")
           << source << " to " << target
           << "; a left operand comes from shared memory or from its parent";

  Value address = getFragment(op.getSource())[0];
  int64_t repeats = to.getDimSize(0) / (16 * operand.getParent().getWarps());
  bool is16Bit = to.getElementTypeBitWidth() == 16;
  int64_t kBlocks = to.getDimSize(1) / (is16Bit ? 16 : 8);
  Fragment result;
  for (int64_t repeat = 0; repeat < repeats; ++repeat)
    for (int64_t k = 0; k < kBlocks; ++k)
      llvm::append_range(result, is16Bit ? loadA16(to, address, repeat, k)
                                         : loadA32(to, address, repeat, k));
  fragments[op.getResult()] = std::move(result);
  return success();
}
