//===- HostWork.cpp - What the host does beside launching -----------------===//

#include "attn/Runtime/HostWork.h"
#include <atomic>

using namespace attn;

static std::atomic<HostWorkObserver *> current = nullptr;

HostWorkObserver::~HostWorkObserver() = default;

bool attn::setHostWorkObserver(HostWorkObserver *observer) {
  HostWorkObserver *none = nullptr;
  if (observer)
    return current.compare_exchange_strong(none, observer);
  current = nullptr;
  return true;
}

HostWorkObserver *attn::getHostWorkObserver() { return current; }

HostWorkTimer::HostWorkTimer(HostWork work) : work(work), observer(current) {
  // The clock is read only for somebody: a look-up takes less than 1 us.
  if (observer)
    start = std::chrono::steady_clock::now();
}

void HostWorkTimer::finish(llvm::StringRef detail) {
  if (observer)
    observer->onHostWork(work, detail, start, std::chrono::steady_clock::now());
}
