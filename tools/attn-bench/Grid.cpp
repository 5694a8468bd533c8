//===- Grid.cpp - The cases of a benchmark --------------------------------===//

#include "Grid.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace attn;
using mlir::attn::ALiBiForm;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// "16" or, of a number for queries and one for keys, "32:8".
static bool parsePair(llvm::StringRef text, int64_t &first, int64_t &second) {
  auto [left, right] = text.split(':');
  if (!llvm::to_integer(left, first, 10) || first < 1)
    return false;
  if (!text.contains(':')) {
    second = first;
    return true;
  }
  return llvm::to_integer(right, second, 10) && second >= 1;
}

static bool parseShape(llvm::StringRef text, GridCase &result) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, 'x');
  AttentionSpec &spec = result.spec;
  return parts.size() == 4 && llvm::to_integer(parts[0], result.batch, 10) &&
         result.batch >= 1 &&
         parsePair(parts[1], spec.numQueryHeads, spec.numKVHeads) &&
         parsePair(parts[2], result.queryLength, result.keyLength) &&
         parsePair(parts[3], spec.qkHeadDim, spec.vHeadDim);
}

std::vector<std::string> GridCase::getInputShapes() const {
  auto format = [&](int64_t heads, int64_t length, int64_t headDim) {
    return llvm::join(llvm::ArrayRef<std::string>{std::to_string(batch),
                                                  std::to_string(heads),
                                                  std::to_string(length),
                                                  std::to_string(headDim)},
                      "x");
  };
  return {format(spec.numQueryHeads, queryLength, spec.qkHeadDim),
          format(spec.numKVHeads, keyLength, spec.qkHeadDim),
          format(spec.numKVHeads, keyLength, spec.vHeadDim)};
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral kKnownMods =
    "none, causal, causal-top-left, window=LEFT[:RIGHT], prefix=LENGTH, "
    "dilated=RADIUS:STEP, alibi, softcap=CAP";

static void addMask(AttentionSpec &spec, mlir::attn::MaskMod mask) {
  spec.maskMod = spec.maskMod ? mlir::attn::intersectMasks(spec.maskMod, mask)
                              : std::move(mask);
}

static void addScore(AttentionSpec &spec, mlir::attn::ScoreMod score) {
  spec.scoreMod = spec.scoreMod
                      ? mlir::attn::chainScoreMods(spec.scoreMod, score)
                      : std::move(score);
}

/// Adds a rule whose parameters are integers; false if there is no such.
static bool addIntegerRule(llvm::StringRef name, llvm::StringRef parameters,
                           AttentionSpec &spec) {
  llvm::SmallVector<llvm::StringRef> texts;
  parameters.split(texts, ':');
  llvm::SmallVector<int32_t> numbers(texts.size());
  for (auto [text, number] : llvm::zip_equal(texts, numbers))
    if (!llvm::to_integer(text, number, 10) || number < 0)
      return false;
  if (name == "window" && numbers.size() <= 2)
    addMask(spec, mlir::attn::getSlidingWindowMask(
                      numbers[0], numbers.size() == 2 ? numbers[1] : 0));
  else if (name == "prefix" && numbers.size() == 1)
    addMask(spec, mlir::attn::getPrefixMask(numbers[0]));
  else if (name == "dilated" && numbers.size() == 2 && numbers[0] > 0 &&
           numbers[1] > 0)
    addMask(spec, mlir::attn::getDilatedWindowMask(numbers[0], numbers[1]));
  else
    return false;
  return true;
}

static bool addRule(llvm::StringRef rule, AttentionSpec &spec) {
  auto [name, parameters] = rule.split('=');
  if (rule == "causal")
    addMask(spec, mlir::attn::getCausalMask());
  else if (rule == "causal-top-left")
    addMask(spec, mlir::attn::getCausalTopLeftMask());
  else if (rule == "alibi")
    addScore(spec, mlir::attn::getALiBi(ALiBiForm::Causal, spec.numQueryHeads));
  else if (float cap;
           name == "softcap" && llvm::to_float(parameters, cap) && cap > 0)
    addScore(spec, mlir::attn::getSoftcap(cap));
  else
    return addIntegerRule(name, parameters, spec);
  return true;
}

/// "none", or rules with + between them.
static bool parseMod(llvm::StringRef text, AttentionSpec &spec) {
  if (text == "none")
    return true;
  llvm::SmallVector<llvm::StringRef> rules;
  text.split(rules, '+');
  return llvm::all_of(
      rules, [&](llvm::StringRef rule) { return addRule(rule, spec); });
}

//===----------------------------------------------------------------------===//
// Combinations
//===----------------------------------------------------------------------===//

static llvm::Expected<GridCase> makeCase(const std::string &shape,
                                         const std::string &dtype,
                                         const std::string &mod) {
  GridCase result;
  result.shape = shape;
  result.dtype = dtype;
  result.mod = mod;
  if (!parseShape(shape, result))
    return llvm::createStringError(
        "--shapes: '" + shape +
        "' is not like 8x16x1024x64 (batch, heads, length, head dimension), "
        "each but the batch perhaps with another number for the keys or "
        "values: 8x32:8x1:4096x128");
  const std::optional<DType> parsed = parseDType(dtype);
  if (!parsed || !isFloat(*parsed) || *parsed == DType::F64)
    return llvm::createStringError(
        "--dtypes: '" + dtype +
        "' is not one of f16, bf16, f32, f8E4M3FN, f8E5M2");
  result.spec.dtype = *parsed;
  if (!parseMod(mod, result.spec))
    return llvm::createStringError("--mods: '" + mod + "' is not one of " +
                                   kKnownMods +
                                   ", or several with + between them");
  return result;
}

/// A case that is there twice would be measured, and shown, as two.
static llvm::Error checkDistinct(llvm::StringRef option,
                                 llvm::ArrayRef<std::string> values) {
  llvm::StringSet<> seen;
  for (const std::string &value : values)
    if (!seen.insert(value).second)
      return llvm::createStringError("--" + option + ": '" + value +
                                     "' is there twice");
  return llvm::Error::success();
}

llvm::Expected<std::vector<GridCase>>
attn::makeGrid(const GridOptions &options) {
  for (auto [option, values] : {std::pair("shapes", &options.shapes),
                                {"dtypes", &options.dtypes},
                                {"mods", &options.mods}})
    if (llvm::Error error = checkDistinct(option, *values))
      return std::move(error);
  std::vector<GridCase> grid;
  for (const std::string &dtype : options.dtypes)
    for (const std::string &mod : options.mods)
      for (const std::string &shape : options.shapes) {
        llvm::Expected<GridCase> made = makeCase(shape, dtype, mod);
        if (!made)
          return made.takeError();
        grid.push_back(std::move(*made));
      }
  return grid;
}
