//===- Arguments.h - Tensors from files or made up --------------*- C++ -*-===//

#ifndef ATTN_TOOLS_SUPPORT_ARGUMENTS_H
#define ATTN_TOOLS_SUPPORT_ARGUMENTS_H

#include "attn/Runtime/Manifest.h"
#include "attn/Runtime/Tensor.h"

namespace attn {

/// Where the inputs come from; as on the command line.
struct ArgumentSources {
  /// One .npy an input, or one .safetensors.
  std::vector<std::string> files;
  /// "2x16x1024x64", one an input; for random values.
  std::vector<std::string> shapes;
  uint64_t seed = 0;
  /// "name=value"
  std::vector<std::string> scalars;
  /// Tensors of --shapes get no memory: only their sizes count.
  bool isWithoutData = false;
};

/// The inputs of the manifest, in order.
llvm::Expected<std::vector<Tensor>> makeInputs(const Manifest &manifest,
                                               const ArgumentSources &sources);

/// One tensor an argument of the manifest: the inputs as `sources` say, the
/// outputs of the sizes that follow from them.
llvm::Expected<std::vector<Tensor>>
makeArguments(const Manifest &manifest, const ArgumentSources &sources);

} // namespace attn

#endif // ATTN_TOOLS_SUPPORT_ARGUMENTS_H
