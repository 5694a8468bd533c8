//===- WholeFile.cpp - Files that are there whole or not at all -----------===//

#include "WholeFile.h"
#include "llvm/Support/FileSystem.h"

using namespace attn;
namespace fs = llvm::sys::fs;

/// llvm::writeToOutput ends the program where the disk is full, and replaces
/// devices.
static std::error_code
writeTo(int file, llvm::function_ref<void(llvm::raw_ostream &)> write) {
  llvm::raw_fd_ostream os(file, /*shouldClose=*/true);
  write(os);
  os.close();
  const std::error_code code = os.error();
  os.clear_error();
  return code;
}

static std::error_code
writeInPlace(llvm::StringRef path,
             llvm::function_ref<void(llvm::raw_ostream &)> write) {
  int file;
  if (std::error_code code = fs::openFileForWrite(path, file))
    return code;
  return writeTo(file, write);
}

static std::error_code
writeBeside(llvm::StringRef path,
            llvm::function_ref<void(llvm::raw_ostream &)> write) {
  int file;
  llvm::SmallString<128> temporary;
  if (std::error_code code =
          fs::createUniqueFile(path + ".%%%%%%%%", file, temporary))
    return code;
  std::error_code code = writeTo(file, write);
  if (!code)
    code = fs::rename(temporary, path);
  if (code)
    fs::remove(temporary);
  return code;
}

llvm::Error
attn::writeWholeFile(llvm::StringRef path,
                     llvm::function_ref<void(llvm::raw_ostream &)> write) {
  const bool isSpecial = fs::exists(path) && !fs::is_regular_file(path);
  const std::error_code code =
      isSpecial ? writeInPlace(path, write) : writeBeside(path, write);
  return code ? llvm::createFileError(path, code) : llvm::Error::success();
}
