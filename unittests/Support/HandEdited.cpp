//===- HandEdited.cpp - kv_loops that a person changed --------------------===//

#include "HandEdited.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace attn::test;

static constexpr char kKernel[] = R"mlir(
!mem = memref<?x$Dx$T>
!s = tensor<$Mx$Nxf32>
!p = tensor<$Mx$Nx$T>
!q = tensor<$Mx$Dx$T>
!kv = tensor<$Nx$Dx$T>
!o = tensor<$Mx$Dxf32>
!row = tensor<$Mxf32>
tile.kernel @edited(%qm: !mem, %km: !mem, %vm: !mem, %om: !mem)
    attributes {num_warps = $WARPS : i32$ATTRIBUTES} {
  %c0 = arith.constant 0 : i32
  %rows = arith.constant $M : i32
  %scale = arith.constant 1.0 : f32
  %d0 = arith.constant 0 : index
  %dim = memref.dim %km, %d0 : !mem
  %n = arith.index_cast %dim : index to i32
  %pid = tile.program_id : i32
  %q0 = arith.muli %pid, %rows : i32
  %q = tile.load %qm[%q0, %c0] : !mem -> !q
  %zs = arith.constant dense<0.0> : !s
  %zo = arith.constant dense<0.0> : !o
  %minf = arith.constant dense<0xFF800000> : !row
  %zrow = arith.constant dense<0.0> : !row
  %r:3 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step $N iter_args(%zo, %minf, %zrow) : !o, !row, !row
    qk (%kv: i32, %acc: !o, %m: !row, %l: !row) {
      %k = tile.load %km[%kv, %c0] : !mem -> !kv
      %s = tile.mma $PATH %q, %k, %zs {transpose_b} : !q, !kv, !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %acc: !o, %m: !row, %l: !row) {
      %x = tile.mask %s at (%q0, %kv) (%qi: i32, %ki: i32) {
        %exists = arith.cmpi slt, %ki, %n : i32
        %before = arith.cmpi sle, %ki, %qi : i32
        %keep = arith.andi %exists, %before : i1
        tile.yield %keep : i1
      } : !s
      $SCORE
      tile.yield %t : !s
    } softmax (%kv: i32, %t: !s, %acc: !o, %m: !row, %l: !row) {
      $SOFTMAX
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %acc: !o, %m: !row, %l: !row) {
      %v = tile.load %vm[%kv, %c0] : !mem -> !kv
      %ab = tile.broadcast %a dim 0 : !row -> !o
      %scaled = arith.mulf %acc, %ab : !o
      $OPERAND
      %next = tile.mma $PATH $P, %v, %scaled : !p, !kv, !o
      tile.yield %next, %m1, %l1 : !o, !row, !row
    }
  $OUT
  $RESULT
  tile.store $Y, %om[%q0, %c0] : !q, !mem
  tile.return
})mlir";

static constexpr const char *kSame = "%t = arith.addf %x, %zs : !s";
static constexpr const char *kSoftmax =
    "%p, %m1, %l1, %a = tile.online_softmax %t, %m, %l scale %scale : !s, !row";
static constexpr const char *kNormalize =
    "%lb = tile.broadcast %r#2 dim 0 : !row -> "
    "!o\n%y = arith.divf %r#0, %lb : !o";

void attn::test::PrintTo(const Edit &edit, std::ostream *os) {
  *os << edit.name;
}

std::vector<Edit> attn::test::getEdits() {
  auto exp = [](double s) { return std::exp(s); };
  auto same = [](double s) { return s; };
  return {
      {"plain",
       "%t = tile.score_mod %x at (%q0, %kv) (%e: f32, %i: i32, %j: "
       "i32) { tile.yield %e : f32 } : !s",
       kSoftmax, kNormalize, same, -INFINITY, exp, true},
      {"between_scores_and_p", "%t = arith.addf %x, %x : !s", kSoftmax,
       kNormalize, [](double s) { return 2 * s; }, -INFINITY, exp, true},
      // An op that gives hidden keys a weight: no step may be skipped.
      {"unhides",
       "%floor = arith.constant dense<-1.0> : !s\n"
       "%t = arith.maximumf %x, %floor : !s",
       kSoftmax, kNormalize, [](double s) { return std::max(s, -1.0); }, -1.0,
       exp, true},
      {"tanh", "%t = math.tanh %x : !s", kSoftmax, kNormalize,
       [](double s) { return std::tanh(s); }, -1.0, exp, true},
      {"relu", kSame,
       "%p = arith.maximumf %t, %zs : !s\n"
       "%m1 = arith.addf %m, %zrow : !row\n"
       "%l1 = arith.addf %l, %zrow : !row\n"
       "%a = arith.constant dense<1.0> : !row",
       "%y = arith.addf %r#0, %zo : !o", same, -INFINITY,
       [](double s) { return std::max(s, 0.0); }, false},
      // 1 / (1 + exp(-s)), with math that tile-lower-math rewrites.
      {"sigmoid", kSame,
       "%one = arith.constant dense<1.0> : !s\n"
       "%neg = arith.negf %t : !s\n"
       "%e = math.exp %neg : !s\n"
       "%den = arith.addf %e, %one : !s\n"
       "%p = arith.divf %one, %den : !s\n"
       "%m1 = arith.addf %m, %zrow : !row\n"
       "%l1 = arith.addf %l, %zrow : !row\n"
       "%a = arith.constant dense<1.0> : !row",
       "%y = arith.addf %r#0, %zo : !o", same, -INFINITY,
       [](double s) { return 1 / (1 + std::exp(-s)); }, false},
  };
}

/// `text` with every `$key` replaced; longer keys come before their prefixes.
static std::string
substitute(std::string text,
           llvm::ArrayRef<std::pair<llvm::StringRef, std::string>> values) {
  for (auto &[key, value] : values)
    for (size_t at; (at = text.find(("$" + key).str())) != std::string::npos;)
      text.replace(at, key.size() + 1, value);
  return text;
}

std::string attn::test::makeKernel(const Edit &edit, const KernelShape &shape) {
  const bool rounds = llvm::StringRef(shape.element) != "f32";
  return substitute(
      kKernel, {{"ATTRIBUTES", shape.attributes},
                {"WARPS", std::to_string(shape.numWarps)},
                {"SCORE", edit.score},
                {"SOFTMAX", edit.softmax},
                {"OPERAND", rounds ? "%pb = arith.truncf %p : !s to !p" : ""},
                {"OUT", edit.out},
                {"RESULT", rounds ? "%yb = arith.truncf %y : !o to !q" : ""},
                {"PATH", rounds ? "mma" : "fma"},
                {"P", rounds ? "%pb" : "%p"},
                {"Y", rounds ? "%yb" : "%y"},
                {"M", std::to_string(shape.blockM)},
                {"N", std::to_string(shape.blockN)},
                {"D", std::to_string(shape.headDim)},
                {"T", shape.element}});
}

std::vector<double>
attn::test::evaluateRow(const Edit &edit, const KernelShape &shape,
                        llvm::ArrayRef<double> q, llvm::ArrayRef<double> k,
                        llvm::ArrayRef<double> v, int64_t row) {
  const int64_t headDim = shape.headDim, numKeys = k.size() / headDim;
  std::vector<double> sum(headDim, 0.0);
  double total = 0;
  // Positions of the last tile beyond the keys exist for the kernel; they are
  // hidden, and their V is 0.
  const int64_t numPositions = llvm::alignTo(numKeys, shape.blockN);
  for (int64_t j = 0; j < numPositions; ++j) {
    double score = edit.hidden;
    if (j < numKeys && j <= row) {
      double dot = 0;
      for (int64_t d = 0; d < headDim; ++d)
        dot += q[row * headDim + d] * k[j * headDim + d];
      score = edit.visible(dot);
    }
    const double weight = edit.weight(score);
    total += weight;
    for (int64_t d = 0; d < headDim && j < numKeys; ++d)
      sum[d] += weight * v[j * headDim + d];
  }
  for (double &value : sum)
    value /= edit.normalized ? total : 1.0;
  return sum;
}
