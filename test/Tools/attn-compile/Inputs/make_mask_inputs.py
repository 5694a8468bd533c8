"""Writes what masks read to a folder."""

import json
import struct
import sys

import numpy as np

folder = sys.argv[1]
# Two documents in turn, each of two pieces of 64 positions.
documents = np.array([0, 1, 0, 1], np.int32).repeat(64)[None]
np.save(f"{folder}/documents.npy", documents)
np.save(f"{folder}/lengths.npy", np.array([7, 100], np.int32))

header = {"document": {"dtype": "I32", "shape": list(documents.shape), "data_offsets": [0, documents.nbytes]}}
text = json.dumps(header).encode()
with open(f"{folder}/documents.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + documents.tobytes())
