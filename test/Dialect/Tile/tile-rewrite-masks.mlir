// RUN: attn-opt --tile-rewrite-masks %s | FileCheck %s

// The causal limit becomes the last visible column, once a row; only a compare
// of columns is per element.
// CHECK-LABEL: tile.kernel @causal(
// CHECK-SAME: %[[Q0:[a-z0-9]+]]: i32, %[[KV0:[a-z0-9]+]]: i32, %[[SHIFT:[a-z0-9]+]]: i32
// CHECK: %[[S:.*]] = tile.load
// CHECK: %[[QI:.*]] = tile.iota : tensor<64xi32>
// CHECK: %[[QS:.*]] = tensor.splat %[[Q0]] : tensor<64xi32>
// CHECK: %[[Q:.*]] = arith.addi %[[QS]], %[[QI]] : tensor<64xi32>
// CHECK: %[[D:.*]] = tensor.splat %[[SHIFT]] : tensor<64xi32>
// CHECK: %[[LIMIT:.*]] = arith.addi %[[Q]], %[[D]] : tensor<64xi32>
// Not so far before the keys that the difference overflows.
// CHECK: %[[LOW:.*]] = arith.constant dense<-1> : tensor<64xi32>
// CHECK: %[[NEAR:.*]] = arith.maxsi %[[LIMIT]], %[[LOW]] : tensor<64xi32>
// CHECK: %[[START:.*]] = tensor.splat %[[KV0]] : tensor<64xi32>
// CHECK: %[[LAST:.*]] = arith.subi %[[NEAR]], %[[START]] : tensor<64xi32>
// CHECK: %[[COLUMNS:.*]] = tile.iota : tensor<32xi32>
// CHECK: %[[CB:.*]] = tile.broadcast %[[COLUMNS]] dim 1 : tensor<32xi32> -> tensor<64x32xi32>
// CHECK: %[[LB:.*]] = tile.broadcast %[[LAST]] dim 0 : tensor<64xi32> -> tensor<64x32xi32>
// CHECK: %[[C:.*]] = arith.cmpi sle, %[[CB]], %[[LB]] : tensor<64x32xi32>
// CHECK: %[[INF:.*]] = arith.constant dense<0xFF800000> : tensor<64x32xf32>
// CHECK: arith.select %[[C]], %[[S]], %[[INF]]
// CHECK-NOT: tile.mask
tile.kernel @causal(%q0: i32, %kv0: i32, %shift: i32, %m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 4 : i32} {
  %s = tile.load %m[%q0, %kv0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
  %t = tile.mask %s at (%q0, %kv0) (%qi: i32, %ki: i32) {
    %last = arith.addi %qi, %shift : i32
    %keep = arith.cmpi sle, %ki, %last : i32
    tile.yield %keep : i1
  } : tensor<64x32xf32>
  tile.store %t, %m[%q0, %kv0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}

// Several bounds on the key are two comparisons an element; what isn't one
// stays as it is.
// CHECK-LABEL: tile.kernel @window(
// CHECK: %[[OTHER:.*]] = arith.cmpi ne
// CHECK: %[[LAST:.*]] = arith.minsi %{{.*}}, %{{.*}} : tensor<64xi32>
// CHECK: %[[LASTS:.*]] = tile.broadcast %{{.*}} dim 0
// CHECK: %[[A:.*]] = arith.cmpi sle, %{{.*}}, %[[LASTS]]
// CHECK: %[[FIRSTS:.*]] = tile.broadcast %{{.*}} dim 0
// CHECK: %[[B:.*]] = arith.cmpi sge, %{{.*}}, %[[FIRSTS]]
// CHECK: %[[AB:.*]] = arith.andi %[[A]], %[[B]]
// CHECK: %[[ALL:.*]] = arith.andi %[[AB]], %{{.*}}
// CHECK: arith.select %[[ALL]]
tile.kernel @window(%q0: i32, %kv0: i32, %n: i32, %m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 4 : i32} {
  %c128 = arith.constant 128 : i32
  %s = tile.load %m[%q0, %kv0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
  %t = tile.mask %s at (%q0, %kv0) (%qi: i32, %ki: i32) {
    %exists = arith.cmpi slt, %ki, %n : i32
    %causal = arith.cmpi sge, %qi, %ki : i32
    %first = arith.subi %qi, %c128 : i32
    %near = arith.cmpi sgt, %ki, %first : i32
    %other = arith.cmpi ne, %ki, %qi : i32
    %a = arith.andi %exists, %causal : i1
    %b = arith.andi %near, %other : i1
    %keep = arith.andi %a, %b : i1
    tile.yield %keep : i1
  } : tensor<64x32xf32>
  tile.store %t, %m[%q0, %kv0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}

// A quotient by a constant is a bound on the key, as is a difference that can't
// wrap. Remainders are intervals in the two periods that a tile touches.
// CHECK-LABEL: tile.kernel @neighborhood(
// CHECK-SAME: %{{[a-z0-9]+}}: i32, %[[KV0:[a-z0-9]+]]: i32
// CHECK: %[[SCALED:.*]] = arith.muli %{{.*}}, %{{.*}} : tensor<64xi32>
// CHECK: %[[END:.*]] = arith.addi %[[SCALED]], %{{.*}} : tensor<64xi32>
// CHECK: %[[PERIOD:.*]] = arith.divui %[[KV0]], %{{.*}} : i32
// CHECK: %[[START:.*]] = arith.muli %[[PERIOD]]
// CHECK: %[[A:.*]] = arith.andi %{{.*}} : tensor<64x32xi1>
// CHECK: %[[B:.*]] = arith.andi %{{.*}} : tensor<64x32xi1>
// CHECK: %[[AB:.*]] = arith.ori %[[A]], %[[B]] : tensor<64x32xi1>
// CHECK: arith.select %[[AB]]
tile.kernel @neighborhood(%q0: i32, %kv0: i32, %m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 4 : i32} {
  %c48 = arith.constant 48 : i32
  %c3 = arith.constant 3 : i32
  %s = tile.load %m[%q0, %kv0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
  %t = tile.mask %s at (%q0, %kv0) (%qi: i32, %ki: i32) {
    %q_row = arith.divsi %qi, %c48 : i32
    %k_row = arith.divsi %ki, %c48 : i32
    %rows = arith.subi %k_row, %q_row : i32
    %apart = math.absi %rows : i32
    %near_row = arith.cmpi sle, %apart, %c3 : i32
    %q_column = arith.remsi %qi, %c48 : i32
    %k_column = arith.remsi %ki, %c48 : i32
    %columns = arith.subi %k_column, %q_column : i32
    %columns_apart = math.absi %columns : i32
    %near_column = arith.cmpi sle, %columns_apart, %c3 : i32
    %keep = arith.andi %near_row, %near_column : i1
    tile.yield %keep : i1
  } : tensor<64x32xf32>
  tile.store %t, %m[%q0, %kv0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}

// More periods than pay stay a comparison of each element.
// CHECK-LABEL: tile.kernel @short_periods(
// CHECK: %[[R:.*]] = arith.remsi %{{.*}} : tensor<32xi32>
// CHECK: %[[SPREAD:.*]] = tile.broadcast %[[R]] dim 1
// CHECK: %[[C:.*]] = arith.cmpi sle, %[[SPREAD]]
// CHECK-NOT: tile.iota
// CHECK: arith.select %[[C]]
tile.kernel @short_periods(%q0: i32, %kv0: i32, %m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 4 : i32} {
  %c3 = arith.constant 3 : i32
  %s = tile.load %m[%q0, %kv0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
  %t = tile.mask %s at (%q0, %kv0) (%qi: i32, %ki: i32) {
    %r = arith.remsi %ki, %c3 : i32
    %keep = arith.cmpi sle, %r, %qi : i32
    tile.yield %keep : i1
  } : tensor<64x32xf32>
  tile.store %t, %m[%q0, %kv0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}

// What a scalar of unknown size is added to is added in 64 bits.
// CHECK-LABEL: tile.kernel @unknown_size(
// CHECK: %[[Q:.*]] = arith.extsi %{{.*}} : tensor<64xi32> to tensor<64xi64>
// CHECK: arith.addi %{{.*}} : tensor<64xi64>
// CHECK: arith.minsi %{{.*}} : tensor<64xi64>
// CHECK: %[[LAST:.*]] = arith.trunci %{{.*}} : tensor<64xi64> to tensor<64xi32>
// CHECK: arith.subi %[[LAST]]
tile.kernel @unknown_size(%q0: i32, %kv0: i32, %size: i32, %m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 4 : i32} {
  %s = tile.load %m[%q0, %kv0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
  %t = tile.mask %s at (%q0, %kv0) (%qi: i32, %ki: i32) {
    %d = arith.subi %ki, %qi : i32
    %keep = arith.cmpi sle, %d, %size : i32
    tile.yield %keep : i1
  } : tensor<64x32xf32>
  tile.store %t, %m[%q0, %kv0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}

// A difference that might wrap says nothing of the key.
// CHECK-LABEL: tile.kernel @wraps(
// CHECK: %[[D:.*]] = arith.subi %{{.*}} : tensor<32xi32>
// CHECK: %[[SPREAD:.*]] = tile.broadcast %{{.*}} dim 1 : tensor<32xi1>
// CHECK-NOT: tile.iota
// CHECK: arith.select %[[SPREAD]]
tile.kernel @wraps(%q0: i32, %kv0: i32, %n: i32, %m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %s = tile.load %m[%q0, %kv0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
  %t = tile.mask %s at (%q0, %kv0) (%qi: i32, %ki: i32) {
    %d = arith.subi %ki, %n : i32
    %keep = arith.cmpi sge, %d, %c0 : i32
    tile.yield %keep : i1
  } : tensor<64x32xf32>
  tile.store %t, %m[%q0, %kv0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}

// Either of two upper bounds is the greater one; other unions are intervals.
// CHECK-LABEL: tile.kernel @either(
// CHECK-COUNT-3: arith.addi %{{.*}} : tensor<64xi32>
// CHECK: %[[MAX:.*]] = arith.maxsi %{{.*}} : tensor<64xi32>
// CHECK-NEXT: arith.minsi %{{.*}}, %[[MAX]] : tensor<64xi32>
// CHECK: %[[A:.*]] = arith.cmpi sle
// CHECK: %[[B:.*]] = arith.cmpi sle
// CHECK: %[[C:.*]] = arith.cmpi sge
// CHECK: %[[BC:.*]] = arith.andi %[[B]], %[[C]]
// CHECK: %[[ABC:.*]] = arith.ori %[[A]], %[[BC]]
// CHECK: arith.select %[[ABC]]
tile.kernel @either(%q0: i32, %kv0: i32, %m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 4 : i32} {
  %c4 = arith.constant 4 : i32
  %c90 = arith.constant 90 : i32
  %s = tile.load %m[%q0, %kv0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
  %t = tile.mask %s at (%q0, %kv0) (%qi: i32, %ki: i32) {
    %first = arith.subi %qi, %c90 : i32
    %is_sink = arith.cmpi slt, %ki, %c4 : i32
    %is_near = arith.cmpi sge, %ki, %first : i32
    %seen = arith.ori %is_sink, %is_near : i1
    %is_prefix = arith.cmpi slt, %ki, %c90 : i32
    %is_past = arith.cmpi sle, %ki, %qi : i32
    %allowed = arith.ori %is_prefix, %is_past : i1
    %keep = arith.andi %seen, %allowed : i1
    tile.yield %keep : i1
  } : tensor<64x32xf32>
  tile.store %t, %m[%q0, %kv0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}

// Scalars stay scalar: the slope is computed once. A distance becomes a float
// once a row, to which the columns' numbers are added, and what only a sum takes
// is rounded with it.
// CHECK-LABEL: tile.kernel @alibi(
// CHECK-SAME: %[[Q0:[a-z0-9]+]]: i32, %[[KV0:[a-z0-9]+]]: i32, %[[H:[a-z0-9]+]]: f32
// CHECK: %[[S:.*]] = tile.load
// CHECK: %[[SLOPE:.*]] = math.exp2 %[[H]] : f32
// CHECK: %[[DIST:.*]] = arith.subi %{{.*}}, %{{.*}} : tensor<64xi32>
// CHECK: %[[COLS:.*]] = arith.sitofp %{{.*}} : tensor<32xi32> to tensor<32xf32>
// CHECK: %[[ROWS:.*]] = arith.sitofp %[[DIST]] : tensor<64xi32> to tensor<64xf32>
// CHECK: %[[RB:.*]] = tile.broadcast %[[ROWS]] dim 0
// CHECK: %[[CB:.*]] = tile.broadcast %[[COLS]] dim 1
// CHECK: %[[F:.*]] = arith.addf %[[RB]], %[[CB]]
// CHECK: %[[SLOPES:.*]] = tensor.splat %[[SLOPE]] : tensor<64x32xf32>
// CHECK: math.fma %[[F]], %[[SLOPES]], %[[S]] : tensor<64x32xf32>
tile.kernel @alibi(%q0: i32, %kv0: i32, %h: f32, %m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 4 : i32} {
  %s = tile.load %m[%q0, %kv0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
  %t = tile.score_mod %s at (%q0, %kv0) (%x: f32, %qi: i32, %ki: i32) {
    %slope = math.exp2 %h : f32
    %d = arith.subi %ki, %qi : i32
    %f = arith.sitofp %d : i32 to f32
    %bias = arith.mulf %f, %slope : f32
    %y = arith.addf %x, %bias : f32
    tile.yield %y : f32
  } : tensor<64x32xf32>
  tile.store %t, %m[%q0, %kv0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}

// A mask that depends on no index is a splat.
// CHECK-LABEL: tile.kernel @uniform(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32
// CHECK: %[[C:.*]] = arith.cmpi sgt, %[[N]], %{{.*}} : i32
// CHECK: %[[CS:.*]] = tensor.splat %[[C]] : tensor<64x32xi1>
// CHECK: arith.select %[[CS]]
tile.kernel @uniform(%n: i32, %m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %s = tile.load %m[%c0, %c0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
  %t = tile.mask %s at (%c0, %c0) (%qi: i32, %ki: i32) {
    %keep = arith.cmpi sgt, %n, %c0 : i32
    tile.yield %keep : i1
  } : tensor<64x32xf32>
  tile.store %t, %m[%c0, %c0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}

// A tile has rows past the last query, for which a rule may divide by zero. A
// constant divisor needs no care.
// CHECK-LABEL: tile.kernel @division(
// CHECK: %[[D:.*]] = arith.subi %{{.*}}, %{{.*}} : tensor<64xi32>
// CHECK: %[[BD:.*]] = tile.broadcast %[[D]] dim 0
// CHECK: %[[ZERO:.*]] = arith.constant dense<0> : tensor<64x32xi32>
// CHECK: %[[IS_ZERO:.*]] = arith.cmpi eq, %[[BD]], %[[ZERO]]
// CHECK: %[[ONE:.*]] = arith.constant dense<1> : tensor<64x32xi32>
// CHECK: %[[SAFE:.*]] = arith.select %[[IS_ZERO]], %[[ONE]], %[[BD]]
// CHECK: arith.divui %{{.*}}, %[[SAFE]]
// CHECK-NOT: arith.select
// CHECK: arith.divsi
tile.kernel @division(%q0: i32, %kv0: i32, %n: i32, %m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 4 : i32} {
  %s = tile.load %m[%q0, %kv0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
  %t = tile.mask %s at (%q0, %kv0) (%qi: i32, %ki: i32) {
    %d = arith.subi %n, %qi : i32
    %a = arith.divui %ki, %d : i32
    %c4 = arith.constant 4 : i32
    %b = arith.divsi %a, %c4 : i32
    %keep = arith.cmpi sle, %b, %c4 : i32
    tile.yield %keep : i1
  } : tensor<64x32xf32>
  tile.store %t, %m[%q0, %kv0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}

// Indices are i32 in a kernel.
// CHECK-LABEL: tile.kernel @index(
// CHECK-NOT: index
// CHECK: arith.addi %{{.*}}, %{{.*}} : tensor<64xi32>
// CHECK-NOT: index
// CHECK: arith.cmpi sle, %{{.*}}, %{{.*}} : tensor<64x32xi32>
// CHECK: tile.return
tile.kernel @index(%q0: i32, %kv0: i32, %m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 4 : i32} {
  %s = tile.load %m[%q0, %kv0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
  %t = tile.mask %s at (%q0, %kv0) (%qi: i32, %ki: i32) {
    %q = arith.index_cast %qi : i32 to index
    %k = arith.index_cast %ki : i32 to index
    %c4 = arith.constant 4 : index
    %last = arith.addi %q, %c4 : index
    %keep = arith.cmpi sle, %k, %last : index
    tile.yield %keep : i1
  } : tensor<64x32xf32>
  tile.store %t, %m[%q0, %kv0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}

// Reads are as many as what they depend on: a scalar, one a row, neighbours
// along the columns as loads, and one an element only for what is neither.
// CHECK-LABEL: tile.kernel @gathers(
// CHECK-SAME: %[[Q0:[a-z0-9]+]]: i32, %[[KV0:[a-z0-9]+]]: i32, %[[B:[a-z0-9]+]]: i32, %[[X:[a-z0-9]+]]: memref<?x?xf32>, %[[Y:[a-z0-9]+]]: memref<?x?x?xf32>
// CHECK-DAG: tile.load %[[X]][%[[B]], %[[KV0]]] {{.*}} -> tensor<32xf32>
// CHECK-DAG: tile.load %[[Y]][%[[B]], %[[Q0]], %[[KV0]]] {{.*}} -> tensor<64x32xf32>
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: tile.gather %[[X]][%[[B]], %[[ZERO]]] {{.*}} -> f32
// CHECK: tile.gather %[[X]][%[[B]], %{{.*}}] in_bounds [0] {{.*}} -> tensor<64xf32>
// The batch may be too large: a load doesn't check.
// CHECK: tile.gather %[[X]][%[[B]], %{{.*}}] : {{.*}} -> tensor<32xf32>
// CHECK: tile.gather %[[Y]][%[[B]], %{{.*}}, %{{.*}}] in_bounds [0] {{.*}} -> tensor<64x32xf32>
tile.kernel @gathers(%q0: i32, %kv0: i32, %b: i32, %x: memref<?x?xf32>, %y: memref<?x?x?xf32>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %s = tile.load %x[%q0, %kv0] : memref<?x?xf32> -> tensor<64x32xf32>
  %t = tile.score_mod %s at (%q0, %kv0) (%v: f32, %qi: i32, %ki: i32) {
    %0 = tile.gather %x[%b, %zero] in_bounds [0] : memref<?x?xf32>, (i32, i32) -> f32
    %1 = tile.gather %x[%b, %qi] in_bounds [0] : memref<?x?xf32>, (i32, i32) -> f32
    %2 = tile.gather %x[%b, %ki] in_bounds [0] : memref<?x?xf32>, (i32, i32) -> f32
    %3 = tile.gather %y[%b, %qi, %ki] in_bounds [0] : memref<?x?x?xf32>, (i32, i32, i32) -> f32
    %4 = tile.gather %x[%b, %ki] : memref<?x?xf32>, (i32, i32) -> f32
    %5 = tile.gather %y[%b, %ki, %qi] in_bounds [0] : memref<?x?x?xf32>, (i32, i32, i32) -> f32
    %6 = arith.addf %0, %1 : f32
    %7 = arith.addf %2, %3 : f32
    %8 = arith.addf %4, %5 : f32
    %9 = arith.addf %6, %7 : f32
    %10 = arith.addf %8, %9 : f32
    tile.yield %10 : f32
  } : tensor<64x32xf32>
  tile.store %t, %x[%q0, %kv0] : tensor<64x32xf32>, memref<?x?xf32>
  tile.return
}

// What every step of a loop reads is read in front of it.
// CHECK-LABEL: tile.kernel @hoisted(
// CHECK-SAME: %[[Q0:[a-z0-9]+]]: i32, %[[B:[a-z0-9]+]]: i32, %[[N:[a-z0-9]+]]: i32, %[[X:[a-z0-9]+]]: memref<?x?xi32>
// CHECK: tile.gather %[[X]][%[[B]], %{{.*}}] {{.*}} -> tensor<64xi32>
// CHECK: scf.for
// CHECK-NOT: tile.gather
// CHECK: tile.load %[[X]][%[[B]], %{{.*}}] {{.*}} -> tensor<32xi32>
tile.kernel @hoisted(%q0: i32, %b: i32, %n: i32, %x: memref<?x?xi32>, %m: memref<?x?xf32>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  scf.for %kv0 = %zero to %n step %step : i32 {
    %s = tile.load %m[%q0, %kv0] : memref<?x?xf32> -> tensor<64x32xf32>
    %t = tile.mask %s at (%q0, %kv0) (%qi: i32, %ki: i32) {
      %0 = tile.gather %x[%b, %qi] in_bounds [0] : memref<?x?xi32>, (i32, i32) -> i32
      %1 = tile.gather %x[%b, %ki] in_bounds [0] : memref<?x?xi32>, (i32, i32) -> i32
      %2 = arith.cmpi eq, %0, %1 : i32
      tile.yield %2 : i1
    } : tensor<64x32xf32>
    tile.store %t, %m[%q0, %kv0] : tensor<64x32xf32>, memref<?x?xf32>
  }
  tile.return
}

// A tile of a capture is loaded as soon as its place is known, so that it is
// under way while the scores are computed.
// CHECK-LABEL: tile.kernel @early(
// CHECK-SAME: %[[Q0:[a-z0-9]+]]: i32, %[[KV0:[a-z0-9]+]]: i32, %[[B:[a-z0-9]+]]: memref<?x?xf32>
// CHECK: %[[KV:.*]] = arith.addi %[[KV0]], %[[KV0]] : i32
// CHECK-NEXT: tile.load %[[B]][%[[Q0]], %[[KV]]]
// CHECK: tile.mma
tile.kernel @early(%q0: i32, %kv0: i32, %b: memref<?x?xf32>, %k: memref<?x64xbf16>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %kv = arith.addi %kv0, %kv0 : i32
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.load %k[%q0, %zero] : memref<?x64xbf16> -> tensor<64x64xbf16>
  %s = tile.mma mma %x, %x, %acc {transpose_b} : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  %t = tile.score_mod %s at (%q0, %kv) (%v: f32, %qi: i32, %ki: i32) {
    %0 = tile.gather %b[%qi, %ki] : memref<?x?xf32>, (i32, i32) -> f32
    %1 = arith.addf %v, %0 : f32
    tile.yield %1 : f32
  } : tensor<64x64xf32>
  tile.store %t, %b[%q0, %kv] : tensor<64x64xf32>, memref<?x?xf32>
  tile.return
}

// The query less the key; a product that something else takes stays one.
// CHECK-LABEL: tile.kernel @distance_behind(
// CHECK: arith.subf %{{.*}}, %{{.*}} : tensor<64x32xf32>
// CHECK: %[[P:.*]] = arith.mulf
// CHECK: %[[S:.*]] = arith.addf %[[P]],
// CHECK: arith.maximumf %[[S]], %[[P]]
tile.kernel @distance_behind(%q0: i32, %kv0: i32, %m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 4 : i32} {
  %s = tile.load %m[%q0, %kv0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
  %t = tile.score_mod %s at (%q0, %kv0) (%x: f32, %qi: i32, %ki: i32) {
    %d = arith.subi %qi, %ki : i32
    %f = arith.sitofp %d : i32 to f32
    %p = arith.mulf %f, %f : f32
    %y = arith.addf %p, %x : f32
    %z = arith.maximumf %y, %p : f32
    tile.yield %z : f32
  } : tensor<64x32xf32>
  tile.store %t, %m[%q0, %kv0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}

// Only the rows' part may be anything; two of the key's number aren't split.
// CHECK-LABEL: tile.kernel @not_a_distance(
// CHECK: arith.sitofp %{{.*}} : tensor<64x32xi32> to tensor<64x32xf32>
tile.kernel @not_a_distance(%q0: i32, %kv0: i32, %m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 4 : i32} {
  %s = tile.load %m[%q0, %kv0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
  %t = tile.score_mod %s at (%q0, %kv0) (%x: f32, %qi: i32, %ki: i32) {
    %d = arith.subi %qi, %ki : i32
    %e = arith.addi %d, %ki : i32
    %f = arith.sitofp %e : i32 to f32
    %y = arith.addf %f, %x : f32
    tile.yield %y : f32
  } : tensor<64x32xf32>
  tile.store %t, %m[%q0, %kv0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}
