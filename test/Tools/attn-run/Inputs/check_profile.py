"""Checks the profile and trace of profile.mlir: sums, and what belongs together."""

import json
import sys

profile = json.load(open(sys.argv[1]))
trace = json.load(open(sys.argv[2]))

assert profile["attnc_profile"] == 1
assert profile["environment"]["is_gpu"] is False
assert [region["name"] for region in profile["regions"]] == ["naive", "inplace", "math", "fused"]
for region in profile["regions"]:
    columns = region["device"]["columns"]
    rows = [dict(zip(columns, row)) for row in region["device"]["rows"]]
    compiling, first, steady = region["phases"]
    assert (compiling["name"], first["name"]) == ("compile", "first") and steady["name"] == "steady" and steady["calls"] == 2
    inside = [row for row in rows if steady["start_ns"] <= row["start_ns"] < steady["end_ns"]]
    total = sum(row["end_ns"] - row["start_ns"] for row in inside) / 1e3
    summary = region["summary"]
    first_ns = sum(phase["end_ns"] - phase["start_ns"] for phase in (compiling, first))
    assert abs(summary["first_call_us"] - first_ns / 1e3) < 1e-3
    # One stream, nothing side by side.
    assert abs(summary["busy_us"] - total) < 1e-3
    assert abs(summary["busy_us"] + summary["idle_us"] - summary["wall_us"]) < 1e-3
    assert sum(kernel["calls"] for kernel in summary["kernels"]) == len(inside)
    # Each launch is the host's, too.
    host = [dict(zip(region["host"]["columns"], row)) for row in region["host"]["rows"]]
    launches = {row["correlation"] for row in host if row["kind"] == "launch"}
    assert {row["correlation"] for row in rows} == launches

# 70 queries are two tiles of 64, which see one and two tiles of keys: 2 over a mean of 1.5.
(fused,) = profile["regions"][3]["facts"]
assert abs(fused["work_imbalance"] - 2 / 1.5) < 1e-9, fused
assert all(facts["work_imbalance"] is None for facts in profile["regions"][0]["facts"])

events = trace["traceEvents"]
count = sum(len(region["device"]["rows"]) for region in profile["regions"])
assert trace["otherData"]["records_left_out"] == 0
assert len([event for event in events if event["ph"] == "s"]) == count
assert len([event for event in events if event["ph"] == "f"]) == count
