//===- MaskPrepassTest.cpp - Ranges from captured data against brute force ===//
//
// Masks that read captures go through convert-attn-to-tile; the kernels that
// bound them run on concrete data, and the ranges that they write are compared,
// tile by tile, with what every element of the mask says.
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"
#include <functional>
#include <numeric>
#include <random>

using namespace attn::test;

namespace {
constexpr int32_t kBlockM = 8, kBlockN = 8;

/// A capture, and which of query and key the mask reads it by.
struct Capture {
  std::string type;
  bool byQuery, byKey;
};

enum class Kind { Skipped, Partial, Full };

int32_t countTiles(int32_t length, int32_t block) {
  return (length + block - 1) / block;
}

/// The kernels that bound one mask_mod, whose captures are %x and %y.
class Prepass {
public:
  Prepass(std::vector<Capture> captures, const std::string &rule)
      : captures(std::move(captures)), kernels(build(rule)) {}

  /// Runs them on one array a capture.
  void run(int32_t numQueries, int32_t numKeys, std::vector<void *> data) {
    this->numQueries = numQueries;
    this->numKeys = numKeys;
    Params params;
    int32_t numExtremes = 0;
    std::vector<std::vector<int32_t>> extremes;
    for (auto [capture, pointer] : llvm::zip_equal(captures, data)) {
      std::vector<int32_t> sizes;
      if (capture.byQuery)
        sizes.push_back(numQueries);
      if (capture.byKey)
        sizes.push_back(numKeys);
      params.addMemRef(pointer, sizes, {});
    }
    std::vector<std::vector<int32_t>> sizes;
    for (const Capture &capture : captures) {
      sizes.push_back({1, 1,
                       capture.byQuery ? countTiles(numQueries, kBlockM) : 1,
                       capture.byKey ? countTiles(numKeys, kBlockN) : 1});
      int32_t count = sizes.back()[2] * sizes.back()[3];
      numExtremes += count;
      extremes.emplace_back(2 * count + 1);
    }
    for (auto [size, array] : llvm::zip_equal(sizes, extremes))
      params.addMemRef(array.data(), size, {});
    params.addI32(numQueries).addI32(numKeys);
    kernels.run("fused_attn_cpu_f32_d32_extremes", numExtremes, params);
    int32_t numGranules = countTiles(numQueries, kBlockM);
    ranges.assign(4 * numGranules + 1, -1);
    params.addMemRef(ranges.data(), {1, 1, numGranules}, {});
    kernels.run("fused_attn_cpu_f32_d32_ranges", numGranules, params);
  }

  /// Compares the ranges with what `isVisible` says: they must hide nothing and
  /// show nothing wrong, and if `isExact`, be the tiles' kinds.
  void check(std::function<bool(int32_t, int32_t)> isVisible, bool isExact) {
    for (int32_t granule = 0; granule * kBlockM < numQueries; ++granule)
      for (int32_t tile = 0; tile * kBlockN < numKeys; ++tile) {
        Kind actual = getActual(granule, tile * kBlockN);
        Kind expected = getExpected(granule, tile * kBlockN, isVisible);
        if (isExact)
          ASSERT_EQ(actual, expected) << granule << ", " << tile;
        else
          ASSERT_TRUE(actual == expected || actual == Kind::Partial)
              << granule << ", " << tile;
      }
  }

private:
  Kernels build(const std::string &rule) {
    mlir::DialectRegistry registry;
    mlir::attn::registerAttncDialects(registry);
    mlir::MLIRContext context(registry);
    context.loadAllAvailableDialects();
    std::string types, names, arguments, formal;
    const char *letters[] = {"x", "y"};
    for (auto [letter, capture] : llvm::zip(letters, captures)) {
      types += ", " + capture.type;
      names += std::string(", %") + letter;
      arguments += std::string(", %") + letter + ": " + capture.type;
    }
    std::string text = substitute(R"mlir(
!qkv = memref<?x4x?x32xf32>
func.func @f(%q: !qkv, %o: !qkv$arguments) {
  attn.attention ins(%q, %q, %q$names : !qkv, !qkv, !qkv$types) outs(%o : !qkv)
    {schedule = #attn.schedule<block_m = $M, block_n = $N, num_stages = 1,
                               num_warps = 1>}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32$arguments) {
      $rule
      attn.yield %r : i1
    }
  return
})mlir",
                                  {{"arguments", arguments},
                                   {"names", names},
                                   {"types", types},
                                   {"M", std::to_string(kBlockM)},
                                   {"N", std::to_string(kBlockN)},
                                   {"rule", rule}});
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    mlir::PassManager pm(&context);
    pm.addPass(mlir::attn::createConvertAttnToTile({"cpu"}));
    if (!module || failed(pm.run(*module)))
      llvm::report_fatal_error("the mask doesn't lower");
    for (auto func :
         llvm::make_early_inc_range(module->getOps<mlir::func::FuncOp>()))
      func.erase();
    for (auto kernel :
         llvm::make_early_inc_range(module->getOps<mlir::tile::KernelOp>()))
      if (kernel.getName().ends_with("_d32"))
        kernel.erase();
    std::string printed;
    llvm::raw_string_ostream(printed) << *module;
    return Kernels(printed);
  }

  Kind getActual(int32_t granule, int32_t key) {
    const int32_t *range = &ranges[4 * granule];
    if (key < range[0] || key >= range[3])
      return Kind::Skipped;
    return key >= range[1] && key < range[2] ? Kind::Full : Kind::Partial;
  }

  Kind getExpected(int32_t granule, int32_t key,
                   const std::function<bool(int32_t, int32_t)> &isVisible) {
    int32_t count = 0, numRows = 0;
    for (int32_t i = granule * kBlockM;
         i < std::min((granule + 1) * kBlockM, numQueries); ++i, ++numRows)
      for (int32_t j = key; j < std::min(key + kBlockN, numKeys); ++j)
        count += isVisible(i, j);
    if (count == 0)
      return Kind::Skipped;
    return count == numRows * kBlockN ? Kind::Full : Kind::Partial;
  }

  std::vector<Capture> captures;
  Kernels kernels;
  int32_t numQueries = 0, numKeys = 0;
  std::vector<int32_t> ranges;
};

/// Calls `fn` with every way to cut `length` positions into documents 0, 1, 2
/// that aren't empty.
void forEachPacking(int32_t length,
                    llvm::function_ref<void(std::vector<int32_t> &)> fn) {
  for (int32_t first = 1; first < length - 1; ++first)
    for (int32_t second = first + 1; second < length; ++second) {
      std::vector<int32_t> documents(length);
      for (int32_t i = 0; i < length; ++i)
        documents[i] = (i >= first) + (i >= second);
      fn(documents);
    }
}

const Capture kByQuery = {"memref<?xi32>", true, false};
const Capture kByKey = {"memref<?xi32>", false, true};

constexpr const char *kDocuments = R"mlir(
  %d = attn.capture_load %x[%i] : memref<?xi32> -> i32
  %e = attn.capture_load %y[%j] : memref<?xi32> -> i32
  %same = arith.cmpi eq, %d, %e : i32)mlir";
} // namespace

TEST(MaskPrepassTest, DocumentsAreExact) {
  Prepass prepass({kByQuery, kByKey},
                  std::string(kDocuments) +
                      "\n%r = arith.andi %same, %same : i1");
  constexpr std::pair<int32_t, int32_t> kLengths[] = {
      {17, 18}, {8, 16}, {24, 9}, {3, 24}};
  for (const auto &lengths : kLengths)
    forEachPacking(lengths.first, [&](std::vector<int32_t> &x) {
      forEachPacking(lengths.second, [&](std::vector<int32_t> &y) {
        prepass.run(x.size(), y.size(), {x.data(), y.data()});
        prepass.check([&](int32_t i, int32_t j) { return x[i] == y[j]; },
                      /*isExact=*/true);
      });
    });
}

TEST(MaskPrepassTest, CausalDocumentsAreExact) {
  Prepass prepass({kByQuery, kByKey}, std::string(kDocuments) + R"mlir(
  %before = arith.cmpi sle, %j, %i : i32
  %r = arith.andi %same, %before : i1)mlir");
  for (int32_t length : {3, 8, 17, 24, 31})
    forEachPacking(length, [&](std::vector<int32_t> &x) {
      prepass.run(length, length, {x.data(), x.data()});
      prepass.check(
          [&](int32_t i, int32_t j) { return x[i] == x[j] && j <= i; },
          /*isExact=*/true);
    });
}

TEST(MaskPrepassTest, PrefixesOfQueriesAreExact) {
  Prepass prepass({kByQuery}, R"mlir(
  %n = attn.capture_load %x[%i] : memref<?xi32> -> i32
  %r = arith.cmpi slt, %j, %n : i32)mlir");
  std::mt19937 random(1);
  for (int32_t n = 0; n < 2000; ++n) {
    std::vector<int32_t> x(1 + random() % 20);
    int32_t numKeys = 1 + random() % 20;
    for (int32_t &value : x)
      value = static_cast<int32_t>(random() % (numKeys + 6)) - 3;
    prepass.run(x.size(), numKeys, {x.data()});
    prepass.check([&](int32_t i, int32_t j) { return j < x[i]; },
                  /*isExact=*/true);
  }
}

TEST(MaskPrepassTest, MasksOfWholeTilesAreExact) {
  Prepass prepass({{"memref<?x?xi1>", true, true}}, R"mlir(
  %r = attn.capture_load %x[%i, %j] : memref<?x?xi1> -> i1)mlir");
  std::mt19937 random(2);
  for (int32_t n = 0; n < 2000; ++n) {
    int32_t numQueries = 1 + random() % 20, numKeys = 1 + random() % 20;
    // An interval of keys for each 8 queries.
    std::vector<char> x(numQueries * numKeys);
    for (int32_t i = 0; i < numQueries; ++i) {
      std::mt19937 own(n * 8 + i / 8);
      int32_t begin = own() % numKeys, end = own() % (numKeys + 1);
      for (int32_t j = begin; j < end; ++j)
        x[i * numKeys + j] = true;
    }
    prepass.run(numQueries, numKeys, {x.data()});
    prepass.check([&](int32_t i, int32_t j) { return x[i * numKeys + j] != 0; },
                  /*isExact=*/true);
  }
}

TEST(MaskPrepassTest, AnyMaskIsSound) {
  // A few rules that interval arithmetic sees through more or less.
  const std::pair<const char *,
                  std::function<bool(int32_t, int32_t, int32_t, int32_t)>>
      rules[] = {
          {R"mlir(
  %r = arith.cmpi ne, %d, %e : i32)mlir",
           [](int32_t d, int32_t e, int32_t, int32_t) { return d != e; }},
          {R"mlir(
  %s = arith.subi %d, %e : i32
  %abs = math.absi %s : i32
  %c2 = arith.constant 2 : i32
  %near = arith.cmpi ule, %abs, %c2 : i32
  %after = arith.cmpi sgt, %j, %i : i32
  %r = arith.ori %near, %after : i1)mlir",
           [](int32_t d, int32_t e, int32_t i, int32_t j) {
             return std::abs(d - e) <= 2 || j > i;
           }},
          {R"mlir(
  %c3 = arith.constant 3 : i32
  %m = arith.muli %d, %j : i32
  %rest = arith.remsi %m, %c3 : i32
  %q = arith.floordivsi %e, %c3 : i32
  %c = arith.cmpi slt, %rest, %q : i32
  %u = arith.cmpi ult, %d, %e : i32
  %t = arith.cmpi sge, %i, %e : i32
  %r = arith.select %c, %u, %t : i1)mlir",
           [](int32_t d, int32_t e, int32_t i, int32_t j) {
             int32_t floor = e >= 0 ? e / 3 : -((2 - e) / 3);
             return d * j % 3 < floor ? uint32_t(d) < uint32_t(e) : i >= e;
           }},
          {R"mlir(
  %w = arith.muli %d, %e : i32
  %v = arith.muli %w, %w : i32
  %p = arith.muli %v, %v : i32
  %k = arith.xori %p, %d : i32
  %a = arith.cmpi slt, %k, %e : i32
  %g = arith.extui %a : i1 to i32
  %l = arith.addi %g, %d : i32
  %true = arith.constant true
  %f = arith.cmpi sle, %l, %e : i32
  %r = arith.xori %f, %true : i1)mlir",
           [](int32_t d, int32_t e, int32_t, int32_t) {
             uint32_t w = uint32_t(d) * uint32_t(e), v = w * w, p = v * v;
             int32_t k = int32_t(p ^ uint32_t(d));
             return !((k < e) + d <= e);
           }}};
  std::mt19937 random(3);
  for (const auto &rule : rules) {
    Prepass prepass({kByQuery, kByKey}, std::string(R"mlir(
  %d = attn.capture_load %x[%i] : memref<?xi32> -> i32
  %e = attn.capture_load %y[%j] : memref<?xi32> -> i32)mlir") +
                                            rule.first);
    for (int32_t n = 0; n < 1000; ++n) {
      std::vector<int32_t> x(1 + random() % 20), y(1 + random() % 20);
      for (std::vector<int32_t> *array : {&x, &y}) {
        int32_t base = static_cast<int32_t>(random() % 20) - 10;
        for (int32_t &value : *array)
          value = base + static_cast<int32_t>(random() % (1 + n % 7));
      }
      prepass.run(x.size(), y.size(), {x.data(), y.data()});
      prepass.check(
          [&](int32_t i, int32_t j) { return rule.second(x[i], y[j], i, j); },
          /*isExact=*/false);
    }
  }
}

TEST(MaskPrepassTest, WideNumbersAreSound) {
  Prepass prepass(
      {{"memref<?xi64>", true, false}, {"memref<?xi64>", false, true}},
      R"mlir(
  %d = attn.capture_load %x[%i] : memref<?xi64> -> i64
  %e = attn.capture_load %y[%j] : memref<?xi64> -> i64
  %r = arith.cmpi eq, %d, %e : i64)mlir");
  const int64_t values[] = {
      INT64_MIN, INT64_MIN + 1, -(int64_t(1) << 31), -1,
      0,         INT32_MAX,     INT64_MAX,           INT64_MAX - 1};
  std::mt19937 random(4);
  for (int32_t n = 0; n < 2000; ++n) {
    std::vector<int64_t> x(1 + random() % 20), y(1 + random() % 20);
    for (std::vector<int64_t> *array : {&x, &y}) {
      size_t first = random() % 8;
      for (int64_t &value : *array)
        value = values[random() % 4 == 0 ? (first + 1) % 8 : first];
    }
    prepass.run(x.size(), y.size(), {x.data(), y.data()});
    prepass.check([&](int32_t i, int32_t j) { return x[i] == y[j]; },
                  /*isExact=*/false);
  }
}
