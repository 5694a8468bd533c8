"""Checks what attn-tune wrote of the run in attn-tune.mlir."""

import json
import sys

with open(sys.argv[1]) as file:
    report = json.load(file)
assert report["target"] == "cpu", report["target"]
assert report["inputs"][0] == "q 1x2x20x64xf16", report["inputs"]
results = report["results"]
assert len(results) > 2
assert len({result["schedule"] for result in results}) == len(results)
for result in results:
    assert "refusal" not in result, result
    assert 0 < result["error"] < 1e-3, result
    assert result["screening"]["median_us"] > 0, result
finalists = [result for result in results if "time" in result]
assert len(finalists) == 2 and finalists[0] is results[0]
for result in finalists:
    time = result["time"]
    assert time["samples"] == 4, time
    assert time["lower_quartile_us"] <= time["median_us"] <= time["upper_quartile_us"], time
