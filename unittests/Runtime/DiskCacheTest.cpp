//===- DiskCacheTest.cpp - Compiled kernels in a folder -------------------===//

#include "attn/Runtime/DiskCache.h"
#include "TestUtils.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <atomic>
#include <fstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace attn;
using namespace attn::test;
namespace fs = llvm::sys::fs;

namespace {

class DiskCacheTest : public testing::Test {
protected:
  DiskCacheTest() {
    llvm::SmallString<128> path;
    EXPECT_FALSE(fs::createUniqueDirectory("attnc-cache", path));
    folder = path.str().str();
  }
  ~DiskCacheTest() override { fs::remove_directories(folder); }

  std::string getPath(const std::string &key) const {
    return folder + "/" + key + ".attnc";
  }
  std::string read(const std::string &key) const {
    auto buffer = llvm::MemoryBuffer::getFile(getPath(key));
    return buffer ? (*buffer)->getBuffer().str() : "";
  }
  void write(const std::string &key, llvm::StringRef bytes) const {
    std::error_code code;
    llvm::raw_fd_ostream os(getPath(key), code);
    os << bytes;
  }

  std::string folder;
  const std::string key = DiskCache::getKey({"a"});
};

} // namespace

TEST_F(DiskCacheTest, KeysDependOnEveryPartAndOnTheirBorders) {
  EXPECT_EQ(DiskCache::getKey({"ab", "c"}), DiskCache::getKey({"ab", "c"}));
  EXPECT_NE(DiskCache::getKey({"ab", "c"}), DiskCache::getKey({"a", "bc"}));
  EXPECT_NE(DiskCache::getKey({"ab"}), DiskCache::getKey({"ab", ""}));
  EXPECT_EQ(key.size(), 64u);
}

TEST_F(DiskCacheTest, FindsWhatWasStored) {
  const DiskCache cache(folder + "/made/by/store");
  EXPECT_FALSE(cache.lookup(key));
  ASSERT_EQ(getError(cache.store(
                key, {"manifest", {std::string("\0image", 6), "", "3"}})),
            "");
  auto found = cache.lookup(key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->manifest, "manifest");
  EXPECT_EQ(found->images,
            (std::vector<std::string>{std::string("\0image", 6), "", "3"}));
  EXPECT_FALSE(cache.lookup(DiskCache::getKey({"b"})));
}

TEST_F(DiskCacheTest, NeverReturnsADamagedEntry) {
  const DiskCache cache(folder);
  ASSERT_EQ(getError(cache.store(key, {"manifest", {"image"}})), "");
  const std::string whole = read(key);
  fuzz(whole, /*mutants=*/300, [&](const std::string &bytes) {
    if (bytes == whole)
      return;
    write(key, bytes);
    EXPECT_NE(getError(cache.verify(key)), "");
    EXPECT_FALSE(cache.lookup(key));
    EXPECT_FALSE(fs::exists(getPath(key)));
  });
  // Nor one that was renamed.
  const std::string other = DiskCache::getKey({"b"});
  write(other, whole);
  EXPECT_TRUE(contains(getError(cache.verify(other)), "checksum"));
  EXPECT_FALSE(cache.lookup(other));
}

TEST_F(DiskCacheTest, SurvivesEntriesThatAreCutOffWhileTheyAreRead) {
  const DiskCache cache(folder);
  const CachedModule module{"manifest", {std::string(16 << 20, 'x')}};
  for (int delay = 0; delay < 10; ++delay) {
    ASSERT_EQ(getError(cache.store(key, module)), "");
    std::thread cutter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(delay));
      write(key, "cut");
    });
    auto found = cache.lookup(key);
    cutter.join();
    EXPECT_TRUE(!found || found->images == module.images);
  }
}

TEST_F(DiskCacheTest, RemovesTheLeastRecentlyUsed) {
  const std::string image(1000, 'x');
  auto getPart = [](int i) { return DiskCache::getKey({std::to_string(i)}); };
  const DiskCache cache(folder, /*maxBytes=*/3500);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(getError(cache.store(getPart(i), {"", {image}})), "");
    usleep(20000);
  }
  EXPECT_TRUE(cache.lookup(getPart(0)));
  usleep(20000);
  ASSERT_EQ(getError(cache.store(getPart(3), {"", {image}})), "");
  EXPECT_FALSE(cache.lookup(getPart(1)));
  for (int i : {0, 2, 3})
    EXPECT_TRUE(cache.lookup(getPart(i))) << i;
  EXPECT_EQ(get(cache.list()).size(), 3u);
}

TEST_F(DiskCacheTest, ClearsWhatIsItsOwn) {
  const DiskCache cache(folder);
  ASSERT_EQ(getError(cache.store(key, {"manifest", {"image"}})), "");
  write("note", "a file of someone else");
  {
    std::ofstream(folder + "/writing-12345678") << "left by a process";
  }
  ASSERT_EQ(getError(cache.clear()), "");
  EXPECT_TRUE(get(cache.list()).empty());
  EXPECT_FALSE(fs::exists(folder + "/writing-12345678"));
  EXPECT_TRUE(fs::exists(getPath("note")));
}

TEST_F(DiskCacheTest, SaysWhyItCantStore) {
  {
    std::ofstream(folder + "/file") << "no folder";
  }
  const DiskCache cache(folder + "/file");
  EXPECT_TRUE(
      contains(getError(cache.store(key, {"", {""}})), folder + "/file"));
  EXPECT_FALSE(cache.lookup(key));
}

TEST_F(DiskCacheTest, KeepsNothingMoreWhereItsLimitIsNoNumber) {
  const DiskCache cache(folder);
  ASSERT_EQ(getError(cache.store(key, {})), "");
  const std::string other = DiskCache::getKey({"b"});
  for (const char *text : {"foo", "1e9", "-1", "5 GB"}) {
    setenv("ATTNC_CACHE_BYTES", text, /*overwrite=*/1);
    EXPECT_EQ(getError(cache.getMaxBytes().takeError()),
              "ATTNC_CACHE_BYTES is '" + std::string(text) +
                  "', needed is a number of bytes");
    EXPECT_TRUE(contains(getError(cache.store(other, {})), "is '"));
    EXPECT_TRUE(cache.lookup(key));
    EXPECT_FALSE(cache.lookup(other));
    EXPECT_EQ(get(DiskCache(folder, 7).getMaxBytes()), 7u);
  }
  setenv("ATTNC_CACHE_BYTES", "123", /*overwrite=*/1);
  EXPECT_EQ(get(cache.getMaxBytes()), 123u);
  unsetenv("ATTNC_CACHE_BYTES");
  EXPECT_EQ(get(cache.getMaxBytes()), DiskCache::kDefaultMaxBytes);
}

/// Stores, finds and damages entries; returns how many were found wrong.
static int hammer(const std::string &folder, unsigned seed) {
  const DiskCache cache(folder, /*maxBytes=*/20000);
  std::mt19937 random(seed);
  int wrong = 0;
  for (int i = 0; i < 400; ++i) {
    const std::string text = std::to_string(random() % 8);
    const std::string key = DiskCache::getKey({text});
    const std::string image(100 + 1000 * (text[0] - '0'), text[0]);
    if (auto found = cache.lookup(key)) {
      wrong += found->manifest != text || found->images != std::vector{image};
    } else {
      // Another process may be pruning the same entries.
      llvm::consumeError(cache.store(key, {text, {image}}));
    }
    if (i % 10 == 0)
      (void)truncate((folder + "/" + key + ".attnc").c_str(), random() % 300);
  }
  return wrong;
}

TEST_F(DiskCacheTest, ServesProcessesAndThreadsSideBySide) {
  const pid_t child = fork();
  if (child == 0)
    _exit(hammer(folder, 1));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned seed = 2; seed < 6; ++seed)
    threads.emplace_back([&, seed] { wrong += hammer(folder, seed); });
  for (std::thread &thread : threads)
    thread.join();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(wrong, 0);
}
