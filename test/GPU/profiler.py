#!/usr/bin/env python3
"""Compares what the profiler says of a GPU with what the driver and events say.

    python3 test/GPU/profiler.py --attn-run build/bin/attn-run --target sm_90a [--json FILE]

Runs examples/causal.mlir (B8 H16 N1024 D64, bf16) in every variant, once with
CUPTI, once without, and where there is ncu and its permission, under it; with
torch, also torch's flash attention through attnc.profile. Each check is one
line; a wrong one fails the run.
"""

import argparse
import ctypes
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from checks import Checks

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SHAPE = "8x16x1024x64"
# CUPTI's times against others'. Events around a step also hold the gap to it, the same for all steps but for GAP_SPREAD_US.
TIME_TOLERANCE = 0.03
GAP_SPREAD_US = 1
# Of a variant's time with CUPTI at work to that without; run to run, a power-limited card differs by as much.
OVERHEAD_TOLERANCE = 0.03
PATHS = {"sm_80": "HMMA", "sm_90a": "HGMMA"}
COUNTERS = (
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "dram__bytes.sum",
)
# Of the analytic bytes of kernels that move more than twice an H200's L2 cache, which keeps some of what is written.
DRAM_SHARE = (0.7, 1.15)


def find_cupti():
    """Sets ATTNC_CUPTI to the one of a wheel, where there is one: the loader doesn't look there."""
    if "ATTNC_CUPTI" in os.environ:
        return
    for folder in sys.path:
        found = sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libcupti.so.*")))
        if found:
            os.environ["ATTNC_CUPTI"] = found[-1]
            return


EMPTY_KERNEL = b""".version 7.0
.target sm_80
.address_size 64
.visible .entry empty() { ret; }
"""


def measure_empty_kernel_us():
    """The median time between events around a kernel that does nothing: the gap, and about 1 us that it takes itself."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        status = getattr(cuda, name)(*arguments)
        if status:
            sys.exit(f"{name}: CUDA error {status}")

    def make(name, *arguments):
        handle = ctypes.c_void_p()
        call(name, ctypes.byref(handle), *arguments)
        return handle

    call("cuInit", 0)
    context = make("cuDevicePrimaryCtxRetain", ctypes.c_int(0))
    call("cuCtxSetCurrent", context)
    module = make("cuModuleLoadData", EMPTY_KERNEL + b"\0")
    function = make("cuModuleGetFunction", module, b"empty")
    stream = make("cuStreamCreate", 1)
    events = [make("cuEventCreate", 0) for _ in range(201)]
    call("cuEventRecord", events[0], stream)
    for event in events[1:]:
        call("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, stream, None, None)
        call("cuEventRecord", event, stream)
    call("cuStreamSynchronize", stream)
    times = []
    for before, after in zip(events, events[1:]):
        milliseconds = ctypes.c_float()
        call("cuEventElapsedTime", ctypes.byref(milliseconds), before, after)
        times.append(1000 * milliseconds.value)
    call("cuDevicePrimaryCtxRelease_v2", 0)
    return statistics.median(times)


def run(args, folder, name, **environment):
    """The profile and the report of one attn-run."""
    stem = os.path.join(folder, name)
    command = [args.attn_run, os.path.join(ROOT, "examples/causal.mlir"), "--target=" + args.target]
    command += ["--variant=all", "--repeat=30", "--shapes=" + ",".join([SHAPE] * 3)]
    command += [f"--profile={stem}.json", f"--trace={stem}.trace.json", f"--json={stem}.report.json"]
    command += ["--expect=fused:kernels=1,naive:copies=1,inplace:copies=0,fused:path=" + PATHS[args.target]]
    done = subprocess.run(
        command, env=dict(os.environ, **environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode not in (0, 3):
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}")
    print(done.stdout, flush=True)
    with open(stem + ".json") as file:
        profile = json.load(file)
    with open(stem + ".report.json") as file:
        report = json.load(file)
    with open(stem + ".trace.json") as file:
        json.load(file)
    return done.returncode, profile, report


def kernels(summary):
    return {kernel["name"]: kernel for kernel in summary["kernels"] if kernel["kind"] == "kernel"}


def check_environment(checks, environment, target):
    bandwidth = environment["bandwidth_bytes_per_s"] / 1e12
    rate = environment["matrix_flops_per_s"] / 1e12
    # An H200's limits; other cards only need to have some.
    limits = ((3.5, 4.9), (600, 1000)) if "H200" in environment["device"] and target == "sm_90a" else ((0.1, 10), (10, 5000))
    checks.check("bandwidth of copies", limits[0][0] < bandwidth < limits[0][1], f"{bandwidth:.2f} TB/s")
    checks.check("rate of 16-bit products", limits[1][0] < rate < limits[1][1], f"{rate:.0f} TFLOP/s")


def kernel_gaps(profile, report):
    """By region and kernel: events' time of one step less CUPTI's."""
    gaps = {}
    for region, variant in zip(profile["regions"], report["variants"]):
        seen = kernels(region["summary"])
        for kernel in variant["kernels"]:
            if kernel["kind"] == "kernel" and kernel["name"] in seen:
                gaps[region["name"], kernel["name"]] = kernel["median_us"] / kernel["calls"] - seen[kernel["name"]]["median_us"]
    return gaps


def check_gap(checks, gaps):
    """The gap that events include; the kernels' median, and no more than events around an empty kernel show."""
    gap, empty = statistics.median(gaps.values()), measure_empty_kernel_us()
    checks.check("events' gap is an empty kernel's", 0 <= gap <= empty, f"{gap:.2f} us, with an empty kernel {empty:.2f} us")
    return gap


def check_region(checks, region, variant, gaps, gap):
    """A region against the report, whose times are events' and whose resources are the driver's."""
    name, summary = region["name"], region["summary"]
    total = sum(kernel["total_us"] for kernel in summary["kernels"])
    difference = total - summary["overlap_us"] + summary["idle_us"] - summary["wall_us"]
    checks.check(f"{name}: the totals add up to the wall time", abs(difference) < 0.01, f"{difference:.3f} us off")
    seen = kernels(summary)
    expected = {kernel["name"]: kernel for kernel in variant["kernels"] if kernel["kind"] == "kernel"}
    checks.check(f"{name}: the plan's kernels are seen", set(seen) == set(expected), f"{set(seen) ^ set(expected) or ''}")
    for kernel in expected:
        if kernel not in seen:
            continue
        ours, drivers = seen[kernel], expected[kernel]
        same = ("registers", "registers"), ("smem_bytes", "smem_bytes"), ("blocks_per_sm", "blocks_per_sm")
        wrong = [f"{a} {ours[a]} is {drivers[b]}" for a, b in same if ours[a] != drivers[b]]
        checks.check(f"{kernel}: resources are the driver's", not wrong, "; ".join(wrong))
        time, difference = ours["median_us"], gaps[name, kernel] - gap
        allowed = max(TIME_TOLERANCE * time, GAP_SPREAD_US)
        checks.check(f"{kernel}: time against events less the gap", abs(difference) <= allowed, f"{time:.1f} us, {difference:+.2f}")
    if len(expected) == 1:
        # There are events between forwards too.
        time = summary["kernels"][0]["median_us"]
        ratio = time / (variant["median_us"] - gap)
        checks.check(f"{name}: time against whole forwards", abs(ratio - 1) <= max(TIME_TOLERANCE, GAP_SPREAD_US / time), f"{ratio:.3f}")


def check_story(checks, profile, target):
    """What must be shown at this shape."""
    regions = {region["name"]: region for region in profile["regions"]}
    count = lambda name, kind: sum(k["calls"] for k in regions[name]["summary"]["kernels"] if k["kind"] == kind)  # noqa: E731
    calls = regions["naive"]["summary"]["calls"]
    checks.check("naive has one copy more than inplace", count("naive", "copy") - count("inplace", "copy") == calls)
    checks.check("fused is one kernel", count("fused", "kernel") == regions["fused"]["summary"]["calls"])
    time = lambda name: regions[name]["summary"]["wall_us"]  # noqa: E731
    checks.check("math is 2x slower than inplace", time("math") > 2 * time("inplace"), f"{time('math') / time('inplace'):.1f}x")
    rules = {name: {f["rule"] for f in region["summary"]["findings"]} for name, region in regions.items()}
    for name, rule in (
        ("naive", "hidden-copy"),
        ("naive", "score-matrix"),
        ("math", "fp32-product"),
        ("math", "mask-rebuilt"),
        ("fused", "zero-occupancy"),
    ):
        checks.check(f"{name}: says {rule}", rule in rules[name])
    for name, rule in (("inplace", "hidden-copy"), ("fused", "score-matrix"), ("inplace", "fp32-product")):
        checks.check(f"{name}: doesn't say {rule}", rule not in rules[name])
    (kernel,) = kernels(regions["fused"]["summary"]).values()
    # The triangle, and of tiles on the diagonal what isn't visible.
    batches, heads, length, dims = map(int, SHAPE.split("x"))
    share = kernel["flops"] / (4 * batches * heads * length * length * dims)
    checks.check("fused: FLOPs are those of visible tiles", 0.5 < share < 0.75 and not kernel["dense"], f"{share:.3f}")
    checks.check(
        "fused: matrix path from machine code",
        (kernel["path"], kernel["path_source"]) == (PATHS[target], "machine code"),
        f"{kernel['path']}, {kernel['path_source']}",
    )


def check_counters(checks, args, folder):
    """What counters measure, which attn-prof shows beside what is computed."""
    ncu = shutil.which("ncu") or next(iter(sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu"))), None)
    if not ncu:
        print("skipped: counters, as there is no ncu")
        return
    command = [ncu, "--csv", "--print-units", "base", "--metrics", ",".join(COUNTERS), args.attn_run]
    command += [os.path.join(ROOT, "examples/causal.mlir"), "--target=" + args.target, "--variant=all", "--repeat=0"]
    command += ["--shapes=" + ",".join([SHAPE] * 3)]
    done = subprocess.run(command, env=dict(os.environ, LC_ALL="C"), stdout=subprocess.PIPE, text=True)
    if "ERR_NVGPUCTRPERM" in done.stdout:
        print("skipped: counters, as they may not be read")
        return
    counters, report = os.path.join(folder, "counters.csv"), os.path.join(folder, "counters.html")
    with open(counters, "w") as file:
        file.write(done.stdout)
    prof = os.path.join(os.path.dirname(os.path.abspath(args.attn_run)), "attn-prof")
    shown = subprocess.run(
        [prof, os.path.join(folder, "cupti.json"), "--counters=" + counters, "--report=" + report],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    checks.check("attn-prof reads ncu's table", shown.returncode == 0, shown.stdout if shown.returncode else "")
    if shown.returncode:
        print(done.stdout)
        return
    with open(report) as file:
        profile = json.loads(re.search(r'id="data">(.*?)</script>', file.read(), re.DOTALL)[1])
    for region in profile["regions"]:
        for name, kernel in kernels(region["summary"]).items():
            measured, computed = kernel["measured_occupancy"], kernel["computed_occupancy"]
            fits = measured is not None and 0 < measured <= computed + 0.01
            checks.check(f"{region['name']}, {name}: occupancy by counters", fits, f"{measured} of {computed}")
            if kernel["bytes"] < 2 * profile["environment"]["cache_bytes"]:
                continue
            share = (kernel["measured_bytes"] or 0) / kernel["bytes"]
            checks.check(f"{region['name']}, {name}: bytes by counters", DRAM_SHARE[0] <= share <= DRAM_SHARE[1], f"{share:.2f}")
    (fused,) = (region for region in profile["regions"] if region["name"] == "fused")
    (kernel,) = kernels(fused["summary"]).values()
    checks.check("fused: the matrix units work", (kernel["measured_matrix"] or 0) > 0.1, f"{kernel['measured_matrix']}")


def check_foreign(checks):
    """Kernels of another library."""
    try:
        import torch
    except ImportError:
        print("skipped: torch's kernels, as there is no torch")
        return
    sys.path.insert(0, os.path.join(ROOT, "python"))
    import attnc
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (torch.randn(2, 16, 1024, 64, device="cuda", dtype=torch.bfloat16) for _ in "qkv")

    def flash():
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            torch.nn.functional.scaled_dot_product_attention(q, k, v)

    profile = attnc.profile({"ours": lambda: attnc.attention(q, k, v), "flash": flash})
    print(profile)
    ours, theirs = profile.data["regions"]
    checks.check("ours is one kernel", profile.expect("ours:kernels=1,copies=0"))
    # q, k, v and o once, and both products of all rows and keys.
    least, products = 4 * q.numel() * q.element_size(), 4 * q.numel() * k.shape[2]
    (fused,) = kernels(ours["summary"]).values()
    checks.check("no FLOPs are skipped", not fused["dense"])
    known = ours["min_bytes"], fused["bytes"], fused["flops"]
    checks.check("bytes and FLOPs of ours are known", known == (least, least, products), f"{known}")
    checks.check("torch's aren't", theirs["min_bytes"] is None and all(k["bytes"] is None for k in theirs["summary"]["kernels"]))
    names = list(kernels(theirs["summary"]))
    checks.check("torch's kernel is seen by name", any("flash" in name for name in names), str(names))
    (kernel, *_) = kernels(theirs["summary"]).values()
    checks.check("its path is known", kernel["path"] == "HMMA", f"{kernel['path']}, {kernel['path_source']}")
    checks.check("its occupancy is computed", kernel.get("computed_occupancy", 0) > 0)
    for region in (ours, theirs):
        correlations = {row[5] for row in region["host"]["rows"] if row[0] == "launch"}
        matched = all(row[5] in correlations for row in region["device"]["rows"])
        checks.check(f"{region['name']}: each kernel has its launch", matched)


def check_graph(checks):
    """A kernel's time in a CUDA graph of many, where launches hardly leave gaps, against CUPTI's."""
    try:
        import torch
    except ImportError:
        print("skipped: a CUDA graph, as there is no torch")
        return
    import attnc

    # Long enough that the graph's own gaps of about 1 us are far below the tolerance.
    q, k, v = (torch.randn(8, 16, 4096, 64, device="cuda", dtype=torch.bfloat16) for _ in "qkv")
    out = torch.empty_like(q)

    def call():
        attnc.attention(q, k, v, is_causal=True, out=out)

    call()
    graph, launches, times = torch.cuda.CUDAGraph(), 20, []
    with torch.cuda.graph(graph):
        for _ in range(launches):
            call()

    def replay():
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(1000 * start.elapsed_time(end) / launches)

    # The same kernels by both: another run's clock would be another.
    (region,) = attnc.profile({"ours": replay}, repeat=50).data["regions"]
    (kernel,) = kernels(region["summary"]).values()
    ratio = kernel["median_us"] / statistics.median(times)
    checks.check("time against a CUDA graph", abs(ratio - 1) <= TIME_TOLERANCE, f"{kernel['median_us']:.1f} us, {ratio:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attn-run", required=True)
    parser.add_argument("--target", required=True, choices=PATHS)
    parser.add_argument("--json", help="where to write the checks")
    args = parser.parse_args()
    find_cupti()
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        status, profile, report = run(args, folder, "cupti")
        _, without, plain = run(args, folder, "events", ATTNC_CUPTI=os.path.join(folder, "none.so"))
        check_counters(checks, args, folder)
    checks.check("the guesses are right", status == 0)
    sources = {region["source"] for region in profile["regions"]}
    checks.check("CUPTI is found and allowed", sources == {"cupti"}, f"{sources} {profile['regions'][0]['notes']}")
    sources = {region["source"] for region in without["regions"]}
    checks.check("events serve without CUPTI", sources == {"events"}, f"{sources}")
    checks.check("and a note says so", all("CUPTI was not found" in " ".join(r["notes"]) for r in without["regions"]))
    check_environment(checks, profile["environment"], args.target)
    gaps = kernel_gaps(profile, report)
    gap = check_gap(checks, gaps)
    for region, variant in zip(profile["regions"], report["variants"]):
        check_region(checks, region, variant, gaps, gap)
    check_story(checks, profile, args.target)
    for with_cupti, events in zip(report["variants"], plain["variants"]):
        ratio = with_cupti["median_us"] / events["median_us"]
        checks.check(f"{events['variant']}: overhead on its time", ratio - 1 <= OVERHEAD_TOLERANCE, f"{ratio:.3f}")
    check_foreign(checks)
    check_graph(checks)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"target": args.target, "checks": checks.lines, "environment": profile["environment"]}, file, indent=1)
    print(f"{len(checks.lines) - checks.failed} right, {checks.failed} wrong")
    return checks.failed > 0


if __name__ == "__main__":
    sys.exit(main())
