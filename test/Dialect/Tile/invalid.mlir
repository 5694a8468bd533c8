// RUN: attn-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{must have a body of one block}}
tile.kernel @no_body(i32) attributes {num_warps = 4 : i32}

// -----

// expected-error@+1 {{must have a body of one block}}
tile.kernel @two_blocks() attributes {num_warps = 4 : i32} {
  cf.br ^next
^next:
  tile.return
}

// -----

// expected-error@+1 {{requires attribute 'num_warps'}}
tile.kernel @no_num_warps() {
  tile.return
}

// -----

// expected-error@+1 {{num_warps must be in [1, 32], not 33}}
tile.kernel @too_many_warps() attributes {num_warps = 33 : i32} {
  tile.return
}

// -----

// expected-error@+1 {{returns nothing; store results to memrefs}}
tile.kernel @result() -> i32 attributes {num_warps = 4 : i32} {
  tile.return
}

// -----

// expected-error@+1 {{argument 1 has type 'f64'; legal are memrefs with innermost stride 1, i32, i64 and f32}}
tile.kernel @argument_type(%x: i32, %y: f64) attributes {num_warps = 4 : i32} {
  tile.return
}

// -----

// expected-error@+1 {{argument 0 has type 'memref<?xf32, strided<[2]>>'; legal are}}
tile.kernel @argument_stride(%x: memref<?xf32, strided<[2]>>) attributes {num_warps = 4 : i32} {
  tile.return
}

// -----

// expected-error@+1 {{argument 0 has type 'memref<?xindex>'; legal are}}
tile.kernel @argument_element(%x: memref<?xindex>) attributes {num_warps = 4 : i32} {
  tile.return
}

// -----

func.func @launch_unknown(%n: index) {
  // expected-error@+1 {{launches @nowhere, which is not a tile.kernel}}
  tile.launch @nowhere grid(%n) args()
  return
}

// -----

func.func @launch_function(%n: index) {
  // expected-error@+1 {{launches @launch_function, which is not a tile.kernel}}
  tile.launch @launch_function grid(%n) args()
  return
}

// -----

tile.kernel @kernel(%x: i32) attributes {num_warps = 4 : i32} {
  tile.return
}
func.func @launch_args(%n: index, %x: f32) {
  // expected-error@+1 {{passes ('f32'), but @kernel takes ('i32')}}
  tile.launch @kernel grid(%n) args(%x) : f32
  return
}

// -----

tile.kernel @kernel() attributes {num_warps = 4 : i32} {
  tile.return
}
func.func @launch_half_cost(%n: index) {
  // expected-error@+1 {{cost needs both bytes and flops}}
  "tile.launch"(%n, %n) <{kernel = @kernel, operandSegmentSizes = array<i32: 1, 0, 1, 0>}> : (index, index) -> ()
  return
}

// -----

tile.kernel @kernel() attributes {num_warps = 4 : i32} {
  tile.return
}
func.func @launch_no_grid(%x: index) {
  // expected-error@+1 {{must have one grid operand: see operandSegmentSizes}}
  "tile.launch"(%x) <{kernel = @kernel, operandSegmentSizes = array<i32: 0, 1, 0, 0>}> : (index) -> ()
  return
}

// -----

func.func @load_rank(%x: memref<?x?x?xf32>, %i: i32) {
  // expected-error@+1 {{tile must have rank 1 or 2, not 'tensor<1x4x4xf32>'}}
  %t = tile.load %x[%i, %i, %i] : memref<?x?x?xf32> -> tensor<1x4x4xf32>
  return
}

// -----

func.func @load_scalar(%x: memref<f32>) {
  // expected-error@+1 {{tile must have rank 1 or 2, not 'tensor<f32>'}}
  %t = tile.load %x[] : memref<f32> -> tensor<f32>
  return
}

// -----

func.func @load_more_dimensions(%x: memref<?xf32>, %i: i32) {
  // expected-error@+1 {{tile 'tensor<4x4xf32>' has more dimensions than 'memref<?xf32>'}}
  %t = tile.load %x[%i] : memref<?xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @load_indices(%x: memref<?x?xf32>, %i: i32) {
  // expected-error@+1 {{needs 2 indices, has 1}}
  %t = tile.load %x[%i] : memref<?x?xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @load_dynamic(%x: memref<?x?xf32>, %i: i32) {
  // expected-error@+1 {{result #0 must be statically shaped tensor of any type values, but got 'tensor<?x4xf32>'}}
  %t = tile.load %x[%i, %i] : memref<?x?xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @store_element(%x: memref<?x?xf32>, %t: tensor<4x4xf16>, %i: i32) {
  // expected-error@+1 {{element types differ: 'tensor<4x4xf16>' and 'memref<?x?xf32>'}}
  tile.store %t, %x[%i, %i] : tensor<4x4xf16>, memref<?x?xf32>
  return
}

// -----

func.func @mma_shapes(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>, %c: tensor<8x8xf32>) {
  // expected-error@+1 {{shapes don't match: 'tensor<8x4xf32>' times 'tensor<8x4xf32>' plus 'tensor<8x8xf32>'}}
  %r = tile.mma fma %a, %b, %c : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x8xf32>
  return
}

// -----

func.func @mma_accumulator(%a: tensor<8x8xf16>) {
  // expected-error@+1 {{accumulates in f32, not 'f16'}}
  %r = tile.mma mma %a, %a, %a : tensor<8x8xf16>, tensor<8x8xf16>, tensor<8x8xf16>
  return
}

// -----

func.func @mma_mixed(%a: tensor<8x8xf16>, %b: tensor<8x8xbf16>, %c: tensor<8x8xf32>) {
  // expected-error@+1 {{operands must have one element type}}
  %r = tile.mma mma %a, %b, %c : tensor<8x8xf16>, tensor<8x8xbf16>, tensor<8x8xf32>
  return
}

// -----

func.func @mma_path(%a: tensor<8x8xf32>) {
  // expected-error@+1 {{path mma takes f16, bf16, f8E4M3FN or f8E5M2 operands, not 'f32'}}
  %r = tile.mma mma %a, %a, %a : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  return
}

// -----

func.func @fma_path(%a: tensor<8x8xf16>, %c: tensor<8x8xf32>) {
  // expected-error@+1 {{path fma takes f32 operands, not 'f16'}}
  %r = tile.mma fma %a, %a, %c : tensor<8x8xf16>, tensor<8x8xf16>, tensor<8x8xf32>
  return
}

// -----

func.func @reduce(%a: tensor<8x4xf32>) {
  // expected-error@+1 {{reduces an f32 tile [M, N] to [M], not 'tensor<8x4xf32>' to 'tensor<4xf32>'}}
  %r = tile.reduce max %a : tensor<8x4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @broadcast_dim(%a: tensor<8xf32>) {
  // expected-error@+1 {{dim must be 0 or 1, not 2}}
  %r = tile.broadcast %a dim 2 : tensor<8xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @broadcast_size(%a: tensor<8xf32>) {
  // expected-error@+1 {{can't broadcast 'tensor<8xf32>' along dimension 1 of 'tensor<8x4xf32>'}}
  %r = tile.broadcast %a dim 1 : tensor<8xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @iota() {
  // expected-error@+1 {{yields i32 elements}}
  %r = tile.iota : tensor<8xi64>
  return
}

// -----

func.func @exp_diff(%x: tensor<8x4xf32>, %m: tensor<4xf32>, %c: f32) {
  // expected-error@+1 {{takes an f32 tile [M, N] or [M] and its f32 row maxima [M], not 'tensor<8x4xf32>' and 'tensor<4xf32>'}}
  %r = tile.exp_diff %x, %m scale %c : tensor<8x4xf32>, tensor<4xf32>
  return
}

// -----

func.func @mask_scores(%s: tensor<8x8xf16>, %i: i32) {
  // expected-error@+1 {{scores must be f32, not 'f16'}}
  %r = tile.mask %s at (%i, %i) (%qi: i32, %ki: i32) {
    %keep = arith.cmpi sle, %ki, %qi : i32
    tile.yield %keep : i1
  } : tensor<8x8xf16>
  return
}

// -----

func.func @mask_args(%s: tensor<8x8xf32>, %i: i32) {
  // expected-error@+1 {{mask must take ('i32', 'i32'), but takes ('i32')}}
  %r = tile.mask %s at (%i, %i) (%qi: i32) {
    %keep = arith.cmpi sle, %qi, %qi : i32
    tile.yield %keep : i1
  } : tensor<8x8xf32>
  return
}

// -----

func.func @mask_terminator(%s: tensor<8x8xf32>, %i: i32) {
  // expected-error@+1 {{mask must end in tile.yield}}
  %r = tile.mask %s at (%i, %i) (%qi: i32, %ki: i32) {
    %keep = arith.cmpi sle, %qi, %qi : i32
    llvm.return %keep : i1
  } : tensor<8x8xf32>
  return
}

// -----

func.func @element(%s: tensor<8x8xf32>, %t: tensor<8x4xf32>, %i: i32) {
  %r = tile.score_mod %s at (%i, %i) (%x: f32, %qi: i32, %ki: i32) {
    // expected-error@+1 {{takes an element of 'tensor<8x4xf32>', which must have the shape of the scores 'tensor<8x8xf32>'}}
    %y = tile.element %t : tensor<8x4xf32>
    tile.yield %y : f32
  } : tensor<8x8xf32>
  return
}

// -----

func.func @element_outside(%t: tensor<8x4xf32>) {
  // expected-error@+1 {{expects parent op to be one of 'tile.mask, tile.score_mod'}}
  %y = tile.element %t : tensor<8x4xf32>
  return
}

// -----

func.func @score_mod_body(%s: tensor<8x8xf32>, %i: i32) {
  %r = tile.score_mod %s at (%i, %i) (%x: f32, %qi: i32, %ki: i32) {
    // expected-error@+1 {{'tile.iota' op is not allowed in score_mod: its body must be pure scalar arith and math}}
    %t = tile.iota : tensor<8xi32>
    tile.yield %x : f32
  } : tensor<8x8xf32>
  return
}

// -----

func.func @online_softmax(%s: tensor<8x4xf32>, %m: tensor<4xf32>, %c: f32) {
  // expected-error@+1 {{takes f32 scores [M, N] and f32 [M] statistics, not 'tensor<8x4xf32>' and 'tensor<4xf32>'}}
  %r:4 = tile.online_softmax %s, %m, %m scale %c : tensor<8x4xf32>, tensor<4xf32>
  return
}

// -----

func.func @kv_loop_step(%i: i32) {
  // expected-error@+1 {{step must be positive, not 0}}
  tile.kv_loop ranges(%i, %i, %i, %i) step 0
    qk (%kv: i32) {
      tile.yield
    } score (%kv: i32) {
      tile.yield
    } softmax (%kv: i32) {
      tile.yield
    } pv (%kv: i32) {
      tile.yield
    }
  return
}

// -----

func.func @kv_loop_handover(%i: i32) {
  // expected-error@+1 {{region score must take ('i32', 'i32'), but takes ('i32')}}
  tile.kv_loop ranges(%i, %i, %i, %i) step 64
    qk (%kv: i32) {
      tile.yield %kv : i32
    } score (%kv: i32) {
      tile.yield
    } softmax (%kv: i32) {
      tile.yield
    } pv (%kv: i32) {
      tile.yield
    }
  return
}

// -----

func.func @kv_loop_carried(%i: i32, %x: f32) {
  // expected-error@+1 {{region pv must yield the loop-carried types ('f32')}}
  %r = tile.kv_loop ranges(%i, %i, %i, %i) step 64 iter_args(%x) : f32
    qk (%kv: i32, %c: f32) {
      tile.yield
    } score (%kv: i32, %c: f32) {
      tile.yield
    } softmax (%kv: i32, %c: f32) {
      tile.yield
    } pv (%kv: i32, %c: f32) {
      tile.yield
    }
  return
}

// -----

func.func @kv_loop_results(%i: i32, %x: f32) {
  // expected-error@+1 {{results must have the types of the iter_args}}
  "tile.kv_loop"(%i, %i, %i, %i, %x) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0>, step = 64 : i64}> ({
  ^bb0(%kv: i32, %c: f32):
    "tile.yield"() : () -> ()
  }, {
  ^bb0(%kv: i32, %c: f32):
    "tile.yield"() : () -> ()
  }, {
  ^bb0(%kv: i32, %c: f32):
    "tile.yield"() : () -> ()
  }, {
  ^bb0(%kv: i32, %c: f32):
    "tile.yield"(%c) : (f32) -> ()
  }) : (i32, i32, i32, i32, f32) -> ()
  return
}

// -----

func.func @any_exceeds_rows(%s: tensor<128x64xf32>, %limits: tensor<64xf32>) {
  // expected-error@+1 {{takes an f32 tile [M, N] and f32 limits [M], not 'tensor<128x64xf32>' and 'tensor<64xf32>'}}
  %0 = tile.any_exceeds %s, %limits : tensor<128x64xf32>, tensor<64xf32>
  return
}

// -----

func.func @any_exceeds_type(%s: tensor<128x64xf16>, %limits: tensor<128xf16>) {
  // expected-error@+1 {{takes an f32 tile [M, N] and f32 limits [M]}}
  %0 = tile.any_exceeds %s, %limits : tensor<128x64xf16>, tensor<128xf16>
  return
}

// -----

func.func @fold_sum_columns(%s: tensor<128x60xf32>) {
  // expected-error@+1 {{folds an f32 tile [M, 8 * k] to [M, 8], not 'tensor<128x60xf32>' to 'tensor<128x8xf32>'}}
  %0 = tile.fold_sum %s : tensor<128x60xf32> -> tensor<128x8xf32>
  return
}

// -----

func.func @fold_sum_result(%s: tensor<128x64xf32>) {
  // expected-error@+1 {{folds an f32 tile [M, 8 * k] to [M, 8]}}
  %0 = tile.fold_sum %s : tensor<128x64xf32> -> tensor<128x4xf32>
  return
}

// -----

func.func @kv_loop_value_of_other_region(%i: i32) {
  tile.kv_loop ranges(%i, %i, %i, %i) step 64
    qk (%kv: i32) {
      // expected-error@+1 {{uses a value of another region}}
      %y = arith.addi %x, %kv : i32
      tile.yield
    } score (%kv: i32) {
      %x = arith.addi %kv, %kv : i32
      tile.yield
    } softmax (%kv: i32) {
      tile.yield
    } pv (%kv: i32) {
      tile.yield
    }
  return
}

// -----

func.func @kv_loop_terminator(%i: i32) {
  // expected-error@+1 {{region qk must end in tile.yield}}
  tile.kv_loop ranges(%i, %i, %i, %i) step 64
    qk (%kv: i32) {
      llvm.return
    } score (%kv: i32) {
      tile.yield
    } softmax (%kv: i32) {
      tile.yield
    } pv (%kv: i32) {
      tile.yield
    }
  return
}

// -----

func.func @kv_loop_empty_region(%i: i32) {
  // expected-error@+1 {{region #0 ('qk') failed to verify constraint: region with 1 blocks}}
  "tile.kv_loop"(%i, %i, %i, %i) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0>, step = 64 : i64}> ({}, {}, {}, {}) : (i32, i32, i32, i32) -> ()
  return
}

// -----

// expected-error@+1 {{warps must be in [1, 32], not 0}}
func.func private @mma_warps(tensor<64x64xf32, #tile.mma<warps = 0>>)

// -----

// expected-error@+1 {{threads_per_row must be a power of two in [1, 32], not 3}}
func.func private @blocked_threads(tensor<64x64xf32, #tile.blocked<vector = 8, threads_per_row = 3, warps = 4>>)

// -----

// expected-error@+1 {{vector must be in [1, 1024], not 0}}
func.func private @blocked_vector(tensor<64x64xf32, #tile.blocked<vector = 0, threads_per_row = 4, warps = 4>>)

// -----

func.func @gather_rank(%m: memref<4x8xf32>, %i: i32) {
  // expected-error@+1 {{needs 2 indices, has 1}}
  %x = tile.gather %m[%i] : memref<4x8xf32>, (i32) -> f32
  return
}

// -----

func.func @gather_index_type(%m: memref<8xf32>, %i: tensor<8xi64>) {
  // expected-error@+1 {{indices must be i32 or tiles of i32, not 'tensor<8xi64>'}}
  %x = tile.gather %m[%i] : memref<8xf32>, (tensor<8xi64>) -> tensor<8xf32>
  return
}

// -----

func.func @gather_shapes(%m: memref<4x8xf32>, %i: tensor<8xi32>, %j: tensor<4xi32>) {
  // expected-error@+1 {{indices must be of one shape, not 'tensor<8xi32>' and 'tensor<4xi32>'}}
  %x = tile.gather %m[%i, %j] : memref<4x8xf32>, (tensor<8xi32>, tensor<4xi32>) -> tensor<8xf32>
  return
}

// -----

func.func @gather_result(%m: memref<8xf16>, %i: tensor<8xi32>) {
  // expected-error@+1 {{must yield 'tensor<8xf16>', not 'tensor<8xf32>'}}
  %x = tile.gather %m[%i] : memref<8xf16>, (tensor<8xi32>) -> tensor<8xf32>
  return
}

// -----

func.func @gather_in_bounds(%m: memref<8xf16>, %i: i32) {
  // expected-error@+1 {{has no dimension 1 to be in bounds}}
  %x = tile.gather %m[%i] in_bounds [1] : memref<8xf16>, (i32) -> f16
  return
}

// -----

func.func @store_element_rank(%m: memref<4x8xi32>, %i: i32) {
  // expected-error@+1 {{needs 2 indices, has 1}}
  tile.store_element %i, %m[%i] : memref<4x8xi32>
  return
}

// -----

func.func @load_interleave(%x: memref<?x?xf32>, %i: i32) {
  // expected-error@+1 {{with interleave needs a dimension in front of those of the tile, to take matrices from}}
  %t = tile.load %x[%i, %i] interleave 2 : memref<?x?xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @reduce_range_minima(%n: i32) {
  // expected-error@+1 {{has fewer results than num_min}}
  %r = tile.reduce_range %n to %n min 2 (%i: i32) {
    tile.yield %i : i32
  } -> i32
  return
}

// -----

func.func @reduce_range_yield(%n: i32) {
  %r = tile.reduce_range %n to %n min 0 (%i: i32) {
    // expected-error@+1 {{must yield one 'i32' from reduce_range}}
    tile.yield %i, %i : i32, i32
  } -> i32
  return
}

// -----

func.func @reduce_range_effect(%n: i32, %m: memref<8xi32>) {
  %r = tile.reduce_range %n to %n min 0 (%i: i32) {
    // expected-error@+1 {{is not allowed in reduce_range}}
    tile.store_element %i, %m[%i] : memref<8xi32>
    tile.yield %i : i32
  } -> i32
  return
}

// -----

func.func @mask_bounds_form(%s: tensor<128x64xf32>, %m: memref<?x?x4xi32>, %i: i32) {
  // expected-error@+1 {{bounds must be a memref [batch, head, granule, 4] with the indices of batch, head and the first query tile}}
  %t = tile.mask %s at (%i, %i) bounds(%m[%i, %i, %i] : memref<?x?x4xi32>) rows 64 (%q: i32, %k: i32) {
    %keep = arith.cmpi sle, %k, %q : i32
    tile.yield %keep : i1
  } : tensor<128x64xf32>
  return
}

// -----

func.func @mask_bounds_rows(%s: tensor<128x64xf32>, %m: memref<?x?x?x4xi32>, %i: i32) {
  // expected-error@+1 {{bounds must be of granules that 128 rows are a multiple of}}
  %t = tile.mask %s at (%i, %i) bounds(%m[%i, %i, %i] : memref<?x?x?x4xi32>) rows 48 (%q: i32, %k: i32) {
    %keep = arith.cmpi sle, %k, %q : i32
    tile.yield %keep : i1
  } : tensor<128x64xf32>
  return
}

// -----

func.func @mask_tiles_form(%s: tensor<128x64xf32>, %m: memref<?x?x?x4xi32>, %t: memref<?x?xi32>, %i: i32) {
  // expected-error@+1 {{tiles must be a memref [batch, head, query tile, tile]}}
  %r = tile.mask %s at (%i, %i) bounds(%m[%i, %i, %i] : memref<?x?x?x4xi32>) rows 64 tiles(%t : memref<?x?xi32>) (%q: i32, %k: i32) {
    %keep = arith.cmpi sle, %k, %q : i32
    tile.yield %keep : i1
  } : tensor<128x64xf32>
  return
}

// -----

func.func @mask_tiles_alone(%s: tensor<128x64xf32>, %t: memref<?x?x?x?xi32>, %i: i32) {
  // expected-error@+1 {{takes tiles only with bounds, which are positions in their list}}
  %r = tile.mask %s at (%i, %i) tiles(%t : memref<?x?x?x?xi32>) (%q: i32, %k: i32) {
    %keep = arith.cmpi sle, %k, %q : i32
    tile.yield %keep : i1
  } : tensor<128x64xf32>
  return
}

// -----

func.func @kv_loop_tiles(%t: memref<?x?x?x?xi32>, %i: i32) {
  // expected-error@+1 {{tiles must be a memref [batch, head, query tile, tile] with three indices}}
  tile.kv_loop ranges(%i, %i, %i, %i) step 64 tiles(%t[%i, %i] : memref<?x?x?x?xi32>)
    qk (%kv: i32) {
      tile.yield
    } score (%kv: i32) {
      tile.yield
    } softmax (%kv: i32) {
      tile.yield
    } pv (%kv: i32) {
      tile.yield
    }
  return
}

// -----

func.func @mixed_widths(%a: tensor<8x32xf8E4M3FN>, %b: tensor<8x32xf16>, %c: tensor<8x8xf32>) {
  // expected-error@+1 {{operands must have one element type}}
  %r = tile.mma mma %a, %b, %c {transpose_b} : tensor<8x32xf8E4M3FN>, tensor<8x32xf16>, tensor<8x8xf32>
  return
}

// -----

func.func @permuted_f16(%a: tensor<8x32xf16>, %c: tensor<8x8xf32>) {
  // expected-error@+1 {{permuted_k is for 8-bit operands with transpose_b}}
  %r = tile.mma mma %a, %a, %c {transpose_b, permuted_k} : tensor<8x32xf16>, tensor<8x32xf16>, tensor<8x8xf32>
  return
}

// -----

func.func @store_interleave(%x: memref<?x?x?xf32>, %t: tensor<4x4xf32>, %i: i32) {
  // expected-error@+1 {{interleave must be at least 1, not 0}}
  tile.store %t, %x[%i, %i, %i] interleave 0 : tensor<4x4xf32>, memref<?x?x?xf32>
  return
}

// -----

func.func @page_rows(%pool: memref<8x4x12x64xbf16>, %table: memref<?x?xi32>, %n: i32) {
  // expected-error@+1 {{takes a pool [pages, heads, page, columns] with a static page, a power of two, not 'memref<8x4x12x64xbf16>'}}
  %r = tile.paged_rows %pool through %table[%n] length %n
    : memref<8x4x12x64xbf16>, memref<?x?xi32> -> memref<1x4x?x64xbf16, #tile.pages>
  return
}

// -----

func.func @page_table(%pool: memref<8x4x16x64xbf16>, %table: memref<?xi32>, %n: i32) {
  // expected-error@+1 {{takes a table of i32 [sequences, pages], not 'memref<?xi32>'}}
  %r = tile.paged_rows %pool through %table[%n] length %n
    : memref<8x4x16x64xbf16>, memref<?xi32> -> memref<1x4x?x64xbf16, #tile.pages>
  return
}

// -----

func.func @paged_type(%pool: memref<8x4x16x64xbf16>, %table: memref<?x?xi32>, %n: i32) {
  // expected-error@+1 {{must yield 'memref<1x4x?x64xbf16, #tile.pages>', not 'memref<1x4x?x64xbf16>'}}
  %r = tile.paged_rows %pool through %table[%n] length %n
    : memref<8x4x16x64xbf16>, memref<?x?xi32> -> memref<1x4x?x64xbf16>
  return
}

// -----

func.func @paged_gather(%rows: memref<1x4x?x64xbf16, #tile.pages>, %i: i32) {
  // expected-error@+1 {{can't reach rows that lie in pages; only loads of tiles of rank 2 do}}
  %x = tile.gather %rows[%i, %i, %i, %i] : memref<1x4x?x64xbf16, #tile.pages>, (i32, i32, i32, i32) -> bf16
  return
}

// -----

func.func @paged_store(%rows: memref<1x4x?x64xbf16, #tile.pages>, %t: tensor<16x64xbf16>, %i: i32) {
  // expected-error@+1 {{can't reach rows that lie in pages}}
  tile.store %t, %rows[%i, %i, %i, %i] : tensor<16x64xbf16>, memref<1x4x?x64xbf16, #tile.pages>
  return
}

// -----

func.func @paged_row(%rows: memref<1x4x?x64xbf16, #tile.pages>, %i: i32) {
  // expected-error@+1 {{loads rows that lie in pages, which takes a tile of rank 2, not 'tensor<64xbf16>'}}
  %t = tile.load %rows[%i, %i, %i, %i] : memref<1x4x?x64xbf16, #tile.pages> -> tensor<64xbf16>
  return
}
