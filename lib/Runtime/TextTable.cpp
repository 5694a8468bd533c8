//===- TextTable.cpp - Aligned columns for a terminal ---------------------===//

#include "attn/Runtime/TextTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;

void TextTable::print(llvm::raw_ostream &os) const {
  std::vector<size_t> widths;
  for (const std::vector<std::string> &row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (auto [width, cell] : llvm::zip(widths, row))
      width = std::max(width, cell.size());
  }
  for (const std::vector<std::string> &row : rows) {
    std::string line;
    llvm::raw_string_ostream text(line);
    for (auto [column, cell] : llvm::enumerate(row)) {
      const unsigned width = widths[column];
      if (column == 0)
        text << llvm::left_justify(cell, width);
      else
        text << "  " << llvm::right_justify(cell, width);
    }
    os << llvm::StringRef(line).rtrim() << '\n';
  }
}

std::string attn::formatBytes(int64_t bytes) {
  static constexpr const char *kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  unsigned unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit)
    value /= 1000;
  return unit == 0 ? llvm::formatv("{0} B", bytes).str()
                   : llvm::formatv("{0:F1} {1}", value, kUnits[unit]).str();
}
