//===- MemrefParts.cpp - Memrefs that end early ---------------------------===//

#include "attn/Dialect/Tile/Transforms/MemrefParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

Value tile::createPart(ImplicitLocOpBuilder &builder, Value memref,
                       unsigned dim, Value start, Value length) {
  auto type = cast<MemRefType>(memref.getType());
  // An offset must lie within its dimension; of nothing there is no part.
  if (llvm::is_contained(type.getShape(), 0))
    return memref;
  // A constant as an attribute: folded later, it would leave a memref.cast.
  auto toIndex = [&](Value value) {
    return getAsOpFoldResult(builder.createOrFold<arith::IndexCastOp>(
        builder.getIndexType(), value));
  };
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), builder.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes;
  for (int64_t other = 0; other < type.getRank(); ++other) {
    if (type.isDynamicDim(other) && other != dim)
      sizes.push_back(builder.createOrFold<memref::DimOp>(memref, other));
    else
      sizes.push_back(builder.getIndexAttr(type.getDimSize(other)));
  }
  sizes[dim] = toIndex(length);
  if (start)
    offsets[dim] = toIndex(start);
  return memref::SubViewOp::create(builder, memref, offsets, sizes, strides);
}
