// Causal attention with ALiBi whose slopes are an input, one a head.

func.func @alibi_slopes(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                        %k: tensor<?x16x?x64xbf16> {attn.name = "k"},
                        %v: tensor<?x16x?x64xbf16> {attn.name = "v"},
                        %slopes: tensor<16xf32> {attn.name = "slopes"},
                        %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v, %slopes :
          tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>,
          tensor<?x16x?x64xbf16>, tensor<16xf32>)
      outs(%o : tensor<?x16x?x64xbf16>)
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32,
               %slopes: tensor<16xf32>) {
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %position = arith.addi %q_idx, %shift : i32
      %slope = attn.capture_load %slopes[%h] : tensor<16xf32> -> f32
      %distance = arith.subi %kv_idx, %position : i32
      %distance_f = arith.sitofp %distance : i32 to f32
      %bias = arith.mulf %slope, %distance_f : f32
      %biased = arith.addf %s, %bias : f32
      attn.yield %biased : f32
    }
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32,
              %slopes: tensor<16xf32>) {
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %position = arith.addi %q_idx, %shift : i32
      %visible = arith.cmpi sle, %kv_idx, %position : i32
      attn.yield %visible : i1
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
