//===- DeferRescale.cpp - Rescale only where the maximum grew much --------===//
//
// Why the rewritten softmax is as good as the exact one. With the base b of a
// row, c = scale * log2(e), and r what rounding c * b left,
//
//   exp2(fma(x, c, -round(c * b))) = exp(scale * (x - b)) * 2^r
//
// - 2^r is the same for all exponentials of the row since the base changed. The
//   normalisation cancels it. When the base changes, alpha is the quotient of
//   both sides' factors because it is computed from both rounded products, and
//   brings the sum and the accumulator to the new one. |r| is at most half an
//   ulp of c * b, so that scale * max + log(sum) shows it as little as the
//   rounding of its own first term.
// - For |c * b| <= 2^30, |r| <= 32. Beyond, the factor is the power of two
//   below c, which makes r = 0. Scores that differ do so by 64 or more after
//   scaling there, or by 32 with that power: their exponential is 0 to f32's
//   precision either way. For the same reason alpha is 0 where only one of both
//   bases is in this range.
// - If P is f16, the power takes over at 2^26, where |r| reaches 2. From there
//   to 2^30 neighbouring f32 scores are 4 to 64 apart after scaling, and the
//   power halves that at worst: as if scores were off by an ulp or two.
// - A base that isn't the maximum is below it by at most 8 / c, and by the
//   rounding of the limit. That adds |c * b| / 2^24 after scaling, but never
//   more than 8: where half an ulp is more than 8 / c, the limit rounds to the
//   base. So exponentials are at most 2^(8 + 4 + 2) where P is f16, which
//   reaches 2^16, and 2^(8 + 8 + 32) elsewhere; the sum is finite for 2^79
//   keys.
// - With an exponent e of the softmax (8-bit P), exponentials are 2^e times as
//   large, and so may grow by 2^(8 - e) only. The addend contains e, which
//   alpha, a difference of addends, doesn't see. Up to |c * b| = 2^22 they stay
//   below f8E4M3FN's 448 = 2^8.8; from there to 2^26 the conversion may take
//   the largest of a row for 448, and beyond the power takes over as for f16.
// - The accumulator holds exponentials times V, as before; it overflows for a V
//   that is 2^8 smaller than before, next to f32's largest.
// - Precision stays: floats are as dense around 2^8 as around 1, and what
//   rounding P to f16 flushes is smaller, relative to the row's largest, than
//   with the true maximum.
// - A row that has seen no key has base and limit -inf, factor 1 and addend 0:
//   the exponential of a hidden score is 0, and any other score exceeds the
//   limit.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include <cmath>
#include <limits>

namespace mlir::tile {
#define GEN_PASS_DEF_TILEDEFERRESCALE
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

/// How far above the base, as a power of two, exponentials may be.
static constexpr float kMaxExponent = 8;
/// Beyond these, scores that differ do so by 64 or more after scaling (by 4),
/// and the factor is a power of two.
static constexpr float kHugeExponent = 1 << 30;
static constexpr float kHugeExponentF16 = 1 << 26;
/// Sign and exponent of an f32.
static constexpr int32_t kPowerMask = 0xff800000;

/// The factor and the addend.
static constexpr unsigned kNumAdded = 2;

static constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

static RankedTensorType getTileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

//===----------------------------------------------------------------------===//
// The loop's shape
//===----------------------------------------------------------------------===//

namespace {
/// An online softmax, and which values that its loop carries are its
/// statistics.
struct SoftmaxLoop {
  /// Finds them. If there is a softmax but not as the rewrite needs it, says
  /// so in a remark.
  static FailureOr<SoftmaxLoop> match(KVLoopOp loop);

  Block &softmaxBlock() { return loop.getSoftmax().front(); }
  Block &pvBlock() { return loop.getPv().front(); }
  /// The argument of `block`, of a region of the loop, for a carried value.
  BlockArgument getCarried(Block &block, unsigned index) {
    unsigned fromEnd = loop.getInits().size() - index;
    return block.getArgument(block.getNumArguments() - fromEnd);
  }

  KVLoopOp loop;
  OnlineSoftmaxOp softmax;
  unsigned maxIndex = 0, sumIndex = 0;

private:
  /// Why the loop must stay as it is; empty if it need not.
  StringRef findObstacle();
  std::optional<unsigned> getCarriedIndex(Value value);
  bool isUsedBySoftmaxOnly(unsigned index);
  bool isCarriedOnly(Value value, unsigned index);
  bool isScaled(Value value, Value max);
  bool isMaxOfLogSumExp();
};
} // namespace

FailureOr<SoftmaxLoop> SoftmaxLoop::match(KVLoopOp loop) {
  SmallVector<OnlineSoftmaxOp> softmaxes;
  loop.walk([&](OnlineSoftmaxOp op) { softmaxes.push_back(op); });
  if (softmaxes.empty())
    return failure();
  SoftmaxLoop parts;
  parts.loop = loop;
  parts.softmax = softmaxes.front();
  StringRef obstacle = softmaxes.size() > 1
                           ? "it has more than one online softmax"
                           : parts.findObstacle();
  if (obstacle.empty())
    return parts;
  loop.emitRemark("rescales in every step: ") << obstacle;
  return failure();
}

StringRef SoftmaxLoop::findObstacle() {
  if (softmax->getBlock() != &softmaxBlock())
    return "its online softmax isn't in the softmax region";
  if (getTileType(softmax.getScores()).getDimSize(1) % FoldSumOp::kColumns)
    return "the columns of the score tile aren't a multiple of 8";
  Value scale = softmax.getScale();
  if (!matchPattern(scale, m_Constant()) &&
      loop->isAncestor(scale.getParentBlock()->getParentOp()))
    return "its scale is computed in the loop";
  auto max = getCarriedIndex(softmax.getMaxIn());
  auto sum = getCarriedIndex(softmax.getSumIn());
  if (!max || !sum)
    return "the online softmax doesn't take its statistics from the "
           "loop-carried values";
  maxIndex = *max;
  sumIndex = *sum;
  if (!matchPattern(loop.getInits()[maxIndex], m_NegInfFloat()) ||
      !matchPattern(loop.getInits()[sumIndex], m_AnyZeroFloat()))
    return "the statistics don't start as the constants -inf and 0";
  if (!isUsedBySoftmaxOnly(maxIndex) || !isUsedBySoftmaxOnly(sumIndex) ||
      !isCarriedOnly(softmax.getMaxOut(), maxIndex) ||
      !isCarriedOnly(softmax.getSumOut(), sumIndex))
    return "its statistics are used by more than the online softmax of the "
           "next step";
  if (!isMaxOfLogSumExp())
    return "its maximum is used for more than scale * max + log(sum)";
  return "";
}

std::optional<unsigned> SoftmaxLoop::getCarriedIndex(Value value) {
  for (unsigned i = 0; i < loop.getInits().size(); ++i)
    if (value == getCarried(softmaxBlock(), i))
      return i;
  return std::nullopt;
}

bool SoftmaxLoop::isUsedBySoftmaxOnly(unsigned index) {
  for (Region &region : loop->getRegions())
    for (Operation *user : getCarried(region.front(), index).getUsers())
      if (user != softmax)
        return false;
  return true;
}

/// True if `value`, a result of the softmax, is the next value of carried value
/// `index` and nothing else.
bool SoftmaxLoop::isCarriedOnly(Value value, unsigned index) {
  Operation *softmaxYield = softmaxBlock().getTerminator();
  Operation *pvYield = pvBlock().getTerminator();
  for (OpOperand &use : value.getUses()) {
    if (use.getOwner() != softmaxYield)
      return false;
    Value yielded = pvBlock().getArgument(1 + use.getOperandNumber());
    for (OpOperand &next : yielded.getUses())
      if (next.getOwner() != pvYield || next.getOperandNumber() != index)
        return false;
  }
  auto next = dyn_cast<BlockArgument>(pvYield->getOperand(index));
  unsigned numYielded = softmaxYield->getNumOperands();
  return next && next.getOwner() == &pvBlock() && next.getArgNumber() >= 1 &&
         next.getArgNumber() <= numYielded &&
         softmaxYield->getOperand(next.getArgNumber() - 1) == value;
}

/// True if `value` is scale * max.
bool SoftmaxLoop::isScaled(Value value, Value max) {
  FloatAttr scale, factor;
  bool isConstant = matchPattern(softmax.getScale(), m_Constant(&scale));
  if (value == max)
    return isConstant && scale.getValue().isExactlyValue(1.0);
  auto mul = value.getDefiningOp<arith::MulFOp>();
  if (!mul || (mul.getLhs() != max && mul.getRhs() != max))
    return false;
  Value other = mul.getLhs() == max ? mul.getRhs() : mul.getLhs();
  if (auto splat = other.getDefiningOp<tensor::SplatOp>())
    return splat.getInput() == softmax.getScale();
  SplatElementsAttr elements;
  return isConstant && matchPattern(other, m_Constant(&elements)) &&
         elements.getSplatValue<APFloat>() == scale.getValue();
}

bool SoftmaxLoop::isMaxOfLogSumExp() {
  Value max = loop.getResult(maxIndex), sum = loop.getResult(sumIndex);
  SmallVector<Operation *> worklist(max.getUsers());
  while (!worklist.empty()) {
    Operation *user = worklist.pop_back_val();
    if (auto mul = dyn_cast<arith::MulFOp>(user); mul && isScaled(mul, max)) {
      llvm::append_range(worklist, mul->getUsers());
      continue;
    }
    auto add = dyn_cast<arith::AddFOp>(user);
    auto isLogOfSum = [&](Value value) {
      auto log = value.getDefiningOp<math::LogOp>();
      return log && log.getOperand() == sum;
    };
    if (!add || !((isScaled(add.getLhs(), max) && isLogOfSum(add.getRhs())) ||
                  (isScaled(add.getRhs(), max) && isLogOfSum(add.getLhs()))))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// The rewrite
//===----------------------------------------------------------------------===//

namespace {
/// What the exponentials of a step need of the steps before it, by row.
struct State {
  Value max, factor, addend, sum;
};

class Rewriter {
public:
  explicit Rewriter(const SoftmaxLoop &parts)
      : parts(parts), softmax(parts.softmax), loop(parts.loop),
        builder(softmax.getLoc(), softmax),
        rowType(getTileType(softmax.getMaxIn())),
        foldedType(
            RankedTensorType::get({rowType.getDimSize(0), FoldSumOp::kColumns},
                                  builder.getF32Type())) {}

  void run() {
    replaceLoop();
    State state = addCarriedValues();
    rewriteSoftmax(state);
    rewriteRescale();
    reduceSum();
  }

private:
  void replaceLoop();
  State addCarriedValues();
  void rewriteSoftmax(State state);
  State updateBase(const State &old, Value &alpha);
  void computeScale();
  void computeExponent(State &state);
  float getMaxGrowth() {
    return kMaxExponent - static_cast<float>(softmax.getExponent());
  }
  void rewriteRescale();
  bool isAlpha(Value value);
  void reduceSum();
  float getHugeExponent();

  template <typename OpT, typename... Args>
  Value make(Args &&...args) {
    return OpT::create(builder, std::forward<Args>(args)...);
  }
  Value scalar(float value) {
    return make<arith::ConstantOp>(builder.getF32FloatAttr(value));
  }
  Value dense(RankedTensorType type, float value) {
    return make<arith::ConstantOp>(
        DenseElementsAttr::get(type, APFloat(value)));
  }
  Value row(float value) { return dense(rowType, value); }
  Value row(Value value) { return make<tensor::SplatOp>(rowType, value); }
  Value spread(Value row, Type type) {
    return make<BroadcastOp>(type, row, /*dim=*/0);
  }
  Value compare(arith::CmpFPredicate predicate, Value a, Value b) {
    return make<arith::CmpFOp>(predicate, a, b);
  }

  SoftmaxLoop parts;
  OnlineSoftmaxOp softmax;
  KVLoopOp loop;
  ImplicitLocOpBuilder builder;
  RankedTensorType rowType, foldedType;
  /// scale * log2(e), the power of two below it, and how far above the base
  /// scores may be.
  Value scale, power, distance;
  /// Whether this step changed the base, in the pv region, and what stands for
  /// alpha there.
  Value grew;
  SmallVector<Value> alphas;
};
} // namespace

/// Makes the loop anew with the values that it will carry: folded sums, and
/// behind the others the factor and the addend.
void Rewriter::replaceLoop() {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop);
  SmallVector<Value> inits(loop.getInits());
  inits[parts.sumIndex] = dense(foldedType, 0);
  inits.append({row(1.0f), row(0.0f)});
  KVLoopOp next = loop.cloneWithInits(builder, inits);
  for (auto [from, to] :
       llvm::zip_equal(loop->getRegions(), next->getRegions()))
    to.takeBody(from);
  loop.replaceAllUsesWith(next.getResults().take_front(loop.getNumResults()));
  loop.erase();
  loop = next;
}

/// Adds the arguments for what replaceLoop added; returns those of the softmax
/// region.
State Rewriter::addCarriedValues() {
  State state;
  for (Region &region : loop->getRegions()) {
    Block &block = region.front();
    unsigned numArguments = block.getNumArguments();
    unsigned first = numArguments - (loop.getInits().size() - kNumAdded);
    block.getArgument(first + parts.sumIndex).setType(foldedType);
    for (unsigned i = 0; i < kNumAdded; ++i)
      block.addArgument(rowType, loop.getLoc());
    if (&region != &loop.getSoftmax())
      continue;
    auto added = block.getArguments().drop_front(numArguments);
    state = {softmax.getMaxIn(), added[0], added[1], softmax.getSumIn()};
  }
  return state;
}

void Rewriter::rewriteSoftmax(State state) {
  Value scores = softmax.getScores();
  computeScale();
  Value limit = make<arith::AddFOp>(state.max, row(distance));
  Value anyExceeds = make<AnyExceedsOp>(scores, limit);
  auto branch = scf::IfOp::create(
      builder, TypeRange{rowType, rowType, rowType, foldedType, rowType},
      anyExceeds, /*withElseRegion=*/true);
  auto yield = [&](Block *block, function_ref<State(Value &)> body) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(block);
    Value alpha;
    State next = body(alpha);
    scf::YieldOp::create(builder, ValueRange{next.max, next.factor, next.addend,
                                             next.sum, alpha});
  };
  yield(branch.thenBlock(),
        [&](Value &alpha) { return updateBase(state, alpha); });
  yield(branch.elseBlock(), [&](Value &alpha) {
    alpha = row(1.0f);
    return state;
  });
  auto results = branch.getResults();

  Type scoreType = scores.getType();
  Value exponent = make<math::FmaOp>(scores, spread(results[1], scoreType),
                                     spread(results[2], scoreType));
  Value p = make<math::Exp2Op>(exponent);
  Value sum = make<arith::AddFOp>(results[3], make<FoldSumOp>(foldedType, p));

  // What pv gets: as before, then whether to rescale and the new state.
  auto softmaxYield = cast<YieldOp>(softmax->getBlock()->getTerminator());
  Block &pv = loop.getPv().front();
  Operation *pvYield = pv.getTerminator();
  for (auto [index, value] : llvm::enumerate(softmaxYield.getOperands())) {
    if (value == softmax.getSumOut())
      pv.getArgument(1 + index).setType(foldedType);
    else if (value == softmax.getAlpha())
      alphas.push_back(pv.getArgument(1 + index));
  }
  unsigned next = 1 + softmaxYield.getNumOperands();
  softmaxYield.getValuesMutable().append({anyExceeds, results[1], results[2]});
  grew = pv.insertArgument(next, anyExceeds.getType(), softmax.getLoc());
  for (unsigned i = 1; i <= kNumAdded; ++i) {
    Value carried = pv.insertArgument(next + i, rowType, softmax.getLoc());
    cast<YieldOp>(pvYield).getValuesMutable().append(carried);
  }
  softmax->replaceAllUsesWith(ValueRange{p, results[0], sum, results[4]});
  softmax.erase();
}

/// The state with the true maximum as the base.
State Rewriter::updateBase(const State &old, Value &alpha) {
  Value tileMax = make<ReduceOp>(rowType, ReduceKind::Max, softmax.getScores());
  State state;
  // maximumf, not maxnumf: once a row has seen NaN its statistics stay NaN.
  state.max = make<arith::MaximumFOp>(old.max, tileMax);
  computeExponent(state);

  Value change =
      make<math::Exp2Op>(make<arith::SubFOp>(state.addend, old.addend));
  Value isRelated = make<arith::AndIOp>(
      compare(arith::CmpFPredicate::UNE, old.max, row(kMinusInf)),
      compare(arith::CmpFPredicate::OEQ, old.factor, state.factor));
  alpha = make<arith::SelectOp>(isRelated, change, row(0.0f));
  state.sum = make<arith::MulFOp>(old.sum, spread(alpha, foldedType));
  return state;
}

/// Computes what follows from the scale alone, ahead of the loop.
void Rewriter::computeScale() {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop);
  Value softmaxScale = softmax.getScale();
  FloatAttr constant;
  if (matchPattern(softmaxScale, m_Constant(&constant)))
    softmaxScale = make<arith::ConstantOp>(constant);
  scale =
      make<arith::MulFOp>(softmaxScale, scalar(static_cast<float>(M_LOG2E)));
  Value mask = make<arith::ConstantOp>(builder.getI32IntegerAttr(kPowerMask));
  Value bits = make<arith::BitcastOp>(builder.getI32Type(), scale);
  power = make<arith::BitcastOp>(builder.getF32Type(),
                                 make<arith::AndIOp>(bits, mask));
  // Finite: the limit of a row without keys is -inf, not NaN.
  distance = make<arith::MinimumFOp>(
      make<arith::DivFOp>(scalar(getMaxGrowth()), scale),
      scalar(std::numeric_limits<float>::max()));
}

/// Fills in what follows from the maximum; see the head of this file.
void Rewriter::computeExponent(State &state) {
  // Where the maximum is -inf so is every score; adding 0 keeps it.
  Value isEmpty = compare(arith::CmpFPredicate::OEQ, state.max, row(kMinusInf));
  Value base = make<arith::SelectOp>(isEmpty, row(0.0f), state.max);
  Value magnitude = make<math::AbsFOp>(make<arith::MulFOp>(base, row(scale)));
  Value isHuge =
      compare(arith::CmpFPredicate::OGT, magnitude, row(getHugeExponent()));
  state.factor = make<arith::SelectOp>(isHuge, row(power), row(scale));
  state.addend = make<arith::NegFOp>(make<arith::MulFOp>(base, state.factor));
  if (softmax.getExponent() != 0)
    state.addend = make<arith::AddFOp>(
        state.addend, row(static_cast<float>(softmax.getExponent())));
}

/// P has less room for 2^r in f16 and in 8 bits.
float Rewriter::getHugeExponent() {
  auto findShort = [](arith::TruncFOp op) {
    Type type = getElementTypeOrSelf(op.getType());
    bool isShort = type.isF16() || type.getIntOrFloatBitWidth() == 8;
    return isShort ? WalkResult::interrupt() : WalkResult::advance();
  };
  bool isShort = loop->walk(findShort).wasInterrupted();
  return isShort ? kHugeExponentF16 : kHugeExponent;
}

/// Products with a broadcast alpha happen only where the base changed.
/// Elsewhere alpha is 1, whoever else uses it.
void Rewriter::rewriteRescale() {
  auto products = llvm::filter_to_vector(
      loop.getPv().front().getOps<arith::MulFOp>(), [&](arith::MulFOp op) {
        return isAlpha(op.getLhs()) || isAlpha(op.getRhs());
      });
  for (arith::MulFOp product : products) {
    bool isLeft = isAlpha(product.getLhs());
    Value factor = isLeft ? product.getLhs() : product.getRhs();
    Value old = isLeft ? product.getRhs() : product.getLhs();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(product);
    auto branch = scf::IfOp::create(
        builder, grew,
        [&](OpBuilder &nested, Location loc) {
          Value scaled = arith::MulFOp::create(nested, loc, old, factor);
          scf::YieldOp::create(nested, loc, scaled);
        },
        [&](OpBuilder &nested, Location loc) {
          scf::YieldOp::create(nested, loc, old);
        });
    product.replaceAllUsesWith(branch.getResult(0));
    product.erase();
  }
}

bool Rewriter::isAlpha(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  return broadcast && llvm::is_contained(alphas, broadcast.getSource());
}

void Rewriter::reduceSum() {
  Value folded = loop.getResult(parts.sumIndex);
  builder.setInsertionPointAfter(loop);
  Value sum = make<ReduceOp>(rowType, ReduceKind::Add, folded);
  folded.replaceAllUsesExcept(sum, sum.getDefiningOp());
}

namespace {
struct TileDeferRescalePass
    : tile::impl::TileDeferRescaleBase<TileDeferRescalePass> {
  void runOnOperation() override {
    auto roles = getOperation()->getAttrOfType<attn::WarpRolesAttr>(
        attn::WarpRolesAttr::getKernelAttrName());
    if (roles && !roles.getLazyRescale())
      return;
    SmallVector<KVLoopOp> loops;
    getOperation().walk([&](KVLoopOp loop) { loops.push_back(loop); });
    for (KVLoopOp loop : loops) {
      FailureOr<SoftmaxLoop> parts = SoftmaxLoop::match(loop);
      if (succeeded(parts))
        Rewriter(*parts).run();
    }
  }
};
} // namespace
