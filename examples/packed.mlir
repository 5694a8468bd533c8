// Causal attention on sequences that lie one behind the other in one tensor.
// Sequence s has the rows ends[s] up to ends[s + 1]; lengths are the device's,
// and one kernel serves all.

func.func @packed(%q: tensor<1x16x?x64xbf16> {attn.name = "q"},
                  %k: tensor<1x4x?x64xbf16> {attn.name = "k"},
                  %v: tensor<1x4x?x64xbf16> {attn.name = "v"},
                  %ends: tensor<?xi32> {attn.name = "ends"},
                  %o: tensor<1x16x?x64xbf16> {attn.name = "o"})
    -> tensor<1x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v :
          tensor<1x16x?x64xbf16>, tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16>)
      cu_q(%ends : tensor<?xi32>) cu_k(%ends : tensor<?xi32>)
      outs(%o : tensor<1x16x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %keep = arith.cmpi sle, %kv_idx, %q_idx : i32
      attn.yield %keep : i1
    } -> tensor<1x16x?x64xbf16>
  return %r : tensor<1x16x?x64xbf16>
}
