//===- Assembler.h - PTX to machine code, with ptxas's remarks --*- C++ -*-===//

#ifndef ATTN_COMPILER_ASSEMBLER_H
#define ATTN_COMPILER_ASSEMBLER_H

#include "attn/Compiler/Compiler.h"
#include "attn/Runtime/Ptxas.h"

namespace attn {

struct AssembleOptions {
  /// Spills and what ptxas calls a potential performance loss (serialised
  /// wgmma instructions, an ignored setmaxnreg) are errors, not warnings.
  bool werrorPerf = false;
};

/// Assembles `ptx`, the kernels of `lowered`, which was made with
/// `compileOptions`. A remark at each kernel says what it takes of a
/// multiprocessor, warnings or errors what costs it speed. The kernels of the
/// result are complete, with dynamic shared memory and occupancy.
llvm::Expected<PtxasResult> assemble(mlir::ModuleOp lowered,
                                     llvm::StringRef ptx,
                                     const CompileOptions &compileOptions,
                                     const AssembleOptions &options);

} // namespace attn

#endif // ATTN_COMPILER_ASSEMBLER_H
