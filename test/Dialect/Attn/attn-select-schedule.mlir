// RUN: attn-opt --attn-select-schedule=target=sm_80 %s | FileCheck %s

// CHECK-LABEL: func.func @from_table
// CHECK: schedule = #attn.schedule<block_m = {{[0-9]+}}, block_n = {{[0-9]+}}, num_stages = {{[0-9]+}}, num_warps = {{[0-9]+}}>
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
