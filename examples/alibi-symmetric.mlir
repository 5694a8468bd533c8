// ALiBi without a mask: the bias is -slope * 
// key - position
// .

func.func @alibi_symmetric(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                           %k: tensor<?x16x?x64xbf16> {attn.name = "k"},
                           %v: tensor<?x16x?x64xbf16> {attn.name = "v"},
                           %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>,
                       tensor<?x16x?x64xbf16>)
      outs(%o : tensor<?x16x?x64xbf16>)
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %step = arith.constant -0.5 : f32
      %head = arith.sitofp %h : i32 to f32
      %scaled = arith.mulf %head, %step : f32
      %exponent = arith.addf %scaled, %step : f32
      %slope = math.exp2 %exponent : f32
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %position = arith.addi %q_idx, %shift : i32
      %distance = arith.subi %kv_idx, %position : i32
      %magnitude = math.absi %distance : i32
      %magnitude_f = arith.sitofp %magnitude : i32 to f32
      %bias = arith.mulf %slope, %magnitude_f : f32
      %biased = arith.subf %s, %bias : f32
      attn.yield %biased : f32
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
