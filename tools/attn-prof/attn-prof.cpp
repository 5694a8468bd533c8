//===- attn-prof.cpp - Shows a profile that was saved ---------------------===//

#include "../Support/ProfileOptions.h"
#include "attn/Profile/Counters.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/WithColor.h"

namespace cl = llvm::cl;
using namespace attn;

static cl::OptionCategory category("attn-prof options");

static cl::opt<std::string> inputFile(cl::Positional, cl::Required,
                                      cl::desc("FILE.json"), cl::cat(category));
static cl::opt<std::string> countersFile(
    "counters",
    cl::desc("Show beside it what `ncu --csv` measured of the same kernels: "
             "occupancy, use of the matrix units, bytes (docs/Profile.md has "
             "the command)"),
    cl::value_desc("FILE.csv"), cl::cat(category));
static ShowProfileOptions showOptions(category);

static llvm::Expected<ProfileFile> read() {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer =
      llvm::MemoryBuffer::getFileOrSTDIN(inputFile);
  if (!buffer)
    return llvm::createFileError(inputFile, buffer.getError());
  llvm::Expected<ProfileFile> file = parseProfile((*buffer)->getBuffer());
  if (!file)
    return llvm::createFileError(inputFile, file.takeError());
  if (countersFile.empty())
    return file;
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> counters =
      llvm::MemoryBuffer::getFile(countersFile);
  if (!counters)
    return llvm::createFileError(countersFile, counters.getError());
  if (llvm::Error error = addCounters(*file, (*counters)->getBuffer()))
    return llvm::createFileError(countersFile, std::move(error));
  return file;
}

static int fail(llvm::Error error, int code = EXIT_FAILURE) {
  llvm::WithColor::error(llvm::errs(), "attn-prof")
      << llvm::toString(std::move(error)) << '\n';
  return code;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv, "Shows and explains a profile that attn-run saved\n");
  if (llvm::Error error = showOptions.parse())
    return fail(std::move(error), kMalformedOption);
  if (llvm::Error error = showOptions.checkReport())
    return fail(std::move(error));
  llvm::Expected<ProfileFile> file = read();
  if (!file)
    return fail(file.takeError());
  if (llvm::Error error = showOptions.checkRegions(file->getRegionNames()))
    return fail(std::move(error), kMalformedOption);
  llvm::Expected<bool> allRight = showOptions.show(*file);
  if (!allRight)
    return fail(allRight.takeError());
  return *allRight ? EXIT_SUCCESS : kWrongGuess;
}
