//===- Compiler.cpp - From a module to runnable kernels -------------------===//

#include "attn/Compiler/Compiler.h"
#include "MaskData.h"
#include "StageDumper.h"
#include "attn/Analysis/TileMap.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Target/PTX.h"
#include "attn/Target/ScheduleTable.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;

static std::string listNames(ArrayRef<func::FuncOp> funcs) {
  std::string names;
  llvm::raw_string_ostream os(names);
  llvm::interleaveComma(funcs, os, [&](func::FuncOp f) { os << f.getName(); });
  return names;
}

/// The entry function that `name` chooses; null after an error at the module.
static func::FuncOp findEntry(ModuleOp module, StringRef name) {
  SmallVector<func::FuncOp> all, withAttention;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal())
      continue;
    all.push_back(func);
    bool found = func.walk([](mlir::attn::AttentionOp) {
                       return WalkResult::interrupt();
                     })
                     .wasInterrupted();
    if (found)
      withAttention.push_back(func);
  }
  if (!name.empty()) {
    for (func::FuncOp func : all)
      if (func.getName() == name)
        return func;
    emitError(module.getLoc())
        << "no function named '" << name
        << "' with a body; there are: " << listNames(all);
    return {};
  }
  if (withAttention.size() == 1)
    return withAttention.front();
  if (all.size() == 1)
    return all.front();
  if (all.empty())
    emitError(module.getLoc()) << "has no function to compile";
  else
    emitError(module.getLoc())
        << "has several functions; choose one with --entry: "
        << listNames(withAttention.empty() ? all : withAttention);
  return {};
}

/// Leaves only `entry` in the module.
static LogicalResult isolateEntry(ModuleOp module, func::FuncOp entry) {
  WalkResult result = entry.walk([](func::CallOp call) {
    call.emitOpError("in an entry function isn't supported; inline it first "
                     "(mlir-opt --inline)");
    return WalkResult::interrupt();
  });
  if (result.wasInterrupted())
    return failure();
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (func != entry)
      func.erase();
  return success();
}

/// Looks up the target of `options` and clones `module`, leaving only its entry
/// function, which is `entry`; null after an error.
static OwningOpRef<ModuleOp> cloneEntry(ModuleOp module,
                                        const ::attn::CompileOptions &options,
                                        const mlir::attn::TargetInfo *&target,
                                        func::FuncOp &entry) {
  target = mlir::attn::TargetInfo::lookupOrEmitError(options.target,
                                                     module.getLoc());
  if (!target)
    return {};
  OwningOpRef<ModuleOp> clone = module.clone();
  entry = findEntry(*clone, options.entry);
  if (!entry || failed(isolateEntry(*clone, entry)))
    return {};
  return clone;
}

/// Forgets the schedules of kernels that aren't made.
static void dropSchedules(func::FuncOp entry) {
  entry.walk([](mlir::attn::AttentionOp op) {
    op.removeScheduleAttr();
    op.removeShortSchedulesAttr();
  });
}

/// Picks the target whose kernels are made and says so at the operator if it
/// isn't the one asked for.
static const mlir::attn::TargetInfo &
chooseKernels(func::FuncOp entry, const ::attn::CompileOptions &options,
              const mlir::attn::TargetInfo &target) {
  const auto *kernels =
      &mlir::attn::getKernelTarget(entry, options.variant, target);
  if (kernels->hasWarpRoles && options.avoidsTMA) {
    kernels = mlir::attn::TargetInfo::lookup("sm_80");
    dropSchedules(entry);
  } else if (kernels != &target &&
             options.variant == mlir::attn::Variant::Fused) {
    entry.walk([&](mlir::attn::AttentionOp op) {
      std::string unserved = mlir::attn::getUnserved(op, target);
      if (!unserved.empty())
        op.emitRemark() << unserved << " runs the kernel of " << kernels->name
                        << " on " << target.name
                        << ", whose own don't serve it";
    });
  }
  return *kernels;
}

/// The only attention of `entry`; null after an error.
static mlir::attn::AttentionOp findAttention(func::FuncOp entry) {
  SmallVector<mlir::attn::AttentionOp> ops;
  entry.walk([&](mlir::attn::AttentionOp op) { ops.push_back(op); });
  if (ops.size() == 1)
    return ops.front();
  entry.emitError("has ") << ops.size()
                          << " attn.attention operators; a tile map is of one";
  return {};
}

/// The length of `tensor`, which errors call `name`.
static FailureOr<int64_t> chooseLength(mlir::attn::AttentionOp op, Value tensor,
                                       StringRef name,
                                       std::optional<int64_t> length) {
  const int64_t size = cast<ShapedType>(tensor.getType()).getDimSize(2);
  if (ShapedType::isDynamic(size))
    return length.value_or(1024);
  if (length && *length != size)
    return op.emitError() << name << " has length " << size << ", not "
                          << *length
                          << "; give lengths that agree with it, or none";
  return size;
}

static LogicalResult checkIndex(mlir::attn::AttentionOp op, int64_t dim,
                                StringRef name, int64_t index) {
  const int64_t size = cast<ShapedType>(op.getQ().getType()).getDimSize(dim);
  if (ShapedType::isDynamic(size) || index < size)
    return success();
  return op.emitError() << "has no " << name << ' ' << index << "; q has size "
                        << size << " in dimension " << dim;
}

static FailureOr<tile::TileMapPoint>
choosePoint(mlir::attn::AttentionOp op, const ::attn::TileMapOptions &options) {
  if (op.getCuQ() || op.getCuK() || op.getBlockTable())
    return op.emitError() << "has packed sequences or pages; a tile map is of "
                             "tensors with a sequence each, so leave out cu_q, "
                             "cu_k and block_table";
  auto query = chooseLength(op, op.getQ(), "q", options.queryLength);
  auto key = chooseLength(op, op.getK(), "k", options.keyLength);
  if (failed(query) || failed(key) ||
      failed(checkIndex(op, 0, "batch", options.batch)) ||
      failed(checkIndex(op, 1, "head", options.head)))
    return failure();
  for (Value tensor : {op.getK(), op.getV()})
    if (*query != *key && (tensor == op.getQ() || tensor == op.getO()))
      return op.emitError() << "reads keys and queries from one tensor, which "
                               "can't have lengths "
                            << *query << " and " << *key;
  for (int64_t length : {*query, *key})
    if (length > tile::TileMap::kMaxLength)
      return op.emitError() << "a tile map needs lengths up to "
                            << tile::TileMap::kMaxLength << ", not " << length;
  return tile::TileMapPoint{*query, *key, options.batch, options.head};
}

/// Leaves the operator only the schedule that it has for a query length.
static void pickSchedule(mlir::attn::AttentionOp op, int64_t queryLength) {
  if (ArrayAttr shorter = op.getShortSchedulesAttr()) {
    for (auto entry : shorter.getAsRange<mlir::attn::ShortScheduleAttr>())
      if (queryLength <= entry.getMaxQLen()) {
        op.setScheduleAttr(entry.getSchedule());
        break;
      }
    op.removeShortSchedulesAttr();
  }
}

/// The kernel that `entry` of `module` launches for a query length, with its
/// ranges; null after an error.
static tile::KernelOp lowerToKVRanges(ModuleOp module,
                                      mlir::attn::AttentionOp op,
                                      int64_t queryLength,
                                      const mlir::attn::TargetInfo &target) {
  PassManager select(module.getContext(), ModuleOp::getOperationName());
  select.addNestedPass<func::FuncOp>(
      mlir::attn::createAttnSelectSchedule({target.name.str(),
                                            /*decode=*/false}));
  if (failed(select.run(module)))
    return {};
  pickSchedule(op, queryLength);
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  mlir::attn::buildKVRangesPipeline(pm, target);
  if (failed(pm.run(module)))
    return {};
  // Others look at the mask before it.
  for (auto kernel : module.getOps<tile::KernelOp>()) {
    WalkResult result =
        kernel.walk([](tile::KVLoopOp) { return WalkResult::interrupt(); });
    if (result.wasInterrupted())
      return kernel;
  }
  op.emitError("has no kernel with a tile.kv_loop");
  return {};
}

namespace {
/// Says which pass runs.
class PassTeller : public PassInstrumentation {
public:
  explicit PassTeller(std::function<void(StringRef)> onPass)
      : onPass(std::move(onPass)) {}

  void runBeforePass(Pass *pass, Operation *) override {
    // Adaptors of nested pass managers have no name.
    if (!pass->getArgument().empty())
      onPass(pass->getArgument());
  }

private:
  std::function<void(StringRef)> onPass;
};
} // namespace

static tile::LaunchOp findLaunch(ModuleOp module, tile::KernelOp kernel) {
  tile::LaunchOp found;
  module.walk([&](tile::LaunchOp launch) {
    if (launch.getKernel() == kernel.getSymName())
      found = launch;
  });
  return found;
}

namespace attn {

llvm::Expected<OwningOpRef<ModuleOp>> lower(ModuleOp module,
                                            const CompileOptions &options) {
  const mlir::attn::TargetInfo *target;
  func::FuncOp entry;
  OwningOpRef<ModuleOp> clone = cloneEntry(module, options, target, entry);
  if (!clone)
    return llvm::createStringError("can't compile the module");
  if (options.usesCudnn && !target->isGPU) {
    emitError(entry.getLoc()) << "cuDNN needs a GPU, the target is "
                              << target->name << "; choose another backend";
    return llvm::createStringError("can't compile the module");
  }

  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  llvm::Error dumpError = llvm::Error::success();
  if (!options.dumpStages.empty()) {
    if (std::error_code code =
            llvm::sys::fs::create_directories(options.dumpStages)) {
      llvm::consumeError(std::move(dumpError));
      return llvm::createStringError(code, "can't create %s: %s",
                                     options.dumpStages.c_str(),
                                     code.message().c_str());
    }
    module.getContext()->disableMultithreading();
    pm.addInstrumentation(
        std::make_unique<StageDumper>(options.dumpStages, dumpError));
  }
  const auto *kernels = target;
  if (options.usesCudnn) {
    mlir::attn::buildCudnnPipeline(pm);
  } else {
    kernels = &chooseKernels(entry, options, *target);
    mlir::attn::buildAttnPipeline(pm, options.variant, *kernels);
  }
  if (options.onPass)
    pm.addInstrumentation(std::make_unique<PassTeller>(options.onPass));
  LogicalResult result = pm.run(*clone);
  if (options.onPass)
    options.onPass("");
  if (dumpError)
    return std::move(dumpError);
  if (failed(result))
    return llvm::createStringError("lowering failed");
  if (kernels != target)
    (*clone)->setAttr(kKernelTargetAttrName,
                      StringAttr::get(module.getContext(), kernels->name));
  return clone;
}

llvm::Expected<tile::TileMap> mapTiles(ModuleOp module,
                                       const CompileOptions &options,
                                       const TileMapOptions &mapOptions) {
  auto getError = [] {
    return llvm::createStringError("can't map the tiles of the module");
  };
  const mlir::attn::TargetInfo *target;
  func::FuncOp entry;
  OwningOpRef<ModuleOp> clone = cloneEntry(module, options, target, entry);
  mlir::attn::AttentionOp op;
  if (clone)
    op = findAttention(entry);
  if (!op)
    return getError();
  auto point = choosePoint(op, mapOptions);
  if (failed(point))
    return getError();
  auto data = MaskData::create(op, mapOptions.inputs, *point);
  if (failed(data))
    return getError();
  const auto &kernels = chooseKernels(entry, options, *target);
  tile::KernelOp kernel =
      lowerToKVRanges(*clone, op, point->queryLength, kernels);
  if (!kernel)
    return getError();
  tile::TileMapData memory = data->getFor(findLaunch(*clone, kernel));
  memory.maxPairs = mapOptions.maxPairs;
  auto map = tile::TileMap::compute(kernel, *point, memory);
  if (failed(map))
    return getError();
  return std::move(*map);
}

gpu::GPUModuleOp getGPUModule(ModuleOp lowered) {
  auto modules = lowered.getOps<gpu::GPUModuleOp>();
  return modules.empty() ? gpu::GPUModuleOp() : *modules.begin();
}

llvm::Expected<CompiledProgram> compile(ModuleOp module,
                                        const CompileOptions &options) {
  auto lowered = lower(module, options);
  if (!lowered)
    return lowered.takeError();
  auto manifest = emitManifest(**lowered, options);
  if (!manifest)
    return manifest.takeError();
  CompiledProgram program;
  program.manifest = std::move(*manifest);
  if (options.usesCudnn)
    return program;
  if (auto gpuModule = getGPUModule(**lowered)) {
    auto ptx = mlir::attn::translateToPTX(gpuModule, options.target);
    if (!ptx)
      return ptx.takeError();
    program.ptx = std::move(*ptx);
    return program;
  }
  auto cpu = CpuJit::create(**lowered);
  if (!cpu)
    return cpu.takeError();
  program.cpu = std::move(*cpu);
  return program;
}

} // namespace attn
