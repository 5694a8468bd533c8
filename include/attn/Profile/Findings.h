//===- Findings.h - What a profile means ------------------------*- C++ -*-===//

#ifndef ATTN_PROFILE_FINDINGS_H
#define ATTN_PROFILE_FINDINGS_H

#include "attn/Profile/Summary.h"

namespace attn {

/// A true sentence about a region, which its data brought about.
struct Finding {
  /// FindingRule::name.
  llvm::StringRef rule;
  std::string text;
  /// What a call would save without it, at most, where that can be told.
  std::optional<double> costUs = std::nullopt;
  /// The same in bytes moved, where how long they take can't be told.
  std::optional<int64_t> costBytes = std::nullopt;
  /// Whether a program pays the cost once, however many calls and layers.
  bool isOnce = false;
};

/// What a rule looks at.
struct RuleInput {
  const ProfileEnvironment &environment;
  const RegionProfile &region;
  const RegionSummary &summary;
};

struct FindingRule {
  /// "hidden-copy"
  llvm::StringLiteral name;
  /// One line on when it fires.
  llvm::StringLiteral summary;
  void (*check)(const RuleInput &input, std::vector<Finding> &findings);
};

/// All rules, in the order in which they are shown.
llvm::ArrayRef<FindingRule> getFindingRules();

std::vector<Finding> explain(const ProfileEnvironment &environment,
                             const RegionProfile &region);

/// The finding, with its cost in a model of `layers` layers if that is not 0.
std::string format(const Finding &finding, int64_t layers);

/// "1.20 ms", three digits in the unit that fits.
std::string formatDuration(double microseconds);

/// "34.4 G", the same without a unit.
std::string formatFlops(int64_t flops);

} // namespace attn

#endif // ATTN_PROFILE_FINDINGS_H
