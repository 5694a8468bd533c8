//===- Compiler.cpp - From a module to runnable kernels -------------------===//

#include "attn/Compiler/Compiler.h"
#include "StageDumper.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
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
      if (!mlir::attn::isServed(op, target))
        op.emitRemark() << op.getElementType() << " runs the kernel of "
                        << kernels->name << " on " << target.name
                        << ", whose own are for f16 and bf16";
    });
  }
  return *kernels;
}

namespace attn {

llvm::Expected<OwningOpRef<ModuleOp>> lower(ModuleOp module,
                                            const CompileOptions &options) {
  const auto *target = mlir::attn::TargetInfo::lookupOrEmitError(
      options.target, module.getLoc());
  OwningOpRef<ModuleOp> clone = module.clone();
  func::FuncOp entry;
  if (target)
    entry = findEntry(*clone, options.entry);
  if (!entry || failed(isolateEntry(*clone, entry)))
    return llvm::createStringError("can't compile the module");

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
  const auto &kernels = chooseKernels(entry, options, *target);
  mlir::attn::buildAttnPipeline(pm, options.variant, kernels);
  LogicalResult result = pm.run(*clone);
  if (dumpError)
    return std::move(dumpError);
  if (failed(result))
    return llvm::createStringError("lowering failed");
  if (&kernels != target)
    (*clone)->setAttr(kKernelTargetAttrName,
                      StringAttr::get(module.getContext(), kernels.name));
  return clone;
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
