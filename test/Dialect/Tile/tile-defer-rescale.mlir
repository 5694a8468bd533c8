// RUN: attn-opt --tile-defer-rescale %s | FileCheck %s
// RUN: sed 's/scale %c :/scale %c {exponent = 5 : i32} :/' %s \
// RUN:   | attn-opt --tile-defer-rescale | FileCheck %s --check-prefix=EXPONENT

// Exponentials that are 2^5 times as large may grow by 2^3 only.
// EXPONENT-LABEL: tile.kernel @attention(
// EXPONENT: %[[C3:.*]] = arith.constant 3.000000e+00 : f32
// EXPONENT: arith.divf %[[C3]], %{{.*}} : f32
// EXPONENT: tile.kv_loop
// EXPONENT: %[[NEGATED:.*]] = arith.negf %{{.*}} : tensor<64xf32>
// EXPONENT: %[[C5:.*]] = arith.constant dense<5.000000e+00> : tensor<64xf32>
// EXPONENT: %[[ADDEND:.*]] = arith.addf %[[NEGATED]], %[[C5]]
// EXPONENT: arith.subf %[[ADDEND]], %{{.*}}

!s = tensor<64x32xf32>
!o = tensor<64x16xf32>
!row = tensor<64xf32>
!mem = memref<?x16xf32>

// CHECK-LABEL: tile.kernel @attention(
// CHECK-SAME: %[[C:[a-z0-9]+]]: f32
// CHECK-DAG: %[[SCALE:.*]] = arith.mulf %[[C]], %{{.*}} : f32
// CHECK-DAG: %[[POWER:.*]] = arith.bitcast %{{.*}} : i32 to f32
// CHECK: %[[QUOTIENT:.*]] = arith.divf %{{.*}}, %[[SCALE]] : f32
// CHECK: %[[DISTANCE:.*]] = arith.minimumf %[[QUOTIENT]], %{{.*}} : f32

// The loop carries folded sums, and behind the old values a factor and an
// addend.
// CHECK: %[[R:.*]]:5 = tile.kv_loop
// CHECK-SAME: iter_args(%{{.*}}) : tensor<64x16xf32>, tensor<64xf32>, tensor<64x8xf32>, tensor<64xf32>, tensor<64xf32>
// CHECK: } softmax (%{{.*}}: i32, %[[X:.*]]: tensor<64x32xf32>, %{{.*}}: tensor<64x16xf32>, %[[MAX:.*]]: tensor<64xf32>, %[[SUM:.*]]: tensor<64x8xf32>, %[[FACTOR:.*]]: tensor<64xf32>, %[[ADDEND:.*]]: tensor<64xf32>) {
// CHECK:   %[[ABOVE:.*]] = tensor.splat %[[DISTANCE]]
// CHECK:   %[[LIMIT:.*]] = arith.addf %[[MAX]], %[[ABOVE]]
// CHECK:   %[[GREW:.*]] = tile.any_exceeds %[[X]], %[[LIMIT]]
// CHECK:   %[[NEXT:.*]]:5 = scf.if %[[GREW]]

// The full update.
// CHECK:     %[[TILEMAX:.*]] = tile.reduce max %[[X]]
// CHECK:     %[[NEWMAX:.*]] = arith.maximumf %[[MAX]], %[[TILEMAX]]
// CHECK:     %[[BASE:.*]] = arith.select %{{.*}}, %{{.*}}, %[[NEWMAX]]
// CHECK:     %[[POWERS:.*]] = tensor.splat %[[POWER]]
// CHECK:     %[[NEWFACTOR:.*]] = arith.select %{{.*}}, %[[POWERS]], %{{.*}}
// CHECK:     %[[PRODUCT:.*]] = arith.mulf %[[BASE]], %[[NEWFACTOR]]
// CHECK:     %[[NEWADDEND:.*]] = arith.negf %[[PRODUCT]]
// CHECK:     %[[CHANGE:.*]] = arith.subf %[[NEWADDEND]], %[[ADDEND]]
// CHECK:     math.exp2 %[[CHANGE]]
// CHECK:     %[[ALPHA:.*]] = arith.select
// CHECK:     %[[ALPHA8:.*]] = tile.broadcast %[[ALPHA]] dim 0 : {{.*}} -> tensor<64x8xf32>
// CHECK:     %[[NEWSUM:.*]] = arith.mulf %[[SUM]], %[[ALPHA8]]
// CHECK:     scf.yield %[[NEWMAX]], %[[NEWFACTOR]], %[[NEWADDEND]], %[[NEWSUM]], %[[ALPHA]]
// CHECK:   } else {
// CHECK:     %[[ONE:.*]] = arith.constant dense<1.0{{.*}}> : tensor<64xf32>
// CHECK:     scf.yield %[[MAX]], %[[FACTOR]], %[[ADDEND]], %[[SUM]], %[[ONE]]

// What every step does.
// CHECK-DAG: %[[F:.*]] = tile.broadcast %[[NEXT]]#1
// CHECK-DAG: %[[A:.*]] = tile.broadcast %[[NEXT]]#2
// CHECK:   %[[E:.*]] = math.fma %[[X]], %[[F]], %[[A]]
// CHECK:   %[[P:.*]] = math.exp2 %[[E]]
// CHECK:   %[[TILESUM:.*]] = tile.fold_sum %[[P]]
// CHECK:   %[[L1:.*]] = arith.addf %[[NEXT]]#3, %[[TILESUM]]
// CHECK:   tile.yield %[[P]], %[[NEXT]]#0, %[[L1]], %[[NEXT]]#4, %[[GREW]], %[[NEXT]]#1, %[[NEXT]]#2

// CHECK: } pv (%{{.*}}: i32, %{{.*}}: tensor<64x32xf32>, %[[M1:.*]]: tensor<64xf32>, %[[L1:.*]]: tensor<64x8xf32>, %[[AL:.*]]: tensor<64xf32>, %[[G:.*]]: i1, %[[F1:.*]]: tensor<64xf32>, %[[A1:.*]]: tensor<64xf32>, %[[ACC:.*]]: tensor<64x16xf32>, %{{.*}}: tensor<64xf32>, %{{.*}}: tensor<64x8xf32>,
// CHECK:   %[[AB:.*]] = tile.broadcast %[[AL]]
// CHECK:   %[[SCALED:.*]] = scf.if %[[G]]
// CHECK:     %[[MUL:.*]] = arith.mulf %[[ACC]], %[[AB]]
// CHECK:     scf.yield %[[MUL]]
// CHECK:   } else {
// CHECK:     scf.yield %[[ACC]]
// CHECK:   %[[OUT:.*]] = tile.mma {{.*}}%[[SCALED]]
// CHECK:   tile.yield %[[OUT]], %[[M1]], %[[L1]], %[[F1]], %[[A1]]

// CHECK: %[[L:.*]] = tile.reduce add %[[R]]#2 : tensor<64x8xf32> -> tensor<64xf32>
// CHECK: tile.broadcast %[[L]]
// CHECK: arith.mulf %[[R]]#1
// CHECK: math.log %[[L]]
tile.kernel @attention(%sm: memref<?x?xf32>, %vm: !mem, %om: !mem, %lm: memref<?xf32>, %n: i32, %c: f32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zo = arith.constant dense<0.0> : !o
  %minf = arith.constant dense<0xFF800000> : !row
  %zrow = arith.constant dense<0.0> : !row
  %r:3 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%zo, %minf, %zrow) : !o, !row, !row
    qk (%kv: i32, %acc: !o, %m: !row, %l: !row) {
      %s = tile.load %sm[%c0, %kv] : memref<?x?xf32> -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %acc: !o, %m: !row, %l: !row) {
      tile.yield %s : !s
    } softmax (%kv: i32, %x: !s, %acc: !o, %m: !row, %l: !row) {
      %p, %m1, %l1, %a = tile.online_softmax %x, %m, %l scale %c : !s, !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %acc: !o, %m: !row, %l: !row) {
      %v = tile.load %vm[%kv, %c0] : !mem -> tensor<32x16xf32>
      %ab = tile.broadcast %a dim 0 : !row -> !o
      %scaled = arith.mulf %acc, %ab : !o
      %next = tile.mma fma %p, %v, %scaled : !s, tensor<32x16xf32>, !o
      tile.yield %next, %m1, %l1 : !o, !row, !row
    }
  %lb = tile.broadcast %r#2 dim 0 : !row -> !o
  %y = arith.divf %r#0, %lb : !o
  tile.store %y, %om[%c0, %c0] : !o, !mem
  %scales = tensor.splat %c : !row
  %ms = arith.mulf %r#1, %scales : !row
  %log = math.log %r#2 : !row
  %lse = arith.addf %ms, %log : !row
  tile.store %lse, %lm[%c0] : !row, memref<?xf32>
  tile.return
}

// With P in f16, the factor is a power of two from 2^26 on, not from 2^30. A
// constant scale may stand in the loop, and without a log-sum-exp no one asks
// for the maximum.
// CHECK-LABEL: tile.kernel @half(
// CHECK: arith.divf
// CHECK: tile.kv_loop
// CHECK: tile.any_exceeds
// CHECK-NOT: dense<1.07374182E+9>
// CHECK: dense<0x4C800000> : tensor<64xf32>
// CHECK-NOT: dense<1.07374182E+9>
// CHECK: tile.return
tile.kernel @half(%sm: memref<?x?xf32>, %vm: memref<?x16xf16>, %om: !mem, %n: i32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zo = arith.constant dense<0.0> : !o
  %minf = arith.constant dense<0xFF800000> : !row
  %zrow = arith.constant dense<0.0> : !row
  %r:3 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%zo, %minf, %zrow) : !o, !row, !row
    qk (%kv: i32, %acc: !o, %m: !row, %l: !row) {
      %s = tile.load %sm[%c0, %kv] : memref<?x?xf32> -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %acc: !o, %m: !row, %l: !row) {
      tile.yield %s : !s
    } softmax (%kv: i32, %x: !s, %acc: !o, %m: !row, %l: !row) {
      %c = arith.constant 0.125 : f32
      %p, %m1, %l1, %a = tile.online_softmax %x, %m, %l scale %c : !s, !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %acc: !o, %m: !row, %l: !row) {
      %v = tile.load %vm[%kv, %c0] : memref<?x16xf16> -> tensor<32x16xf16>
      %ab = tile.broadcast %a dim 0 : !row -> !o
      %scaled = arith.mulf %acc, %ab : !o
      %ph = arith.truncf %p : !s to tensor<64x32xf16>
      %next = tile.mma mma %ph, %v, %scaled : tensor<64x32xf16>, tensor<32x16xf16>, !o
      tile.yield %next, %m1, %l1 : !o, !row, !row
    }
  tile.store %r#0, %om[%c0, %c0] : !o, !mem
  tile.return
}
