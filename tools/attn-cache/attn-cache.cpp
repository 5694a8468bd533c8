//===- attn-cache.cpp - Looks after the folder of compiled kernels --------===//

#include "attn/Runtime/DiskCache.h"
#include "attn/Runtime/Manifest.h"
#include "attn/Runtime/TextTable.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatProviders.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/WithColor.h"

namespace cl = llvm::cl;
using namespace attn;

static cl::OptionCategory category("attn-cache options");

static cl::SubCommand
    listCommand("list", "Show what the entries are, most recently used first");
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
static cl::opt<bool> asJSON("json", cl::desc("With list: print JSON"),
                            cl::cat(category),
                            cl::sub(cl::SubCommand::getTopLevel()),
                            cl::sub(listCommand));

static llvm::Expected<DiskCache> getCache() {
  if (!folder.empty())
    return DiskCache(folder);
  if (std::optional<DiskCache> cache = DiskCache::getDefault())
    return std::move(*cache);
  return llvm::createStringError(
      "the cache is off (ATTNC_CACHE_DIR); name a folder with --dir");
}

static uint64_t getTotalBytes(llvm::ArrayRef<DiskCache::Entry> entries) {
  uint64_t bytes = 0;
  for (const DiskCache::Entry &entry : entries)
    bytes += entry.bytes;
  return bytes;
}

/// What was compiled.
static llvm::Expected<Manifest> readManifest(const DiskCache &cache,
                                             llvm::StringRef key) {
  llvm::Expected<CachedModule> module = cache.read(key);
  if (!module)
    return module.takeError();
  return Manifest::parse(module->manifest);
}

/// Of the first argument, which is q.
static std::string describeShape(const Manifest &manifest) {
  return manifest.arguments.empty()
             ? ""
             : manifest.arguments.front().getTypeString();
}

static void printTable(const DiskCache &cache,
                       llvm::ArrayRef<DiskCache::Entry> entries,
                       uint64_t maxBytes) {
  TextTable table;
  if (!entries.empty())
    table.addRow({"entry", "variant", "target", "first argument", "kernels",
                  "size", "last used", "key"});
  for (const DiskCache::Entry &entry : entries) {
    std::vector<std::string> row(5);
    if (llvm::Expected<Manifest> manifest = readManifest(cache, entry.key)) {
      row = {manifest->entry, manifest->variant, manifest->target,
             describeShape(*manifest),
             std::to_string(manifest->kernels.size())};
    } else {
      row[0] = "damaged";
      llvm::consumeError(manifest.takeError());
    }
    row.push_back(formatBytes(entry.bytes));
    row.push_back(llvm::formatv("{0:%Y-%m-%d %H:%M:%S}", entry.lastUse).str());
    row.push_back(entry.key.substr(0, 16));
    table.addRow(std::move(row));
  }
  table.print(llvm::outs());
  llvm::outs() << entries.size() << " entries in " << cache.getFolder() << ", "
               << formatBytes(getTotalBytes(entries)) << " of at most "
               << formatBytes(maxBytes) << '\n';
}

static void printEntry(llvm::json::OStream &json, const DiskCache &cache,
                       const DiskCache::Entry &entry) {
  json.attribute("key", entry.key);
  json.attribute("bytes", entry.bytes);
  // Seconds of the Unix epoch.
  json.attribute("last_use", llvm::sys::toTimeT(entry.lastUse));
  llvm::Expected<Manifest> manifest = readManifest(cache, entry.key);
  if (!manifest) {
    json.attribute("damage", llvm::toString(manifest.takeError()));
    return;
  }
  json.attribute("entry", manifest->entry);
  json.attribute("variant", manifest->variant);
  json.attribute("target", manifest->target);
  json.attributeArray("arguments", [&] {
    for (const Argument &argument : manifest->arguments)
      json.value(llvm::json::Object{{"name", argument.name},
                                    {"type", argument.getTypeString()}});
  });
  json.attributeArray("kernels", [&] {
    for (const Kernel &kernel : manifest->kernels)
      json.value(kernel.name);
  });
}

static void printJSON(const DiskCache &cache,
                      llvm::ArrayRef<DiskCache::Entry> entries,
                      uint64_t maxBytes) {
  llvm::json::OStream json(llvm::outs(), /*IndentSize=*/2);
  json.object([&] {
    json.attribute("folder", cache.getFolder());
    json.attribute("bytes", getTotalBytes(entries));
    json.attribute("max_bytes", maxBytes);
    json.attributeArray("entries", [&] {
      for (const DiskCache::Entry &entry : entries)
        json.object([&] { printEntry(json, cache, entry); });
    });
  });
  llvm::outs() << '\n';
}

static llvm::Error show(const DiskCache &cache,
                        llvm::ArrayRef<DiskCache::Entry> entries) {
  llvm::Expected<uint64_t> maxBytes = cache.getMaxBytes();
  if (!maxBytes)
    return maxBytes.takeError();
  asJSON ? printJSON(cache, entries, *maxBytes)
         : printTable(cache, entries, *maxBytes);
  return llvm::Error::success();
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
    if (llvm::Error error = show(*cache, *entries))
      return std::move(error);
    return true;
  }
  if (llvm::Error error = cache->clear())
    return std::move(error);
  llvm::outs() << "removed " << entries->size() << " entries, "
               << formatBytes(getTotalBytes(*entries)) << '\n';
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
