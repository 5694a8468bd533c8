//===- Common.h - What the files of the C interface share -------*- C++ -*-===//

#ifndef ATTN_LIB_CAPI_COMMON_H
#define ATTN_LIB_CAPI_COMMON_H

#include "attn-c/attnc.h"
#include "attn/Compiler/CompiledKernel.h"

namespace attn::capi {

/// Keeps the error for attnc_last_error.
void keep(llvm::Error error);

/// The same, and as functions of the interface return it.
int report(llvm::Error error);

llvm::Expected<KernelOptions> getOptions(const attnc_options *caller);

} // namespace attn::capi

#endif // ATTN_LIB_CAPI_COMMON_H
