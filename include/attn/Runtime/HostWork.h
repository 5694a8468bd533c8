//===- HostWork.h - What the host does beside launching ---------*- C++ -*-===//

#ifndef ATTN_RUNTIME_HOSTWORK_H
#define ATTN_RUNTIME_HOSTWORK_H

#include "attn/Runtime/TileWork.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <chrono>
#include <memory>

namespace attn {

struct BoundPlan;
struct TensorView;

/// Look for a compiled kernel in memory or on disk, compile one, load its
/// machine code, and evaluate a plan for tensors of given shapes and strides.
enum class HostWork { Lookup, Compile, Load, Plan };

/// What a Launcher has enqueued.
struct LaunchedForward {
  const BoundPlan &plan;
  llvm::ArrayRef<TensorView> arguments;
  /// The plan without its pre-pass: what that found out before is used again.
  bool skipsPrepass = false;
  /// Null where nothing is skipped that the plan's FLOPs count.
  std::shared_ptr<const TileMapper> tileMapper = nullptr;
};

/// Is told of each, from whatever thread does it.
class HostWorkObserver {
public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~HostWorkObserver();
  /// `detail`: for a look-up "memory hit", "disk hit" or "miss", else what was
  /// worked on.
  virtual void onHostWork(HostWork work, llvm::StringRef detail,
                          TimePoint start, TimePoint end) = 0;
  virtual void onLaunch(const LaunchedForward &forward) = 0;
};

/// From now on, in all of this process; null: nobody. False if there is one
/// already. It must outlive the work that it is told of.
bool setHostWorkObserver(HostWorkObserver *observer);
HostWorkObserver *getHostWorkObserver();

/// Tells the observer, if there is one, of the time between its making and
/// finish().
class HostWorkTimer {
public:
  explicit HostWorkTimer(HostWork work);
  void finish(llvm::StringRef detail);

private:
  const HostWork work;
  HostWorkObserver *const observer;
  HostWorkObserver::TimePoint start;
};

} // namespace attn

#endif // ATTN_RUNTIME_HOSTWORK_H
