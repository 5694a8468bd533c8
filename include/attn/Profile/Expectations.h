//===- Expectations.h - Guesses about a profile -----------------*- C++ -*-===//

#ifndef ATTN_PROFILE_EXPECTATIONS_H
#define ATTN_PROFILE_EXPECTATIONS_H

#include "attn/Profile/Summary.h"

namespace attn {

/// `time<120us`, or `fused:time<120us` for one region only.
struct Expectation {
  enum class Comparison { Equal, Less, LessEqual, Greater, GreaterEqual };

  /// As it was written.
  std::string text;
  /// Empty: every region.
  std::string region;
  std::string key;
  Comparison comparison = Comparison::Equal;
  /// Of a key that is a number, in its base unit.
  double number = 0;
  /// Of a key that is a word.
  std::string word;
};

/// Parses guesses separated by commas. Errors say which one is wrong and what
/// is known.
llvm::Expected<std::vector<Expectation>>
parseExpectations(llvm::StringRef text);

struct CheckedExpectation {
  const Expectation *expectation;
  bool isRight;
  /// "94.0 us", or why it isn't known.
  std::string measured;
};

/// Those that concern the region, in order. What was not measured is wrong: a
/// check must not pass because nothing was seen.
std::vector<CheckedExpectation>
checkExpectations(llvm::ArrayRef<Expectation> expectations,
                  const RegionProfile &region, const RegionSummary &summary);

/// Those about regions that aren't there: a variant that didn't run. They are
/// wrong.
std::vector<const Expectation *>
findNotRun(llvm::ArrayRef<Expectation> expectations,
           llvm::ArrayRef<std::string> regions);

/// An expectation that names a region that is not there is an error.
llvm::Error checkRegionNames(llvm::ArrayRef<Expectation> expectations,
                             llvm::ArrayRef<std::string> regions);

} // namespace attn

#endif // ATTN_PROFILE_EXPECTATIONS_H
