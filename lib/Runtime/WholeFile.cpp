//===- WholeFile.cpp - Files that are there whole or not at all -----------===//

#include "attn/Runtime/WholeFile.h"
#include "FileSizeLimit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"

using namespace attn;
namespace fs = llvm::sys::fs;

/// llvm::writeToOutput ends the program where the disk is full, and replaces
/// devices.
static std::error_code
writeTo(llvm::raw_fd_ostream &os,
        llvm::function_ref<void(llvm::raw_ostream &)> write) {
  write(os);
  os.flush();
  const std::error_code code = os.error();
  os.clear_error();
  return code;
}

/// Closes it, which some file systems need to know of a full disk.
static std::error_code
writeTo(int file, llvm::function_ref<void(llvm::raw_ostream &)> write) {
  llvm::raw_fd_ostream os(file, /*shouldClose=*/false);
  std::error_code code = writeTo(os, write);
  const std::error_code closing =
      llvm::sys::Process::SafelyCloseFileDescriptor(file);
  return code ? code : closing;
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
  if (path == "-") {
    const std::error_code code = writeTo(llvm::outs(), write);
    return code ? llvm::createFileError("standard output", code)
                : llvm::Error::success();
  }
  FileSizeLimitIsError guard;
  const bool isSpecial = fs::exists(path) && !fs::is_regular_file(path);
  const std::error_code code =
      isSpecial ? writeInPlace(path, write) : writeBeside(path, write);
  return code ? llvm::createFileError(path, code) : llvm::Error::success();
}
