//===- RuleReader.cpp - Values and bounds of a mask rule ------------------===//

#include "RuleReader.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "attn/Dialect/Tile/Transforms/RegionInliner.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::attn;

/// Arguments of a mask_mod in front of its captures.
static constexpr unsigned kNumIndices = 4;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

unsigned RuleInputs::get(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber() < kNumIndices ? 1u << argument.getArgNumber()
                                                 : 0;
  if (auto it = known.find(value); it != known.end())
    return it->second;
  unsigned inputs = 0;
  for (Value operand : value.getDefiningOp()->getOperands())
    inputs |= get(operand);
  return known[value] = inputs;
}

Value attn::createGather(OpBuilder &builder, CaptureLoadOp load, Value source,
                         ValueRange positions, Value batch, Value head) {
  SmallVector<int64_t> inBounds;
  for (auto [dim, index] : llvm::enumerate(positions)) {
    // A tile of queries and keys reaches past the last ones; batch and head
    // never do (see CaptureLoadOp::getBounds), and constants were verified.
    bool isVerified =
        matchPattern(load.getIndices()[dim], m_Constant()) &&
        !cast<MemRefType>(load.getSource().getType()).isDynamicDim(dim);
    if (load.isBroadcast(dim) || isVerified || index == batch || index == head)
      inBounds.push_back(dim);
  }
  return tile::GatherOp::create(builder, load.getLoc(), load.getType(), source,
                                positions, inBounds);
}

RuleCloner::RuleCloner(Region &rule, const RuleContext &context, Value query,
                       Value key)
    : context(context) {
  SmallVector<Value> values = {context.batch, context.head, query, key};
  llvm::append_range(values, context.captures);
  for (auto [argument, value] : llvm::zip_equal(rule.getArguments(), values))
    if (value)
      mapping.map(argument, value);
}

Value RuleCloner::clone(OpBuilder &builder, Value value) {
  if (Value cloned = mapping.lookupOrNull(value))
    return cloned;
  Operation *op = value.getDefiningOp();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(clone(builder, operand));
    mapping.map(operand, operands.back());
  }
  Value cloned =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case([&](CaptureLoadOp load) {
            MutableArrayRef<Value> positions =
                MutableArrayRef(operands).drop_front();
            for (auto [dim, position] : llvm::enumerate(positions))
              if (load.isBroadcast(dim))
                position = arith::ConstantIntOp::create(builder, load.getLoc(),
                                                        0, /*width=*/32);
            return createGather(builder, load, operands.front(), positions,
                                context.batch, context.head);
          })
          .Case([&](QLenOp) { return context.qLen; })
          .Case([&](KVLenOp) { return context.kvLen; })
          .Default([&](Operation *op) {
            if (tile::isIntegerDivision(*op))
              mapping.map(op->getOperand(1),
                          tile::createSafeDivisor(builder, *op, operands[0],
                                                  operands[1]));
            return builder.clone(*op, mapping)
                ->getResult(cast<OpResult>(value).getResultNumber());
          });
  mapping.map(value, cloned);
  return cloned;
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

/// Short names for the operations on bounds.
class RuleBoundsBuilder::Emitter {
public:
  explicit Emitter(ImplicitLocOpBuilder &builder) : b(builder) {}

  template <typename OpT>
  Value binary(Value a, Value c) {
    return b.createOrFold<OpT>(a, c);
  }
  Value i64(int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }
  Value i1(bool value) {
    return arith::ConstantIntOp::create(b, value, /*width=*/1);
  }
  Value min(Value a, Value c) { return binary<arith::MinSIOp>(a, c); }
  Value max(Value a, Value c) { return binary<arith::MaxSIOp>(a, c); }
  Value either(Value a, Value c) { return binary<arith::OrIOp>(a, c); }
  Value both(Value a, Value c) { return binary<arith::AndIOp>(a, c); }
  Value negate(Value a) { return binary<arith::XOrIOp>(a, i1(true)); }
  Value select(Value condition, Value a, Value c) {
    return b.createOrFold<arith::SelectOp>(condition, a, c);
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value c) {
    return b.createOrFold<arith::CmpIOp>(predicate, a, c);
  }
  Value lessEqual(Value a, Value c) {
    return compare(arith::CmpIPredicate::sle, a, c);
  }
  Value less(Value a, Value c) {
    return compare(arith::CmpIPredicate::slt, a, c);
  }
  Value toI64(Value value) {
    Type i64 = b.getI64Type();
    if (value.getType().isIndex())
      return b.createOrFold<arith::IndexCastOp>(i64, value);
    if (value.getType() == i64)
      return value;
    return b.createOrFold<arith::ExtSIOp>(i64, value);
  }
  RuleBounds exactly(Value value) {
    if (value.getType().isInteger(1))
      return {value, value};
    value = toI64(value);
    return {value, value};
  }
  /// Every value of an integer of `width` bits.
  RuleBounds all(unsigned width) {
    if (width == 1)
      return {i1(false), i1(true)};
    return {i64(llvm::minIntN(width)), i64(llvm::maxIntN(width))};
  }
  /// `bounds`, or every value if one of them doesn't fit into `width` bits.
  RuleBounds wrap(RuleBounds bounds, unsigned width) {
    RuleBounds range = all(width);
    Value fits = both(lessEqual(range.min, bounds.min),
                      lessEqual(bounds.max, range.max));
    return {select(fits, bounds.min, range.min),
            select(fits, bounds.max, range.max)};
  }

  ImplicitLocOpBuilder &b;
};

static unsigned getWidth(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

RuleBounds RuleBoundsBuilder::get(Value value) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  bool isInner = (inputs.get(value) & kKey) != 0;
  Emitter emit(isInner ? inner : outer);
  RuleBounds bounds = compute(emit, value);
  known[value] = bounds;
  return bounds;
}

RuleBounds RuleBoundsBuilder::compute(Emitter &emit, Value value) {
  auto toI64 = [&](RuleBounds bounds) {
    return RuleBounds{emit.toI64(bounds.min), emit.toI64(bounds.max)};
  };
  if (value == rule.getArgument(2))
    return toI64(query);
  if (value == rule.getArgument(3))
    return toI64(key);
  if (!value.getType().isIntOrIndex())
    return {};
  if (!inputs.dependsOnPosition(value))
    return emit.exactly(uniform.clone(emit.b, value));
  Operation *op = value.getDefiningOp();
  if (auto load = dyn_cast<CaptureLoadOp>(op)) {
    std::optional<RuleBounds> bounds = read(emit.b, load);
    return bounds ? *bounds : getUnknown(emit, op, value.getType());
  }
  if (value.getType().isInteger(1))
    return computeCondition(emit, op);
  // 64-bit arithmetic on bounds would have to look for overflow everywhere.
  if (getWidth(value.getType()) > 32 &&
      !isa<arith::ExtSIOp, arith::ExtUIOp, arith::SelectOp, arith::MinSIOp,
           arith::MaxSIOp>(op))
    return getUnknown(emit, op, value.getType());
  return computeInteger(emit, op);
}

RuleBounds RuleBoundsBuilder::getUnknown(Emitter &emit, Operation *op,
                                         Type type) {
  opaque.insert(op);
  return emit.all(getWidth(type));
}

std::optional<int64_t> RuleBoundsBuilder::getPositiveConstant(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)) &&
      constant.isStrictlyPositive())
    return constant.getSExtValue();
  return std::nullopt;
}

/// The smallest and largest of the results at the ends of two intervals.
template <typename OpT, typename EmitterT>
static RuleBounds combineEnds(EmitterT &emit, RuleBounds a, RuleBounds b) {
  Value ends[] = {emit.template binary<OpT>(a.min, b.min),
                  emit.template binary<OpT>(a.min, b.max),
                  emit.template binary<OpT>(a.max, b.min),
                  emit.template binary<OpT>(a.max, b.max)};
  return {emit.min(emit.min(ends[0], ends[1]), emit.min(ends[2], ends[3])),
          emit.max(emit.max(ends[0], ends[1]), emit.max(ends[2], ends[3]))};
}

RuleBounds RuleBoundsBuilder::computeInteger(Emitter &emit, Operation *op) {
  Type type = op->getResult(0).getType();
  unsigned width = getWidth(type);
  auto unknown = [&] { return getUnknown(emit, op, type); };
  auto monotone = [&](auto op) {
    using OpT = decltype(op);
    RuleBounds a = get(op.getLhs()), b = get(op.getRhs());
    return RuleBounds{emit.binary<OpT>(a.min, b.min),
                      emit.binary<OpT>(a.max, b.max)};
  };
  auto divide = [&](auto op) {
    if (!getPositiveConstant(op.getRhs()))
      return unknown();
    return monotone(op);
  };
  return llvm::TypeSwitch<Operation *, RuleBounds>(op)
      .Case([&](arith::AddIOp op) { return emit.wrap(monotone(op), width); })
      .Case([&](arith::SubIOp op) {
        RuleBounds a = get(op.getLhs()), b = get(op.getRhs());
        return emit.wrap({emit.binary<arith::SubIOp>(a.min, b.max),
                          emit.binary<arith::SubIOp>(a.max, b.min)},
                         width);
      })
      .Case([&](arith::MulIOp op) {
        return emit.wrap(combineEnds<arith::MulIOp>(emit, get(op.getLhs()),
                                                    get(op.getRhs())),
                         width);
      })
      .Case<arith::MinSIOp, arith::MaxSIOp>(
          [&](auto op) { return monotone(op); })
      .Case<arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>(
          [&](auto op) { return divide(op); })
      .Case([&](arith::RemSIOp op) {
        // Of numbers between two multiples of the divisor, the rests are in
        // order.
        std::optional<int64_t> divisor = getPositiveConstant(op.getRhs());
        if (!divisor)
          return unknown();
        RuleBounds a = get(op.getLhs());
        Value d = emit.i64(*divisor), zero = emit.i64(0);
        Value isOnePeriod =
            emit.both(emit.lessEqual(zero, a.min),
                      emit.compare(arith::CmpIPredicate::eq,
                                   emit.binary<arith::DivSIOp>(a.min, d),
                                   emit.binary<arith::DivSIOp>(a.max, d)));
        Value lowest = emit.select(emit.lessEqual(zero, a.min), zero,
                                   emit.i64(1 - *divisor));
        return RuleBounds{
            emit.select(isOnePeriod, emit.binary<arith::RemSIOp>(a.min, d),
                        lowest),
            emit.select(isOnePeriod, emit.binary<arith::RemSIOp>(a.max, d),
                        emit.i64(*divisor - 1))};
      })
      .Case([&](math::AbsIOp op) {
        RuleBounds a = get(op.getOperand());
        Value zero = emit.i64(0);
        Value low = emit.binary<arith::SubIOp>(zero, a.max);
        Value high = emit.binary<arith::SubIOp>(zero, a.min);
        return emit.wrap(
            {emit.max(emit.max(a.min, low), zero), emit.max(a.max, high)},
            width);
      })
      .Case([&](arith::ExtSIOp op) {
        RuleBounds a = get(op.getIn());
        if (!op.getIn().getType().isInteger(1))
          return a;
        Value ones = emit.i64(-1), zero = emit.i64(0);
        return RuleBounds{emit.select(a.max, ones, zero),
                          emit.select(a.min, ones, zero)};
      })
      .Case([&](arith::ExtUIOp op) {
        RuleBounds a = get(op.getIn());
        Value one = emit.i64(1), zero = emit.i64(0);
        if (op.getIn().getType().isInteger(1))
          return RuleBounds{emit.select(a.min, one, zero),
                            emit.select(a.max, one, zero)};
        // What may be negative may be anything.
        Value isNatural = emit.lessEqual(zero, a.min);
        Value limit = emit.i64(llvm::maxUIntN(getWidth(op.getIn().getType())));
        return RuleBounds{emit.select(isNatural, a.min, zero),
                          emit.select(isNatural, a.max, limit)};
      })
      .Case(
          [&](arith::TruncIOp op) { return emit.wrap(get(op.getIn()), width); })
      .Case<arith::IndexCastOp>(
          [&](auto op) { return emit.wrap(get(op.getIn()), width); })
      .Case([&](arith::SelectOp op) {
        RuleBounds c = get(op.getCondition());
        RuleBounds a = get(op.getTrueValue()), b = get(op.getFalseValue());
        return RuleBounds{
            emit.select(c.min, a.min,
                        emit.select(c.max, emit.min(a.min, b.min), b.min)),
            emit.select(c.min, a.max,
                        emit.select(c.max, emit.max(a.max, b.max), b.max))};
      })
      .Default([&](Operation *) { return unknown(); });
}

RuleBounds RuleBoundsBuilder::computeCondition(Emitter &emit, Operation *op) {
  auto unknown = [&](Operation *op) {
    return getUnknown(emit, op, op->getResult(0).getType());
  };
  auto conjoin = [&](RuleBounds a, RuleBounds b) {
    return RuleBounds{emit.both(a.min, b.min), emit.both(a.max, b.max)};
  };
  auto unite = [&](RuleBounds a, RuleBounds b) {
    return RuleBounds{emit.either(a.min, b.min), emit.either(a.max, b.max)};
  };
  auto negate = [&](RuleBounds a) {
    return RuleBounds{emit.negate(a.max), emit.negate(a.min)};
  };
  /// Whether two conditions differ.
  auto differ = [&](Value x, Value y) {
    RuleBounds a = get(x), b = get(y);
    return unite(conjoin(a, negate(b)), conjoin(negate(a), b));
  };
  return llvm::TypeSwitch<Operation *, RuleBounds>(op)
      .Case([&](arith::AndIOp op) {
        return conjoin(get(op.getLhs()), get(op.getRhs()));
      })
      .Case([&](arith::OrIOp op) {
        return unite(get(op.getLhs()), get(op.getRhs()));
      })
      .Case([&](arith::XOrIOp op) {
        if (matchPattern(op.getRhs(), m_One()))
          return negate(get(op.getLhs()));
        return differ(op.getLhs(), op.getRhs());
      })
      .Case([&](arith::SelectOp op) {
        RuleBounds c = get(op.getCondition());
        RuleBounds a = get(op.getTrueValue()), b = get(op.getFalseValue());
        RuleBounds chosen = unite(conjoin(c, a), conjoin(negate(c), b));
        // Where both hold, so does either.
        return RuleBounds{emit.either(chosen.min, emit.both(a.min, b.min)),
                          chosen.max};
      })
      .Case([&](arith::TruncIOp op) { return unknown(op); })
      .Case([&](arith::CmpIOp op) {
        if (!op.getLhs().getType().isInteger(1))
          return computeCompare(emit, op);
        switch (op.getPredicate()) {
        case arith::CmpIPredicate::ne:
          return differ(op.getLhs(), op.getRhs());
        case arith::CmpIPredicate::eq:
          return negate(differ(op.getLhs(), op.getRhs()));
        default:
          return unknown(op);
        }
      })
      .Default(unknown);
}

RuleBounds RuleBoundsBuilder::computeCompare(Emitter &emit, arith::CmpIOp op) {
  using P = arith::CmpIPredicate;
  RuleBounds a = get(op.getLhs()), b = get(op.getRhs());
  auto lessEqual = [&](RuleBounds a, RuleBounds b) {
    return RuleBounds{emit.lessEqual(a.max, b.min),
                      emit.lessEqual(a.min, b.max)};
  };
  auto less = [&](RuleBounds a, RuleBounds b) {
    return RuleBounds{emit.less(a.max, b.min), emit.less(a.min, b.max)};
  };
  auto equal = [&] {
    RuleBounds x = lessEqual(a, b), y = lessEqual(b, a);
    return RuleBounds{emit.both(x.min, y.min), emit.both(x.max, y.max)};
  };
  // Of numbers that aren't negative the unsigned order is the same.
  auto ifNatural = [&](RuleBounds bounds) {
    Value zero = emit.i64(0);
    Value isNatural =
        emit.both(emit.lessEqual(zero, a.min), emit.lessEqual(zero, b.min));
    return RuleBounds{emit.both(isNatural, bounds.min),
                      emit.either(emit.negate(isNatural), bounds.max)};
  };
  switch (op.getPredicate()) {
  case P::eq:
    return equal();
  case P::ne: {
    RuleBounds same = equal();
    return {emit.negate(same.max), emit.negate(same.min)};
  }
  case P::slt:
    return less(a, b);
  case P::sle:
    return lessEqual(a, b);
  case P::sgt:
    return less(b, a);
  case P::sge:
    return lessEqual(b, a);
  case P::ult:
    return ifNatural(less(a, b));
  case P::ule:
    return ifNatural(lessEqual(a, b));
  case P::ugt:
    return ifNatural(less(b, a));
  case P::uge:
    return ifNatural(lessEqual(b, a));
  }
  llvm_unreachable("unknown predicate");
}
