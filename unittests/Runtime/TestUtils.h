//===- TestUtils.h - Shared by the runtime's tests --------------*- C++ -*-===//

#ifndef ATTN_UNITTESTS_RUNTIME_TESTUTILS_H
#define ATTN_UNITTESTS_RUNTIME_TESTUTILS_H

#include "llvm/Support/Error.h"
#include "gtest/gtest.h"
#include <random>

namespace attn::test {

/// The value, or a test failure and an abort of the process.
template <typename T>
T get(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  ADD_FAILURE() << llvm::toString(value.takeError());
  abort();
}

/// The error's text; "" if there is none.
template <typename T>
std::string getError(llvm::Expected<T> value) {
  return value ? "" : llvm::toString(value.takeError());
}
inline std::string getError(llvm::Error error) {
  return llvm::toString(std::move(error));
}

inline testing::AssertionResult contains(llvm::StringRef text,
                                         llvm::StringRef part) {
  if (text.contains(part))
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "no \"" << part.str() << "\" in \"" << text.str() << '"';
}

/// Feeds `parse` every prefix of `text` and copies with a few bytes changed:
/// whatever comes out, it must come out.
template <typename Fn>
void fuzz(const std::string &text, unsigned mutants, Fn parse) {
  for (size_t length = 0; length < text.size(); ++length)
    parse(text.substr(0, length));
  std::mt19937_64 random(/*seed=*/1);
  for (unsigned i = 0; i < mutants; ++i) {
    std::string mutant = text;
    for (unsigned change = 0; change <= i % 3; ++change)
      mutant[random() % mutant.size()] ^= char(1u << (random() % 8));
    parse(mutant);
  }
}

} // namespace attn::test

#endif // ATTN_UNITTESTS_RUNTIME_TESTUTILS_H
