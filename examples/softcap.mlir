// Soft-capped scores: 30 tanh(s / 30) keeps every score within (-30, 30).

func.func @softcap(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                   %k: tensor<?x16x?x64xbf16> {attn.name = "k"},
                   %v: tensor<?x16x?x64xbf16> {attn.name = "v"},
                   %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>,
                       tensor<?x16x?x64xbf16>)
      outs(%o : tensor<?x16x?x64xbf16>)
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %cap = arith.constant 30.0 : f32
      %scaled = arith.divf %s, %cap : f32
      %squashed = math.tanh %scaled : f32
      %capped = arith.mulf %squashed, %cap : f32
      attn.yield %capped : f32
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
