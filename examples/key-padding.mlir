// Causal attention on padded sequences: of batch b, keys from lengths[b] on are
// padding. Tiles of padding alone are skipped.

func.func @key_padding(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                       %k: tensor<?x16x?x64xbf16> {attn.name = "k"},
                       %v: tensor<?x16x?x64xbf16> {attn.name = "v"},
                       %lengths: tensor<?xi32> {attn.name = "lengths"},
                       %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v, %lengths :
          tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>,
          tensor<?x16x?x64xbf16>, tensor<?xi32>)
      outs(%o : tensor<?x16x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32,
              %lengths: tensor<?xi32>) {
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %position = arith.addi %q_idx, %shift : i32
      %length = attn.capture_load %lengths[%b] : tensor<?xi32> -> i32
      %exists = arith.cmpi slt, %kv_idx, %length : i32
      %before = arith.cmpi sle, %kv_idx, %position : i32
      %visible = arith.andi %exists, %before : i1
      attn.yield %visible : i1
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
