//===- Tensor.cpp - Strided arrays in host memory -------------------------===//

#include "attn/Runtime/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <cstring>

using namespace attn;

/// A cache line, and more than any vector load or TMA box asks for.
static constexpr size_t kAlignment = 64;

llvm::SmallVector<int64_t, 4>
attn::getRowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 4> strides(shape.size(), 1);
  for (int64_t i = int64_t(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * std::max<int64_t>(shape[i + 1], 1);
  return strides;
}

std::optional<int64_t> attn::getDenseBytes(DType dtype,
                                           llvm::ArrayRef<int64_t> shape) {
  // Sizes of 0 are taken as 1 for the check: the strides must not overflow.
  int64_t bytes = getByteSize(dtype);
  for (int64_t size : shape)
    if (size < 0 || llvm::MulOverflow(bytes, std::max<int64_t>(size, 1), bytes))
      return std::nullopt;
  return llvm::is_contained(shape, 0) ? 0 : bytes;
}

llvm::Expected<Tensor> Tensor::allocate(DType dtype,
                                        llvm::ArrayRef<int64_t> shape) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape.assign(shape.begin(), shape.end());
  const std::optional<int64_t> bytes = getDenseBytes(dtype, shape);
  if (!bytes)
    return llvm::createStringError("the size of a " + tensor.getTypeString() +
                                   " array overflows 64 bits");
  tensor.strides = getRowMajorStrides(shape);
  const size_t size = llvm::alignTo(std::max<uint64_t>(*bytes, 1), kAlignment);
  void *memory = std::aligned_alloc(kAlignment, size);
  if (!memory)
    return llvm::createStringError("no memory for a " + tensor.getTypeString() +
                                   " array (" + llvm::Twine(*bytes) +
                                   " bytes)");
  std::memset(memory, 0, size);
  tensor.data = std::shared_ptr<void>(memory, std::free);
  return tensor;
}

llvm::Expected<Tensor> Tensor::copyOf(DType dtype,
                                      llvm::ArrayRef<int64_t> shape,
                                      llvm::StringRef bytes) {
  llvm::Expected<Tensor> tensor = allocate(dtype, shape);
  if (!tensor)
    return tensor;
  assert(int64_t(bytes.size()) == tensor->getFootprintBytes() && "wrong size");
  if (bytes.empty())
    return tensor;
  std::memcpy(tensor->getData(), bytes.data(), bytes.size());
  if (dtype == DType::I1)
    tensor->forEachElement([](void *element) {
      auto *byte = static_cast<uint8_t *>(element);
      *byte = *byte != 0;
    });
  return tensor;
}

Tensor Tensor::borrow(DType dtype, llvm::ArrayRef<int64_t> shape,
                      llvm::ArrayRef<int64_t> strides, void *data) {
  assert(shape.size() == strides.size() && "one stride a dimension");
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.strides.assign(strides.begin(), strides.end());
  tensor.data = std::shared_ptr<void>(data, [](void *) {});
  return tensor;
}

llvm::Expected<Tensor> Tensor::scalar(DType dtype, double value) {
  llvm::Expected<Tensor> tensor = allocate(dtype, {});
  if (tensor)
    storeFromDouble(dtype, value, tensor->getData());
  return tensor;
}

int64_t Tensor::getNumElements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t Tensor::getFootprintBytes() const {
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(shape, strides)) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  return (last + 1) * getByteSize(dtype);
}

bool Tensor::isRowMajor() const {
  const llvm::SmallVector<int64_t, 4> dense = getRowMajorStrides(shape);
  for (auto [size, stride, expected] : llvm::zip_equal(shape, strides, dense))
    if (size > 1 && stride != expected)
      return false;
  return true;
}

Tensor Tensor::withView(llvm::ArrayRef<int64_t> newShape,
                        llvm::ArrayRef<int64_t> newStrides) const {
  assert(newShape.size() == newStrides.size() && "one stride a dimension");
  Tensor view = *this;
  view.shape.assign(newShape.begin(), newShape.end());
  view.strides.assign(newStrides.begin(), newStrides.end());
  return view;
}

llvm::Expected<Tensor> Tensor::toRowMajor() const {
  if (isRowMajor())
    return *this;
  llvm::Expected<Tensor> dense = allocate(dtype, shape);
  if (!dense)
    return dense;
  const int64_t elementSize = getByteSize(dtype);
  char *dst = static_cast<char *>(dense->getData());
  forEachElement([&](void *src) {
    std::memcpy(dst, src, elementSize);
    dst += elementSize;
  });
  return dense;
}

void Tensor::forEachElement(llvm::function_ref<void(void *)> fn) const {
  if (llvm::is_contained(shape, 0))
    return;
  const int64_t elementSize = getByteSize(dtype);
  const int64_t innerSize = shape.empty() ? 1 : shape.back();
  const int64_t innerStride = strides.empty() ? 0 : strides.back();
  llvm::SmallVector<int64_t, 4> index(shape.size(), 0);
  char *row = static_cast<char *>(getData());
  while (true) {
    for (int64_t i = 0; i < innerSize; ++i)
      fn(row + i * innerStride * elementSize);
    // Step the outer dimensions like an odometer.
    int64_t dim = getRank() - 2;
    for (; dim >= 0; --dim) {
      row += strides[dim] * elementSize;
      if (++index[dim] < shape[dim])
        break;
      row -= shape[dim] * strides[dim] * elementSize;
      index[dim] = 0;
    }
    if (dim < 0)
      return;
  }
}

std::vector<double> Tensor::toDoubles() const {
  std::vector<double> values;
  values.reserve(getNumElements());
  forEachElement(
      [&](void *src) { values.push_back(loadAsDouble(dtype, src)); });
  return values;
}

std::string Tensor::getTypeString() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t size : shape)
    os << size << 'x';
  os << attn::getName(dtype);
  return text;
}
