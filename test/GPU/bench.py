#!/usr/bin/env python3
"""Compares attn-bench on a GPU with attn-run, and with itself.

    python3 test/GPU/bench.py --attn-run build/bin/attn-run --target sm_90a [--json FILE]

attn-bench is the one beside attn-run. Each check is one line; a wrong one fails the run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from checks import Checks

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
# The operator of examples/causal.mlir.
SHAPE = "8x16x1024x64"
# attn-run times one variant after the other, when the card is as cool as it happens to be, with events between forwards.
TOLERANCE = 0.08
# Between two runs of attn-bench, in turns and hot.
REPEAT_TOLERANCE_PERCENT = 3
# Four cases of some seconds.
GRID = ["--shapes=8x16x1024x64,2x32:8x2048x128", "--mods=none,causal"]


def run(command, allowed=(0,)):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, flush=True)
    if done.returncode not in allowed:
        sys.exit(f"{' '.join(command)}: status {done.returncode}")
    return done


def load(path):
    with open(path) as file:
        return json.load(file)


def check_against_run(checks, bench, report):
    """Medians of the same operator."""
    (case,) = [case for case in bench["cases"] if (case["shape"], case["dtype"], case["mod"]) == (SHAPE, "bf16", "causal")]
    expected = {variant["variant"]: variant["median_us"] for variant in report["variants"]}
    ours = [result for result in case["results"] if result["backend"] in expected]
    for result in ours:
        ratio = result["median_us"] / expected[result["backend"]]
        detail = f"{result['median_us']:.1f} us, {ratio:.3f} of attn-run's"
        checks.check(f"{result['backend']}: time against attn-run", abs(ratio - 1) <= TOLERANCE, detail)
    times = {result["backend"]: result["median_us"] for result in ours}
    checks.check("fused is the fastest", min(times, key=times.get) == "fused", str(times))


def check_grid(checks, bench):
    for case in bench["cases"]:
        name = f"{case['shape']} {case['dtype']} {case['mod']}"
        refused = {result["backend"]: result["refusal"] for result in case["results"] if result["refusal"]}
        if "cudnn" in refused:
            print(f"skipped: {name}, cudnn: {refused.pop('cudnn')}")
        checks.check(f"{name}: all ran", not refused, str(refused or ""))
        for result in case["results"]:
            if "median_us" not in result:
                continue
            spread = (result["p90_us"] - result["p10_us"]) / result["median_us"]
            checks.check(f"{name}, {result['backend']}: spread", spread < 0.1, f"{100 * spread:.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attn-run", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--json", help="where to write the checks and the benchmark")
    args = parser.parse_args()
    attn_bench = os.path.join(os.path.dirname(args.attn_run), "attn-bench")
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        first, second, report = (os.path.join(folder, name) for name in ("a.json", "b.json", "report.json"))
        for path in (first, second):
            run([attn_bench, *GRID, "--target=" + args.target, "--baseline=inplace", "--json=" + path])
        command = [args.attn_run, os.path.join(ROOT, "examples/causal.mlir"), "--variant=all", "--target=" + args.target]
        run(command + ["--repeat=50", "--shapes=" + ",".join([SHAPE] * 3), "--json=" + report])
        bench = load(first)
        check_grid(checks, bench)
        check_against_run(checks, bench, load(report))
        done = run([attn_bench, "--diff", f"--tolerance={REPEAT_TOLERANCE_PERCENT}", first, second], allowed=(0, 3))
        # cuDNN's times may differ from process to process.
        changes = [line for line in done.stdout.splitlines() if line.endswith(("SLOWER", "faster")) and "cudnn" not in line]
        checks.check("nothing of ours changes between two runs", not changes and "unchanged" in done.stdout)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"target": args.target, "checks": checks.lines, "bench": bench}, file, indent=1)
    print(f"{len(checks.lines) - checks.failed} right, {checks.failed} wrong")
    return checks.failed > 0


if __name__ == "__main__":
    sys.exit(main())
