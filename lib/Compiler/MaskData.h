//===- MaskData.h - What a mask reads, for maps of its tiles ----*- C++ -*-===//

#ifndef ATTN_LIB_COMPILER_MASKDATA_H
#define ATTN_LIB_COMPILER_MASKDATA_H

#include "attn/Analysis/TileMap.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Reference/Reference.h"
#include "attn/Runtime/Tensor.h"
#include "llvm/ADT/StringMap.h"

namespace attn {

/// The tensors that the mask of one attention reads, some or all of them.
class MaskData {
public:
  /// Of the arguments of the function around `op`, those that its mask reads
  /// get the tensors of `inputs` by name; others are left out. Fails after an
  /// error if a tensor doesn't fit its argument, or there is no such argument.
  static mlir::FailureOr<MaskData>
  create(mlir::attn::AttentionOp op, const llvm::StringMap<Tensor> &inputs,
         const mlir::tile::TileMapPoint &point);

  /// For the kernel that `launch`, in the lowered function, runs. Not to be
  /// used longer than this.
  mlir::tile::TileMapData getFor(mlir::tile::LaunchOp launch) const;

private:
  /// Captures and lengths, in the order of the function's arguments.
  struct Argument {
    unsigned number;
    std::string name;
    std::optional<Tensor> tensor;
  };

  MaskData(mlir::attn::AttentionOp op, const mlir::tile::TileMapPoint &point)
      : op(op), loc(op.getLoc()), point(point) {
    if (!op.getKvLen())
      numKeys = point.keyLength;
  }

  void addArguments();
  mlir::LogicalResult bind(const llvm::StringMap<Tensor> &inputs);
  mlir::LogicalResult checkSize(mlir::attn::CaptureLoadOp load);
  mlir::LogicalResult checkCache();
  mlir::LogicalResult createMask();
  const Argument *find(mlir::Value value) const;
  std::string listNames() const;
  std::optional<int64_t> read(unsigned number,
                              llvm::ArrayRef<int64_t> indices) const;
  mlir::FailureOr<llvm::BitVector> getVisibleKeys(int64_t query) const;

  /// There only while this is made.
  mlir::attn::AttentionOp op;
  mlir::Location loc;
  mlir::tile::TileMapPoint point;
  std::vector<Argument> arguments;
  /// Of the batch; none if only a missing tensor says so.
  std::optional<int64_t> numKeys;
  /// None if something is missing that it reads.
  std::optional<ReferenceMask> mask;
};

} // namespace attn

#endif // ATTN_LIB_COMPILER_MASKDATA_H
