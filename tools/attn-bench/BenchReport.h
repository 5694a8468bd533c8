//===- BenchReport.h - Tables and pages of a benchmark ----------*- C++ -*-===//

#ifndef ATTN_TOOLS_ATTNBENCH_BENCHREPORT_H
#define ATTN_TOOLS_ATTNBENCH_BENCHREPORT_H

#include "BenchFile.h"

namespace attn {

/// For a terminal.
void printTable(llvm::raw_ostream &os, const BenchFile &file);

void writeMarkdown(llvm::raw_ostream &os, const BenchFile &file);

/// One self-contained page; only where checkCanWriteHtml succeeds.
void writeHtml(llvm::raw_ostream &os, const BenchFile &file);

} // namespace attn

#endif // ATTN_TOOLS_ATTNBENCH_BENCHREPORT_H
