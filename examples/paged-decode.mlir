// Decoding on a cache in pages of 16 rows: key j of sequence b is row j mod 16
// of page table[b, j / 16]. The new keys are in the cache already, and the last
// query sees lengths[b] keys.

func.func @paged_decode(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                        %k: tensor<?x4x16x64xbf16> {attn.name = "k_pages"},
                        %v: tensor<?x4x16x64xbf16> {attn.name = "v_pages"},
                        %lengths: tensor<?xi32> {attn.name = "lengths"},
                        %table: tensor<?x?xi32> {attn.name = "table"},
                        %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v :
          tensor<?x16x?x64xbf16>, tensor<?x4x16x64xbf16>,
          tensor<?x4x16x64xbf16>)
      kv_len(%lengths : tensor<?xi32>) block_table(%table : tensor<?x?xi32>)
      outs(%o : tensor<?x16x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %last = arith.addi %q_idx, %shift : i32
      %keep = arith.cmpi sle, %kv_idx, %last : i32
      attn.yield %keep : i1
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
