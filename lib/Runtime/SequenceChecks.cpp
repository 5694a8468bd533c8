//===- SequenceChecks.cpp - Offsets, lengths and pages --------------------===//

#include "attn/Runtime/SequenceChecks.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace attn;

namespace {
/// An argument of i32 numbers.
class Numbers {
public:
  Numbers() = default;
  Numbers(std::string name, Tensor tensor)
      : name(std::move(name)), tensor(std::move(tensor)) {}

  explicit operator bool() const { return tensor.has_value(); }
  int64_t size(unsigned dim = 0) const { return tensor->getShape()[dim]; }
  int64_t at(int64_t i) const {
    return static_cast<const int32_t *>(
        tensor->getData())[i * tensor->getStrides()[0]];
  }
  int64_t at(int64_t i, int64_t j) const {
    return static_cast<const int32_t *>(
        tensor->getData())[i * tensor->getStrides()[0] +
                           j * tensor->getStrides()[1]];
  }
  const std::string &getName() const { return name; }

private:
  std::string name;
  std::optional<Tensor> tensor;
};

/// The sequences of one attention.
struct Sequences {
  Numbers cuQ, cuK, kvLen, blockTable;
  BoundPlan::SequenceLimits limits;
};
} // namespace

template <typename... Args>
static llvm::Error refuse(const char *format, Args &&...args) {
  return llvm::createStringError(
      llvm::formatv(format, std::forward<Args>(args)...).str());
}

static llvm::Error checkOffsets(const Numbers &offsets, int64_t rows) {
  if (!offsets)
    return llvm::Error::success();
  const std::string &name = offsets.getName();
  if (offsets.at(0) != 0)
    return refuse("{0}[0] is {1}; offsets begin with 0", name, offsets.at(0));
  for (int64_t i = 1; i < offsets.size(); ++i) {
    if (offsets.at(i) < offsets.at(i - 1))
      return refuse("{0}[{1}] is {2}, less than the {3} before it; offsets "
                    "don't decrease",
                    name, i, offsets.at(i), offsets.at(i - 1));
    if (offsets.at(i) > rows)
      return refuse("{0}[{1}] is {2}, past the {3} rows of the tensor", name, i,
                    offsets.at(i), rows);
  }
  return llvm::Error::success();
}

/// How many keys sequence `s` has room for.
static int64_t getRoom(const Sequences &sequences, int64_t s) {
  const int64_t rows = sequences.limits.kRows;
  if (sequences.blockTable)
    return sequences.blockTable.size(1) * rows;
  if (sequences.cuK)
    return sequences.cuK.at(s + 1) - sequences.cuK.at(s);
  return rows;
}

static llvm::Error checkLengths(const Sequences &sequences) {
  const Numbers &lengths = sequences.kvLen;
  if (!lengths)
    return llvm::Error::success();
  for (int64_t s = 0; s < lengths.size(); ++s) {
    const int64_t room = getRoom(sequences, s);
    if (lengths.at(s) < 0 || lengths.at(s) > room)
      return refuse("{0}[{1}] is {2}, but the sequence has room for 0 to {3} "
                    "keys",
                    lengths.getName(), s, lengths.at(s), room);
  }
  return llvm::Error::success();
}

static llvm::Error checkPages(const Sequences &sequences) {
  const Numbers &table = sequences.blockTable;
  if (!table)
    return llvm::Error::success();
  const int64_t pages = sequences.limits.kBatches;
  for (int64_t s = 0; s < table.size(); ++s) {
    const int64_t used =
        llvm::divideCeil(sequences.kvLen.at(s), sequences.limits.kRows);
    for (int64_t p = 0; p < used; ++p)
      if (table.at(s, p) < 0 || table.at(s, p) >= pages)
        return refuse("{0}[{1}, {2}] is {3}, but there are {4} pages",
                      table.getName(), s, p, table.at(s, p), pages);
  }
  return llvm::Error::success();
}

llvm::Error attn::checkSequences(
    const Manifest &manifest, const BoundPlan &plan,
    llvm::function_ref<llvm::Expected<Tensor>(unsigned argument)> read) {
  for (auto [check, limits] :
       llvm::zip_equal(manifest.sequences, plan.sequenceLimits)) {
    Sequences sequences;
    sequences.limits = limits;
    for (auto [argument, numbers] :
         {std::pair(check.cuQ, &sequences.cuQ),
          {check.cuK, &sequences.cuK},
          {check.kvLen, &sequences.kvLen},
          {check.blockTable, &sequences.blockTable}}) {
      if (!argument)
        continue;
      llvm::Expected<Tensor> tensor = read(*argument);
      if (!tensor)
        return tensor.takeError();
      *numbers = Numbers(manifest.arguments[*argument].name, *tensor);
    }
    llvm::Error error = checkOffsets(sequences.cuQ, limits.qRows);
    if (!error)
      error = checkOffsets(sequences.cuK, limits.kRows);
    if (!error)
      error = checkLengths(sequences);
    if (!error)
      error = checkPages(sequences);
    if (error)
      return llvm::createStringError("'" + manifest.entry +
                                     "': " + llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}
