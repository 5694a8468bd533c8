//===- attn-cache.cpp - Looks after the folder of compiled kernels --------===//

#include "attn/Runtime/DiskCache.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatProviders.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

namespace cl = llvm::cl;
using namespace attn;

static cl::OptionCategory category("attn-cache options");

static cl::SubCommand listCommand("list",
                                  "Show the entries, most recently used first");
static cl::SubCommand clearCommand("clear", "Remove all entries");
static cl::SubCommand
    verifyCommand("verify",
                  "Check all entries and name those that are damaged");
static cl::opt<std::string>
    folder("dir",
           cl::desc("The folder (default: $ATTNC_CACHE_DIR, or attnc in "
                    "$XDG_CACHE_HOME or ~/.cache)"),
           cl::value_desc("FOLDER"), cl::cat(category),
           cl::sub(cl::SubCommand::getAll()));

static llvm::Expected<DiskCache> getCache() {
  if (!folder.empty())
    return DiskCache(folder);
  if (std::optional<DiskCache> cache = DiskCache::getDefault())
    return std::move(*cache);
  return llvm::createStringError(
      "the cache is off (ATTNC_CACHE_DIR); name a folder with --dir");
}

static std::string formatMegabytes(uint64_t bytes) {
  return llvm::formatv("{0:f3} MB", bytes / 1e6).str();
}

static uint64_t getTotalBytes(llvm::ArrayRef<DiskCache::Entry> entries) {
  uint64_t bytes = 0;
  for (const DiskCache::Entry &entry : entries)
    bytes += entry.bytes;
  return bytes;
}

static void show(const DiskCache &cache,
                 llvm::ArrayRef<DiskCache::Entry> entries) {
  for (const DiskCache::Entry &entry : entries)
    llvm::outs() << llvm::formatv(
        "{0}  {1,12}  {2:%Y-%m-%d %H:%M:%S}\n", entry.key,
        formatMegabytes(entry.bytes),
        llvm::sys::toTimePoint(llvm::sys::toTimeT(entry.lastUse)));
  llvm::outs() << entries.size() << " entries in " << cache.getFolder() << ", "
               << formatMegabytes(getTotalBytes(entries)) << " of at most "
               << formatMegabytes(cache.getMaxBytes()) << '\n';
}

/// Returns whether all are whole.
static bool verify(const DiskCache &cache,
                   llvm::ArrayRef<DiskCache::Entry> entries) {
  size_t damaged = 0;
  for (const DiskCache::Entry &entry : entries)
    if (llvm::Error error = cache.verify(entry.key)) {
      ++damaged;
      llvm::outs() << entry.key << ": damaged, "
                   << llvm::toString(std::move(error))
                   << "; it will be compiled again\n";
    }
  llvm::outs() << entries.size() - damaged << " entries are whole, " << damaged
               << " damaged\n";
  return damaged == 0;
}

static llvm::Expected<bool> run() {
  llvm::Expected<DiskCache> cache = getCache();
  if (!cache)
    return cache.takeError();
  llvm::Expected<std::vector<DiskCache::Entry>> entries = cache->list();
  if (!entries)
    return entries.takeError();
  if (verifyCommand)
    return verify(*cache, *entries);
  if (listCommand) {
    show(*cache, *entries);
    return true;
  }
  if (llvm::Error error = cache->clear())
    return std::move(error);
  llvm::outs() << "removed " << entries->size() << " entries, "
               << formatMegabytes(getTotalBytes(*entries)) << '\n';
  return true;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  for (cl::SubCommand *command : {&cl::SubCommand::getTopLevel(), &listCommand,
                                  &clearCommand, &verifyCommand})
    cl::HideUnrelatedOptions(category, *command);
  cl::ParseCommandLineOptions(argc, argv,
                              "Looks after the folder of compiled kernels\n");
  if (!listCommand && !clearCommand && !verifyCommand) {
    cl::PrintHelpMessage();
    return EXIT_FAILURE;
  }
  llvm::Expected<bool> success = run();
  if (success)
    return *success ? EXIT_SUCCESS : EXIT_FAILURE;
  llvm::WithColor::error(llvm::errs(), "attn-cache")
      << llvm::toString(success.takeError()) << '\n';
  return EXIT_FAILURE;
}
