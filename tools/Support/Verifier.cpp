//===- Verifier.cpp - Results against the float64 reference ---------------===//

#include "Verifier.h"
#include "ArgumentViews.h"
#include "attn/Runtime/Compare.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Format.h"
#include <random>

using namespace attn;
using mlir::attn::AttentionOp;

/// Multiply-adds of the reference: a few seconds of one core.
static constexpr int64_t kReferenceBudget = 500'000'000;

/// Fewer rows than this say too little, whatever they cost.
static constexpr int64_t kMinSampledRows = 64;

double attn::getTolerance(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return 5e-3;
  case DType::BF16:
    return 4e-2;
  case DType::F8E4M3FN:
  case DType::F8E5M2:
    return 8e-2;
  default:
    return 1e-5;
  }
}

/// The LSE is computed in float32 from scores whose products were exact.
static constexpr double kLseTolerance = 1e-2;

static llvm::Expected<AttentionOp> findAttention(mlir::func::FuncOp entry) {
  AttentionOp attention;
  int count = 0;
  entry.walk([&](AttentionOp op) {
    attention = op;
    ++count;
  });
  if (count != 1)
    return llvm::createStringError(
        "the float64 reference needs an entry with one attn.attention, '" +
        entry.getName().str() + "' has " + llvm::Twine(count));
  return attention;
}

/// The index of the entry's argument that `value` is.
static llvm::Expected<unsigned> getArgumentIndex(mlir::Value value,
                                                 AttentionOp op) {
  auto argument = llvm::dyn_cast<mlir::BlockArgument>(value);
  if (argument && argument.getOwner() == op->getBlock() &&
      argument.getOwner()->isEntryBlock())
    return argument.getArgNumber();
  return llvm::createStringError(
      "the float64 reference needs an attn.attention on the entry's own "
      "arguments; this one has computed operands");
}

static llvm::Expected<ReferenceTensor>
getReferenceTensor(const Tensor &tensor) {
  using Type = ReferenceTensor::Type;
  ReferenceTensor result;
  switch (tensor.getDType()) {
  case DType::F8E4M3FN:
    result.type = Type::F8E4M3FN;
    break;
  case DType::F8E5M2:
    result.type = Type::F8E5M2;
    break;
  case DType::F16:
    result.type = Type::F16;
    break;
  case DType::BF16:
    result.type = Type::BF16;
    break;
  case DType::F32:
    result.type = Type::F32;
    break;
  case DType::F64:
    result.type = Type::F64;
    break;
  default:
    return llvm::createStringError("the reference takes floats, not " +
                                   getName(tensor.getDType()));
  }
  if (tensor.getRank() != 4)
    return llvm::createStringError("the reference takes four dimensions");
  result.data = tensor.getData();
  llvm::copy(tensor.getShape(), result.shape.begin());
  llvm::copy(tensor.getStrides(), result.strides.begin());
  return result;
}

static llvm::Expected<ReferenceInputs>
getReferenceInputs(AttentionOp op, llvm::ArrayRef<Tensor> arguments) {
  ReferenceInputs inputs;
  for (auto [value, target] :
       {std::pair(op.getQ(), &inputs.q), std::pair(op.getK(), &inputs.k),
        std::pair(op.getV(), &inputs.v)}) {
    llvm::Expected<Tensor> view = getArgumentView(value, arguments);
    if (!view)
      return view.takeError();
    llvm::Expected<ReferenceTensor> tensor = getReferenceTensor(*view);
    if (!tensor)
      return tensor.takeError();
    *target = *tensor;
  }
  if (mlir::Value scale = op.getScaleValue()) {
    llvm::Expected<unsigned> index = getArgumentIndex(scale, op);
    if (!index)
      return index.takeError();
    inputs.scale = arguments[*index].toDoubles().front();
  }
  if (mlir::Value sink = op.getSink()) {
    llvm::Expected<unsigned> index = getArgumentIndex(sink, op);
    if (!index)
      return index.takeError();
    inputs.sink = arguments[*index].toDoubles();
  }
  for (auto [value, target] : {std::pair(op.getQScale(), &inputs.qScale),
                               std::pair(op.getKScale(), &inputs.kScale),
                               std::pair(op.getVScale(), &inputs.vScale)}) {
    if (!value)
      continue;
    llvm::Expected<unsigned> index = getArgumentIndex(value, op);
    if (!index)
      return index.takeError();
    *target = arguments[*index].toDoubles();
  }
  for (mlir::Value capture : op.getCaptures()) {
    llvm::Expected<unsigned> index = getArgumentIndex(capture, op);
    if (!index)
      return index.takeError();
    const Tensor &tensor = arguments[*index];
    ReferenceCapture view;
    view.data = tensor.getData();
    llvm::append_range(view.shape, tensor.getShape());
    llvm::append_range(view.strides, tensor.getStrides());
    inputs.captures.push_back(std::move(view));
  }
  return inputs;
}

static ReferenceRow getRow(int64_t index, llvm::ArrayRef<int64_t> shape) {
  const int64_t heads = shape[1], queries = shape[2];
  return {index / queries / heads, index / queries % heads, index % queries};
}

/// All rows of an output of `shape`, or as many as `limit`: the first and the
/// last, where masks are special, and random ones in between.
static std::vector<ReferenceRow> chooseRows(llvm::ArrayRef<int64_t> shape,
                                            int64_t limit) {
  const int64_t count = shape[0] * shape[1] * shape[2];
  std::vector<ReferenceRow> rows;
  if (count <= limit) {
    for (int64_t i = 0; i < count; ++i)
      rows.push_back(getRow(i, shape));
    return rows;
  }
  llvm::SetVector<int64_t> chosen;
  chosen.insert(0);
  chosen.insert(count - 1);
  std::mt19937_64 random(/*seed=*/1);
  while (int64_t(chosen.size()) < limit)
    chosen.insert(random() % count);
  for (int64_t index : chosen)
    rows.push_back(getRow(index, shape));
  return rows;
}

llvm::Expected<Verifier> Verifier::create(mlir::func::FuncOp entry,
                                          llvm::ArrayRef<Tensor> arguments) {
  llvm::Expected<AttentionOp> op = findAttention(entry);
  if (!op)
    return op.takeError();
  Verifier verifier;
  verifier.output = op->getO();
  llvm::Expected<Tensor> output = getArgumentView(verifier.output, arguments);
  if (!output)
    return output.takeError();
  // Others than arguments are the entry's own.
  if (auto lse = llvm::dyn_cast_or_null<mlir::BlockArgument>(op->getLse()))
    verifier.lseIndex = lse.getArgNumber();
  llvm::Expected<ReferenceInputs> inputs = getReferenceInputs(*op, arguments);
  if (!inputs)
    return inputs.takeError();

  verifier.tolerance =
      getTolerance(op->isQuantized() ? DType::F8E4M3FN : output->getDType());
  const int64_t rowCost = std::max<int64_t>(
      inputs->k.shape[2] * (inputs->q.shape[3] + inputs->v.shape[3]), 1);
  const llvm::ArrayRef<int64_t> shape = output->getShape();
  verifier.rows =
      chooseRows(shape, std::max(kMinSampledRows, kReferenceBudget / rowCost));
  verifier.isSample =
      int64_t(verifier.rows.size()) < shape[0] * shape[1] * shape[2];
  llvm::Expected<ReferenceResult> expected =
      evaluateReferenceRows(*op, *inputs, verifier.rows);
  if (!expected)
    return expected.takeError();
  verifier.expected = std::move(*expected);
  return verifier;
}

/// The rows of `tensor` ([B, H, N] or [B, H, N, D]) one after the other.
static std::vector<double> gatherRows(const Tensor &tensor,
                                      llvm::ArrayRef<ReferenceRow> rows) {
  const llvm::ArrayRef<int64_t> strides = tensor.getStrides();
  const int64_t size = tensor.getRank() == 4 ? tensor.getShape()[3] : 1;
  const DType dtype = tensor.getDType();
  const char *base = static_cast<const char *>(tensor.getData());
  std::vector<double> values;
  values.reserve(rows.size() * size);
  for (const ReferenceRow &row : rows) {
    const int64_t start =
        row.batch * strides[0] + row.head * strides[1] + row.query * strides[2];
    for (int64_t d = 0; d < size; ++d)
      values.push_back(
          loadAsDouble(dtype, base + (start + d) * getByteSize(dtype)));
  }
  return values;
}

static ErrorNorms compareRows(const Tensor &actual,
                              llvm::ArrayRef<ReferenceRow> rows,
                              llvm::ArrayRef<double> expected) {
  std::vector<double> values = gatherRows(actual, rows);
  const int64_t size = values.size();
  return compare(Tensor::borrow(DType::F64, size, 1, values.data()),
                 Tensor::borrow(DType::F64, size, 1,
                                const_cast<double *>(expected.data())));
}

static void checkTolerance(double error, double tolerance, llvm::StringRef what,
                           VariantReport &report) {
  // NaN is no acceptable error either.
  if (error <= tolerance)
    return;
  report.status = "error";
  llvm::raw_string_ostream(report.message)
      << "the error of " << what << " against float64, "
      << llvm::format("%.2e", error) << ", exceeds "
      << llvm::format("%.0e", tolerance);
}

void Verifier::check(llvm::ArrayRef<Tensor> arguments,
                     VariantReport &report) const {
  // Found before.
  const Tensor view = llvm::cantFail(getArgumentView(output, arguments));
  const ErrorNorms norms = compareRows(view, rows, expected.o);
  report.error = norms.relative;
  report.maxAbsError = norms.maxAbsolute;
  if (isSample)
    report.sampledRows = rows.size();
  checkTolerance(norms.relative, tolerance, "o", report);
  if (!lseIndex || report.status != "ok")
    return;
  report.lseError =
      compareRows(arguments[*lseIndex], rows, expected.lse).relative;
  checkTolerance(*report.lseError, kLseTolerance, "lse", report);
}
