//===- EventTimer.cpp - Times between events on a device ------------------===//

#include "attn/Runtime/EventTimer.h"

using namespace attn;

llvm::Expected<double>
attn::timeByEvents(Device &device, llvm::function_ref<llvm::Error()> work) {
  llvm::Expected<std::unique_ptr<Event>> start = device.createEvent();
  if (!start)
    return start.takeError();
  llvm::Expected<std::unique_ptr<Event>> end = device.createEvent();
  if (!end)
    return end.takeError();
  if (llvm::Error error = device.record(**start))
    return std::move(error);
  if (llvm::Error error = work())
    return std::move(error);
  if (llvm::Error error = device.record(**end))
    return std::move(error);
  if (llvm::Error error = device.synchronize())
    return std::move(error);
  return device.getElapsedMicroseconds(**start, **end);
}
