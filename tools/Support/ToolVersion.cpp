//===- ToolVersion.cpp - What tools say with --version --------------------===//
//
// A source of every tool, since tools of MLIR's drivers have no main() that
// could say so before the command line is read.
//
//===----------------------------------------------------------------------===//

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

[[maybe_unused]] static const bool isSet = [] {
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "attnc " ATTNC_VERSION ", LLVM " LLVM_VERSION_STRING "\n";
  });
  return true;
}();
