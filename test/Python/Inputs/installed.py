"""The installed package and its own library, against float64 in numpy."""

import os
import sys

import numpy as np

import attnc

folder = os.path.dirname(os.path.realpath(attnc.__file__))
assert folder.startswith(os.path.realpath(sys.prefix)), folder
maps = open("/proc/self/maps").read()
assert os.path.join(folder, "libattnc.so") in maps, "another library is loaded"

random = np.random.default_rng(0)
q, k, v = (random.standard_normal((2, 4, n, 16)).astype(np.float32) for n in (33, 50, 50))
scores = q.astype(float) @ k.swapaxes(2, 3) / 4
scores[..., np.arange(50) > np.arange(33)[:, None] + 17] = -np.inf
weights = np.exp(scores - scores.max(-1, keepdims=True))
expected = weights @ v / weights.sum(-1, keepdims=True)
error = abs(attnc.attention(q, k, v, is_causal=True) - expected).max()
print("error is small:", error < 1e-5)
