//===- Explain.h - Why a backend is chosen, or can't be ---------*- C++ -*-===//

#ifndef ATTN_COMPILER_EXPLAIN_H
#define ATTN_COMPILER_EXPLAIN_H

#include "attn/Compiler/CompiledKernel.h"
#include "attn/Runtime/Tensor.h"

namespace attn {

/// What is said of one backend.
struct BackendVerdict {
  enum class Status {
    /// What a kernel compiled with the same options is.
    Chosen,
    /// It could be named.
    Available,
    /// To name it is an error.
    Unserved
  };

  Backend backend;
  Status status;
  /// A sentence. Of Unserved, every condition that isn't met.
  std::string reason;
};

struct Explanation {
  std::string entry, target;
  /// "NVIDIA H200"; empty where there is no such device.
  std::string device;
  /// The backend that was asked for, and where: "auto", "backend 'cudnn'".
  std::string asked;
  /// One for each backend, the chosen one first. None is chosen where the one
  /// that was asked for can't serve.
  std::vector<BackendVerdict> verdicts;
};

/// What is known of the arguments: the inputs, in the order of the entry, of
/// which no data is read, or nothing. What depends on their sizes is decided
/// for these, or said to be open.
struct ExplainArguments {
  std::vector<Tensor> inputs;
};

/// Asks every backend whether it can serve the only attention of `module`, with
/// the code that compiling and launching asks. Needs no GPU.
llvm::Expected<Explanation> explain(mlir::ModuleOp module,
                                    const KernelOptions &options,
                                    const ExplainArguments &arguments = {});
llvm::Expected<Explanation> explain(llvm::StringRef text,
                                    const KernelOptions &options = {},
                                    const ExplainArguments &arguments = {});
llvm::Expected<Explanation> explain(const AttentionSpec &spec,
                                    const KernelOptions &options = {},
                                    const ExplainArguments &arguments = {});

/// A line for each backend.
void printExplanation(llvm::raw_ostream &os, const Explanation &explanation);
void writeExplanation(llvm::raw_ostream &os, const Explanation &explanation);

} // namespace attn

#endif // ATTN_COMPILER_EXPLAIN_H
