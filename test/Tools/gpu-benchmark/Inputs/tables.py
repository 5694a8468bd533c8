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
ruled = {
    **problem,
    "batch": 1,
    "queries": 2048,
    "mask": "none",
    "mod": "prefix 1024",
    "spread": 0.01,
    "error": 2.2e-3,
    "ours_ms": 0.5,
    "none_ms": 0.8,
}
beside_flex = {
    **ruled,
    "peer": "FlexAttention, compiled",
    "peer_ms": 1.0,
    "ours_spread": 0.01,
    "peer_spread": 0.02,
    "peer_error": 2.3e-3,
    "ours_first_call_s": 0.5,
    "ours_with_prepass_ms": 0.625,
    "peer_block_mask_s": 0.25,
}
decode = {**problem, "batch": 16, "queries": 1, "mask": "none", "mod": "", "kernel_us": 120.0, "spread": 0.01}
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
    "mods": [
        {**beside_flex, "ratio": 2.0, "peer_first_call_s": 16.0},
        {**beside_flex, "ratio": 1.125, "peer_first_call_s": 4.0},
        {**ruled, "mod": "bias", "refused": "too large"},
    ],
    "skip": [{**ruled, "tile": (192, 64), "hidden": 0.5, "time_part": 0.55, "over_visible": 1.1}],
    "scoremods": [{**ruled, "overhead": 0.07}],
    "decode": [{**decode, "kernel": "cuDNN", "gb_per_s": 4470.0, "ratio": 0.9, "error": 2.2e-3}],
}
for suite in ("hopper", "ablation", "mods", "skip", "scoremods", "decode"):
    for row in result[suite]:
        print(table.line(row))
print(table.markdown(result))
