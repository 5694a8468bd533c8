#!/usr/bin/env python3
"""Runs the shipped schedules under compute-sanitizer's memcheck, racecheck and synccheck.

    python3 test/GPU/sanitize.py --attn-run build/bin/attn-run --target sm_90a [--json FILE]

Every combination of a tool, a head dimension, a mask and a ragged shape is one
process of attn-run. Whatever a tool reports fails the run and is shown, with
racecheck's warnings: TMA's and wgmma's accesses go through the async proxy, and
what a tool can't see there must be judged by a reader, not hidden here. A
process fails too if it launched no kernel or if the tool wrote no summary.
"""

import argparse
import concurrent.futures
import dataclasses
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import specs

TOOLS = {
    # Allocations get a distance, so that a write behind one can't hit another.
    "memcheck": ["--padding=256"],
    "racecheck": ["--racecheck-report=all"],
    "synccheck": [],
}
# Batch, queries, keys: ragged, more tiles than warpgroups, and rows without a key if causal.
SHAPES = ((2, 200, 333), (1, 333, 130))
SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard")
MAX_LINES = 12


@dataclasses.dataclass
class Run:
    tool: str
    dim: int
    mask: specs.Rule
    shape: tuple
    problem: str = ""
    output: str = ""
    kernels: tuple = ()
    seconds: float = 0.0

    def __str__(self):
        batch, nq, nk = self.shape
        return f"{self.tool} D{self.dim} mask {self.mask.name} B{batch} Nq {nq} Nk {nk}"


def find_sanitizer():
    places = (shutil.which("compute-sanitizer"), "/usr/local/cuda/bin/compute-sanitizer")
    return next((place for place in places if place and os.path.exists(place)), None)


def execute(args, sanitizer, run):
    """Fills in what came of it."""
    heads, kv_heads = 4, 2
    spec = specs.Spec(args.target, args.dtype, heads, kv_heads, run.dim, run.dim, mask=run.mask)
    batch, nq, nk = run.shape
    shapes = [(batch, heads, nq, run.dim), (batch, kv_heads, nk, run.dim), (batch, kv_heads, nk, run.dim)]
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        source, report = (os.path.join(folder, name) for name in ("attention.mlir", "report.json"))
        with open(source, "w") as file:
            file.write(spec.source())
        command = [sanitizer, f"--tool={run.tool}", *TOOLS[run.tool], "--print-limit=20"]
        command += [args.attn_run, source, f"--target={args.target}", "--repeat=0", f"--json={report}"]
        command.append("--shapes=" + ",".join("x".join(map(str, shape)) for shape in shapes))
        # A session of its own, to end attn-run with the tool that started it.
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            run.output, _ = process.communicate(timeout=args.timeout)
            run.problem = judge(process.returncode, report, run)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            run.output, _ = process.communicate()
            run.problem = f"not done after {args.timeout} s"
    run.seconds = time.monotonic() - start
    return run


def judge(status, report, run):
    """What is wrong; empty if nothing is."""
    summaries = SUMMARY.findall(run.output)
    if not summaries:
        return f"the tool wrote no summary (exit {status})"
    found = sum(int(count or 0) for summary in summaries for count in summary)
    if found:
        return f"{found} findings"
    if status:
        return f"exit {status}"
    with open(report) as file:
        steps = json.load(file)["variants"][0]["kernels"]
    run.kernels = tuple(step["name"] for step in steps if step["kind"] == "kernel")
    return "" if run.kernels else "no kernel was launched"


def show(run):
    state = f"FAIL {run.problem}" if run.problem else "clean: " + ", ".join(run.kernels)
    print(f"{run} ({run.seconds:.1f} s): {state}", flush=True)
    if run.problem:
        lines = [line for line in run.output.splitlines() if line.strip("= ")]
        # The first findings, and the summary.
        shown = lines if len(lines) <= MAX_LINES else lines[:MAX_LINES] + ["..."] + lines[-2:]
        print("".join(f"    {line}\n" for line in shown), end="", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attn-run", default="attn-run")
    parser.add_argument("--target", default="sm_90a", choices=("sm_80", "sm_90a"))
    parser.add_argument("--dtype", default="bf16", choices=("bf16", "f16"))
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=list(TOOLS))
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 128, 192, 256])
    parser.add_argument("--jobs", type=int, default=6, help="processes at a time")
    parser.add_argument("--timeout", type=float, default=45, help="seconds a process may take")
    parser.add_argument("--json")
    args = parser.parse_args()
    sanitizer = find_sanitizer()
    if not sanitizer or not shutil.which(args.attn_run):
        print(f"sanitize: skipped: {'no attn-run' if sanitizer else 'no compute-sanitizer'} on this machine")
        return 0
    combinations = itertools.product(args.tools, args.dims, (specs.NO_RULE, specs.CAUSAL), SHAPES)
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        started = [pool.submit(execute, args, sanitizer, Run(*c)) for c in combinations]
        runs = []
        for future in concurrent.futures.as_completed(started):
            runs.append(future.result())
            show(runs[-1])
    if args.json:
        with open(args.json, "w") as file:
            fields = ("tool", "dim", "shape", "problem", "kernels", "seconds")
            rows = [{"mask": run.mask.name, **{f: getattr(run, f) for f in fields}} for run in runs]
            json.dump({"target": args.target, "runs": rows}, file, indent=1)
    failed = sum(bool(run.problem) for run in runs)
    print(f"sanitize: {len(runs) - failed} runs clean, {failed} not, in {time.monotonic() - start:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
