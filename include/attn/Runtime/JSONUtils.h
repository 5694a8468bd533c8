//===- JSONUtils.h - Parsing JSON that nobody vouches for -------*- C++ -*-===//

#ifndef ATTN_RUNTIME_JSONUTILS_H
#define ATTN_RUNTIME_JSONUTILS_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace attn {

/// llvm::json::parse, with a bound on the nesting: LLVM's parser recurses, so
/// that a file of opening brackets would overflow the stack.
llvm::Expected<llvm::json::Value> parseUntrustedJSON(llvm::StringRef text);

} // namespace attn

#endif // ATTN_RUNTIME_JSONUTILS_H
