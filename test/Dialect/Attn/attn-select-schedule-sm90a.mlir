// RUN: attn-opt --attn-select-schedule=target=sm_90a %s | FileCheck %s

// Schedules that are measured (docs/results) and those with the most registers
// that ptxas doesn't serialise pass.

// CHECK-LABEL: func.func @ahead_d128
func.func @ahead_d128(%x: tensor<1x2x?x128xf16>) -> tensor<1x2x?x128xf16> {
  // CHECK: pipeline = ahead
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x128xf16>, tensor<1x2x?x128xf16>, tensor<1x2x?x128xf16>)
      outs(%x : tensor<1x2x?x128xf16>)
      {schedule = #attn.schedule<block_m = 192, block_n = 64, num_stages = 4, num_warps = 16, warp_roles = <pipeline = ahead>>}
      -> tensor<1x2x?x128xf16>
  return %r : tensor<1x2x?x128xf16>
}

// CHECK-LABEL: func.func @ahead_d256
func.func @ahead_d256(%x: tensor<1x2x?x256xf16>) -> tensor<1x2x?x256xf16> {
  // CHECK: pipeline = ahead
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x256xf16>, tensor<1x2x?x256xf16>, tensor<1x2x?x256xf16>)
      outs(%x : tensor<1x2x?x256xf16>)
      {schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 12, warp_roles = <pipeline = ahead>>}
      -> tensor<1x2x?x256xf16>
  return %r : tensor<1x2x?x256xf16>
}

// CHECK-LABEL: func.func @simple
func.func @simple(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // CHECK: block_m = 192, block_n = 192
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
      {schedule = #attn.schedule<block_m = 192, block_n = 192, num_stages = 2, num_warps = 16, warp_roles = <pipeline = simple>>}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// 224 keys of 8 bits fit where 128 of 16 do.
// CHECK-LABEL: func.func @f8_wide
func.func @f8_wide(%x: tensor<1x2x?x128xf8E5M2>, %o: tensor<1x2x?x128xf16>) -> tensor<1x2x?x128xf16> {
  // CHECK: block_m = 128, block_n = 224
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x128xf8E5M2>, tensor<1x2x?x128xf8E5M2>, tensor<1x2x?x128xf8E5M2>)
      outs(%o : tensor<1x2x?x128xf16>)
      {schedule = #attn.schedule<block_m = 128, block_n = 224, num_stages = 2, num_warps = 12>}
      -> tensor<1x2x?x128xf16>
  return %r : tensor<1x2x?x128xf16>
}

// Two programs share the columns of V.
// CHECK-LABEL: func.func @latent
// CHECK: schedule = #attn.schedule<{{.*}}warp_roles = <{{[^>]*}}>, v_columns = 256>
// CHECK-SAME: #attn.short_schedule<max_q_len = 8, schedule = <{{[^#]*}} decode = <{{[^>]*}}>, v_columns = 256>>
func.func @latent(%q: tensor<1x16x?x576xbf16>, %k: tensor<1x1x?x576xbf16>, %v: tensor<1x1x?x512xbf16>, %o: tensor<1x16x?x512xbf16>) -> tensor<1x16x?x512xbf16> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<1x16x?x576xbf16>, tensor<1x1x?x576xbf16>, tensor<1x1x?x512xbf16>)
      outs(%o : tensor<1x16x?x512xbf16>) -> tensor<1x16x?x512xbf16>
  return %r : tensor<1x16x?x512xbf16>
}
