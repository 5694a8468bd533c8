//===- Probes.cpp - What a card can do at best ----------------------------===//

#include "attn/Profile/Profiler.h"
#include "attn/Runtime/EventTimer.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;

/// Times of which the best counts.
static constexpr int kRepetitions = 5;

/// The best time of work on the device's own stream, in microseconds.
static llvm::Expected<double> timeBest(Device &device,
                                       llvm::function_ref<llvm::Error()> work) {
  double best = 0;
  for (int i = 0; i <= kRepetitions; ++i) {
    llvm::Expected<double> elapsed = timeByEvents(device, work);
    if (!elapsed)
      return elapsed.takeError();
    // The first warms up.
    if (i > 0)
      best = i == 1 ? *elapsed : std::min(best, *elapsed);
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Bandwidth
//===----------------------------------------------------------------------===//

llvm::Expected<std::optional<double>> attn::measureBandwidth(Device &device) {
  if (!device.isGPU())
    return std::nullopt;
  // Far larger than the cache, and long enough to hide the launch.
  const int64_t bytes =
      std::max<int64_t>(4 * device.getCacheBytes(), 512 << 20);
  auto memory = DeviceMemory::allocate(device, 2 * bytes);
  if (!memory)
    return memory.takeError();
  const DeviceAddress source = memory->getAddress();
  llvm::Expected<double> best = timeBest(device, [&] {
    return device.copy(source + bytes, source, bytes, device.getOwnStream());
  });
  if (!best)
    return best.takeError();
  return 2 * bytes / (*best * 1e-6);
}

//===----------------------------------------------------------------------===//
// Matrix rate
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral kProbeName = "attn_matrix_probe";
static constexpr int64_t kProbeThreads = 256;
/// Some milliseconds: the clock settles, and launching doesn't count.
static constexpr int64_t kProbeIterations = 2000;
/// Products that a thread group has under way.
static constexpr int64_t kProbeUnroll = 8;

static constexpr int64_t kWgmmaFlops = 2 * 64 * 256 * 16;
static constexpr int64_t kMmaFlops = 2 * 16 * 8 * 16;
static constexpr int64_t kWgmmaAccumulators = 128;
static constexpr int64_t kMmaAccumulators = 4 * kProbeUnroll;

static bool usesWgmma(llvm::StringRef target) { return target == "sm_90a"; }

int64_t attn::getMatrixProbeFlopsPerBlock(llvm::StringRef target) {
  return usesWgmma(target)
             ? kProbeThreads / 128 * kProbeIterations * kProbeUnroll *
                   kWgmmaFlops
             : kProbeThreads / 32 * kProbeIterations * kProbeUnroll * kMmaFlops;
}

/// "{%f0, %f1, ...}"
static std::string listRegisters(const char *prefix, int64_t first,
                                 int64_t count) {
  std::string text = "{";
  for (int64_t i = first; i < first + count; ++i)
    text += (i > first ? ", " : "") + std::string(prefix) + std::to_string(i);
  return text + "}";
}

/// Bits of two random bfloat16 of either sign between 1/8 and 2: a card's clock
/// depends on what it multiplies, and zeros would flatter it.
static const char *const kNextRandom = R"(
  mad.lo.u32 %seed, %seed, 1664525, 1013904223;
  and.b32 %random, %seed, 0x81FF81FF;
  or.b32 %random, %random, 0x3E003E00;)";

/// The sums are carried through the loop: started anew in each iteration, all
/// but the last iteration's products would be dead, and ptxas drops them.
/// Unrolled, it takes ptxas 12 s.
static std::string beginLoop(int64_t accumulators) {
  std::string text;
  for (int64_t i = 0; i < accumulators; ++i)
    text += llvm::formatv("  mov.f32 %f{0}, 0f00000000;\n", i);
  return text + llvm::formatv("  mov.u32 %i, {0};\nloop:\n"
                              "  .pragma \"nounroll\";\n",
                              kProbeIterations)
                    .str();
}

/// Both operands from shared memory, of which each warpgroup multiplies the
/// first tiles. The values are random, so their order (the descriptors' layout)
/// means nothing.
static std::string getWgmmaBody() {
  std::string body = R"(
  .shared .align 128 .b8 tiles[16384];
  mov.u32 %address, tiles;
  mad.lo.u32 %pointer, %thread, 4, %address;
  mov.u32 %i, 16;
fill:)";
  body += kNextRandom;
  body += R"(
  st.shared.u32 [%pointer], %random;
  add.u32 %pointer, %pointer, 1024;
  sub.u32 %i, %i, 1;
  setp.ne.u32 %more, %i, 0;
  @%more bra fill;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  shr.u32 %pointer, %address, 4;
  cvt.u64.u32 %a, %pointer;
  or.b64 %a, %a, 0x0000001000080000;
  add.u64 %b, %a, 128;
)";
  body += beginLoop(kWgmmaAccumulators) + "  wgmma.fence.sync.aligned;\n";
  for (int64_t i = 0; i < kProbeUnroll; ++i)
    body += "  wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " +
            listRegisters("%f", 0, kWgmmaAccumulators) +
            ", %a, %b, 1, 1, 1, 0, 0;\n";
  return body + "  wgmma.commit_group.sync.aligned;\n"
                "  wgmma.wait_group.sync.aligned 0;\n";
}

static std::string getMmaBody() {
  std::string body;
  for (int64_t i = 0; i < 6; ++i)
    body += kNextRandom + llvm::formatv("\n  mov.b32 %r{0}, %random;", i).str();
  body += "\n" + beginLoop(kMmaAccumulators);
  for (int64_t i = 0; i < kProbeUnroll; ++i) {
    const std::string accumulators = listRegisters("%f", 4 * i, 4);
    body += "  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 " +
            accumulators + ", " + listRegisters("%r", 0, 4) + ", " +
            listRegisters("%r", 4, 2) + ", " + accumulators + ";\n";
  }
  return body;
}

std::string attn::getMatrixProbePTX(llvm::StringRef target) {
  const bool isWgmma = usesWgmma(target);
  const int64_t accumulators = isWgmma ? kWgmmaAccumulators : kMmaAccumulators;
  std::string ptx =
      llvm::formatv(".version {0}\n.target {1}\n.address_size 64\n"
                    ".visible .entry {2}(.param .u64 out)\n"
                    ".maxntid {3}, 1, 1\n",
                    isWgmma ? "8.0" : "7.0", target, kProbeName, kProbeThreads);
  ptx += R"({
  .reg .pred %more;
  .reg .b32 %thread, %seed, %random, %i, %address, %pointer;
  .reg .b64 %a, %b, %out;
  .reg .b32 %r<6>;
)";
  ptx += llvm::formatv("  .reg .f32 %f<{0}>;\n", accumulators);
  ptx += "  mov.u32 %thread, %tid.x;\n  add.u32 %seed, %thread, 12345;";
  ptx += isWgmma ? getWgmmaBody() : getMmaBody();
  ptx += "  sub.u32 %i, %i, 1;\n  setp.ne.u32 %more, %i, 0;\n"
         "  @%more bra loop;\n";
  // A result that nobody could see would not be computed.
  for (int64_t i = 1; i < accumulators; ++i)
    ptx += llvm::formatv("  add.f32 %f0, %f0, %f{0};\n", i);
  ptx += "  ld.param.u64 %out, [out];\n"
         "  mad.wide.u32 %out, %thread, 4, %out;\n"
         "  st.global.f32 [%out], %f0;\n  ret;\n}\n";
  return ptx;
}

llvm::Expected<std::optional<double>> attn::measureMatrixRate(Device &device) {
  if (!device.isGPU())
    return std::nullopt;
  const llvm::StringRef target = getBestTarget(device);
  llvm::Expected<std::unique_ptr<LoadedModule>> module =
      device.load({getMatrixProbePTX(target), nullptr});
  if (!module)
    return module.takeError();
  Kernel kernel = {};
  kernel.name = kProbeName.str();
  kernel.block = {kProbeThreads, 1, 1};
  kernel.cluster = {1, 1, 1};
  llvm::Expected<std::unique_ptr<LoadedKernel>> loaded =
      (*module)->getKernel(kernel);
  if (!loaded)
    return loaded.takeError();
  auto memory =
      DeviceMemory::allocate(device, kProbeThreads * int64_t(sizeof(float)));
  if (!memory)
    return memory.takeError();
  // mma.sync needs more warps to keep the units busy.
  const int64_t grid = device.getNumSMs() * (usesWgmma(target) ? 1 : 4);
  uint64_t out = memory->getAddress();
  void *parameters[] = {&out};
  llvm::Expected<double> best = timeBest(device, [&] {
    return device.launch(**loaded, grid, parameters, device.getOwnStream());
  });
  if (!best)
    return best.takeError();
  return grid * getMatrixProbeFlopsPerBlock(target) / (*best * 1e-6);
}
