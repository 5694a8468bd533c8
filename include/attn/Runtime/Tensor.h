//===- Tensor.h - Strided arrays in host memory -----------------*- C++ -*-===//

#ifndef ATTN_RUNTIME_TENSOR_H
#define ATTN_RUNTIME_TENSOR_H

#include "attn/Runtime/DType.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace attn {

/// A strided array in host memory. Copies of a Tensor share the memory, which
/// is either owned (freed with the last copy) or borrowed from the caller.
class Tensor {
public:
  /// Owned, row-major, 64-byte aligned, zeroed. Fails where the size overflows
  /// or there is no memory.
  static llvm::Expected<Tensor> allocate(DType dtype,
                                         llvm::ArrayRef<int64_t> shape);

  /// Owned, holding a copy of the row-major `bytes`, as many as the shape
  /// takes; those of i1 become 0 or 1.
  static llvm::Expected<Tensor>
  copyOf(DType dtype, llvm::ArrayRef<int64_t> shape, llvm::StringRef bytes);

  /// Borrowed. `strides` are in elements.
  static Tensor borrow(DType dtype, llvm::ArrayRef<int64_t> shape,
                       llvm::ArrayRef<int64_t> strides, void *data);

  /// A rank-0 tensor holding `value` rounded to `dtype`.
  static llvm::Expected<Tensor> scalar(DType dtype, double value);

  DType getDType() const { return dtype; }
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  /// In elements.
  llvm::ArrayRef<int64_t> getStrides() const { return strides; }
  int64_t getRank() const { return shape.size(); }
  void *getData() const { return data.get(); }

  int64_t getNumElements() const;
  /// Bytes from the first to the last element, both included; 0 if empty.
  /// Strides are taken as nonnegative.
  int64_t getFootprintBytes() const;
  /// Dimensions of size 1 don't count.
  bool isRowMajor() const;

  /// The same memory under other dimensions and strides.
  Tensor withView(llvm::ArrayRef<int64_t> shape,
                  llvm::ArrayRef<int64_t> strides) const;

  /// Itself if row-major, else a row-major copy.
  llvm::Expected<Tensor> toRowMajor() const;

  /// Calls `fn` with the address of each element, last dimension fastest.
  void forEachElement(llvm::function_ref<void(void *)> fn) const;

  /// All elements, last dimension fastest.
  std::vector<double> toDoubles() const;

  /// "2x16x1024x64xbf16"
  std::string getTypeString() const;

private:
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 4> shape;
  llvm::SmallVector<int64_t, 4> strides;
  std::shared_ptr<void> data;
};

/// Strides, in elements, of a row-major array.
llvm::SmallVector<int64_t, 4> getRowMajorStrides(llvm::ArrayRef<int64_t> shape);

/// Bytes of a dense array, or nothing where that overflows 2^63 - 1 or a
/// dimension is negative.
std::optional<int64_t> getDenseBytes(DType dtype,
                                     llvm::ArrayRef<int64_t> shape);

} // namespace attn

#endif // ATTN_RUNTIME_TENSOR_H
