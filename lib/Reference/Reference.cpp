//===- Reference.cpp - Attention by its definition, in float64 ------------===//

#include "attn/Reference/Reference.h"
#include "ScalarProgram.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Parallel.h"
#include <cmath>
#include <limits>
#include <map>

using namespace attn;
using mlir::attn::AttentionOp;

//===----------------------------------------------------------------------===//
// ReferenceTensor
//===----------------------------------------------------------------------===//

ReferenceTensor ReferenceTensor::dense(const void *data, Type type,
                                       std::array<int64_t, 4> shape) {
  ReferenceTensor tensor{data, type, shape, {}};
  int64_t stride = 1;
  for (int dim = 3; dim >= 0; --dim) {
    tensor.strides[dim] = stride;
    stride *= shape[dim];
  }
  return tensor;
}

template <typename Bits>
static double decode(const llvm::fltSemantics &semantics, const void *data,
                     int64_t offset) {
  const Bits bits = static_cast<const Bits *>(data)[offset];
  llvm::APFloat value(semantics, llvm::APInt(8 * sizeof(Bits), bits));
  bool losesInfo;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

double ReferenceTensor::at(int64_t b, int64_t h, int64_t n, int64_t d) const {
  int64_t offset =
      b * strides[0] + h * strides[1] + n * strides[2] + d * strides[3];
  switch (type) {
  case Type::F8E4M3FN:
    return decode<uint8_t>(llvm::APFloat::Float8E4M3FN(), data, offset);
  case Type::F8E5M2:
    return decode<uint8_t>(llvm::APFloat::Float8E5M2(), data, offset);
  case Type::F16:
    return decode<uint16_t>(llvm::APFloat::IEEEhalf(), data, offset);
  case Type::BF16:
    // A bfloat16 is the upper half of a float.
    return llvm::bit_cast<float>(
        static_cast<uint32_t>(static_cast<const uint16_t *>(data)[offset])
        << 16);
  case Type::F32:
    return static_cast<const float *>(data)[offset];
  case Type::F64:
    return static_cast<const double *>(data)[offset];
  }
  llvm_unreachable("unknown reference type");
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static llvm::Error checkSupported(AttentionOp op) {
  auto refuse = [](llvm::StringRef what) {
    return llvm::createStringError("the reference doesn't support " + what);
  };
  if (op.getCuQ() || op.getCuK())
    return refuse("packed sequences (cu_q, cu_k)");
  if (op.getKvLen() || op.getBlockTable())
    return refuse("a cache (kv_len, block_table)");
  return llvm::Error::success();
}

static llvm::Error checkShape(llvm::StringRef name, mlir::Value value,
                              const ReferenceTensor &tensor) {
  auto type = llvm::cast<mlir::ShapedType>(value.getType());
  for (auto [expected, actual] : llvm::zip(type.getShape(), tensor.shape))
    if (actual < 0 ||
        (!mlir::ShapedType::isDynamic(expected) && expected != actual))
      return llvm::createStringError("the shape of " + name +
                                     " doesn't fit its type in the op");
  return llvm::Error::success();
}

static llvm::Error checkInputScale(llvm::StringRef name, mlir::Value value,
                                   llvm::ArrayRef<double> scale,
                                   const ReferenceTensor &tensor) {
  int64_t needed = 0;
  if (value) {
    auto type = llvm::cast<mlir::ShapedType>(value.getType());
    needed = type.getRank() == 2       ? tensor.shape[0] * tensor.shape[1]
             : type.getDimSize(0) == 1 ? 1
                                       : tensor.shape[1];
  }
  if (static_cast<int64_t>(scale.size()) == needed)
    return llvm::Error::success();
  return llvm::createStringError(name + " of the op has " +
                                 llvm::Twine(needed) + " values, " +
                                 llvm::Twine(scale.size()) + " are given");
}

static llvm::Error checkInputs(AttentionOp op, const ReferenceInputs &inputs) {
  const auto &[q, k, v, scale, captures, sink, qScale, kScale, vScale] = inputs;
  if (llvm::Error error = checkInputScale("q_scale", op.getQScale(), qScale, q))
    return error;
  if (llvm::Error error = checkInputScale("k_scale", op.getKScale(), kScale, k))
    return error;
  if (llvm::Error error = checkInputScale("v_scale", op.getVScale(), vScale, v))
    return error;
  if (llvm::Error error = checkShape("q", op.getQ(), q))
    return error;
  if (llvm::Error error = checkShape("k", op.getK(), k))
    return error;
  if (llvm::Error error = checkShape("v", op.getV(), v))
    return error;
  if (q.shape[0] != k.shape[0] || q.shape[0] != v.shape[0] ||
      k.shape[1] != v.shape[1] || k.shape[2] != v.shape[2] ||
      q.shape[3] != k.shape[3])
    return llvm::createStringError("the shapes of q, k and v don't match");
  if (scale.has_value() != static_cast<bool>(op.getScaleValue()))
    return llvm::createStringError(
        scale ? "a scale is given, but the op has no scale operand"
              : "the op has a scale operand, but no scale is given");
  size_t numSinks = op.getSink() ? op.getNumQueryHeads() : 0;
  if (sink.size() != numSinks)
    return llvm::createStringError("the op has %zu sinks, %zu are given",
                                   numSinks, sink.size());
  if (captures.size() != op.getCaptures().size())
    return llvm::createStringError("the op has %zu captures, %zu are given",
                                   static_cast<size_t>(op.getCaptures().size()),
                                   captures.size());
  for (auto [value, capture] : llvm::zip(op.getCaptures(), captures)) {
    auto type = llvm::cast<mlir::ShapedType>(value.getType());
    if (failed(mlir::verifyCompatibleShape(
            type.getShape(), llvm::ArrayRef<int64_t>(capture.shape))))
      return llvm::createStringError(
          "the shape of a capture doesn't fit its type in the op");
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// ReferenceMask
//===----------------------------------------------------------------------===//

/// b, h, q_idx and kv_idx, as both regions take them.
static llvm::SmallVector<ScalarRow, 5> getIndexRows(const ReferenceRow &row,
                                                    int64_t numKeys) {
  auto integer = [](int64_t value) {
    Scalar scalar;
    scalar.i = static_cast<int32_t>(value);
    return scalar;
  };
  ScalarRow keys(numKeys);
  for (int64_t j = 0; j < numKeys; ++j)
    keys[j] = integer(j);
  return {{integer(row.batch)},
          {integer(row.head)},
          {integer(row.query)},
          std::move(keys)};
}

ReferenceMask::ReferenceMask(std::unique_ptr<ScalarProgram> program)
    : program(std::move(program)) {}
ReferenceMask::ReferenceMask(ReferenceMask &&) = default;
ReferenceMask &ReferenceMask::operator=(ReferenceMask &&) = default;
ReferenceMask::~ReferenceMask() = default;

llvm::Expected<ReferenceMask>
ReferenceMask::create(AttentionOp op,
                      llvm::ArrayRef<ReferenceCapture> captures) {
  auto program =
      ScalarProgram::compile(op.getMaskMod(), /*varyingArgs=*/{3}, captures);
  if (!program)
    return program.takeError();
  return ReferenceMask(std::make_unique<ScalarProgram>(std::move(*program)));
}

llvm::BitVector ReferenceMask::getVisibleKeys(const ReferenceRow &row,
                                              int64_t queryLength,
                                              int64_t keyLength) const {
  llvm::SmallVector<ScalarRow, 5> args = getIndexRows(row, keyLength);
  ScalarRow result = program->run(args, queryLength, keyLength, keyLength);
  llvm::BitVector visible(keyLength);
  for (int64_t j = 0; j < keyLength; ++j)
    visible[j] = result[result.size() == 1 ? 0 : j].i != 0;
  return visible;
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

namespace {
/// K (transposed, so that a row of scores is a sum of scaled rows) and V of one
/// batch and key/value head.
struct KeysAndValues {
  KeysAndValues(const ReferenceInputs &inputs, int64_t batch, int64_t head);

  std::vector<double> keysTransposed; // [Dqk, Nk]
  std::vector<double> values;         // [Nk, Dv]
};

class Evaluator {
public:
  Evaluator(const ReferenceInputs &inputs, double scale)
      : inputs(inputs), scale(scale), numKeys(inputs.k.shape[2]) {}

  llvm::Error compileMods(AttentionOp op);

  /// Writes `o` [Dv] and `lse`.
  void evaluateRow(const ReferenceRow &row, const KeysAndValues &kv,
                   llvm::MutableArrayRef<double> o, double &lse) const;

private:
  std::vector<double> computeScores(const ReferenceRow &row,
                                    const KeysAndValues &kv) const;
  llvm::BitVector computeVisible(const ReferenceRow &row) const;
  void applyScoreMod(const ReferenceRow &row,
                     std::vector<double> &scores) const;

  const ReferenceInputs &inputs;
  double scale;
  int64_t numKeys;
  std::optional<ScalarProgram> scoreMod;
  std::optional<ReferenceMask> mask;
};
} // namespace

/// What the values of `tensor` count.
static double getInputScale(llvm::ArrayRef<double> scale,
                            const ReferenceTensor &tensor, int64_t batch,
                            int64_t head) {
  if (scale.empty())
    return 1;
  if (scale.size() == 1)
    return scale.front();
  const size_t heads = tensor.shape[1];
  return scale[scale.size() == heads ? head : batch * heads + head];
}

KeysAndValues::KeysAndValues(const ReferenceInputs &inputs, int64_t batch,
                             int64_t head) {
  int64_t numKeys = inputs.k.shape[2];
  int64_t dimQK = inputs.k.shape[3], dimV = inputs.v.shape[3];
  const double keyScale = getInputScale(inputs.kScale, inputs.k, batch, head);
  const double valueScale = getInputScale(inputs.vScale, inputs.v, batch, head);
  keysTransposed.resize(dimQK * numKeys);
  values.resize(numKeys * dimV);
  for (int64_t j = 0; j < numKeys; ++j) {
    for (int64_t d = 0; d < dimQK; ++d)
      keysTransposed[d * numKeys + j] =
          keyScale * inputs.k.at(batch, head, j, d);
    for (int64_t d = 0; d < dimV; ++d)
      values[j * dimV + d] = valueScale * inputs.v.at(batch, head, j, d);
  }
}

llvm::Error Evaluator::compileMods(AttentionOp op) {
  if (op.hasScoreMod()) {
    auto program = ScalarProgram::compile(
        op.getScoreMod(), /*varyingArgs=*/{0, 4}, inputs.captures);
    if (!program)
      return program.takeError();
    scoreMod = std::move(*program);
  }
  if (op.hasMaskMod()) {
    auto created = ReferenceMask::create(op, inputs.captures);
    if (!created)
      return created.takeError();
    mask = std::move(*created);
  }
  return llvm::Error::success();
}

std::vector<double> Evaluator::computeScores(const ReferenceRow &row,
                                             const KeysAndValues &kv) const {
  std::vector<double> scores(numKeys, 0.0);
  const double queryScale =
      getInputScale(inputs.qScale, inputs.q, row.batch, row.head);
  for (int64_t d = 0; d < inputs.q.shape[3]; ++d) {
    double q = queryScale * inputs.q.at(row.batch, row.head, row.query, d);
    const double *keys = kv.keysTransposed.data() + d * numKeys;
    for (int64_t j = 0; j < numKeys; ++j)
      scores[j] += q * keys[j];
  }
  for (double &score : scores)
    score *= scale;
  return scores;
}

void Evaluator::applyScoreMod(const ReferenceRow &row,
                              std::vector<double> &scores) const {
  if (!scoreMod)
    return;
  llvm::SmallVector<ScalarRow, 5> args = getIndexRows(row, numKeys);
  ScalarRow scoreRow(numKeys);
  for (int64_t j = 0; j < numKeys; ++j)
    scoreRow[j].f = scores[j];
  args.insert(args.begin(), std::move(scoreRow));
  ScalarRow result = scoreMod->run(args, inputs.q.shape[2], numKeys, numKeys);
  for (int64_t j = 0; j < numKeys; ++j)
    scores[j] = result[result.size() == 1 ? 0 : j].f;
}

llvm::BitVector Evaluator::computeVisible(const ReferenceRow &row) const {
  return mask ? mask->getVisibleKeys(row, inputs.q.shape[2], numKeys)
              : llvm::BitVector(numKeys, true);
}

void Evaluator::evaluateRow(const ReferenceRow &row, const KeysAndValues &kv,
                            llvm::MutableArrayRef<double> o,
                            double &lse) const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> scores = computeScores(row, kv);
  applyScoreMod(row, scores);
  llvm::BitVector visible = computeVisible(row);

  llvm::fill(o, 0.0);
  lse = inputs.sink.empty() ? -infinity : inputs.sink[row.head];
  // A score of -inf has weight 0, like a hidden key.
  for (int64_t j = 0; j < numKeys; ++j)
    visible[j] = visible[j] && scores[j] != -infinity;
  // What the denominator holds besides the keys.
  const double sink = lse;
  double max = sink;
  for (int64_t j = 0; j < numKeys; ++j)
    if (visible[j] && !(scores[j] <= max))
      max = scores[j];
  // Next to an infinite sink no key has any weight.
  if (max == -infinity || sink == infinity)
    return;

  double sum = std::exp(sink - max);
  for (int64_t j = 0; j < numKeys; ++j) {
    if (!visible[j])
      continue;
    double weight = std::exp(scores[j] - max);
    sum += weight;
    const double *value = kv.values.data() + j * o.size();
    for (size_t d = 0; d < o.size(); ++d)
      o[d] += weight * value[d];
  }
  for (double &element : o)
    element /= sum;
  lse = max + std::log(sum);
}

llvm::Expected<ReferenceResult>
attn::evaluateReferenceRows(AttentionOp op, const ReferenceInputs &inputs,
                            llvm::ArrayRef<ReferenceRow> rows) {
  if (llvm::Error error = checkSupported(op))
    return std::move(error);
  if (llvm::Error error = checkInputs(op, inputs))
    return std::move(error);
  double scale = inputs.scale ? *inputs.scale : *op.getConstantScale();
  Evaluator evaluator(inputs, scale);
  if (llvm::Error error = evaluator.compileMods(op))
    return std::move(error);

  // Rows that share K and V are evaluated together.
  std::map<std::pair<int64_t, int64_t>, std::vector<size_t>> groups;
  const std::array<int64_t, 4> &qShape = inputs.q.shape;
  for (auto [index, row] : llvm::enumerate(rows)) {
    if (row.batch < 0 || row.batch >= qShape[0] || row.head < 0 ||
        row.head >= qShape[1] || row.query < 0 || row.query >= qShape[2])
      return llvm::createStringError("a row lies outside the query");
    int64_t queriesPerHead = qShape[1] / inputs.k.shape[1];
    groups[{row.batch, row.head / queriesPerHead}].push_back(index);
  }
  int64_t dimV = inputs.v.shape[3];
  ReferenceResult result;
  result.o.resize(rows.size() * dimV);
  result.lse.resize(rows.size());
  for (auto &[batchAndHead, members] : groups) {
    KeysAndValues kv(inputs, batchAndHead.first, batchAndHead.second);
    llvm::parallelFor(0, members.size(), [&, &members = members](size_t i) {
      size_t row = members[i];
      llvm::MutableArrayRef<double> o(result.o.data() + row * dimV, dimV);
      evaluator.evaluateRow(rows[row], kv, o, result.lse[row]);
    });
  }
  return result;
}

llvm::Expected<ReferenceResult>
attn::evaluateReference(AttentionOp op, const ReferenceInputs &inputs) {
  std::vector<ReferenceRow> rows;
  const std::array<int64_t, 4> &shape = inputs.q.shape;
  for (int64_t b = 0; b < shape[0]; ++b)
    for (int64_t h = 0; h < shape[1]; ++h)
      for (int64_t i = 0; i < shape[2]; ++i)
        rows.push_back({b, h, i});
  return evaluateReferenceRows(op, inputs, rows);
}
