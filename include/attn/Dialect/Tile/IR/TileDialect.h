//===- TileDialect.h - The tile dialect -------------------------*- C++ -*-===//

#ifndef ATTN_DIALECT_TILE_IR_TILEDIALECT_H
#define ATTN_DIALECT_TILE_IR_TILEDIALECT_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Dialect.h"

#include "attn/Dialect/Tile/IR/TileDialect.h.inc"

#endif // ATTN_DIALECT_TILE_IR_TILEDIALECT_H
