// A bias of each key, [B, 1, 1, Nk], added to the scores. Every index reads the
// one element of a size that is 1: the same rule adds a [B, Hq, Nq, Nk] bias.

func.func @additive_bias(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                         %k: tensor<?x16x?x64xbf16> {attn.name = "k"},
                         %v: tensor<?x16x?x64xbf16> {attn.name = "v"},
                         %bias: tensor<?x1x1x?xf32> {attn.name = "bias"},
                         %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v, %bias :
          tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>,
          tensor<?x16x?x64xbf16>, tensor<?x1x1x?xf32>)
      outs(%o : tensor<?x16x?x64xbf16>)
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32,
               %bias: tensor<?x1x1x?xf32>) {
      %x = attn.capture_load %bias[%b, %h, %q_idx, %kv_idx] : tensor<?x1x1x?xf32> -> f32
      %biased = arith.addf %s, %x : f32
      attn.yield %biased : f32
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
