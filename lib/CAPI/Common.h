//===- Common.h - What the files of the C interface share -------*- C++ -*-===//

#ifndef ATTN_LIB_CAPI_COMMON_H
#define ATTN_LIB_CAPI_COMMON_H

#include "DLPack.h"
#include "attn-c/attnc.h"
#include "attn/Compiler/CompiledKernel.h"

namespace attn::capi {

/// Keeps the error for attnc_last_error.
void keep(llvm::Error error);

/// The same, and as functions of the interface return it.
int report(llvm::Error error);

llvm::Expected<KernelOptions> getOptions(const attnc_options *caller);

/// Text of this thread that lives until the next call which returns some;
/// empty.
std::string &getText();

/// None for a type that no argument has.
std::optional<DType> getDType(const dlpack::DLDataType &type);

} // namespace attn::capi

#endif // ATTN_LIB_CAPI_COMMON_H
