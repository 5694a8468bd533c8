"""Writes a batch of inputs and one of its sequences alone; compares the results to the last bit."""

import os
import sys

import numpy as np

SEQUENCE = 3
TEXT = """
!q = tensor<?x6x1x64xf32>
!k = tensor<?x2x?x64xf32>
func.func @attention(%q: !q {attn.name = "q"}, %k: !k {attn.name = "k"}, %v: !k {attn.name = "v"},
                     %o: !q {attn.name = "o"}) -> !q {
  %r = attn.attention ins(%q, %k, %v : !q, !k, !k) outs(%o : !q) {ATTRIBUTES} -> !q
  return %r : !q
}
"""
SCHEDULE = "schedule = #attn.schedule<block_m = 16, block_n = 64, num_stages = 1, num_warps = 1, decode = <DECODE>>"
ATTRIBUTES = {
    "table": "batch_invariant",
    "fixed": "batch_invariant, " + SCHEDULE.replace("DECODE", "split_keys = 192"),
    "filling": SCHEDULE.replace("DECODE", "programs_per_sm = 64"),
}

os.chdir(sys.argv[1])
if len(sys.argv) > 2:
    together, alone = np.load("all.npy"), np.load("one.npy")
    assert np.isfinite(alone).all()
    np.testing.assert_allclose(together[SEQUENCE], alone[0], rtol=1e-4, atol=1e-6)
    same = together[SEQUENCE : SEQUENCE + 1].tobytes() == alone.tobytes()
    assert same == (sys.argv[2] == "equal")
else:
    for name, attributes in ATTRIBUTES.items():
        with open(name + ".mlir", "w") as file:
            file.write(TEXT.replace("ATTRIBUTES", attributes))
    random = np.random.default_rng(0)
    for name, shape in (("q", (5, 6, 1, 64)), ("k", (5, 2, 5000, 64)), ("v", (5, 2, 5000, 64))):
        x = random.standard_normal(shape).astype(np.float32)
        np.save(name + ".npy", x)
        np.save(name + "1.npy", x[SEQUENCE : SEQUENCE + 1])
