//===- Documentation.h - What the reference says of a name ------*- C++ -*-===//

#ifndef ATTNC_TOOLS_LSP_SERVER_DOCUMENTATION_H
#define ATTNC_TOOLS_LSP_SERVER_DOCUMENTATION_H

#include "llvm/ADT/StringRef.h"

namespace attn {

/// The section of docs/Reference, as Markdown, on an operation
/// ("attn.attention"), attribute or type ("attn.schedule") or pass
/// ("attn-select-schedule"). Empty if there is none.
llvm::StringRef getDocumentation(llvm::StringRef name);

} // namespace attn

#endif // ATTNC_TOOLS_LSP_SERVER_DOCUMENTATION_H
