#!/usr/bin/env python3
"""Runs attention through attn-run and compares with float64.

    python3 test/Integration/run.py --attn-run build/bin/attn-run [--target cpu|sm_80|sm_90a]
        [--filter TEXT] [--jobs N] [--xunit FILE] [--json FILE]

One test is a case (cases.py) in one variant. Needs numpy and the tool only.

Each job is an attn-run that gets one test after the other. --filter and
--variants take a part.
"""

import argparse
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
import zlib

# One thread for each job.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Nothing of one run is found by the next.
os.environ.setdefault("ATTNC_CACHE_DIR", "off")
import numpy as np  # noqa: E402

import cases  # noqa: E402
import oracle  # noqa: E402
import quantized  # noqa: E402
import rules  # noqa: E402

# Greatest relative error (Frobenius), about 1.5 times what was seen. A 16-bit output alone rounds by about
# 2^-9 / sqrt(3) (bf16) or 2^-12 / sqrt(3) (f16); fused rounds P as well. The unfused
# 16-bit variants also round the scores, an absolute error of exp's argument. With 8-bit inputs P has 3 bits
# behind the point: 2^-3 / sqrt(12) next to values of 1 to 2, or 2.5e-2.
TOLERANCE = {
    "fused": {"bf16": 3.5e-3, "f16": 4.5e-4, "f32": 3e-6, "f8E4M3FN": 4e-2, "f8E5M2": 4e-2},
    "math": {"bf16": 2.5e-3, "f16": 3.5e-4, "f32": 3e-6},
    "naive": {"bf16": 1e-2, "f16": 1.2e-3, "f32": 3e-6},
    "inplace": {"bf16": 1e-2, "f16": 1.2e-3, "f32": 3e-6},
}
# These add a large number to the scores, which the unfused variants keep in 16 bits:
# the spacing of bf16 at the number is the error of exp's argument.
COARSE_SCORES = {"relative", "alibi", "alibi_symmetric", "alibi_ends", "alibi_slopes", "minus_120", "minus_490"}


class Mismatch(Exception):
    pass


class Worker:
    """An attn-run that runs one command line after the other."""

    def __init__(self, attn_run):
        self.attn_run, self.process = attn_run, None

    def run(self, arguments, timeout=300):
        """Raises Mismatch with what attn-run says unless it succeeds."""
        if not self.process:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            self.process = subprocess.Popen([self.attn_run, "--commands"], text=True, **pipes)
        # A process that hangs ends its output.
        timer = threading.Timer(timeout, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(shlex.join(arguments) + "\n")
            self.process.stdin.flush()
            said, status = self._read()
        except BrokenPipeError:
            said, status = "", "before it was asked"
        finally:
            timer.cancel()
        if status != 0:
            # What a kernel did to the GPU's context may concern the next test.
            self.close()
            raise Mismatch(f"exit {status}: {said.strip()[-2000:]}")

    def _read(self):
        """What a command says, and its exit status."""
        lines = []
        for line in self.process.stdout:
            if line.startswith("attn-run: exit status "):
                return "".join(lines), int(line.split()[-1])
            lines.append(line)
        return "".join(lines), f"of the process: {self.process.wait()}"

    def close(self):
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None


def compare(name, actual, expected, tolerance):
    if actual.shape != expected.shape:
        raise Mismatch(f"{name} has shape {actual.shape}, not {expected.shape}")
    if actual.size == 0:
        return 0.0
    finite = np.isfinite(expected)
    if not np.array_equal(actual[~finite], expected[~finite], equal_nan=True):
        raise Mismatch(f"{name} is finite where the reference isn't")
    if not np.isfinite(actual[finite]).all():
        where = np.argwhere(finite & ~np.isfinite(actual))[0]
        raise Mismatch(f"{name}{where.tolist()} isn't finite")
    difference = np.where(finite, actual.astype(np.float64) - np.where(finite, expected, 0), 0)
    norm = np.linalg.norm(expected[finite])
    error = np.linalg.norm(difference) / norm if norm else np.linalg.norm(difference)
    if error > tolerance:
        worst = np.unravel_index(np.argmax(abs(difference)), actual.shape)
        raise Mismatch(
            f"{name}: error {error:.2e} > {tolerance:.0e}; worst at {list(map(int, worst))}: "
            f"{actual[worst]} instead of {expected[worst]}"
        )
    return error


def make_inputs(case):
    batch, heads, kv_heads, nq, nk = case.shape
    random = np.random.default_rng(zlib.crc32(case.name.encode()))
    q = random.standard_normal((batch, heads, nq, case.dim))
    k = random.standard_normal((batch, kv_heads, nk, case.dim))
    v = random.standard_normal((batch, kv_heads, nk, case.v_dim))
    if case.edit:
        case.edit(q, k, v)
    return q, k, v


def get_tolerance(case, variant):
    if case.score in COARSE_SCORES:
        # In f32 the scores are coarse in every variant: 3e-5 at 490.
        if case.dtype == "f32":
            return 1e-5
        if variant in ("naive", "inplace"):
            return {"bf16": 0.5, "f16": 0.02}[case.dtype]
    return TOLERANCE[variant][case.dtype]


def check_kernels(report, case, variant):
    """What ran is what the variant's name says."""
    with open(report) as file:
        steps = json.load(file)["variants"][0]["kernels"]
    kernels = [step["name"] for step in steps if step["kind"] == "kernel"]
    copies = sum(step["calls"] for step in steps if step["kind"] == "copy")
    # inplace is naive without the copy that a masked fill out of place costs.
    prefix = "naive_" if variant == "inplace" else variant + "_"
    if not all(name.startswith(prefix) for name in kernels):
        raise Mismatch(f"{variant} ran {', '.join(kernels)}")
    # Those that list the tiles of a mask come before the attention, and one that transposes a v of
    # 8 bits; a merge of parts comes behind it.
    others = ("_extremes", "_classes", "_tiles", "_transpose_v_", "_merge")
    attention = [name for name in kernels if not any(part in name for part in others)]
    if (len(attention) == 1) != (variant == "fused"):
        raise Mismatch(f"{variant} ran {len(kernels)} kernels: {', '.join(kernels)}")
    if copies != (1 if variant == "naive" and case.mask else 0):
        raise Mismatch(f"{variant} ran {copies} copies")


def is_served(case, variant, target):
    """sm_90a has kernels of its own for fused attention; the unfused ones that run there are sm_80's."""
    if case.quantized and target != "sm_90a":
        return False
    return target != "sm_90a" or variant == "fused"


def run_test(args, worker, case, variant):
    """The error; raises Mismatch."""
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)  # noqa: E731
        with open(path("attention.mlir"), "w") as file:
            file.write(case.source())
        arrays, lengths = make_inputs(case), {}
        if case.sequences:
            random = np.random.default_rng(zlib.crc32(case.name.encode()))
            parts = case.sequences.split(*(oracle.rounded(x, case.dtype) for x in arrays))
            arrays, lengths = case.sequences.lay_out(random, parts)
        inputs = [
            oracle.save(path(name + ".npy"), x, dtype, case.fortran)
            for name, x, dtype in zip("qkv", arrays, case.input_dtypes())
        ]
        files = list("qkv")
        rule_captures, capture_dims = [], {}
        for rule in (rules.SCORES.get(case.score), rules.MASKS.get(case.mask)):
            random = np.random.default_rng(zlib.crc32(case.name.encode()))
            rule_captures.append({})
            for name, capture in rules.get_captures(rule).items():
                values = capture.values(random, case.shape)
                rule_captures[-1][name] = oracle.save(path(name + ".npy"), values, capture.dtype)
                capture_dims[name] = capture.dims
                files.append(name)
        sink = None
        if case.sink:
            values = np.resize(case.sink, case.shape[1])
            sink = oracle.save(path("sink.npy"), values, case.sink_dtype)
            files.append("sink")
        for name in case.sequences.operands() if case.sequences else ():
            oracle.save(path(name + ".npy"), lengths[name], "i32")
            files.append(name)
        if case.quantized:
            random = np.random.default_rng(zlib.crc32(case.name.encode()))
            scales = case.quantized.values(random, *case.shape[:3])
            for name, values in scales.items():
                oracle.save(path(name + ".npy"), values, "f32")
                files.append(name)
            inputs = [quantized.apply(x, scales.get(name + "_scale")) for name, x in zip("qkv", inputs)]
        outputs = ["o.npy"] + (["lse.npy"] if case.lse else [])
        command = [path("attention.mlir"), f"--variant={variant}", f"--target={args.target}"]
        command += ["--inputs=" + ",".join(path(n + ".npy") for n in files), "--repeat=0"]
        command += ["--outputs=" + ",".join(map(path, outputs)), "--json=" + path("report.json")]
        worker.run(command)
        if 0 not in (case.shape[0], case.shape[3]):  # else nothing needs to run
            check_kernels(path("report.json"), case, variant)
        o, *lse = (oracle.load(path(name)) for name in outputs)
    how = (
        case.scale,
        case.score and rules.SCORES[case.score][1],
        case.mask and rules.MASKS[case.mask][1],
    )
    if case.sequences:
        results = []
        for number, part in enumerate(parts):
            # As sequence `number` of a batch of equal ones, for rules that ask for it.
            batch = [np.repeat(x, len(parts), axis=0) for x in part] if case.score or case.mask else part
            own = [case.sequences.split_captures(number, captures, capture_dims) for captures in rule_captures]
            outputs = oracle.attention(*batch, *how, *own, sink)
            results.append([x[min(number, len(x) - 1)][None] for x in outputs])
        expected_o, expected_lse = map(case.sequences.join, zip(*results))
        o, *lse = (x[:, :, : expected_o.shape[2]] for x in (o, *lse))
    else:
        expected_o, expected_lse = oracle.attention(*inputs, *how, *rule_captures, sink)
    error = compare("o", o, expected_o, get_tolerance(case, variant))
    empty = np.isneginf(expected_lse)
    if np.any(o[empty]):
        raise Mismatch("o isn't 0 in a row that sees no key")
    if lse:
        tolerance = {"bf16": 2e-2, "f16": 2e-3, "f32": 1e-5}.get(case.dtype)
        if case.quantized:
            # Hopper adds up products of 8 bits with 13 bits or so.
            tolerance = 2e-3
        elif variant in ("fused", "math"):
            tolerance = 1e-5
        compare("lse", lse[0], expected_lse, tolerance)
    return error


def choose_tests(args):
    """(name, case, variant)"""
    return [
        (f"{variant}/{case.name}", case, variant)
        for case in cases.all_cases()
        for variant in case.variants
        if variant in args.variants
        and is_served(case, variant, args.target)
        and args.filter in f"{variant}/{case.name}"
    ]


def start_job(args):
    """In a process of its own: the oracle takes as long as the kernels."""
    global run_chosen_here
    worker, tests = Worker(args.attn_run), choose_tests(args)
    run_chosen_here = lambda n: run_test(args, worker, *tests[n][1:])  # noqa: E731


def run_chosen(n):
    return run_chosen_here(n)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attn-run", required=True)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--variants", nargs="+", default=list(cases.VARIANTS))
    parser.add_argument("--filter", default="", help="only tests whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--xunit", help="report for CI")
    parser.add_argument("--json", help="report of the errors")
    args = parser.parse_args()
    args.attn_run = os.path.abspath(args.attn_run)

    tests = choose_tests(args)
    report = ElementTree.Element("testsuite", name=f"Integration-{args.target}")
    results, failed, last = [], 0, time.time()
    with concurrent.futures.ProcessPoolExecutor(args.jobs, initializer=start_job, initargs=(args,)) as pool:
        running = [(name, pool.submit(run_chosen, n)) for n, (name, _, _) in enumerate(tests)]
        for done, (name, future) in enumerate(running, 1):
            element = ElementTree.SubElement(report, "testcase", name=name, classname=args.target)
            result = {"name": name, "target": args.target, "error": None, "message": ""}
            try:
                result["error"] = float(future.result())
            except Mismatch as failure:
                failed += 1
                result["message"] = str(failure)
                ElementTree.SubElement(element, "failure", message=str(failure))
                print(f"FAIL {name}: {failure}", file=sys.stderr, flush=True)
            results.append(result)
            if time.time() - last > 20:
                last = time.time()
                print(f"  {done}/{len(tests)}", flush=True)
    if args.xunit:
        ElementTree.ElementTree(report).write(args.xunit)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)
    print(f"{args.target}: {len(tests) - failed} of {len(tests)} right")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
