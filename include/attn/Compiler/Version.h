//===- Version.h - Which compiler this is -----------------------*- C++ -*-===//

#ifndef ATTN_COMPILER_VERSION_H
#define ATTN_COMPILER_VERSION_H

#include "llvm/ADT/StringRef.h"

namespace attn {

/// A hash of the compiler's sources, which tells builds of it apart.
llvm::StringRef getSourceHash();

} // namespace attn

#endif // ATTN_COMPILER_VERSION_H
