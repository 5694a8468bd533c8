//===- RepeatFilter.cpp - Says each diagnostic once -----------------------===//

#include "RepeatFilter.h"

using namespace attn;

/// The place and the text, with those of the notes.
static std::string describe(mlir::Diagnostic &diagnostic) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << diagnostic.getLocation() << diagnostic;
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    os << describe(note);
  return text;
}

RepeatFilter::RepeatFilter(mlir::MLIRContext *context)
    : handler(context, [this](mlir::Diagnostic &diagnostic) {
        return mlir::success(!said.insert(describe(diagnostic)).second);
      }) {}
