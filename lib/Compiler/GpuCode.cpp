//===- GpuCode.cpp - GPU kernels made when they are needed ----------------===//

#include "GpuCode.h"
#include "Diagnostics.h"
#include "attn/Compiler/Compiler.h"
#include "attn/Runtime/HostWork.h"
#include "attn/Runtime/Ptxas.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/ThreadPool.h"

using namespace attn;

/// Whether this process has made code. What compiling uses has static variables
/// that are made when they are first needed, and destroyed in the reverse order
/// when the process exits: they must be older than the background's thread,
/// which is waited for in between.
static std::atomic<bool> hasCompiled = false;

namespace {

/// One thread of the process that makes what nobody waits for.
class Background {
public:
  using Work = std::function<void(const std::atomic<bool> &isStopping)>;

  static void run(Work work) {
    // Made after all that compiling uses (`hasCompiled`).
    static Background background;
    if (background.process == llvm::sys::Process::getProcessId())
      background.pool->async(
          [work = std::move(work)] { work(background.isStopping); });
  }

private:
  Background()
      : pool(std::make_unique<llvm::DefaultThreadPool>(
            llvm::hardware_concurrency(1))) {}

  /// Waits for the kernel under way.
  ~Background() {
    isStopping = true;
    // After a fork, the thread is the parent's.
    if (process != llvm::sys::Process::getProcessId())
      (void)pool.release();
  }

  const llvm::sys::Process::Pid process = llvm::sys::Process::getProcessId();
  std::atomic<bool> isStopping = false;
  std::unique_ptr<llvm::DefaultThreadPool> pool;
};

} // namespace

static bool isOnePart(const Manifest &manifest) {
  return manifest.variant !=
         mlir::attn::stringifyVariant(mlir::attn::Variant::Fused);
}

GpuCode::GpuCode(const Manifest &manifest, Options options)
    : options(std::move(options)), variant(manifest.variant),
      parts(isOnePart(manifest) ? 1 : manifest.kernels.size()) {
  for (const Kernel &kernel : manifest.kernels)
    names.push_back(kernel.name);
}

unsigned GpuCode::getPart(unsigned kernel) const {
  return parts.size() == 1 ? 0 : kernel;
}

bool GpuCode::setImages(std::vector<std::string> images) {
  if (images.size() != parts.size())
    return false;
  for (auto [part, image] : llvm::zip_equal(parts, images)) {
    if (image.empty())
      continue;
    part.image = std::move(image);
    part.form = Form::Stored;
    ++numStored;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Lowered modules
//===----------------------------------------------------------------------===//

void GpuCode::setLowered(LoweredModule module) {
  std::lock_guard<std::mutex> lock(loweredMutex);
  takeApart(std::move(module));
}

/// Gives each part a module of its own: its kernels and all that isn't one.
void GpuCode::takeApart(LoweredModule module) {
  lowered = std::move(module);
  mlir::gpu::GPUModuleOp whole = getGPUModule(*lowered.module);
  modules.assign(1, whole);
  if (parts.size() == 1)
    return;
  modules.clear();
  mlir::OpBuilder builder(whole);
  for (const std::string &name : names) {
    auto single =
        llvm::cast<mlir::gpu::GPUModuleOp>(builder.cloneWithoutRegions(*whole));
    single.setName((whole.getName() + "_" + name).str());
    mlir::OpBuilder inside =
        mlir::OpBuilder::atBlockBegin(&single.getBodyRegion().emplaceBlock());
    for (mlir::Operation &op : llvm::make_early_inc_range(*whole.getBody())) {
      auto function = llvm::dyn_cast<mlir::LLVM::LLVMFuncOp>(op);
      if (function && function.getName() == name)
        op.moveBefore(single.getBody(), single.getBody()->end());
      else if (!function || !llvm::is_contained(names, function.getName()))
        inside.clone(op);
    }
    modules.push_back(single);
  }
}

llvm::Expected<mlir::attn::DeviceIR> GpuCode::translate(unsigned part) {
  std::lock_guard<std::mutex> lock(loweredMutex);
  if (modules.empty()) {
    llvm::Expected<LoweredModule> again = options.lower();
    if (!again)
      return again.takeError();
    takeApart(std::move(*again));
  }
  ErrorCollector errors(*lowered.module->getContext());
  auto ir = mlir::attn::DeviceIR::translate(modules[part], options.target);
  if (ir)
    return ir;
  return errors.takeError(llvm::toString(ir.takeError()));
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

bool GpuCode::isMade(unsigned index) const {
  const Part &part = parts[index];
  std::lock_guard<std::mutex> lock(part.mutex);
  return part.form != Form::None;
}

std::string GpuCode::getImage(unsigned index) const {
  const Part &part = parts[index];
  std::lock_guard<std::mutex> lock(part.mutex);
  return part.image;
}

/// With `part.making` held. PTX stays what it is where there is no assembler or
/// where it fails, so that the driver's own says why.
llvm::Error GpuCode::makePart(Part &part, bool isAssembled) {
  llvm::Expected<mlir::attn::DeviceIR> ir = translate(&part - parts.data());
  if (!ir)
    return ir.takeError();
  llvm::Expected<std::string> ptx = std::move(*ir).emitPTX();
  if (!ptx)
    return ptx.takeError();
  std::string image = std::move(*ptx);
  Form form = Form::PTX;
  if (isAssembled) {
    llvm::Expected<PtxasResult> assembled = runPtxas(image, options.target);
    if (assembled) {
      image = std::move(assembled->cubin);
      form = Form::Assembled;
    } else {
      llvm::consumeError(assembled.takeError());
    }
  }
  std::lock_guard<std::mutex> lock(part.mutex);
  part.image = std::move(image);
  part.form = form;
  return llvm::Error::success();
}

llvm::SmallVector<unsigned>
GpuCode::getMissing(llvm::ArrayRef<unsigned> wanted) const {
  llvm::SmallVector<unsigned> missing;
  for (unsigned part : wanted)
    if (!isMade(part))
      missing.push_back(part);
  return missing;
}

llvm::Error GpuCode::makeSideBySide(llvm::ArrayRef<unsigned> missing) {
  std::vector<std::string> failures(missing.size());
  auto makeOne = [&](size_t i) {
    Part &part = parts[missing[i]];
    std::lock_guard<std::mutex> lock(part.making);
    // Another thread may have made it meanwhile.
    if (part.form == Form::None)
      failures[i] = llvm::toString(makePart(part, /*isAssembled=*/true));
  };
  if (missing.size() == 1) {
    makeOne(0);
  } else {
    llvm::DefaultThreadPool pool(llvm::hardware_concurrency(missing.size()));
    for (size_t i = 0; i < missing.size(); ++i)
      pool.async([&, i] { makeOne(i); });
    pool.wait();
  }
  for (const std::string &failure : failures)
    if (!failure.empty())
      return llvm::createStringError(failure);
  hasCompiled = true;
  return llvm::Error::success();
}

llvm::Error GpuCode::make(llvm::ArrayRef<unsigned> wanted) {
  const llvm::SmallVector<unsigned> missing = getMissing(wanted);
  if (!missing.empty()) {
    HostWorkTimer timer(HostWork::Compile);
    if (llvm::Error error = makeSideBySide(missing))
      return error;
    timer.finish(variant);
  }
  if (llvm::Error error = storeNew()) {
    const std::string reason = llvm::toString(std::move(error));
    if (options.onStoreFailure)
      options.onStoreFailure(reason);
  }
  // What was found on disk and lacks kernels gets them when they are needed, or
  // once this process has compiled something.
  if (options.continuesInBackground && hasCompiled &&
      !isContinued.exchange(true))
    continueInBackground();
  return llvm::Error::success();
}

llvm::Error GpuCode::remake(unsigned index, llvm::Error refusal) {
  Part &part = parts[index];
  std::lock_guard<std::mutex> lock(part.making);
  if (part.form == Form::PTX)
    return refusal;
  llvm::consumeError(std::move(refusal));
  // The assembler may be newer than the driver, which has its own.
  if (llvm::Error error =
          makePart(part, /*isAssembled=*/part.form == Form::Stored))
    return error;
  std::lock_guard<std::mutex> storeLock(storeMutex);
  numStored = 0;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// What goes on afterwards
//===----------------------------------------------------------------------===//

llvm::Error GpuCode::storeNew() {
  if (!options.store)
    return llvm::Error::success();
  std::lock_guard<std::mutex> lock(storeMutex);
  std::vector<std::string> images;
  for (unsigned part = 0; part < parts.size(); ++part)
    images.push_back(getImage(part));
  const size_t count = llvm::count_if(
      images, [](const std::string &image) { return !image.empty(); });
  if (count <= numStored)
    return llvm::Error::success();
  if (llvm::Error error = options.store(std::move(images)))
    return error;
  numStored = count;
  return llvm::Error::success();
}

void GpuCode::continueInBackground() {
  const auto all = llvm::to_vector(llvm::seq<unsigned>(0, parts.size()));
  if (getMissing(all).empty())
    return;
  Background::run([weak = weak_from_this()](const auto &isStopping) {
    if (std::shared_ptr<GpuCode> self = weak.lock())
      self->makeRest(isStopping);
  });
}

/// What fails here fails again, and is told, when it is asked for.
void GpuCode::makeRest(const std::atomic<bool> &isStopping) {
  for (Part &part : parts) {
    std::lock_guard<std::mutex> lock(part.making);
    if (part.form != Form::None)
      continue;
    if (isStopping)
      break;
    llvm::consumeError(makePart(part, /*isAssembled=*/true));
  }
  llvm::consumeError(storeNew());
  std::lock_guard<std::mutex> lock(loweredMutex);
  modules.clear();
  lowered.module = {};
  lowered.context.reset();
}
