//===- Generator.cpp - Random attention operators as text -----------------===//

#include "Generator.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace attn;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Mod regions
//===----------------------------------------------------------------------===//

namespace {
/// A captured tensor: its name, element type and sizes.
struct Capture {
  std::string name;
  StringRef element;
  llvm::SmallVector<StringRef, 4> sizes;

  std::string getType() const {
    std::string type = "tensor<";
    for (StringRef size : sizes)
      type += (size + "x").str();
    return type + element.str() + ">";
  }
};

/// Writes random scalar code. Every value so far may be used by what follows.
class RegionWriter {
public:
  RegionWriter(Random &random, llvm::raw_ostream &os,
               llvm::ArrayRef<Capture> captures)
      : random(random), os(os), captures(captures) {}

  void addValue(StringRef type, StringRef name) {
    values[type].push_back(name.str());
  }
  void writeOps(unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      writeOp();
  }
  void writeYield(StringRef type) {
    std::string value = get(type);
    os << "      attn.yield " << value << " : " << type << "\n";
  }

private:
  void writeOp();
  void writeIntegerOp();
  void writeFloatOp();
  void writeCompare();
  void writeCast();
  void writeCaptureLoad();

  StringRef pickInteger() {
    return random.percent(85)
               ? "i32"
               : random.pick({"i1", "i8", "i16", "i64", "index"});
  }
  StringRef pickFloat() {
    return random.percent(85) ? "f32" : random.pick({"f16", "bf16"});
  }

  /// A value of the type, written as a constant if there is none.
  std::string get(StringRef type) {
    std::vector<std::string> &known = values[type];
    if (known.empty() || random.percent(10))
      writeConstant(type);
    // The latest values make deeper code.
    size_t recent = std::min<size_t>(known.size(), 4);
    return random.percent(60) ? known[known.size() - 1 - random.below(recent)]
                              : known[random.below(known.size())];
  }
  /// As above, but none of the constants that `isRefused` there.
  std::string get(StringRef type, llvm::function_ref<bool(int64_t)> isRefused) {
    while (true) {
      std::string name = get(type);
      auto constant = constants.find(name);
      if (constant == constants.end() || !isRefused(constant->second))
        return name;
    }
  }
  std::string begin(StringRef type) {
    std::string name = "%v" + std::to_string(next++);
    os << "      " << name << " = ";
    pending = {type.str(), name};
    return name;
  }
  /// Ends the op that `begin` started; only now may it be used.
  void end() {
    os << "\n";
    values[pending.first].push_back(pending.second);
  }
  void writeConstant(StringRef type) {
    std::string name = begin(type);
    os << "arith.constant ";
    if (type.contains('f'))
      os << random.pick({"0.0", "-0.0", "1.0", "-1.5", "0.125", "100.0",
                         "-30000.0", "6.0e-8"})
         << " : " << type;
    else
      os << (constants[name] = pickConstant(type)) << " : " << type;
    end();
  }
  /// The bits of an integer type, or of index.
  static int64_t getWidth(StringRef type) {
    int64_t width;
    return type.drop_front().getAsInteger(10, width) ? 64 : width;
  }
  int64_t pickConstant(StringRef type) {
    if (type == "i1")
      return random.pick({0, 1});
    if (type == "i8")
      return random.pick({0, 1, -1, 127, -128});
    if (type == "i16")
      return random.pick({0, 1, -1, 255, 32767, -32768});
    return random.pick(
        {0, 1, -1, 2, 3, 16, 63, 64, 100, 2147483647, -2147483647 - 1});
  }

  Random &random;
  llvm::raw_ostream &os;
  llvm::ArrayRef<Capture> captures;
  llvm::StringMap<std::vector<std::string>> values;
  /// The integers among them that are constants.
  llvm::StringMap<int64_t> constants;
  std::pair<std::string, std::string> pending;
  unsigned next = 0;
};
} // namespace

void RegionWriter::writeIntegerOp() {
  StringRef type = pickInteger();
  StringRef name =
      random.pick({"addi", "subi", "muli", "andi", "ori", "xori", "maxsi",
                   "minsi", "maxui", "minui", "divsi", "remsi", "floordivsi",
                   "ceildivsi", "divui", "remui", "shli", "shrsi", "shrui"});
  bool divides = name.contains("div") || name.contains("rem");
  bool shifts = name.starts_with("sh");
  std::string lhs = get(type);
  std::string rhs = get(type, [&](int64_t value) {
    return (divides && value == 0) ||
           (shifts && (value < 0 || value >= getWidth(type)));
  });
  begin(type);
  os << "arith." << name << " " << lhs << ", " << rhs << " : " << type;
  end();
}

void RegionWriter::writeFloatOp() {
  StringRef type = pickFloat();
  if (random.percent(50)) {
    StringRef name = random.pick({"addf", "subf", "mulf", "divf", "maximumf",
                                  "minimumf", "maxnumf", "minnumf"});
    std::string lhs = get(type), rhs = get(type);
    begin(type);
    os << "arith." << name << " " << lhs << ", " << rhs << " : " << type;
  } else {
    StringRef name = random.pick({"absf", "exp", "exp2", "log", "log2", "tanh",
                                  "sqrt", "rsqrt", "sin", "cos", "erf", "floor",
                                  "ceil", "round", "atan", "expm1", "log1p"});
    std::string value = get(type);
    begin(type);
    os << "math." << name << " " << value << " : " << type;
  }
  end();
}

void RegionWriter::writeCompare() {
  if (random.percent(75)) {
    StringRef type = pickInteger();
    StringRef predicate = random.pick(
        {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"});
    std::string lhs = get(type), rhs = get(type);
    begin("i1");
    os << "arith.cmpi " << predicate << ", " << lhs << ", " << rhs << " : "
       << type;
  } else {
    StringRef type = pickFloat();
    StringRef predicate =
        random.pick({"oeq", "ogt", "olt", "ole", "une", "uno", "ord", "ult"});
    std::string lhs = get(type), rhs = get(type);
    begin("i1");
    os << "arith.cmpf " << predicate << ", " << lhs << ", " << rhs << " : "
       << type;
  }
  end();
}

void RegionWriter::writeCast() {
  struct Cast {
    StringRef name, from, to;
  };
  static constexpr Cast kCasts[] = {{"arith.sitofp", "i32", "f32"},
                                    {"arith.uitofp", "i32", "f32"},
                                    {"arith.sitofp", "i64", "f32"},
                                    {"arith.fptosi", "f32", "i32"},
                                    {"arith.extui", "i1", "i32"},
                                    {"arith.extsi", "i32", "i64"},
                                    {"arith.trunci", "i64", "i32"},
                                    {"arith.trunci", "i32", "i8"},
                                    {"arith.extsi", "i8", "i32"},
                                    {"arith.trunci", "i32", "i16"},
                                    {"arith.extui", "i16", "i32"},
                                    {"arith.truncf", "f32", "bf16"},
                                    {"arith.truncf", "f32", "f16"},
                                    {"arith.extf", "f16", "f32"},
                                    {"arith.extf", "bf16", "f32"},
                                    {"arith.bitcast", "f32", "i32"},
                                    {"arith.index_cast", "i32", "index"},
                                    {"arith.index_cast", "index", "i32"}};
  const Cast &cast = random.pick(llvm::ArrayRef(kCasts));
  std::string value = get(cast.from);
  begin(cast.to);
  os << cast.name << " " << value << " : " << cast.from << " to " << cast.to;
  end();
}

void RegionWriter::writeCaptureLoad() {
  const Capture &capture = random.pick(captures);
  std::string indices;
  for (StringRef size : capture.sizes) {
    std::string index =
        get("i32", [&](int64_t value) { return size != "1" && value < 0; });
    indices += (indices.empty() ? "" : ", ") + index;
  }
  begin(capture.element);
  os << "attn.capture_load " << capture.name << "[" << indices
     << "] : " << capture.getType() << " -> " << capture.element;
  end();
}

void RegionWriter::writeOp() {
  if (!captures.empty() && random.percent(20))
    return writeCaptureLoad();
  switch (random.below(8)) {
  case 0:
  case 1:
    return writeIntegerOp();
  case 2:
  case 3:
    return writeFloatOp();
  case 4:
    return writeCompare();
  case 5:
    return writeCast();
  case 6: {
    StringRef type = random.percent(50) ? pickFloat() : pickInteger();
    std::string condition = get("i1"), lhs = get(type), rhs = get(type);
    begin(type);
    os << "arith.select " << condition << ", " << lhs << ", " << rhs << " : "
       << type;
    return end();
  }
  default:
    begin("i32");
    os << random.pick({"attn.q_len", "attn.kv_len"}) << " : i32";
    return end();
  }
}

static void writeMod(Random &random, llvm::raw_ostream &os, bool isScore,
                     llvm::ArrayRef<Capture> captures) {
  os << "    " << (isScore ? "score_mod (%s: f32, " : "mask_mod (")
     << "%b: i32, %h: i32, %i: i32, %j: i32";
  for (const Capture &capture : captures)
    os << ", " << capture.name << ": " << capture.getType();
  os << ") {\n";
  RegionWriter writer(random, os, captures);
  for (StringRef name : {"%b", "%h", "%i", "%j"})
    writer.addValue("i32", name);
  if (isScore)
    writer.addValue("f32", "%s");
  writer.writeOps(random.below(12));
  writer.writeYield(isScore ? "f32" : "i1");
  os << "    }\n";
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

static llvm::SmallVector<Capture, 3> makeCaptures(Random &random) {
  llvm::SmallVector<Capture, 3> captures;
  for (unsigned i = 0; i < 3 && random.percent(35); ++i) {
    Capture capture;
    capture.name = "%c" + std::to_string(i);
    capture.element =
        random.percent(97)
            ? random.pick({"f16", "bf16", "f32", "i1", "i8", "i32", "i64"})
            : "f64";
    for (uint64_t rank = random.below(5); rank > 0; --rank)
      capture.sizes.push_back(random.percent(30) ? "1" : "?");
    captures.push_back(std::move(capture));
  }
  return captures;
}

std::string attn::generateAttention(Random &random) {
  StringRef element = random.percent(95) ? random.pick({"f16", "bf16", "f32"})
                                         : random.pick({"f64", "f8E4M3FN"});
  StringRef outputElement = element == "f8E4M3FN" ? "bf16" : element;
  auto size = [&](std::initializer_list<int64_t> sizes) {
    return random.percent(40) ? std::string("?")
                              : std::to_string(random.pick(sizes));
  };
  int64_t kvHeads = random.pick({1, 1, 2, 3, 4});
  int64_t heads = kvHeads * random.pick({1, 1, 2, 3, 6});
  int64_t dim = random.percent(90)
                    ? random.pick({8, 32, 40, 64, 96, 128, 192, 256})
                    : random.pick({0, 1, 12, 31, 264, 576, 584});
  int64_t valueDim =
      random.percent(80) ? dim : random.pick({0, 31, 32, 64, 192, 512});
  std::string batch = size({0, 1, 2, 5});
  std::string queries = size({0, 1, 2, 7, 16, 63, 64, 65, 128, 300});
  std::string keys = size({0, 1, 2, 7, 16, 63, 64, 65, 128, 300});
  auto type = [&](int64_t h, StringRef n, int64_t d, StringRef elementType) {
    return ("tensor<" + batch + "x" + llvm::Twine(h) + "x" + n + "x" +
            llvm::Twine(d) + "x" + elementType + ">")
        .str();
  };
  std::string q = type(heads, queries, dim, element);
  std::string k = type(kvHeads, keys, dim, element);
  std::string v = type(kvHeads, keys, valueDim, element);
  std::string o = type(heads, queries, valueDim, outputElement);
  std::string lse =
      ("tensor<" + batch + "x" + llvm::Twine(heads) + "x" + queries + "xf32>")
          .str();
  bool hasLse = random.percent(40);
  bool hasScale = random.percent(10);
  llvm::SmallVector<Capture, 3> captures = makeCaptures(random);

  std::string text;
  llvm::raw_string_ostream os(text);
  os << "func.func @attention(%q: " << q << ", %k: " << k << ", %v: " << v
     << ", %o: " << o;
  if (hasLse)
    os << ", %lse: " << lse;
  if (hasScale)
    os << ", %scale: f32";
  std::string names, types;
  for (const Capture &capture : captures) {
    os << ", " << capture.name << ": " << capture.getType();
    names += ", " + capture.name;
    types += ", " + capture.getType();
  }
  std::string results = hasLse ? o + ", " + lse : o;
  os << ") -> (" << results << ") {\n"
     << "  %r" << (hasLse ? ":2" : "") << " = attn.attention ins(%q, %k, %v"
     << names << " : " << q << ", " << k << ", " << v << types << ")\n";
  if (hasScale)
    os << "    scale(%scale : f32)\n";
  os << "    outs(%o" << (hasLse ? ", %lse" : "") << " : " << results << ")\n";
  llvm::SmallVector<std::string> attributes;
  if (!hasScale && random.percent(50))
    attributes.push_back(
        ("scale = " + random.pick({"1.0", "0.125", "-0.5", "0.0", "1.0e+30"}) +
         " : f32")
            .str());
  if (random.percent(20))
    attributes.push_back(
        ("schedule = #attn.schedule<block_m = " +
         llvm::Twine(random.pick({8, 16, 32, 64, 128, 256})) +
         ", block_n = " + llvm::Twine(random.pick({8, 16, 32, 64, 128})) +
         ", num_stages = " + llvm::Twine(random.pick({1, 2, 3})) +
         ", num_warps = " + llvm::Twine(random.pick({1, 2, 4, 8})) + ">")
            .str());
  if (!attributes.empty())
    os << "    {" << llvm::join(attributes, ", ") << "}\n";
  if (random.percent(50))
    writeMod(random, os, /*isScore=*/true, captures);
  if (random.percent(60))
    writeMod(random, os, /*isScore=*/false, captures);
  os << "    -> " << results << "\n"
     << (hasLse ? "  return %r#0, %r#1 : " : "  return %r : ") << results
     << "\n}\n";
  return text;
}

//===----------------------------------------------------------------------===//
// Mutation
//===----------------------------------------------------------------------===//

/// The words, numbers and single characters of a text.
static std::vector<std::string> tokenize(StringRef text) {
  std::vector<std::string> tokens;
  while (!text.empty()) {
    size_t length = 1;
    if (llvm::isAlnum(text[0]))
      length =
          text.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; })
              .size();
    tokens.push_back(text.take_front(length).str());
    text = text.drop_front(length);
  }
  return tokens;
}

std::string attn::mutate(StringRef text, Random &random) {
  std::vector<std::string> tokens = tokenize(text);
  for (unsigned i = 0, count = 1 + random.below(3); i < count; ++i) {
    if (tokens.empty())
      break;
    size_t at = random.below(tokens.size());
    size_t other = random.below(tokens.size());
    switch (random.below(6)) {
    case 0:
      tokens.erase(tokens.begin() + at);
      break;
    case 1:
      tokens.insert(tokens.begin() + at, std::string(tokens[other]));
      break;
    case 2:
      std::swap(tokens[at], tokens[other]);
      break;
    case 3:
      tokens[at] = random
                       .pick({"f32", "i32", "i1", "index", "f16", "bf16",
                              "tensor", "memref", "vector", "none", "i64"})
                       .str();
      break;
    case 4:
      tokens[at] = random
                       .pick({"0", "1", "-1", "2", "7", "64", "?", "1000000",
                              "9223372036854775807"})
                       .str();
      break;
    default:
      // A number for a number keeps more texts parsable.
      for (size_t j = 0; j < tokens.size(); ++j) {
        std::string &token = tokens[(at + j) % tokens.size()];
        if (!llvm::isDigit(token[0]))
          continue;
        token = random
                    .pick({"0", "1", "2", "3", "8", "33", "48", "64", "128",
                           "4096"})
                    .str();
        break;
      }
    }
  }
  std::string result;
  for (const std::string &token : tokens)
    result += token;
  return result;
}
