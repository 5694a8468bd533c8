"""Prints the tables of a made-up result: tables.py BENCHMARKS_FOLDER."""

import sys

sys.path.insert(0, sys.argv[1])
import table

problem = {"dim": 64, "length": 2048, "mask": "causal", "window": 0}
measured = {
    **problem,
    "peer": "cuDNN",
    "ours_tflops": 500.0,
    "peer_tflops": 400.0,
    "ours_spread": 0.012,
    "peer_spread": 0.034,
    "error": 2.2e-3,
    "peer_error": None,
}
schedule = {**problem, "schedule": "block_m = 192"}
result = {
    "device": "GPU",
    "date": "2026-01-01",
    "driver": None,
    "power_limit_w": None,
    "torch": "2",
    "cuda": "13",
    "cudnn": 91900,
    "cudnn_frontend": None,
    "target": "sm_90a",
    "dtype": "bf16",
    "hopper": [
        {**measured, "group": "long", "ratio": 1.0},
        {**measured, "group": "long", "ratio": 1.21, "sm_clock_mhz": 1700, "power_w": 690},
        {**measured, "group": "gqa", "ratio": 5.0},
    ],
    "ablation": [
        {**schedule, "change": None, "error": 2.2e-3},
        {**schedule, **measured, "change": "persistent = false", "ratio": 0.9, "spilled_bytes": 8},
        {**schedule, "change": "q_stages = 2", "refused": "too large"},
    ],
}
for suite in ("hopper", "ablation"):
    for row in result[suite]:
        print(table.line(row))
print(table.markdown(result))
