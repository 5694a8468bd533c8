//===- SummaryJSON.cpp - The summary in a profile's file ------------------===//

#include "SummaryJSON.h"
#include "attn/Profile/Findings.h"

using namespace attn;
namespace json = llvm::json;

template <typename T>
static json::Value toJSON(std::optional<T> value) {
  if (!value)
    return nullptr;
  return json::Value(*value);
}

static void writeKernel(json::OStream &os, const KernelSummary &kernel) {
  os.object([&] {
    os.attribute("kind", getName(kernel.activity));
    os.attribute("name", json::fixUTF8(kernel.name));
    os.attribute("calls", kernel.calls);
    os.attribute("median_us", kernel.time.median);
    os.attribute("min_us", kernel.time.min);
    os.attribute("max_us", kernel.time.max);
    os.attribute("total_us", kernel.totalUs);
    os.attribute("bytes", toJSON(kernel.bytes));
    os.attribute("flops", toJSON(kernel.flops));
    os.attribute("dense", kernel.isDense);
    os.attribute("bandwidth_fraction", toJSON(kernel.bandwidthFraction));
    os.attribute("matrix_fraction", toJSON(kernel.matrixFraction));
    os.attribute("path", kernel.path);
    os.attribute("path_source", kernel.pathSource);
    os.attribute("is_product", kernel.isProduct());
    os.attribute("measured_bytes", toJSON(kernel.measuredBytes));
    os.attribute("measured_occupancy", toJSON(kernel.measuredOccupancy));
    os.attribute("measured_matrix", toJSON(kernel.measuredMatrixFraction));
    if (kernel.bound)
      os.attribute("bound", getName(*kernel.bound));
    if (kernel.launch) {
      os.attribute("grid", json::Array(kernel.launch->grid));
      os.attribute("block", json::Array(kernel.launch->block));
      os.attribute("cluster", json::Array(kernel.launch->cluster));
      os.attribute("registers", toJSON(kernel.launch->registers));
      os.attribute("smem_bytes", toJSON(kernel.launch->getSharedBytes()));
      os.attribute("local_bytes", toJSON(kernel.launch->localBytes));
    }
    if (!kernel.occupancy)
      return;
    os.attribute("blocks_per_sm", kernel.occupancy->blocksPerSM);
    os.attribute("computed_occupancy", kernel.occupancy->getFraction());
    os.attribute("occupancy_limit", kernel.occupancy->limit);
    os.attribute("waves", toJSON(kernel.waves));
  });
}

static void writeHost(json::OStream &os, llvm::StringRef key,
                      const std::map<HostActivity, HostSummary> &activities) {
  os.attributeObject(key, [&] {
    for (const auto &entry : activities)
      os.attributeObject(getName(entry.first), [&] {
        os.attribute("count", entry.second.count);
        os.attribute("total_us", entry.second.totalUs);
        os.attribute("median_us", entry.second.medianUs);
      });
  });
}

void attn::writeSummary(json::OStream &os,
                        const ProfileEnvironment &environment,
                        const RegionProfile &region,
                        const PrintOptions &options) {
  const RegionSummary summary = summarize(environment, region);
  os.object([&] {
    os.attribute("calls", summary.calls);
    os.attribute("wall_us", summary.wallUs);
    os.attribute("busy_us", summary.busyUs);
    os.attribute("overlap_us", summary.overlapUs);
    os.attribute("idle_us", summary.idleUs);
    os.attribute("first_call_us", toJSON(summary.firstCallUs));
    if (const std::optional<Distribution> &call = summary.callUs)
      os.attributeObject("call_us", [&] {
        os.attribute("median", call->median);
        os.attribute("p10", call->low);
        os.attribute("p90", call->high);
      });
    os.attribute("bytes_per_call", toJSON(summary.getBytesPerCall()));
    os.attributeArray("kernels", [&] {
      for (const KernelSummary &kernel : summary.kernels)
        writeKernel(os, kernel);
    });
    writeHost(os, "host", summary.host);
    writeHost(os, "setup", summary.setup);
    os.attributeArray("findings", [&] {
      for (const Finding &finding : explain(environment, region))
        os.object([&] {
          os.attribute("rule", finding.rule);
          os.attribute("text", json::fixUTF8(format(finding, options.layers)));
          os.attribute("cost_us", toJSON(finding.costUs));
          os.attribute("cost_bytes", toJSON(finding.costBytes));
          os.attribute("once", finding.isOnce);
        });
    });
    os.attributeArray("expectations", [&] {
      for (const CheckedExpectation &guess :
           checkExpectations(options.expectations, region, summary))
        os.object([&] {
          os.attribute("text", json::fixUTF8(guess.expectation->text));
          os.attribute("measured", json::fixUTF8(guess.measured));
          os.attribute("right", guess.isRight);
        });
    });
  });
}

void attn::writeComparison(json::OStream &os, const Comparison &comparison) {
  os.object([&] {
    os.attribute("baseline", json::fixUTF8(comparison.baseline));
    os.attributeArray("rows", [&] {
      for (const Comparison::Row &row : comparison.rows) {
        const RegionSummary &summary = row.summary;
        const double wallUs = std::max(summary.wallUs, 1e-3);
        os.object([&] {
          os.attribute("region", json::fixUTF8(row.region->name));
          os.attribute("us_per_call", summary.getWallUsPerCall());
          os.attribute("ratio", toJSON(row.ratio));
          os.attribute("spread", toJSON(summary.getSpread()));
          os.attribute("kernels_per_call",
                       summary.getCountPerCall(DeviceActivity::Kernel));
          os.attribute("copies_per_call",
                       summary.getCountPerCall(DeviceActivity::Copy));
          os.attribute("bytes_per_call", toJSON(summary.getBytesPerCall()));
          os.attribute("idle_fraction", summary.idleUs / wallUs);
          const KernelSummary *kernel = summary.getMainKernel();
          os.attribute("main_kernel",
                       kernel ? json::Value(json::fixUTF8(kernel->name))
                              : json::Value(nullptr));
          os.attribute("path", kernel ? kernel->path : "");
        });
      }
    });
  });
}
