"""Writes parts to merge, and compares what became of them with the definition in float64."""

import os
import sys

import numpy as np

TEXT = """
!o = tensor<2x3x21x40xf32>
!l = tensor<2x3x21xf32>
func.func @merge(%o0: !o, %o1: !o, %o2: !o, %l0: !l, %l1: !l, %l2: !l) -> (!o, !l) {
  %o, %l = attn.merge %o0, %o1, %o2 with %l0, %l1, %l2 : !o, !o, !o with !l, !l, !l -> !o, !l
  return %o, %l : !o, !l
}
"""

os.chdir(sys.argv[1])
if len(sys.argv) > 2:
    outputs = np.stack([np.load(f"o{i}.npy") for i in range(3)]).astype(np.float64)
    lses = np.stack([np.load(f"l{i}.npy") for i in range(3)]).astype(np.float64)
    empty = np.isinf(lses)
    top = np.where(empty, -np.inf, lses).max(axis=0)
    weights = np.where(empty, 0, np.exp(np.where(empty, 0, lses) - np.where(np.isinf(top), 0, top)))
    total = weights.sum(axis=0)
    values = np.where(empty[..., None], 0, outputs) * weights[..., None]
    o = np.divide(values.sum(axis=0), total[..., None], out=np.zeros(outputs.shape[1:]), where=total[..., None] > 0)
    with np.errstate(divide="ignore"):
        lse = np.where(total > 0, np.log(total) + np.where(np.isinf(top), 0, top), -np.inf)
    np.testing.assert_allclose(np.load("o.npy"), o, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(np.load("l.npy"), lse, rtol=1e-6, atol=1e-6)
else:
    with open("merge.mlir", "w") as file:
        file.write(TEXT)
    random = np.random.default_rng(1)
    infinity = float("inf")
    for i in range(3):
        o = random.standard_normal((2, 3, 21, 40)).astype(np.float32)
        lse = (5 * random.standard_normal((2, 3, 21))).astype(np.float32)
        lse[:, :, i] = -infinity
        lse[:, :, 3 + i] = infinity
        lse[:, :, 6] = (-infinity, infinity, -infinity)[i]
        lse[:, :, 7] = -infinity
        lse[:, :, 8] = (-1000, 1000, 999)[i]
        lse[:, :, 9] = (88, 3e38, -3e38)[i]
        o[np.isinf(lse)] = np.nan
        np.save(f"o{i}.npy", o)
        np.save(f"l{i}.npy", lse)
