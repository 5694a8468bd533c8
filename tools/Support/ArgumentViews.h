//===- ArgumentViews.h - The arguments that an entry looks at ---*- C++ -*-===//

#ifndef ATTN_TOOLS_SUPPORT_ARGUMENTVIEWS_H
#define ATTN_TOOLS_SUPPORT_ARGUMENTVIEWS_H

#include "attn/Runtime/Tensor.h"
#include "mlir/IR/Value.h"

namespace attn {

/// The argument that `value` is, or a view of it: its heads split off the last
/// dimension, its dimensions in another order. Fails for other values.
llvm::Expected<Tensor> getArgumentView(mlir::Value value,
                                       llvm::ArrayRef<Tensor> arguments);

} // namespace attn

#endif // ATTN_TOOLS_SUPPORT_ARGUMENTVIEWS_H
