// Every third key around the query, up to 64 of them on either side.

func.func @dilated_window(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                          %k: tensor<?x16x?x64xbf16> {attn.name = "k"},
                          %v: tensor<?x16x?x64xbf16> {attn.name = "v"},
                          %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v :
          tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>,
          tensor<?x16x?x64xbf16>)
      outs(%o : tensor<?x16x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %position = arith.addi %q_idx, %shift : i32
      %dilation = arith.constant 3 : i32
      %first = arith.constant -192 : i32
      %last = arith.constant 192 : i32
      %zero = arith.constant 0 : i32
      %distance = arith.subi %kv_idx, %position : i32
      %rest = arith.remsi %distance, %dilation : i32
      %is_after = arith.cmpi sge, %distance, %first : i32
      %is_before = arith.cmpi sle, %distance, %last : i32
      %in_window = arith.andi %is_after, %is_before : i1
      %on_grid = arith.cmpi eq, %rest, %zero : i32
      %visible = arith.andi %in_window, %on_grid : i1
      attn.yield %visible : i1
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
