//===- MaskPrepassTest.cpp - Lists of tiles against brute force -----------===//
//
// Masks go through convert-attn-to-tile; the kernels that look at them run on
// concrete data, and the lists and ranges that they write are compared, tile by
// tile, with what every element of the mask says.
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/IR/AttnMods.h"
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
using mlir::attn::MaskMod;

namespace {
/// A capture, and which of query and key the mask reads it by.
struct Capture {
  std::string type;
  bool byQuery, byKey;

  bool hasExtremes() const {
    return byQuery != byKey && !llvm::StringRef(type).contains("xf");
  }
};

/// Tiles of the attention. A granule is of 64 queries, or of a tile.
struct Blocks {
  int32_t m = 8, n = 8;
  int32_t getGranule() const { return m % 64 == 0 ? 64 : m; }
};

enum class Kind { Skipped, Partial, Full };

int32_t countTiles(int32_t length, int32_t block) {
  return (length + block - 1) / block;
}

using Visible = std::function<bool(int32_t query, int32_t key)>;

/// Whether there is one sequence, several that lie one behind the other in one
/// tensor, or several with as many queries, each in a cache of its own.
enum class Form { Single, Packed, Cache };

struct Lengths {
  int32_t query, key;
};

/// The kernels that look at one mask_mod, whose captures are %x and %y. These
/// have a row for each of several sequences.
class Prepass {
public:
  Prepass(std::vector<Capture> captures, const std::string &rule,
          Blocks blocks = {}, Form form = Form::Single)
      : captures(std::move(captures)), blocks(blocks), form(form),
        kernels(build(rule, MaskMod())) {}
  Prepass(std::vector<Capture> captures, const MaskMod &mod, Blocks blocks)
      : captures(std::move(captures)), blocks(blocks),
        kernels(build("%r = arith.constant true", mod)) {}

  /// Runs them on one array a capture.
  void run(int32_t numQueries, int32_t numKeys, std::vector<void *> data) {
    this->numQueries = numQueries;
    this->numKeys = numKeys;
    Params params;
    addCaptures(params, {numQueries, numKeys}, data);
    params.addI32(numQueries).addI32(numKeys);
    runKernels(params, /*numBatches=*/1, getNumQueryTiles(),
               countTiles(numQueries, blocks.getGranule()), getNumKeyTiles());
  }

  /// Runs them on some sequences, of at most `room`.
  void run(llvm::ArrayRef<Lengths> lengths, Lengths room,
           std::vector<void *> data) {
    sequences = lengths;
    const int32_t count = lengths.size();
    std::vector<int32_t> queryOffsets = {0}, keyOffsets = {0}, keyLengths;
    for (auto [query, key] : lengths) {
      queryOffsets.push_back(queryOffsets.back() + query);
      keyOffsets.push_back(keyOffsets.back() + key);
      keyLengths.push_back(key);
    }
    Params params;
    addCaptures(params, room, data);
    if (form == Form::Cache) {
      params.addMemRef(keyLengths.data(), {count}, {});
      params.addI32(room.query).addI32(room.key);
      const int32_t queryTiles = countTiles(room.query, blocks.m);
      runKernels(params, count, queryTiles,
                 countTiles(room.query, blocks.getGranule()),
                 countTiles(room.key, blocks.n));
      for (int32_t i = 0; i < count; ++i)
        firstTiles.push_back(i * queryTiles);
      return;
    }
    for (std::vector<int32_t> *offsets : {&queryOffsets, &keyOffsets})
      params.addMemRef(offsets->data(), {count + 1}, {});
    params.addI32(queryOffsets.back()).addI32(keyOffsets.back());
    const int32_t queryTiles = queryOffsets.back() / blocks.m + count;
    runKernels(params, /*numBatches=*/1, queryTiles,
               queryTiles * getNumGranulesInTile(),
               countTiles(keyOffsets.back(), blocks.n));
    for (int32_t i = 0; i < count; ++i)
      firstTiles.push_back(queryOffsets[i] / blocks.m + i);
  }

  /// The same as check() for each sequence.
  void check(const std::function<bool(int32_t sequence, int32_t query,
                                      int32_t key)> &isVisible) {
    for (auto [index, lengths] : llvm::enumerate(sequences)) {
      SCOPED_TRACE("sequence " + std::to_string(index));
      numQueries = lengths.query;
      numKeys = lengths.key;
      firstTile = firstTiles[index];
      check(
          [&, s = index](int32_t i, int32_t j) { return isVisible(s, i, j); });
    }
  }

  /// Compares lists and ranges with what `isVisible` says.
  void check(const Visible &isVisible) {
    for (int32_t tile = 0; tile < getNumQueryTiles(); ++tile) {
      SCOPED_TRACE("query tile " + std::to_string(tile));
      std::vector<int32_t> expected = getExpectedList(tile, isVisible);
      const int32_t *list = &lists[(firstTile + tile) * columns];
      ASSERT_EQ(llvm::ArrayRef(list, expected.size()),
                llvm::ArrayRef(expected));
      for (int32_t i = 0; i < getNumGranulesInTile(); ++i)
        checkGranule(tile * getNumGranulesInTile() + i, expected, isVisible);
      if (testing::Test::HasFatalFailure())
        return;
    }
  }

private:
  int32_t getNumKeyTiles() const { return countTiles(numKeys, blocks.n); }
  int32_t getNumQueryTiles() const { return countTiles(numQueries, blocks.m); }
  int32_t getNumGranulesInTile() const {
    return blocks.m / blocks.getGranule();
  }

  void addCaptures(Params &params, Lengths lengths,
                   llvm::ArrayRef<void *> data) {
    for (auto [capture, pointer] : llvm::zip_equal(captures, data)) {
      std::vector<int32_t> sizes;
      if (form != Form::Single)
        sizes.push_back(sequences.size());
      if (capture.byQuery)
        sizes.push_back(lengths.query);
      if (capture.byKey)
        sizes.push_back(lengths.key);
      params.addMemRef(pointer, sizes, {});
    }
  }

  void runKernels(Params &params, int32_t numBatches, int32_t queryTiles,
                  int32_t granules, int32_t keyTiles) {
    firstTiles.clear();
    columns = keyTiles;
    int32_t numExtremes = 0;
    std::vector<std::vector<int32_t>> extremes;
    for (const Capture &capture : captures) {
      if (!capture.hasExtremes())
        continue;
      int32_t batches = form == Form::Single ? 1
                        : capture.byKey      ? sequences.size()
                                             : numBatches;
      std::vector<int32_t> sizes = {batches, 1, capture.byQuery ? granules : 1,
                                    capture.byKey ? keyTiles : 1};
      int32_t count = batches * sizes[2] * sizes[3];
      numExtremes += count;
      extremes.emplace_back(2 * count + 1);
      params.addMemRef(extremes.back().data(), sizes, {});
    }
    const std::string name = "fused_attn_cpu_f32_d32";
    if (!extremes.empty())
      kernels.run(name + "_extremes", numExtremes, params);
    // A number for 8 tiles of keys.
    int32_t groups = countTiles(keyTiles, 8);
    std::vector<int32_t> classes(numBatches * granules * groups + 1, -1);
    params.addMemRef(classes.data(), {numBatches, 1, granules, groups}, {});
    // At most 8 programs share those of sequences.
    const int32_t groupPrograms =
        form == Form::Single ? groups : std::min(groups, 8);
    kernels.run(name + "_classes", numBatches * granules * groupPrograms,
                params);
    lists.assign(numBatches * queryTiles * keyTiles + 1, -1);
    const int32_t numRanges = queryTiles * getNumGranulesInTile();
    ranges.assign(4 * numBatches * numRanges + 1, -1);
    params.addMemRef(lists.data(), {numBatches, 1, queryTiles, keyTiles}, {});
    params.addMemRef(ranges.data(), {numBatches, 1, numRanges}, {});
    kernels.run(name + "_tiles", numBatches * queryTiles, params);
  }

  Kernels build(const std::string &rule, const MaskMod &mod) {
    mlir::DialectRegistry registry;
    mlir::attn::registerAttncDialects(registry);
    mlir::MLIRContext context(registry);
    context.loadAllAvailableDialects();
    // Remarks say why there is a list.
    context.getDiagEngine().registerHandler([](mlir::Diagnostic &diag) {
      return mlir::success(diag.getSeverity() ==
                           mlir::DiagnosticSeverity::Remark);
    });
    std::string types, names, arguments;
    const char *letters[] = {"x", "y"};
    for (auto [letter, capture] : llvm::zip(letters, captures)) {
      types += ", " + capture.type;
      names += std::string(", %") + letter;
      arguments += std::string(", %") + letter + ": " + capture.type;
    }
    const char *operands = form == Form::Single  ? ""
                           : form == Form::Cache ? "kv_len(%u : memref<?xi32>)"
                                                 : "cu_q(%t : memref<?xi32>) "
                                                   "cu_k(%u : memref<?xi32>)";
    std::string text = substitute(R"mlir(
!qkv = memref<$Bx4x?x32xf32>
func.func @f(%q: !qkv, %k: !qkv, %o: !qkv$arguments, %t: memref<?xi32>,
             %u: memref<?xi32>) {
  attn.attention ins(%q, %k, %k$names : !qkv, !qkv, !qkv$types) $operands
    outs(%o : !qkv)
    {schedule = #attn.schedule<block_m = $M, block_n = $N, num_stages = 1,
                               num_warps = 1>}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32$arguments) {
      $rule
      attn.yield %r : i1
    }
  return
})mlir",
                                  {{"arguments", arguments},
                                   {"B", form == Form::Packed ? "1" : "?"},
                                   {"operands", operands},
                                   {"names", names},
                                   {"types", types},
                                   {"M", std::to_string(blocks.m)},
                                   {"N", std::to_string(blocks.n)},
                                   {"rule", rule}});
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (module && mod)
      module->walk([&](mlir::attn::AttentionOp op) { setMaskMod(op, mod); });
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

  /// What the elements say of `numRows` queries from `first` on.
  Kind getKind(int32_t first, int32_t numRows, int32_t keyTile,
               const Visible &isVisible) {
    const int32_t endRow = std::min(first + numRows, numQueries);
    const int32_t key = keyTile * blocks.n;
    int32_t count = 0;
    for (int32_t i = first; i < endRow; ++i)
      for (int32_t j = key; j < std::min(key + blocks.n, numKeys); ++j)
        count += isVisible(i, j);
    if (count == 0)
      return Kind::Skipped;
    return count == (endRow - first) * blocks.n ? Kind::Full : Kind::Partial;
  }

  /// The full tiles, then the others of which something is visible.
  std::vector<int32_t> getExpectedList(int32_t tile, const Visible &isVisible) {
    std::vector<int32_t> list;
    for (Kind kind : {Kind::Full, Kind::Partial})
      for (int32_t keyTile = 0; keyTile < getNumKeyTiles(); ++keyTile)
        if (getKind(tile * blocks.m, blocks.m, keyTile, isVisible) == kind)
          list.push_back(keyTile);
    return list;
  }

  /// A granule's range is the smallest that holds all that it sees, and its
  /// full part the first run of what it sees whole.
  void checkGranule(int32_t granule, llvm::ArrayRef<int32_t> list,
                    const Visible &isVisible) {
    const int32_t first = granule * blocks.getGranule();
    if (first >= numQueries)
      return;
    std::vector<Kind> kinds;
    for (int32_t keyTile : list)
      kinds.push_back(getKind(first, blocks.getGranule(), keyTile, isVisible));
    auto isSeen = [](Kind kind) { return kind != Kind::Skipped; };
    auto isFull = [](Kind kind) { return kind == Kind::Full; };
    const auto begin = llvm::find_if(kinds, isSeen);
    const auto last = std::find_if(kinds.rbegin(), kinds.rend(), isSeen);
    const auto fullBegin = llvm::find_if(kinds, isFull);
    const auto fullEnd = std::find_if_not(fullBegin, kinds.end(), isFull);
    auto toKey = [&](auto position) {
      return std::min(static_cast<int32_t>(position - kinds.begin()) * blocks.n,
                      numKeys);
    };
    const int32_t *range =
        &ranges[4 * (firstTile * getNumGranulesInTile() + granule)];
    if (begin == kinds.end()) {
      EXPECT_EQ(range[0], range[3]) << "granule " << granule;
    } else {
      EXPECT_EQ(range[0], toKey(begin)) << "granule " << granule;
      EXPECT_EQ(range[3], toKey(last.base())) << "granule " << granule;
    }
    if (fullBegin == kinds.end()) {
      EXPECT_EQ(range[1], range[2]) << "granule " << granule;
    } else {
      EXPECT_EQ(range[1], toKey(fullBegin)) << "granule " << granule;
      EXPECT_EQ(range[2], toKey(fullEnd)) << "granule " << granule;
    }
  }

  std::vector<Capture> captures;
  Blocks blocks;
  Form form = Form::Single;
  Kernels kernels;
  /// The sequence that is checked, and where its tiles begin.
  int32_t numQueries = 0, numKeys = 0, firstTile = 0;
  std::vector<Lengths> sequences;
  std::vector<int32_t> firstTiles;
  /// Tiles in a list.
  int32_t columns = 0;
  std::vector<int32_t> lists, ranges;
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
        prepass.check([&](int32_t i, int32_t j) { return x[i] == y[j]; });
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
          [&](int32_t i, int32_t j) { return x[i] == x[j] && j <= i; });
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
    prepass.check([&](int32_t i, int32_t j) { return j < x[i]; });
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
    prepass.check(
        [&](int32_t i, int32_t j) { return x[i * numKeys + j] != 0; });
  }
}

TEST(MaskPrepassTest, AnyMaskIsExact) {
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
          [&](int32_t i, int32_t j) { return rule.second(x[i], y[j], i, j); });
    }
  }
}

TEST(MaskPrepassTest, WideNumbersAreExact) {
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
    prepass.check([&](int32_t i, int32_t j) { return x[i] == y[j]; });
  }
}

/// Some of them are equal, so that documents come in any order and again.
std::vector<int32_t> makeDocuments(int32_t length, std::mt19937 &random) {
  std::vector<int32_t> documents;
  while (documents.size() < size_t(length))
    documents.insert(documents.end(), 1 + random() % 20, random() % 4);
  documents.resize(length);
  return documents;
}

TEST(MaskPrepassTest, DocumentsInAnyOrderAreExact) {
  // 128 queries are two granules.
  for (Blocks blocks : {Blocks{8, 8}, Blocks{24, 16}, Blocks{128, 16}}) {
    Prepass prepass({kByQuery, kByKey},
                    std::string(kDocuments) +
                        "\n%r = arith.andi %same, %same : i1",
                    blocks);
    std::mt19937 random(5);
    for (int32_t n = 0; n < 200; ++n) {
      std::vector<int32_t> x = makeDocuments(1 + random() % 300, random);
      std::vector<int32_t> y = makeDocuments(1 + random() % 100, random);
      prepass.run(x.size(), y.size(), {x.data(), y.data()});
      prepass.check([&](int32_t i, int32_t j) { return x[i] == y[j]; });
    }
  }
}

TEST(MaskPrepassTest, RandomBlocksAreExact) {
  for (Blocks blocks : {Blocks{8, 8}, Blocks{16, 8}, Blocks{192, 8}}) {
    Prepass prepass({{"memref<?x?xi1>", true, true}}, R"mlir(
  %r = attn.capture_load %x[%i, %j] : memref<?x?xi1> -> i1)mlir",
                    blocks);
    std::mt19937 random(6);
    for (int32_t n = 0; n < 100; ++n) {
      int32_t numQueries = 1 + random() % 400, numKeys = 1 + random() % 60;
      // Blocks of 32 queries and 8 keys are hidden, visible or mixed.
      std::vector<char> x(numQueries * numKeys);
      std::vector<uint32_t> kinds(13 * 8);
      for (uint32_t &kind : kinds)
        kind = random() % 3;
      for (int32_t i = 0; i < numQueries; ++i)
        for (int32_t j = 0; j < numKeys; ++j) {
          uint32_t kind = kinds[i / 32 * 8 + j / 8];
          x[i * numKeys + j] = kind == 2 ? random() % 2 : kind;
        }
      prepass.run(numQueries, numKeys, {x.data()});
      prepass.check(
          [&](int32_t i, int32_t j) { return x[i * numKeys + j] != 0; });
    }
  }
}

TEST(MaskPrepassTest, FloatsAreExact) {
  Prepass prepass({{"memref<?x?xf32>", true, true}}, R"mlir(
  %c = arith.constant 0.5 : f32
  %f = attn.capture_load %x[%i, %j] : memref<?x?xf32> -> f32
  %g = math.absf %f : f32
  %r = arith.cmpf ogt, %g, %c : f32)mlir");
  std::mt19937 random(7);
  for (int32_t n = 0; n < 200; ++n) {
    int32_t numQueries = 1 + random() % 30, numKeys = 1 + random() % 40;
    std::vector<float> x(numQueries * numKeys);
    for (int32_t i = 0; i < numQueries; ++i)
      for (int32_t j = 0; j < numKeys; ++j)
        x[i * numKeys + j] = (i / 8 * 5 + j / 8) % 3 - 1.7f + random() % 2;
    prepass.run(numQueries, numKeys, {x.data()});
    prepass.check([&](int32_t i, int32_t j) {
      return std::abs(x[i * numKeys + j]) > 0.5f;
    });
  }
}

//===----------------------------------------------------------------------===//
// Several sequences
//===----------------------------------------------------------------------===//

namespace {
// More than 8 groups of 8 tiles of 8 keys.
constexpr Lengths kRoom = {150, 600};

/// Calls `fn` with lengths of some sequences: empty ones, too, and queries as
/// many for all where each has a batch.
void forEachLengths(Form form, std::mt19937 &random,
                    llvm::function_ref<void(llvm::ArrayRef<Lengths>)> fn) {
  for (int32_t n = 0; n < 20; ++n) {
    std::vector<Lengths> lengths(1 + random() % 6);
    for (Lengths &own : lengths) {
      const uint32_t kind = random() % 8;
      own.query = kind == 0 ? 0 : 1 + random() % kRoom.query;
      own.key = kind == 1 ? 0 : 1 + random() % kRoom.key;
      if (form == Form::Cache)
        own.query = kRoom.query;
    }
    fn(lengths);
  }
}

constexpr Blocks kSequenceBlocks[] = {{8, 8}, {24, 16}, {128, 16}};
constexpr Form kSequenceForms[] = {Form::Packed, Form::Cache};
} // namespace

TEST(MaskPrepassTest, DocumentsOfSequencesAreExact) {
  constexpr const char *kRule = R"mlir(
  %d = attn.capture_load %x[%b, %i] : memref<?x?xi32> -> i32
  %e = attn.capture_load %y[%b, %j] : memref<?x?xi32> -> i32
  %r = arith.cmpi eq, %d, %e : i32)mlir";
  for (Form form : kSequenceForms)
    for (Blocks blocks : kSequenceBlocks) {
      Prepass prepass(
          {{"memref<?x?xi32>", true, false}, {"memref<?x?xi32>", false, true}},
          kRule, blocks, form);
      std::mt19937 random(8);
      forEachLengths(form, random, [&](llvm::ArrayRef<Lengths> lengths) {
        std::vector<int32_t> x, y;
        for (size_t i = 0; i < lengths.size(); ++i) {
          llvm::append_range(x, makeDocuments(kRoom.query, random));
          llvm::append_range(y, makeDocuments(kRoom.key, random));
        }
        prepass.run(lengths, kRoom, {x.data(), y.data()});
        prepass.check([&](int32_t s, int32_t i, int32_t j) {
          return x[s * kRoom.query + i] == y[s * kRoom.key + j];
        });
      });
    }
}

TEST(MaskPrepassTest, LengthsOfSequencesAreExact) {
  // A window that ends at the last key for the last query, and the first keys.
  constexpr const char *kRule = R"mlir(
  %nq = attn.q_len : i32
  %nk = attn.kv_len : i32
  %shift = arith.subi %nk, %nq : i32
  %p = arith.addi %i, %shift : i32
  %c9 = arith.constant 9 : i32
  %c5 = arith.constant 5 : i32
  %d = arith.subi %p, %j : i32
  %near = arith.cmpi ult, %d, %c9 : i32
  %first = arith.cmpi slt, %j, %c5 : i32
  %r = arith.ori %near, %first : i1)mlir";
  for (Form form : kSequenceForms)
    for (Blocks blocks : kSequenceBlocks) {
      Prepass prepass({}, kRule, blocks, form);
      std::mt19937 random(9);
      forEachLengths(form, random, [&](llvm::ArrayRef<Lengths> lengths) {
        prepass.run(lengths, kRoom, {});
        prepass.check([&](int32_t s, int32_t i, int32_t j) {
          int32_t distance = i + lengths[s].key - lengths[s].query - j;
          return (distance >= 0 && distance < 9) || j < 5;
        });
      });
    }
}

//===----------------------------------------------------------------------===//
// Masks of the library that no range of keys describes
//===----------------------------------------------------------------------===//

/// `visible` also gets the lengths.
static void expectExact(
    const MaskMod &mod,
    llvm::function_ref<bool(int32_t, int32_t, int32_t, int32_t)> visible,
    llvm::ArrayRef<std::pair<int32_t, int32_t>> lengths) {
  for (Blocks blocks : {Blocks{8, 8}, Blocks{8, 24}, Blocks{16, 8},
                        Blocks{64, 16}, Blocks{128, 8}}) {
    SCOPED_TRACE(std::to_string(blocks.m) + " x " + std::to_string(blocks.n));
    Prepass prepass({}, mod, blocks);
    for (auto [numQueries, numKeys] : lengths) {
      SCOPED_TRACE(std::to_string(numQueries) + " queries, " +
                   std::to_string(numKeys) + " keys");
      prepass.run(numQueries, numKeys, {});
      prepass.check([&, nq = numQueries, nk = numKeys](int32_t i, int32_t j) {
        return visible(i, j, nq, nk);
      });
    }
  }
}

constexpr std::pair<int32_t, int32_t> kLengths[] = {
    {1, 1},   {8, 8},    {9, 31},    {31, 9}, {40, 200},
    {64, 64}, {200, 40}, {150, 150}, {0, 20}, {20, 0}};

TEST(MaskPrepassTest, Neighborhoods) {
  struct Image {
    int32_t height, width, rows, columns;
  };
  // Rows of pixels shorter and longer than the tiles.
  for (Image image : {Image{5, 40, 3, 3}, Image{3, 64, 1, 5},
                      Image{12, 12, 5, 3}, Image{2, 100, 1, 1}}) {
    auto getFirst = [](int32_t position, int32_t size, int32_t window) {
      return std::min(std::max(position - window / 2, 0), size - window);
    };
    int32_t length = image.height * image.width;
    expectExact(
        mlir::attn::getNeighborhoodMask(image.height, image.width, image.rows,
                                        image.columns),
        [&](int32_t i, int32_t j, int32_t, int32_t) {
          int32_t row = getFirst(i / image.width, image.height, image.rows);
          int32_t column =
              getFirst(i % image.width, image.width, image.columns);
          int32_t y = j / image.width - row, x = j % image.width - column;
          return y >= 0 && y < image.rows && x >= 0 && x < image.columns;
        },
        {{length, length}});
  }
}

TEST(MaskPrepassTest, DilatedWindows) {
  for (auto [radius, dilation] :
       {std::pair(2, 3), std::pair(3, 20), std::pair(1, 45)})
    expectExact(
        mlir::attn::getDilatedWindowMask(radius, dilation),
        [r = radius, d = dilation](int32_t i, int32_t j, int32_t nq,
                                   int32_t nk) {
          int32_t distance = std::abs(j - (i + nk - nq));
          return distance % d == 0 && distance / d <= r;
        },
        kLengths);
}

TEST(MaskPrepassTest, Compositions) {
  using namespace mlir::attn;
  auto isNear = [](int32_t i, int32_t j, int32_t nq, int32_t nk) {
    int32_t distance = j - (i + nk - nq);
    return distance <= 0 && distance >= -9;
  };
  // A window, and the first keys for all.
  expectExact(
      uniteMasks(getSlidingWindowMask(9, 0), getPrefixMask(5)),
      [&](int32_t i, int32_t j, int32_t nq, int32_t nk) {
        return j < 5 || isNear(i, j, nq, nk);
      },
      kLengths);
  expectExact(
      uniteMasks(getDilatedWindowMask(4, 16), getSlidingWindowMask(9, 0)),
      [&](int32_t i, int32_t j, int32_t nq, int32_t nk) {
        int32_t distance = std::abs(j - (i + nk - nq));
        return (distance % 16 == 0 && distance <= 64) || isNear(i, j, nq, nk);
      },
      kLengths);
  expectExact(
      intersectMasks(getDilatedWindowMask(4, 16), getCausalMask()),
      [](int32_t i, int32_t j, int32_t nq, int32_t nk) {
        int32_t distance = j - (i + nk - nq);
        return distance <= 0 && distance % 16 == 0 && distance >= -64;
      },
      kLengths);
}
