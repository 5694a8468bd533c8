//===- JSONUtils.cpp - Parsing JSON that nobody vouches for ---------------===//

#include "attn/Runtime/JSONUtils.h"

using namespace attn;

/// Far deeper than any expression of a manifest.
static constexpr int kMaxDepth = 256;

/// Whether brackets outside of strings nest deeper than kMaxDepth.
static bool nestsTooDeep(llvm::StringRef text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
      continue;
    }
    if (c == '"')
      inString = true;
    else if (c == '[' || c == '{')
      ++depth;
    else if (c == ']' || c == '}')
      --depth;
    if (depth > kMaxDepth)
      return true;
  }
  return false;
}

llvm::Expected<llvm::json::Value>
attn::parseUntrustedJSON(llvm::StringRef text) {
  if (nestsTooDeep(text))
    return llvm::createStringError("JSON nested deeper than " +
                                   llvm::Twine(kMaxDepth) + " levels");
  return llvm::json::parse(text);
}
