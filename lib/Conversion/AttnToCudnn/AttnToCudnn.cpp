//===- AttnToCudnn.cpp - Attention to a call of cuDNN ---------------------===//

#include "attn/Conversion/AttnToCudnn.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "attn/Runtime/CudnnKernel.h"
#include "attn/Runtime/DType.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::attn {
#define GEN_PASS_DEF_CONVERTATTNTOCUDNN
#include "attn/Conversion/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Replaces one operator on memrefs.
class CallBuilder {
public:
  CallBuilder(AttentionOp op, const CudnnAttention &attention)
      : op(op), attention(attention), builder(op.getLoc(), op) {}

  void build();

private:
  void insertChecks();
  void insertCheck(arith::CmpIPredicate predicate, Value a, Value b,
                   StringRef message);
  SmallVector<Value> getArguments();
  Value castToDynamic(Value memref);

  Value getSize(Value memref, int64_t dim) {
    return builder.createOrFold<memref::DimOp>(memref, dim);
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, value);
  }
  Value i32(int32_t value) {
    return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(value));
  }
  Value product(ArrayRef<Value> factors);

  AttentionOp op;
  CudnnAttention attention;
  ImplicitLocOpBuilder builder;
};

struct ConvertAttnToCudnnPass
    : mlir::attn::impl::ConvertAttnToCudnnBase<ConvertAttnToCudnnPass> {
  void runOnOperation() override;
};

} // namespace

static ::attn::DType getDType(Value memref) {
  Type element = cast<ShapedType>(memref.getType()).getElementType();
  std::string name;
  llvm::raw_string_ostream(name) << element;
  return *::attn::parseDType(name);
}

static bool isOne(Value memref, int64_t dim) {
  return cast<ShapedType>(memref.getType()).getDimSize(dim) == 1;
}

Value CallBuilder::product(ArrayRef<Value> factors) {
  Value result = factors.front();
  for (Value factor : factors.drop_front())
    result = builder.createOrFold<arith::MulIOp>(result, factor);
  return result;
}

//===----------------------------------------------------------------------===//
// Checks of sizes
//===----------------------------------------------------------------------===//

void CallBuilder::insertCheck(arith::CmpIPredicate predicate, Value a, Value b,
                              StringRef message) {
  Value holds = arith::CmpIOp::create(builder, predicate, a, b);
  cf::AssertOp::create(builder, holds, message);
}

/// Where rows see no key, cuDNN's results aren't the operator's.
void CallBuilder::insertChecks() {
  using P = arith::CmpIPredicate;
  Value queries = getSize(op.getQ(), 2), keys = getSize(op.getK(), 2);
  insertCheck(P::sle, index(1), keys, "cuDNN needs at least one key");
  // It has no such mask beside a bias; with as many queries as keys it is the
  // one from the first key.
  if (attention.bias && attention.isBottomRight) {
    insertCheck(P::eq, queries, keys,
                "cuDNN masks from the last key beside a bias only where q and "
                "k are of one length");
    attention.isBottomRight = false;
    return;
  }
  if (attention.lengths) {
    if (attention.hasWindow() && (attention.isBottomRight || attention.left))
      insertCheck(P::eq, queries, index(1),
                  "cuDNN needs one query for lengths beside this mask: rows "
                  "without keys would be undefined");
    return;
  }
  if (attention.left || (attention.right && attention.isBottomRight))
    insertCheck(P::sle, queries, keys,
                "cuDNN needs at least as many keys as queries for this mask: "
                "rows without keys would be undefined");
}

//===----------------------------------------------------------------------===//
// The call
//===----------------------------------------------------------------------===//

/// All sizes and all strides but the innermost are arguments of the call.
Value CallBuilder::castToDynamic(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> shape(type.getRank(), ShapedType::kDynamic);
  SmallVector<int64_t> strides = shape;
  strides.back() = 1;
  auto layout = StridedLayoutAttr::get(builder.getContext(),
                                       ShapedType::kDynamic, strides);
  return builder.createOrFold<memref::CastOp>(
      MemRefType::get(shape, type.getElementType(), layout), memref);
}

SmallVector<Value> CallBuilder::getArguments() {
  int32_t flags = 0;
  SmallVector<Value> tensors = {op.getQ(), op.getK(), op.getV(), op.getO()};
  auto add = [&](Value tensor, ::attn::CudnnFlag flag) {
    if (!tensor)
      return;
    flags |= flag;
    tensors.push_back(tensor);
  };
  add(op.getLse(), ::attn::CudnnHasLse);
  add(attention.bias, ::attn::CudnnHasBias);
  add(attention.lengths, ::attn::CudnnHasLengths);
  if (attention.isBottomRight)
    flags |= ::attn::CudnnBottomRight;
  if (attention.bias && isOne(attention.bias, 0))
    flags |= ::attn::CudnnBiasOfAllBatches;
  if (attention.bias && isOne(attention.bias, 1))
    flags |= ::attn::CudnnBiasOfAllHeads;

  SmallVector<Value> arguments(::attn::CudnnNumParameters);
  auto set = [&](::attn::CudnnParameter parameter, int32_t value) {
    arguments[parameter] = i32(value);
  };
  set(::attn::CudnnDType, static_cast<int32_t>(getDType(op.getQ())));
  set(::attn::CudnnBiasDType,
      static_cast<int32_t>(
          getDType(attention.bias ? attention.bias : op.getQ())));
  set(::attn::CudnnFlags, flags);
  set(::attn::CudnnLeft, attention.left.value_or(::attn::kCudnnUnbounded));
  set(::attn::CudnnRight, attention.right.value_or(::attn::kCudnnUnbounded));
  set(::attn::CudnnScale, llvm::bit_cast<int32_t>(*op.getConstantScale()));
  for (Value tensor : tensors)
    arguments.push_back(castToDynamic(tensor));
  return arguments;
}

void CallBuilder::build() {
  insertChecks();
  SmallVector<Value> arguments = getArguments();
  Value batches = getSize(op.getQ(), 0), queries = getSize(op.getQ(), 2);
  Value keys = getSize(op.getK(), 2);
  Value rows = product({batches, index(op.getNumQueryHeads()), queries});
  Value keyRows = product({batches, index(op.getNumKVHeads()), keys});
  const int64_t dims = op.getQKHeadDim() + op.getVHeadDim();
  const int64_t bytes =
      dims * op.getElementType().getIntOrFloatBitWidth() / CHAR_BIT;
  // Of the two products; q and o, k and v once.
  Value flops = product({rows, keys, index(2 * dims)});
  Value traffic = builder.createOrFold<arith::AddIOp>(
      product({rows, index(bytes)}), product({keyRows, index(bytes)}));

  auto module = op->getParentOfType<ModuleOp>();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(module.getBody());
  auto kernel = tile::KernelOp::create(builder, ::attn::kCudnnKernelName,
                                       TypeRange(ValueRange(arguments)),
                                       /*numWarps=*/1);
  kernel->setAttr("attn.library", builder.getStringAttr(::attn::kCudnnLibrary));
  builder.setInsertionPointToEnd(&kernel.getBody().front());
  tile::ReturnOp::create(builder);

  // One call, or none where nothing is to be computed.
  builder.setInsertionPoint(op);
  Value grid = builder.createOrFold<arith::MinSIOp>(rows, index(1));
  tile::LaunchOp::create(builder, kernel.getSymName(), grid, arguments, traffic,
                         flops);
  op.erase();
}

static LogicalResult verifyOperands(AttentionOp op) {
  if (!op.hasBufferSemantics())
    return op.emitOpError("is on tensors; run attn-bufferize first");
  for (Type type : op->getOperandTypes()) {
    auto memref = dyn_cast<MemRefType>(type);
    if (memref && memref.getRank() > 0 && !memref.isLastDimUnitStride())
      return op.emitOpError("takes memrefs with innermost stride 1, not ")
             << memref << "; copy it to a contiguous one first";
  }
  return success();
}

void ConvertAttnToCudnnPass::runOnOperation() {
  SmallVector<AttentionOp> ops;
  getOperation().walk([&](AttentionOp op) { ops.push_back(op); });
  if (ops.size() > 1 &&
      ops.front()->getParentOp() != ops.back()->getParentOp()) {
    ops.back()->emitError("is the second function's; cuDNN is called for one "
                          "(choose it with --entry)");
    return signalPassFailure();
  }
  for (AttentionOp op : ops) {
    if (failed(verifyOperands(op)))
      return signalPassFailure();
    auto entry = op->getParentOfType<func::FuncOp>();
    CudnnMatch match = entry ? matchCudnn(entry) : matchCudnn(op);
    if (!match.unmet.empty()) {
      op.emitError("cuDNN can't compute this: ")
          << llvm::join(match.unmet, "; ")
          << " (choose the backend fused, which can)";
      return signalPassFailure();
    }
    CallBuilder(op, match.attention).build();
  }
}
