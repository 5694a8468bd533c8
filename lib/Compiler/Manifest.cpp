//===- Manifest.cpp - The manifest of a lowered module --------------------===//

#include "attn/Compiler/Backend.h"
#include "attn/Compiler/Compiler.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
namespace json = llvm::json;

/// Attributes of the plan have a one-to-one JSON form; unit stands for null.
static json::Value toJSON(Attribute attr) {
  return TypeSwitch<Attribute, json::Value>(attr)
      .Case([](BoolAttr value) { return value.getValue(); })
      .Case([](IntegerAttr value) { return value.getInt(); })
      .Case([](StringAttr value) { return value.getValue().str(); })
      .Case([](FlatSymbolRefAttr value) { return value.getValue().str(); })
      .Case([](ArrayAttr array) {
        json::Array result;
        for (Attribute element : array)
          result.push_back(toJSON(element));
        return result;
      })
      .Case([](DictionaryAttr dictionary) {
        json::Object result;
        for (NamedAttribute field : dictionary)
          result[field.getName().getValue()] = toJSON(field.getValue());
        return result;
      })
      .Default([](Attribute) { return nullptr; });
}

static int64_t getIntAttr(Operation *op, StringRef name, int64_t defaultValue) {
  auto attr = op->getAttrOfType<IntegerAttr>(name);
  return attr ? attr.getInt() : defaultValue;
}

static json::Object describeKernel(LLVM::LLVMFuncOp kernel, bool isGPU) {
  int64_t threads = isGPU ? 32 * getIntAttr(kernel, "attn.num_warps", 1) : 1;
  json::Object result{
      {"name", kernel.getName()},
      {"block", json::Array{threads, 1, 1}},
      {"cluster", json::Array{1, 1, 1}},
      {"dynamic_smem_bytes", getIntAttr(kernel, "attn.dynamic_smem_bytes", 0)},
      {"static_smem_bytes", 0}};
  if (auto schedule = kernel->getAttr("attn.schedule")) {
    std::string text;
    llvm::raw_string_ostream(text) << schedule;
    result["schedule"] = text;
  }
  return result;
}

/// What a library brings; its plan's arguments say all.
static json::Object describeLibraryKernel(tile::KernelOp kernel,
                                          StringRef library) {
  return json::Object{
      {"name", kernel.getName()},      {"library", library},
      {"block", json::Array{1, 1, 1}}, {"cluster", json::Array{1, 1, 1}},
      {"dynamic_smem_bytes", 0},       {"static_smem_bytes", 0}};
}

/// The kernels that the plan launches, each once, in order of first launch.
static json::Array describeKernels(ModuleOp module, DictionaryAttr plan,
                                   bool isGPU) {
  llvm::StringMap<LLVM::LLVMFuncOp> functions;
  module.walk([&](LLVM::LLVMFuncOp func) { functions[func.getName()] = func; });
  llvm::MapVector<StringRef, json::Object> kernels;
  for (auto kernel : module.getOps<tile::KernelOp>())
    if (auto library = kernel->getAttrOfType<StringAttr>("attn.library"))
      kernels[kernel.getName()] =
          describeLibraryKernel(kernel, library.getValue());
  for (Attribute step : plan.getAs<ArrayAttr>("plan")) {
    auto name = cast<DictionaryAttr>(step).getAs<StringAttr>("kernel");
    if (!name || kernels.contains(name))
      continue;
    if (LLVM::LLVMFuncOp func = functions.lookup(name.getValue()))
      kernels[name] = describeKernel(func, isGPU);
  }
  json::Array result;
  for (auto &entry : kernels)
    result.push_back(std::move(entry.second));
  return result;
}

namespace attn {

llvm::Expected<std::string> emitManifest(ModuleOp lowered,
                                         const CompileOptions &options) {
  auto plan = lowered->getAttrOfType<DictionaryAttr>("attn.plan");
  if (!plan)
    return llvm::createStringError("the module has no attn.plan");
  const auto *target = mlir::attn::TargetInfo::lookup(options.target);
  json::Value value = toJSON(plan);
  json::Object &manifest = *value.getAsObject();
  manifest["version"] = 1;
  manifest["producer"] =
      json::Object{{"attnc", ATTNC_VERSION}, {"llvm", LLVM_VERSION_STRING}};
  manifest["variant"] = options.usesCudnn
                            ? stringifyBackend(Backend::Cudnn)
                            : mlir::attn::stringifyVariant(options.variant);
  manifest["target"] = options.target;
  auto kernelTarget = lowered->getAttrOfType<StringAttr>(kKernelTargetAttrName);
  manifest["kernel_target"] =
      kernelTarget ? kernelTarget.getValue() : StringRef(options.target);
  manifest["kernels"] = describeKernels(lowered, plan, target && target->isGPU);
  return llvm::formatv("{0:2}", value).str();
}

} // namespace attn
