//===- Cupti.h - Records of everything that runs on a GPU -------*- C++ -*-===//

#ifndef ATTN_LIB_PROFILE_CUPTI_H
#define ATTN_LIB_PROFILE_CUPTI_H

#include "Recorder.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace attn {

/// Gives a recorder what CUPTI sees of this process from its creation on:
/// kernels, copies and memsets with the calls that launched them, and the
/// matrix paths of modules that are loaded meanwhile. A process has one at
/// most, as CUPTI has one set of callbacks.
class CuptiCollector {
public:
  /// Sets the recorder's clock to CUPTI's. The error says what is missing: the
  /// library, a permission, or that another profiler is at work.
  static llvm::Expected<std::unique_ptr<CuptiCollector>>
  create(Recorder &recorder);
  ~CuptiCollector();

  /// Hands over the records of work that is complete.
  llvm::Error flush();

  /// What CUPTI's callbacks see.
  struct State;

private:
  explicit CuptiCollector(std::unique_ptr<State> state);

  std::unique_ptr<State> state;
};

} // namespace attn

#endif // ATTN_LIB_PROFILE_CUPTI_H
