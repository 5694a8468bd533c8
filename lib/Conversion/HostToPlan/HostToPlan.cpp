//===- HostToPlan.cpp - Host function to a straight-line plan -------------===//

#include "PlanExpr.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/IR/AttnSupport.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Base64.h"

namespace mlir::attn {
#define GEN_PASS_DEF_CONVERTHOSTTOPLAN
#include "attn/Conversion/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
/// A memref of the host function: a window into a named buffer.
struct BufferView {
  StringAttr buffer;
  /// In elements.
  Attribute offset;
  SmallVector<Attribute> sizes, strides;
};

/// Builds the plan of one host function.
class PlanBuilder {
public:
  PlanBuilder(func::FuncOp func)
      : func(func), builder(func.getContext()), expr(func.getContext()) {}

  FailureOr<DictionaryAttr> build();

private:
  LogicalResult addArguments();
  FailureOr<StringAttr> getArgumentValue(unsigned index, MemRefType type);
  LogicalResult addOp(Operation &op);
  LogicalResult addAlloc(memref::AllocOp op);
  LogicalResult addCopy(memref::CopyOp op);
  LogicalResult addLaunch(tile::LaunchOp op);
  LogicalResult addAssert(cf::AssertOp op);
  LogicalResult addCheckSequences(CheckSequencesOp op);
  LogicalResult addExpr(Operation &op);
  LogicalResult addDim(memref::DimOp op);
  LogicalResult addExpandShape(memref::ExpandShapeOp op);
  LogicalResult addCollapseShape(memref::CollapseShapeOp op);
  LogicalResult addCast(memref::CastOp op);
  LogicalResult addTranspose(memref::TransposeOp op);
  LogicalResult addSubView(memref::SubViewOp op);
  LogicalResult addKernelArgs(tile::LaunchOp op, Value arg,
                              SmallVectorImpl<Attribute> &args);

  FailureOr<Attribute> getExpr(Value value, Operation *user);
  FailureOr<Attribute> getExpr(OpFoldResult value, Operation *user);
  /// Appends the expressions of a shape whose dynamic sizes are `dynamicSizes`.
  LogicalResult addSizes(ArrayRef<int64_t> shape, ValueRange dynamicSizes,
                         Operation *user, SmallVectorImpl<Attribute> &sizes);
  FailureOr<BufferView> getView(Value value, Operation *user);
  Attribute getBytes(const BufferView &view, Type elementType);

  void addStep(ArrayRef<NamedAttribute> fields) {
    steps.push_back(builder.getDictionaryAttr(fields));
  }
  NamedAttribute field(StringRef name, Attribute value) {
    return builder.getNamedAttr(name, value);
  }
  NamedAttribute field(StringRef name, StringRef value) {
    return field(name, builder.getStringAttr(value));
  }
  void noteUse(StringAttr buffer) {
    if (auto it = lastUse.find(buffer); it != lastUse.end())
      it->second = steps.size();
  }
  ArrayAttr getStepsWithFrees();

  func::FuncOp func;
  Builder builder;
  PlanExprBuilder expr;
  DenseMap<Value, BufferView> views;
  DenseMap<Value, Attribute> exprs;
  DenseMap<Value, StringAttr> scalarNames;
  llvm::StringSet<> names;
  /// Temporary buffers and the step that uses them last.
  llvm::MapVector<StringAttr, size_t> lastUse;
  SmallVector<Attribute> arguments, checks, sequences, steps;
  Attribute minBytes, maxIntermediateBytes;
};
} // namespace

static std::string getTypeName(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

FailureOr<Attribute> PlanBuilder::getExpr(Value value, Operation *user) {
  IntegerAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return expr.constant(constant.getInt());
  if (auto it = exprs.find(value); it != exprs.end())
    return it->second;
  return user->emitOpError("uses a value that the plan can't express; host "
                           "code may use constants, memref.dim and integer "
                           "arithmetic on them");
}

FailureOr<Attribute> PlanBuilder::getExpr(OpFoldResult value, Operation *user) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return expr.constant(*constant);
  return getExpr(cast<Value>(value), user);
}

LogicalResult PlanBuilder::addSizes(ArrayRef<int64_t> shape,
                                    ValueRange dynamicSizes, Operation *user,
                                    SmallVectorImpl<Attribute> &sizes) {
  auto dynamicSize = dynamicSizes.begin();
  for (int64_t size : shape) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(expr.constant(size));
      continue;
    }
    FailureOr<Attribute> value = getExpr(*dynamicSize++, user);
    if (failed(value))
      return failure();
    sizes.push_back(*value);
  }
  return success();
}

FailureOr<BufferView> PlanBuilder::getView(Value value, Operation *user) {
  if (auto it = views.find(value); it != views.end())
    return it->second;
  return user->emitOpError("uses a memref that the plan can't express");
}

Attribute PlanBuilder::getBytes(const BufferView &view, Type elementType) {
  int64_t bits = elementType.getIntOrFloatBitWidth();
  return expr.mul(expr.product(view.sizes),
                  expr.constant(llvm::divideCeil(bits, 8)));
}

/// The bytes of an argument's own value, in base64; null if it has none.
FailureOr<StringAttr> PlanBuilder::getArgumentValue(unsigned index,
                                                    MemRefType type) {
  Attribute attr = func.getArgAttr(index, "attn.value");
  if (!attr)
    return StringAttr();
  auto value = dyn_cast<DenseElementsAttr>(attr);
  if (!value || value.getType().getShape() != type.getShape() ||
      value.getElementType() != type.getElementType())
    return func.emitError("attn.value of argument ")
           << index
           << " must be a dense attribute of the argument's shape and "
              "element type";
  SmallVector<char> bytes;
  if (value.getElementType().isInteger(1))
    llvm::append_range(bytes, value.getValues<bool>());
  else if (!value.isSplat())
    llvm::append_range(bytes, value.getRawData());
  else
    for (int64_t i = 0; i < value.getNumElements(); ++i)
      llvm::append_range(bytes, value.getRawData());
  return builder.getStringAttr(llvm::encodeBase64(bytes));
}

LogicalResult PlanBuilder::addArguments() {
  minBytes = maxIntermediateBytes = expr.constant(0);
  for (BlockArgument arg : func.getArguments()) {
    unsigned index = arg.getArgNumber();
    auto name = builder.getStringAttr(attn::getArgumentName(func, index));
    if (!names.insert(name.getValue()).second)
      return func.emitError("two arguments are named '")
             << name.getValue() << "'; give each its own attn.name";
    bool isOutput = func.getArgAttr(index, "attn.output") != nullptr;
    SmallVector<NamedAttribute> fields = {
        field("name", name), field("role", isOutput ? "output" : "input")};
    auto type = dyn_cast<MemRefType>(arg.getType());
    if (!type) {
      if (!arg.getType().isIntOrFloat())
        return func.emitError("argument ")
               << index << " has type " << arg.getType()
               << "; legal are ranked tensors, integers and floats";
      fields.push_back(field("kind", "scalar"));
      fields.push_back(field("dtype", getTypeName(arg.getType())));
      scalarNames[arg] = name;
      arguments.push_back(builder.getDictionaryAttr(fields));
      continue;
    }
    BufferView view{name, expr.constant(0), {}, {}};
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(type.getStridesAndOffset(strides, offset)))
      return func.emitError("argument ") << index << " has no strided layout";
    SmallVector<Attribute> shape;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      bool dynamicSize = type.isDynamicDim(dim);
      shape.push_back(dynamicSize ? Attribute(builder.getUnitAttr())
                                  : expr.constant(type.getDimSize(dim)));
      view.sizes.push_back(
          dynamicSize ? expr.symbol(name.getValue() + ".dim" + Twine(dim))
                      : expr.constant(type.getDimSize(dim)));
      view.strides.push_back(
          ShapedType::isDynamic(strides[dim])
              ? expr.symbol(name.getValue() + ".stride" + Twine(dim))
              : expr.constant(strides[dim]));
    }
    fields.push_back(field("kind", "tensor"));
    fields.push_back(field("dtype", getTypeName(type.getElementType())));
    fields.push_back(field("shape", builder.getArrayAttr(shape)));
    FailureOr<StringAttr> value = getArgumentValue(index, type);
    if (failed(value))
      return failure();
    if (*value)
      fields.push_back(field("value", *value));
    minBytes = expr.add(minBytes, getBytes(view, type.getElementType()));
    views[arg] = view;
    arguments.push_back(builder.getDictionaryAttr(fields));
  }
  return success();
}

LogicalResult PlanBuilder::addAlloc(memref::AllocOp op) {
  auto type = op.getType();
  if (!type.getLayout().isIdentity())
    return op.emitOpError("allocates a memref that isn't contiguous");
  std::string name;
  for (size_t number = lastUse.size(); name.empty(); ++number)
    if (names.insert(("t" + Twine(number)).str()).second)
      name = ("t" + Twine(number)).str();
  BufferView view{builder.getStringAttr(name), expr.constant(0), {}, {}};
  if (failed(addSizes(type.getShape(), op.getDynamicSizes(), op, view.sizes)))
    return failure();
  view.strides.assign(type.getRank(), expr.constant(1));
  for (int64_t dim = type.getRank() - 2; dim >= 0; --dim)
    view.strides[dim] = expr.mul(view.strides[dim + 1], view.sizes[dim + 1]);
  Attribute bytes = getBytes(view, type.getElementType());
  maxIntermediateBytes =
      lastUse.empty() ? bytes : expr.binary("max", maxIntermediateBytes, bytes);
  views[op.getResult()] = view;
  lastUse[view.buffer] = steps.size();
  addStep({field("op", "alloc"), field("buffer", view.buffer),
           field("bytes", bytes)});
  return success();
}

LogicalResult PlanBuilder::addCopy(memref::CopyOp op) {
  FailureOr<BufferView> source = getView(op.getSource(), op);
  FailureOr<BufferView> target = getView(op.getTarget(), op);
  if (failed(source) || failed(target))
    return failure();
  for (Value value : {op.getSource(), op.getTarget()})
    if (!cast<MemRefType>(value.getType()).getLayout().isIdentity())
      return op.emitOpError("copies a memref that isn't contiguous");
  noteUse(source->buffer);
  noteUse(target->buffer);
  Type elementType =
      cast<MemRefType>(op.getSource().getType()).getElementType();
  addStep({field("op", "copy"), field("src", source->buffer),
           field("dst", target->buffer),
           field("bytes", getBytes(*source, elementType))});
  return success();
}

LogicalResult PlanBuilder::addKernelArgs(tile::LaunchOp op, Value arg,
                                         SmallVectorImpl<Attribute> &args) {
  auto add = [&](ArrayRef<NamedAttribute> fields) {
    args.push_back(builder.getDictionaryAttr(fields));
  };
  auto type = dyn_cast<MemRefType>(arg.getType());
  if (!type) {
    std::string typeName = getTypeName(arg.getType());
    if (StringAttr name = scalarNames.lookup(arg)) {
      add({field("type", typeName), field("scalar", name)});
      return success();
    }
    FailureOr<Attribute> value = getExpr(arg, op);
    if (failed(value))
      return failure();
    add({field("type", typeName), field("value", *value)});
    return success();
  }
  FailureOr<BufferView> view = getView(arg, op);
  if (failed(view))
    return failure();
  noteUse(view->buffer);
  int64_t bytes =
      llvm::divideCeil(type.getElementType().getIntOrFloatBitWidth(), 8);
  add({field("type", "ptr"), field("buffer", view->buffer),
       field("offset_bytes", expr.mul(view->offset, expr.constant(bytes)))});
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return op.emitOpError("passes a memref without strides");
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      add({field("type", "i32"), field("value", view->sizes[dim])});
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (ShapedType::isDynamic(strides[dim]) && !type.getLayout().isIdentity())
      add({field("type", "i64"), field("value", view->strides[dim])});
  return success();
}

LogicalResult PlanBuilder::addLaunch(tile::LaunchOp op) {
  FailureOr<Attribute> grid = getExpr(op.getGrid(), op);
  if (failed(grid))
    return failure();
  SmallVector<Attribute> args;
  for (Value arg : op.getArgs())
    if (failed(addKernelArgs(op, arg, args)))
      return failure();
  SmallVector<NamedAttribute> fields = {
      field("op", "launch"), field("kernel", op.getKernel()),
      field("grid", *grid), field("args", builder.getArrayAttr(args))};
  if (op.getBytes()) {
    FailureOr<Attribute> bytes = getExpr(op.getBytes(), op);
    FailureOr<Attribute> flops = getExpr(op.getFlops(), op);
    if (failed(bytes) || failed(flops))
      return failure();
    fields.push_back(field("bytes", *bytes));
    fields.push_back(field("flops", *flops));
  }
  if (op.getPrepass())
    fields.push_back(field("prepass", builder.getBoolAttr(true)));
  addStep(fields);
  return success();
}

LogicalResult PlanBuilder::addAssert(cf::AssertOp op) {
  FailureOr<Attribute> condition = getExpr(op.getArg(), op);
  if (failed(condition))
    return failure();
  if (getPlanConstant(*condition) == 1)
    return success();
  checks.push_back(builder.getDictionaryAttr(
      {field("expr", *condition), field("message", op.getMsgAttr())}));
  return success();
}

/// Numbers that the caller doesn't pass as they are, but host code computes,
/// can't be checked before it runs.
LogicalResult PlanBuilder::addCheckSequences(CheckSequencesOp op) {
  SmallVector<NamedAttribute> fields;
  for (auto [name, value] : {std::pair("cu_q", op.getCuQ()),
                             {"cu_k", op.getCuK()},
                             {"kv_len", op.getKvLen()},
                             {"block_table", op.getBlockTable()}}) {
    if (!value)
      continue;
    if (!isa<BlockArgument>(value))
      return success();
    FailureOr<BufferView> view = getView(value, op);
    if (failed(view))
      return failure();
    fields.push_back(field(name, view->buffer));
  }
  for (auto [name, value] : {std::pair("q_rows", op.getQRows()),
                             {"k_batches", op.getKBatches()},
                             {"k_rows", op.getKRows()}}) {
    FailureOr<Attribute> size = getExpr(value, op);
    if (failed(size))
      return failure();
    fields.push_back(field(name, *size));
  }
  sequences.push_back(builder.getDictionaryAttr(fields));
  return success();
}

LogicalResult PlanBuilder::addDim(memref::DimOp op) {
  FailureOr<BufferView> view = getView(op.getSource(), op);
  std::optional<int64_t> dim = op.getConstantIndex();
  if (failed(view))
    return failure();
  if (!dim || *dim < 0 || *dim >= static_cast<int64_t>(view->sizes.size()))
    return op.emitOpError("needs a constant dimension in range");
  exprs[op.getResult()] = view->sizes[*dim];
  return success();
}

LogicalResult PlanBuilder::addExpandShape(memref::ExpandShapeOp op) {
  FailureOr<BufferView> source = getView(op.getSrc(), op);
  if (failed(source))
    return failure();
  BufferView view = *source;
  view.sizes.clear();
  if (failed(addSizes(op.getStaticOutputShape(), op.getOutputShape(), op,
                      view.sizes)))
    return failure();
  view.strides.assign(view.sizes.size(), expr.constant(1));
  for (auto [sourceDim, group] :
       llvm::enumerate(op.getReassociationIndices())) {
    Attribute stride = source->strides[sourceDim];
    for (int64_t dim : llvm::reverse(group)) {
      view.strides[dim] = stride;
      stride = expr.mul(stride, view.sizes[dim]);
    }
  }
  views[op.getResult()] = view;
  return success();
}

LogicalResult PlanBuilder::addCollapseShape(memref::CollapseShapeOp op) {
  FailureOr<BufferView> source = getView(op.getSrc(), op);
  if (failed(source))
    return failure();
  BufferView view{source->buffer, source->offset, {}, {}};
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    Attribute size = expr.constant(1);
    for (int64_t dim : group)
      size = expr.mul(size, source->sizes[dim]);
    view.sizes.push_back(size);
    view.strides.push_back(source->strides[group.back()]);
  }
  views[op.getResult()] = view;
  return success();
}

LogicalResult PlanBuilder::addCast(memref::CastOp op) {
  FailureOr<BufferView> source = getView(op.getSource(), op);
  if (failed(source))
    return failure();
  views[op.getResult()] = *source;
  return success();
}

LogicalResult PlanBuilder::addTranspose(memref::TransposeOp op) {
  FailureOr<BufferView> source = getView(op.getIn(), op);
  if (failed(source))
    return failure();
  BufferView view = *source;
  for (auto [dim, sourceDim] :
       llvm::enumerate(AffineMap(op.getPermutation()).getResults())) {
    unsigned position = cast<AffineDimExpr>(sourceDim).getPosition();
    view.sizes[dim] = source->sizes[position];
    view.strides[dim] = source->strides[position];
  }
  views[op.getResult()] = view;
  return success();
}

LogicalResult PlanBuilder::addSubView(memref::SubViewOp op) {
  FailureOr<BufferView> source = getView(op.getSource(), op);
  if (failed(source))
    return failure();
  BufferView view{source->buffer, source->offset, {}, {}};
  llvm::SmallBitVector dropped = op.getDroppedDims();
  for (auto [dim, offset, size, stride] : llvm::enumerate(
           op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides())) {
    FailureOr<Attribute> start = getExpr(offset, op);
    FailureOr<Attribute> count = getExpr(size, op);
    FailureOr<Attribute> step = getExpr(stride, op);
    if (failed(start) || failed(count) || failed(step))
      return failure();
    Attribute sourceStride = source->strides[dim];
    if (getPlanConstant(*start) != 0)
      view.offset = expr.add(view.offset, expr.mul(*start, sourceStride));
    if (dropped.test(dim))
      continue;
    view.sizes.push_back(*count);
    view.strides.push_back(expr.mul(sourceStride, *step));
  }
  views[op.getResult()] = view;
  return success();
}

/// The plan has no "greater": such comparisons take their operands the other
/// way round.
static bool isGreaterComparison(Operation &op) {
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (!compare)
    return false;
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    return true;
  default:
    return false;
  }
}

/// The plan's name for an arithmetic op on index, or "".
static StringRef getOperatorName(Operation &op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    switch (compare.getPredicate()) {
    case arith::CmpIPredicate::eq:
      return "eq";
    case arith::CmpIPredicate::sle:
    case arith::CmpIPredicate::ule:
    case arith::CmpIPredicate::sge:
    case arith::CmpIPredicate::uge:
      return "le";
    case arith::CmpIPredicate::slt:
    case arith::CmpIPredicate::ult:
    case arith::CmpIPredicate::sgt:
    case arith::CmpIPredicate::ugt:
      return "lt";
    default:
      return "";
    }
  }
  return TypeSwitch<Operation *, StringRef>(&op)
      .Case([](arith::AddIOp) { return "add"; })
      .Case([](arith::SubIOp) { return "sub"; })
      .Case([](arith::MulIOp) { return "mul"; })
      .Case<arith::FloorDivSIOp, arith::DivSIOp, arith::DivUIOp>(
          [](auto) { return "floordiv"; })
      .Case<arith::CeilDivSIOp, arith::CeilDivUIOp>(
          [](auto) { return "ceildiv"; })
      .Case<arith::RemSIOp, arith::RemUIOp>([](auto) { return "mod"; })
      .Case<arith::MinSIOp, arith::MinUIOp>([](auto) { return "min"; })
      .Case<arith::MaxSIOp, arith::MaxUIOp>([](auto) { return "max"; })
      .Case([](arith::AndIOp) { return "and"; })
      .Default(StringRef());
}

LogicalResult PlanBuilder::addExpr(Operation &op) {
  StringRef name = getOperatorName(op);
  if (name.empty())
    return op.emitOpError("isn't supported in host code; the plan has "
                          "allocations, copies, launches and integer "
                          "arithmetic on sizes");
  FailureOr<Attribute> a = getExpr(op.getOperand(0), &op);
  FailureOr<Attribute> b = getExpr(op.getOperand(1), &op);
  if (failed(a) || failed(b))
    return failure();
  if (isGreaterComparison(op))
    std::swap(*a, *b);
  exprs[op.getResult(0)] = expr.binary(name, *a, *b);
  return success();
}

LogicalResult PlanBuilder::addOp(Operation &op) {
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](memref::AllocOp op) { return addAlloc(op); })
      .Case([&](memref::CopyOp op) { return addCopy(op); })
      .Case([&](tile::LaunchOp op) { return addLaunch(op); })
      .Case([&](cf::AssertOp op) { return addAssert(op); })
      .Case([&](CheckSequencesOp op) { return addCheckSequences(op); })
      .Case([&](memref::DimOp op) { return addDim(op); })
      .Case([&](tile::NumSMsOp op) {
        exprs[op.getResult()] = expr.numSMs();
        return success();
      })
      .Case([&](memref::ExpandShapeOp op) { return addExpandShape(op); })
      .Case([&](memref::CollapseShapeOp op) { return addCollapseShape(op); })
      .Case([&](memref::CastOp op) { return addCast(op); })
      .Case([&](memref::TransposeOp op) { return addTranspose(op); })
      .Case([&](memref::SubViewOp op) { return addSubView(op); })
      .Case<memref::DeallocOp, func::ReturnOp, arith::ConstantOp>(
          [](auto) { return success(); })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp>([&](auto cast) {
        FailureOr<Attribute> value = getExpr(cast.getIn(), cast);
        if (failed(value))
          return failure();
        exprs[cast.getResult()] = *value;
        return success();
      })
      .Default([&](Operation *op) { return addExpr(*op); });
}

/// Every temporary is freed right after the step that uses it last.
ArrayAttr PlanBuilder::getStepsWithFrees() {
  SmallVector<Attribute> result;
  for (auto [index, step] : llvm::enumerate(steps)) {
    result.push_back(step);
    for (auto &[buffer, last] : lastUse)
      if (last == index)
        result.push_back(builder.getDictionaryAttr(
            {field("op", "free"), field("buffer", buffer)}));
  }
  return builder.getArrayAttr(result);
}

FailureOr<DictionaryAttr> PlanBuilder::build() {
  if (!func.getBody().hasOneBlock())
    return func.emitError("must be straight-line code");
  if (func.getNumResults() != 0)
    return func.emitError("must write its results to arguments "
                          "(run attn-bufferize)");
  if (failed(addArguments()))
    return failure();
  for (Operation &op : func.getBody().front())
    if (failed(addOp(op)))
      return failure();
  SmallVector<NamedAttribute> fields = {
      field("entry", func.getSymNameAttr()),
      field("arguments", builder.getArrayAttr(arguments)),
      field("checks", builder.getArrayAttr(checks)),
      field("plan", getStepsWithFrees()),
      field("min_bytes", minBytes),
      field("max_intermediate_bytes", maxIntermediateBytes)};
  if (!sequences.empty())
    fields.push_back(field("sequences", builder.getArrayAttr(sequences)));
  return builder.getDictionaryAttr(fields);
}

namespace {
struct ConvertHostToPlanPass
    : attn::impl::ConvertHostToPlanBase<ConvertHostToPlanPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto funcs = llvm::to_vector(module.getOps<func::FuncOp>());
    if (funcs.size() != 1) {
      module.emitError("needs exactly one host function, has ")
          << funcs.size() << "; choose one with --entry";
      return signalPassFailure();
    }
    FailureOr<DictionaryAttr> plan = PlanBuilder(funcs.front()).build();
    if (failed(plan))
      return signalPassFailure();
    module->setAttr("attn.plan", *plan);
    funcs.front().erase();
  }
};
} // namespace
