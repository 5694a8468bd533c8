//===- EventTimer.h - Times between events on a device ----------*- C++ -*-===//

#ifndef ATTN_RUNTIME_EVENTTIMER_H
#define ATTN_RUNTIME_EVENTTIMER_H

#include "attn/Runtime/Device.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace attn {

/// Microseconds that what `work` enqueues on the device's own stream takes,
/// between an event before it and one after it. Waits for both.
llvm::Expected<double> timeByEvents(Device &device,
                                    llvm::function_ref<llvm::Error()> work);

} // namespace attn

#endif // ATTN_RUNTIME_EVENTTIMER_H
