// T5's relative bias, both ways: 32 buckets of distances, of which the first 8 of
// either side are single and the last begins at 91, with a bias of each head.

func.func @t5_relative_bias(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                            %k: tensor<?x16x?x64xbf16> {attn.name = "k"},
                            %v: tensor<?x16x?x64xbf16> {attn.name = "v"},
                            %table: tensor<32x16xf32> {attn.name = "table"},
                            %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v, %table :
          tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>,
          tensor<?x16x?x64xbf16>, tensor<32x16xf32>)
      outs(%o : tensor<?x16x?x64xbf16>)
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32,
               %table: tensor<32x16xf32>) {
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %position = arith.addi %q_idx, %shift : i32
      %table_half = arith.constant 16 : i32
      %zero = arith.constant 0 : i32
      %far = arith.constant 8 : i32
      %later = arith.maxsi %position, %kv_idx : i32
      %earlier = arith.minsi %position, %kv_idx : i32
      %distance = arith.subi %later, %earlier : i32
      %bucket0 = arith.minsi %distance, %far : i32
      %c12 = arith.constant 12 : i32
      %is12 = arith.cmpi sge, %distance, %c12 : i32
      %one12 = arith.extui %is12 : i1 to i32
      %bucket1 = arith.addi %bucket0, %one12 : i32
      %c16 = arith.constant 16 : i32
      %is16 = arith.cmpi sge, %distance, %c16 : i32
      %one16 = arith.extui %is16 : i1 to i32
      %bucket2 = arith.addi %bucket1, %one16 : i32
      %c23 = arith.constant 23 : i32
      %is23 = arith.cmpi sge, %distance, %c23 : i32
      %one23 = arith.extui %is23 : i1 to i32
      %bucket3 = arith.addi %bucket2, %one23 : i32
      %c32 = arith.constant 32 : i32
      %is32 = arith.cmpi sge, %distance, %c32 : i32
      %one32 = arith.extui %is32 : i1 to i32
      %bucket4 = arith.addi %bucket3, %one32 : i32
      %c46 = arith.constant 46 : i32
      %is46 = arith.cmpi sge, %distance, %c46 : i32
      %one46 = arith.extui %is46 : i1 to i32
      %bucket5 = arith.addi %bucket4, %one46 : i32
      %c64 = arith.constant 64 : i32
      %is64 = arith.cmpi sge, %distance, %c64 : i32
      %one64 = arith.extui %is64 : i1 to i32
      %bucket6 = arith.addi %bucket5, %one64 : i32
      %c91 = arith.constant 91 : i32
      %is91 = arith.cmpi sge, %distance, %c91 : i32
      %one91 = arith.extui %is91 : i1 to i32
      %bucket7 = arith.addi %bucket6, %one91 : i32
      %is_behind = arith.cmpi sgt, %kv_idx, %position : i32
      %first = arith.select %is_behind, %table_half, %zero : i32
      %bucket = arith.addi %bucket7, %first : i32
      %bias = attn.capture_load %table[%bucket, %h] : tensor<32x16xf32> -> f32
      %biased = arith.addf %s, %bias : f32
      attn.yield %biased : f32
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
