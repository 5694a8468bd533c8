//===- Diagnostics.cpp - Diagnostics as one llvm::Error -------------------===//

#include "Diagnostics.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

using namespace attn;

/// The line of `source` at `place`, and a mark below its column.
static void printLine(llvm::raw_ostream &os, llvm::StringRef source,
                      mlir::FileLineColLoc place) {
  for (unsigned line = 1; line < place.getLine(); ++line)
    source = source.split('\n').second;
  const llvm::StringRef text = source.split('\n').first.rtrim();
  if (text.empty() || place.getColumn() == 0)
    return;
  os << text << '\n';
  os.indent(place.getColumn() - 1) << "^\n";
}

static void print(llvm::raw_ostream &os, mlir::Diagnostic &diagnostic,
                  llvm::StringRef severity, llvm::StringRef source) {
  mlir::Location location = diagnostic.getLocation();
  auto place = location->findInstanceOf<mlir::FileLineColLoc>();
  if (place)
    os << place.getFilename().getValue() << ':' << place.getLine() << ':'
       << place.getColumn() << ": ";
  os << severity << ": " << diagnostic << '\n';
  if (place)
    printLine(os, source, place);
}

ErrorCollector::ErrorCollector(mlir::MLIRContext &context,
                               llvm::StringRef source)
    : handler(&context, [this, source](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
          return;
        std::string said;
        llvm::raw_string_ostream os(said);
        print(os, diagnostic, "error", source);
        for (mlir::Diagnostic &note : diagnostic.getNotes())
          print(os, note, "note", source);
        // The kernels of an operator are refused alike.
        if (!llvm::StringRef(text).contains(said))
          text += said;
      }) {
  context.printOpOnDiagnostic(false);
}

llvm::Error ErrorCollector::takeError(const llvm::Twine &otherwise) {
  if (text.empty())
    return llvm::createStringError(otherwise);
  return llvm::createStringError(llvm::StringRef(text).rtrim().str());
}
