//===- Ptxas.h - Assembling PTX and reading what it says --------*- C++ -*-===//

#ifndef ATTN_RUNTIME_PTXAS_H
#define ATTN_RUNTIME_PTXAS_H

#include "attn/Runtime/Occupancy.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace attn {

struct Kernel;

/// The assembler: $ATTNC_PTXAS, or `ptxas` in $CUDA_HOME/bin, $CUDA_PATH/bin,
/// $PATH, /usr/local/cuda/bin. The error lists where it was looked for.
llvm::Expected<std::string> findPtxas();

/// A "Potential Performance Loss", as ptxas words it: "(C7510) wgmma.mma_async
/// instructions are serialized due to ...".
struct PtxasMessage {
  /// Empty if ptxas doesn't name it.
  std::string kernel;
  std::string text;
};

/// What `ptxas -v` prints.
struct PtxasLog {
  /// In the order of the PTX; without dynamic shared memory and occupancy.
  std::vector<KernelResources> kernels;
  std::vector<PtxasMessage> performanceLosses;
};

struct PtxasResult : PtxasLog {
  std::string cubin;
  /// As it was printed.
  std::string log;
};

/// Assembles `ptx` for `arch` ("sm_80"). The error holds ptxas's messages.
llvm::Expected<PtxasResult> runPtxas(llvm::StringRef ptx, llvm::StringRef arch);

/// Reads the output of `ptxas -v`.
PtxasLog parsePtxasLog(llvm::StringRef log);

/// Adds dynamic shared memory and theoretical occupancy on `arch` to those of
/// `resources` that are among `kernels`.
void completeResources(llvm::MutableArrayRef<KernelResources> resources,
                       llvm::ArrayRef<Kernel> kernels, llvm::StringRef arch);

} // namespace attn

#endif // ATTN_RUNTIME_PTXAS_H
