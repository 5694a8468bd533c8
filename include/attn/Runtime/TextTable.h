//===- TextTable.h - Aligned columns for a terminal -------------*- C++ -*-===//

#ifndef ATTN_RUNTIME_TEXTTABLE_H
#define ATTN_RUNTIME_TEXTTABLE_H

#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace attn {

/// Rows of text; the first column is aligned to the left, the others to the
/// right. No cell is ever cut.
class TextTable {
public:
  void addRow(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  void print(llvm::raw_ostream &os) const;

private:
  std::vector<std::vector<std::string>> rows;
};

/// "16.8 MB"
std::string formatBytes(int64_t bytes);

} // namespace attn

#endif // ATTN_RUNTIME_TEXTTABLE_H
