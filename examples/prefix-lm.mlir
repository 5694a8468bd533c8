// A prefix language model: all see the first 128 keys, the rest is causal. Masks
// compose with andi and ori.

func.func @prefix_lm(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                     %k: tensor<?x16x?x64xbf16> {attn.name = "k"},
                     %v: tensor<?x16x?x64xbf16> {attn.name = "v"},
                     %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>,
                       tensor<?x16x?x64xbf16>)
      outs(%o : tensor<?x16x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %prefix = arith.constant 128 : i32
      %in_prefix = arith.cmpi slt, %kv_idx, %prefix : i32
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %position = arith.addi %q_idx, %shift : i32
      %causal = arith.cmpi sle, %kv_idx, %position : i32
      %visible = arith.ori %in_prefix, %causal : i1
      attn.yield %visible : i1
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
