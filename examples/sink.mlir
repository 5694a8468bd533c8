// Causal attention with a sink: a logit of each head that takes part of the
// softmax without a value.

func.func @sink(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                %k: tensor<?x4x?x64xbf16> {attn.name = "k"},
                %v: tensor<?x4x?x64xbf16> {attn.name = "v"},
                %sink: tensor<16xbf16> {attn.name = "sink"},
                %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<?x16x?x64xbf16>, tensor<?x4x?x64xbf16>,
                       tensor<?x4x?x64xbf16>)
      sink(%sink : tensor<16xbf16>)
      outs(%o : tensor<?x16x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %position = arith.addi %q_idx, %shift : i32
      %visible = arith.cmpi sle, %kv_idx, %position : i32
      attn.yield %visible : i1
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
