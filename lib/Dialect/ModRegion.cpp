//===- ModRegion.cpp - Shared syntax and checks of scalar regions ---------===//

#include "attn/Dialect/ModRegion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

ParseResult attn::parseModRegion(OpAsmParser &parser, Region &region,
                                 bool isIsolated) {
  SmallVector<OpAsmParser::Argument> args;
  if (parser.parseArgumentList(args, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true))
    return failure();
  return parser.parseRegion(region, args, /*enableNameShadowing=*/isIsolated);
}

void attn::printModRegion(OpAsmPrinter &printer, Operation *op,
                          Region &region) {
  printer << '(';
  if (!region.empty())
    llvm::interleaveComma(
        region.getArguments(), printer,
        [&](BlockArgument arg) { printer.printRegionArgument(arg); });
  printer << ") ";
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
}

/// What every target computes with.
static bool isRuleType(Type type) {
  return type.isF32() || type.isF16() || type.isBF16() || type.isIndex() ||
         type.isSignlessInteger(1) || type.isSignlessInteger(8) ||
         type.isSignlessInteger(16) || type.isSignlessInteger(32) ||
         type.isSignlessInteger(64);
}

/// A body op is legal if it computes scalars from scalars without effects.
static LogicalResult verifyBodyOp(Operation &op, StringRef name,
                                  function_ref<bool(Operation *)> isAllowed) {
  if (isAllowed && isAllowed(&op))
    return success();
  if (!isa_and_present<arith::ArithDialect, math::MathDialect>(
          op.getDialect()) ||
      !isMemoryEffectFree(&op))
    return op.emitOpError("is not allowed in ")
           << name << ": its body must be pure scalar arith and math";
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(op.getOperandTypes()),
                                SmallVector<Type>(op.getResultTypes())))
    if (!isRuleType(type))
      return op.emitOpError("must work on i1, i8, i16, i32, i64, index, f16, "
                            "bf16 or f32 in ")
             << name << ", not on " << type;
  return success();
}

LogicalResult attn::verifyModRegion(Region &region, StringRef name,
                                    TypeRange argTypes, TypeRange yieldTypes,
                                    function_ref<bool(Operation *)> isAllowed) {
  Operation *parent = region.getParentOp();
  if (!region.hasOneBlock())
    return parent->emitOpError(name) << " must have exactly one block";
  Block &block = region.front();
  if (TypeRange(block.getArgumentTypes()) != argTypes) {
    InFlightDiagnostic diag = parent->emitOpError(name);
    diag << " must take (" << argTypes << "), but takes ("
         << block.getArgumentTypes() << ")";
    return diag;
  }
  if (block.empty() || !block.back().hasTrait<OpTrait::ReturnLike>() ||
      block.back().getDialect() != parent->getDialect())
    return parent->emitOpError(name)
           << " must end in " << parent->getDialect()->getNamespace()
           << ".yield";
  Operation &yield = block.back();
  if (TypeRange(yield.getOperandTypes()) != yieldTypes) {
    InFlightDiagnostic diag = yield.emitOpError("must yield ");
    if (yieldTypes.size() == 1)
      diag << "one ";
    return diag << yieldTypes << " from " << name;
  }
  for (Operation &op : block.without_terminator())
    if (failed(verifyBodyOp(op, name, isAllowed)))
      return failure();
  return success();
}
