//===- Ptxas.cpp - Assembling PTX and reading what it says ----------------===//

#include "attn/Runtime/Ptxas.h"
#include "FileSizeLimit.h"
#include "attn/Runtime/Manifest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace attn;

llvm::Expected<std::string> attn::findPtxas() {
  if (std::optional<std::string> path =
          llvm::sys::Process::GetEnv("ATTNC_PTXAS")) {
    if (llvm::sys::fs::can_execute(*path))
      return *path;
    return llvm::createStringError("$ATTNC_PTXAS names '" + *path +
                                   "', which can't be executed");
  }
  llvm::SmallVector<std::string, 2> folders;
  for (llvm::StringRef variable : {"CUDA_HOME", "CUDA_PATH"})
    if (std::optional<std::string> root = llvm::sys::Process::GetEnv(variable))
      folders.push_back(*root + "/bin");
  for (const std::string &folder : folders)
    if (auto found = llvm::sys::findProgramByName("ptxas", {folder}))
      return *found;
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  if (auto found =
          llvm::sys::findProgramByName("ptxas", {"/usr/local/cuda/bin"}))
    return *found;
  return llvm::createStringError(
      "no ptxas in $ATTNC_PTXAS, $CUDA_HOME/bin, $CUDA_PATH/bin, $PATH or "
      "/usr/local/cuda/bin: install the CUDA toolkit, or set $ATTNC_PTXAS");
}

//===----------------------------------------------------------------------===//
// Log
//===----------------------------------------------------------------------===//

/// The integer before `unit` in a list such as
/// "0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads".
static std::optional<int64_t> getQuantity(llvm::StringRef line,
                                          llvm::StringRef unit) {
  const size_t end = line.find(unit);
  if (end == llvm::StringRef::npos)
    return std::nullopt;
  const llvm::StringRef before = line.take_front(end).rtrim();
  const llvm::StringRef digits =
      before.drop_front(before.find_last_not_of("0123456789") + 1);
  int64_t value;
  if (digits.getAsInteger(10, value))
    return std::nullopt;
  return value;
}

/// The message that `line` holds, if it is about a loss of performance. Those
/// about functions end in "... the function 'f'".
static std::optional<PtxasMessage> parsePerformanceLoss(llvm::StringRef line) {
  constexpr llvm::StringLiteral kMarker = "Potential Performance Loss: ";
  const size_t marker = line.find(kMarker);
  if (marker == llvm::StringRef::npos)
    return std::nullopt;
  const llvm::StringRef text = line.drop_front(marker + kMarker.size()).trim();
  llvm::StringRef code = line.take_front(marker).rtrim();
  code = code.drop_front(std::min(code.find('('), code.size()));
  PtxasMessage message;
  message.text = (code + (code.empty() ? "" : " ") + text).str();
  message.kernel = text.split("function '").second.take_until([](char c) {
    return c == '\'';
  });
  return message;
}

PtxasLog attn::parsePtxasLog(llvm::StringRef log) {
  // ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async ...
  // ptxas info    : Compiling entry function 'f' for 'sm_80'
  // ptxas info    : Function properties for f
  //     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
  // ptxas info    : Used 40 registers, used 1 barriers, 2048 bytes smem, ...
  PtxasLog result;
  std::vector<KernelResources> &kernels = result.kernels;
  for (llvm::StringRef line : llvm::split(log, '\n')) {
    if (std::optional<PtxasMessage> loss = parsePerformanceLoss(line)) {
      result.performanceLosses.push_back(std::move(*loss));
      continue;
    }
    const auto [before, entry] = line.split("Compiling entry function '");
    if (!entry.empty()) {
      kernels.emplace_back().name =
          entry.take_until([](char c) { return c == '\''; });
      continue;
    }
    if (kernels.empty())
      continue;
    KernelResources &kernel = kernels.back();
    if (auto stack = getQuantity(line, " bytes stack frame")) {
      kernel.localBytes = *stack;
      kernel.spillStoreBytes = getQuantity(line, " bytes spill stores");
      kernel.spillLoadBytes = getQuantity(line, " bytes spill loads");
    }
    if (auto registers = getQuantity(line, " registers")) {
      kernel.registers = *registers;
      kernel.sharedBytes = getQuantity(line, " bytes smem").value_or(0);
    }
  }
  return result;
}

void attn::completeResources(llvm::MutableArrayRef<KernelResources> resources,
                             llvm::ArrayRef<Kernel> kernels,
                             llvm::StringRef arch) {
  const std::optional<SMLimits> limits = SMLimits::lookup(arch);
  for (KernelResources &resource : resources) {
    const auto *kernel = llvm::find_if(
        kernels, [&](const Kernel &k) { return k.name == resource.name; });
    if (kernel == kernels.end())
      continue;
    resource.sharedBytes += kernel->dynamicSharedBytes;
    if (limits)
      resource.occupancy =
          computeOccupancy(*limits, {kernel->getThreadsPerBlock(),
                                     resource.registers, resource.sharedBytes});
  }
}

//===----------------------------------------------------------------------===//
// Process
//===----------------------------------------------------------------------===//

namespace {

/// An empty file in the system's folder for such, removed at the end.
class TemporaryFile {
public:
  static llvm::Expected<TemporaryFile> create(llvm::StringRef suffix) {
    TemporaryFile file;
    if (std::error_code error =
            llvm::sys::fs::createTemporaryFile("attnc", suffix, file.path))
      return llvm::createStringError(error, "can't create a temporary file: " +
                                                error.message());
    file.remover = std::make_unique<llvm::FileRemover>(file.path);
    return file;
  }

  llvm::StringRef getPath() const { return path; }

  llvm::Expected<std::string> read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                              /*RequiresNullTerminator=*/false,
                                              /*IsVolatile=*/true);
    if (!buffer)
      return llvm::createFileError(path, buffer.getError());
    return (*buffer)->getBuffer().str();
  }

private:
  llvm::SmallString<128> path;
  std::unique_ptr<llvm::FileRemover> remover;
};

} // namespace

static llvm::Error writeFile(llvm::StringRef path, llvm::StringRef text) {
  FileSizeLimitIsError guard;
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (!error) {
    os << text;
    os.close();
    error = os.error();
  }
  if (!error)
    return llvm::Error::success();
  os.clear_error();
  return llvm::createFileError(path, error);
}

llvm::Expected<PtxasResult> attn::runPtxas(llvm::StringRef ptx,
                                           llvm::StringRef arch) {
  llvm::Expected<std::string> ptxas = findPtxas();
  if (!ptxas)
    return ptxas.takeError();
  llvm::Expected<TemporaryFile> input = TemporaryFile::create("ptx");
  if (!input)
    return input.takeError();
  llvm::Expected<TemporaryFile> output = TemporaryFile::create("cubin");
  if (!output)
    return output.takeError();
  llvm::Expected<TemporaryFile> log = TemporaryFile::create("log");
  if (!log)
    return log.takeError();
  if (llvm::Error error = writeFile(input->getPath(), ptx))
    return std::move(error);

  llvm::SmallVector<llvm::StringRef> args = {
      *ptxas, "-v", "-arch", arch, "-o", output->getPath(), input->getPath()};
  // A program's kernels, each on a thread.
  constexpr llvm::StringLiteral kParallel = "--split-compile";
  args.append({kParallel, "0"});
  const std::optional<llvm::StringRef> redirects[] = {
      llvm::StringRef(""), log->getPath(), log->getPath()};
  PtxasResult result;
  std::string failure;
  auto run = [&]() -> llvm::Expected<int> {
    const int status = llvm::sys::ExecuteAndWait(
        *ptxas, args, /*Env=*/std::nullopt, redirects,
        /*SecondsToWait=*/0, /*MemoryLimit=*/0, &failure);
    llvm::Expected<std::string> text = log->read();
    if (!text)
      return text.takeError();
    result.log = std::move(*text);
    return status;
  };
  llvm::Expected<int> status = run();
  // That of CUDA 12.0 doesn't know the option.
  if (status && *status != 0 &&
      llvm::StringRef(result.log).contains(kParallel.drop_front(2))) {
    args.pop_back_n(2);
    status = run();
  }
  if (!status)
    return status.takeError();
  if (*status != 0)
    return llvm::createStringError(*ptxas + " failed for " + arch + ": " +
                                   (failure.empty() ? result.log : failure));
  llvm::Expected<std::string> cubin = output->read();
  if (!cubin)
    return cubin.takeError();
  result.cubin = std::move(*cubin);
  static_cast<PtxasLog &>(result) = parsePtxasLog(result.log);
  return result;
}
