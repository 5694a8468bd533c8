// Scores squashed into (-cap, cap), with a cap of each head's own.

func.func @head_softcap(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                        %k: tensor<?x16x?x64xbf16> {attn.name = "k"},
                        %v: tensor<?x16x?x64xbf16> {attn.name = "v"},
                        %caps: tensor<16xf32> {attn.name = "caps"},
                        %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v, %caps :
          tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>,
          tensor<?x16x?x64xbf16>, tensor<16xf32>)
      outs(%o : tensor<?x16x?x64xbf16>)
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32,
               %caps: tensor<16xf32>) {
      %cap = attn.capture_load %caps[%h] : tensor<16xf32> -> f32
      %ratio = arith.divf %s, %cap : f32
      %squashed = math.tanh %ratio : f32
      %capped = arith.mulf %squashed, %cap : f32
      attn.yield %capped : f32
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
