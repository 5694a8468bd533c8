// RUN: attn-opt --convert-host-to-plan %s | FileCheck %s

// Sizes and strides become symbols, temporaries are freed after their last use,
// and only kernels stay.

// CHECK: arguments = [{dtype = "f16", kind = "tensor", name = "q", role = "input", shape = [unit, 8, 64]},
// CHECK-SAME: name = "o", role = "output"
// CHECK-SAME: {dtype = "f32", kind = "scalar", name = "c", role = "input"}]
// CHECK-SAME: checks = [{expr = ["eq", "q.dim0", "o.dim0"], message = "sizes"}]
// CHECK-SAME: entry = "f"
// CHECK-SAME: max_intermediate_bytes = ["max", [[BYTES:\["mul", \["mul", \["mul", "q.dim0", 8\], 64\], 2\]]], [[BYTES]]]
// CHECK-SAME: plan = [{buffer = "t0", bytes = [[BYTES]], op = "alloc"}, {buffer = "t1", bytes = [[BYTES]], op = "alloc"},
// CHECK-SAME: {buffer = "q", offset_bytes = 0 : i64, type = "ptr"}, {type = "i32", value = "q.dim0"}, {type = "i64", value = "q.stride0"}, {type = "i64", value = "q.stride1"}, {buffer = "t0"
// CHECK-SAME: {type = "i32", value = "q.dim0"}, {scalar = "c", type = "f32"}], bytes = "q.dim0", flops = ["ceildiv", "q.dim0", 4], grid = ["ceildiv", "q.dim0", 4], kernel = "k", op = "launch"}
// CHECK-SAME: {bytes = [[BYTES]], dst = "t1", op = "copy", src = "t0"}, {buffer = "t0", op = "free"}
// CHECK-SAME: kernel = "k2", op = "launch"}, {buffer = "t1", op = "free"}]
// CHECK-NOT: func.func
// CHECK: tile.kernel @k(

#s = strided<[?, ?, 1], offset: ?>
func.func @f(%q: memref<?x8x64xf16, #s> {attn.name = "q"},
             %o: memref<?x8x64xf16, #s> {attn.name = "o", attn.output},
             %c: f32 {attn.name = "c"}) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %q, %c0 : memref<?x8x64xf16, #s>
  %m = memref.dim %o, %c0 : memref<?x8x64xf16, #s>
  %e = arith.cmpi eq, %n, %m : index
  cf.assert %e, "sizes"
  %t = memref.alloc(%n) : memref<?x8x64xf16>
  %u = memref.alloc(%n) : memref<?x8x64xf16>
  %g = arith.ceildivsi %n, %c4 : index
  tile.launch @k grid(%g) args(%q, %t, %c) cost(bytes %n, flops %g) : memref<?x8x64xf16, #s>, memref<?x8x64xf16>, f32
  memref.copy %t, %u : memref<?x8x64xf16> to memref<?x8x64xf16>
  tile.launch @k2 grid(%g) args(%u, %o) : memref<?x8x64xf16>, memref<?x8x64xf16, #s>
  memref.dealloc %t : memref<?x8x64xf16>
  return
}
tile.kernel @k(%q: memref<?x8x64xf16, #s>, %o: memref<?x8x64xf16>, %c: f32) attributes {num_warps = 4 : i32} {
  tile.return
}
tile.kernel @k2(%q: memref<?x8x64xf16>, %o: memref<?x8x64xf16, #s>) attributes {num_warps = 4 : i32} {
  tile.return
}
