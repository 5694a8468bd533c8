//===- TileWork.cpp - What a fused kernel does with its tiles -------------===//

#include "attn/Compiler/TileWork.h"
#include "attn/Analysis/TileMap.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

using namespace attn;

/// Pairs of a query and a key that a map may evaluate: a profile shouldn't wait
/// for more.
static constexpr int64_t kMaxPairs = int64_t(1) << 24;

static MaskMap describe(const mlir::tile::TileMap &map) {
  const mlir::tile::TileMap::Counts counts = map.count();
  return {map.getTitle(), map.getCells(), map.getScale(),
          counts.skipped, counts.partial, counts.full};
}

static bool isFused(const Manifest &manifest) {
  return manifest.variant ==
         mlir::attn::stringifyVariant(mlir::attn::Variant::Fused);
}

std::optional<TileWork> attn::getTileWork(mlir::ModuleOp module,
                                          const Manifest &manifest,
                                          const TileMapOptions &options) {
  if (!isFused(manifest) || manifest.usesCudnn())
    return std::nullopt;
  CompileOptions compileOptions;
  compileOptions.target = manifest.kernelTarget;
  compileOptions.entry = manifest.entry;
  TileMapOptions mapOptions = options;
  mapOptions.maxPairs = kMaxPairs;
  // The kernel compiled: whatever is wrong with a map is no error of the run.
  mlir::ScopedDiagnosticHandler silence(
      module.getContext(), [](mlir::Diagnostic &) { return mlir::success(); });
  llvm::Expected<mlir::tile::TileMap> map =
      mapTiles(module, compileOptions, mapOptions);
  if (!map) {
    llvm::consumeError(map.takeError());
    return std::nullopt;
  }
  return TileWork{describe(*map), map->getNumQueryTiles(), map->getImbalance()};
}

static std::optional<TileWork> mapText(llvm::StringRef text,
                                       const Manifest &manifest,
                                       int64_t queryLength, int64_t keyLength) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return std::nullopt;
  TileMapOptions options;
  options.queryLength = queryLength;
  options.keyLength = keyLength;
  return getTileWork(*module, manifest, options);
}

TileMapper attn::makeTileMapper(std::string text, const Manifest &manifest) {
  if (!isFused(manifest) && !manifest.usesCudnn())
    return nullptr;
  return [text = std::move(text), manifest](int64_t queryLength,
                                            int64_t keyLength) {
    return mapText(text, manifest, queryLength, keyLength);
  };
}
