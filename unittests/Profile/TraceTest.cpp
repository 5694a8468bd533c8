//===- TraceTest.cpp - A profile for Perfetto -----------------------------===//

#include "attn/Profile/Trace.h"
#include "TestProfile.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include <gtest/gtest.h>

using namespace attn;
using namespace attn::test;
namespace json = llvm::json;

static std::string write(const ProfileFile &file, uint64_t maxBytes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeTrace(os, file, {maxBytes});
  return text;
}

/// The trace, which must be JSON, and its events by phase.
struct ReadTrace {
  json::Value root = nullptr;
  llvm::StringMap<std::vector<const json::Object *>> events;

  explicit ReadTrace(const ProfileFile &file, uint64_t maxBytes = 32 << 20) {
    llvm::Expected<json::Value> parsed = json::parse(write(file, maxBytes));
    if (!parsed) {
      ADD_FAILURE() << llvm::toString(parsed.takeError());
      return;
    }
    root = std::move(*parsed);
    for (const json::Value &event :
         *root.getAsObject()->getArray("traceEvents"))
      events[*event.getAsObject()->getString("ph")].push_back(
          event.getAsObject());
  }

  int64_t getLeftOut() const {
    return *root.getAsObject()
                ->getObject("otherData")
                ->getInteger("records_left_out");
  }
};

static ProfileFile makeFile(int64_t launches, llvm::StringRef name = "k") {
  RegionBuilder builder;
  for (int64_t i = 0; i < launches; ++i) {
    builder.host(HostActivity::Launch, 1).idle(2).kernel(name, 3);
    builder.region.host.back().correlation = i + 1;
    builder.region.device.back().correlation = i + 1;
  }
  builder.phase("steady", launches).facts(name, 3000000, 0);
  ProfileFile file;
  file.environment = makeCard();
  file.regions.push_back(builder.region);
  return file;
}

TEST(TraceTest, LinksLaunchesToKernels) {
  ReadTrace trace(makeFile(2));
  // Two launches, two kernels, one phase.
  ASSERT_EQ(trace.events["X"].size(), 5u);
  ASSERT_EQ(trace.events["s"].size(), 2u);
  ASSERT_EQ(trace.events["f"].size(), 2u);
  const json::Object &start = *trace.events["s"][1];
  const json::Object &finish = *trace.events["f"][1];
  EXPECT_EQ(start.getInteger("id"), finish.getInteger("id"));
  EXPECT_NE(start.getInteger("id"), trace.events["s"][0]->getInteger("id"));
  // The launch starts at 5 us, its kernel 2 us later: within their slices.
  EXPECT_EQ(start.getNumber("ts"), 5);
  EXPECT_EQ(finish.getNumber("ts"), 7);
  EXPECT_EQ(finish.getString("bp"), "e");
  // The host's lane lies above the device's.
  EXPECT_LT(*start.getInteger("tid"), *finish.getInteger("tid"));
  EXPECT_EQ(trace.getLeftOut(), 0);
}

TEST(TraceTest, ShowsWhatIsKnownOfAKernel) {
  ReadTrace trace(makeFile(1));
  const json::Object *kernel = nullptr;
  for (const json::Object *event : trace.events["X"])
    if (event->getString("cat") == "kernel")
      kernel = event;
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->getString("name"), "k");
  EXPECT_EQ(kernel->getNumber("dur"), 3);
  const json::Object &args = *kernel->getObject("args");
  EXPECT_EQ(args.getInteger("registers"), 64);
  EXPECT_EQ(args.getInteger("analytic_bytes"), 3000000);
  EXPECT_EQ((*args.getArray("grid"))[0], 1000);
  // 3 MB in 3 us, then nothing.
  ASSERT_EQ(trace.events["C"].size(), 2u);
  EXPECT_EQ(trace.events["C"][0]->getObject("args")->getNumber("value"), 1000);
  EXPECT_EQ(trace.events["C"][1]->getObject("args")->getNumber("value"), 0);
}

TEST(TraceTest, DrawsNoArrowWithOneEnd) {
  ProfileFile file = makeFile(2);
  file.regions[0].device[0].correlation = 0;
  ReadTrace trace(file);
  EXPECT_EQ(trace.events["s"].size(), 1u);
  EXPECT_EQ(trace.events["f"].size(), 1u);
}

TEST(TraceTest, KeepsRegionsApart) {
  ProfileFile file = makeFile(1);
  file.regions.push_back(file.regions.front());
  ReadTrace trace(file);
  ASSERT_EQ(trace.events["s"].size(), 2u);
  EXPECT_NE(trace.events["s"][0]->getInteger("id"),
            trace.events["s"][1]->getInteger("id"));
  EXPECT_NE(trace.events["s"][0]->getInteger("pid"),
            trace.events["s"][1]->getInteger("pid"));
}

TEST(TraceTest, TakesAnyName) {
  ReadTrace trace(makeFile(1, "void f<\"a\\b\">\n\t\x02\xff\xc3(</script>)"));
  EXPECT_EQ(trace.events["X"].size(), 3u);
}

TEST(TraceTest, IsBounded) {
  constexpr int64_t kLaunches = 100000;
  const ProfileFile file = makeFile(kLaunches, std::string(500, 'k'));
  constexpr uint64_t kMaxBytes = 32 << 20;
  EXPECT_LT(write(file, kMaxBytes).size(), kMaxBytes + 10000);
  ReadTrace trace(file, 4 << 20);
  // What is left out is said and is the end of the run.
  const int64_t shown = trace.events["X"].size() - 1;
  EXPECT_EQ(shown + trace.getLeftOut(), 2 * kLaunches);
  EXPECT_GT(shown, 1000);
  EXPECT_GT(trace.getLeftOut(), 0);
}
