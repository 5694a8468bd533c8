//===- HopperOps.h - The hopper dialect and its operations ------*- C++ -*-===//

#ifndef ATTN_DIALECT_HOPPER_IR_HOPPEROPS_H
#define ATTN_DIALECT_HOPPER_IR_HOPPEROPS_H

#include "attn/Dialect/Tile/IR/TileOps.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "attn/Dialect/Hopper/IR/HopperDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Hopper/IR/HopperTypes.h.inc"

#define GET_OP_CLASSES
#include "attn/Dialect/Hopper/IR/HopperOps.h.inc"

#endif // ATTN_DIALECT_HOPPER_IR_HOPPEROPS_H
