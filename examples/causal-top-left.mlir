// Causal attention, top-left aligned: query i sees keys 0 to i, whatever the
// lengths.

func.func @causal_top_left(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                           %k: tensor<?x16x?x64xbf16> {attn.name = "k"},
                           %v: tensor<?x16x?x64xbf16> {attn.name = "v"},
                           %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>,
                       tensor<?x16x?x64xbf16>)
      outs(%o : tensor<?x16x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %visible = arith.cmpi sle, %kv_idx, %q_idx : i32
      attn.yield %visible : i1
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
