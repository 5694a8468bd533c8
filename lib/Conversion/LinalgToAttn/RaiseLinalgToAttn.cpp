//===- RaiseLinalgToAttn.cpp - Finds attention among linalg ops -----------===//
//
// Starts at a matrix product, takes it for P * V, and follows P backwards: what
// it is elementwise must be a softmax over the keys of an elementwise function
// of the elements of one other matrix product, Q * K^T. That function becomes
// mask_mod, score_mod and scale.
//
//===----------------------------------------------------------------------===//

#include "ScalarBuilder.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::attn {
#define GEN_PASS_DEF_RAISELINALGTOATTN
#include "attn/Conversion/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

static bool isConstantFloat(Value value,
                            function_ref<bool(const APFloat &)> test) {
  std::optional<APFloat> constant = getConstantFloat(value);
  return constant && test(*constant);
}
static bool isZero(Value value) {
  return isConstantFloat(value, [](const APFloat &c) { return c.isZero(); });
}
static bool isMinusInfinity(Value value) {
  return isConstantFloat(
      value, [](const APFloat &c) { return c.isInfinity() && c.isNegative(); });
}
static bool isPositive(Value value) {
  return isConstantFloat(value, [](const APFloat &c) {
    return c.isFinite() && !c.isNegative() && !c.isZero();
  });
}
/// A maximum may start at -inf or at the lowest finite value: they differ only
/// for rows in which nothing is visible.
static bool isLowest(Value value) {
  return isConstantFloat(value, [](const APFloat &c) {
    return c.isNegative() && (c.isInfinity() || c.isLargest());
  });
}

static double toDouble(APFloat value) {
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

static AxisTuple flatten(const AxisLayout &layout) {
  AxisTuple axes;
  for (const AxisTuple &tuple : layout)
    llvm::append_range(axes, tuple);
  return axes;
}

static bool haveSameAxes(AxisTuple a, AxisTuple b) {
  llvm::sort(a);
  llvm::sort(b);
  return a == b;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

namespace {
/// A tensor that holds q, k or v up to a scale, and what its dimensions are.
struct Candidate {
  Value value;
  AxisLayout layout;
  double scale;
};
} // namespace

/// If `op` computes its result from the elements of one tensor by a constant
/// factor, a cast or nothing, returns that operand and the factor.
static std::optional<std::pair<OpOperand *, double>>
getScaledOperand(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() != 0 || op.getNumDpsInits() != 1)
    return std::nullopt;
  Block *body = op.getBlock();
  Value yielded = body->getTerminator()->getOperand(0);
  auto getTensor = [&](Value value) -> OpOperand * {
    if (auto ext = value.getDefiningOp<arith::ExtFOp>())
      value = ext.getIn();
    auto arg = dyn_cast<BlockArgument>(value);
    if (!arg || arg.getOwner() != body)
      return nullptr;
    OpOperand *operand = op.getMatchingOpOperand(arg);
    bool isInput =
        op.isDpsInput(operand) && isa<TensorType>(operand->get().getType());
    return isInput ? operand : nullptr;
  };
  auto getFactor = [&](Value value) -> std::optional<APFloat> {
    if (auto arg = dyn_cast<BlockArgument>(value);
        arg && arg.getOwner() == body)
      value = op.getMatchingOpOperand(arg)->get();
    return getConstantFloat(value);
  };
  if (OpOperand *operand = getTensor(yielded))
    return std::pair(operand, 1.0);
  Operation *def = yielded.getDefiningOp();
  if (!isa_and_present<arith::MulFOp, arith::DivFOp>(def))
    return std::nullopt;
  Value lhs = def->getOperand(0), rhs = def->getOperand(1);
  if (isa<arith::MulFOp>(def) && getFactor(lhs))
    std::swap(lhs, rhs);
  OpOperand *operand = getTensor(lhs);
  std::optional<APFloat> factor = getFactor(rhs);
  if (!operand || !factor || !factor->isFiniteNonZero())
    return std::nullopt;
  double value = toDouble(*factor);
  return std::pair(operand, isa<arith::MulFOp>(def) ? value : 1 / value);
}

/// Follows `value` back through reshapes, transposes, broadcasts, widenings and
/// constant factors. The tensors on the way, nearest first.
static SmallVector<Candidate> traceOperand(Value value, AxisLayout layout,
                                           AxisSpace &space) {
  SmallVector<Candidate> candidates;
  double scale = 1;
  while (true) {
    candidates.push_back({value, layout, scale});
    Operation *op = value.getDefiningOp();
    FailureOr<AxisLayout> next = failure();
    if (isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                        tensor::CastOp>(op)) {
      next = space.getSourceLayout(op, layout);
      value = op->getOperand(0);
    } else if (isa_and_present<arith::ExtFOp>(op)) {
      next = layout;
      value = op->getOperand(0);
    } else if (auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op)) {
      auto scaled = getScaledOperand(linalgOp);
      if (!scaled)
        break;
      FailureOr<AxisLayout> loops =
          space.getLoops(linalgOp, linalgOp.getDpsInitOperand(0), layout, {});
      if (failed(loops))
        break;
      next = space.getOperandLayout(linalgOp, scaled->first, *loops);
      value = scaled->first->get();
      scale *= scaled->second;
    }
    if (failed(next) || !isa<RankedTensorType>(value.getType()))
      break;
    layout = *next;
  }
  return candidates;
}

//===----------------------------------------------------------------------===//
// Matcher
//===----------------------------------------------------------------------===//

namespace {
class Matcher {
public:
  /// Takes `weightsOperand` of the matrix product `product` for P.
  Matcher(linalg::LinalgOp product, unsigned weightsOperand)
      : product(product), weightsOperand(weightsOperand),
        builder(product.getContext(), product.getLoc(), space, mismatch) {}

  LogicalResult match();
  void rewrite(RewriterBase &rewriter);

  /// Whether the code looks like attention, so that a person wants to know why
  /// it isn't.
  bool looksLikeAttention() const;
  const MatchFailure &getFailure() const { return mismatch; }

private:
  LogicalResult fail(Location where, const Twine &why) {
    return mismatch.fail(where, why);
  }
  LogicalResult matchProduct();
  LogicalResult matchSoftmax();
  LogicalResult matchLinalgSoftmax(const Leaf &leaf);
  LogicalResult matchDecomposedSoftmax(Value weights);
  LogicalResult matchScoreProduct();
  void matchResult();
  LogicalResult matchGroups(ArrayRef<Candidate> queries);
  LogicalResult matchOperands();
  LogicalResult checkUses();
  LogicalResult buildMods();

  Value stripMask(Value value);
  Value negate(Value condition);
  bool hideWhere(Value condition, bool hiddenIf);
  void foldScale();

  const Candidate *choose(ArrayRef<Candidate> candidates,
                          const AxisLayout &target) const;

  linalg::LinalgOp product;
  unsigned weightsOperand;
  AxisSpace space;
  MatchFailure mismatch;
  ScalarBuilder builder;

  /// Axes of the output, as the product has them.
  AxisLayout loops;
  AxisTuple outerAxes;
  Axis query = 0, key = 0, valueDim = 0;
  /// The scores that go into the softmax.
  Value scores;
  AxisLayout queryLayout, keyLayout;
  Value queryOperand, keyOperand;
  /// The output, perhaps after a rounding to q's type.
  Value result;
  Type elementType;
  AxisTuple batchAxes, headAxes, kvHeadAxes;
  Candidate q, k, v;
  /// What of the scores hides keys.
  SmallVector<Value> visible;
  double scale = 1;
  Region scoreMod, maskMod;
};
} // namespace

bool Matcher::looksLikeAttention() const {
  return llvm::any_of(builder.getVisited(), [](Operation *op) {
    if (isa<linalg::SoftmaxOp, math::ExpOp>(op))
      return true;
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    return linalgOp && llvm::any_of(*linalgOp.getBlock(), [](Operation &inner) {
             return isa<math::ExpOp>(inner);
           });
  });
}

LogicalResult Matcher::match() {
  if (failed(matchProduct()) || failed(matchSoftmax()) ||
      failed(matchScoreProduct()))
    return failure();
  matchResult();
  return success(succeeded(matchOperands()) && succeeded(checkUses()) &&
                 succeeded(buildMods()));
}

/// Names the axes of P * V.
LogicalResult Matcher::matchProduct() {
  FailureOr<linalg::ContractionDimensions> dims =
      linalg::inferContractionDims(product);
  if (failed(dims))
    return failure();
  SmallVector<unsigned, 2> rows = dims->m, columns = dims->n;
  if (weightsOperand == 1)
    std::swap(rows, columns);
  if (rows.empty() || columns.size() != 1 || dims->k.size() != 1)
    return failure();
  for (int64_t size : product.getStaticLoopRanges())
    loops.push_back({space.create(size)});
  key = loops[dims->k[0]].front();
  valueDim = loops[columns[0]].front();
  // Rows that V doesn't have are queries; with several, the innermost is, and
  // the others are heads that share keys.
  OpOperand *init = product.getDpsInitOperand(0);
  for (AffineExpr expr : product.getMatchingIndexingMap(init).getResults()) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop)
      return failure();
    if (loop.getPosition() == columns[0])
      continue;
    outerAxes.push_back(loops[loop.getPosition()].front());
    if (llvm::is_contained(rows, loop.getPosition()))
      query = outerAxes.back();
  }
  llvm::erase(outerAxes, query);
  return success();
}

LogicalResult Matcher::matchSoftmax() {
  OpOperand *weights = product.getDpsInputOperand(weightsOperand);
  FailureOr<AxisLayout> layout =
      space.getOperandLayout(product, weights, loops);
  if (failed(layout))
    return failure();
  FailureOr<Value> value = builder.build(weights->get(), *layout);
  if (failed(value))
    return failure();
  if (const Leaf *leaf = builder.getLeaf(*value))
    return matchLinalgSoftmax(Leaf(*leaf));
  return matchDecomposedSoftmax(*value);
}

LogicalResult Matcher::matchLinalgSoftmax(const Leaf &leaf) {
  auto softmax = dyn_cast<linalg::SoftmaxOp>(leaf.tensor.getOwner());
  if (!softmax)
    return failure();
  if (space.resolve(leaf.layout[softmax.getDimension()]) != AxisTuple{key})
    return fail(softmax.getLoc(), "the softmax does not run over the keys");
  FailureOr<Value> built = builder.build(softmax.getInput(), leaf.layout);
  if (failed(built))
    return failure();
  scores = *built;
  return success();
}

/// Matches exp(x - max(x)) / sum(exp(x - max(x))), or the same without max.
LogicalResult Matcher::matchDecomposedSoftmax(Value weights) {
  auto notSoftmax = [&](const Twine &why) {
    return fail(product.getDpsInputOperand(weightsOperand)->get().getLoc(),
                why);
  };
  Value exponential, sum;
  if (auto div = weights.getDefiningOp<arith::DivFOp>()) {
    exponential = div.getLhs();
    sum = div.getRhs();
  } else if (auto mul = weights.getDefiningOp<arith::MulFOp>()) {
    auto inverse = mul.getRhs().getDefiningOp<arith::DivFOp>();
    exponential = mul.getLhs();
    if (inverse && isConstantFloat(inverse.getLhs(), [](const APFloat &c) {
          return c.isExactlyValue(1.0);
        }))
      sum = inverse.getRhs();
  }
  auto exp =
      exponential ? exponential.getDefiningOp<math::ExpOp>() : math::ExpOp();
  const Leaf *sumLeaf = sum ? builder.getLeaf(sum) : nullptr;
  if (!exp || !sumLeaf)
    return notSoftmax("the weights are not a softmax: expected "
                      "exp(x - max) divided by its sum over the keys");
  // A leaf moves when another is built.
  Leaf sumOf = *sumLeaf;
  if (llvm::is_contained(flatten(space.resolve(sumOf.layout)), key))
    return fail(sumOf.tensor.getLoc(),
                "the softmax does not run over the keys");
  FailureOr<Value> summand = builder.buildReduced<arith::AddFOp>(sumOf, {key});
  if (failed(summand) || !areEquivalent(*summand, exponential))
    return fail(sumOf.tensor.getLoc(),
                "the weights are not divided by the sum of their exponentials");
  auto sumOp = cast<linalg::LinalgOp>(sumOf.tensor.getOwner());
  if (!isZero(sumOp.getDpsInitOperand(sumOf.tensor.getResultNumber())->get()))
    return fail(sumOf.tensor.getLoc(), "the sum does not start at 0");

  scores = exp.getOperand();
  auto sub = scores.getDefiningOp<arith::SubFOp>();
  const Leaf *maxLeaf = sub ? builder.getLeaf(sub.getRhs()) : nullptr;
  if (!maxLeaf)
    return success();
  Leaf maxOf = *maxLeaf;
  scores = sub.getLhs();
  FailureOr<Value> compared =
      builder.buildReduced<arith::MaximumFOp, arith::MaxNumFOp>(maxOf, {key});
  if (failed(compared) || !areEquivalent(*compared, scores))
    return fail(maxOf.tensor.getLoc(),
                "what the softmax subtracts is not the maximum of the scores "
                "over the keys");
  auto maxOp = cast<linalg::LinalgOp>(maxOf.tensor.getOwner());
  if (!isLowest(maxOp.getDpsInitOperand(maxOf.tensor.getResultNumber())->get()))
    return fail(maxOf.tensor.getLoc(),
                "the maximum does not start at -inf or the lowest value");
  return success();
}

LogicalResult Matcher::matchScoreProduct() {
  linalg::LinalgOp scoreOp = builder.scoreOp;
  if (!scoreOp)
    return fail(product.getLoc(), "the scores are not a matrix product");
  for (linalg::LinalgOp op : {scoreOp, product})
    if (!isZero(op.getDpsInitOperand(0)->get()))
      return fail(op.getLoc(),
                  "the matrix product adds to something other than zero");
  for (OpOperand *operand : scoreOp.getDpsInputOperands()) {
    FailureOr<AxisLayout> layout =
        space.getOperandLayout(scoreOp, operand, builder.scoreLoops);
    if (failed(layout))
      return fail(scoreOp.getLoc(), "has an unusual indexing map");
    AxisTuple axes = flatten(space.resolve(*layout));
    bool hasQuery = llvm::is_contained(axes, query);
    bool hasKey = llvm::is_contained(axes, key);
    if (hasQuery == hasKey)
      return fail(scoreOp.getLoc(),
                  "the scores are not a product of queries and keys");
    (hasQuery ? queryLayout : keyLayout) = *layout;
    (hasQuery ? queryOperand : keyOperand) = operand->get();
  }
  if (!queryOperand || !keyOperand)
    return fail(scoreOp.getLoc(),
                "the scores are not a product of queries and keys");
  return success();
}

/// The output may be rounded once, after accumulation.
void Matcher::matchResult() {
  result = product->getResult(0);
  elementType = getElementTypeOrSelf(result);
  if (!result.hasOneUse())
    return;
  Operation *user = *result.user_begin();
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(user)) {
    Block *body = linalgOp.getBlock();
    auto trunc =
        body->getTerminator()->getOperand(0).getDefiningOp<arith::TruncFOp>();
    bool isPlain = linalgOp.getNumDpsInputs() == 1 &&
                   linalgOp.getNumDpsInits() == 1 &&
                   linalgOp.getNumReductionLoops() == 0 &&
                   llvm::all_of(linalgOp.getIndexingMapsArray(),
                                [](AffineMap map) { return map.isIdentity(); });
    if (!trunc || !isPlain || trunc.getIn() != body->getArgument(0))
      return;
  } else if (!isa<arith::TruncFOp>(user)) {
    return;
  }
  result = user->getResult(0);
  elementType = getElementTypeOrSelf(result);
}

/// The best of the tensors that hold what `target` needs: the one furthest back
/// that has the layout already, else the one furthest back.
const Candidate *Matcher::choose(ArrayRef<Candidate> candidates,
                                 const AxisLayout &target) const {
  const Candidate *best = nullptr;
  bool bestFits = false;
  for (const Candidate &candidate : candidates) {
    AxisLayout layout = space.resolve(candidate.layout);
    auto type = cast<RankedTensorType>(candidate.value.getType());
    if (type.getElementType() != elementType ||
        !haveSameAxes(flatten(layout), flatten(target)))
      continue;
    auto isStatic = [&](Axis axis) {
      return !ShapedType::isDynamic(space.getSize(axis));
    };
    bool isUsable = true;
    for (auto [dim, tuple] : llvm::enumerate(layout)) {
      isUsable &= llvm::count_if(tuple, isStatic) + 1 >=
                  static_cast<int64_t>(tuple.size());
      isUsable &= !llvm::all_of(tuple, isStatic) || !type.isDynamicDim(dim);
    }
    bool fits = layout == target;
    if (!isUsable || (bestFits && !fits))
      continue;
    best = &candidate;
    bestFits = fits;
  }
  return best;
}

/// Tells batch from heads among the outer axes.
LogicalResult Matcher::matchGroups(ArrayRef<Candidate> queries) {
  AxisTuple axes = space.resolve(outerAxes);
  if (space.resolve({query}) != AxisTuple{query} ||
      space.resolve({key}) != AxisTuple{key} ||
      space.resolve({valueDim}) != AxisTuple{valueDim} ||
      space.resolve({builder.scoreReduction}).size() != 1)
    return fail(product.getLoc(), "queries, keys or head dimension are split");
  // A single axis is the batch, unless a rank-4 query has it second.
  bool isHead =
      axes.size() == 1 && llvm::any_of(queries, [&](const Candidate &c) {
        AxisLayout layout = space.resolve(c.layout);
        return layout.size() == 4 && layout[0].empty() && layout[1] == axes;
      });
  size_t numBatchAxes = isHead || axes.empty() ? 0 : 1;
  batchAxes.assign(axes.begin(), axes.begin() + numBatchAxes);
  headAxes.assign(axes.begin() + numBatchAxes, axes.end());
  AxisTuple mustBeStatic = headAxes;
  mustBeStatic.push_back(valueDim);
  mustBeStatic.push_back(builder.scoreReduction);
  for (Axis axis : mustBeStatic)
    if (ShapedType::isDynamic(space.getSize(axis)))
      return fail(product.getLoc(),
                  "the number of heads and the head dimension must be static");
  return success();
}

LogicalResult Matcher::matchOperands() {
  OpOperand *values = product.getDpsInputOperand(1 - weightsOperand);
  FailureOr<AxisLayout> valueLayout =
      space.getOperandLayout(product, values, loops);
  if (failed(valueLayout))
    return fail(product.getLoc(), "has an unusual indexing map");
  SmallVector<Candidate> qs = traceOperand(queryOperand, queryLayout, space);
  SmallVector<Candidate> ks = traceOperand(keyOperand, keyLayout, space);
  SmallVector<Candidate> vs = traceOperand(values->get(), *valueLayout, space);
  // A factor on V is no part of the operator.
  llvm::erase_if(vs, [](const Candidate &c) { return c.scale != 1; });
  if (failed(matchGroups(qs)))
    return failure();
  for (const Candidate &candidate : llvm::concat<Candidate>(qs, ks, vs))
    builder.addKnownLayout(candidate.value, candidate.layout);

  AxisTuple headDim = {builder.scoreReduction};
  const Candidate *bestQ = choose(qs, {batchAxes, headAxes, {query}, headDim});
  // Consecutive query heads share a key/value head: K and V have the outer
  // part of the head axes.
  for (size_t size = 0; size <= headAxes.size(); ++size) {
    kvHeadAxes.assign(headAxes.begin(), headAxes.begin() + size);
    const Candidate *bestK =
        choose(ks, {batchAxes, kvHeadAxes, {key}, headDim});
    const Candidate *bestV =
        choose(vs, {batchAxes, kvHeadAxes, {key}, {valueDim}});
    if (!bestQ || !bestK || !bestV)
      continue;
    q = *bestQ;
    k = *bestK;
    v = *bestV;
    scale = q.scale * k.scale;
    return success();
  }
  return fail(product.getLoc(),
              "q, k and v are not tensors of the output's element type with "
              "the same batch and head axes");
}

/// The score matrix disappears, so nothing else may read it.
LogicalResult Matcher::checkUses() {
  SmallVector<Operation *> worklist = {builder.scoreOp};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    for (Operation *user : op->getUsers()) {
      if (user == product || isa<tensor::DimOp>(user) ||
          !seen.insert(user).second)
        continue;
      if (!builder.getVisited().contains(user))
        return fail(user->getLoc(), "the scores or weights have another use");
      worklist.push_back(user);
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Mods
//===----------------------------------------------------------------------===//

Value Matcher::negate(Value condition) {
  OpBuilder &b = builder.getBuilder();
  Location loc = product.getLoc();
  if (auto cmp = condition.getDefiningOp<arith::CmpIOp>())
    return arith::CmpIOp::create(b, loc,
                                 arith::invertPredicate(cmp.getPredicate()),
                                 cmp.getLhs(), cmp.getRhs());
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    Value lhs = negate(both.getLhs()), rhs = negate(both.getRhs());
    return b.createOrFold<arith::OrIOp>(loc, lhs, rhs);
  }
  if (auto either = condition.getDefiningOp<arith::OrIOp>()) {
    Value lhs = negate(either.getLhs()), rhs = negate(either.getRhs());
    return b.createOrFold<arith::AndIOp>(loc, lhs, rhs);
  }
  Value isTrue = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  return b.createOrFold<arith::XOrIOp>(loc, condition, isTrue);
}

/// Notes that keys are hidden where `condition` is `hiddenIf`. A condition on
/// the score itself can't be a mask.
bool Matcher::hideWhere(Value condition, bool hiddenIf) {
  if (dependsOn(condition, builder.getScore()))
    return false;
  visible.push_back(hiddenIf ? negate(condition) : condition);
  return true;
}

/// What remains of the scores once -inf, which only a mask gives, is taken out
/// of them. Finite values, however low, are scores.
Value Matcher::stripMask(Value value) {
  OpBuilder &b = builder.getBuilder();
  Location loc = product.getLoc();
  if (auto select = value.getDefiningOp<arith::SelectOp>()) {
    if (isMinusInfinity(select.getFalseValue()) &&
        hideWhere(select.getCondition(), /*hiddenIf=*/false))
      return stripMask(select.getTrueValue());
    if (isMinusInfinity(select.getTrueValue()) &&
        hideWhere(select.getCondition(), /*hiddenIf=*/true))
      return stripMask(select.getFalseValue());
    return value;
  }
  if (auto add = value.getDefiningOp<arith::AddFOp>()) {
    Value lhs = stripMask(add.getLhs()), rhs = stripMask(add.getRhs());
    if (isZero(lhs))
      return rhs;
    if (isZero(rhs))
      return lhs;
    return b.createOrFold<arith::AddFOp>(loc, lhs, rhs);
  }
  if (auto sub = value.getDefiningOp<arith::SubFOp>()) {
    Value lhs = stripMask(sub.getLhs());
    return b.createOrFold<arith::SubFOp>(loc, lhs, sub.getRhs());
  }
  if (auto mul = value.getDefiningOp<arith::MulFOp>();
      mul && isPositive(mul.getRhs())) {
    Value lhs = stripMask(mul.getLhs());
    return b.createOrFold<arith::MulFOp>(loc, lhs, mul.getRhs());
  }
  if (auto div = value.getDefiningOp<arith::DivFOp>();
      div && isPositive(div.getRhs())) {
    Value lhs = stripMask(div.getLhs());
    return b.createOrFold<arith::DivFOp>(loc, lhs, div.getRhs());
  }
  return value;
}

/// Takes leading constant factors out of score_mod, which gets scaled scores.
void Matcher::foldScale() {
  Value score = scoreMod.getArgument(0);
  while (score.hasOneUse()) {
    Operation *user = *score.user_begin();
    if (!isa<arith::MulFOp, arith::DivFOp>(user))
      return;
    bool isFirst = user->getOperand(0) == score;
    if (isa<arith::DivFOp>(user) && !isFirst)
      return;
    std::optional<APFloat> factor =
        getConstantFloat(user->getOperand(isFirst ? 1 : 0));
    if (!factor || !factor->isFiniteNonZero())
      return;
    double value = toDouble(*factor);
    scale *= isa<arith::MulFOp>(user) ? value : 1 / value;
    user->getResult(0).replaceAllUsesWith(score);
    user->erase();
  }
}

/// Appends attn.yield and drops what it doesn't need.
static void finishMod(Block &block, Location loc, Value value) {
  OpBuilder b(loc.getContext());
  b.setInsertionPointToEnd(&block);
  YieldOp::create(b, loc, value);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

LogicalResult Matcher::buildMods() {
  Location loc = product.getLoc();
  OpBuilder b(product.getContext());
  Value rest = stripMask(scores);
  if (!rest.getType().isF32())
    return fail(rest.getLoc(), "the scores are not f32 or narrower");
  auto makeBlock = [&](Region &region, bool hasScore) {
    Block &block = region.emplaceBlock();
    ScalarBuilder::Indices indices;
    if (hasScore)
      indices.score = block.addArgument(b.getF32Type(), loc);
    for (Value *index :
         {&indices.batch, &indices.head, &indices.query, &indices.key})
      *index = block.addArgument(b.getI32Type(), loc);
    indices.batchAxes = batchAxes;
    indices.headAxes = headAxes;
    indices.queryAxis = query;
    indices.keyAxis = key;
    return indices;
  };

  ScalarBuilder::Indices scoreIndices = makeBlock(scoreMod, true);
  FailureOr<Value> score = builder.emit(rest, scoreMod.front(), scoreIndices);
  if (failed(score))
    return failure();
  finishMod(scoreMod.front(), loc, *score);
  foldScale();

  ScalarBuilder::Indices maskIndices = makeBlock(maskMod, false);
  Block &maskBlock = maskMod.front();
  Value all;
  for (Value condition : visible) {
    FailureOr<Value> one = builder.emit(condition, maskBlock, maskIndices);
    if (failed(one))
      return failure();
    b.setInsertionPointToEnd(&maskBlock);
    all = all ? b.createOrFold<arith::AndIOp>(loc, all, *one) : *one;
  }
  if (all)
    finishMod(maskBlock, loc, all);
  return success();
}

//===----------------------------------------------------------------------===//
// Rewrite
//===----------------------------------------------------------------------===//

void Matcher::rewrite(RewriterBase &rewriter) {
  Location loc = product.getLoc();
  Operation *last = result.getDefiningOp();
  rewriter.setInsertionPoint(last);
  auto materialize = [&](const Candidate &candidate, const AxisLayout &target) {
    return relayout(rewriter, loc, candidate.value,
                    space.resolve(candidate.layout), target, space);
  };
  Value qValue =
      materialize(q, {batchAxes, headAxes, {query}, {builder.scoreReduction}});
  Value kValue =
      materialize(k, {batchAxes, kvHeadAxes, {key}, {builder.scoreReduction}});
  Value vValue = materialize(v, {batchAxes, kvHeadAxes, {key}, {valueDim}});

  AxisLayout outLayout = {batchAxes, headAxes, {query}, {valueDim}};
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, qValue);
  sizes.back() = rewriter.getIndexAttr(space.getSize(valueDim));
  Value init = tensor::EmptyOp::create(rewriter, loc, sizes, elementType);
  auto attention = AttentionOp::create(
      rewriter, loc, init.getType(), qValue, kValue, vValue,
      /*captures=*/ValueRange(), /*scale_value=*/Value(), /*sink=*/Value(),
      /*cu_q=*/Value(), /*cu_k=*/Value(), /*kv_len=*/Value(),
      /*block_table=*/Value(), /*q_scale=*/Value(), /*k_scale=*/Value(),
      /*v_scale=*/Value(), init, /*lse=*/Value(),
      rewriter.getF32FloatAttr(static_cast<float>(scale)),
      /*schedule=*/ScheduleAttr(), /*short_schedules=*/ArrayAttr());
  bool isIdentity =
      scoreMod.front().back().getOperand(0) == scoreMod.front().getArgument(0);
  if (!isIdentity)
    attention.getScoreMod().takeBody(scoreMod);
  if (!visible.empty())
    attention.getMaskMod().takeBody(maskMod);

  FailureOr<AxisLayout> productLayout =
      space.getOperandLayout(product, product.getDpsInitOperand(0), loops);
  Value output = relayout(rewriter, loc, attention.getResult(0), outLayout,
                          space.resolve(*productLayout), space);
  if (output.getType() != result.getType())
    output = tensor::CastOp::create(rewriter, loc, result.getType(), output);
  rewriter.replaceAllUsesWith(result, output);

  // What only fed the old output is dead now.
  SmallVector<Operation *> worklist = {last};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (!isOpTriviallyDead(op))
      continue;
    llvm::SmallSetVector<Operation *, 4> producers;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        producers.insert(producer);
    llvm::erase(worklist, op);
    rewriter.eraseOp(op);
    llvm::append_range(worklist, producers);
  }
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct RaiseLinalgToAttn
    : mlir::attn::impl::RaiseLinalgToAttnBase<RaiseLinalgToAttn> {
  void runOnOperation() override {
    // In program order, a product is looked at before those that use it, so
    // that none is erased before its turn.
    SmallVector<linalg::LinalgOp> products;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isMatrixProduct(op))
        products.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp product : products)
      raise(product, rewriter);
  }

  static void raise(linalg::LinalgOp product, RewriterBase &rewriter) {
    for (unsigned weightsOperand : {0, 1}) {
      Matcher matcher(product, weightsOperand);
      if (succeeded(matcher.match()))
        return matcher.rewrite(rewriter);
      if (!matcher.looksLikeAttention())
        continue;
      const MatchFailure &why = matcher.getFailure();
      InFlightDiagnostic remark =
          product.emitRemark("not raised to attn.attention");
      if (why.loc)
        remark.append(": ", why.reason).attachNote(*why.loc) << "see here";
      return;
    }
  }
};
} // namespace
