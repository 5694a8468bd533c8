//===- TuneReport.h - What tuning found out ---------------------*- C++ -*-===//

#ifndef ATTN_TOOLS_ATTNTUNE_TUNEREPORT_H
#define ATTN_TOOLS_ATTNTUNE_TUNEREPORT_H

#include "Tuner.h"

namespace attn {

struct TuneReport {
  std::string device;
  std::string attncVersion;
  /// Of the inputs, such as "1x16x512x64xbf16".
  std::vector<std::string> inputs;
  /// The class of operators that a new row would be for.
  mlir::attn::ScheduleRow row;
  /// The row's schedule first.
  std::vector<TuneResult> results;

  /// The fastest of the finalists.
  const TuneResult &getBest() const;
};

/// For a terminal: finalists by time, then the others, then the table's row
/// for the best with its evidence.
void printReport(llvm::raw_ostream &os, const TuneReport &report);

/// A row of lib/Target/ScheduleTable.cpp: `row` with another schedule.
std::string formatTableRow(mlir::attn::ScheduleRow row,
                           mlir::attn::ScheduleAttr schedule);

void writeJSON(llvm::raw_ostream &os, const TuneReport &report);

} // namespace attn

#endif // ATTN_TOOLS_ATTNTUNE_TUNEREPORT_H
