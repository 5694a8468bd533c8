//===- BenchRunner.h - Times backends against each other --------*- C++ -*-===//

#ifndef ATTN_TOOLS_ATTNBENCH_BENCHRUNNER_H
#define ATTN_TOOLS_ATTNBENCH_BENCHRUNNER_H

#include "BenchFile.h"
#include "Grid.h"
#include "attn/Compiler/Backend.h"
#include "attn/Runtime/Device.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace attn {

struct BenchOptions {
  std::string target;
  std::vector<Backend> backends;
  int64_t rounds;
  bool isWarm;
  /// Check results against float64.
  bool isVerified;
};

/// Runs all backends on the same arguments, one after the other in every round,
/// so that none has the device cooler or more to itself than another.
class BenchRunner {
public:
  BenchRunner(Device &device, const BenchOptions &options);

  /// What a backend refuses is in its result; the error is of the case or the
  /// device. `show` is told what is being done.
  llvm::Expected<BenchCase> run(const GridCase &gridCase,
                                llvm::function_ref<void(llvm::StringRef)> show);

private:
  struct Contestant;

  llvm::Error prepare(const GridCase &gridCase, mlir::ModuleOp module,
                      std::vector<Contestant> &contestants,
                      llvm::function_ref<void(llvm::StringRef)> show);
  llvm::Error timeInTurns(llvm::MutableArrayRef<Contestant> contestants,
                          llvm::function_ref<void(llvm::StringRef)> show);

  Device &device;
  const BenchOptions &options;
  mlir::MLIRContext context;
};

} // namespace attn

#endif // ATTN_TOOLS_ATTNBENCH_BENCHRUNNER_H
