//===- Grid.h - The cases of a benchmark ------------------------*- C++ -*-===//

#ifndef ATTN_TOOLS_ATTNBENCH_GRID_H
#define ATTN_TOOLS_ATTNBENCH_GRID_H

#include "attn/Compiler/AttentionSpec.h"

namespace attn {

/// One attention on tensors of one size.
struct GridCase {
  /// As they were written.
  std::string shape, dtype, mod;
  AttentionSpec spec;
  int64_t batch = 0, queryLength = 0, keyLength = 0;

  /// "2x16x512x64 bf16 causal"
  std::string getName() const { return shape + " " + dtype + " " + mod; }
  /// The sizes of q, k and v, as makeArguments takes them.
  std::vector<std::string> getInputShapes() const;
};

struct GridOptions {
  std::vector<std::string> shapes, dtypes, mods;
};

/// All combinations; the sizes vary the fastest. Errors say what is malformed
/// and what is known.
llvm::Expected<std::vector<GridCase>> makeGrid(const GridOptions &options);

} // namespace attn

#endif // ATTN_TOOLS_ATTNBENCH_GRID_H
