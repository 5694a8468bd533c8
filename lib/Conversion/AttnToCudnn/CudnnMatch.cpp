//===- CudnnMatch.cpp - Which attention cuDNN computes --------------------===//

#include "attn/Conversion/AttnToCudnn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::attn;

/// cuDNN's limits on 16-bit forward attention (cudnn-frontend's
/// sdpa_support_surface.h).
static constexpr int64_t kHeadDimGranule = 8;
static constexpr int64_t kMaxHeadDim = 256;

/// Positions and lengths are below 2^30 everywhere, so that sums of them and of
/// constants below this don't wrap.
static constexpr unsigned kMaxConstantBits = 30;
static constexpr int64_t kMaxConstant = int64_t(1) << (kMaxConstantBits - 1);

/// Operations of a mask that are looked at.
static constexpr unsigned kMaxVisited = 256;

namespace {

/// An integer of a region as a sum of indices, lengths and reads.
struct LinearForm {
  /// What a term is: the values of one kind are equal.
  enum class Term { Query, Key, QueryLength, KeyLength, Length };

  llvm::SmallMapVector<Term, int64_t, 4> terms;
  int64_t constant = 0;
  /// What Term::Length reads.
  Value lengths;

  static LinearForm of(Term term) {
    LinearForm form;
    form.terms[term] = 1;
    return form;
  }

  /// this + factor * other; none where it can't be one form.
  std::optional<LinearForm> plus(const LinearForm &other, int64_t factor) const;
  bool hasTerms(ArrayRef<std::pair<Term, int64_t>> wanted) const;
};

/// Reads the regions of one operator.
class Matcher {
public:
  explicit Matcher(AttentionOp op) : op(op) {}

  CudnnMatch run();

private:
  void matchOperands();
  void matchScoreMod();
  void matchMaskMod();
  void matchCombination();

  bool matchBias(Value value);
  void matchCondition(Value condition);
  void matchNonPositive(const LinearForm &form, Operation *compare);
  void addBound(std::optional<int32_t> &bound, int64_t value, bool bottomRight);
  void addLengths(Value lengths);

  std::optional<LinearForm> linearize(Value value);
  std::optional<LinearForm> linearizeLoad(CaptureLoadOp load);
  /// The operand that a load of the region reads.
  Value getCapture(CaptureLoadOp load);

  void addUnmet(const Twine &condition) {
    std::string text = condition.str();
    if (!llvm::is_contained(match.unmet, text))
      match.unmet.push_back(std::move(text));
  }

  AttentionOp op;
  CudnnMatch match;
  std::optional<bool> isBottomRight;
  unsigned numVisited = 0;
};

} // namespace

using Term = LinearForm::Term;

//===----------------------------------------------------------------------===//
// Linear forms
//===----------------------------------------------------------------------===//

std::optional<LinearForm> LinearForm::plus(const LinearForm &other,
                                           int64_t factor) const {
  LinearForm sum = *this;
  sum.constant += factor * other.constant;
  if (std::abs(sum.constant) > kMaxConstant ||
      (lengths && other.lengths && lengths != other.lengths))
    return std::nullopt;
  if (!sum.lengths)
    sum.lengths = other.lengths;
  for (auto [term, count] : other.terms)
    sum.terms[term] += factor * count;
  sum.terms.remove_if([](auto &entry) { return entry.second == 0; });
  return sum;
}

bool LinearForm::hasTerms(ArrayRef<std::pair<Term, int64_t>> wanted) const {
  return terms.size() == wanted.size() &&
         llvm::all_of(wanted, [&](auto &entry) {
           return terms.lookup(entry.first) == entry.second;
         });
}

std::optional<LinearForm> Matcher::linearize(Value value) {
  // A value may have any number of users.
  if (++numVisited > kMaxVisited)
    return std::nullopt;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    if (!constant.isSignedIntN(kMaxConstantBits))
      return std::nullopt;
    LinearForm form;
    form.constant = constant.getSExtValue();
    return form;
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    // Of a mask_mod: b, h, q_idx, kv_idx.
    if (argument.getArgNumber() == 2)
      return LinearForm::of(Term::Query);
    if (argument.getArgNumber() == 3)
      return LinearForm::of(Term::Key);
    return std::nullopt;
  }
  auto combine = [&](Operation *sum, int64_t factor) {
    std::optional<LinearForm> a = linearize(sum->getOperand(0));
    std::optional<LinearForm> b = linearize(sum->getOperand(1));
    return a && b ? a->plus(*b, factor) : std::nullopt;
  };
  using Result = std::optional<LinearForm>;
  return TypeSwitch<Operation *, Result>(value.getDefiningOp())
      .Case([](QLenOp) { return LinearForm::of(Term::QueryLength); })
      .Case([](KVLenOp) { return LinearForm::of(Term::KeyLength); })
      .Case([&](arith::AddIOp sum) { return combine(sum, 1); })
      .Case([&](arith::SubIOp difference) { return combine(difference, -1); })
      .Case([&](CaptureLoadOp load) { return linearizeLoad(load); })
      .Default(Result());
}

/// capture[b] in i32 is a length.
std::optional<LinearForm> Matcher::linearizeLoad(CaptureLoadOp load) {
  if (load.getIndices().size() != 1 || !load.getType().isInteger(32) ||
      load.isBroadcast(0))
    return std::nullopt;
  auto batch = dyn_cast<BlockArgument>(load.getIndices().front());
  if (!batch || batch.getArgNumber() != 0)
    return std::nullopt;
  LinearForm form = LinearForm::of(Term::Length);
  form.lengths = getCapture(load);
  return form;
}

Value Matcher::getCapture(CaptureLoadOp load) {
  auto source = cast<BlockArgument>(load.getSource());
  unsigned fromEnd =
      source.getOwner()->getNumArguments() - source.getArgNumber();
  return op.getCaptures()[op.getCaptures().size() - fromEnd];
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

void Matcher::matchOperands() {
  Type element = op.getElementType();
  if (!element.isF16() && !element.isBF16()) {
    std::string name;
    llvm::raw_string_ostream(name) << element;
    addUnmet("q, k and v are " + name + "; it takes f16 and bf16");
  }
  for (int64_t dim : {op.getQKHeadDim(), op.getVHeadDim()}) {
    if (dim % kHeadDimGranule != 0)
      addUnmet("head dim " + Twine(dim) + " is not a multiple of " +
               Twine(kHeadDimGranule));
    if (dim > kMaxHeadDim)
      addUnmet("head dim " + Twine(dim) + " > " + Twine(kMaxHeadDim));
  }
  if (!op.getConstantScale())
    addUnmet("the scale is an operand; make it an attribute");
  if (op.getSink())
    addUnmet("a sink");
  if (op.getCuQ() || op.getCuK())
    addUnmet("packed sequences (cu_q, cu_k)");
  if (op.getBlockTable())
    addUnmet("a cache in pages (block_table)");
  if (op.getBatchInvariant())
    addUnmet("batch_invariant");
  if (op.getKvLen())
    addLengths(op.getKvLen());
}

void Matcher::addLengths(Value lengths) {
  if (match.attention.lengths && match.attention.lengths != lengths)
    return addUnmet("two tensors of lengths");
  match.attention.lengths = lengths;
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// What the first operation that isn't a sum with a bias amounts to.
static std::string describeScoreMod(Region &region) {
  std::string text = "score_mod: ";
  for (Operation &inner : region.front().without_terminator()) {
    if (isa<math::TanhOp>(inner))
      return text + "softcap";
    if (isa<arith::SIToFPOp, arith::UIToFPOp>(inner))
      return text + "a function of the positions (ALiBi, relative)";
  }
  for (Operation &inner : region.front().without_terminator())
    if (!isa<arith::ConstantOp, CaptureLoadOp, arith::ExtFOp>(inner))
      return text + inner.getName().getStringRef().str();
  return text + "it doesn't keep the score";
}

void Matcher::matchScoreMod() {
  if (!op.hasScoreMod())
    return;
  Block &body = op.getScoreMod().front();
  Value result = body.getTerminator()->getOperand(0);
  Value score = body.getArgument(0);
  if (result == score)
    return;
  if (auto sum = result.getDefiningOp<arith::AddFOp>()) {
    if (sum.getLhs() == score && matchBias(sum.getRhs()))
      return;
    if (sum.getRhs() == score && matchBias(sum.getLhs()))
      return;
  }
  addUnmet(describeScoreMod(op.getScoreMod()) +
           "; it knows an added bias [B or 1, H or 1, Nq, Nk] only");
}

/// capture[b, h, q_idx, kv_idx], widened.
bool Matcher::matchBias(Value value) {
  if (auto widened = value.getDefiningOp<arith::ExtFOp>())
    value = widened.getIn();
  auto load = value.getDefiningOp<CaptureLoadOp>();
  if (!load || load.getIndices().size() != 4)
    return false;
  Block &body = op.getScoreMod().front();
  for (auto [dim, index] : llvm::enumerate(load.getIndices()))
    // After the score.
    if (index != body.getArgument(1 + dim))
      return false;
  match.attention.bias = getCapture(load);
  for (unsigned dim : {2, 3})
    if (load.isBroadcast(dim))
      addUnmet("score_mod: a bias that is the same for all " +
               Twine(dim == 2 ? "queries" : "keys"));
  return true;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kKnownMasks =
    "; it knows causal masks, windows and key padding, and all of them at once";

/// Of a comparison, what it reads, else the operation.
static std::string describeCondition(Operation *condition) {
  if (!condition)
    return "an argument";
  std::string text = condition->getName().getStringRef().str();
  llvm::SetVector<Operation *> reached;
  reached.insert(condition);
  for (size_t i = 0; i < reached.size(); ++i) {
    Operation *next = reached[i];
    if (auto load = dyn_cast<CaptureLoadOp>(next)) {
      text = "a tensor of ";
      llvm::raw_string_ostream os(text);
      os << load.getType() << " [";
      llvm::interleaveComma(
          cast<ShapedType>(load.getSource().getType()).getShape(), os,
          [&](int64_t size) {
            ShapedType::isDynamic(size) ? os << '?' : os << size;
          });
      os << "]";
      return text;
    }
    for (Value operand : next->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        reached.insert(producer);
  }
  return text;
}

void Matcher::matchMaskMod() {
  if (op.hasMaskMod())
    matchCondition(op.getMaskMod().front().getTerminator()->getOperand(0));
}

void Matcher::matchCondition(Value condition) {
  if (++numVisited > kMaxVisited)
    return addUnmet("mask_mod: more than " + Twine(kMaxVisited) +
                    " operations");
  if (matchPattern(condition, m_One()))
    return;
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    matchCondition(both.getLhs());
    return matchCondition(both.getRhs());
  }
  auto refuse = [&] {
    addUnmet("mask_mod: " + describeCondition(condition.getDefiningOp()) +
             kKnownMasks);
  };
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return refuse();
  std::optional<LinearForm> a = linearize(compare.getLhs());
  std::optional<LinearForm> b = linearize(compare.getRhs());
  if (!a || !b)
    return refuse();
  using P = arith::CmpIPredicate;
  const P predicate = compare.getPredicate();
  if (predicate == P::sge || predicate == P::sgt)
    std::swap(a, b);
  else if (predicate != P::sle && predicate != P::slt)
    return refuse();
  // a <= b, or a < b.
  std::optional<LinearForm> form = a->plus(*b, -1);
  if (!form)
    return refuse();
  if (predicate == P::slt || predicate == P::sgt)
    ++form->constant;
  matchNonPositive(*form, compare);
}

/// form <= 0
void Matcher::matchNonPositive(const LinearForm &form, Operation *compare) {
  CudnnAttention &attention = match.attention;
  if (form.hasTerms({{Term::Key, 1}, {Term::Query, -1}}))
    return addBound(attention.right, -form.constant, /*bottomRight=*/false);
  if (form.hasTerms({{Term::Key, -1}, {Term::Query, 1}}))
    return addBound(attention.left, -form.constant, /*bottomRight=*/false);
  if (form.hasTerms({{Term::Key, 1},
                     {Term::Query, -1},
                     {Term::KeyLength, -1},
                     {Term::QueryLength, 1}}))
    return addBound(attention.right, -form.constant, /*bottomRight=*/true);
  if (form.hasTerms({{Term::Key, -1},
                     {Term::Query, 1},
                     {Term::KeyLength, 1},
                     {Term::QueryLength, -1}}))
    return addBound(attention.left, -form.constant, /*bottomRight=*/true);
  if (form.hasTerms({{Term::Key, 1}, {Term::Length, -1}}) && form.constant == 1)
    return addLengths(form.lengths);
  // key < kv_len holds for every key.
  if (form.hasTerms({{Term::Key, 1}, {Term::KeyLength, -1}}) &&
      form.constant <= 1)
    return;
  addUnmet("mask_mod: " + describeCondition(compare) + kKnownMasks);
}

void Matcher::addBound(std::optional<int32_t> &bound, int64_t value,
                       bool bottomRight) {
  if (value < 0)
    return addUnmet("mask_mod: a window that leaves out the query's own "
                    "position");
  if (isBottomRight.value_or(bottomRight) != bottomRight)
    return addUnmet("mask_mod: bounds that count from the first key and from "
                    "the last one");
  isBottomRight = bottomRight;
  bound = bound ? std::min<int32_t>(*bound, value) : value;
}

/// What cuDNN knows, but not together.
void Matcher::matchCombination() {
  CudnnAttention &attention = match.attention;
  attention.isBottomRight = isBottomRight.value_or(false);
  // Of a capture, kv_len of the regions isn't the length.
  if (attention.isBottomRight && attention.lengths &&
      attention.lengths != op.getKvLen())
    addUnmet("mask_mod: key padding from a capture beside a mask that counts "
             "from the last key of the tensor; give the lengths as kv_len");
}

CudnnMatch Matcher::run() {
  matchOperands();
  matchScoreMod();
  matchMaskMod();
  matchCombination();
  return std::move(match);
}

CudnnMatch attn::matchCudnn(AttentionOp op) { return Matcher(op).run(); }

CudnnMatch attn::matchCudnn(func::FuncOp entry) {
  CudnnMatch match;
  SmallVector<AttentionOp> ops;
  Operation *other = nullptr;
  for (Operation &inner : entry.front().without_terminator()) {
    if (auto op = dyn_cast<AttentionOp>(inner))
      ops.push_back(op);
    else if (!isMemoryEffectFree(&inner) &&
             !isa<cf::AssertOp, CheckSequencesOp>(inner))
      other = &inner;
    else if (llvm::any_of(inner.getResultTypes(), llvm::IsaPred<ShapedType>))
      other = &inner;
  }
  if (other)
    match.unmet.push_back("'" + entry.getName().str() + "' also does " +
                          other->getName().getStringRef().str());
  else if (ops.size() != 1)
    match.unmet.push_back("'" + entry.getName().str() + "' holds " +
                          std::to_string(ops.size()) +
                          " attn.attention, not one");
  else
    match = matchCudnn(ops.front());
  return match;
}
