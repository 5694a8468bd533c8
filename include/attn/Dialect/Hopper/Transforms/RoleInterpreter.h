//===- RoleInterpreter.h - Runs the protocol of a program -------*- C++ -*-===//
//
// Runs the integer code of the roles of a warp-specialised program on the host
// and records what each does to rings, slots and products. Tiles and floats are
// unknown; what depends on them can't be traced.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_HOPPER_TRANSFORMS_ROLEINTERPRETER_H
#define ATTN_DIALECT_HOPPER_TRANSFORMS_ROLEINTERPRETER_H

#include "attn/Dialect/Hopper/IR/HopperOps.h"
#include <memory>
#include <optional>
#include <vector>

namespace mlir::hopper {

/// The tile that passes through a ring as number `number`. A ring is named by
/// the first operand of the warp_specialize op that is this ring.
struct TileRef {
  unsigned ring = 0;
  int64_t number = 0;

  bool operator==(const TileRef &other) const {
    return ring == other.ring && number == other.number;
  }
  bool operator!=(const TileRef &other) const { return !(*this == other); }
  std::string describe() const;
};

/// One operation of a role, with its values.
struct RoleEvent {
  enum class Kind {
    Acquire,
    Load,
    Put,
    Commit,
    Wait,
    Slot,
    Get,
    Read,
    Transpose,
    Store,
    Release,
    StartProduct,
    FinishProduct,
    NextTile,
  };
  RoleEvent(Kind kind, Operation *op, TileRef tile = {})
      : kind(kind), op(op), tile(tile) {}

  Kind kind;
  Operation *op;
  /// The tile whose slot is used; of a product, the right operand, and of a
  /// transposition the target.
  TileRef tile;
  /// The left operand of a product, if it is in shared memory; the source of a
  /// transposition.
  std::optional<TileRef> left;
  /// The product that starts or is waited for, counted over the role.
  int64_t product = -1;
  /// The product that a product accumulates to, if that may be pending.
  std::optional<int64_t> accumulator;
  /// How many products a wait leaves in flight, or the tile that is taken.
  int64_t value = 0;
  /// The numbers that are put or got, where they are known.
  SmallVector<std::optional<int64_t>> numbers;

  /// Does the same, whatever the operation.
  bool isSame(const RoleEvent &other) const;
};

/// What one role (or one of its warpgroups) does, in order.
struct RoleTrace {
  std::vector<RoleEvent> events;
  /// False if the last event gets a number that the producer never puts.
  bool isComplete = true;
};

struct ProgramTrace {
  RoleTrace producer;
  /// If there is that role.
  std::optional<RoleTrace> transposer;
  std::vector<RoleTrace> warpgroups;
};

/// One problem and program.
struct ProblemSample {
  /// The dynamic sizes of the first memref.
  int64_t querySize = 1;
  /// Those of the other memrefs, and integer arguments.
  int64_t otherSize = 1;
  int64_t program = 0;
  /// What a persistent program works on: tiles `program + i * numPrograms`
  /// below `numTiles`.
  int64_t numPrograms = 1, numTiles = 1;

  std::string describe() const;
};

class RoleInterpreter;

/// Traces the program of one warp_specialize op. Its regions must not change
/// while this lives, but for what folding does to operations.
class ProgramInterpreter {
public:
  explicit ProgramInterpreter(WarpSpecializeOp op);
  ~ProgramInterpreter();

  /// Whether the program must take tiles until there is none left.
  bool isPersistent() const { return persistent; }

  /// Control flow, the numbers of tiles and slots must follow from sizes,
  /// numbers in rings and what a program knows about itself.
  FailureOr<ProgramTrace> run(const ProblemSample &sample);

private:
  WarpSpecializeOp op;
  std::unique_ptr<RoleInterpreter> producer, consumer, transposer;
  bool areWarpgroupsEqual, persistent;
};

} // namespace mlir::hopper

#endif // ATTN_DIALECT_HOPPER_TRANSFORMS_ROLEINTERPRETER_H
