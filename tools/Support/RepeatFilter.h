//===- RepeatFilter.h - Says each diagnostic once ---------------*- C++ -*-===//

#ifndef ATTN_TOOLS_SUPPORT_REPEATFILTER_H
#define ATTN_TOOLS_SUPPORT_REPEATFILTER_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"

namespace attn {

/// Keeps what was said before from handlers that were there first: all kernels
/// of an operator, and all its variants, are refused alike.
class RepeatFilter {
public:
  explicit RepeatFilter(mlir::MLIRContext *context);

private:
  llvm::StringSet<> said;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace attn

#endif // ATTN_TOOLS_SUPPORT_REPEATFILTER_H
