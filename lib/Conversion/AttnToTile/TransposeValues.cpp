//===- TransposeValues.cpp - V as 8-bit products read it ------------------===//
//
// wgmma takes 8-bit operands with K contiguous only, and of P V that is the
// keys, whereas V has its head dimension contiguous. A kernel of its own, in
// front of the fused one, moves every value once: 2 * N * D bytes a head,
// against 4 * N * N * D operations.
//
// It also puts the keys in the order in which a thread holds weights
// (#tile.operand), so that weights need no exchange between threads, and zeros
// where a mask hides keys from all queries.
//
//===----------------------------------------------------------------------===//

#include "TransposeValues.h"
#include "KeyPadding.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "attn/Dialect/Tile/Transforms/MemrefParts.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

namespace {
/// Keys of one program. A thread has 16 of them in one row, so that a warp
/// reads 16 neighbouring bytes of two keys at a time and writes 32 of each row.
constexpr int64_t kTileKeys = 32;
constexpr int32_t kNumWarps = 4;
constexpr int64_t kRowGranule = 16;

class TransposeBuilder {
public:
  TransposeBuilder(AttentionOp op, SymbolTable &symbols)
      : op(op), v(op.getV()), type(cast<MemRefType>(op.getV().getType())),
        symbols(symbols), host(op.getLoc(), op),
        builder(op.getLoc(), op.getContext()) {}

  Value build() {
    Value result = allocate();
    std::string name;
    llvm::raw_string_ostream(name)
        << "fused_transpose_v_" << type.getElementType() << "_d"
        << getHeadDim();
    operands = {v, result};
    if (hidesKeys()) {
      operands.push_back(op.getQ());
      llvm::append_range(operands, op.getCaptures());
    }
    kernel = tile::KernelOp::create(builder, name,
                                    ValueRange(operands).getTypes(), kNumWarps);
    builder.setInsertionPointToStart(&kernel.getBody().front());
    buildBody();
    // The table makes the name unique.
    symbols.insert(kernel);
    launch();
    return result;
  }

private:
  int64_t getHeadDim() { return type.getDimSize(3); }
  int64_t getNumHeads() { return type.getDimSize(1); }

  //===--------------------------------------------------------------------===//
  // Host
  //===--------------------------------------------------------------------===//

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(host, value);
  }
  Value getHostSize(int64_t dim) {
    return host.createOrFold<memref::DimOp>(host.getLoc(), v, dim);
  }
  Value getHostTiles() {
    return host.createOrFold<arith::CeilDivSIOp>(getHostSize(2),
                                                 index(kTileKeys));
  }
  Value product(ArrayRef<Value> factors) {
    Value result = factors.front();
    for (Value factor : factors.drop_front())
      result = arith::MulIOp::create(host, result, factor);
    return result;
  }

  /// A tile at least, so that there is an address.
  Value allocate() {
    int64_t keys = type.getDimSize(2);
    if (!ShapedType::isDynamic(keys))
      keys = std::max<int64_t>(llvm::alignTo(keys, kTileKeys), kTileKeys);
    auto result =
        MemRefType::get({type.getDimSize(0), getNumHeads(), getHeadDim(), keys},
                        type.getElementType());
    SmallVector<Value> sizes;
    if (result.isDynamicDim(0))
      sizes.push_back(getHostSize(0));
    if (result.isDynamicDim(3))
      sizes.push_back(
          product({host.createOrFold<arith::MaxSIOp>(getHostTiles(), index(1)),
                   index(kTileKeys)}));
    return memref::AllocOp::create(host, result, sizes);
  }

  void launch() {
    Value heads = product({getHostSize(0), index(getNumHeads())});
    Value grid = product({heads, getHostTiles()});
    Value bytes = product({heads, getHostSize(2), index(2 * getHeadDim())});
    tile::LaunchOp::create(host, kernel.getSymName(), grid, operands, bytes,
                           index(0));
  }

  //===--------------------------------------------------------------------===//
  // Kernel
  //===--------------------------------------------------------------------===//

  Value i32(int64_t value) {
    return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(value));
  }
  template <typename OpT>
  Value binary(Value a, Value b) {
    return OpT::create(builder, a, b);
  }
  /// With a constant in every element.
  template <typename OpT>
  Value binary(Value tile, int64_t value) {
    auto tileType = cast<RankedTensorType>(tile.getType());
    auto attr = DenseElementsAttr::get(tileType, static_cast<int32_t>(value));
    return OpT::create(builder, tile, arith::ConstantOp::create(builder, attr));
  }
  Value iota(int64_t size) {
    return tile::IotaOp::create(
        builder, RankedTensorType::get(size, builder.getI32Type()));
  }

  /// tile::getOperandColumn of every element: 16 s' + 4 t + 2 b + i becomes
  /// 16 s' + 8 b + 2 t + i.
  Value permute(Value slots) {
    Value fixed = binary<arith::AndIOp>(slots, ~int64_t(14));
    Value thread = binary<arith::ShRUIOp>(binary<arith::AndIOp>(slots, 12), 1);
    Value block = binary<arith::ShLIOp>(binary<arith::AndIOp>(slots, 2), 2);
    return binary<arith::OrIOp>(fixed, binary<arith::OrIOp>(thread, block));
  }

  /// A KV head is several query heads'.
  bool hidesKeys() {
    return op.hasMaskMod() &&
           attn::hidesKeys(op.getMaskMod(), /*hasHead=*/false);
  }

  Value getSize(Value memref, int64_t dim) {
    return arith::IndexCastOp::create(
        builder, builder.getI32Type(),
        memref::DimOp::create(builder, memref, dim));
  }

  /// What the mask hides from all queries of `batch` is 0.
  Value endAtPadding(Value source, Value batch) {
    if (!hidesKeys())
      return source;
    auto extra = ValueRange(kernel.getBody().getArguments()).drop_front(2);
    RuleContext context;
    context.batch = batch;
    context.qLen = getSize(extra.front(), 2);
    context.kvLen = getSize(source, 2);
    context.captures = llvm::to_vector(extra.drop_front());
    Value count = countVisibleKeys(builder, op.getMaskMod(), context);
    return tile::createPart(builder, source, /*dim=*/2, /*start=*/Value(),
                            count);
  }

  void buildBody() {
    Value source = kernel.getBody().getArgument(0);
    Value target = kernel.getBody().getArgument(1);
    Value keys = getSize(target, 3);
    Value tiles = binary<arith::DivUIOp>(keys, i32(kTileKeys));
    Value id = tile::ProgramIdOp::create(builder, builder.getI32Type());
    Value start = binary<arith::MulIOp>(binary<arith::RemUIOp>(id, tiles),
                                        i32(kTileKeys));
    Value headAndBatch = binary<arith::DivUIOp>(id, tiles);
    Value heads = i32(getNumHeads());
    Value head = binary<arith::RemUIOp>(headAndBatch, heads);
    Value batch = binary<arith::DivUIOp>(headAndBatch, heads);
    source = endAtPadding(source, batch);

    int64_t rows = llvm::alignTo(getHeadDim(), kRowGranule);
    auto tileType =
        RankedTensorType::get({rows, kTileKeys}, builder.getI32Type());
    Value key = permute(iota(kTileKeys));
    Value starts = tensor::SplatOp::create(builder, key.getType(), start);
    key = tile::BroadcastOp::create(
        builder, tileType, binary<arith::AddIOp>(starts, key), /*dim=*/1);
    Value row =
        tile::BroadcastOp::create(builder, tileType, iota(rows), /*dim=*/0);
    Value values =
        tile::GatherOp::create(builder, tileType.clone(type.getElementType()),
                               source, ValueRange{batch, head, key, row},
                               /*in_bounds=*/ArrayRef<int64_t>{0, 1});
    tile::StoreOp::create(builder, values, target,
                          ValueRange{batch, head, i32(0), start});
    tile::ReturnOp::create(builder);
  }

  AttentionOp op;
  Value v;
  MemRefType type;
  /// Of the kernel.
  SmallVector<Value> operands;
  SymbolTable &symbols;
  ImplicitLocOpBuilder host, builder;
  tile::KernelOp kernel;
};
} // namespace

Value attn::transposeValues(AttentionOp op, SymbolTable &symbols) {
  return TransposeBuilder(op, symbols).build();
}
