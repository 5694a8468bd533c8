//===- Manifest.h - What a compiled entry point is and how to run it ------===//
//
// The manifest is the compiler's JSON description of one compiled entry point:
// its arguments, its kernels, and a straight-line plan of allocations, launches
// and copies over integer expressions of the arguments' dimensions. The schema
// is docs/Manifest.md.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_MANIFEST_H
#define ATTN_RUNTIME_MANIFEST_H

#include "attn/Runtime/DType.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace attn {

/// A dimension or a stride of a tensor argument ("q.dim2", "q.stride1"), or
/// the number of multiprocessors of the device that runs the plan ("num_sms").
struct Symbol {
  enum class Kind { Dim, Stride, NumSMs };
  /// Dim, Stride only.
  unsigned argument;
  Kind kind;
  unsigned dim;
};

/// An integer expression over symbols, in 64-bit arithmetic where overflow and
/// division by zero are errors.
class Expr {
public:
  enum class Op {
    Constant,
    Symbol,
    Add,
    Mul,
    Sub,
    FloorDiv,
    CeilDiv,
    Mod,
    Min,
    Max,
    Eq,
    Le,
    Lt,
    And
  };

  static Expr constant(int64_t value);
  static Expr symbol(Symbol symbol);
  /// `operands` as many as `op` takes.
  static Expr apply(Op op, std::vector<Expr> operands);

  Op getOp() const { return op; }
  /// The symbol that the expression is, if it is one.
  std::optional<Symbol> getSymbol() const;
  const std::vector<Expr> &getOperands() const { return operands; }

  using SymbolValues = llvm::function_ref<int64_t(const Symbol &)>;
  llvm::Expected<int64_t> evaluate(SymbolValues symbols) const;

private:
  Op op = Op::Constant;
  int64_t value = 0;
  Symbol symbolRef = {0, Symbol::Kind::Dim, 0};
  std::vector<Expr> operands;
};

/// Size of a dimension that is known only when the program runs (JSON null).
constexpr int64_t kDynamicSize = -1;

struct Argument {
  std::string name;
  bool isTensor;
  bool isOutput;
  DType dtype;
  /// Of a tensor: sizes, or kDynamicSize. Empty for a scalar.
  llvm::SmallVector<int64_t, 4> shape;
  /// The bytes, row-major, that an input has where the caller gives no other.
  std::optional<std::string> value = std::nullopt;

  /// Whether a tensor (of rank 0 for a scalar) of this type can be bound.
  bool accepts(DType dtype, llvm::ArrayRef<int64_t> shape) const;

  /// "?x16x?x64xbf16"
  std::string getTypeString() const;
};

/// A launch is refused with `message` where `condition` is zero.
struct Check {
  Expr condition;
  std::string message;
};

/// The sequences of one attention: arguments that hold their offsets, lengths
/// and pages, and the sizes that bound those.
struct SequenceCheck {
  std::optional<unsigned> cuQ, cuK, kvLen, blockTable;
  /// Rows of q; batches of k, or pages; rows of k, or of a page.
  Expr qRows, kBatches, kRows;
};

struct Kernel {
  std::string name;
  std::array<int64_t, 3> block;
  std::array<int64_t, 3> cluster;
  int64_t dynamicSharedBytes;
  int64_t staticSharedBytes;
  std::string schedule;
  /// Which library brings it: "cudnn", or empty for code of our own.
  std::string library;

  int64_t getThreadsPerBlock() const { return block[0] * block[1] * block[2]; }
};

/// Memory that a step names: a tensor argument, or an allocation of the plan.
struct Buffer {
  std::string name;
  /// Index in Manifest::arguments, if it is an argument.
  std::optional<unsigned> argument;
  /// Of an allocation: zero before the plan's first run, and left zero by each
  /// run.
  bool isZeroed = false;
};

/// What the tensor memory accelerator must know of a buffer: dimensions
/// innermost first, of which the innermost is contiguous, and the box that one
/// load copies, in the 128-byte swizzle mode, with zeros out of bounds.
struct TensorMapRecipe {
  DType dtype;
  std::vector<Expr> dims;
  /// In elements, from the second dimension.
  std::vector<Expr> strides;
  std::vector<int64_t> box;
  /// How many elements before the buffer the map begins. What lies there is
  /// out of the bounds that kernels ask for.
  std::optional<Expr> lead;
};

/// A kernel parameter: the address of a buffer plus an offset in bytes, an
/// integer, a scalar argument, or a tensor map.
struct KernelArgument {
  enum class Kind { Pointer, I32, I64, Scalar, TensorMap };
  Kind kind;
  /// Pointer, TensorMap: index in Manifest::buffers.
  unsigned buffer = 0;
  /// Scalar: index in Manifest::arguments.
  unsigned argument = 0;
  /// Pointer, TensorMap: the offset; I32, I64: the value.
  Expr value;
  /// TensorMap only.
  std::optional<TensorMapRecipe> tensorMap;
};

struct Step {
  enum class Kind { Alloc, Launch, Copy, Memset, Free };
  Kind kind;
  /// Alloc, Memset, Free: the buffer; Copy: the destination. Index in
  /// Manifest::buffers, as is `source`.
  unsigned buffer = 0;
  unsigned source = 0;
  /// Launch: bytes that the kernel moves, if known; else the size.
  std::optional<Expr> bytes;
  /// Memset: the byte's value.
  uint8_t fill = 0;
  /// Launch only.
  unsigned kernel = 0;
  Expr grid;
  std::optional<Expr> flops;
  std::vector<KernelArgument> arguments;
  /// Launch: what it writes stays right while the contents of its arguments do.
  bool isPrepass = false;
};

struct Manifest {
  static constexpr int64_t kVersion = 1;

  std::string attncVersion;
  std::string llvmVersion;
  std::string entry;
  std::string variant;
  /// "cpu", "sm_80" or "sm_90a".
  std::string target;
  /// Whose kernels they are: often those of an earlier GPU serve `target`.
  std::string kernelTarget;
  std::vector<Argument> arguments;
  std::vector<Check> checks;
  std::vector<SequenceCheck> sequences;
  std::vector<Kernel> kernels;
  std::vector<Buffer> buffers;
  std::vector<Step> plan;
  /// The fewest bytes that the operator can move: its inputs and outputs once.
  Expr minBytes;
  Expr maxIntermediateBytes;

  /// Parses and validates. Errors start with the JSON path of the problem, such
  /// as `plan[2].args[0].buffer`.
  static llvm::Expected<Manifest> parse(llvm::StringRef json);

  /// Whether the kernels are cuDNN's. Then all are.
  bool usesCudnn() const {
    return !kernels.empty() && !kernels.front().library.empty();
  }

  /// Shapes by argument, in which the dynamic sizes of the outputs are those
  /// that the checks tie to the inputs. `inputShapes` holds the shapes of the
  /// inputs, in order; sizes must fit the declared ones only in number.
  llvm::Expected<std::vector<llvm::SmallVector<int64_t, 4>>>
  inferShapes(llvm::ArrayRef<llvm::SmallVector<int64_t, 4>> inputShapes) const;
};

} // namespace attn

#endif // ATTN_RUNTIME_MANIFEST_H
