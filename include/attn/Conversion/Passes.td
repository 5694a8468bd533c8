//===- Passes.td - Conversions between dialects --------------*- tablegen -*-===//

#ifndef ATTN_CONVERSION_PASSES_TD
#define ATTN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAttnToLinalg
    : Pass<"convert-attn-to-linalg", "::mlir::func::FuncOp"> {
  let summary = "Lowers attention on tensors to an unfused sequence";
  let description = [{
    Every `attn.attention` becomes a sequence of linalg ops (and
    `attn.softmax`), each of which is one kernel later and carries its name in
    the attribute `attn.step`; docs/Variants.md lists them. Scores and
    probabilities are whole matrices in memory.

    - `naive`: matmul, scale, score_mod, masked fill, softmax and matmul, in the
      input type. The fill is out of place: `bufferization.alloc_tensor
      copy(%scores)` and a destination-style op on the copy.
    - `inplace`: the same; `attn-inplace-mask` then removes the copy.
    - `math`: in f32 and off the matrix units, with the mask rebuilt in memory
      and a safe softmax in single steps.

    Matrix products carry their path (`mma`, `tf32x3`, `fma`) in the attribute
    `attn.path`. They accumulate in f32 and round once.
  }];
  let options = [
    Option<"variant", "variant", "std::string", "\"naive\"",
           "Sequence to make: naive, inplace or math">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ConvertAttnToCudnn : Pass<"convert-attn-to-cudnn", "::mlir::ModuleOp"> {
  let summary = "Lowers attention on memrefs to a call of cuDNN";
  let description = [{
    The one `attn.attention` of the entry function, in memory form, becomes a
    `tile.launch` of an empty `tile.kernel` whose attribute `attn.library` says
    that cuDNN brings it. The launch's arguments are those of
    include/attn/Runtime/CudnnKernel.h, among them the sizes and strides of all
    tensors. What cuDNN doesn't compute is refused with the conditions that
    aren't met; those on dynamic sizes become `cf.assert`s.

    Recognised by their structure, however they are written: as `mask_mod`,
    any conjunction of comparisons that are causal (from the first or the last
    key), a window, or key padding, with `kv_len` or an i32 capture of lengths;
    as `score_mod`, the sum of the score and a captured bias.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::tile::TileDialect"];
}

def ConvertAttnToTile : Pass<"convert-attn-to-tile", "::mlir::ModuleOp"> {
  let summary = "Lowers attention on memrefs to one fused kernel and its launch";
  let description = [{
    Every `attn.attention` in memory form becomes a `tile.launch` of a new
    `tile.kernel`. One program computes `block_m` rows of one query head: it
    loads its Q tile, runs a `tile.kv_loop` over all keys that carries the
    output tile and the running row maxima and sums, and stores the normalised
    output (and the LSE). No score matrix exists in memory. The operator must
    carry a `#attn.schedule` (`attn-select-schedule`).

    Programs are numbered with the row tiles of a head fastest, then heads, so
    that programs that share K and V run at the same time. With a `mask_mod` the
    last rows come first: under a causal mask they are the longest.

    Where lengths are known to the device only (`cu_q`, `cu_k`, `kv_len`), the
    kernel reads them, and the tensors' sequences are `memref.subview`s that end
    where a sequence does. Query tiles of packed sequences are numbered for a
    bound that the launch knows: sequence s, which begins with row `cu_q[s]`,
    owns the numbers from `cu_q[s] / block_m + s` on, which leaves at most one
    program a sequence and head without work. A program finds its sequence by a
    binary search.

    Where one range of keys for each query tile isn't known to say what a
    `mask_mod` hides (what `tile-split-kv-ranges` would find is asked for it),
    kernels of one warp a program are launched before, and list the tiles to
    visit. `..._extremes` takes the least and largest value that each read of
    integers by query or key alone gives for each granule of queries (`block_m`,
    or 64 if that divides it) and `block_n` keys. `..._classes` evaluates the
    rule for granules and tiles of keys: on bounds, and where these don't
    decide, on the elements. `..._tiles` writes the list of each query tile,
    full tiles first, and which part of it each granule needs: `tiles` and
    `bounds` of the mask op in the attention's kernel. A remark says so, and
    names what the analysis can't see through. Kernels for decoding, packed
    sequences and caches have no lists.

    A constant scale > 0 without a `score_mod` is folded into the exponent;
    otherwise the scores are multiplied by it first.

    The launch's cost counts every byte of q, k, v, o and lse once, and the
    operations of the two matrix products without regard to the mask.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
           "Target: cpu, sm_80 or sm_90a">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::tile::TileDialect", "::mlir::scf::SCFDialect"];
}

def ConvertTileToHopper : Pass<"convert-tile-to-hopper", "::mlir::tile::KernelOp"> {
  let summary = "Splits an attention kernel into a producer and consumers (sm_90a)";
  let description = [{
    Rewrites a kernel with one `tile.kv_loop` into a `hopper.warp_specialize`.
    The producer copies the Q tile and the K and V tiles into rings; the
    consumers, one warpgroup per 64 rows of Q, run everything else of the kernel
    as it stands: any score or mask, any elementwise code before, in and after
    the loop. The loop becomes one `scf.for` per range, full steps without
    masks; each warpgroup has the range that its own rows need.

    The loop's `qk` region must hold one product of the Q tile, loaded before the
    loop, with a tile loaded in the region, and its `pv` region one product with
    a tile loaded there, whose result it yields. Other loops are refused. A kernel
    without a loop over keys stays as it is: `convert-hopper-to-nvvm` lowers it as
    `convert-tile-to-nvvm` does.

    How products and softmax overlap, whether the kernel is persistent and what
    else there is to choose says the kernel's attribute `attn.warp_roles`
    (`#attn.warp_roles`, with its defaults where there is none).
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::attn::AttnDialect",
                           "::mlir::hopper::HopperDialect",
                           "::mlir::scf::SCFDialect"];
}

def ConvertHostToPlan : Pass<"convert-host-to-plan", "::mlir::ModuleOp"> {
  let summary = "Turns the host function into a straight-line plan";
  let description = [{
    Replaces the entry function, a straight line of allocations, copies and
    `tile.launch` ops over memrefs, by the module attribute `attn.plan`: the
    part of the manifest (docs/Manifest.md) that the runtime executes without
    any host machine code. Sizes, strides and grids become integer expressions
    over the arguments' dimensions. Only kernels stay in the module.
  }];
}

def ConvertLinalgToTile
    : Pass<"convert-linalg-to-tile", "::mlir::ModuleOp"> {
  let summary = "Lowers linalg on memrefs to one kernel and launch per op";
  let description = [{
    Every linalg op on memrefs, and every `attn.softmax`, becomes a
    `tile.launch` of its own `tile.kernel`:

    | op | kernel |
    |---|---|
    | matrix product (any named or generic form, batched or grouped) | an output tile per program, a loop over K; several tiles where K is one step |
    | elementwise, fill | an output tile per program |
    | `attn.softmax` | a block of rows per program, in registers if a row fits, else in two passes |
    | reduction of the last dimension (add, max, min) | a block of rows per program |

    A `linalg.fill` right before the op that accumulates into its result is the
    start of that op's accumulator, not a kernel. `memref.copy` stays a copy
    where both sides are contiguous, and is elementwise elsewhere.

    Kernels are named after the attribute `attn.step`, for matrix products the
    path, and the element type, e.g. `naive_qk_s16816_bf16`. A matrix product's
    attribute `attn.path` (`mma`, `tf32x3`, `fma`) chooses the arithmetic; by
    default 16-bit types take `mma` and f32 takes `tf32x3`. It accumulates in
    f32 and rounds once, also where the op's body rounds every partial sum.

    The launch's cost counts every byte of the op's operands once, and
    `2 * M * N * K` operations for a matrix product, 5 per element for a
    softmax, and the body's float operations per element otherwise.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
           "Target: cpu, sm_80 or sm_90a">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::tile::TileDialect"];
}

def ConvertTileToVector : Pass<"convert-tile-to-vector", "::mlir::ModuleOp"> {
  let summary = "Lower tile kernels to vector code for the CPU";
  let description = [{
    Every `tile.kernel` becomes `llvm.func @name(%params: !llvm.ptr, %pid: i32)`,
    where `params[i]` points to the value of the i-th kernel parameter: a
    memref's address, its dynamic sizes (i32), its dynamic strides (i64), or a
    scalar. The body is scf, arith and vector code on scratch memory of the
    stack; no runtime library is called.

    A vector's lanes are rows of the tile in kernels with matrix products: then
    a product is a chain of `C[n][lanes] += A[k][lanes] * B[k][n]` with B read
    as it lies in memory, and a row statistic needs no horizontal reduction.
    Kernels without matrix products put columns in the lanes, as memory does.
    Elementwise operations and reductions of one shape share a loop; only tiles
    that are used outside their loop go through scratch memory.

    Runs after `tile-lower-math`: no `tile.kv_loop`, `tile.mask`,
    `tile.score_mod` or `tile.online_softmax` is left.
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"256",
           "Width of the target's vector registers: 128, 256 or 512">
  ];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def RaiseLinalgToAttn : Pass<"raise-linalg-to-attn", "::mlir::func::FuncOp"> {
  let summary = "Finds attention in the linalg ops that exporters emit";
  let description = [{
    Replaces matrix product, scale, mask, softmax and matrix product, in any of
    the shapes that exporters give them, by one `attn.attention`:

    - matrix products as named ops or generics, with k transposed by an op or
      an indexing map, in any batch and head layout (3-D and 4-D, reshaped and
      transposed in between, heads of k and v repeated for grouped queries);
    - a constant scale on q, k or the scores, as a product or a quotient;
    - `linalg.softmax`, or max, subtract, exp, sum and divide;
    - masks as a select of -inf or as an added value that is 0 or -inf, computed
      from positions; any other elementwise change of the scores that is
      computed from scores, positions and lengths becomes the `score_mod`.

    Only -inf hides a key. A low finite value such as -1e9 is a score: it stays
    in the `score_mod`, which gives the same result, also in rows where every
    key has it. A row without a visible key, which softmax turns into NaN, gives
    0. Roundings of intermediate scores and weights to f16 or bf16 are dropped.

    What looks like attention but isn't quite (the softmax runs over another
    axis, the scores are used elsewhere, a mask is a tensor argument) stays as
    it is, with a remark that says why.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::attn::AttnDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ConvertTileToNVVM : Pass<"convert-tile-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "Lowers tile kernels with layouts to GPU kernels";
  let description = [{
    Every `tile.kernel` becomes an `llvm.func` with `nvvm.kernel` in
    `gpu.module @kernels`, of `32 * num_warps` threads: a tile becomes the
    values that one thread holds of it (`#tile.*` layouts,
    `tile-assign-layouts`).

    A memref argument becomes: its aligned pointer with the offset folded in,
    every dynamic size (i32), every dynamic stride (i64; none for the identity
    layout). Scalars stay as they are.

    Memory is accessed in 16-byte vectors where base and strides are aligned
    for it and element by element otherwise, by a branch at run time. Tiles in
    shared memory are copied with cp.async. Arithmetic and control flow become
    LLVM dialect at once: conversions of an unrolled kernel, thousands of
    operations, would take most of the compile time.

    The function carries `attn.num_warps` and `attn.dynamic_smem_bytes`.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"sm_80\"", "Target: sm_80">
  ];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def ConvertHopperToNVVM : Pass<"convert-hopper-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "Lowers warp-specialised kernels to GPU kernels for sm_90a";
  let description = [{
    Every `tile.kernel` with a `hopper.warp_specialize` becomes an `llvm.func` as
    `convert-tile-to-nvvm` makes it, whose last parameters are tensor maps: 128
    bytes each, by value (`grid_constant`). Each describes a memref argument of
    the kernel, with its sizes and strides, a box of 64 columns by the rows of a
    tile, the 128-byte swizzle and zero fill. The launches in the plan
    (`attn.plan`) get them as arguments of type `tensor_map`.

    Kernels without roles, which may stand beside them, become what
    `convert-tile-to-nvvm` makes of them.

    Slots lie in dynamic shared memory, aligned to 1024 bytes by the kernel
    itself, with their mbarriers behind them. Tile `n` of a ring is in slot
    `n mod stages`; its phase parity is that of `n / stages`.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

#endif // ATTN_CONVERSION_PASSES_TD
