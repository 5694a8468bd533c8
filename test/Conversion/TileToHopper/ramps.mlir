// RUN: attn-opt %s --convert-attn-to-tile=target=sm_90a --convert-tile-to-hopper | FileCheck %s

!q = memref<1x2x?x64xbf16>

// A ramp starts at the key of its own step, also that of the first product,
// which stands in front of the loop.

// CHECK-LABEL: tile.kernel @
// CHECK: consumer
// CHECK: %[[INVERSE:.*]] = arith.divf
// CHECK: %[[SLOPE:.*]] = arith.mulf %{{.*}}, %[[INVERSE]]
// CHECK: scf.if
// CHECK: %[[KEY:.*]] = arith.addi %[[LAST:.*]], %[[OFFSET:.*]] : i32
// CHECK: %[[START:.*]] = arith.sitofp %[[KEY]]
// CHECK: hopper.wgmma %{{.*}}, %{{.*}} ramp(%[[SLOPE]], %[[START]]) {transpose_b}
// CHECK: scf.for %[[N:[a-z0-9_]+]] =
// CHECK: hopper.wait
// CHECK: %[[DISTANCE:.*]] = arith.muli %[[N]], %c64
// CHECK: %[[KV:.*]] = arith.subi %[[LAST]], %[[DISTANCE]]
// CHECK: %[[KEY:.*]] = arith.addi %[[KV]], %[[OFFSET]] : i32
// CHECK: %[[START:.*]] = arith.sitofp %[[KEY]]
// CHECK: hopper.wgmma %{{.*}}, %{{.*}} ramp(%[[SLOPE]], %[[START]]) {transpose_b}
// CHECK: hopper.wgmma %{{.*}}, %{{.*}} acc
func.func @relative(%q: !q, %o: !q) {
  attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%o : !q)
    {schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 12, warp_roles = #attn.warp_roles<pipeline = overlap>>}
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %d = arith.subi %kv_idx, %q_idx : i32
      %f = arith.sitofp %d : i32 to f32
      %half = arith.constant 0.5 : f32
      %bias = arith.mulf %f, %half : f32
      %r = arith.addf %s, %bias : f32
      attn.yield %r : f32
    }
  return
}
