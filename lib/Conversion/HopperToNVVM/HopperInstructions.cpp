//===- HopperInstructions.cpp - sm_90a instructions, one call each --------===//

#include "HopperInstructions.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::hopper;
using tile::ThreadEmitter;

static LLVM::InlineAsmOp inlineAsm(ThreadEmitter &emit, TypeRange results,
                                   ValueRange operands, StringRef text,
                                   StringRef constraints) {
  return LLVM::InlineAsmOp::create(
      emit, emit.getLoc(), results, operands, text, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
}

/// An instruction that orders memory accesses around it.
static void memoryAsm(ThreadEmitter &emit, ValueRange operands, StringRef text,
                      std::string constraints) {
  constraints += constraints.empty() ? "~{memory}" : ",~{memory}";
  inlineAsm(emit, TypeRange(), operands, text, constraints);
}

/// An instruction that yields floats in place of `values`, which come first
/// among its operands and are tied to the results.
static SmallVector<Value> tiedAsm(ThreadEmitter &emit, ValueRange values,
                                  size_t numResults, ValueRange operands,
                                  StringRef text, StringRef constraints) {
  SmallVector<std::string> parts(numResults, "=f");
  for (size_t i = 0; i < values.size(); ++i)
    parts.push_back(std::to_string(i));
  if (!constraints.empty())
    parts.push_back(constraints.str());
  SmallVector<Type> types(numResults, emit.getF32Type());
  Type result = LLVM::LLVMStructType::getLiteral(emit.getContext(), types);
  SmallVector<Value> all(values);
  llvm::append_range(all, operands);
  Value packed =
      inlineAsm(emit, result, all, text, llvm::join(parts, ",")).getResult(0);
  SmallVector<Value> results;
  for (size_t i = 0; i < numResults; ++i)
    results.push_back(emit.create<LLVM::ExtractValueOp>(packed, i));
  return results;
}

/// "$first, ..., $last".
static std::string listOperands(size_t first, size_t count) {
  SmallVector<std::string> names;
  for (size_t i = 0; i < count; ++i)
    names.push_back("$" + std::to_string(first + i));
  return llvm::join(names, ", ");
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void hopper::initBarrier(ThreadEmitter &emit, Value barrier, int64_t count) {
  memoryAsm(emit, {barrier, emit.i32(count)},
            "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r");
}

void hopper::fenceBarrierInit(ThreadEmitter &emit) {
  memoryAsm(emit, {}, "fence.mbarrier_init.release.cluster;", "");
  fenceAsyncShared(emit);
}

void hopper::waitBarrier(ThreadEmitter &emit, Value barrier, Value parity) {
  memoryAsm(emit, {barrier, parity},
            "{\n\t.reg .pred complete;\n"
            "wait_${:uid}:\n\t"
            "mbarrier.try_wait.parity.shared::cta.b64 complete, [$0], $1;\n\t"
            "@complete bra done_${:uid};\n\t"
            "bra wait_${:uid};\n"
            "done_${:uid}:\n\t}",
            "r,r");
}

void hopper::arriveBarrier(ThreadEmitter &emit, Value barrier) {
  memoryAsm(emit, barrier, "mbarrier.arrive.shared::cta.b64 _, [$0];", "r");
}

void hopper::arriveBarrierIf(ThreadEmitter &emit, Value predicate,
                             Value barrier) {
  memoryAsm(emit, {predicate, barrier},
            "@$0 mbarrier.arrive.shared::cta.b64 _, [$1];", "b,r");
}

void hopper::expectBytes(ThreadEmitter &emit, Value barrier, int64_t bytes) {
  memoryAsm(emit, {barrier, emit.i32(bytes)},
            "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,r");
}

void hopper::loadTensor(ThreadEmitter &emit, Value sharedAddress, Value map,
                        ValueRange coordinates, Value barrier) {
  SmallVector<Value> operands = {sharedAddress, map, barrier};
  llvm::append_range(operands, coordinates);
  std::string text =
      llvm::formatv("cp.async.bulk.tensor.{0}d.shared::cluster.global.tile."
                    "mbarrier::complete_tx::bytes [$0], [$1, {{{1}}], [$2];",
                    coordinates.size(), listOperands(3, coordinates.size()));
  std::string constraints = "r,l,r";
  for (size_t i = 0; i < coordinates.size(); ++i)
    constraints += ",r";
  memoryAsm(emit, operands, text, constraints);
}

void hopper::storeTensor(ThreadEmitter &emit, Value map, ValueRange coordinates,
                         Value sharedAddress) {
  SmallVector<Value> operands = {map, sharedAddress};
  llvm::append_range(operands, coordinates);
  std::string text = llvm::formatv(
      "cp.async.bulk.tensor.{0}d.global.shared::cta.tile.bulk_group "
      "[$0, {{{1}}], [$1];",
      coordinates.size(), listOperands(2, coordinates.size()));
  std::string constraints = "l,r";
  for (size_t i = 0; i < coordinates.size(); ++i)
    constraints += ",r";
  memoryAsm(emit, operands, text, constraints);
}

void hopper::waitStoresRead(ThreadEmitter &emit) {
  memoryAsm(emit, {}, "cp.async.bulk.commit_group;", "");
  memoryAsm(emit, {}, "cp.async.bulk.wait_group.read 0;", "");
}

void hopper::fenceAsyncShared(ThreadEmitter &emit) {
  memoryAsm(emit, {}, "fence.proxy.async.shared::cta;", "");
}

void hopper::syncWarpgroup(ThreadEmitter &emit, Value index) {
  // Barrier 0 is that of the whole program.
  memoryAsm(emit, emit.add(index, emit.i32(1)), "bar.sync $0, 128;", "r");
}

void hopper::storeMatrix(ThreadEmitter &emit, Value address,
                         ArrayRef<Value> words, int64_t offset) {
  SmallVector<Value> operands = {address};
  for (Value word : words)
    operands.push_back(emit.bitcast(word, emit.getI32Type()));
  std::string text = llvm::formatv("stmatrix.sync.aligned.m8n8.x4.shared.b16 "
                                   "[$0+{0}], {{$1, $2, $3, $4};",
                                   offset);
  memoryAsm(emit, operands, text, "r,r,r,r,r");
}

void hopper::storeWord(ThreadEmitter &emit, Value address, Value word) {
  memoryAsm(emit, {address, word}, "st.shared.b32 [$0], $1;", "r,r");
}

Value hopper::loadWord(ThreadEmitter &emit, Value address) {
  return inlineAsm(emit, emit.getI32Type(), address, "ld.shared.b32 $0, [$1];",
                   "=r,r,~{memory}")
      .getResult(0);
}

SmallVector<Value> hopper::loadPair(ThreadEmitter &emit, Value address,
                                    int64_t bytes) {
  if (bytes == 1)
    return emit.splitBytes(inlineAsm(emit, emit.getI16Type(), address,
                                     "ld.shared.b16 $0, [$1];",
                                     "=h,r,~{memory}")
                               .getResult(0));
  Type i32 = emit.getI32Type();
  Value pair =
      inlineAsm(
          emit, LLVM::LLVMStructType::getLiteral(emit.getContext(), {i32, i32}),
          address, "ld.shared.v2.b32 {$0, $1}, [$2];", "=r,=r,r,~{memory}")
          .getResult(0);
  return {emit.create<LLVM::ExtractValueOp>(pair, 0),
          emit.create<LLVM::ExtractValueOp>(pair, 1)};
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static StringRef getPTXType(Type type) {
  return llvm::TypeSwitch<Type, StringRef>(type)
      .Case([](BFloat16Type) { return "bf16"; })
      .Case([](Float8E4M3FNType) { return "e4m3"; })
      .Case([](Float8E5M2Type) { return "e5m2"; })
      .Default([](Type) { return "f16"; });
}

Value hopper::convertToFloat8(ThreadEmitter &emit, Value low, Value high,
                              Type type) {
  // The instruction takes the upper half first, and saturates.
  StringRef name = isa<Float8E5M2Type>(type) ? "llvm.nvvm.ff.to.e5m2x2.rn"
                                             : "llvm.nvvm.ff.to.e4m3x2.rn";
  return emit.intrinsic(name, emit.getI16Type(), {high, low});
}

SmallVector<Value> hopper::multiply(ThreadEmitter &emit,
                                    const WarpgroupProduct &product,
                                    ValueRange accumulator) {
  // A thread holds half as many values as there are columns: 64 rows over 128
  // threads.
  size_t numResults = product.columns / 2;
  size_t first = numResults + accumulator.size();
  size_t b = first + product.a.size();
  bool isAInRegisters = product.a.size() > 1;
  std::string a = listOperands(first, product.a.size());
  // 8-bit operands are never transposed, and have no operand to say so.
  int64_t bits = product.elementA.getIntOrFloatBitWidth();
  std::string transpose;
  if (bits == 16)
    transpose = llvm::formatv(", {0}{1}", isAInRegisters ? "" : "0, ",
                              product.isBTransposed ? 1 : 0);
  std::string text = llvm::formatv(
      "{{\n\t.reg .pred accumulate;\n\t"
      "setp.ne.b32 accumulate, {0}, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n{1}k{2}.f32.{3}.{4} {{{5}}, {6}, ${7}, "
      "accumulate, 1, 1{8};\n\t}",
      accumulator.empty() ? 0 : 1, product.columns, 256 / bits,
      getPTXType(product.elementA), getPTXType(product.elementB),
      listOperands(0, numResults), isAInRegisters ? "{" + a + "}" : a, b,
      transpose);
  SmallVector<Value> operands(product.a);
  operands.push_back(product.b);
  return tiedAsm(emit, accumulator, numResults, operands, text,
                 isAInRegisters ? "r,r,r,r,l" : "l,l");
}

SmallVector<Value> hopper::waitProducts(ThreadEmitter &emit, int64_t inFlight,
                                        ValueRange values) {
  std::string text =
      llvm::formatv("wgmma.wait_group.sync.aligned {0};", inFlight);
  return tiedAsm(emit, values, values.size(), {}, text, "~{memory}");
}
