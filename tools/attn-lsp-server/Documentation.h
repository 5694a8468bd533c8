//===- Documentation.h - What the reference says of a name ------*- C++ -*-===//

#ifndef ATTNC_TOOLS_LSP_SERVER_DOCUMENTATION_H
#define ATTNC_TOOLS_LSP_SERVER_DOCUMENTATION_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace attn {

/// The section of docs/Reference or of MLIR's, as Markdown, on an operation
/// ("attn.attention"), attribute or type ("attn.schedule") or pass
/// ("attn-select-schedule"); what that of attn.attention says of a word of its
/// syntax ("mask_mod"); else the line that attn-opt's help has on a pass or
/// pipeline. Empty if there is none.
std::string getDocumentation(llvm::StringRef name);

} // namespace attn

#endif // ATTNC_TOOLS_LSP_SERVER_DOCUMENTATION_H
