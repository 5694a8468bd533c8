//===- DiskCache.cpp - Compiled kernels in a folder -----------------------===//
//
// An entry is the file KEY.attnc: the magic, the BLAKE3 hash of all else and
// the key, the manifest and the images, each behind its size (64 bits, little
// endian).
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/DiskCache.h"
#include "FileSizeLimit.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

using namespace attn;
namespace fs = llvm::sys::fs;
using llvm::sys::path::append;

static constexpr llvm::StringLiteral kMagic = "attnc module 2\n";
static constexpr llvm::StringLiteral kExtension = ".attnc";
static constexpr llvm::StringLiteral kTemporaryPrefix = "writing-";
static constexpr size_t kKeyDigits = 64;

/// No process takes so long to write an entry.
static constexpr std::chrono::hours kTemporaryLife{1};

DiskCache::DiskCache(std::string folder, std::optional<uint64_t> maxBytes)
    : folder(std::move(folder)), maxBytes(maxBytes) {}

llvm::Expected<uint64_t> DiskCache::getMaxBytes() const {
  if (maxBytes)
    return *maxBytes;
  auto text = llvm::sys::Process::GetEnv("ATTNC_CACHE_BYTES");
  if (!text || text->empty())
    return kDefaultMaxBytes;
  uint64_t bytes;
  if (llvm::to_integer(*text, bytes, 10))
    return bytes;
  return llvm::createStringError("ATTNC_CACHE_BYTES is '" + *text +
                                 "', needed is a number of bytes");
}

std::optional<DiskCache> DiskCache::getDefault() {
  auto folder = llvm::sys::Process::GetEnv("ATTNC_CACHE_DIR");
  if (folder && *folder == "off")
    return std::nullopt;
  if (folder && !folder->empty())
    return DiskCache(*folder);
  llvm::SmallString<128> path;
  if (!llvm::sys::path::cache_directory(path))
    return std::nullopt;
  append(path, "attnc");
  return DiskCache(path.str().str());
}

static std::string toHex(llvm::ArrayRef<uint8_t> bytes) {
  return llvm::toHex(bytes, /*LowerCase=*/true);
}

std::string DiskCache::getKey(llvm::ArrayRef<llvm::StringRef> parts) {
  llvm::BLAKE3 hash;
  for (llvm::StringRef part : parts) {
    // So that text can't move from one part to the next.
    uint8_t size[8];
    llvm::support::endian::write64le(size, part.size());
    hash.update(size);
    hash.update(part);
  }
  return toHex(hash.final());
}

static bool isKey(llvm::StringRef text) {
  return text.size() == kKeyDigits &&
         llvm::all_of(text, [](char c) { return llvm::isHexDigit(c); });
}

std::string DiskCache::getPath(llvm::StringRef key) const {
  llvm::SmallString<128> path(folder);
  append(path, key + kExtension);
  return path.str().str();
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

static llvm::BLAKE3Result<> getChecksum(llvm::StringRef key,
                                        llvm::StringRef payload) {
  llvm::BLAKE3 hash;
  hash.update(key);
  hash.update(payload);
  return hash.final();
}

static void appendText(std::string &payload, llvm::StringRef text) {
  char size[sizeof(uint64_t)];
  llvm::support::endian::write64le(size, text.size());
  payload.append(size, sizeof(size));
  payload += text;
}

/// What appendText() appended, off the front of `payload`.
static std::optional<llvm::StringRef> takeText(llvm::StringRef &payload) {
  if (payload.size() < sizeof(uint64_t))
    return std::nullopt;
  const uint64_t size = llvm::support::endian::read64le(payload.data());
  payload = payload.drop_front(sizeof(uint64_t));
  if (size > payload.size())
    return std::nullopt;
  const llvm::StringRef text = payload.take_front(size);
  payload = payload.drop_front(size);
  return text;
}

static std::string serialize(llvm::StringRef key, const CachedModule &module) {
  std::string payload;
  appendText(payload, module.manifest);
  for (llvm::StringRef image : module.images)
    appendText(payload, image);
  const auto checksum = getChecksum(key, payload);
  std::string bytes = kMagic.str();
  bytes.append(checksum.begin(), checksum.end());
  return bytes + payload;
}

static llvm::Expected<CachedModule> deserialize(llvm::StringRef key,
                                                llvm::StringRef bytes) {
  if (!bytes.consume_front(kMagic))
    return llvm::createStringError("it is no entry of this version");
  constexpr size_t kChecksumBytes = sizeof(llvm::BLAKE3Result<>);
  if (bytes.size() < kChecksumBytes)
    return llvm::createStringError("it is cut off");
  llvm::StringRef payload = bytes.drop_front(kChecksumBytes);
  const auto checksum = getChecksum(key, payload);
  if (!std::equal(checksum.begin(), checksum.end(), bytes.bytes_begin()))
    return llvm::createStringError("its checksum is wrong");
  CachedModule module;
  std::optional<llvm::StringRef> text = takeText(payload);
  if (text)
    module.manifest = text->str();
  while (text && !payload.empty()) {
    text = takeText(payload);
    if (text)
      module.images.push_back(text->str());
  }
  if (!text)
    return llvm::createStringError("its sizes are wrong");
  return module;
}

llvm::Expected<CachedModule> DiskCache::read(llvm::StringRef key) const {
  // Only both flags together keep it from being mapped into memory, where a
  // file that is cut off meanwhile ends the process (SIGBUS).
  auto buffer = llvm::MemoryBuffer::getFile(getPath(key), /*IsText=*/false,
                                            /*RequiresNullTerminator=*/true,
                                            /*IsVolatile=*/true);
  if (!buffer)
    return llvm::createFileError(getPath(key), buffer.getError());
  return deserialize(key, (*buffer)->getBuffer());
}

/// Says that a file was used now, for what is removed first.
static void touch(llvm::StringRef path) {
  int file;
  if (fs::openFileForWrite(path, file, fs::CD_OpenExisting, fs::OF_Append))
    return;
  (void)fs::setLastAccessAndModificationTime(file,
                                             std::chrono::system_clock::now());
  llvm::sys::Process::SafelyCloseFileDescriptor(file);
}

std::optional<CachedModule> DiskCache::lookup(llvm::StringRef key) const {
  const std::string path = getPath(key);
  if (!fs::exists(path))
    return std::nullopt;
  llvm::Expected<CachedModule> module = read(key);
  if (module) {
    touch(path);
    return std::move(*module);
  }
  // It is made again; a process that reads it at this moment does the same.
  llvm::consumeError(module.takeError());
  llvm::consumeError(remove(key));
  return std::nullopt;
}

/// Writes a new file beside `path`, then renames it. llvm::writeToOutput and
/// TempFile would install signal handlers in the program that uses us.
static llvm::Error writeWhole(llvm::StringRef path, llvm::StringRef bytes) {
  llvm::SmallString<128> model(llvm::sys::path::parent_path(path));
  append(model, kTemporaryPrefix + "%%%%%%%%");
  int file;
  llvm::SmallString<128> temporary;
  std::error_code code = fs::createUniqueFile(
      model, file, temporary, fs::OF_None, fs::owner_read | fs::owner_write);
  if (code)
    return llvm::errorCodeToError(code);
  {
    FileSizeLimitIsError guard;
    llvm::raw_fd_ostream os(file, /*shouldClose=*/true);
    os << bytes;
    os.close();
    code = os.error();
    os.clear_error();
  }
  if (!code)
    code = fs::rename(temporary, path);
  if (code)
    fs::remove(temporary);
  return llvm::errorCodeToError(code);
}

llvm::Error DiskCache::store(llvm::StringRef key,
                             const CachedModule &module) const {
  llvm::Expected<uint64_t> limit = getMaxBytes();
  if (!limit)
    return limit.takeError();
  // What is in here is run: nobody else may write it.
  if (std::error_code code = fs::create_directories(
          folder, /*IgnoreExisting=*/true, fs::owner_all))
    return llvm::createFileError(folder, code);
  if (llvm::Error error = writeWhole(getPath(key), serialize(key, module)))
    return llvm::createFileError(folder, std::move(error));
  return prune(*limit);
}

//===----------------------------------------------------------------------===//
// Folder
//===----------------------------------------------------------------------===//

llvm::Expected<std::vector<DiskCache::Entry>> DiskCache::list() const {
  std::vector<Entry> entries;
  if (!fs::exists(folder))
    return entries;
  std::error_code code;
  for (fs::directory_iterator file(folder, code), end; file != end && !code;
       file.increment(code)) {
    llvm::StringRef name = llvm::sys::path::filename(file->path());
    if (!name.consume_back(kExtension) || !isKey(name))
      continue;
    // It may be gone meanwhile.
    if (llvm::ErrorOr<fs::basic_file_status> status = file->status())
      entries.push_back(
          {name.str(), status->getSize(), status->getLastModificationTime()});
  }
  if (code)
    return llvm::createFileError(folder, code);
  llvm::sort(entries, [](const Entry &a, const Entry &b) {
    return a.lastUse > b.lastUse;
  });
  return entries;
}

llvm::Error DiskCache::verify(llvm::StringRef key) const {
  return read(key).takeError();
}

llvm::Error DiskCache::remove(llvm::StringRef key) const {
  if (std::error_code code = fs::remove(getPath(key)))
    return llvm::createFileError(getPath(key), code);
  return llvm::Error::success();
}

llvm::Error DiskCache::removeTemporaries(std::chrono::seconds minAge) const {
  std::error_code code;
  const auto now = std::chrono::system_clock::now();
  for (fs::directory_iterator file(folder, code), end; file != end && !code;
       file.increment(code)) {
    if (!llvm::sys::path::filename(file->path()).starts_with(kTemporaryPrefix))
      continue;
    llvm::ErrorOr<fs::basic_file_status> status = file->status();
    if (status && now - status->getLastModificationTime() >= minAge)
      fs::remove(file->path());
  }
  return code ? llvm::createFileError(folder, code) : llvm::Error::success();
}

llvm::Error DiskCache::prune(uint64_t limit) const {
  if (llvm::Error error = removeTemporaries(kTemporaryLife))
    return error;
  llvm::Expected<std::vector<Entry>> entries = list();
  if (!entries)
    return entries.takeError();
  uint64_t kept = 0;
  for (const Entry &entry : *entries) {
    kept += entry.bytes;
    if (kept > limit)
      if (llvm::Error error = remove(entry.key))
        return error;
  }
  return llvm::Error::success();
}

llvm::Error DiskCache::clear() const {
  llvm::Expected<std::vector<Entry>> entries = list();
  if (!entries)
    return entries.takeError();
  for (const Entry &entry : *entries)
    if (llvm::Error error = remove(entry.key))
      return error;
  if (!fs::exists(folder))
    return llvm::Error::success();
  return removeTemporaries(std::chrono::seconds(0));
}
