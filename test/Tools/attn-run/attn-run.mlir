// RUN: rm -rf %t && mkdir %t && %python %S/Inputs/make_inputs.py %t

// With one key the output is v, whatever the scores are.
// RUN: attn-run %s --entry=plain --target=cpu --repeat=0 \
// RUN:   --inputs=%t/q.npy,%t/k.npy,%t/v.npy --outputs=%t/o.npy
// RUN: cmp %t/o.npy %t/v.npy
// RUN: attn-run %s --entry=plain --target=cpu --repeat=0 \
// RUN:   --inputs=%t/qkv.safetensors --outputs=%t/o2.npy
// RUN: cmp %t/o2.npy %t/v.npy

// Scalars come from a file or from the command line.
// RUN: attn-run %s --entry=scaled --target=cpu --repeat=0 \
// RUN:   --inputs=%t/q.npy,%t/k.npy,%t/v.npy,%t/scale.npy --outputs=%t/o3.npy
// RUN: cmp %t/o3.npy %t/v.npy
// RUN: attn-run %s --entry=scaled --target=cpu --repeat=0 --verify \
// RUN:   --scalar scale=0.25 --shapes=1x1x20x32,1x1x30x32,1x1x30x32

// RUN: attn-run %s --entry=plain --target=cpu --repeat=3 --verify \
// RUN:   --shapes=2x1x20x32,2x1x30x32,2x1x30x32 --json=%t/report.json \
// RUN:   | FileCheck %s --check-prefix=TABLE
// RUN: FileCheck %s --check-prefix=JSON --input-file=%t/report.json

// TABLE: variant, kernels per call{{ +}}calls{{ +}}median us{{ +}}min us{{ +}}max us{{ +}}moved{{ +}}least{{ +}}intermediate{{ +}}error
// TABLE-NEXT: fused (cpu): 1 kernel {{.*}}e-0{{[6-9]}}
// TABLE-NEXT: fused_{{[a-z0-9_]+}}{{ +}}1

// JSON: "device":
// JSON: "variant": "fused"
// JSON: "target": "cpu"
// JSON: "status": "ok"
// JSON: "kind": "kernel"
// JSON: "calls": 1
// JSON: "median_us": {{[0-9]}}
// q and o hold 2 x 20 x 32, k and v 2 x 30 x 32 floats.
// JSON: "min_bytes": 25600
// JSON: "error": {{[0-9.]+}}e-0{{[6-9]}}

func.func @plain(%q: tensor<?x1x?x32xf32> {attn.name = "q"},
                 %k: tensor<?x1x?x32xf32> {attn.name = "k"},
                 %v: tensor<?x1x?x32xf32> {attn.name = "v"},
                 %o: tensor<?x1x?x32xf32> {attn.name = "o"})
    -> tensor<?x1x?x32xf32> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<?x1x?x32xf32>, tensor<?x1x?x32xf32>,
                       tensor<?x1x?x32xf32>)
      outs(%o : tensor<?x1x?x32xf32>) -> tensor<?x1x?x32xf32>
  return %r : tensor<?x1x?x32xf32>
}

func.func @scaled(%q: tensor<?x1x?x32xf32> {attn.name = "q"},
                  %k: tensor<?x1x?x32xf32> {attn.name = "k"},
                  %v: tensor<?x1x?x32xf32> {attn.name = "v"},
                  %scale: f32 {attn.name = "scale"},
                  %o: tensor<?x1x?x32xf32> {attn.name = "o"})
    -> tensor<?x1x?x32xf32> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<?x1x?x32xf32>, tensor<?x1x?x32xf32>,
                       tensor<?x1x?x32xf32>)
      scale(%scale : f32)
      outs(%o : tensor<?x1x?x32xf32>) -> tensor<?x1x?x32xf32>
  return %r : tensor<?x1x?x32xf32>
}
