"""Writes a benchmark's file of one case with the given samples.

    make_bench.py BACKEND=SAMPLE,... ... [DEVICE]
"""

import json
import sys

results = []
device = "a card"
for argument in sys.argv[1:]:
    name, _, samples = argument.partition("=")
    if not samples and "=" not in argument:
        device = argument
        continue
    samples = [float(sample) for sample in samples.split(",") if sample]
    results.append({"backend": name, "kernel_target": "cpu", "refusal": "" if samples else "it can't", "samples_us": samples,
                    "kernels": 1, "bytes": None, "flops": None, "clock_mhz": None, "error": None})
json.dump({"attnc_bench": 1, "command": "attn-bench", "date": "2026-11-30", "device": device, "target": "cpu", "versions": {},
           "rounds": 3, "warm": False, "verified": False, "backends": [result["backend"] for result in results],
           "baseline": results[0]["backend"],
           "cases": [{"shape": "1x2x64x16", "dtype": "f32", "mod": "none", "results": results}]}, sys.stdout)
