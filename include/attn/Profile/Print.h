//===- Print.h - A profile, shown and judged --------------------*- C++ -*-===//

#ifndef ATTN_PROFILE_PRINT_H
#define ATTN_PROFILE_PRINT_H

#include "attn/Profile/Expectations.h"
#include "attn/Profile/Profile.h"

namespace attn {

struct PrintOptions {
  llvm::ArrayRef<Expectation> expectations;
  /// Of a model whose every layer makes one call; 0: none.
  int64_t layers = 0;
  /// The region that the others are compared with; empty: the first.
  std::string baseline;
};

/// writeProfile, with the guesses and the comparison that the options ask for.
void writeProfile(llvm::raw_ostream &os, const ProfileFile &file,
                  const PrintOptions &options);

/// Tables, findings and guesses of all regions. Returns whether all guesses
/// were right.
bool printProfile(llvm::raw_ostream &os, const ProfileFile &file,
                  const PrintOptions &options);

} // namespace attn

#endif // ATTN_PROFILE_PRINT_H
