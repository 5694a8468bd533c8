//===- TileOps.cpp - Operations of the tile dialect -----------------------===//

#include "attn/Dialect/Tile/IR/TileOps.h"
#include "attn/Dialect/ModRegion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace mlir::tile;
using attn::parseModRegion;
using attn::printModRegion;

/// The outermost region around `value`; while its op is being parsed, that is
/// the op's region.
static Region *getRootRegion(Value value) {
  Region *region = value.getParentRegion();
  while (region && region->getParentOp())
    region = region->getParentRegion();
  return region;
}

/// If one of several regions of an op uses a value of another, which no valid
/// IR does, a parse that fails destroys the value before its use.
static LogicalResult verifyNoUsesAcross(ArrayRef<Region *> regions) {
  for (Region *region : regions) {
    WalkResult result = region->walk([&](Operation *op) -> WalkResult {
      for (Value operand : op->getOperands()) {
        Region *root = getRootRegion(operand);
        if (root != region && llvm::is_contained(regions, root))
          return op->emitError("uses a value of another region");
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

static ParseResult parseKVLoopRegions(OpAsmParser &parser, Region &qk,
                                      Region &score, Region &softmax,
                                      Region &pv) {
  Region *regions[] = {&qk, &score, &softmax, &pv};
  static constexpr StringLiteral kNames[] = {"qk", "score", "softmax", "pv"};
  auto parse = [&]() -> ParseResult {
    for (auto [region, name] : llvm::zip(regions, kNames))
      if (parser.parseKeyword(name) || parseModRegion(parser, *region))
        return failure();
    return verifyNoUsesAcross(regions);
  };
  if (succeeded(parse()))
    return success();
  for (Region *region : regions)
    region->dropAllReferences();
  return failure();
}

static void printKVLoopRegions(OpAsmPrinter &printer, Operation *op, Region &qk,
                               Region &score, Region &softmax, Region &pv) {
  printer << "qk ";
  printModRegion(printer, op, qk);
  printer << " score ";
  printModRegion(printer, op, score);
  printer << " softmax ";
  printModRegion(printer, op, softmax);
  printer << " pv ";
  printModRegion(printer, op, pv);
}

static ParseResult parseSameTypes(OpAsmParser &, ArrayRef<Type> types,
                                  SmallVectorImpl<Type> &same) {
  same.assign(types.begin(), types.end());
  return success();
}

static void printSameTypes(OpAsmPrinter &, Operation *, TypeRange, TypeRange) {}

#define GET_OP_CLASSES
#include "attn/Dialect/Tile/IR/TileOps.cpp.inc"

static RankedTensorType getTileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     TypeRange argTypes, int32_t numWarps) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  state.addAttribute(
      getFunctionTypeAttrName(state.name),
      TypeAttr::get(builder.getFunctionType(argTypes, TypeRange())));
  state.addAttribute(getNumWarpsAttrName(state.name),
                     builder.getI32IntegerAttr(numWarps));
  Block &entry = state.addRegion()->emplaceBlock();
  for (Type type : argTypes)
    entry.addArgument(type, state.location);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildFuncType =
      [](Builder &builder, ArrayRef<Type> argTypes, ArrayRef<Type> results,
         function_interface_impl::VariadicFlag,
         std::string &) { return builder.getFunctionType(argTypes, results); };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      getFunctionTypeAttrName(result.name), buildFuncType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void KernelOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

static bool isKernelArgType(Type type) {
  if (auto memref = dyn_cast<MemRefType>(type)) {
    if (!memref.getElementType().isIntOrFloat())
      return false;
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(memref.getStridesAndOffset(strides, offset)))
      return false;
    return strides.empty() || strides.back() == 1;
  }
  return type.isInteger(32) || type.isInteger(64) || type.isF32();
}

LogicalResult KernelOp::verify() {
  if (!getBody().hasOneBlock())
    return emitOpError("must have a body of one block");
  if (!getFunctionType().getResults().empty())
    return emitOpError("returns nothing; store results to memrefs");
  for (auto [index, type] : llvm::enumerate(getFunctionType().getInputs()))
    if (!isKernelArgType(type))
      return emitOpError("argument ")
             << index << " has type " << type
             << "; legal are memrefs with innermost stride 1, i32, i64 and f32";
  if (getNumWarps() < 1 || getNumWarps() > 32)
    return emitOpError("num_warps must be in [1, 32], not ") << getNumWarps();
  return success();
}

//===----------------------------------------------------------------------===//
// LaunchOp
//===----------------------------------------------------------------------===//

LogicalResult LaunchOp::verify() {
  // The generic form can give the grid any number of values, which the
  // generated verifier doesn't check.
  if (getODSOperandIndexAndLength(odsIndex_grid).second != 1)
    return emitOpError("must have one grid operand: see operandSegmentSizes");
  if (static_cast<bool>(getBytes()) != static_cast<bool>(getFlops()))
    return emitOpError("cost needs both bytes and flops");
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel =
      symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("launches ")
           << getKernelAttr() << ", which is not a tile.kernel";
  if (TypeRange(kernel.getFunctionType().getInputs()) !=
      TypeRange(getArgs().getTypes())) {
    InFlightDiagnostic diag = emitOpError("passes (") << getArgs().getTypes();
    diag << "), but " << getKernelAttr() << " takes ("
         << kernel.getFunctionType().getInputs() << ")";
    return diag;
  }
  return success();
}

void LaunchOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : getArgsMutable()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
    effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

//===----------------------------------------------------------------------===//
// LoadOp, StoreOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyAccess(Operation *op, RankedTensorType tile,
                                  MemRefType memref, size_t numIndices,
                                  int64_t interleave = 1) {
  if (interleave < 1)
    return op->emitOpError("interleave must be at least 1, not ") << interleave;
  if (interleave > 1 && tile.getRank() >= memref.getRank())
    return op->emitOpError("with interleave needs a dimension in front of "
                           "those of the tile, to take matrices from");
  if (tile.getRank() < 1 || tile.getRank() > 2)
    return op->emitOpError("tile must have rank 1 or 2, not ") << tile;
  if (tile.getRank() == 1 &&
      isa_and_present<PagesAttr>(memref.getMemorySpace()))
    return op->emitOpError("loads rows that lie in pages, which takes a tile "
                           "of rank 2, not ")
           << tile;
  if (tile.getRank() > memref.getRank())
    return op->emitOpError("tile ")
           << tile << " has more dimensions than " << memref;
  if (static_cast<int64_t>(numIndices) != memref.getRank())
    return op->emitOpError("needs ")
           << memref.getRank() << " indices, has " << numIndices;
  if (tile.getElementType() != memref.getElementType())
    return op->emitOpError("element types differ: ")
           << tile << " and " << memref;
  return success();
}

LogicalResult LoadOp::verify() {
  return verifyAccess(*this, getTileType(getResult()),
                      cast<MemRefType>(getSource().getType()),
                      getIndices().size(), getInterleave());
}

void LoadOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getSourceMutable());
}

static LogicalResult verifyNotInPages(Operation *op, MemRefType memref) {
  if (!isa_and_present<PagesAttr>(memref.getMemorySpace()))
    return success();
  return op->emitOpError("can't reach rows that lie in pages; only loads of "
                         "tiles of rank 2 do");
}

LogicalResult GatherOp::verify() {
  auto memref = cast<MemRefType>(getSource().getType());
  if (failed(verifyNotInPages(*this, memref)))
    return failure();
  if (static_cast<int64_t>(getIndices().size()) != memref.getRank())
    return emitOpError("needs ")
           << memref.getRank() << " indices, has " << getIndices().size();
  RankedTensorType tile;
  for (Type type : getIndices().getTypes()) {
    auto indexTile = dyn_cast<RankedTensorType>(type);
    if (!getElementTypeOrSelf(type).isInteger(32) ||
        (isa<ShapedType>(type) && !indexTile))
      return emitOpError("indices must be i32 or tiles of i32, not ") << type;
    if (indexTile && tile && indexTile != tile)
      return emitOpError("indices must be of one shape, not ")
             << tile << " and " << indexTile;
    if (indexTile)
      tile = indexTile;
  }
  Type element = memref.getElementType();
  Type expected = tile ? Type(tile.clone(element)) : element;
  if (getType() != expected)
    return emitOpError("must yield ") << expected << ", not " << getType();
  for (int64_t dim : getInBounds())
    if (dim < 0 || dim >= memref.getRank())
      return emitOpError("has no dimension ") << dim << " to be in bounds";
  return success();
}

MemRefType PagedRowsOp::getRowsType(MemRefType pool) {
  SmallVector<int64_t> shape(pool.getShape());
  shape[0] = 1;
  shape[2] = ShapedType::kDynamic;
  return MemRefType::get(shape, pool.getElementType(), AffineMap(),
                         PagesAttr::get(pool.getContext()));
}

void PagedRowsOp::build(OpBuilder &, OperationState &state, Value pool,
                        Value table, Value sequence, Value length) {
  state.addOperands({pool, table, sequence, length});
  state.addTypes(getRowsType(cast<MemRefType>(pool.getType())));
}

LogicalResult PagedRowsOp::verify() {
  auto pool = cast<MemRefType>(getPool().getType());
  auto table = cast<MemRefType>(getTable().getType());
  if (pool.getRank() != 4 || pool.getDimSize(2) < 1 ||
      !llvm::isPowerOf2_64(pool.getDimSize(2)))
    return emitOpError("takes a pool [pages, heads, page, columns] with a "
                       "static page, a power of two, not ")
           << pool;
  if (table.getRank() != 2 || !table.getElementType().isInteger(32))
    return emitOpError("takes a table of i32 [sequences, pages], not ")
           << table;
  if (getType() != getRowsType(pool))
    return emitOpError("must yield ")
           << getRowsType(pool) << ", not " << getType();
  return success();
}

LogicalResult StoreOp::verify() {
  if (failed(verifyNotInPages(*this, cast<MemRefType>(getDest().getType()))))
    return failure();
  return verifyAccess(*this, getTileType(getValue()),
                      cast<MemRefType>(getDest().getType()),
                      getIndices().size(), getInterleave());
}

void StoreOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getDestMutable());
}

LogicalResult StoreElementOp::verify() {
  auto memref = cast<MemRefType>(getDest().getType());
  if (static_cast<int64_t>(getIndices().size()) == memref.getRank())
    return success();
  return emitOpError("needs ")
         << memref.getRank() << " indices, has " << getIndices().size();
}

void StoreElementOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getDestMutable());
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

LogicalResult AsyncLoadOp::verify() {
  return verifyAccess(*this, cast<BufferType>(getBuffer().getType()).getTile(),
                      cast<MemRefType>(getSource().getType()),
                      getIndices().size(), getInterleave());
}

void AsyncLoadOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getSourceMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getBufferMutable());
}

LogicalResult BufferReadOp::verify() {
  RankedTensorType stored = cast<BufferType>(getBuffer().getType()).getTile();
  RankedTensorType result = getTileType(getResult());
  if (stored.getShape() != result.getShape() ||
      stored.getElementType() != result.getElementType())
    return emitOpError("reads ") << result << " from a buffer of " << stored;
  return success();
}

void BufferReadOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getBufferMutable());
}

LogicalResult ConvertLayoutOp::verify() {
  RankedTensorType source = getTileType(getSource());
  RankedTensorType result = getTileType(getResult());
  if (source.getShape() != result.getShape() ||
      source.getElementType() != result.getElementType())
    return emitOpError("changes only the layout, not ")
           << source << " to " << result;
  return success();
}

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

LogicalResult MmaOp::verify() {
  RankedTensorType a = getTileType(getA()), b = getTileType(getB()),
                   acc = getTileType(getAcc());
  unsigned kDim = getTransposeB() ? 1 : 0;
  if (a.getDimSize(0) != acc.getDimSize(0) ||
      b.getDimSize(1 - kDim) != acc.getDimSize(1) ||
      a.getDimSize(1) != b.getDimSize(kDim))
    return emitOpError("shapes don't match: ")
           << a << " times " << b << (getTransposeB() ? " (transposed)" : "")
           << " plus " << acc;
  if (!acc.getElementType().isF32())
    return emitOpError("accumulates in f32, not ") << acc.getElementType();
  Type element = a.getElementType();
  bool isFloat8 = isa<Float8E4M3FNType, Float8E5M2Type>(element) &&
                  isa<Float8E4M3FNType, Float8E5M2Type>(b.getElementType());
  if (b.getElementType() != element && !isFloat8)
    return emitOpError("operands must have one element type");
  bool isForMatrixUnits = element.isF16() || element.isBF16() || isFloat8;
  if (getPath() == MatmulPath::MMA ? !isForMatrixUnits : !element.isF32())
    return emitOpError("path ")
           << stringifyMatmulPath(getPath()) << " takes "
           << (getPath() == MatmulPath::MMA ? "f16, bf16, f8E4M3FN or f8E5M2"
                                            : "f32")
           << " operands, not " << element;
  if (getPermutedK() && (!isFloat8 || !getTransposeB()))
    return emitOpError("permuted_k is for 8-bit operands with transpose_b");
  return success();
}

LogicalResult ReduceOp::verify() {
  RankedTensorType source = getTileType(getSource());
  RankedTensorType result = getTileType(getResult());
  if (source.getDimSize(0) != result.getDimSize(0) ||
      !source.getElementType().isF32() || !result.getElementType().isF32())
    return emitOpError("reduces an f32 tile [M, N] to [M], not ")
           << source << " to " << result;
  return success();
}

LogicalResult AnyExceedsOp::verify() {
  RankedTensorType source = getTileType(getSource());
  RankedTensorType limits = getTileType(getLimits());
  if (source.getDimSize(0) != limits.getDimSize(0) ||
      !source.getElementType().isF32() || !limits.getElementType().isF32())
    return emitOpError("takes an f32 tile [M, N] and f32 limits [M], not ")
           << source << " and " << limits;
  return success();
}

/// True if `limits` are negative constants, or -inf plus anything.
static bool areBelowZero(Value limits) {
  SplatElementsAttr splat;
  if (matchPattern(limits, m_Constant(&splat)))
    return splat.getSplatValue<APFloat>().isNegative();
  auto add = limits.getDefiningOp<arith::AddFOp>();
  return add && (matchPattern(add.getLhs(), m_NegInfFloat()) ||
                 matchPattern(add.getRhs(), m_NegInfFloat()));
}

/// Some target would answer true, so no one may rely on false.
LogicalResult AnyExceedsOp::canonicalize(AnyExceedsOp op,
                                         PatternRewriter &rewriter) {
  if (!areBelowZero(op.getLimits()))
    return failure();
  rewriter.replaceOpWithNewOp<arith::ConstantOp>(op,
                                                 rewriter.getBoolAttr(true));
  return success();
}

LogicalResult FoldSumOp::verify() {
  RankedTensorType source = getTileType(getSource());
  RankedTensorType result = getTileType(getResult());
  if (source.getDimSize(0) != result.getDimSize(0) ||
      source.getDimSize(1) % kColumns != 0 ||
      result.getDimSize(1) != kColumns || !source.getElementType().isF32() ||
      !result.getElementType().isF32())
    return emitOpError("folds an f32 tile [M, 8 * k] to [M, 8], not ")
           << source << " to " << result;
  return success();
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType source = getTileType(getSource());
  RankedTensorType result = getTileType(getResult());
  if (getDim() != 0 && getDim() != 1)
    return emitOpError("dim must be 0 or 1, not ") << getDim();
  if (source.getElementType() != result.getElementType() ||
      source.getDimSize(0) != result.getDimSize(getDim()))
    return emitOpError("can't broadcast ")
           << source << " along dimension " << getDim() << " of " << result;
  return success();
}

LogicalResult IotaOp::verify() {
  if (!getTileType(getResult()).getElementType().isInteger(32))
    return emitOpError("yields i32 elements");
  return success();
}

LogicalResult ExpDiffOp::verify() {
  RankedTensorType source = getTileType(getSource());
  RankedTensorType max = getTileType(getMax());
  if (!source.getElementType().isF32() || !max.getElementType().isF32() ||
      source.getRank() < 1 || source.getRank() > 2 ||
      source.getDimSize(0) != max.getDimSize(0))
    return emitOpError("takes an f32 tile [M, N] or [M] and its f32 row "
                       "maxima [M], not ")
           << source << " and " << max;
  return success();
}

//===----------------------------------------------------------------------===//
// Score regions
//===----------------------------------------------------------------------===//

static LogicalResult verifyScoreTile(Operation *op, Value source) {
  if (getTileType(source).getElementType().isF32())
    return success();
  return op->emitOpError("scores must be f32, not ")
         << getTileType(source).getElementType();
}

LogicalResult ScoreModOp::verifyRegions() {
  Type f32 = Float32Type::get(getContext());
  Type i32 = IntegerType::get(getContext(), 32);
  if (failed(verifyScoreTile(*this, getSource())))
    return failure();
  return attn::verifyModRegion(getBody(), "score_mod", {f32, i32, i32}, f32,
                               llvm::IsaPred<GatherOp, ElementOp>);
}

/// True for lists of key tiles: [batch, head, query tile, tile].
static bool isTileList(Value tiles) {
  return cast<MemRefType>(tiles.getType()).getRank() == 4;
}

LogicalResult MaskOp::verify() {
  if (!getBounds()) {
    if (getTiles())
      return emitOpError("takes tiles only with bounds, which are positions in "
                         "their list");
    return success();
  }
  if (getTiles() && !isTileList(getTiles()))
    return emitOpError(
        "tiles must be a memref [batch, head, query tile, tile]");
  auto memref = cast<MemRefType>(getBounds().getType());
  if (memref.getRank() != 4 || memref.getDimSize(3) != NumBoundsFields ||
      getBoundsIndices().size() != 3)
    return emitOpError("bounds must be a memref [batch, head, granule, ")
           << int64_t(NumBoundsFields)
           << "] with the indices of batch, head and the first query tile";
  int64_t rows = getTileType(getSource()).getDimSize(0);
  std::optional<int64_t> granule = getBoundsRows();
  if (!granule || *granule <= 0 || rows % *granule != 0)
    return emitOpError("bounds must be of granules that ")
           << rows << " rows are a multiple of";
  return success();
}

Value MaskOp::getTileNumber(OpBuilder &builder) {
  int64_t rows = getTileType(getSource()).getDimSize(0);
  Value size = arith::ConstantOp::create(builder, getLoc(),
                                         builder.getI32IntegerAttr(rows));
  Value number =
      builder.createOrFold<arith::DivUIOp>(getLoc(), getQStart(), size);
  return builder.createOrFold<arith::AddIOp>(getLoc(), getBoundsIndices()[2],
                                             number);
}

LogicalResult MaskOp::verifyRegions() {
  Type i32 = IntegerType::get(getContext(), 32);
  if (failed(verifyScoreTile(*this, getSource())))
    return failure();
  return attn::verifyModRegion(getBody(), "mask", {i32, i32},
                               IntegerType::get(getContext(), 1),
                               llvm::IsaPred<GatherOp, ElementOp>);
}

LogicalResult ElementOp::verify() {
  RankedTensorType scores = getTileType((*this)->getParentOp()->getOperand(0));
  if (getTileType(getTile()).getShape() == scores.getShape())
    return success();
  return emitOpError("takes an element of ")
         << getTile().getType() << ", which must have the shape of the scores "
         << scores;
}

//===----------------------------------------------------------------------===//
// ReduceRangeOp
//===----------------------------------------------------------------------===//

void ReduceRangeOp::build(
    OpBuilder &builder, OperationState &state, Value begin, Value end,
    int64_t numMin, function_ref<SmallVector<Value>(OpBuilder &, Value)> body) {
  state.addOperands({begin, end});
  state.getOrAddProperties<Properties>().num_min =
      builder.getI64IntegerAttr(numMin);
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(state.addRegion(), {},
                                     builder.getI32Type(), state.location);
  SmallVector<Value> values = body(builder, block->getArgument(0));
  YieldOp::create(builder, state.location, values);
  state.addTypes(ValueRange(values).getTypes());
}

int32_t ReduceRangeOp::getNeutral(unsigned result) {
  return isMin(result) ? std::numeric_limits<int32_t>::max()
                       : std::numeric_limits<int32_t>::min();
}

LogicalResult ReduceRangeOp::verifyRegions() {
  if (getNumMin() > getNumResults())
    return emitOpError("has fewer results than num_min");
  return attn::verifyModRegion(getBody(), "reduce_range",
                               IntegerType::get(getContext(), 32),
                               getResultTypes(), llvm::IsaPred<GatherOp>);
}

LogicalResult OnlineSoftmaxOp::verify() {
  RankedTensorType scores = getTileType(getScores());
  RankedTensorType max = getTileType(getMaxIn());
  if (!scores.getElementType().isF32() || !max.getElementType().isF32() ||
      scores.getDimSize(0) != max.getDimSize(0))
    return emitOpError("takes f32 scores [M, N] and f32 [M] statistics, not ")
           << scores << " and " << max;
  return success();
}

//===----------------------------------------------------------------------===//
// KVLoopOp
//===----------------------------------------------------------------------===//

LogicalResult KVLoopOp::verify() {
  if (getStep() <= 0)
    return emitOpError("step must be positive, not ") << getStep();
  if (getInits().getTypes() != getResultTypes())
    return emitOpError("results must have the types of the iter_args");
  if (getTiles() && (!isTileList(getTiles()) || getTilesIndices().size() != 3))
    return emitOpError("tiles must be a memref [batch, head, query tile, tile] "
                       "with three indices");
  return success();
}

Value KVLoopOp::getKey(OpBuilder &builder, Value position,
                       const IRMapping &mapping) {
  if (!getTiles())
    return position;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, getLoc(),
                                     builder.getI32IntegerAttr(value));
  };
  SmallVector<Value> indices;
  for (Value index : getTilesIndices())
    indices.push_back(mapping.lookupOrDefault(index));
  indices.push_back(builder.createOrFold<arith::DivUIOp>(getLoc(), position,
                                                         constant(getStep())));
  Value tile = GatherOp::create(builder, getLoc(), builder.getI32Type(),
                                mapping.lookupOrDefault(getTiles()), indices,
                                /*in_bounds=*/ArrayRef<int64_t>{0, 1, 2});
  return arith::MulIOp::create(builder, getLoc(), tile, constant(getStep()));
}

KVLoopOp KVLoopOp::cloneWithInits(OpBuilder &builder, ValueRange inits) {
  auto loop = KVLoopOp::create(builder, getLoc(), inits.getTypes(), getBegin(),
                               getFullBegin(), getFullEnd(), getEnd(),
                               getStep(), inits, getRows(), getTiles(),
                               getTilesIndices(), getUnordered());
  loop->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  return loop;
}

LogicalResult KVLoopOp::verifyRegions() {
  SmallVector<Type> previous;
  auto carried = getInits().getTypes();
  static constexpr StringLiteral kNames[] = {"qk", "score", "softmax", "pv"};
  for (auto [region, name] : llvm::zip(getRegions(), kNames)) {
    SmallVector<Type> expected = {IntegerType::get(getContext(), 32)};
    llvm::append_range(expected, previous);
    llvm::append_range(expected, carried);
    Block &block = region->front();
    if (TypeRange(block.getArgumentTypes()) != TypeRange(expected)) {
      InFlightDiagnostic diag = emitOpError("region ") << name;
      diag << " must take (" << expected << "), but takes ("
           << block.getArgumentTypes() << ")";
      return diag;
    }
    auto yield = block.empty() ? nullptr : dyn_cast<YieldOp>(block.back());
    if (!yield)
      return emitOpError("region ") << name << " must end in tile.yield";
    previous.assign(yield.getOperandTypes().begin(),
                    yield.getOperandTypes().end());
  }
  if (TypeRange(previous) != TypeRange(carried))
    return emitOpError("region pv must yield the loop-carried types (")
           << carried << ")";
  return success();
}
