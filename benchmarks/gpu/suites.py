"""Measures the suites of attention.py. Each yields a row, a dict, at a time."""

import dataclasses
import math

import peers
import torch
from attnc_program import reference
from compiler import Refused, ablations, format_schedule, table_schedule
from operators import VARIANTS, VARIANTS_PROBLEM
from timing import Rotating, interleaved
from torch.nn.attention import SDPBackend


def rotating_inputs(problem):
    dtype = peers.DTYPES[problem.dtype]

    def make():
        return [torch.randn(problem.shapes[n], device="cuda", dtype=dtype) for n in "qkv"]

    return Rotating(make, problem.bytes)


def ours(program, problem, inputs, captures=None, captures_unchanged=False):
    """The program as a callable that returns the output."""
    captures = captures or {}
    dtype = peers.DTYPES[problem.dtype]
    out = torch.full(problem.shapes["o"], math.nan, device="cuda", dtype=dtype)

    def run():
        q, k, v = inputs()
        program(captures_unchanged=captures_unchanged, q=q, k=k, v=v, o=out, **captures)
        return out

    return run


class Checker:
    """Relative Frobenius errors against float64, in the last rows of every head."""

    def __init__(self, problem, inputs, rows=256):
        self.inputs, self.rows = inputs, min(rows, problem.length)
        q, k, v = inputs.sets[0]
        q = q[:, :, -self.rows :]
        self.expected, _ = reference(q, k, v, problem.mask, problem.window)

    def error(self, run):
        self.inputs.rewind()
        actual = run()[:, :, -self.rows :].double()
        return ((actual - self.expected).norm() / self.expected.norm()).item()


def compare(problem, run, peer, gauge):
    """Ours and a peer's, the two alone."""
    times = interleaved({"peer": peer.run, "ours": run}, gauge)
    return {
        "peer": peer.name,
        "ratio": times["peer"].median / times["ours"].median,
        "ours_tflops": problem.flops / times["ours"].median / 1e9,
        "peer_tflops": problem.flops / times["peer"].median / 1e9,
        "ours_spread": times["ours"].spread,
        "peer_spread": times["peer"].spread,
        **gauge.take(),
    }


def flash(problem, inputs):
    run = peers.sdpa(SDPBackend.FLASH_ATTENTION, inputs, problem.mask == "causal")
    return peers.Peer("FlashAttention-2", run)


def cudnn_causal(problem, inputs):
    """The scale of a window: cuDNN on the whole triangle, in the window's FLOPs."""
    run = peers.sdpa(SDPBackend.CUDNN_ATTENTION, inputs, True)
    return peers.Peer("cuDNN causal, no window", run)


def compare_with(makers, problem, compiler, gauge, schedule):
    """A row for each peer that `makers` make."""
    inputs = rotating_inputs(problem)
    checker = Checker(problem, inputs)
    run = ours(compiler.load(problem.source(schedule)), problem, inputs)
    error = checker.error(run)
    for make_peer in makers:
        peer = make_peer(problem, inputs)
        # Without the window it is another function.
        peer_error = None if make_peer is cudnn_causal else checker.error(peer.run)
        yield {
            **dataclasses.asdict(problem),
            "error": error,
            "peer_error": peer_error,
            **compare(problem, run, peer, gauge),
        }


def fused_suite(problems, compiler, gauge, schedule):
    for problem in problems:
        yield from compare_with((flash, peers.cudnn), problem, compiler, gauge, schedule)


def hopper_suite(groups, compiler, gauge, schedule):
    for group, problems in groups.items():
        makers = (peers.cudnn, cudnn_causal) if group == "window" else (peers.cudnn,)
        for problem in problems:
            for row in compare_with(makers, problem, compiler, gauge, schedule):
                yield {"group": group, **row}


def ablation_suite(problems, compiler, gauge):
    for problem in problems:
        yield from ablate(problem, compiler, gauge)


def ablate(problem, compiler, gauge):
    """The table's schedule, then every change of it beside the former alone."""
    inputs = rotating_inputs(problem)
    checker = Checker(problem, inputs)
    row = table_schedule(compiler, problem)
    about = {**dataclasses.asdict(problem), "schedule": format_schedule(row)}
    program = compiler.load(problem.source(about["schedule"]))
    base = peers.Peer("table", ours(program, problem, inputs))
    yield {**about, "change": None, "error": checker.error(base.run)}
    for change, schedule in ablations(row).items():
        about["change"] = change
        source = problem.source(format_schedule(schedule))
        try:
            run = ours(compiler.load(source), problem, inputs)
        except Refused as reason:
            yield {**about, "refused": str(reason)}
            continue
        yield {
            **about,
            "spilled_bytes": compiler.spilled_bytes(source),
            "error": checker.error(run),
            **compare(problem, run, base, gauge),
        }


# The torch sequence that each variant is to be as exact as.
COUNTERPARTS = dict(zip(VARIANTS, ("torch naive", "torch naive", "torch math", "torch flash")))


def variant_runs(compiler, problem, inputs):
    """{name: callable that returns the output}."""
    mask = torch.ones(problem.length, problem.length, dtype=torch.bool, device="cuda").triu(1)
    runs = {
        "torch naive": peers.torch_naive(inputs, mask),
        "torch math": peers.sdpa(SDPBackend.MATH, inputs, True),
        "torch flash": peers.sdpa(SDPBackend.FLASH_ATTENTION, inputs, True),
    }
    for variant in VARIANTS:
        runs[variant] = ours(compiler.load(problem.source(), variant), problem, inputs)
    return runs


def variants_suite(compiler):
    problem = VARIANTS_PROBLEM
    inputs = rotating_inputs(problem)
    runs = variant_runs(compiler, problem, inputs)
    checker = Checker(problem, inputs, rows=problem.length)
    errors = {name: checker.error(run) for name, run in runs.items()}
    for name, timing in interleaved(runs).items():
        row = {
            "variant": name,
            "median_us": 1e3 * timing.median,
            "min_us": 1e3 * timing.least,
            "spread": timing.spread,
            "error": errors[name],
        }
        if name in COUNTERPARTS:
            row["error_ratio"] = errors[name] / errors[COUNTERPARTS[name]]
        yield row
