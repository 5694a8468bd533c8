//===- ShellQuoting.cpp - Command lines to type again ---------------------===//

#include "ShellQuoting.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace attn;

static bool isPlain(char c) {
  return llvm::isAlnum(c) || llvm::StringRef("-_=+,./:@%").contains(c);
}

/// Single quotes protect all but themselves.
static std::string quote(llvm::StringRef argument) {
  if (!argument.empty() && llvm::all_of(argument, isPlain))
    return argument.str();
  std::string quoted = "'";
  for (char c : argument)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string attn::joinForShell(llvm::ArrayRef<const char *> arguments) {
  return llvm::join(llvm::map_range(arguments, quote), " ");
}
