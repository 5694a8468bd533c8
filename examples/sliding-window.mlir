// A sliding window: a query sees the 256 keys before its own position, counted from
// the end of both sequences, that position, and 32 keys after it.

func.func @sliding_window(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                          %k: tensor<?x16x?x64xbf16> {attn.name = "k"},
                          %v: tensor<?x16x?x64xbf16> {attn.name = "v"},
                          %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>,
                       tensor<?x16x?x64xbf16>)
      outs(%o : tensor<?x16x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %position = arith.addi %q_idx, %shift : i32
      %distance = arith.subi %kv_idx, %position : i32
      %left = arith.constant -256 : i32
      %right = arith.constant 32 : i32
      %not_before = arith.cmpi sge, %distance, %left : i32
      %not_after = arith.cmpi sle, %distance, %right : i32
      %visible = arith.andi %not_before, %not_after : i1
      attn.yield %visible : i1
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
