//===- Recorder.h - Gathers the records of a region -------------*- C++ -*-===//

#ifndef ATTN_LIB_PROFILE_RECORDER_H
#define ATTN_LIB_PROFILE_RECORDER_H

#include "attn/Profile/Profile.h"
#include "llvm/ADT/StringMap.h"
#include <chrono>
#include <mutex>

namespace attn {

/// Makes one RegionProfile. Safe to call from many threads.
class Recorder {
public:
  Recorder();

  /// On the clock of a new recorder.
  static int64_t toNs(std::chrono::steady_clock::time_point time);

  /// Nanoseconds of the clock that all records use.
  int64_t now() const { return clock(); }
  void setClock(int64_t (*newClock)()) { clock = newClock; }

  void add(HostActivity activity, llvm::StringRef name, int64_t startNs,
           int64_t endNs, int64_t correlation = 0);
  /// A record of another thread than this.
  void add(HostActivity activity, llvm::StringRef name, int64_t startNs,
           int64_t endNs, int64_t correlation, int64_t thread);
  /// `record.name` and `record.launch` are set here.
  void add(DeviceRecord record, llvm::StringRef name,
           const std::optional<LaunchConfig> &launch);
  void addPhase(Phase phase);
  void addNote(const llvm::Twine &note);
  void setPath(llvm::StringRef kernel, llvm::StringRef path,
               llvm::StringRef source);

  bool knowsPath(llvm::StringRef kernel);

  int64_t getNewCorrelation();

  /// What was recorded since the last call.
  RegionProfile take();

private:
  unsigned getName(llvm::StringRef name);
  unsigned getLaunch(const LaunchConfig &launch);

  int64_t (*clock)();
  std::mutex mutex;
  RegionProfile region;
  llvm::StringMap<unsigned> names;
  int64_t lastCorrelation = 0;
};

} // namespace attn

#endif // ATTN_LIB_PROFILE_RECORDER_H
