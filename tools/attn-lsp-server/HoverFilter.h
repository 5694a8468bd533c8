//===- HoverFilter.h - Adds the reference to what a server says -*- C++ -*-===//

#ifndef ATTNC_TOOLS_LSP_SERVER_HOVERFILTER_H
#define ATTNC_TOOLS_LSP_SERVER_HOVERFILTER_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include <mutex>

namespace attn {

/// Sees the messages between an editor and MLIR's language server, which knows
/// nothing of what the reference says, and adds that to what a hover shows.
class HoverFilter {
public:
  /// Remembers documents, and what name a hover is on.
  void seeRequest(const llvm::json::Value &message);
  /// Adds documentation to the answer of a hover. Whether it was one that there
  /// is some for.
  bool amendResponse(llvm::json::Value &message);

private:
  std::mutex mutex;
  /// By URI, as they are in the editor.
  llvm::StringMap<std::string> documents;
  /// By the number of the hover that is under way.
  llvm::StringMap<std::string> documentation;
};

} // namespace attn

#endif // ATTNC_TOOLS_LSP_SERVER_HOVERFILTER_H
