// The first keys and the nearest, of a cache.

func.func @listed_cache(%q: tensor<?x4x?x64xf16> {attn.name = "q"}, %k: tensor<?x2x?x64xf16> {attn.name = "k"}, %v: tensor<?x2x?x64xf16> {attn.name = "v"}, %n: tensor<?xi32> {attn.name = "n"},
   %o: tensor<?x4x?x64xf16> {attn.name = "o"}) -> tensor<?x4x?x64xf16> {
  %r = attn.attention ins(%q, %k, %v : tensor<?x4x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>) kv_len(%n : tensor<?xi32>) outs(%o : tensor<?x4x?x64xf16>)
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %c4 = arith.constant 4 : i32
      %first = arith.cmpi slt, %j, %c4 : i32
      %d = arith.subi %i, %j : i32
      %near = arith.cmpi ult, %d, %c4 : i32
      %keep = arith.ori %first, %near : i1
      attn.yield %keep : i1
    } -> tensor<?x4x?x64xf16>
  return %r : tensor<?x4x?x64xf16>
}
