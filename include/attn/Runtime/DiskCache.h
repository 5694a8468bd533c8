//===- DiskCache.h - Compiled kernels in a folder ---------------*- C++ -*-===//

#ifndef ATTN_RUNTIME_DISKCACHE_H
#define ATTN_RUNTIME_DISKCACHE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace attn {

/// A compiled entry point as it is kept.
struct CachedModule {
  /// docs/Manifest.md
  std::string manifest;
  /// PTX or cubins, of parts of the kernels, of which those that nobody needed
  /// yet are empty; or one relocatable object of the CPU.
  std::vector<std::string> images;
};

/// A folder with one file a compiled module, which processes share: entries
/// appear whole, by renaming. None is trusted: a checksum over an entry and its
/// key finds what was cut off, changed or renamed, and it is removed.
class DiskCache {
public:
  static constexpr uint64_t kDefaultMaxBytes = uint64_t(1) << 30;

  /// $ATTNC_CACHE_DIR, or the folder attnc in $XDG_CACHE_HOME or ~/.cache; none
  /// where $ATTNC_CACHE_DIR is "off" or there is no home.
  static std::optional<DiskCache> getDefault();

  /// `maxBytes`: see getMaxBytes().
  explicit DiskCache(std::string folder,
                     std::optional<uint64_t> maxBytes = std::nullopt);

  /// A key that no other sequence of parts has: 64 hexadecimal digits.
  static std::string getKey(llvm::ArrayRef<llvm::StringRef> parts);

  /// Nothing where there is no entry, or none that can be read and is whole.
  std::optional<CachedModule> lookup(llvm::StringRef key) const;

  /// An entry as it is, whose use isn't noted.
  llvm::Expected<CachedModule> read(llvm::StringRef key) const;

  /// Adds or replaces an entry, then removes those that were used least
  /// recently until the limit is met.
  llvm::Error store(llvm::StringRef key, const CachedModule &module) const;

  struct Entry {
    std::string key;
    uint64_t bytes;
    /// When it was made or last found.
    llvm::sys::TimePoint<> lastUse;
  };

  /// Most recently used first. A folder that doesn't exist has none.
  llvm::Expected<std::vector<Entry>> list() const;

  /// What is wrong with an entry.
  llvm::Error verify(llvm::StringRef key) const;

  llvm::Error remove(llvm::StringRef key) const;
  /// Removes all entries, and what processes that died left behind.
  llvm::Error clear() const;

  llvm::StringRef getFolder() const { return folder; }
  /// Of all entries: what the cache was made with, or $ATTNC_CACHE_BYTES, or
  /// kDefaultMaxBytes. An error where the environment says no number.
  llvm::Expected<uint64_t> getMaxBytes() const;

private:
  std::string getPath(llvm::StringRef key) const;
  llvm::Error prune(uint64_t limit) const;
  llvm::Error removeTemporaries(std::chrono::seconds minAge) const;

  std::string folder;
  std::optional<uint64_t> maxBytes;
};

} // namespace attn

#endif // ATTN_RUNTIME_DISKCACHE_H
