//===- AttnOps.td - Operations of the attn dialect ---------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNOPS_TD
#define ATTN_DIALECT_ATTN_IR_ATTNOPS_TD

include "attn/Dialect/Attn/IR/AttnAttributes.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

class Attn_Op<string mnemonic, list<Trait> traits = []>
    : Op<AttnDialect, mnemonic, traits>;

def Attn_Shaped4D : Type<
    Or<[4DTensorOf<[AnyType]>.predicate, MemRefRankOf<[AnyType], [4]>.predicate]>,
    "rank-4 tensor or memref">;
def Attn_Shaped : Type<
    Or<[AnyRankedTensor.predicate, AnyMemRef.predicate]>,
    "ranked tensor or memref">;

def AttentionOp : Attn_Op<"attention", [
    AttrSizedOperandSegments, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    SingleBlock, IsolatedFromAbove]> {
  let summary = "Scaled dot-product attention with score and mask rules";
  let description = [{
    For every batch `b`, query head `h` and query `i`, with
    `g = h / (Hq / Hkv)` the head that serves it,

    ```
    s[j] = score_mod(c * sum_d q[b,h,i,d] * k[b,g,j,d], b, h, i, j)
    c    = scale * q_scale[b,h] * k_scale[b,g]
    J    = { j : mask_mod(b, h, i, j) }
    o[b,h,i,:]  = v_scale[b,g] * sum_{j in J} exp(s[j] - lse) * v[b,g,j,:]
    lse[b,h,i]  = log(sum_{j in J} exp(s[j]))
    ```

    | operand | shape | element type |
    |---|---|---|
    | `q` | [B, Hq, Nq, Dqk] | f16, bf16, f32, f8E4M3FN or f8E5M2 |
    | `k` | [B, Hkv, Nk, Dqk] | as q, or either of 8 bits |
    | `v` | [B, Hkv, Nk, Dv] | as q, or either of 8 bits |
    | `captures` | any | read by `attn.capture_load` in the regions |
    | `scale` | scalar | f32; excludes the `scale` attribute |
    | `sink` (optional) | [Hq] | f16, bf16 or f32 |
    | `cu_q`, `cu_k` (optional) | [S + 1] | i32 |
    | `kv_len` (optional) | [S] | i32 |
    | `block_table` (optional) | [S, P] | i32 |
    | `q_scale` (optional) | [1], [Hq] or [B, Hq] | f32, with 8-bit q |
    | `k_scale`, `v_scale` (optional) | [1], [Hkv] or [B, Hkv] | f32, with 8-bit q |
    | `o` (outs) | [B, Hq, Nq, Dv] | as q; f16, bf16 or f32 with 8-bit q |
    | `lse` (outs, optional) | [B, Hq, Nq] | f32, natural logarithm |

    `Hq` is a multiple of `Hkv` (grouped-query attention). Batch and lengths
    may be dynamic: one kernel serves all. The `scale` attribute defaults to
    1/sqrt(Dqk); any finite value is legal. `mask_mod` and `score_mod` get
    their indices as i32; `h` is the query head. Their bodies are pure scalar
    `arith` and `math` on i1, i8, i16, i32, i64, index, f16, bf16 and f32, don't
    divide integers by a constant 0 or shift them by a constant that isn't less
    than their width, and may ask for the true lengths (`attn.q_len`,
    `attn.kv_len`). The regions are isolated from above, so that folding and CSE
    never tie them to the code around; each capture is one more argument of
    both regions, after the indices, and is read by `attn.capture_load`. A bias
    of [B, 1, 1, Nk], document numbers, slopes, lengths of padded keys: all are
    captures.

    `sink` is one more score per query head, of a key whose value is 0: it only
    joins the denominator. It is a logit in natural units, which neither `scale`
    nor the rules touch, and counts in `lse`, the log of the whole denominator:

    ```
    lse[b,h,i]  = log(exp(sink[h]) + sum_{j in J} exp(s[j]))
    ```

    A sink of -inf is as good as none, and one of +inf gives o = 0.

    **Sequences.** Without more operands every batch is one sequence, as long as
    the tensors. Lengths that only the device knows come through four operands,
    so that one kernel serves all of them. `b` is then the number of the
    sequence, from 0 to S - 1; `q_idx` and `kv_idx` count from its first query
    and key; `attn.q_len` and `attn.kv_len` are its own lengths.

    | operand | form of the tensors | sequence s |
    |---|---|---|
    | `cu_q` | q, o [1, Hq, Tq, D], lse [1, Hq, Tq] | has the queries from `cu_q[s]` up to `cu_q[s + 1]` |
    | `cu_k` | k, v [1, Hkv, Tk, D] | has the keys from `cu_k[s]` up to `cu_k[s + 1]` |
    | `kv_len` | any | has `kv_len[s]` keys, from its first on |
    | `block_table` | k, v [pages, Hkv, page, D] | has key j in row j mod page of page `block_table[s, j / page]` |

    - `cu_q` and `cu_k` begin with 0 and don't decrease; S is their size less 1.
      Each of q and of k and v may be packed, or have a batch a sequence.
    - `kv_len` is the length of a cache that has room for more, with the new
      keys already in it; with `cu_k`, the keys in use of each sequence.
    - `block_table` needs `kv_len`, and excludes `cu_k`. A page has a power of
      two of rows, from 1 to 256. Entries past the last page in use may be
      anything.
    - A sequence may be empty. Queries without keys give o = 0 and lse = -inf.
    - What memory holds past a sequence's end, NaN too, never matters in k or v.
      Rows of o and lse that belong to no sequence are left as they are.
    - Offsets that decrease or pass the tensor's end, lengths beyond the room,
      and pages that don't exist are errors. On the CPU every launch checks
      for them, on a GPU one that is asked to (docs/Sequences.md); without the
      check a result is unspecified, but no kernel leaves the tensors.

    8-bit inputs stand for their values times the scales `q_scale`, `k_scale` and
    `v_scale`: one for the tensor, one a head, or one a batch and head; 1 where
    there is none. Those of q and k must be positive and finite. The weights
    are rounded to f8E4M3FN before they are multiplied with v, relative to the
    row's largest times 2^5 to 2^8, so that the smallest that counts is 2^-15 of
    it; their sum is not rounded. That makes a relative error of about 2.5e-2
    (root mean square) in o.

    Contract:

    - A row that sees no key gives o = 0 and lse = -inf, or its sink.
    - Only `mask_mod` = false hides a key. A finite score, however negative,
      never does. A score of -inf has weight 0.
    - NaN or Inf in a masked key never matters, in its value (v) neither where
      the `mask_mod` is `kv_idx < n` or a conjunction with it, for an n of the
      batch and the head: key padding. Other values that it hides from some
      queries may be multiplied by their weight of 0, which makes NaN.
    - Causal is bottom-right aligned: `kv_idx <= q_idx + kv_len - q_len`.

    `schedule` says how the fused kernel is tiled; `attn-select-schedule` fills
    it in. With `short_schedules`, which go by increasing query length, it is
    for the sequences that are longer than all of theirs.

    With `batch_invariant` a row's result is the same to the last bit whatever
    else is in the batch: the number of parts that a schedule cuts the keys into
    then depends on their length alone, not on the batch and the device.

    Example:

    ```mlir
    %r = attn.attention ins(%q, %k, %v : tensor<2x16x?x64xbf16>,
                            tensor<2x4x?x64xbf16>, tensor<2x4x?x64xbf16>)
                        outs(%o : tensor<2x16x?x64xbf16>)
      mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
        %ql = attn.q_len : i32
        %kl = attn.kv_len : i32
        %d = arith.subi %kl, %ql : i32
        %last = arith.addi %q_idx, %d : i32
        %keep = arith.cmpi sle, %kv_idx, %last : i32
        attn.yield %keep : i1
      } -> tensor<2x16x?x64xbf16>
    ```
  }];

  let arguments = (ins
    Attn_Shaped4D:$q, Attn_Shaped4D:$k, Attn_Shaped4D:$v,
    Variadic<Attn_Shaped>:$captures,
    Optional<F32>:$scale_value,
    Optional<Attn_Shaped>:$sink,
    Optional<Attn_Shaped>:$cu_q, Optional<Attn_Shaped>:$cu_k,
    Optional<Attn_Shaped>:$kv_len, Optional<Attn_Shaped>:$block_table,
    Optional<Attn_Shaped>:$q_scale, Optional<Attn_Shaped>:$k_scale,
    Optional<Attn_Shaped>:$v_scale,
    Attn_Shaped4D:$o, Optional<Attn_Shaped>:$lse,
    OptionalAttr<F32Attr>:$scale,
    OptionalAttr<Attn_ScheduleAttr>:$schedule,
    OptionalAttr<Attn_ShortScheduleArrayAttr>:$short_schedules,
    UnitAttr:$batch_invariant);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region AnyRegion:$score_mod, AnyRegion:$mask_mod);

  let assemblyFormat = [{
    `ins` `(` $q `,` $k `,` $v (`,` $captures^)? `:`
      type($q) `,` type($k) `,` type($v) (`,` type($captures)^)? `)`
    (`scale` `(` $scale_value^ `:` type($scale_value) `)`)?
    (`sink` `(` $sink^ `:` type($sink) `)`)?
    (`cu_q` `(` $cu_q^ `:` type($cu_q) `)`)?
    (`cu_k` `(` $cu_k^ `:` type($cu_k) `)`)?
    (`kv_len` `(` $kv_len^ `:` type($kv_len) `)`)?
    (`block_table` `(` $block_table^ `:` type($block_table) `)`)?
    (`q_scale` `(` $q_scale^ `:` type($q_scale) `)`)?
    (`k_scale` `(` $k_scale^ `:` type($k_scale) `)`)?
    (`v_scale` `(` $v_scale^ `:` type($v_scale) `)`)?
    `outs` `(` $o (`,` $lse^)? `:` type($o) (`,` type($lse)^)? `)`
    attr-dict
    (`score_mod` custom<IsolatedModRegion>($score_mod)^)?
    (`mask_mod` custom<IsolatedModRegion>($mask_mod)^)?
    (`->` type($results)^)?
  }];

  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();

    /// Static sizes; batch and lengths may be dynamic and have no getter.
    int64_t getNumQueryHeads();
    int64_t getNumKVHeads();
    int64_t getQKHeadDim();
    int64_t getVHeadDim();
    ::mlir::Type getElementType();
    /// Of the output: q's, unless that has 8 bits.
    ::mlir::Type getOutputElementType();
    /// Whether q, k and v are of 8 bits.
    bool isQuantized() {
      return getElementType().getIntOrFloatBitWidth() == 8;
    }

    bool hasScoreMod() { return !getScoreMod().empty(); }
    bool hasMaskMod() { return !getMaskMod().empty(); }
    /// Whether lengths are known to the device only.
    bool hasDeviceLengths() {
      return getCuQ() || getCuK() || getKvLen() || getBlockTable();
    }
    /// The sizes that are the number of sequences.
    ::llvm::SmallVector<::mlir::attn::SequenceCount> getSequenceCounts();
    /// Whether a rule reads captures by the query or the key, not only by
    /// batch and head.
    bool readsCapturesByPosition();

    /// The scale as a constant, 1/sqrt(Dqk) by default; none if it is an
    /// operand.
    std::optional<float> getConstantScale();

    /// Memory form: no results, all shaped operands are memrefs.
    bool hasBufferSemantics();
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
}

def YieldOp : Attn_Op<"yield", [Pure, ReturnLike, Terminator,
    ParentOneOf<["AttentionOp"]>]> {
  let summary = "Ends a score_mod or mask_mod region";
  let description = [{
    Yields the new score (f32) from a `score_mod`, or whether the key is
    visible (i1) from a `mask_mod`.
  }];
  let arguments = (ins AnyTypeOf<[F32, I1]>:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

class Attn_LengthOp<string mnemonic, string which>
    : Attn_Op<mnemonic, [Pure]> {
  let summary = "The current sequence's " # which # " length";
  let description = [{
    Legal only inside the regions of `attn.attention`. For packed or cached
    sequences it is the true length of the sequence that the query belongs to,
    not the tensor's.

    ```mlir
    %n = attn.}] # mnemonic # [{ : i32
    ```
  }];
  let results = (outs I32:$length);
  let assemblyFormat = "attr-dict `:` type($length)";
  let hasVerifier = 1;
}
def QLenOp : Attn_LengthOp<"q_len", "query">;
def KVLenOp : Attn_LengthOp<"kv_len", "key/value">;

def CaptureLoadOp : Attn_Op<"capture_load", [Pure]> {
  let summary = "Reads one element of a captured tensor";
  let description = [{
    In a `score_mod` or `mask_mod`, `source` is the argument that stands for a
    capture; in the body of the linalg op that an unfused sequence makes of
    one, it is the capture itself. Indices are i32 and zero-based.

    - The result has the capture's element type (f16, bf16, f32, i1, i8, i32 or
      i64); ops that follow convert it. i1 takes one byte in memory, 0 or 1.
    - In a dimension whose size is 1 in the type, every index reads its one
      element: it is broadcast.
    - In other dimensions, a negative index or one past the end reads 0. A
      constant that does so is an error: of the operator, or of the launch where
      it is past a dynamic size. An index that is just `b`, `h`,
      `q_idx` or `kv_idx` needs a dimension of at least the number of sequences,
      the number of query heads, the query or the key length, which is checked
      before the launch where the sizes are dynamic. Lengths that only the
      device knows can't be checked.
    - Nothing writes the capture while the attention runs, so the op has no
      effect.

    ```mlir
    %bias = attn.capture_load %table[%h, %kv_idx] : tensor<16x?xf32> -> f32
    ```
  }];
  let arguments = (ins Attn_Shaped:$source, Variadic<I32>:$indices);
  let results = (outs AnyTypeOf<[AnySignlessInteger, AnyFloat]>:$result);
  let assemblyFormat =
      "$source `[` $indices `]` attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether every index into dimension `dim` reads the one element there.
    bool isBroadcast(unsigned dim) {
      return ::llvm::cast<::mlir::ShapedType>(getSource().getType())
                 .getDimSize(dim) == 1;
    }

    /// The indices that are an index argument of the region around.
    ::llvm::SmallVector<::mlir::attn::CaptureBound> getBounds();
  }];
}

def CheckSequencesOp : Attn_Op<"check_sequences", [AttrSizedOperandSegments]> {
  let summary = "Checks the sequences of an attention before it runs";
  let description = [{
    What `attn.attention` says of its operands of these names: offsets begin
    with 0, don't decrease and end within `q_rows` and `k_rows`; lengths lie
    within the room that `k_rows`, the next offset or the table's pages leave;
    the pages in use lie below `k_batches`. It stands in host code beside
    the checks of sizes, which come first, and becomes a check of the plan.

    ```mlir
    attn.check_sequences queries(%tq) keys(%pages, %page)
      cu_q(%ends : tensor<?xi32>) kv_len(%lens : tensor<?xi32>) block_table(%table : tensor<?x?xi32>)
    ```
  }];
  let arguments = (ins Index:$q_rows, Index:$k_batches, Index:$k_rows,
                       Optional<Attn_Shaped>:$cu_q, Optional<Attn_Shaped>:$cu_k,
                       Optional<Attn_Shaped>:$kv_len,
                       Optional<Attn_Shaped>:$block_table);
  let assemblyFormat = [{
    `queries` `(` $q_rows `)` `keys` `(` $k_batches `,` $k_rows `)`
    (`cu_q` `(` $cu_q^ `:` type($cu_q) `)`)?
    (`cu_k` `(` $cu_k^ `:` type($cu_k) `)`)?
    (`kv_len` `(` $kv_len^ `:` type($kv_len) `)`)?
    (`block_table` `(` $block_table^ `:` type($block_table) `)`)?
    attr-dict
  }];
}

def SoftmaxOp : Attn_Op<"softmax", [
    DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Row softmax of scores, one step of the unfused sequences";
  let description = [{
    Over the last dimension, in f32,

    ```
    lse[...]  = log(sum_j exp(s[..., j]))
    p[..., j] = exp(s[..., j] - lse[...])
    ```

    It differs from `linalg.softmax` in `attn.attention`'s contract: a row
    without a score above -inf has p = 0 (not NaN) and lse = -inf. `p` has the
    shape of `s`; `lse` (optional) is f32 without the last dimension.

    ```mlir
    %p = attn.softmax ins(%s : tensor<2x16x?x?xbf16>)
                      outs(%e : tensor<2x16x?x?xbf16>) -> tensor<2x16x?x?xbf16>
    ```
  }];
  let arguments = (ins Attn_Shaped:$scores, Attn_Shaped:$p,
                       Optional<Attn_Shaped>:$lse);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `ins` `(` $scores `:` type($scores) `)`
    `outs` `(` $p (`,` $lse^)? `:` type($p) (`,` type($lse)^)? `)`
    attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
  }];
  let hasVerifier = 1;
}

def MergeOp : Attn_Op<"merge", [Pure, AttrSizedOperandSegments]> {
  let summary = "Merges partial attention results over disjoint sets of keys";
  let description = [{
    With partial outputs `o_i` and their natural-log `lse_i`,

    ```
    lse = log(sum_i exp(lse_i))
    o   = sum_i exp(lse_i - lse) * o_i
    ```

    A part with `lse_i` = -inf or +inf is empty and contributes nothing; if all
    are, o = 0 and lse = -inf.

    ```mlir
    %o, %lse = attn.merge %o0, %o1 with %l0, %l1
      : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32> with tensor<1x4x8xf32>, tensor<1x4x8xf32>
      -> tensor<1x4x8x64xf32>, tensor<1x4x8xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$partials,
                       Variadic<AnyRankedTensor>:$partial_lses);
  let results = (outs AnyRankedTensor:$o, AnyRankedTensor:$lse);
  let assemblyFormat = [{
    $partials `with` $partial_lses attr-dict `:` type($partials) `with`
    type($partial_lses) `->` type($o) `,` type($lse)
  }];
  let hasVerifier = 1;
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNOPS_TD
