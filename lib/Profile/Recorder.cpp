//===- Recorder.cpp - Gathers the records of a region ---------------------===//

#include "Recorder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Threading.h"

using namespace attn;

int64_t Recorder::toNs(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             time.time_since_epoch())
      .count();
}

static int64_t readSteadyClock() {
  return Recorder::toNs(std::chrono::steady_clock::now());
}

Recorder::Recorder() : clock(readSteadyClock) {}

unsigned Recorder::getName(llvm::StringRef name) {
  auto [entry, isNew] = names.try_emplace(name, region.names.size());
  if (isNew)
    region.names.push_back(name.str());
  return entry->second;
}

unsigned Recorder::getLaunch(const LaunchConfig &launch) {
  auto found = llvm::find(region.launches, launch);
  const unsigned index = found - region.launches.begin();
  if (found == region.launches.end())
    region.launches.push_back(launch);
  return index;
}

void Recorder::add(HostActivity activity, llvm::StringRef name, int64_t startNs,
                   int64_t endNs, int64_t correlation) {
  add(activity, name, startNs, endNs, correlation, llvm::get_threadid());
}

void Recorder::add(HostActivity activity, llvm::StringRef name, int64_t startNs,
                   int64_t endNs, int64_t correlation, int64_t thread) {
  std::lock_guard<std::mutex> lock(mutex);
  region.host.push_back({activity, getName(name), startNs,
                         std::max(startNs, endNs), thread, correlation});
}

void Recorder::add(DeviceRecord record, llvm::StringRef name,
                   const std::optional<LaunchConfig> &launch) {
  std::lock_guard<std::mutex> lock(mutex);
  record.name = getName(name);
  if (launch)
    record.launch = getLaunch(*launch);
  record.endNs = std::max(record.startNs, record.endNs);
  region.device.push_back(record);
}

void Recorder::addPhase(Phase phase) {
  std::lock_guard<std::mutex> lock(mutex);
  region.phases.push_back(std::move(phase));
}

void Recorder::addNote(const llvm::Twine &note) {
  std::lock_guard<std::mutex> lock(mutex);
  std::string text = note.str();
  if (!llvm::is_contained(region.notes, text))
    region.notes.push_back(std::move(text));
}

void Recorder::setPath(llvm::StringRef kernel, llvm::StringRef path,
                       llvm::StringRef source) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = llvm::find_if(region.facts, [&](const KernelFacts &facts) {
    return facts.name == kernel;
  });
  KernelFacts &facts =
      found == region.facts.end() ? region.facts.emplace_back() : *found;
  facts.name = kernel.str();
  facts.path = path.str();
  facts.pathSource = source.str();
}

bool Recorder::knowsPath(llvm::StringRef kernel) {
  std::lock_guard<std::mutex> lock(mutex);
  const KernelFacts *facts = region.getFacts(kernel);
  return facts && !facts->path.empty();
}

int64_t Recorder::getNewCorrelation() {
  std::lock_guard<std::mutex> lock(mutex);
  return ++lastCorrelation;
}

RegionProfile Recorder::take() {
  std::lock_guard<std::mutex> lock(mutex);
  names.clear();
  return std::exchange(region, RegionProfile());
}
