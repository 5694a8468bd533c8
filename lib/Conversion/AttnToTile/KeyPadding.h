//===- KeyPadding.h - Keys that a mask hides from all queries ---*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_KEYPADDING_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_KEYPADDING_H

#include "RuleReader.h"

namespace mlir::attn {

/// How many of a sequence's first keys its queries may see, as far as the
/// mask_mod `rule` says so without its query: it is a conjunction with
/// kv_idx < n. Null if nothing says so. The number, emitted at `builder`, is in
/// [0, kv_len].
///
/// What lies behind is padding: its values may be anything and must not meet
/// weights of 0, whose product with NaN is NaN.
Value countVisibleKeys(ImplicitLocOpBuilder &builder, Region &rule,
                       const RuleContext &context);

/// Whether there is such a number for all queries of one head, or of several.
bool hidesKeys(Region &rule, bool hasHead);

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_KEYPADDING_H
