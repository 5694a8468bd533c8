//===- Diagnostics.cpp - Diagnostics as one llvm::Error -------------------===//

#include "Diagnostics.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

using namespace attn;

static void print(llvm::raw_ostream &os, mlir::Diagnostic &diagnostic,
                  llvm::StringRef severity) {
  mlir::Location location = diagnostic.getLocation();
  if (auto place = location->findInstanceOf<mlir::FileLineColLoc>())
    os << place.getFilename().getValue() << ':' << place.getLine() << ':'
       << place.getColumn() << ": ";
  os << severity << ": " << diagnostic << '\n';
}

ErrorCollector::ErrorCollector(mlir::MLIRContext &context)
    : handler(&context, [this](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
          return;
        llvm::raw_string_ostream os(text);
        print(os, diagnostic, "error");
        for (mlir::Diagnostic &note : diagnostic.getNotes())
          print(os, note, "note");
      }) {
  context.printOpOnDiagnostic(false);
}

llvm::Error ErrorCollector::takeError(const llvm::Twine &otherwise) {
  if (text.empty())
    return llvm::createStringError(otherwise);
  return llvm::createStringError(llvm::StringRef(text).rtrim().str());
}
