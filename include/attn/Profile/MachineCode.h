//===- MachineCode.h - Which unit a kernel multiplies with ------*- C++ -*-===//

#ifndef ATTN_PROFILE_MACHINECODE_H
#define ATTN_PROFILE_MACHINECODE_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>

namespace attn {

/// By kernel, in the order of preference: "QGMMA", "HGMMA", "IGMMA", "HMMA",
/// "IMMA", "DMMA", "FFMA", or "none".
using MatrixPaths = llvm::StringMap<std::string>;

/// Reads the instructions of a cubin for sm_70 to sm_90, by their opcodes:
/// needs no disassembler.
llvm::Expected<MatrixPaths> readMatrixPaths(llvm::StringRef cubin);

/// What the instructions of PTX become on its target.
MatrixPaths readMatrixPathsOfPTX(llvm::StringRef ptx);

/// Whether `image` is machine code rather than PTX.
bool isCubin(llvm::StringRef image);

/// "sm_90a" of `.target sm_90a`; empty without.
llvm::StringRef getPTXTarget(llvm::StringRef ptx);

} // namespace attn

#endif // ATTN_PROFILE_MACHINECODE_H
