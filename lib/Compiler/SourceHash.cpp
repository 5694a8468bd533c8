//===- SourceHash.cpp - Which compiler this is ----------------------------===//
//
// A file of its own: it is compiled again whenever any source file changes.
//
//===----------------------------------------------------------------------===//

#include "SourceHash.h"
#include "attn/Compiler/Version.h"

llvm::StringRef attn::getSourceHash() { return ATTNC_SOURCE_HASH; }
