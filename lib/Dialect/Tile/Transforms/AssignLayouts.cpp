//===- AssignLayouts.cpp - Give every tile a layout -----------------------===//

#include "attn/Dialect/Tile/Layout.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILEASSIGNLAYOUTS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

namespace {
/// Registers that accumulators, scores and a resident left operand may fill
/// together before the operand is re-read from shared memory instead: of the
/// 255 of a thread, addresses and the fragments under way need the rest.
constexpr int64_t kResidentRegisters = 160;

class LayoutAssigner {
public:
  LayoutAssigner(KernelOp kernel, Attribute tileLayout = {})
      : kernel(kernel), tileLayout(tileLayout) {}
  LogicalResult run();
  /// Gives the rest a layout in registers.
  LogicalResult assignRegisters();
  void rematerializeConstants();

private:
  LogicalResult chooseTileLayout();
  void chooseBlockedLayout();
  LogicalResult assignOperands(MmaOp op);
  LogicalResult moveToShared(MmaOp op, OpOperand &operand);
  bool fitsInRegisters(MmaOp op);
  void connectVectors();
  LogicalResult propagateVectors();
  void setLayout(Value value, Attribute layout);
  template <typename Fn>
  void forEachTile(Fn fn);

  KernelOp kernel;
  Attribute tileLayout;
  /// Rank-1 values that must share a layout.
  llvm::MapVector<Value, SmallVector<Value>> connected;
  llvm::MapVector<Value, Attribute> seeds;
};
} // namespace

static RankedTensorType getTileType(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

template <typename Fn>
void LayoutAssigner::forEachTile(Fn fn) {
  kernel.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (getTileType(result))
        fn(result);
    if (op == kernel)
      return;
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        if (getTileType(argument))
          fn(argument);
  });
}

void LayoutAssigner::setLayout(Value value, Attribute layout) {
  auto type = getTileType(value).cloneWithEncoding(layout);
  value.setType(type);
  // A constant's attribute carries the type too.
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      constant.setValueAttr(splat.resizeSplat(type));
}

LogicalResult LayoutAssigner::run() {
  rematerializeConstants();
  if (failed(chooseTileLayout()))
    return failure();
  SmallVector<MmaOp> products;
  kernel.walk([&](MmaOp op) { products.push_back(op); });
  for (MmaOp op : products)
    if (failed(assignOperands(op)))
      return failure();
  return assignRegisters();
}

LogicalResult LayoutAssigner::assignRegisters() {
  forEachTile([&](Value value) {
    if (getTileType(value).getRank() == 2 && !getTileType(value).getEncoding())
      setLayout(value, tileLayout);
  });
  connectVectors();
  return propagateVectors();
}

/// Whether `op` computes a vector of one value from such vectors, as the
/// divisor of a rule that divides by a number of its batch or head.
static bool computesUniform(Operation *op,
                            const DenseSet<Operation *> &uniform) {
  return op->getNumResults() == 1 && op->getNumRegions() == 0 && isPure(op) &&
         op->hasTrait<OpTrait::Elementwise>() &&
         getTileType(op->getResult(0)) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return !getTileType(operand) ||
                  uniform.contains(operand.getDefiningOp());
         });
}

/// One constant may serve several layouts: each use gets its own.
void LayoutAssigner::rematerializeConstants() {
  SmallVector<Operation *> constants;
  DenseSet<Operation *> uniform;
  kernel.walk([&](Operation *op) {
    if (isa<tensor::SplatOp, arith::ConstantOp>(op) ||
        computesUniform(op, uniform))
      uniform.insert(op);
    if ((isa<IotaOp>(op) || uniform.contains(op)) &&
        getTileType(op->getResult(0)))
      constants.push_back(op);
  });
  // What computes one from another comes after it, and adds uses to it.
  for (Operation *op : llvm::reverse(constants)) {
    auto uses = llvm::to_vector(llvm::make_pointer_range(op->getUses()));
    if (uses.size() < 2)
      continue;
    OpBuilder builder(op);
    for (OpOperand *use : ArrayRef(uses).drop_front())
      use->set(builder.clone(*op)->getResult(0));
  }
}

LogicalResult LayoutAssigner::chooseTileLayout() {
  bool hasProducts = kernel.walk([](MmaOp) { return WalkResult::interrupt(); })
                         .wasInterrupted();
  if (hasProducts)
    tileLayout = MmaLayoutAttr::get(kernel.getContext(), kernel.getNumWarps());
  else
    chooseBlockedLayout();
  return success();
}

void LayoutAssigner::chooseBlockedLayout() {
  // 16-byte accesses of the smallest element type in memory; next to wider ones
  // bytes aren't worth as many registers.
  int64_t vector = 4, widest = 0;
  kernel.walk([&](Operation *op) {
    Type tile;
    if (auto load = dyn_cast<LoadOp>(op))
      tile = load.getType();
    else if (auto store = dyn_cast<StoreOp>(op))
      tile = store.getValue().getType();
    if (!tile)
      return;
    int64_t bits = getElementTypeOrSelf(tile).getIntOrFloatBitWidth();
    widest = std::max(widest, bits);
    if (bits == 16)
      vector = 8;
  });
  if (widest == 8)
    vector = 16;
  int64_t threadsPerRow = 32;
  forEachTile([&](Value value) {
    RankedTensorType type = getTileType(value);
    int64_t columns = type.getShape().back();
    if (type.getRank() == 1)
      return;
    while (vector > 1 && columns % vector)
      vector /= 2;
    int64_t threads = columns / vector;
    threadsPerRow = std::min(threadsPerRow, threads & -threads);
  });
  tileLayout = BlockedLayoutAttr::get(kernel.getContext(), vector,
                                      threadsPerRow, kernel.getNumWarps());
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// Per thread, of a tile in registers.
static int64_t getRegisters(RankedTensorType type, int64_t warps) {
  return type.getNumElements() * type.getElementTypeBitWidth() / 32 /
         (32 * warps);
}

/// Counts the loop's carried tiles, the product's result and the operand.
bool LayoutAssigner::fitsInRegisters(MmaOp op) {
  int64_t warps = kernel.getNumWarps();
  int64_t registers = getRegisters(getTileType(op.getA()), warps) +
                      getRegisters(op.getType(), warps);
  if (auto loop = op->getParentOfType<scf::ForOp>())
    for (Value carried : loop.getRegionIterArgs())
      if (RankedTensorType type = getTileType(carried);
          type && type.getRank() == 2 && carried != op.getAcc())
        registers += getRegisters(type, warps);
  return registers <= kResidentRegisters;
}

/// Has the operand's tile read from memory into shared memory.
LogicalResult LayoutAssigner::moveToShared(MmaOp op, OpOperand &operand) {
  Value tile = operand.get();
  auto shared = SharedLayoutAttr::get(kernel.getContext());
  if (getTileType(tile).getEncoding() == shared)
    return success();
  Operation *source = tile.getDefiningOp();
  if (!isa_and_present<LoadOp, BufferReadOp>(source)) {
    return op.emitOpError("takes its ")
           << (operand.getOperandNumber() == 0 ? "left" : "right")
           << " operand from shared memory on this target; it must come "
              "straight from a tile.load, in the same block or one around";
  }
  bool onlyProducts = llvm::all_of(tile.getUsers(), llvm::IsaPred<MmaOp>);
  if (onlyProducts) {
    setLayout(tile, shared);
    return success();
  }
  // Others use it in registers: they keep a load of their own.
  OpBuilder builder(source);
  Operation *copy = builder.clone(*source);
  setLayout(copy->getResult(0), shared);
  operand.set(copy->getResult(0));
  return success();
}

LogicalResult LayoutAssigner::assignOperands(MmaOp op) {
  if (failed(moveToShared(op, op.getBMutable())))
    return failure();
  Value a = op.getA();
  Operation *source = a.getDefiningOp();
  bool isFMA = op.getPath() == MatmulPath::FMA;
  bool fromMemory = isa_and_present<LoadOp, BufferReadOp>(source);
  if (isFMA || fromMemory) {
    if (failed(moveToShared(op, op.getAMutable())))
      return failure();
    a = op.getA();
    source = a.getDefiningOp();
    // Registers pay where the tile outlives the loop around the product.
    if (isFMA || source->getBlock() == op->getBlock() || !fitsInRegisters(op))
      return success();
  }
  auto layout = OperandLayoutAttr::get(kernel.getContext(),
                                       cast<MmaLayoutAttr>(tileLayout));
  OpBuilder builder(op);
  if (fromMemory)
    builder.setInsertionPointAfter(source);
  Value converted = ConvertLayoutOp::create(
      builder, op.getLoc(), getTileType(a).cloneWithEncoding(layout), a);
  op.getAMutable().assign(converted);
  return success();
}

//===----------------------------------------------------------------------===//
// Rank-1 values
//===----------------------------------------------------------------------===//

static bool isVector(Value value) {
  RankedTensorType type = getTileType(value);
  return type && type.getRank() == 1;
}

void LayoutAssigner::connectVectors() {
  auto connect = [&](Value a, Value b) {
    if (!isVector(a) || !isVector(b))
      return;
    connected[a].push_back(b);
    connected[b].push_back(a);
  };
  MLIRContext *context = kernel.getContext();
  auto rowLayout = RowLayoutAttr::get(context, tileLayout);
  auto colLayout = ColLayoutAttr::get(context, tileLayout);
  kernel.walk([&](Operation *op) {
    TypeSwitch<Operation *>(op)
        .Case([&](ReduceOp op) { seeds[op.getResult()] = rowLayout; })
        .Case([&](AnyExceedsOp op) { seeds[op.getLimits()] = rowLayout; })
        .Case([&](BroadcastOp op) {
          seeds[op.getSource()] =
              op.getDim() == 0 ? Attribute(rowLayout) : Attribute(colLayout);
        })
        .Case([&](ExpDiffOp op) {
          seeds[op.getMax()] = rowLayout;
          if (isVector(op.getSource())) {
            seeds[op.getSource()] = rowLayout;
            seeds[op.getResult()] = rowLayout;
          }
        })
        .Case([&](scf::ForOp op) {
          auto yields = op.getBody()->getTerminator()->getOperands();
          for (auto [init, argument, yielded, result] :
               llvm::zip_equal(op.getInitArgs(), op.getRegionIterArgs(), yields,
                               op.getResults())) {
            connect(init, argument);
            connect(argument, yielded);
            connect(yielded, result);
          }
        })
        .Case([&](scf::IfOp op) {
          for (Region &region : op->getRegions())
            if (!region.empty())
              for (auto [yielded, result] : llvm::zip_equal(
                       region.front().getTerminator()->getOperands(),
                       op.getResults()))
                connect(yielded, result);
        })
        .Default([&](Operation *op) {
          // Elementwise: all rank-1 operands and results agree.
          if (op->getNumResults() != 1)
            return;
          for (Value operand : op->getOperands())
            connect(operand, op->getResult(0));
        });
  });
}

LogicalResult LayoutAssigner::propagateVectors() {
  llvm::MapVector<Value, Attribute> layouts;
  SmallVector<Value> worklist;
  for (auto [value, layout] : seeds) {
    layouts[value] = layout;
    worklist.push_back(value);
  }
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Attribute layout = layouts[value];
    for (Value neighbour : connected[value]) {
      auto [known, isNew] = layouts.try_emplace(neighbour, layout);
      if (isNew) {
        worklist.push_back(neighbour);
      } else if (known->second != layout) {
        return emitError(neighbour.getLoc())
               << "a vector is used along the rows (queries) and along the "
                  "columns (keys) of a tile; compute it separately for each, "
                  "from other values";
      }
    }
  }
  // Nothing says how the others lie: spread them over all threads if they
  // fill them.
  auto rowLayout = RowLayoutAttr::get(kernel.getContext(), tileLayout);
  auto blocked = dyn_cast<BlockedLayoutAttr>(tileLayout);
  LogicalResult result = success();
  forEachTile([&](Value value) {
    if (!isVector(value))
      return;
    Attribute layout = layouts.lookup(value);
    int64_t size = getTileType(value).getDimSize(0);
    if (!layout)
      layout =
          blocked && size % (32 * blocked.getWarps() * blocked.getVector()) == 0
              ? Attribute(blocked)
              : Attribute(rowLayout);
    setLayout(value, layout);
  });
  return result;
}

LogicalResult tile::assignLayouts(KernelOp kernel) {
  return LayoutAssigner(kernel).run();
}

LogicalResult tile::assignRegisterLayouts(KernelOp kernel,
                                          Attribute tileLayout) {
  LayoutAssigner assigner(kernel, tileLayout);
  assigner.rematerializeConstants();
  return assigner.assignRegisters();
}

namespace {
struct TileAssignLayouts
    : tile::impl::TileAssignLayoutsBase<TileAssignLayouts> {
  void runOnOperation() override {
    if (failed(assignLayouts(getOperation())))
      signalPassFailure();
  }
};
} // namespace
