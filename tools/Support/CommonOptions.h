//===- CommonOptions.h - Options of tools that run an operator --*- C++ -*-===//

#ifndef ATTN_TOOLS_SUPPORT_COMMONOPTIONS_H
#define ATTN_TOOLS_SUPPORT_COMMONOPTIONS_H

#include "Arguments.h"
#include "llvm/Support/CommandLine.h"

namespace attn {

/// What a tool runs, where, and on which inputs.
class CommonOptions {
public:
  explicit CommonOptions(llvm::cl::OptionCategory &category)
      : inputFile(llvm::cl::Positional, llvm::cl::Required,
                  llvm::cl::desc("FILE.mlir"), llvm::cl::cat(category)),
        target("target",
               llvm::cl::desc("cpu, sm_80, sm_90a, or native: the GPU if there "
                              "is one, else the CPU (default native)"),
               llvm::cl::init("native"), llvm::cl::cat(category)),
        inputs("inputs", llvm::cl::CommaSeparated,
               llvm::cl::desc("One .npy a non-output argument, or one "
                              ".safetensors whose names are the arguments' "
                              "attn.name"),
               llvm::cl::value_desc("FILE,..."), llvm::cl::cat(category)),
        shapes("shapes", llvm::cl::CommaSeparated,
               llvm::cl::desc("Random normal inputs of these sizes, one a "
                              "non-output argument, such as 2x16x1024x64,..."),
               llvm::cl::value_desc("SHAPE,..."), llvm::cl::cat(category)),
        scalars("scalar", llvm::cl::desc("Value of a scalar argument"),
                llvm::cl::value_desc("name=value"), llvm::cl::cat(category)) {}

  ArgumentSources getSources(uint64_t seed) {
    return {inputs, shapes, seed, scalars};
  }

  llvm::cl::opt<std::string> inputFile, target;

private:
  llvm::cl::list<std::string> inputs, shapes, scalars;
};

} // namespace attn

#endif // ATTN_TOOLS_SUPPORT_COMMONOPTIONS_H
