// A mask tensor, [B, 1, Nq, Nk]: keys where it is false are hidden.

func.func @boolean_mask(%q: tensor<?x16x?x64xbf16> {attn.name = "q"},
                        %k: tensor<?x16x?x64xbf16> {attn.name = "k"},
                        %v: tensor<?x16x?x64xbf16> {attn.name = "v"},
                        %keep: tensor<?x1x?x?xi1> {attn.name = "keep"},
                        %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v, %keep :
          tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>,
          tensor<?x16x?x64xbf16>, tensor<?x1x?x?xi1>)
      outs(%o : tensor<?x16x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32,
              %keep: tensor<?x1x?x?xi1>) {
      %visible = attn.capture_load %keep[%b, %h, %q_idx, %kv_idx] : tensor<?x1x?x?xi1> -> i1
      attn.yield %visible : i1
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
