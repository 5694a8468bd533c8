//===- SourceHash.cpp - Which compiler this is ----------------------------===//
//
// A file of its own: it is compiled again whenever any source file changes.
//
//===----------------------------------------------------------------------===//

#include "SourceHash.h"
#include "llvm/ADT/StringRef.h"

namespace attn {
llvm::StringRef getSourceHash() { return ATTNC_SOURCE_HASH; }
} // namespace attn
