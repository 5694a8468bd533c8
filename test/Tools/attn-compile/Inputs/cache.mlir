// Causal attention on a cache, of which kv_len says how long it is.

func.func @cache(%q: tensor<?x4x?x64xf16> {attn.name = "q"}, %k: tensor<?x2x?x64xf16> {attn.name = "k"}, %v: tensor<?x2x?x64xf16> {attn.name = "v"}, %n: tensor<?xi32> {attn.name = "n"},
   %o: tensor<?x4x?x64xf16> {attn.name = "o"}) -> tensor<?x4x?x64xf16> {
  %r = attn.attention ins(%q, %k, %v : tensor<?x4x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>) kv_len(%n : tensor<?xi32>) outs(%o : tensor<?x4x?x64xf16>)
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %ql = attn.q_len : i32
      %kl = attn.kv_len : i32
      %s = arith.subi %kl, %ql : i32
      %p = arith.addi %i, %s : i32
      %keep = arith.cmpi sle, %j, %p : i32
      attn.yield %keep : i1
    } -> tensor<?x4x?x64xf16>
  return %r : tensor<?x4x?x64xf16>
}
