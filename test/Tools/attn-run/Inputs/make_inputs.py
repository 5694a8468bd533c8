"""Writes small f32 tensors of shape [1, 1, 1, 32] as .npy and .safetensors.

The values of v are distinct, so that attention over its single key must return
v bit by bit. Needs no numpy; the bytes are what numpy.save writes.
"""

import json
import os
import struct
import sys

FOLDER = sys.argv[1]
SHAPE = (1, 1, 1, 32)
VALUES = {
    "q": [0.5] * 32,
    "k": [0.25] * 32,
    "v": [float(i) for i in range(32)],
}


def npy(values, shape, descr="<f4"):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (descr, shape)
    header = header.ljust((10 + len(header) + 1 + 63) // 64 * 64 - 11) + "\n"
    prefix = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header))
    return prefix + header.encode() + struct.pack("<%df" % len(values), *values)


def write(name, data):
    with open(os.path.join(FOLDER, name), "wb") as file:
        file.write(data)


for name, values in VALUES.items():
    write(name + ".npy", npy(values, SHAPE))
write("scale.npy", npy([2.0], ()))
write("short.npy", npy(VALUES["q"], SHAPE)[:-1])
write("flat.npy", npy(VALUES["q"], (32,)))

entries, data = {}, b""
for name, values in VALUES.items():
    start = len(data)
    data += struct.pack("<32f", *values)
    entries[name] = {
        "dtype": "F32",
        "shape": SHAPE,
        "data_offsets": [start, len(data)],
    }
header = json.dumps(entries).encode()
write("qkv.safetensors", struct.pack("<Q", len(header)) + header + data)
