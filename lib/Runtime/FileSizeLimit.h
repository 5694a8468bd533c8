//===- FileSizeLimit.h - A limit of file sizes as an error ------*- C++ -*-===//

#ifndef ATTN_LIB_RUNTIME_FILESIZELIMIT_H
#define ATTN_LIB_RUNTIME_FILESIZELIMIT_H

#include <csignal>
#include <ctime>

namespace attn {

/// While it lives, writing past the limit of file sizes (ulimit -f) is the
/// error EFBIG on this thread, not a signal that ends the program. What the
/// program does with such signals elsewhere stays its own business.
class FileSizeLimitIsError {
public:
  FileSizeLimitIsError() {
    sigset_t pending;
    sigemptyset(&signals);
    sigaddset(&signals, SIGXFSZ);
    sigpending(&pending);
    wasPending = sigismember(&pending, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
  }
  ~FileSizeLimitIsError() {
    // One that came meanwhile would be delivered now.
    const timespec now = {};
    if (!wasPending)
      sigtimedwait(&signals, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  FileSizeLimitIsError(const FileSizeLimitIsError &) = delete;

private:
  sigset_t signals, before;
  bool wasPending;
};

} // namespace attn

#endif // ATTN_LIB_RUNTIME_FILESIZELIMIT_H
