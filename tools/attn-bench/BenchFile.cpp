//===- BenchFile.cpp - What a benchmark measured --------------------------===//

#include "BenchFile.h"
#include "attn/Runtime/JSONUtils.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>

using namespace attn;
namespace json = llvm::json;

static constexpr int64_t kVersion = 1;

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

const BenchResult *BenchCase::find(llvm::StringRef backend) const {
  auto found = llvm::find_if(results, [&](const BenchResult &result) {
    return result.backend == backend;
  });
  return found == results.end() ? nullptr : &*found;
}

std::optional<int64_t> BenchCase::getUsefulFlops() const {
  std::optional<int64_t> least;
  for (const BenchResult &result : results)
    if (result.flops && *result.flops > 0)
      least = std::min(least.value_or(*result.flops), *result.flops);
  return least;
}

const BenchCase *BenchFile::find(llvm::StringRef name) const {
  auto found = llvm::find_if(cases, [&](const BenchCase &benchCase) {
    return benchCase.getName() == name;
  });
  return found == cases.end() ? nullptr : &*found;
}

std::optional<double> BenchFile::getRatio(const BenchCase &benchCase,
                                          const BenchResult &result) const {
  const BenchResult *base = benchCase.find(baseline);
  if (!base)
    return std::nullopt;
  std::vector<double> ratios;
  // Both saw the same clock and heat in a round.
  for (auto [time, baseTime] : llvm::zip(result.samplesUs, base->samplesUs))
    ratios.push_back(time / baseTime);
  if (ratios.empty())
    return std::nullopt;
  return Distribution::of(std::move(ratios)).median;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace attn {

static bool fromJSON(const json::Value &value, BenchResult &result,
                     json::Path path) {
  json::ObjectMapper mapper(value, path);
  if (!mapper || !mapper.map("backend", result.backend) ||
      !mapper.map("kernel_target", result.kernelTarget) ||
      !mapper.map("refusal", result.refusal) ||
      !mapper.map("samples_us", result.samplesUs) ||
      !mapper.map("kernels", result.kernels) ||
      !mapper.map("bytes", result.bytes) ||
      !mapper.map("flops", result.flops) ||
      !mapper.map("clock_mhz", result.clockMHz) ||
      !mapper.map("error", result.error))
    return false;
  if (llvm::all_of(result.samplesUs, [](double sample) { return sample > 0; }))
    return true;
  path.field("samples_us").report("expected positive numbers");
  return false;
}

static bool fromJSON(const json::Value &value, BenchCase &benchCase,
                     json::Path path) {
  json::ObjectMapper mapper(value, path);
  return mapper && mapper.map("shape", benchCase.shape) &&
         mapper.map("dtype", benchCase.dtype) &&
         mapper.map("mod", benchCase.mod) &&
         mapper.map("results", benchCase.results);
}

static bool fromJSON(const json::Value &value, BenchFile &file,
                     json::Path path) {
  json::ObjectMapper mapper(value, path);
  int64_t version;
  if (!mapper || !mapper.map("attnc_bench", version))
    return false;
  if (version != kVersion) {
    path.field("attnc_bench").report("this tool reads version 1");
    return false;
  }
  return mapper.map("command", file.command) && mapper.map("date", file.date) &&
         mapper.map("device", file.device) &&
         mapper.map("target", file.target) &&
         mapper.map("versions", file.versions) &&
         mapper.map("rounds", file.rounds) && mapper.map("warm", file.isWarm) &&
         mapper.map("verified", file.isVerified) &&
         mapper.map("backends", file.backends) &&
         mapper.map("baseline", file.baseline) &&
         mapper.map("cases", file.cases);
}

} // namespace attn

llvm::Expected<BenchFile> attn::parseBenchFile(llvm::StringRef text) {
  llvm::Expected<json::Value> value = parseUntrustedJSON(text);
  if (!value)
    return value.takeError();
  json::Path::Root root("benchmark");
  BenchFile file;
  if (!fromJSON(*value, file, root))
    return root.getError();
  return file;
}

llvm::Expected<BenchFile> attn::readBenchFile(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer)
    return llvm::createFileError(path, buffer.getError());
  llvm::Expected<BenchFile> file = parseBenchFile((*buffer)->getBuffer());
  if (!file)
    return llvm::createFileError(path, file.takeError());
  return file;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

template <typename T>
static json::Value toJSON(std::optional<T> value) {
  if (!value)
    return nullptr;
  return json::Value(*value);
}

/// What is computed from the samples, for those who read the file by other
/// means.
static void writeTimes(json::OStream &os, const BenchFile &file,
                       const BenchCase &benchCase, const BenchResult &result) {
  if (result.samplesUs.empty())
    return;
  const Distribution time = Distribution::of(result.samplesUs);
  os.attribute("median_us", time.median);
  os.attribute("p10_us", time.low);
  os.attribute("p90_us", time.high);
  os.attribute("ratio", toJSON(file.getRatio(benchCase, result)));
  if (std::optional<int64_t> flops = benchCase.getUsefulFlops())
    os.attribute("tflops", *flops / time.median / 1e6);
}

static void write(json::OStream &os, const BenchFile &file,
                  const BenchCase &benchCase, const BenchResult &result) {
  os.object([&] {
    os.attribute("backend", result.backend);
    os.attribute("kernel_target", result.kernelTarget);
    os.attribute("refusal", json::fixUTF8(result.refusal));
    writeTimes(os, file, benchCase, result);
    os.attribute("kernels", result.kernels);
    os.attribute("bytes", toJSON(result.bytes));
    os.attribute("flops", toJSON(result.flops));
    os.attribute("clock_mhz", toJSON(result.clockMHz));
    // Of a wrong result it may be NaN, which JSON doesn't have.
    os.attribute("error", result.error && std::isfinite(*result.error)
                              ? json::Value(*result.error)
                              : json::Value(nullptr));
    os.attribute("samples_us", json::Array(result.samplesUs));
  });
}

static void writeStrings(json::OStream &os, llvm::StringRef key,
                         llvm::ArrayRef<std::string> strings) {
  os.attributeArray(key, [&] {
    for (const std::string &text : strings)
      os.value(json::fixUTF8(text));
  });
}

void attn::writeBenchFile(llvm::raw_ostream &stream, const BenchFile &file) {
  json::OStream os(stream);
  os.object([&] {
    os.attribute("attnc_bench", kVersion);
    os.attribute("command", json::fixUTF8(file.command));
    os.attribute("date", file.date);
    os.attribute("device", json::fixUTF8(file.device));
    os.attribute("target", file.target);
    os.attributeObject("versions", [&] {
      for (const auto &[name, version] : file.versions)
        os.attribute(name, json::fixUTF8(version));
    });
    os.attribute("rounds", file.rounds);
    os.attribute("warm", file.isWarm);
    os.attribute("verified", file.isVerified);
    writeStrings(os, "backends", file.backends);
    os.attribute("baseline", file.baseline);
    os.attributeArray("cases", [&] {
      for (const BenchCase &benchCase : file.cases)
        os.object([&] {
          os.attribute("shape", json::fixUTF8(benchCase.shape));
          os.attribute("dtype", json::fixUTF8(benchCase.dtype));
          os.attribute("mod", json::fixUTF8(benchCase.mod));
          os.attributeArray("results", [&] {
            for (const BenchResult &result : benchCase.results)
              write(os, file, benchCase, result);
          });
        });
    });
  });
  stream << '\n';
}
