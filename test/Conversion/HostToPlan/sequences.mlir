// RUN: attn-opt --convert-host-to-plan %s | FileCheck %s

// Checks of numbers name the arguments that hold them and the sizes that bound
// those; numbers that host code computes aren't known before it runs.

// CHECK: sequences = [{block_table = "table", cu_q = "ends", k_batches = "k.dim0", k_rows = 16 : i64, kv_len = "lengths", q_rows = "q.dim2"}]
func.func @f(%q: memref<1x2x?x64xf16> {attn.name = "q"}, %k: memref<?x2x16x64xf16> {attn.name = "k"},
             %ends: memref<?xi32> {attn.name = "ends"}, %lengths: memref<?xi32> {attn.name = "lengths"},
             %table: memref<?x?xi32> {attn.name = "table"}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %rows = memref.dim %q, %c2 : memref<1x2x?x64xf16>
  %pages = memref.dim %k, %c0 : memref<?x2x16x64xf16>
  attn.check_sequences queries(%rows) keys(%pages, %c16)
    cu_q(%ends : memref<?xi32>) kv_len(%lengths : memref<?xi32>) block_table(%table : memref<?x?xi32>)
  %made = memref.alloc() : memref<4xi32>
  attn.check_sequences queries(%rows) keys(%pages, %c16) cu_q(%made : memref<4xi32>)
  memref.dealloc %made : memref<4xi32>
  return
}
