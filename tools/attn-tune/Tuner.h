//===- Tuner.h - Compiles, checks and times schedules -----------*- C++ -*-===//

#ifndef ATTN_TOOLS_ATTNTUNE_TUNER_H
#define ATTN_TOOLS_ATTNTUNE_TUNER_H

#include "../Support/Verifier.h"
#include "attn/Compiler/LoadedProgram.h"
#include "attn/Target/ScheduleTable.h"

namespace attn {

/// Microseconds; half of the samples lie between the quartiles.
struct Spread {
  double median = 0, lowerQuartile = 0, upperQuartile = 0;
  int64_t samples = 0;

  static Spread of(std::vector<double> samples);
};

/// What was found out about one schedule.
struct TuneResult {
  mlir::attn::ScheduleAttr schedule;
  /// Why it can't be used; empty if it can.
  std::string refusal;
  /// A short look at each candidate, one after the other.
  std::optional<Spread> screening;
  /// Of the finalists, in turns.
  std::optional<Spread> time;
  /// Median of the multiprocessors' clock in MHz, read after each turn.
  std::optional<int64_t> clockMHz;
  std::optional<KernelResources> resources;
  /// Relative Frobenius norm against float64.
  std::optional<double> error;
};

struct TuneOptions {
  std::string entry;
  std::string target;
  /// Candidates that are timed against each other after the screening.
  int64_t finalists = 6;
  /// Each finalist runs once a round for `repeat` forwards.
  int64_t rounds = 10;
  int64_t repeat = 10;
};

/// Tries schedules of the one attn.attention of a module, all on the same
/// arguments.
class Tuner {
public:
  /// Computes the float64 reference, which takes seconds. What is passed must
  /// outlive the tuner.
  static llvm::Expected<std::unique_ptr<Tuner>>
  create(mlir::attn::AttentionOp op, llvm::ArrayRef<Tensor> arguments,
         Device &device, const TuneOptions &options);

  /// Says what is being done.
  std::function<void(const llvm::Twine &)> progress = [](const llvm::Twine &) {
  };

  /// One result a candidate, in order. The first candidate is what the others
  /// are compared with; an error if it fails.
  llvm::Expected<std::vector<TuneResult>>
  tune(llvm::ArrayRef<mlir::attn::ScheduleAttr> candidates);

private:
  /// A candidate that is compiled and loaded.
  struct Loaded {
    std::unique_ptr<LoadedProgram> program;
    std::unique_ptr<Invocation> invocation;
  };

  Tuner(mlir::attn::AttentionOp op, llvm::ArrayRef<Tensor> arguments,
        Device &device, const TuneOptions &options, Verifier verifier)
      : op(op), arguments(arguments), device(device), options(options),
        verifier(std::move(verifier)) {}

  llvm::Error load(mlir::attn::ScheduleAttr schedule, Loaded &loaded);
  llvm::Error runOnce(Invocation &invocation);
  llvm::Error check(TuneResult &result);
  llvm::Error compareWithFirst(const Manifest &manifest);
  llvm::Error bind(Loaded &loaded);
  llvm::Expected<std::vector<double>> time(Invocation &invocation,
                                           int64_t repeat);
  llvm::Error screen(TuneResult &result, Loaded &loaded);
  llvm::Error timeFinalists(llvm::ArrayRef<TuneResult *> results,
                            llvm::ArrayRef<Loaded *> loaded);

  mlir::attn::AttentionOp op;
  llvm::ArrayRef<Tensor> arguments;
  Device &device;
  const TuneOptions &options;
  Verifier verifier;
  /// The outputs of the first candidate.
  std::vector<Tensor> firstOutputs;
};

} // namespace attn

#endif // ATTN_TOOLS_ATTNTUNE_TUNER_H
