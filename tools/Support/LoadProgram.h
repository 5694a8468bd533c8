//===- LoadProgram.h - Kernels whose refusal is a text ----------*- C++ -*-===//

#ifndef ATTN_TOOLS_SUPPORT_LOADPROGRAM_H
#define ATTN_TOOLS_SUPPORT_LOADPROGRAM_H

#include "attn/Compiler/LoadedProgram.h"

namespace attn {

/// LoadedProgram::create whose error is the first diagnostic; none is printed.
llvm::Expected<std::unique_ptr<LoadedProgram>>
loadProgram(mlir::ModuleOp module, const CompileOptions &options,
            Device &device);

} // namespace attn

#endif // ATTN_TOOLS_SUPPORT_LOADPROGRAM_H
