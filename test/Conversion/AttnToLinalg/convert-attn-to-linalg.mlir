// RUN: attn-opt --convert-attn-to-linalg=variant=naive %s | FileCheck %s --check-prefix=NAIVE
// RUN: attn-opt --convert-attn-to-linalg=variant=inplace %s | FileCheck %s --check-prefix=NAIVE
// RUN: attn-opt --convert-attn-to-linalg=variant=math %s | FileCheck %s --check-prefix=MATH

// NAIVE-DAG: #[[GROUP:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 floordiv 4, d3, d4)>

// The masked fill is out of place, in a copy of the scores.
// NAIVE-LABEL: func.func @masked(
// NAIVE-NOT: attn.attention
// NAIVE: linalg.generic {{.*}}attn.path = "mma", attn.step = "naive_qk"
// NAIVE: %[[S:.*]] = linalg.generic {{.*}}attn.step = "naive_scale"
// NAIVE: %[[COPY:.*]] = bufferization.alloc_tensor() copy(%[[S]]) : tensor<2x8x?x?xbf16>
// NAIVE: %[[M:.*]] = linalg.generic {{.*}} outs(%[[COPY]] : tensor<2x8x?x?xbf16>) attrs = {attn.step = "naive_mask"}
// NAIVE: %[[HIDDEN:.*]] = arith.constant 0xFF80 : bf16
// NAIVE: arith.select %{{.*}}, %{{.*}}, %[[HIDDEN]] : bf16
// NAIVE: %[[P:.*]] = attn.softmax ins(%[[M]] : tensor<2x8x?x?xbf16>) {{.*}}attn.step = "naive_softmax"
// NAIVE: linalg.generic {{.*}} ins(%[[P]], %{{.*}} : {{.*}}attn.path = "mma", attn.step = "naive_pv"
// NAIVE-NOT: linalg.generic
// NAIVE: return

// The mask is [Nq, Nk]: it doesn't depend on batch and head.
// MATH-LABEL: func.func @masked(
// MATH: attn.step = "math_upcast_q"
// MATH: attn.step = "math_upcast_k"
// MATH: attn.step = "math_upcast_v"
// MATH: linalg.fill {attn.step = "math_mask_ones"} {{.*}} -> tensor<?x?xi8>
// MATH: attn.step = "math_mask_rule"
// MATH: attn.step = "math_mask_not"
// MATH: attn.step = "math_mask_bias"{{.*}} {
// MATH: } -> tensor<?x?xf32>
// MATH: attn.step = "math_scale_q"
// MATH: attn.step = "math_scale_k"
// MATH: attn.path = "fma", attn.step = "math_qk"
// MATH: outs(%{{.*}} : tensor<2x8x?x?xf32>) attrs = {attn.step = "math_add_mask"}
// MATH: attn.step = "math_row_max"
// MATH: attn.step = "math_exp"
// MATH: attn.step = "math_row_sum"
// MATH: attn.step = "math_divide"
// MATH: attn.step = "math_masked"
// MATH: attn.step = "math_masked_rows"
// MATH: attn.step = "math_where"
// MATH: attn.path = "fma", attn.step = "math_pv"
// MATH: attn.step = "math_downcast"
// MATH-NOT: attn.step
// MATH: return
func.func @masked(%q: tensor<2x8x?x64xbf16>, %k: tensor<2x8x?x64xbf16>,
                  %v: tensor<2x8x?x64xbf16>, %o: tensor<2x8x?x64xbf16>) -> tensor<2x8x?x64xbf16> {
  %r = attn.attention ins(%q, %k, %v : tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>)
                      outs(%o : tensor<2x8x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %qi: i32, %ki: i32) {
      %keep = arith.cmpi sle, %ki, %qi : i32
      attn.yield %keep : i1
    } -> tensor<2x8x?x64xbf16>
  return %r : tensor<2x8x?x64xbf16>
}

// Without a mask there is neither a copy nor a mask; f32 needs no casts, and
// four query heads read one key/value head.
// NAIVE-LABEL: func.func @grouped_lse(
// NAIVE: linalg.generic {indexing_maps = [#{{.*}}, #[[GROUP]], #{{.*}}]{{.*}}attn.path = "tf32x3", attn.step = "naive_qk"
// NAIVE-NOT: alloc_tensor
// NAIVE: attn.softmax {{.*}} outs(%{{.*}}, %{{.*}} : tensor<1x8x5x7xf32>, tensor<1x8x5xf32>)
// NAIVE: attn.step = "naive_pv"

// MATH-LABEL: func.func @grouped_lse(
// MATH-NOT: cast
// MATH-NOT: math_mask_
// MATH: attn.step = "math_lse"
// MATH: attn.step = "math_where"
// MATH-NOT: cast
// MATH: return
func.func @grouped_lse(%q: tensor<1x8x5x32xf32>, %k: tensor<1x2x7x32xf32>, %v: tensor<1x2x7x32xf32>,
                       %o: tensor<1x8x5x32xf32>, %l: tensor<1x8x5xf32>) -> (tensor<1x8x5x32xf32>, tensor<1x8x5xf32>) {
  %r:2 = attn.attention ins(%q, %k, %v : tensor<1x8x5x32xf32>, tensor<1x2x7x32xf32>, tensor<1x2x7x32xf32>)
                        outs(%o, %l : tensor<1x8x5x32xf32>, tensor<1x8x5xf32>)
                        -> tensor<1x8x5x32xf32>, tensor<1x8x5xf32>
  return %r#0, %r#1 : tensor<1x8x5x32xf32>, tensor<1x8x5xf32>
}

// A score_mod is a step of its own. A mask that depends on the head is a whole
// score matrix. A run-time scale and a dynamic length are scalar inputs; the
// root of a negative scale goes to q with its sign.
// NAIVE-LABEL: func.func @rules(
// NAIVE-SAME: %[[SCALE:[a-z0-9]+]]: f32
// NAIVE: ins(%{{.*}}, %[[SCALE]] : tensor<1x8x?x?xf16>, f32) {{.*}}attn.step = "naive_scale"
// NAIVE: %[[LEN:.*]] = arith.index_cast %{{.*}} : index to i32
// NAIVE: ins(%{{.*}}, %[[LEN]] : tensor<1x8x?x?xf16>, i32) {{.*}}attn.step = "naive_score_mod"
// NAIVE: alloc_tensor
// NAIVE: attn.step = "naive_mask"

// MATH-LABEL: func.func @rules(
// MATH: linalg.fill {attn.step = "math_mask_ones"} {{.*}} -> tensor<1x8x?x?xi8>
// MATH: attn.step = "math_scale_q"
// MATH: %[[ROOT:.*]] = math.sqrt
// MATH: %[[NEG:.*]] = arith.negf %[[ROOT]]
// MATH: arith.select %{{.*}}, %[[NEG]], %[[ROOT]]
// MATH: attn.step = "math_qk"
// MATH: attn.step = "math_score_mod"
// MATH: attn.step = "math_add_mask"
func.func @rules(%q: tensor<1x8x?x32xf16>, %k: tensor<1x8x?x32xf16>, %v: tensor<1x8x?x32xf16>,
                 %o: tensor<1x8x?x32xf16>, %scale: f32) -> tensor<1x8x?x32xf16> {
  %r = attn.attention ins(%q, %k, %v : tensor<1x8x?x32xf16>, tensor<1x8x?x32xf16>, tensor<1x8x?x32xf16>)
                      scale(%scale : f32) outs(%o : tensor<1x8x?x32xf16>)
    score_mod (%s: f32, %b: i32, %h: i32, %qi: i32, %ki: i32) {
      %n = attn.kv_len : i32
      %d = arith.subi %ki, %n : i32
      %f = arith.sitofp %d : i32 to f32
      %y = arith.addf %s, %f : f32
      attn.yield %y : f32
    }
    mask_mod (%b: i32, %h: i32, %qi: i32, %ki: i32) {
      %keep = arith.cmpi sle, %ki, %h : i32
      attn.yield %keep : i1
    } -> tensor<1x8x?x32xf16>
  return %r : tensor<1x8x?x32xf16>
}

// Rules read their captures where the sequence applies them.
// NAIVE-LABEL: func.func @captures
// NAIVE-SAME: %[[C:[a-z0-9]+]]: tensor<?xf32>
// NAIVE: linalg.generic {{.*}} attrs = {attn.step = "{{.*}}_score_mod"}
// NAIVE: %[[J:.*]] = linalg.index 3
// NAIVE: %[[J32:.*]] = arith.index_cast %[[J]] : index to i32
// NAIVE: attn.capture_load %[[C]][%[[J32]]] : tensor<?xf32> -> f32
func.func @captures(%q: tensor<1x2x8x64xf32>, %c: tensor<?xf32>) -> tensor<1x2x8x64xf32> {
  %r = attn.attention ins(%q, %q, %q, %c : tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>, tensor<?xf32>)
      outs(%q : tensor<1x2x8x64xf32>)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xf32>) {
      %x = attn.capture_load %t[%j] : tensor<?xf32> -> f32
      %y = arith.addf %s, %x : f32
      attn.yield %y : f32
    } -> tensor<1x2x8x64xf32>
  return %r : tensor<1x2x8x64xf32>
}

// Without an lse the steps of the sink make their own.
// NAIVE-LABEL: func.func @sink(
// NAIVE: %[[P:.*]]:2 = attn.softmax ins(%{{.*}}) outs(%{{.*}}, %{{.*}} : tensor<2x8x?x?xbf16>, tensor<2x8x?xf32>)
// NAIVE: %[[SHARE:.*]] = linalg.generic {{.*}} ins(%[[P]]#1 : tensor<2x8x?xf32>) outs(%[[P]]#0 : tensor<2x8x?x?xbf16>) attrs = {attn.step = "naive_sink"}
// NAIVE: linalg.index 1
// NAIVE: attn.capture_load %{{.*}}[%{{.*}}] : tensor<8xf16> -> f16
// NAIVE-NOT: naive_sink_lse
// NAIVE: linalg.generic {{.*}} ins(%[[SHARE]], {{.*}}attn.step = "naive_pv"
// MATH-LABEL: func.func @sink(
// MATH: attn.step = "math_lse"
// MATH: attn.step = "math_where"
// MATH: attn.step = "math_sink"
// MATH-NOT: math_sink_lse
// MATH: attn.step = "math_pv"
func.func @sink(%q: tensor<2x8x?x64xbf16>, %s: tensor<8xf16>) -> tensor<2x8x?x64xbf16> {
  %r = attn.attention ins(%q, %q, %q : tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>)
    sink(%s : tensor<8xf16>)
    outs(%q : tensor<2x8x?x64xbf16>) -> tensor<2x8x?x64xbf16>
  return %r : tensor<2x8x?x64xbf16>
}

// NAIVE-LABEL: func.func @sink_lse(
// NAIVE: %[[P:.*]]:2 = attn.softmax
// NAIVE: attn.step = "naive_sink"
// NAIVE: %[[LSE:.*]] = linalg.generic {{.*}} outs(%[[P]]#1 : tensor<2x8x?xf32>) attrs = {attn.step = "naive_sink_lse"}
// NAIVE: return %{{.*}}, %[[LSE]]
// MATH-LABEL: func.func @sink_lse(
// MATH: %[[LSE:.*]] = linalg.generic {{.*}}attn.step = "math_sink_lse"
// MATH: return %{{.*}}, %[[LSE]]
func.func @sink_lse(%q: tensor<2x8x?x64xbf16>, %s: tensor<8xf32>, %l: tensor<2x8x?xf32>)
    -> (tensor<2x8x?x64xbf16>, tensor<2x8x?xf32>) {
  %r:2 = attn.attention ins(%q, %q, %q : tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>)
    sink(%s : tensor<8xf32>)
    outs(%q, %l : tensor<2x8x?x64xbf16>, tensor<2x8x?xf32>) -> tensor<2x8x?x64xbf16>, tensor<2x8x?xf32>
  return %r#0, %r#1 : tensor<2x8x?x64xbf16>, tensor<2x8x?xf32>
}

// Behind the keys that all queries may see, v is 0: what it holds there would
// meet weights of 0, and 0 * NaN is NaN. A bound that depends on the query
// (causal) ends no v.
// NAIVE-LABEL: func.func @key_padding(
// MATH-LABEL: func.func @key_padding(
// NAIVE: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %[[LEN:.*]] : {{.*}}, i32) {{.*}}attn.step = "naive_pv"
// MATH: linalg.generic {{.*}}attn.step = "math_pv"
// NAIVE: ^bb0(%{{.*}}: bf16, %[[V:.*]]: bf16, %[[LEN:.*]]: i32, %{{.*}}: bf16):
// NAIVE: %[[B:.*]] = linalg.index 0
// NAIVE: %[[BATCH:.*]] = arith.index_cast %[[B]]
// NAIVE: %[[KEY:.*]] = linalg.index 4
// NAIVE: %[[KV:.*]] = arith.index_cast %[[KEY]]
// NAIVE: %[[PADDING:.*]] = attn.capture_load %{{.*}}[%[[BATCH]]]
// NAIVE: %[[END:.*]] = arith.subi %[[LEN]], %[[PADDING]]
// NAIVE: %[[VISIBLE:.*]] = arith.cmpi slt, %[[KV]], %[[END]]
// NAIVE-NOT: arith.cmpi
// NAIVE: arith.select %[[VISIBLE]], %[[V]], %{{.*}} : bf16
// MATH: arith.cmpi slt
// MATH-NOT: arith.cmpi
// MATH: arith.select {{.*}} : f32
func.func @key_padding(%q: tensor<?x2x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>, %o: tensor<?x2x?x64xbf16>, %padding: tensor<?xi32>) -> tensor<?x2x?x64xbf16> {
  %r = attn.attention ins(%q, %k, %v, %padding : tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?xi32>)
    outs(%o : tensor<?x2x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %p: tensor<?xi32>) {
      %n = attn.capture_load %p[%b] : tensor<?xi32> -> i32
      %len = attn.kv_len : i32
      %end = arith.subi %len, %n : i32
      %is_key = arith.cmpi slt, %kv_idx, %end : i32
      %causal = arith.cmpi sle, %kv_idx, %q_idx : i32
      %r = arith.andi %causal, %is_key : i1
      attn.yield %r : i1
    } -> tensor<?x2x?x64xbf16>
  return %r : tensor<?x2x?x64xbf16>
}
