// Neighbourhood attention on an image of 32 x 32 pixels, row by row: each sees the
// 7 x 7 pixels nearest to it. The first two comparisons follow from the others;
// they are linear in the indices, and let tiles be skipped.

func.func @neighborhood(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
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
      %width = arith.constant 32 : i32
      %radius = arith.constant 3 : i32
      %minus_radius = arith.constant -3 : i32
      %last_center = arith.constant 28 : i32
      %band = arith.constant 224 : i32
      %minus_band = arith.constant -224 : i32
      %d = arith.subi %kv_idx, %q_idx : i32
      %c0 = arith.cmpi sge, %d, %minus_band : i32
      %c1 = arith.cmpi sle, %d, %band : i32
      %q_row = arith.divsi %q_idx, %width : i32
      %q_row_inside = arith.maxsi %q_row, %radius : i32
      %row = arith.minsi %q_row_inside, %last_center : i32
      %k_row = arith.divsi %kv_idx, %width : i32
      %d_row = arith.subi %k_row, %row : i32
      %c2 = arith.cmpi sge, %d_row, %minus_radius : i32
      %c3 = arith.cmpi sle, %d_row, %radius : i32
      %q_column = arith.remsi %q_idx, %width : i32
      %q_column_inside = arith.maxsi %q_column, %radius : i32
      %column = arith.minsi %q_column_inside, %last_center : i32
      %k_column = arith.remsi %kv_idx, %width : i32
      %d_column = arith.subi %k_column, %column : i32
      %c4 = arith.cmpi sge, %d_column, %minus_radius : i32
      %c5 = arith.cmpi sle, %d_column, %radius : i32
      %in_band = arith.andi %c0, %c1 : i1
      %in_rows = arith.andi %c2, %c3 : i1
      %in_columns = arith.andi %c4, %c5 : i1
      %near = arith.andi %in_rows, %in_columns : i1
      %visible = arith.andi %in_band, %near : i1
      attn.yield %visible : i1
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
