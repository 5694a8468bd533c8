//===- Kernel.h - Runs tile kernels in the test's process -------*- C++ -*-===//

#ifndef ATTN_UNITTESTS_CPU_KERNEL_H
#define ATTN_UNITTESTS_CPU_KERNEL_H

#include "attn/Compiler/CpuJit.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace attn::test {

/// "f32", "f16" or "bf16" data with the values that it stands for.
class Buffer {
public:
  /// `count` elements, all NaN.
  Buffer(llvm::StringRef type, int64_t count);

  void *data() { return bytes.data(); }
  double get(int64_t index) const;
  std::vector<double> getAll() const;
  /// Rounds to nearest, ties to even.
  void set(int64_t index, double value);
  /// Standard normal values.
  void randomize(unsigned seed);

private:
  std::string type;
  int64_t count;
  std::vector<char> bytes;
};

/// The parameters of a launch, as the CPU's kernel ABI wants them.
class Params {
public:
  /// A memref: its dynamic sizes and its dynamic strides.
  Params &addMemRef(void *data, llvm::ArrayRef<int32_t> sizes,
                    llvm::ArrayRef<int64_t> strides);
  Params &addI32(int32_t value);
  Params &addF32(float value);
  void **get() { return pointers.data(); }

private:
  template <typename T>
  void add(T value) {
    storage.emplace_back(0);
    std::memcpy(&storage.back(), &value, sizeof(T));
    pointers.push_back(&storage.back());
  }

  std::deque<int64_t> storage;
  std::vector<void *> pointers;
};

/// A module of tile kernels, compiled.
class Kernels {
public:
  /// `vectorBits` = 0: those of the host. Aborts on errors.
  explicit Kernels(llvm::StringRef text, int64_t vectorBits = 0);

  void run(llvm::StringRef name, int32_t grid, Params &params) const;
  void runOne(llvm::StringRef name, int32_t id, Params &params) const;

private:
  std::unique_ptr<CpuJit> jit;
};

/// `text` with every `$key` replaced.
std::string
substitute(std::string text,
           llvm::ArrayRef<std::pair<std::string, std::string>> values);

} // namespace attn::test

#endif // ATTN_UNITTESTS_CPU_KERNEL_H
