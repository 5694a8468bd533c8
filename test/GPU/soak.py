#!/usr/bin/env python3
"""Random operators on random shapes against float64, each launch under a watchdog.

    python3 test/GPU/soak.py --attn-compile build/bin/attn-compile --target sm_90a \\
        [--programs DIR [--compile-only]] [--count 2000] [--seconds 100] [--json FILE]

Outputs and everything around them are poisoned with NaNs, and a second launch
must write the same bits. A failure prints what reproduces it; a hang or a lost
GPU context ends the run with status 3. 0: all launches were right.

--self-test compares the rules' MLIR and Python on the CPU, by attn-run, and shows
that the judge finds planted errors; it needs torch, but no GPU.
"""

import argparse
import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import programs
import specs

try:
    import torch

    import harness
except ImportError:  # --compile-only works without
    torch = None

# Distances count from the first of up to 192 rows, which at a slope of 1 rounds scores of 192 to f32.
RULE_LSE_TOLERANCE = 3e-5


def parse_only(text):
    program, _, turn = text.partition(":")
    return int(program), int(turn) if turn else None


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attn-compile", default="attn-compile")
    parser.add_argument("--attn-run", default="attn-run", help="for --self-test")
    parser.add_argument("--target", default="sm_90a", choices=("sm_80", "sm_90a"))
    parser.add_argument("--programs", help="folder that keeps compiled programs")
    parser.add_argument("--compile-only", action="store_true", help="fill --programs and stop")
    parser.add_argument("--operators", type=int, default=150, help="programs to compile")
    parser.add_argument("--count", type=int, default=2000, help="launches to check")
    parser.add_argument("--seconds", type=float, default=100, help="time limit; a run cut short fails")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=parse_only, metavar="PROGRAM[:TURN]", help="reproduces a failure")
    parser.add_argument("--json")
    parser.add_argument("--self-test", action="store_true")
    return parser.parse_args()


def family(rule):
    """A rule's name without its parameters."""
    return re.split(r"[ (]", rule.name.lstrip("("))[0]


class Report:
    """Counts and failures of the run."""

    def __init__(self, args):
        self.args, self.start = args, time.monotonic()
        self.launches, self.operators, self.failures = 0, set(), []
        self.counts = collections.Counter()
        self.worst = {}

    def fail(self, kind, program, turn, text):
        at = f"{program}" if turn is None else f"{program}:{turn}"
        again = f"--target {self.args.target} --seed {self.args.seed} --only {at}"
        self.failures.append({"kind": kind, "program": at, "text": text, "reproduce": again})
        print(f"FAIL {kind} [{again}] {text}", flush=True)

    def add(self, index, spec, error, lse_error):
        self.launches += 1
        self.operators.add(index)
        dim = spec.dim if spec.dim in (64, 96, 128, 192, 256) else "other"
        keys = (spec.dtype, f"D {dim}", f"mask {family(spec.mask)}", f"score {family(spec.score)}")
        for key in (*keys, f"schedule {'given' if spec.schedule else 'table'}"):
            self.counts[key] += 1
        for key, value in ((f"{spec.dtype} o", error), (f"{spec.dtype} lse", lse_error)):
            self.worst[key] = max(self.worst.get(key, 0.0), value)

    def close(self, expected):
        missing = max(0, expected - self.launches - sum(f["kind"] == "wrong" for f in self.failures))
        summary = {
            "target": self.args.target,
            "seed": self.args.seed,
            "launches": self.launches,
            "operators": len(self.operators),
            "missing": missing,
            "seconds": round(time.monotonic() - self.start, 1),
            "worst_errors": self.worst,
            "counts": dict(sorted(self.counts.items())),
            "failures": self.failures,
        }
        if self.args.json:
            with open(self.args.json, "w") as file:
                json.dump(summary, file, indent=1)
        print(", ".join(f"{key}: {count}" for key, count in sorted(self.counts.items())))
        print("worst errors: " + ", ".join(f"{key} {value:.1e}" for key, value in sorted(self.worst.items())))
        kinds = collections.Counter(failure["kind"] for failure in self.failures)
        print(
            f"soak: {self.launches} launches of {len(self.operators)} operators right in {summary['seconds']} s; "
            f"{kinds['refused']} operators refused, {kinds['wrong']} launches wrong, "
            f"{kinds['dead']} hung or crashed, {missing} not run"
        )
        return 0 if not self.failures and not missing else 1


def compile_specs(args, folder, report):
    """{index: (spec, files)} of those that compile."""
    indices = [args.only[0]] if args.only else range(args.operators)
    chosen = {index: specs.random_spec(args.target, args.seed, index) for index in indices}
    start = time.monotonic()
    compiled = {}
    for (index, spec), result in zip(chosen.items(), folder.compile_all(list(chosen.values()))):
        if isinstance(result, Exception):
            report.fail("refused", index, None, f"{result}; {spec}")
        else:
            compiled[index] = (spec, result)
    print(f"{len(compiled)} of {len(chosen)} operators compiled in {time.monotonic() - start:.1f} s")
    return compiled


def check_launch(runner, shape):
    """(error, lse error) of two launches with the same inputs."""
    spec = runner.spec
    q, k, v = (
        harness.Guarded.copy_of(x, layout).tensor
        for x, layout in zip(harness.make_inputs(spec, shape), shape.layouts)
    )
    outputs = runner.outputs(shape.batch, shape.nq, shape.layouts[3])
    results = []
    for _ in range(2):
        runner.launch((q, k, v), outputs)
        harness.wait()
        results.append({name: output.take() for name, output in outputs.items()})
    runner.forget()
    errors = judge(spec, (q, k, v), results[0])
    for name, first in results[0].items():
        if not harness.same_bits(first, results[1][name]):
            raise harness.Mismatch(f"{name} differs between two launches with the same inputs")
    return errors


def judge(spec, inputs, results):
    expected, expected_lse, envelope, weight_error = harness.attention(spec, *inputs)
    empty = expected_lse.isneginf()
    error = harness.check_output(spec.dtype, results["o"], expected, envelope, weight_error, empty)
    lse_error = 0.0
    if "lse" in results:
        tolerance = RULE_LSE_TOLERANCE if spec.score.function else harness.LSE_TOLERANCE
        lse_error = harness.check_lse(results["lse"][..., 0], expected_lse, weight_error, tolerance)
    return error, lse_error


def turns(args, compiled):
    """(index, turn): all operators once, then all again with other shapes."""
    if args.only and args.only[1] is not None:
        return [args.only]
    count = args.count if not args.only else max(1, args.count // args.operators)
    order = list(compiled)
    return [(order[n % len(order)], n // len(order)) for n in range(count)] if order else []


def soak(args, folder, report):
    compiled = compile_specs(args, folder, report)
    planned = turns(args, compiled)
    try:
        run(planned, compiled, args, report)
    except KeyboardInterrupt:
        print("soak: interrupted", flush=True)
    except harness.Dead:
        report.close(len(planned))
        harness.leave(3)
    return report.close(len(planned))


def run(planned, compiled, args, report):
    runners = {}
    for index, turn in planned:
        if time.monotonic() - report.start > args.seconds:
            break
        spec, files = compiled[index]
        shape = specs.random_shape(spec, args.seed, index, turn)
        what = f"{spec}; {shape} ({os.path.basename(files[1])})"
        try:
            if index not in runners:
                runners[index] = harness.Runner(spec, files)
            report.add(index, spec, *check_launch(runners[index], shape))
        except harness.Mismatch as mismatch:
            report.fail("wrong", index, turn, f"{mismatch}; {what}")
        except harness.Dead as dead:
            report.fail("dead", index, turn, f"{dead}; {what}")
            raise


# --- self-test --------------------------------------------------------------


def run_on_cpu(args, spec, inputs):
    """What attn-run makes of an operator on the CPU."""
    import numpy

    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Integration"))
    import oracle

    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)  # noqa: E731
        with open(path("attention.mlir"), "w") as file:
            file.write(spec.source())
        for name, x in zip("qkv", inputs):
            oracle.save(path(name + ".npy"), x.float().numpy(), spec.dtype)
        names = ["o"] + (["lse"] if spec.lse else [])
        command = [args.attn_run, path("attention.mlir"), "--target=cpu", "--repeat=0"]
        command.append("--inputs=" + ",".join(path(f"{n}.npy") for n in "qkv"))
        command.append("--outputs=" + ",".join(path(f"{n}.npy") for n in names))
        subprocess.run(command, check=True, capture_output=True)
        results = {n: torch.from_numpy(numpy.array(oracle.load(path(f"{n}.npy")))) for n in names}
    results["o"] = results["o"].to(harness.DTYPES[spec.dtype])
    if spec.lse:
        results["lse"] = results["lse"][..., None]
    return results


def plant_errors(spec, shape, inputs, results):
    """Those of a few errors that the judge doesn't object to."""

    def objects(edit):
        edited = {name: result.clone() for name, result in results.items()}
        edit(edited)
        try:
            judge(spec, inputs, edited)
        except harness.Mismatch:
            return True
        return False

    def one_element(r):
        r["o"].view(-1)[r["o"].numel() // 2] += 0.5 + 0.5 * r["o"].abs().max()

    def one_row_unwritten(r):
        r["o"][-1, -1, -1] = float("nan")

    def one_key_missing(r):
        q, k, v = inputs
        o, lse, _, _ = harness.attention(spec, q, k[:, :, :-1], v[:, :, :-1])
        r["o"] = o.to(r["o"].dtype)

    edits = [one_element, one_row_unwritten]
    # Where every key has some weight.
    is_plain = spec.mask.function is None and spec.score.function is None and spec.scale is None
    if is_plain and inputs[1].shape[2] in range(2, 100) and shape.inputs == "normal":
        edits.append(one_key_missing)
    return [edit.__name__ for edit in edits if not objects(edit)]


def self_test(args):
    import dataclasses

    failed = 0
    for index in range(args.operators):
        spec = dataclasses.replace(
            specs.random_spec(args.target, args.seed, index), target="cpu", schedule=None
        )
        shape = dataclasses.replace(
            specs.random_shape(spec, args.seed, index, 0), nq=1 + index * 37 % 150, nk=2 + index * 53 % 300
        )
        inputs = harness.make_inputs(spec, shape, device="cpu")
        results = run_on_cpu(args, spec, inputs)
        try:
            judge(spec, inputs, results)
            missed = plant_errors(spec, shape, inputs, results)
            problem = f"planted errors aren't found: {', '.join(missed)}" if missed else None
        except harness.Mismatch as mismatch:
            problem = str(mismatch)
        if problem:
            failed += 1
            print(f"FAIL {index}: {problem}; {spec}; {shape}", flush=True)
    print(f"self-test: {args.operators - failed} operators right, {failed} wrong")
    return 1 if failed else 0


def main():
    args = parse_arguments()
    if args.self_test:
        return self_test(args)
    if args.compile_only and not args.programs:
        sys.exit("--compile-only fills --programs: give that folder")
    report = Report(args)
    # A run that `timeout` ends still says what it has checked.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not args.compile_only:
        reason = harness.find_gpu(args.target) if torch else "torch isn't installed"
        if reason:
            print(f"soak: skipped: {reason}")
            return 0
    with programs.Programs(args.attn_compile, args.programs) as folder:
        if not args.compile_only:
            return soak(args, folder, report)
        compile_specs(args, folder, report)
        return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
