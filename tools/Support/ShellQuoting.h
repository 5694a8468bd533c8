//===- ShellQuoting.h - Command lines to type again -------------*- C++ -*-===//

#ifndef ATTN_TOOLS_SUPPORT_SHELLQUOTING_H
#define ATTN_TOOLS_SUPPORT_SHELLQUOTING_H

#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace attn {

/// The arguments as a shell has to be given them.
std::string joinForShell(llvm::ArrayRef<const char *> arguments);

} // namespace attn

#endif // ATTN_TOOLS_SUPPORT_SHELLQUOTING_H
