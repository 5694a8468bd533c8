//===- RemarkFile.cpp - What the compiler says, for other tools -----------===//

#include "RemarkFile.h"
#include "attn/Runtime/WholeFile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Remarks/Remark.h"
#include "llvm/Remarks/RemarkSerializer.h"

using namespace attn;
namespace remarks = llvm::remarks;

static mlir::FileLineColLoc findPlace(mlir::Location location) {
  mlir::FileLineColLoc place;
  location->walk([&](mlir::Location inner) {
    place = llvm::dyn_cast<mlir::FileLineColLoc>(inner);
    return place ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  return place;
}

RemarkFile::RemarkFile(mlir::ModuleOp module)
    : handler(module.getContext(), [this](mlir::Diagnostic &diagnostic) {
        add(diagnostic);
        return mlir::failure();
      }) {
  for (auto function : module.getOps<mlir::func::FuncOp>())
    if (mlir::FileLineColLoc place = findPlace(function.getLoc()))
      functionsByLine.emplace_back(place.getLine(), function.getName());
  llvm::sort(functionsByLine);
}

void RemarkFile::add(mlir::Diagnostic &diagnostic) {
  const bool isWarning =
      diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning;
  if (!isWarning &&
      diagnostic.getSeverity() != mlir::DiagnosticSeverity::Remark)
    return;
  Entry entry = {source, "", "", diagnostic.str(), 0, 0, isWarning};
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    entry.text += "; " + note.str();
  if (mlir::FileLineColLoc place = findPlace(diagnostic.getLocation())) {
    entry.file = place.getFilename().str();
    entry.line = place.getLine();
    entry.column = place.getColumn();
  }
  for (const auto &[line, name] : functionsByLine)
    if (line <= entry.line)
      entry.function = name;
  entries.push_back(std::move(entry));
}

llvm::Error RemarkFile::write(llvm::StringRef path) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto serializer = remarks::createRemarkSerializer(remarks::Format::YAML, os);
  if (!serializer)
    return serializer.takeError();
  for (const Entry &entry : entries) {
    remarks::Remark remark;
    // What costs speed is what an optimisation missed.
    remark.RemarkType =
        entry.isWarning ? remarks::Type::Missed : remarks::Type::Analysis;
    remark.PassName = entry.source;
    remark.RemarkName = entry.isWarning ? "Warning" : "Remark";
    remark.FunctionName = entry.function;
    if (!entry.file.empty())
      remark.Loc = {entry.file, entry.line, entry.column};
    remark.Args.emplace_back("String", entry.text);
    (*serializer)->emit(remark);
  }
  return writeWholeFile(path, [&](llvm::raw_ostream &out) { out << text; });
}
