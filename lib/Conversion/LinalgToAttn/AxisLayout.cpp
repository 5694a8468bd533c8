//===- AxisLayout.cpp - What the dimensions of a tensor stand for ---------===//

#include "AxisLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// AxisSpace
//===----------------------------------------------------------------------===//

AxisTuple AxisSpace::resolve(ArrayRef<Axis> tuple) const {
  AxisTuple result;
  for (Axis axis : tuple) {
    if (axes[axis].parts.empty())
      result.push_back(axis);
    else
      llvm::append_range(result, resolve(axes[axis].parts));
  }
  return result;
}

AxisLayout AxisSpace::resolve(const AxisLayout &layout) const {
  return llvm::map_to_vector<4>(
      layout, [&](const AxisTuple &tuple) { return resolve(tuple); });
}

FailureOr<AxisLayout> AxisSpace::split(ArrayRef<Axis> tuple,
                                       ArrayRef<int64_t> sizes) {
  AxisTuple rest = resolve(tuple);
  AxisLayout result(sizes.size());
  auto takeFirst = [&](AxisTuple &into) {
    into.push_back(rest.front());
    rest.erase(rest.begin());
  };
  SmallVector<unsigned> open;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (size != 1)
      open.push_back(dim);

  for (unsigned dim = 0, next = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim] == 1) {
      if (!rest.empty() && axes[rest.front()].size == 1)
        takeFirst(result[dim]);
      continue;
    }
    unsigned remaining = open.size() - next++;
    if (remaining == 1) {
      while (!rest.empty())
        takeFirst(result[dim]);
      continue;
    }
    if (rest.size() == 1) {
      // One axis covers all that remains: its parts are these dimensions.
      Axis whole = rest.front();
      for (unsigned part : ArrayRef(open).drop_front(next - 1)) {
        Axis axis = create(sizes[part]);
        axes[whole].parts.push_back(axis);
        result[part] = {axis};
      }
      return result;
    }
    // Several axes and dimensions: they must line up.
    int64_t product = 1;
    while (product != sizes[dim]) {
      if (rest.empty())
        return failure();
      int64_t size = axes[rest.front()].size;
      if (ShapedType::isDynamic(size) != ShapedType::isDynamic(sizes[dim]) ||
          ShapedType::isDynamic(product))
        return failure();
      product = ShapedType::isDynamic(size) ? size : product * size;
      if (!ShapedType::isDynamic(size) && product > sizes[dim])
        return failure();
      takeFirst(result[dim]);
    }
  }
  if (!rest.empty() && open.empty())
    return failure();
  return result;
}

FailureOr<AxisLayout> AxisSpace::getSourceLayout(Operation *op,
                                                 const AxisLayout &result) {
  if (isa<tensor::CastOp>(op))
    return result;
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    AxisLayout source;
    ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
    for (auto [tuple, group] :
         llvm::zip(result, collapse.getReassociationIndices())) {
      FailureOr<AxisLayout> parts =
          split(tuple, shape.slice(group.front(), group.size()));
      if (failed(parts))
        return failure();
      llvm::append_range(source, *parts);
    }
    // A rank-0 result has no groups; all source dimensions are 1.
    source.resize(shape.size());
    return source;
  }
  auto expand = cast<tensor::ExpandShapeOp>(op);
  AxisLayout source;
  for (const ReassociationIndices &group : expand.getReassociationIndices()) {
    AxisTuple &tuple = source.emplace_back();
    for (int64_t dim : group)
      llvm::append_range(tuple, result[dim]);
  }
  return source;
}

FailureOr<AxisLayout> AxisSpace::getLoops(linalg::LinalgOp op, OpOperand *init,
                                          const AxisLayout &result,
                                          const AxisTuple &reduced) {
  AxisLayout loops(op.getNumLoops(), reduced);
  llvm::SmallBitVector seen(op.getNumLoops());
  AffineMap map = op.getMatchingIndexingMap(init);
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    if (isa<AffineConstantExpr>(expr))
      continue;
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop || seen.test(loop.getPosition()))
      return failure();
    seen.set(loop.getPosition());
    loops[loop.getPosition()] = result[dim];
  }
  for (auto [loop, type] : llvm::enumerate(op.getIteratorTypesArray()))
    if (seen.test(loop) != (type == utils::IteratorType::parallel))
      return failure();
  return loops;
}

FailureOr<AxisLayout> AxisSpace::getOperandLayout(linalg::LinalgOp op,
                                                  OpOperand *operand,
                                                  const AxisLayout &loops) {
  AxisLayout layout;
  for (AffineExpr expr : op.getMatchingIndexingMap(operand).getResults()) {
    if (auto loop = dyn_cast<AffineDimExpr>(expr))
      layout.push_back(loops[loop.getPosition()]);
    else if (isa<AffineConstantExpr>(expr))
      layout.emplace_back();
    else
      return failure();
  }
  return layout;
}

//===----------------------------------------------------------------------===//
// relayout
//===----------------------------------------------------------------------===//

/// Groups of consecutive dimensions, one group for each of `sizes`.
static SmallVector<ReassociationIndices> makeGroups(ArrayRef<int64_t> sizes) {
  SmallVector<ReassociationIndices> groups;
  int64_t dim = 0;
  for (int64_t size : sizes) {
    ReassociationIndices &group = groups.emplace_back();
    for (int64_t i = 0; i < size; ++i)
      group.push_back(dim++);
  }
  return groups;
}

static AxisTuple flatten(const AxisLayout &layout) {
  AxisTuple axes;
  for (const AxisTuple &tuple : layout)
    llvm::append_range(axes, tuple);
  return axes;
}

/// Gives every axis a dimension of its own; dimensions without an axis go.
static Value expandToAxes(OpBuilder &builder, Location loc, Value value,
                          const AxisLayout &layout, const AxisSpace &space) {
  // Expand first: dimensions without an axis stay as they are.
  SmallVector<int64_t> groupSizes;
  SmallVector<OpFoldResult> sizes;
  SmallVector<bool> hasAxis;
  for (auto [dim, tuple] : llvm::enumerate(layout)) {
    groupSizes.push_back(std::max<size_t>(tuple.size(), 1));
    OpFoldResult dimSize = tensor::getMixedSize(builder, loc, value, dim);
    if (tuple.size() <= 1) {
      sizes.push_back(dimSize);
      hasAxis.push_back(!tuple.empty());
      continue;
    }
    int64_t product = 1;
    for (Axis axis : tuple)
      if (!ShapedType::isDynamic(space.getSize(axis)))
        product *= space.getSize(axis);
    for (Axis axis : tuple) {
      hasAxis.push_back(true);
      if (!ShapedType::isDynamic(space.getSize(axis))) {
        sizes.push_back(builder.getIndexAttr(space.getSize(axis)));
        continue;
      }
      Value whole = getValueOrCreateConstantIndexOp(builder, loc, dimSize);
      Value divisor = arith::ConstantIndexOp::create(builder, loc, product);
      sizes.push_back(
          arith::DivUIOp::create(builder, loc, whole, divisor).getResult());
    }
  }
  Type element = getElementTypeOrSelf(value);
  if (sizes.size() != layout.size()) {
    SmallVector<int64_t> shape;
    SmallVector<Value> dynamic;
    dispatchIndexOpFoldResults(sizes, dynamic, shape);
    value = tensor::ExpandShapeOp::create(builder, loc,
                                          RankedTensorType::get(shape, element),
                                          value, makeGroups(groupSizes), sizes);
  }
  if (llvm::all_of(hasAxis, [](bool has) { return has; }))
    return value;
  // Dimensions without an axis join the dimension before or after them.
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices leading;
  for (auto [dim, has] : llvm::enumerate(hasAxis)) {
    if (has) {
      groups.push_back(std::move(leading));
      leading = {};
      groups.back().push_back(dim);
    } else if (groups.empty()) {
      leading.push_back(dim);
    } else {
      groups.back().push_back(dim);
    }
  }
  return tensor::CollapseShapeOp::create(builder, loc, value, groups);
}

static Value permute(OpBuilder &builder, Location loc, Value value,
                     const AxisTuple &from, const AxisTuple &to) {
  SmallVector<int64_t> permutation;
  for (Axis axis : to)
    permutation.push_back(llvm::find(from, axis) - from.begin());
  if (isIdentityPermutation(permutation))
    return value;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, value);
  applyPermutationToVector(sizes, permutation);
  Value init =
      tensor::EmptyOp::create(builder, loc, sizes, getElementTypeOrSelf(value));
  return linalg::TransposeOp::create(builder, loc, value, init, permutation)
      .getResult()[0];
}

/// The inverse of expandToAxes.
static Value collapseFromAxes(OpBuilder &builder, Location loc, Value value,
                              const AxisLayout &layout) {
  SmallVector<int64_t> groupSizes;
  for (const AxisTuple &tuple : layout)
    if (!tuple.empty())
      groupSizes.push_back(tuple.size());
  if (llvm::any_of(groupSizes, [](int64_t size) { return size > 1; }))
    value = tensor::CollapseShapeOp::create(builder, loc, value,
                                            makeGroups(groupSizes));
  if (groupSizes.size() == layout.size())
    return value;
  SmallVector<OpFoldResult> sizes;
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices leading;
  int64_t source = 0;
  for (auto [dim, tuple] : llvm::enumerate(layout)) {
    if (tuple.empty()) {
      sizes.push_back(builder.getIndexAttr(1));
      (groups.empty() ? leading : groups.back()).push_back(dim);
      continue;
    }
    sizes.push_back(tensor::getMixedSize(builder, loc, value, source++));
    groups.push_back(std::move(leading));
    leading = {};
    groups.back().push_back(dim);
  }
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, shape);
  return tensor::ExpandShapeOp::create(
      builder, loc, RankedTensorType::get(shape, getElementTypeOrSelf(value)),
      value, groups, sizes);
}

Value attn::relayout(OpBuilder &builder, Location loc, Value value,
                     const AxisLayout &from, const AxisLayout &to,
                     const AxisSpace &space) {
  if (from == to)
    return value;
  value = expandToAxes(builder, loc, value, from, space);
  value = permute(builder, loc, value, flatten(from), flatten(to));
  return collapseFromAxes(builder, loc, value, to);
}
