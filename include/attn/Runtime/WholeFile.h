//===- WholeFile.h - Files that are there whole or not at all ---*- C++ -*-===//

#ifndef ATTN_RUNTIME_WHOLEFILE_H
#define ATTN_RUNTIME_WHOLEFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace attn {

/// Writes a new file beside `path` and renames it, or writes into what is there
/// and no file, such as a pipe; "-" is the standard output. A full disk is an
/// error, which names the path; what was there before is then still there.
llvm::Error writeWholeFile(llvm::StringRef path,
                           llvm::function_ref<void(llvm::raw_ostream &)> write);

} // namespace attn

#endif // ATTN_RUNTIME_WHOLEFILE_H
