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

/// Whether a caller's pointer isn't null; else that it is becomes the error.
bool isGiven(const void *pointer, const char *name);

/// A tensor of a caller, which `name` says in errors. What its shape and
/// strides point to isn't looked at.
llvm::Expected<const dlpack::DLTensor *> getTensor(const llvm::Twine &name,
                                                   const void *pointer);

/// Text of this thread that lives until the next call which returns some;
/// empty.
std::string &getText();

/// None for a type that no argument has.
std::optional<DType> getDType(const dlpack::DLDataType &type);

} // namespace attn::capi

#endif // ATTN_LIB_CAPI_COMMON_H
