//===- Findings.cpp - What a profile means --------------------------------===//

#include "attn/Profile/Findings.h"
#include "attn/Runtime/TextTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace attn;

/// A kernel below this share of the device's busy time isn't worth a sentence.
static constexpr double kMinShare = 0.05;

/// The default limit of shared memory for one block, without the opt-in
/// (CUDA C++ programming guide).
static constexpr int64_t kDefaultSharedBytes = 48 << 10;

/// Occupancy that people ask about. FlashAttention's 13 % is below it.
static constexpr double kLowOccupancy = 0.25;

/// Rates that show a kernel to be near what the card can do: attention with its
/// softmax reaches 60-85 % of a pure matrix product, a good copy kernel 90 % of
/// the card's own copy (docs/Benchmarks.md).
static constexpr double kGoodMatrixFraction = 0.4;
static constexpr double kGoodBandwidthFraction = 0.6;

/// Below this share of both rates a kernel waits more than it works. In between
/// nothing is claimed: mma.sync alone reaches some 60 % of wgmma's rate on
/// sm_90, and softmax takes its part.
static constexpr double kPoorFraction = 0.15;

//===----------------------------------------------------------------------===//
// Formatting
//===----------------------------------------------------------------------===//

/// Three digits, in the first unit that isn't too large; else in the last one.
static std::string
formatScaled(double value,
             llvm::ArrayRef<std::pair<double, const char *>> units) {
  const auto *unit = llvm::find_if(
      units, [&](const auto &candidate) { return value >= candidate.first; });
  if (unit == units.end())
    unit = &units.back();
  const double scaled = value / unit->first;
  const int decimals = scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2;
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format("%.*f %s", decimals, scaled, unit->second);
  return text;
}

std::string attn::formatDuration(double microseconds) {
  return formatScaled(microseconds,
                      {{1e6, "s"}, {1e3, "ms"}, {1, "us"}, {1e-3, "ns"}});
}

std::string attn::formatFlops(int64_t flops) {
  if (flops < 1000)
    return std::to_string(flops);
  return formatScaled(flops, {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}});
}

static std::string formatPercent(double fraction) {
  return llvm::formatv(fraction < 0.1 ? "{0:F1} %" : "{0:F0} %", 100 * fraction)
      .str();
}

/// "12.5 %", "25 %"
static std::string formatOccupancy(const Occupancy &occupancy) {
  std::string text = llvm::formatv("{0:F1}", 100 * occupancy.getFraction());
  if (llvm::StringRef(text).ends_with(".0"))
    text.resize(text.size() - 2);
  return text + " %";
}

/// In quotes. The names of templates run to thousands of characters, which the
/// tables write out.
static std::string quote(llvm::StringRef name) {
  constexpr size_t kMaxLength = 100;
  if (name.size() <= kMaxLength)
    return ("'" + name + "'").str();
  return ("'" + name.take_front(kMaxLength - 3) + "...'").str();
}

static std::string formatRatio(double ratio) {
  return llvm::formatv(ratio < 10 ? "{0:F1}" : "{0:F0}", ratio).str();
}

std::string attn::format(const Finding &finding, int64_t layers) {
  if (layers == 0)
    return finding.text;
  const char *unit = layers == 1 ? "layer" : "layers";
  if (finding.costUs && finding.isOnce)
    return llvm::formatv("{0} In {1} {2} of one shape: {3}, once.",
                         finding.text, layers, unit,
                         formatDuration(*finding.costUs));
  if (finding.costUs)
    return llvm::formatv("{0} In {1} {2}: {3}.", finding.text, layers, unit,
                         formatDuration(*finding.costUs * layers));
  if (finding.costBytes)
    return llvm::formatv("{0} In {1} {2}: {3}.", finding.text, layers, unit,
                         formatBytes(*finding.costBytes * layers));
  return finding.text;
}

//===----------------------------------------------------------------------===//
// Helpers of the rules
//===----------------------------------------------------------------------===//

static double getUsPerCall(const RuleInput &input,
                           const KernelSummary &kernel) {
  return kernel.totalUs / input.summary.calls;
}

static bool isKernel(const KernelSummary &kernel) {
  return kernel.activity == DeviceActivity::Kernel;
}

static bool isWorthASentence(const RuleInput &input,
                             const KernelSummary &kernel) {
  return isKernel(kernel) && kernel.totalUs >= kMinShare * input.summary.busyUs;
}

/// The kernel that runs next on the stream of each copy, if it is always the
/// same one: whom the copy is made for.
static std::string findCopysUser(const RegionProfile &region,
                                 llvm::StringRef copy) {
  std::vector<const DeviceRecord *> records;
  for (const DeviceRecord &record : region.device)
    records.push_back(&record);
  llvm::sort(records, [](const DeviceRecord *a, const DeviceRecord *b) {
    return std::tuple(a->stream, a->startNs, a) <
           std::tuple(b->stream, b->startNs, b);
  });
  std::optional<unsigned> user;
  for (size_t i = 0; i + 1 < records.size(); ++i) {
    const DeviceRecord &next = *records[i + 1];
    if (records[i]->activity != DeviceActivity::Copy ||
        region.names[records[i]->name] != copy ||
        next.stream != records[i]->stream)
      continue;
    if (next.activity != DeviceActivity::Kernel || (user && *user != next.name))
      return "";
    user = next.name;
  }
  return user ? region.names[*user] : "";
}

/// What the matrix units need for the FLOPs of one launch.
static std::optional<double> getMatrixUs(const RuleInput &input,
                                         const KernelSummary &kernel) {
  const std::optional<double> rate = input.environment.matrixFlopsPerSecond;
  if (!rate || !kernel.flops)
    return std::nullopt;
  return *kernel.flops / *rate * 1e6;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

static void checkHiddenCopy(const RuleInput &input,
                            std::vector<Finding> &findings) {
  for (const KernelSummary &copy : input.summary.kernels) {
    if (copy.activity != DeviceActivity::Copy)
      continue;
    const double count = double(copy.calls) / input.summary.calls;
    const std::string user = findCopysUser(input.region, copy.name);
    std::string text = llvm::formatv(
        "Hidden copy: {0} runs {1} a call and takes {2}, {3} of the device's "
        "time.",
        quote(copy.name), count == 1 ? "once" : formatRatio(count) + " times",
        formatDuration(getUsPerCall(input, copy)),
        formatPercent(copy.totalUs / std::max(input.summary.busyUs, 1e-3)));
    if (!user.empty())
      text += llvm::formatv(
          " It is made for {0}, the kernel after it, which would otherwise "
          "overwrite its input; in place (masked_fill_ in PyTorch, "
          "attn-inplace-mask or --variant=inplace here) it is not needed.",
          quote(user));
    findings.push_back({"hidden-copy", text, getUsPerCall(input, copy)});
  }
}

static void checkVectorProduct(const RuleInput &input,
                               std::vector<Finding> &findings) {
  for (const KernelSummary &kernel : input.summary.kernels) {
    if (!isWorthASentence(input, kernel) || kernel.path != "FFMA")
      continue;
    const bool isKnown = kernel.flops && kernel.bytes && *kernel.bytes > 0;
    // A softmax multiplies in FP32 too; only a product belongs elsewhere.
    if (isKnown && !kernel.isProduct())
      continue;
    if (!isKnown && kernel.pathSource != "name")
      continue;
    std::string text = llvm::formatv(
        "Off the matrix units: {0} multiplies in FP32 on the CUDA cores "
        "(FFMA, read from its {1}) and takes {2} a call.",
        quote(kernel.name), kernel.pathSource,
        formatDuration(getUsPerCall(input, kernel)));
    std::optional<double> cost;
    if (std::optional<double> best = getMatrixUs(input, kernel)) {
      cost = std::max(0.0, getUsPerCall(input, kernel) -
                               *best * kernel.calls / input.summary.calls);
      text += llvm::formatv(" The matrix units would do its {0}FLOP in {1} "
                            "in 16 bits.",
                            formatFlops(*kernel.flops), formatDuration(*best));
    }
    findings.push_back({"fp32-product", text, cost});
  }
}

/// Names of kernels that build a mask and do nothing else: this project's and
/// PyTorch's.
static bool buildsMask(llvm::StringRef name) {
  static constexpr llvm::StringLiteral kHints[] = {
      "_mask_ones", "_mask_rule", "_mask_not", "_mask_bias", "triu_tril"};
  return llvm::any_of(
      kHints, [&](llvm::StringRef hint) { return name.contains(hint); });
}

static void checkMaskRebuilt(const RuleInput &input,
                             std::vector<Finding> &findings) {
  std::string names;
  double total = 0;
  int64_t count = 0;
  for (const KernelSummary &kernel : input.summary.kernels) {
    if (!isKernel(kernel) || !buildsMask(kernel.name))
      continue;
    names += (names.empty() ? "" : ", ") + quote(kernel.name);
    total += getUsPerCall(input, kernel);
    count += kernel.calls;
  }
  // Once for many calls is not "per call".
  if (count == 0 || count < input.summary.calls)
    return;
  findings.push_back(
      {"mask-rebuilt",
       llvm::formatv("Mask rebuilt: every call writes the same mask to memory "
                     "again ({0}), {1} a call. Built once or computed where "
                     "it is used it costs nothing.",
                     names, formatDuration(total)),
       total});
}

static void checkScoreMatrix(const RuleInput &input,
                             std::vector<Finding> &findings) {
  const std::optional<int64_t> least = input.region.minBytes;
  const std::optional<int64_t> intermediate = input.region.maxIntermediateBytes;
  const std::optional<double> moved = input.summary.getBytesPerCall();
  // A fused kernel may hold partial results, far smaller than scores. Without
  // any queries there is nothing to move.
  if (!least || !intermediate || !moved || *intermediate == 0 || *least == 0 ||
      *moved < 1.5 * *least)
    return;
  Finding finding = {"score-matrix", ""};
  finding.text = llvm::formatv(
      "Score matrix in memory: a call moves {0}, a fused kernel {1}, {2} times "
      "less; the largest intermediate has {3}.",
      formatBytes(std::llround(*moved)), formatBytes(*least),
      formatRatio(*moved / *least), formatBytes(*intermediate));
  const double difference = *moved - *least;
  if (input.environment.bandwidthBytesPerSecond) {
    finding.costUs =
        difference / *input.environment.bandwidthBytesPerSecond * 1e6;
    finding.text += llvm::formatv(" The difference takes at least {0}.",
                                  formatDuration(*finding.costUs));
  } else {
    finding.costBytes = std::llround(difference);
  }
  findings.push_back(std::move(finding));
}

static void checkLaunchBound(const RuleInput &input,
                             std::vector<Finding> &findings) {
  const RegionSummary &summary = input.summary;
  const double count = summary.getCountPerCall(DeviceActivity::Kernel);
  if (!input.environment.isGPU || count < 2 || summary.wallUs <= 0)
    return;
  const double idle = summary.idleUs / summary.wallUs;
  double total = 0;
  for (const KernelSummary &kernel : summary.kernels)
    if (isKernel(kernel))
      total += kernel.totalUs;
  const double mean = total / (count * summary.calls);
  // Longer kernels than that hide their launches (2-5 us each).
  if (idle < 0.3 || mean > 20)
    return;
  std::string text = llvm::formatv(
      "Launch-bound: {0} kernels a call of {1} each, and nothing runs in {2} "
      "of the time.",
      formatRatio(count), formatDuration(mean), formatPercent(idle));
  if (auto launch = summary.host.find(HostActivity::Launch);
      launch != summary.host.end())
    text += llvm::formatv(" A launch takes {0} on the host.",
                          formatDuration(launch->second.medianUs));
  text += " Fewer kernels or a CUDA graph help, faster kernels don't.";
  findings.push_back({"launch-bound", text, summary.idleUs / summary.calls});
}

/// "2 blocks of 128 threads an SM, limited by registers (255 a thread)"
static std::string describeLimit(const KernelSummary &kernel) {
  const Occupancy &occupancy = *kernel.occupancy;
  const LaunchConfig &launch = *kernel.launch;
  std::string text = llvm::formatv(
      "{0} block{1} of {2} threads an SM, limited by {3}",
      occupancy.blocksPerSM, occupancy.blocksPerSM == 1 ? "" : "s",
      launch.getThreadsPerBlock(), occupancy.limit);
  if (occupancy.limit == "registers")
    text += llvm::formatv(" ({0} a thread)", *launch.registers);
  else if (occupancy.limit == "shared memory")
    text +=
        llvm::formatv(" ({0} a block)", formatBytes(*launch.getSharedBytes()));
  return text;
}

static bool hasLowOccupancy(const KernelSummary &kernel) {
  return kernel.occupancy && kernel.occupancy->blocksPerSM > 0 &&
         kernel.occupancy->getFraction() <= kLowOccupancy;
}

/// "62 % of the measured matrix rate and 12 % of the measured bandwidth"
static std::string describeRates(const KernelSummary &kernel) {
  std::string text;
  if (kernel.matrixFraction)
    text += formatPercent(*kernel.matrixFraction) + " of the matrix rate";
  if (kernel.matrixFraction && kernel.bandwidthFraction)
    text += " and ";
  if (kernel.bandwidthFraction)
    text += formatPercent(*kernel.bandwidthFraction) + " of the bandwidth";
  return text + " measured on this card";
}

/// Of FLOPs that may not all be computed, nothing good is said.
static bool isNearTheCardsRates(const KernelSummary &kernel) {
  const double matrixFraction =
      kernel.isDense ? 0 : kernel.matrixFraction.value_or(0);
  return matrixFraction >= kGoodMatrixFraction ||
         kernel.bandwidthFraction.value_or(0) >= kGoodBandwidthFraction;
}

static void checkLowOccupancyFine(const RuleInput &input,
                                  std::vector<Finding> &findings) {
  for (const KernelSummary &kernel : input.summary.kernels)
    if (isWorthASentence(input, kernel) && hasLowOccupancy(kernel) &&
        isNearTheCardsRates(kernel))
      findings.push_back(
          {"low-occupancy-fine",
           llvm::formatv(
               "Low occupancy that is fine: {0} has {1} (computed): {2}. "
               "Registers and shared memory hold its tiles, and it reaches "
               "{3}; more warps would have less to work with.",
               quote(kernel.name), formatOccupancy(*kernel.occupancy),
               describeLimit(kernel), describeRates(kernel)),
           std::nullopt});
}

static void checkLowOccupancyBad(const RuleInput &input,
                                 std::vector<Finding> &findings) {
  for (const KernelSummary &kernel : input.summary.kernels) {
    // Without both rates nothing is shown; a grid that doesn't fill the device
    // has another problem.
    if (!isWorthASentence(input, kernel) || !hasLowOccupancy(kernel) ||
        !kernel.bandwidthFraction || !kernel.flops ||
        (*kernel.flops > 0 && !kernel.matrixFraction) ||
        kernel.waves.value_or(0) < 1)
      continue;
    if (*kernel.bandwidthFraction > kPoorFraction ||
        kernel.matrixFraction.value_or(0) > kPoorFraction)
      continue;
    findings.push_back(
        {"low-occupancy",
         llvm::formatv("Low occupancy that is not: {0} has {1} (computed): "
                       "{2}, and reaches only {3}. Few warps hide little "
                       "latency; smaller tiles or fewer {4} let more run.",
                       quote(kernel.name), formatOccupancy(*kernel.occupancy),
                       describeLimit(kernel), describeRates(kernel),
                       kernel.occupancy->limit == "registers"
                           ? "registers"
                           : "stages of loads"),
         std::nullopt});
  }
}

static void checkZeroOccupancy(const RuleInput &input,
                               std::vector<Finding> &findings) {
  for (const KernelSummary &kernel : input.summary.kernels) {
    if (!isWorthASentence(input, kernel) || !kernel.occupancy ||
        *kernel.launch->getSharedBytes() <= kDefaultSharedBytes ||
        kernel.occupancy->blocksPerSM == 0)
      continue;
    findings.push_back(
        {"zero-occupancy",
         llvm::formatv(
             "Not 0 %: profilers that compute occupancy with the default limit "
             "of 48 KiB show 0 % for {0}, which takes {1} KiB of shared "
             "memory. It opts in to more, and {2} blocks fit on an SM: {3} "
             "(computed with the opt-in limit).",
             quote(kernel.name),
             (*kernel.launch->getSharedBytes() + 1023) / 1024,
             kernel.occupancy->blocksPerSM, formatOccupancy(*kernel.occupancy)),
         std::nullopt});
  }
}

static void checkSpills(const RuleInput &input,
                        std::vector<Finding> &findings) {
  for (const KernelSummary &kernel : input.summary.kernels)
    if (isWorthASentence(input, kernel) && kernel.launch &&
        kernel.launch->localBytes.value_or(0) > 0)
      findings.push_back(
          {"local-memory",
           llvm::formatv("Local memory: {0} keeps {1} a thread in local "
                         "memory, registers that didn't fit or arrays.",
                         quote(kernel.name),
                         formatBytes(*kernel.launch->localBytes)),
           std::nullopt});
}

static void checkFirstCall(const RuleInput &input,
                           std::vector<Finding> &findings) {
  const std::optional<double> first = input.summary.firstCallUs;
  const double later = input.summary.getWallUsPerCall();
  // Calls that do nothing take no time to compare with.
  if (!first || later < 1 || *first < 3 * later)
    return;
  std::string text =
      llvm::formatv("First call slow: it took {0}, {1} times a later one",
                    formatDuration(*first), formatRatio(*first / later));
  llvm::SmallVector<std::string> parts;
  for (HostActivity activity : {HostActivity::Lookup, HostActivity::Compile,
                                HostActivity::Load, HostActivity::Plan})
    if (auto found = input.summary.setup.find(activity);
        found != input.summary.setup.end())
      parts.push_back(llvm::formatv("{0} {1}", getName(activity),
                                    formatDuration(found->second.totalUs)));
  if (!parts.empty())
    text += " (" + llvm::join(parts, ", ") + ")";
  text += ". A mean over all calls would hide that; the times here leave it "
          "out.";
  Finding finding = {"first-call", text, *first - later};
  finding.isOnce = true;
  findings.push_back(std::move(finding));
}

static void checkPlanning(const RuleInput &input,
                          std::vector<Finding> &findings) {
  auto plan = input.summary.host.find(HostActivity::Plan);
  if (plan == input.summary.host.end() ||
      plan->second.count < input.summary.calls)
    return;
  const double perCall = plan->second.totalUs / input.summary.calls;
  if (perCall < 1 || perCall < 0.02 * input.summary.getWallUsPerCall())
    return;
  findings.push_back(
      {"planning",
       llvm::formatv("Planning per call: the host makes a plan in every call, "
                     "{0} of {1}. Kept by shape, it is made once.",
                     formatDuration(perCall),
                     formatDuration(input.summary.getWallUsPerCall())),
       perCall});
}

static void checkWaves(const RuleInput &input, std::vector<Finding> &findings) {
  for (const KernelSummary &kernel : input.summary.kernels) {
    if (!isWorthASentence(input, kernel) || !kernel.waves)
      continue;
    const int64_t blocks = kernel.launch->getNumBlocks();
    const double needed = std::ceil(*kernel.waves);
    const double efficiency = *kernel.waves / needed;
    std::string text;
    double cost = 0;
    if (blocks < input.environment.numSMs) {
      text =
          llvm::formatv("Idle multiprocessors: {0} has {1} blocks for {2} "
                        "multiprocessors.",
                        quote(kernel.name), blocks, input.environment.numSMs);
      cost = 1 - double(blocks) / input.environment.numSMs;
    } else if (*kernel.waves > 1 && efficiency < 0.8) {
      text = llvm::formatv(
          "Wave quantisation: {0} has {1} blocks, {2} fit at once: {3:F2} "
          "waves take as long as {4}, so that up to {5} of the device is idle.",
          quote(kernel.name), blocks,
          kernel.occupancy->blocksPerSM * input.environment.numSMs,
          *kernel.waves, int64_t(needed), formatPercent(1 - efficiency));
      cost = 1 - efficiency;
    }
    if (!text.empty())
      findings.push_back({"waves", text, cost * getUsPerCall(input, kernel)});
  }
}

static void checkImbalance(const RuleInput &input,
                           std::vector<Finding> &findings) {
  for (const KernelSummary &kernel : input.summary.kernels) {
    // In many waves the long blocks run beside several short ones.
    if (!isWorthASentence(input, kernel) ||
        kernel.workImbalance.value_or(1) < 1.3 || !kernel.waves ||
        *kernel.waves > 3)
      continue;
    // As if a longest block began when the others end.
    const double excess = *kernel.workImbalance - 1;
    const double cost = excess / (std::max(*kernel.waves, 1.0) + excess) *
                        getUsPerCall(input, kernel);
    findings.push_back(
        {"imbalance",
         llvm::formatv("Load imbalance: the longest block of {0} visits {1} "
                       "times the tiles of the mean one (the mask skips the "
                       "rest), and in {2:F1} waves others can't make up for "
                       "it: up to {3} a call. A persistent schedule does.",
                       quote(kernel.name), formatRatio(*kernel.workImbalance),
                       *kernel.waves, formatDuration(cost)),
         cost});
  }
}

static void checkClock(const RuleInput &input, std::vector<Finding> &findings) {
  const ProfileEnvironment &environment = input.environment;
  const bool isLow = environment.clockMHz && environment.maxClockMHz &&
                     *environment.clockMHz < 0.95 * *environment.maxClockMHz;
  if (!isLow && environment.throttleReasons.empty())
    return;
  std::string text = "Clock limit:";
  std::optional<double> cost;
  if (environment.clockMHz && environment.maxClockMHz) {
    text += llvm::formatv(" the card ran at {0} of {1} MHz",
                          *environment.clockMHz, *environment.maxClockMHz);
    if (isLow)
      cost = (1 - double(*environment.clockMHz) / *environment.maxClockMHz) *
             input.summary.busyUs / input.summary.calls;
  } else {
    text += " the card was slowed down";
  }
  if (!environment.throttleReasons.empty())
    text += " (" + llvm::join(environment.throttleReasons, ", ") + ")";
  text += ". Compare only runs made side by side.";
  findings.push_back({"clock", text, cost});
}

static void checkUnseenWork(const RuleInput &input,
                            std::vector<Finding> &findings) {
  const RegionSummary &summary = input.summary;
  // Starting a kernel takes a few microseconds, too.
  constexpr double kMinIdleUs = 10;
  if (input.environment.isGPU || summary.idleUs < 0.2 * summary.wallUs ||
      summary.idleUs < kMinIdleUs * summary.calls)
    return;
  findings.push_back(
      {"unseen-work",
       llvm::formatv("Work that isn't seen: {0} of the time is called idle, "
                     "which on a CPU is all but the kernels of this project. "
                     "What other libraries, such as PyTorch or NumPy, compute "
                     "is in it.",
                     formatPercent(summary.idleUs / summary.wallUs)),
       std::nullopt});
}

static constexpr FindingRule kRules[] = {
    {"hidden-copy", "a copy on the device in the steady phase",
     checkHiddenCopy},
    {"fp32-product", "a matrix product in FP32 on the CUDA cores",
     checkVectorProduct},
    {"mask-rebuilt", "kernels that build the mask in every call",
     checkMaskRebuilt},
    {"score-matrix", "1.5 times the least bytes or more, with an intermediate",
     checkScoreMatrix},
    {"launch-bound",
     "short kernels (20 us or less in the mean) and 30 % idle or more",
     checkLaunchBound},
    {"low-occupancy-fine",
     "25 % occupancy or less at 40 % of the matrix rate or 60 % of the "
     "bandwidth",
     checkLowOccupancyFine},
    {"low-occupancy", "25 % occupancy or less at 15 % of both rates or less",
     checkLowOccupancyBad},
    {"zero-occupancy", "more than 48 KiB of shared memory", checkZeroOccupancy},
    {"local-memory", "a kernel that uses local memory", checkSpills},
    {"first-call", "the first call took 3 times a later one or more",
     checkFirstCall},
    {"planning", "a plan in every call that takes 2 % of it or more",
     checkPlanning},
    {"waves", "the last wave of blocks leaves 20 % of the device idle or more",
     checkWaves},
    {"imbalance",
     "a block with 1.3 times the mean's work or more in at most 3 waves",
     checkImbalance},
    {"clock", "the clock is limited or 5 % below its maximum", checkClock},
    {"unseen-work", "20 % idle or more on a CPU, at least 10 us a call",
     checkUnseenWork},
};

llvm::ArrayRef<FindingRule> attn::getFindingRules() { return kRules; }

std::vector<Finding> attn::explain(const ProfileEnvironment &environment,
                                   const RegionProfile &region) {
  const RegionSummary summary = summarize(environment, region);
  std::vector<Finding> findings;
  for (const FindingRule &rule : kRules)
    rule.check({environment, region, summary}, findings);
  return findings;
}
