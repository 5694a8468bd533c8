//===- Kernel.cpp - Runs tile kernels in the test's process ---------------===//

#include "Kernel.h"
#include "attn/Pipelines/CPU.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/APFloat.h"
#include <random>

using namespace attn::test;
using llvm::APFloat;

static const llvm::fltSemantics &getSemantics(llvm::StringRef type) {
  if (type == "f16")
    return APFloat::IEEEhalf();
  return type == "bf16" ? APFloat::BFloat() : APFloat::IEEEsingle();
}

static unsigned getWidth(llvm::StringRef type) { return type == "f32" ? 4 : 2; }

Buffer::Buffer(llvm::StringRef type, int64_t count)
    : type(type), count(count), bytes(count * getWidth(type), '\xff') {}

double Buffer::get(int64_t index) const {
  unsigned width = getWidth(type);
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * width, width);
  APFloat value(getSemantics(type), llvm::APInt(8 * width, bits));
  return value.convertToDouble();
}

std::vector<double> Buffer::getAll() const {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = get(i);
  return values;
}

void Buffer::set(int64_t index, double value) {
  APFloat rounded(value);
  bool losesInfo;
  rounded.convert(getSemantics(type), APFloat::rmNearestTiesToEven, &losesInfo);
  uint64_t bits = rounded.bitcastToAPInt().getZExtValue();
  unsigned width = getWidth(type);
  std::memcpy(bytes.data() + index * width, &bits, width);
}

void Buffer::randomize(unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < count; ++i)
    set(i, normal(generator));
}

Params &Params::addMemRef(void *data, llvm::ArrayRef<int32_t> sizes,
                          llvm::ArrayRef<int64_t> strides) {
  add(data);
  for (int32_t size : sizes)
    add(size);
  for (int64_t stride : strides)
    add(stride);
  return *this;
}

Params &Params::addI32(int32_t value) {
  add(value);
  return *this;
}

Params &Params::addF32(float value) {
  add(value);
  return *this;
}

Kernels::Kernels(llvm::StringRef text, int64_t vectorBits) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  mlir::PassManager pm(&context);
  mlir::attn::buildTileToCPUPipeline(
      pm, vectorBits ? vectorBits : mlir::attn::getHostVectorBits());
  if (!module || failed(pm.run(*module)))
    llvm::report_fatal_error("kernel doesn't compile");
  jit = llvm::cantFail(CpuJit::create(*module));
}

void Kernels::run(llvm::StringRef name, int32_t grid, Params &params) const {
  for (int32_t id = 0; id < grid; ++id)
    runOne(name, id, params);
}

void Kernels::runOne(llvm::StringRef name, int32_t id, Params &params) const {
  auto *kernel =
      reinterpret_cast<void (*)(void **, int32_t)>(jit->lookup(name));
  if (!kernel)
    llvm::report_fatal_error("no kernel of this name");
  kernel(params.get(), id);
}

std::string attn::test::substitute(
    std::string text,
    llvm::ArrayRef<std::pair<std::string, std::string>> values) {
  for (auto &[key, value] : values)
    for (size_t at; (at = text.find("$" + key)) != std::string::npos;)
      text.replace(at, key.size() + 1, value);
  return text;
}
