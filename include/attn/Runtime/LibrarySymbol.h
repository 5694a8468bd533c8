//===- LibrarySymbol.h - Functions of optional libraries --------*- C++ -*-===//

#ifndef ATTN_RUNTIME_LIBRARYSYMBOL_H
#define ATTN_RUNTIME_LIBRARYSYMBOL_H

#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/Error.h"

namespace attn {

/// Points `function` to `symbol` of a library that programs open when they run.
/// `name` is what errors call the library, "CUPTI".
template <typename Function>
llvm::Error loadSymbol(llvm::sys::DynamicLibrary &library, llvm::StringRef name,
                       const char *symbol, Function *&function) {
  function = reinterpret_cast<Function *>(library.getAddressOfSymbol(symbol));
  if (function)
    return llvm::Error::success();
  return llvm::createStringError(name + " is too old: it has no " + symbol);
}

} // namespace attn

#endif // ATTN_RUNTIME_LIBRARYSYMBOL_H
