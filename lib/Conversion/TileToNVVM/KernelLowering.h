//===- KernelLowering.h - One tile.kernel to one GPU kernel -----*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_TILETONVVM_KERNELLOWERING_H
#define ATTN_LIB_CONVERSION_TILETONVVM_KERNELLOWERING_H

#include "ThreadEmitter.h"
#include "attn/Target/TargetInfo.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::tile {

/// What a thread holds of a tile: one value per element, or one
/// vector<2 x element> per two neighbours where `isPacked`, or one i32 per four
/// 8-bit floats under #tile.mma or #tile.operand. Other 8-bit floats are i8s. A
/// tile in shared memory is the i32 address of its first byte.
using Fragment = SmallVector<Value, 0>;

/// 16-bit floats travel in pairs, one 32-bit register each.
bool isPacked(RankedTensorType type);
bool isInShared(Type type);

/// The module that holds all kernels.
gpu::GPUModuleOp createGPUModule(ModuleOp module);
/// Shared memory is sized at launch: an external array without a size.
LLVM::GlobalOp createSharedMemory(gpu::GPUModuleOp module);

/// A memref argument, by the kernel ABI. Static sizes and strides are
/// constants.
struct MemRefArgument {
  /// Where rows lie in pages: the numbers of a sequence's pages, and how many
  /// rows a page has. `strides` has the distance of pages in dimension 0.
  struct Pages {
    Value numbers;    // pointer to i32
    Value stride;     // of `numbers`, i64
    Value lastNumber; // i32
    int64_t rows;
  };

  Value pointer;
  SmallVector<Value> sizes;   // i32
  SmallVector<Value> strides; // i64
  std::optional<Pages> pages;
};

/// Lowers one kernel, in order, thread by thread: every tile becomes the
/// values that one thread holds of it.
class KernelLowering {
public:
  KernelLowering(KernelOp kernel, gpu::GPUModuleOp module,
                 LLVM::GlobalOp sharedMemory, const attn::TargetInfo &target)
      : kernel(kernel), module(module), sharedMemory(sharedMemory),
        target(target), emit(kernel.getLoc(), kernel.getContext()) {}
  virtual ~KernelLowering() = default;

  LogicalResult run();

protected:
  // KernelLowering.cpp: the frame, control flow and elementwise operations.
  void createFunction();
  void bindArguments();
  LogicalResult allocateBuffers();
  LogicalResult checkLayouts();
  LogicalResult lowerBlock(Block &block);
  LogicalResult lowerNested(Block &block);
  virtual LogicalResult lowerOp(Operation *op);
  /// `value`, an i32 that is the same in all threads of a warp, in a way that
  /// the assembler sees it.
  virtual Value makeUniform(Value value) { return value; }
  LogicalResult lowerFor(scf::ForOp op);
  LogicalResult lowerWhile(scf::WhileOp op);
  LogicalResult lowerIf(scf::IfOp op);
  LogicalResult lowerElementwise(Operation *op);
  void lowerScalar(Operation *op);
  void lowerPagedRows(PagedRowsOp op);
  LogicalResult lowerSubView(memref::SubViewOp op);
  LogicalResult lowerMemRefDim(memref::DimOp op);
  LogicalResult lowerConstant(arith::ConstantOp op);
  LogicalResult lowerTruncF(arith::TruncFOp op);
  LogicalResult lowerExtF(arith::ExtFOp op);
  void lowerSplat(Operation *op, Value scalar);
  void lowerBroadcast(BroadcastOp op);
  void lowerIota(IotaOp op);
  void lowerColumnCompare(arith::CmpIOp op);
  bool lowerColumnSum(Operation *op);
  bool lowerColumnProduct(arith::MulFOp op);
  void lowerReduce(ReduceOp op);
  void lowerAnyExceeds(AnyExceedsOp op);
  LogicalResult lowerFoldSum(FoldSumOp op);
  void lowerExpDiff(ExpDiffOp op);
  LogicalResult lowerConvertLayout(ConvertLayoutOp op);
  FailureOr<Value> lowerMath(Operation *op, ValueRange operands);

  // ColumnBits.cpp
  /// For each of a thread's rows, which of its columns are in a set: bit i of
  /// word w is that of its column 32 * w + i.
  using ColumnBits = SmallVector<SmallVector<Value>>;
  /// How many columns of a row a thread must have for words to pay. They take
  /// registers, of which sm_80's kernels with 16 columns have none left.
  int64_t getMinBitColumns() const { return target.hasWarpRoles ? 16 : 32; }
  ColumnBits compareColumnBits(arith::CmpIOp op);
  ColumnBits combineColumnBits(Operation *op);
  bool keepColumnBits(Operation *op, ColumnBits bits);
  Fragment expandColumnBits(Value tile);
  bool lowerSelectByColumnBits(Operation *op);

  // RangeReduction.cpp
  LogicalResult lowerReduceRange(ReduceRangeOp op);
  FailureOr<SmallVector<Value>> combineNumber(ReduceRangeOp op, Value number,
                                              ArrayRef<Value> carried);
  Value combine(ReduceRangeOp op, unsigned result, Value a, Value b);

  // Memory.cpp
  struct Access;
  Access getAccess(Value memref, ValueRange indices, int64_t rank,
                   int64_t interleave = 1);
  Value isVectorAligned(const Access &access, int64_t elements,
                        bool isWhole = false);
  Value isWhole(const Access &access, RankedTensorType type);
  LogicalResult lowerLoad(LoadOp op);
  struct ElementPosition;
  void move(ElementPosition &position, const MemRefArgument &memref,
            int64_t dim, Value index, bool isInBounds);
  LogicalResult lowerGather(GatherOp op);
  LogicalResult lowerStore(StoreOp op);
  void lowerStoreElement(StoreElementOp op);
  Fragment emitLoad(const Access &access, RankedTensorType type, bool vector,
                    bool isWhole = false);
  void emitStore(const Access &access, RankedTensorType type,
                 ArrayRef<Value> fragment, bool vector);
  Value emitElementLoad(ThreadEmitter::GlobalAddress address, Type element,
                        Value predicate);
  void emitQuadStore(const Access &access, RankedTensorType type,
                     ArrayRef<Value> fragment);
  Value getPredicate(const Access &access, const RegisterLayout &layout,
                     TilePosition offset, RankedTensorType type);
  Value getRowOffset(const Access &access, Value row);
  Value getPointer(const Access &access, Value position);
  ThreadEmitter::GlobalAddress getAddress(const Access &access,
                                          TilePosition offset);
  void emitCopyToShared(const Access &access, RankedTensorType tile,
                        Value address);
  void emitVectorCopy(const Access &access, RankedTensorType tile,
                      Value address);
  void emitElementCopy(const Access &access, RankedTensorType tile,
                       Value address);
  void emitOneElementCopy(const Access &access, const SharedSwizzle &swizzle,
                          Value address, Value tileRow, Value tileCol);
  LogicalResult lowerAsyncLoad(AsyncLoadOp op);
  void lowerBufferRead(BufferReadOp op);
  Value getSlotAddress(Value buffer, Value slot);
  void emitBarrier();

  // Matmul.cpp
  LogicalResult lowerMma(MmaOp op);
  void lowerMma16(MmaOp op);
  void lowerMmaTF32x3(MmaOp op);
  void lowerMmaFMA(MmaOp op);
  SmallVector<Value> loadA16(RankedTensorType type, Value address,
                             int64_t repeat, int64_t kBlock);
  SmallVector<Value> loadB16(MmaOp op, Value address, int64_t nPair,
                             int64_t kBlock);
  SmallVector<Value> loadA32(RankedTensorType type, Value address,
                             int64_t repeat, int64_t kBlock);
  SmallVector<Value> loadB32(MmaOp op, Value address, int64_t nBlock,
                             int64_t kBlock);
  /// Where a lane's chunk of the tile at `address` lies: the first plus the
  /// constant second.
  using SharedAddress = std::pair<Value, int64_t>;
  SharedAddress getSharedAddress(const SharedSwizzle &swizzle, Value address,
                                 Value laneRow, int64_t row, Value laneChunk,
                                 int64_t chunk);
  SmallVector<Value> loadShared(SharedAddress address, Type element,
                                int64_t count);

  SmallVector<Value> getLowered(ValueRange values);
  void bindLowered(ValueRange values, ValueRange like, ValueRange lowered);
  RegisterLayout getLayout(RankedTensorType type);
  Fragment &getFragment(Value tile) { return fragments[tile]; }
  Value getScalar(Value value) { return scalars.lookup(value); }
  /// The elements of a fragment one by one, and back.
  SmallVector<Value> unpack(RankedTensorType type, ArrayRef<Value> fragment);
  Fragment pack(RankedTensorType type, ArrayRef<Value> elements);

  KernelOp kernel;
  gpu::GPUModuleOp module;
  LLVM::GlobalOp sharedMemory;
  const attn::TargetInfo &target;
  ThreadEmitter emit;
  LLVM::LLVMFuncOp function;
  /// Types of parameters behind those of the kernel ABI.
  SmallVector<Type> extraParameters;

  Value thread, warp, lane;
  Value sharedBase; // i32
  IRMapping scalars;
  DenseMap<Value, Fragment> fragments;
  DenseMap<Value, MemRefArgument> memrefs;
  /// A tile whose elements are a value plus a constant of their column.
  struct ColumnSum {
    SmallVector<Value> values;
    SmallVector<float> columns;
  };
  DenseMap<Value, ColumnSum> columnSums;
  /// Tiles of i1 that are sets of columns; those with other users than sets are
  /// fragments too.
  DenseMap<Value, ColumnBits> columnBits;
  /// Byte offsets in shared memory: of alloc_buffer ops, and of loads that go
  /// to shared memory without one.
  DenseMap<Operation *, int64_t> sharedOffsets;
  int64_t sharedBytes = 0;
};

/// Lowers a kernel without warp roles and erases it.
LogicalResult lowerKernel(KernelOp kernel, gpu::GPUModuleOp module,
                          LLVM::GlobalOp sharedMemory,
                          const attn::TargetInfo &target);

} // namespace mlir::tile

#endif // ATTN_LIB_CONVERSION_TILETONVVM_KERNELLOWERING_H
