//===- Generator.h - Random attention operators as text ---------*- C++ -*-===//

#ifndef ATTN_TOOLS_ATTNFUZZ_GENERATOR_H
#define ATTN_TOOLS_ATTNFUZZ_GENERATOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <random>
#include <string>

namespace attn {

/// Reproducible randomness: the standard fixes the engine, but not the
/// distributions, so they are made here.
class Random {
public:
  explicit Random(uint64_t seed) : engine(seed) {}

  /// In [0, bound).
  uint64_t below(uint64_t bound) { return engine() % bound; }
  bool percent(unsigned chance) { return below(100) < chance; }
  template <typename T>
  const T &pick(llvm::ArrayRef<T> values) {
    return values[below(values.size())];
  }
  llvm::StringRef pick(std::initializer_list<llvm::StringRef> values) {
    return values.begin()[below(values.size())];
  }
  int64_t pick(std::initializer_list<int64_t> values) {
    return values.begin()[below(values.size())];
  }

private:
  std::mt19937_64 engine;
};

/// A module with one function around one valid attn.attention.
std::string generateAttention(Random &random);

/// The text with a few small changes, most of which make it invalid.
std::string mutate(llvm::StringRef text, Random &random);

} // namespace attn

#endif // ATTN_TOOLS_ATTNFUZZ_GENERATOR_H
