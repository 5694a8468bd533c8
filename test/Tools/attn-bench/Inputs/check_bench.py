"""Checks what attn-bench wrote: FILE.json, and the same numbers in FILE.md and FILE.html (in Chromium).

    check_bench.py FILE.json FILE.md [FILE.html]
"""

import json
import os
import statistics
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Inputs"))
from browser import browse  # noqa: E402

with open(sys.argv[1]) as file:
    bench = json.load(file)

assert bench["attnc_bench"] == 1 and bench["target"] == "cpu" and bench["baseline"] == "naive"
assert {case["dtype"] for case in bench["cases"]} == {"f32", "f8E5M2"}
assert len(bench["cases"]) == 8
shown = []
for case in bench["cases"]:
    results = {result["backend"]: result for result in case["results"]}
    assert list(results) == ["naive", "fused"]
    if case["dtype"] == "f8E5M2":
        assert all("has no" in result["refusal"] and not result["samples_us"] for result in results.values())
        shown += [[case["shape"], name, "-", "-"] for name in results]
        continue
    samples = [result["samples_us"] for result in results.values()]
    ratio = statistics.median(a / b for a, b in zip(samples[1], samples[0]))
    assert abs(results["fused"]["ratio"] - ratio) < 1e-9 * ratio
    assert results["naive"]["ratio"] == 1
    for result in results.values():
        assert len(result["samples_us"]) == bench["rounds"] == 4
        assert abs(result["median_us"] - statistics.median(result["samples_us"])) < 1e-9 * result["median_us"]
        assert result["p10_us"] <= result["median_us"] <= result["p90_us"]
        assert result["error"] < 1e-5
        shown.append([case["shape"], result["backend"], f"{result['median_us']:.1f}", f"{result['ratio']:.2f} x"])
    # Two products; causal needs half of each, and the diagonal.
    batch, heads, length, dim = (int(size.split(":")[0]) for size in case["shape"].split("x"))
    keys = int(case["shape"].split("x")[2].split(":")[-1])
    assert results["naive"]["flops"] >= 4 * batch * heads * length * keys * dim
    tflops = min(result["flops"] for result in results.values()) / results["fused"]["median_us"] / 1e6
    assert abs(results["fused"]["tflops"] - tflops) < 1e-9 * tflops

with open(sys.argv[2]) as file:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in file if line.startswith("|")]
assert rows[0][:6] == ["shape", "dtype", "mod", "backend", "median us", "of naive"]
assert [[row[0], row[3], row[4], row[5]] for row in rows[2:]] == shown, rows

if len(sys.argv) > 3:
    page = browse(sys.argv[3], "--window-size=1280,900")
    table = page.tables["All results"]
    assert [[row["shape"], row["backend"], row["median us"], row["of naive"]] for row in table] == shown
    (row,) = [row for row in page.tables["Times side by side"] if row["case"] == "1x2x64x16 f32 none"]
    results = bench["cases"][0]["results"]
    value, unit, ratio = row["fused"].replace("(", "").split()[:3]
    scale = {"us": 1, "ms": 1e3, "s": 1e6}[unit]
    assert abs(float(value) * scale - results[1]["median_us"]) <= 0.006 * results[1]["median_us"], row
    assert ratio == f"{results[1]['ratio']:.2f}" and "(" not in row["naive"], row
    charts = page.probe["charts"]
    assert [chart["title"] for chart in charts] == ["Median times of f32, none", "Median times of f32, causal+softcap=20"]
    for chart, mod in zip(charts, ("none", "causal+softcap=20")):
        cases = [case for case in bench["cases"] if case["mod"] == mod and case["dtype"] == "f32"]
        medians = [[case["results"][index]["median_us"] for case in cases] for index in range(2)]
        unit = chart["data"][0][0] / medians[0][0]
        for drawn, expected in zip(chart["data"], medians):
            assert all(abs(a - b * unit) < 1e-9 * a for a, b in zip(drawn, expected))
    browse(sys.argv[3], "--window-size=390,844")
