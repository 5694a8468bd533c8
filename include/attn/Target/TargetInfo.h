//===- TargetInfo.h - What a target can do and hold -------------*- C++ -*-===//

#ifndef ATTN_TARGET_TARGETINFO_H
#define ATTN_TARGET_TARGETINFO_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::attn {

/// One row of the target table (TargetInfo.cpp).
struct TargetInfo {
  /// As in `--target`: "cpu", "sm_80" or "sm_90a".
  llvm::StringRef name;
  bool isGPU;
  /// Fused kernels are split into warp roles that use TMA and wgmma.
  bool hasWarpRoles;
  /// Head dimensions are padded to a multiple of this in a fused kernel's
  /// tiles: the depth of a matrix instruction.
  int64_t columnGranule;
  /// Bytes of shared memory that one program may use (opt-in limit).
  int64_t maxSharedBytes;

  /// The row called `name`, or null.
  static const TargetInfo *lookup(llvm::StringRef name);

  /// The row called `name`; otherwise emits an error at `loc` that lists what
  /// there is and returns null.
  static const TargetInfo *lookupOrEmitError(llvm::StringRef name,
                                             Location loc);

  /// "cpu, sm_80, sm_90a", for messages.
  static std::string getAllNames();

  /// Why there is no row called `name` and what to use instead; `known` are the
  /// names that may be used.
  static std::string explainUnknown(llvm::StringRef name,
                                    llvm::StringRef known = getAllNames());
};

/// What setmaxnreg leaves to a thread of each role on targets with warp roles.
/// The launch allocates 65536 registers divided by the threads, in multiples of
/// 8; a total beyond that makes the consumers wait forever.
struct RegisterSplit {
  /// Of the consumer.
  int64_t warpgroups;
  int32_t producer, consumer;

  /// The split among so many consumer warpgroups, or null.
  static const RegisterSplit *lookup(int64_t warpgroups);
};

/// Tiles of V that lie in shared memory as they came, beside the stages of the
/// kernel, where the producer's warpgroup transposes them: one arrives while
/// the other is read.
constexpr int64_t kStagedValueTiles = 2;

} // namespace mlir::attn

#endif // ATTN_TARGET_TARGETINFO_H
