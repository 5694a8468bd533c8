// RUN: attn-opt --attn-select-schedule=target=sm_80 %s 2>%t | FileCheck %s
// RUN: count 0 < %t

// CHECK-LABEL: func.func @from_table
// CHECK: schedule = #attn.schedule<block_m = {{[0-9]+}}, block_n = {{[0-9]+}}, num_stages = {{[0-9]+}}, num_warps = {{[0-9]+}}>
// CHECK-SAME: short_schedules = [#attn.short_schedule<max_q_len = 16, {{[^#]*}} decode = <
// CHECK-SAME: #attn.short_schedule<max_q_len = 128, {{[^#]*}} decode =
func.func @from_table(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// CHECK-LABEL: func.func @kept
// CHECK: schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 3, num_warps = 4>
func.func @kept(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
      {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 3, num_warps = 4>}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// Three query heads share a KV head: 4 queries are 12 rows, and 6 are 18.
// CHECK-LABEL: func.func @packed
// CHECK: schedule = #attn.schedule<block_m = 16, {{.*}} decode = <
// CHECK-NOT: short_schedules
// CHECK: schedule = #attn.schedule<block_m = 64, {{.*}} decode = <
// CHECK-NOT: short_schedules
func.func @packed(%x: tensor<1x6x4x64xf16>, %y: tensor<1x6x6x64xf16>, %k: tensor<1x2x?x64xf16>) -> (tensor<1x6x4x64xf16>, tensor<1x6x6x64xf16>) {
  %r = attn.attention
      ins(%x, %k, %k : tensor<1x6x4x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x6x4x64xf16>) -> tensor<1x6x4x64xf16>
  %s = attn.attention
      ins(%y, %k, %k : tensor<1x6x6x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%y : tensor<1x6x6x64xf16>) -> tensor<1x6x6x64xf16>
  return %r, %s : tensor<1x6x4x64xf16>, tensor<1x6x6x64xf16>
}

// What must not depend on the batch has parts of a fixed size.
// CHECK-LABEL: func.func @batch_invariant
// CHECK: decode = <{{.*}}split_keys = 1024>
func.func @batch_invariant(%x: tensor<1x2x1x64xf16>, %k: tensor<1x2x?x64xf16>) -> tensor<1x2x1x64xf16> {
  %r = attn.attention
      ins(%x, %k, %k : tensor<1x2x1x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x1x64xf16>) {batch_invariant} -> tensor<1x2x1x64xf16>
  return %r : tensor<1x2x1x64xf16>
}

// Packed sequences have other lengths than their tensor; they take a schedule by
// their mean.
// CHECK-LABEL: func.func @packed_sequences
// CHECK: schedule = #attn.schedule<block_m = {{[0-9]+}}, block_n = {{[0-9]+}}, num_stages = {{[0-9]+}}, num_warps = {{[0-9]+}}>
// CHECK-SAME: short_schedules = [#attn.short_schedule<max_q_len = 16, {{[^#]*}} decode = <
func.func @packed_sequences(%x: tensor<1x2x512x64xf16>, %c: tensor<?xi32>) -> tensor<1x2x512x64xf16> {
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x512x64xf16>, tensor<1x2x512x64xf16>, tensor<1x2x512x64xf16>)
      cu_q(%c : tensor<?xi32>) cu_k(%c : tensor<?xi32>)
      outs(%x : tensor<1x2x512x64xf16>) -> tensor<1x2x512x64xf16>
  return %r : tensor<1x2x512x64xf16>
}

// Where a shift goes too far there is no value, which is no error.
// CHECK-LABEL: func.func @shifted
// CHECK: schedule = #attn.schedule
func.func @shifted(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %far = arith.shli %j, %i : i32
      %keep = arith.cmpi sle, %far, %j : i32
      attn.yield %keep : i1
    } -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}
