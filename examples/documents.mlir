// Packed documents: a query sees the keys of its own document up to itself.

func.func @documents(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                     %k: tensor<?x16x?x64xbf16> {attn.name = "k"},
                     %v: tensor<?x16x?x64xbf16> {attn.name = "v"},
                     %document: tensor<?x?xi32> {attn.name = "document"},
                     %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v, %document :
          tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>,
          tensor<?x16x?x64xbf16>, tensor<?x?xi32>)
      outs(%o : tensor<?x16x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32,
              %document: tensor<?x?xi32>) {
      %of_query = attn.capture_load %document[%b, %q_idx] : tensor<?x?xi32> -> i32
      %of_key = attn.capture_load %document[%b, %kv_idx] : tensor<?x?xi32> -> i32
      %same = arith.cmpi eq, %of_query, %of_key : i32
      %before = arith.cmpi sle, %kv_idx, %q_idx : i32
      %visible = arith.andi %same, %before : i1
      attn.yield %visible : i1
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
