"""Measures the suites about score and mask rules, and decoding. Each yields a row, a dict, at a time."""

import dataclasses
import math
import re
import types

import flex
import peers
import torch
import torch.nn.functional as F
from compiler import Refused, transposed_otherwise
from first_call import first_call
from manifest import launched_kernel
from operators import in_16_bits, without_mods
from suites import Checker, compare, ours, rotating_inputs
from timing import Rotating, graphed, interleaved
from torch.nn.attention import SDPBackend, sdpa_kernel


class Setup:
    """A problem's tensors, and our program on them."""

    def __init__(self, problem, compiler, schedule=None):
        self.problem, self.text = problem, problem.source(schedule)
        self.inputs = rotating_inputs(problem)
        self.captures = flex.make_captures(problem, peers.DTYPES[problem.dtype], "cuda")
        self.compiler = compiler
        program = compiler.load(self.text)
        # As FlexAttention's block mask, a pre-pass over captures is made once.
        self.run = self._bind(program, captures_unchanged=True)
        self.run_with_prepass = self._bind(program) if program.has_prepass() else None

    def _bind(self, program, captures_unchanged=False):
        return ours(program, self.problem, self.inputs, self.captures, captures_unchanged)

    def first_call(self):
        """(seconds of compiling, seconds of the first launch)"""
        tensors = dict(zip("qkv", self.inputs.sets[0]), **self.captures)
        return first_call(self.text, self.compiler.target, tensors)


def each(measure, problems, *context):
    """The rows of each problem. One that fails becomes a row with the reason."""
    for problem in problems:
        try:
            yield from measure(problem, *context)
        except (Refused, RuntimeError) as reason:
            torch.cuda.synchronize()  # ends the run if the GPU's context is lost
            text = (str(reason).splitlines() or [type(reason).__name__])[0]
            yield {**dataclasses.asdict(problem), "refused": text}


def mods_suite(*arguments):
    """Beside compiled FlexAttention, with a block mask where there is a mask."""
    return each(_measure_mods, *arguments)


def _measure_mods(problem, compiler, gauge, schedule):
    setup = Setup(problem, compiler, schedule)
    checker = flex.Checker(problem, setup.captures, setup.inputs)
    peer = flex.Flex(problem, setup.captures, setup.inputs)
    errors = checker.error(setup.run), checker.error(peer.run)
    compiling, launching = setup.first_call()
    runs = {"peer": peer.run, "ours": setup.run}
    if setup.run_with_prepass:
        runs["with prepass"] = setup.run_with_prepass
    times = interleaved(runs, gauge)
    with_prepass = times.get("with prepass", times["ours"])
    yield {
        **dataclasses.asdict(problem),
        "peer": "FlexAttention, compiled",
        "ratio": times["peer"].median / times["ours"].median,
        "ours_ms": times["ours"].median,
        "ours_with_prepass_ms": with_prepass.median,
        "peer_ms": times["peer"].median,
        "ours_spread": times["ours"].spread,
        "peer_spread": times["peer"].spread,
        "error": errors[0],
        "peer_error": errors[1],
        "ours_first_call_s": compiling + launching,
        "ours_compile_s": compiling,
        "peer_first_call_s": peer.first_call_seconds,
        "peer_block_mask_s": peer.block_mask_seconds,
        **gauge.take(),
    }


def _against_none(problem, compiler, gauge, schedule):
    """(setup, error, times) of a program with rules beside one without, on the same tensors."""
    setup = Setup(problem, compiler, schedule)
    error = flex.Checker(problem, setup.captures, setup.inputs).error(setup.run)
    plain = without_mods(problem)
    base = ours(compiler.load(plain.source(schedule)), plain, setup.inputs)
    return setup, error, interleaved({"none": base, "ours": setup.run}, gauge)


def tile_of(compiler, problem, schedule):
    """(block_m, block_n) of the kernel that a problem runs."""
    kernel = launched_kernel(compiler.manifest(problem.source(schedule)), problem.shapes)
    return tuple(int(re.search(rf"{n} = (\d+)", kernel["schedule"])[1]) for n in ("block_m", "block_n"))


def skip_suite(*arguments):
    """What a mask that hides a part of the tiles takes, of the time without a mask."""
    return each(_measure_skip, *arguments)


def _measure_skip(problem, compiler, gauge, schedule):
    setup, error, times = _against_none(problem, compiler, gauge, schedule)
    tile = tile_of(compiler, problem, schedule)
    hidden = flex.hidden_fraction(problem, setup.captures, tile, "cuda")
    part = times["ours"].median / times["none"].median
    yield {
        **dataclasses.asdict(problem),
        "tile": tile,
        "hidden": hidden,
        "time_part": part,
        "over_visible": part / (1 - hidden),
        "ours_ms": times["ours"].median,
        "none_ms": times["none"].median,
        "spread": times["ours"].spread,
        "error": error,
        **gauge.take(),
    }


def scoremods_suite(*arguments):
    """What a trivial score_mod costs."""
    return each(_measure_scoremods, *arguments)


def _measure_scoremods(problem, compiler, gauge, schedule):
    _, error, times = _against_none(problem, compiler, gauge, schedule)
    yield {
        **dataclasses.asdict(problem),
        "overhead": times["ours"].median / times["none"].median - 1,
        "ours_ms": times["ours"].median,
        "none_ms": times["none"].median,
        "spread": times["ours"].spread,
        "error": error,
        **gauge.take(),
    }


def fp8_suite(*arguments):
    """8-bit q, k and v, a scale each, beside our own kernel of the output's dtype."""
    return each(_measure_fp8, *arguments)


def _quantized(tensor):
    """In e4m3, and the scale that makes use of its range."""
    scale = tensor.abs().amax().float() / 448
    return (tensor / scale).to(torch.float8_e4m3fn), scale.view(1)


def _quantized_inputs(problem):
    def make():
        normal = [torch.randn(problem.shapes[n], device="cuda") for n in "qkv"]
        return list(map(_quantized, normal))

    return Rotating(make, problem.bytes // 2)


def _fp8_run(program, problem, inputs):
    out = torch.full(problem.shapes["o"], math.nan, device="cuda", dtype=peers.DTYPES[problem.dtype])

    def run():
        (q, q_scale), (k, k_scale), (v, v_scale) = inputs()
        program(q=q, k=k, v=v, q_scale=q_scale, k_scale=k_scale, v_scale=v_scale, o=out)
        return out

    return run


def _measure_fp8(problem, compiler, gauge, schedule):
    inputs = _quantized_inputs(problem)
    run = _fp8_run(compiler.load(problem.source(schedule)), problem, inputs)
    exact = [values.float() * scale for values, scale in inputs.sets[0]]
    checker = Checker(problem, types.SimpleNamespace(sets=[exact], rewind=inputs.rewind))
    error = checker.error(run)
    plain = in_16_bits(problem)
    plain_inputs = rotating_inputs(plain)
    base = ours(compiler.load(plain.source()), plain, plain_inputs)
    yield {
        **dataclasses.asdict(problem),
        "error": error,
        "peer_error": Checker(plain, plain_inputs).error(base),
        **compare(problem, run, peers.Peer(f"attnc, {problem.dtype}", base), gauge),
    }
    if schedule:
        return
    way, other_schedule = transposed_otherwise(compiler, problem)
    other = _fp8_run(compiler.load(problem.source(other_schedule)), problem, inputs)
    yield {
        **dataclasses.asdict(problem),
        "error": error,
        "peer_error": checker.error(other),
        **compare(problem, run, peers.Peer(f"attnc, v_transpose = {way}", other), gauge),
    }


def _sdpa(backend, inputs):
    def run():
        q, k, v = inputs()
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, enable_gqa=q.shape[1] != k.shape[1])

    return run


def _packed(backend, problem, inputs):
    """The query heads of a K/V head as so many queries: the same sums."""
    shape = (problem.batch, problem.kv_heads, -1, problem.dim)

    def run():
        q, k, v = inputs()
        with sdpa_kernel(backend):
            o = F.scaled_dot_product_attention(q.reshape(shape), k, v)
        return o.reshape(q.shape)

    return run


def decode_runs(problem, setup):
    """{name: callable}, of those that torch doesn't refuse."""
    runs = {"ours": setup.run}
    for name, backend in (
        ("cuDNN", SDPBackend.CUDNN_ATTENTION),
        ("FlashAttention-2", SDPBackend.FLASH_ATTENTION),
    ):
        attempts = {
            f"{name}, enable_gqa": _sdpa(backend, setup.inputs),
            f"{name}, heads as queries": _packed(backend, problem, setup.inputs),
        }
        for form, run in attempts.items():
            try:
                run()
                runs[form] = run
            except RuntimeError as reason:
                print(f"{form}: {str(reason).splitlines()[0]}", flush=True)
    return runs


def decode_suite(*arguments):
    """Bandwidth of one query on a long cache. K and V rotate past the L2; launches come
    from a CUDA graph, so that nobody's host time counts."""
    return each(_measure_decode, *arguments)


def _measure_decode(problem, compiler, gauge, schedule):
    setup = Setup(problem, compiler, schedule)
    checker = flex.Checker(problem, setup.captures, setup.inputs)
    runs = decode_runs(problem, setup)
    errors = {name: checker.error(run) for name, run in runs.items()}
    calls = 4 * len(setup.inputs.sets)
    graphs = {name: graphed(run, calls) for name, run in runs.items()}
    kv_bytes = 2 * 2 * problem.batch * problem.kv_heads * problem.length * problem.dim
    times = interleaved(graphs, gauge)
    readings = gauge.take()
    for name, timing in times.items():
        milliseconds = timing.median / calls
        yield {
            **dataclasses.asdict(problem),
            "kernel": name,
            "kernel_us": 1e3 * milliseconds,
            "gb_per_s": kv_bytes / milliseconds / 1e6,
            "ratio": timing.median / times["ours"].median,
            "spread": timing.spread,
            "error": errors[name],
            **readings,
        }
