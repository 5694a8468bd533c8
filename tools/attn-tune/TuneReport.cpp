//===- TuneReport.cpp - What tuning found out -----------------------------===//

#include "TuneReport.h"
#include "Candidates.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace attn;
using mlir::attn::DecodeAttr;
using mlir::attn::ScheduleAttr;
using mlir::attn::ScheduleRow;
using mlir::attn::WarpRolesAttr;

/// "2026-11-29"
static std::string getDate() {
  return llvm::formatv("{0:%Y-%m-%d}", std::chrono::system_clock::now());
}

const TuneResult &TuneReport::getBest() const {
  const TuneResult *best = &results.front();
  for (const TuneResult &result : results)
    if (result.time && result.time->median < best->time->median)
      best = &result;
  return *best;
}

//===----------------------------------------------------------------------===//
// Table row
//===----------------------------------------------------------------------===//

static llvm::StringRef getMaskName(mlir::attn::MaskKind mask) {
  switch (mask) {
  case mlir::attn::MaskKind::Any:
    return "MaskKind::Any";
  case mlir::attn::MaskKind::Without:
    return "MaskKind::Without";
  case mlir::attn::MaskKind::With:
    return "MaskKind::With";
  case mlir::attn::MaskKind::Window:
    return "MaskKind::Window";
  }
  llvm_unreachable("unknown mask kind");
}

static llvm::StringRef getPipelineName(mlir::attn::RolePipeline pipeline) {
  switch (pipeline) {
  case mlir::attn::RolePipeline::Simple:
    return "RolePipeline::Simple";
  case mlir::attn::RolePipeline::Overlap:
    return "RolePipeline::Overlap";
  case mlir::attn::RolePipeline::Ahead:
    return "RolePipeline::Ahead";
  }
  llvm_unreachable("unknown pipeline");
}

static llvm::StringRef getCapturesName(mlir::attn::CaptureKind kind) {
  switch (kind) {
  case mlir::attn::CaptureKind::Any:
    return "CaptureKind::Any";
  case mlir::attn::CaptureKind::ByPosition:
    return "kByPosition";
  case mlir::attn::CaptureKind::Planes16Bit:
    return "kPlanes16Bit";
  case mlir::attn::CaptureKind::PairsOfIntegers:
    return "kPairsOfIntegers";
  }
  llvm_unreachable("unknown kind");
}

std::string attn::formatTableRow(ScheduleRow row, ScheduleAttr schedule) {
  if (DecodeAttr decode = schedule.getDecode())
    return llvm::formatv(R"({{"{0}", {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}},)",
                         row.target, row.elementBits, row.maxHeadDim,
                         schedule.getBlockM(), schedule.getBlockM(),
                         schedule.getBlockN(), schedule.getNumStages(),
                         schedule.getNumWarps(), decode.getProgramsPerSm());
  const std::string queries = row.maxQLen == mlir::attn::kAnyLength
                                  ? "kAnyLength"
                                  : std::to_string(row.maxQLen);
  std::string text = llvm::formatv(
      R"({{"{0}", {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8})", row.target,
      row.elementBits, row.maxHeadDim, getMaskName(row.mask), queries,
      schedule.getBlockM(), schedule.getBlockN(), schedule.getNumStages(),
      schedule.getNumWarps());
  WarpRolesAttr roles = schedule.getWarpRoles();
  bool transposesV =
      roles && roles.getVTranspose() == mlir::attn::VTranspose::Producer;
  if (roles)
    text += llvm::formatv(
        ", {0}, {1}, {2}, {3}, {4}", getPipelineName(roles.getPipeline()),
        llvm::toStringRef(roles.getLazyRescale()),
        llvm::toStringRef(roles.getPersistent()), roles.getQStages(),
        llvm::toStringRef(roles.getTmaStore()));
  if (row.captures != mlir::attn::CaptureKind::Any || transposesV)
    text += llvm::formatv("{0}, {1}",
                          roles ? "" : ", kIgnored, false, false, 1, false",
                          getCapturesName(row.captures));
  return text + (transposesV ? ", VTranspose::Producer" : "") + "},";
}

//===----------------------------------------------------------------------===//
// Terminal
//===----------------------------------------------------------------------===//

static std::string formatSpread(const Spread &spread) {
  return llvm::formatv("{0:f1} us ({1:f1}-{2:f1})", spread.median,
                       spread.lowerQuartile, spread.upperQuartile);
}

/// Of the GPU, where there is one.
static std::string formatEvidence(const TuneResult &result) {
  std::string text;
  if (result.clockMHz)
    text += " at " + std::to_string(*result.clockMHz) + " MHz";
  if (result.resources)
    text += llvm::formatv(
        ", {0} registers, {1} bytes of local memory, {2} of shared",
        result.resources->registers, result.resources->localBytes,
        result.resources->sharedBytes);
  return text;
}

static void printResult(llvm::raw_ostream &os, const TuneResult &result) {
  os << "  " << describe(result.schedule) << ": ";
  if (result.refusal.empty())
    os << formatSpread(result.time ? *result.time : *result.screening)
       << formatEvidence(result);
  else
    os << llvm::StringRef(result.refusal).split('\n').first;
  os << '\n';
}

static void printRow(llvm::raw_ostream &os, const TuneReport &report) {
  const TuneResult &first = report.results.front();
  const TuneResult &best = report.getBest();
  if (&best == &first) {
    os << "\nThe present schedule is the fastest.\n";
    return;
  }
  const bool isClear = best.time->upperQuartile < first.time->lowerQuartile;
  os << '\n'
     << (isClear ? "A faster row for lib/Target/ScheduleTable.cpp, to go "
                   "before the "
                   "present one:\n"
                 : "The difference is within the spread; the row would be:\n")
     << "    // " << formatSpread(*best.time) << formatEvidence(best)
     << ";\n    // before: " << formatSpread(*first.time)
     << formatEvidence(first) << ";\n    // " << llvm::join(report.inputs, ", ")
     << "; " << report.device << ", " << getDate() << ", attnc "
     << report.attncVersion << "\n    "
     << formatTableRow(report.row, best.schedule) << '\n';
}

void attn::printReport(llvm::raw_ostream &os, const TuneReport &report) {
  std::vector<const TuneResult *> finalists, others, refused;
  for (const TuneResult &result : report.results)
    (result.time              ? finalists
     : result.refusal.empty() ? others
                              : refused)
        .push_back(&result);
  llvm::sort(finalists, [](const TuneResult *a, const TuneResult *b) {
    return a->time->median < b->time->median;
  });
  llvm::sort(others, [](const TuneResult *a, const TuneResult *b) {
    return a->screening->median < b->screening->median;
  });
  for (auto [title, results] :
       {std::pair("Finalists, in turns; median (quartiles):", &finalists),
        std::pair("Screened only:", &others),
        std::pair("Not usable:", &refused)}) {
    if (results->empty())
      continue;
    os << title << '\n';
    for (const TuneResult *result : *results)
      printResult(os, *result);
  }
  printRow(os, report);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static void writeSpread(llvm::json::OStream &json, llvm::StringRef key,
                        const std::optional<Spread> &spread) {
  if (!spread)
    return;
  json.attributeObject(key, [&] {
    json.attribute("median_us", spread->median);
    json.attribute("lower_quartile_us", spread->lowerQuartile);
    json.attribute("upper_quartile_us", spread->upperQuartile);
    json.attribute("samples", spread->samples);
  });
}

static void writeResult(llvm::json::OStream &json, const TuneResult &result) {
  std::string schedule;
  llvm::raw_string_ostream(schedule) << result.schedule;
  json.attribute("schedule", schedule);
  if (!result.refusal.empty())
    json.attribute("refusal", llvm::json::fixUTF8(result.refusal));
  writeSpread(json, "screening", result.screening);
  writeSpread(json, "time", result.time);
  if (result.clockMHz)
    json.attribute("clock_mhz", *result.clockMHz);
  if (result.resources) {
    json.attribute("registers", result.resources->registers);
    json.attribute("local_bytes", result.resources->localBytes);
    json.attribute("smem_bytes", result.resources->sharedBytes);
  }
  if (result.error && std::isfinite(*result.error))
    json.attribute("error", *result.error);
}

void attn::writeJSON(llvm::raw_ostream &os, const TuneReport &report) {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("device", report.device);
    json.attribute("date", getDate());
    json.attribute("attnc", report.attncVersion);
    json.attribute("target", report.row.target);
    json.attributeArray("inputs", [&] {
      for (const std::string &input : report.inputs)
        json.value(input);
    });
    json.attribute("row",
                   formatTableRow(report.row, report.getBest().schedule));
    json.attributeArray("results", [&] {
      for (const TuneResult &result : report.results)
        json.object([&] { writeResult(json, result); });
    });
  });
  os << '\n';
}
