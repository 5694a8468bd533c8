#!/usr/bin/env python3
"""How exact the shipped kernels are: beside cuDNN, bit for bit, on extreme inputs.

    python3 test/GPU/exact.py --attn-compile build/bin/attn-compile --target sm_90a \\
        [--programs DIR [--compile-only]] [--dims 64 128] [--json FILE] [--markdown FILE]

For every head dimension and dtype, causal or not, with the table's schedules:
the error against float64 is at most 1.2 times cuDNN's and LSE is within 1e-5;
50 repeats write the same bits, also beside another stream's work; two streams
run one program at a time; and results are right on inputs that break kernels.
"""

import argparse
import itertools
import json
import math
import sys
import time

import programs
import specs

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    import harness
except ImportError:  # --compile-only works without
    torch = None

HEADS = 8
REPEATS = 50
# The second is long enough for every kernel of the schedule table, and for several tiles a multiprocessor.
LENGTHS = ((2, 1000), (1, 4200))
HIDDEN_ROWS = specs.Rule("first and last row hidden", lambda x: (x.i != 0) & (x.i != x.nq - 1))


def make_spec(target, dtype, dim, mask, lse):
    return specs.Spec(target, dtype, HEADS, HEADS, dim, dim, mask=mask, lse=lse)


def all_specs(args):
    """{(dtype, dim, is causal, has lse): spec}, and those with hidden rows as (dtype, dim)."""
    result = {}
    for dtype, dim, causal, lse in itertools.product(args.dtypes, args.dims, (False, True), (False, True)):
        mask = specs.CAUSAL if causal else specs.NO_RULE
        result[dtype, dim, causal, lse] = make_spec(args.target, dtype, dim, mask, lse)
    for dtype, dim in itertools.product(args.dtypes, args.dims):
        result[dtype, dim] = make_spec(args.target, dtype, dim, HIDDEN_ROWS, True)
    return result


class Results:
    """Checks by name; a failed one is printed at once."""

    def __init__(self):
        self.passed, self.failures, self.rows = 0, [], []

    def check(self, name, is_right, detail=""):
        if is_right:
            self.passed += 1
            return
        self.failures.append({"check": name, "detail": detail})
        print(f"FAIL {name}: {detail}", flush=True)

    def attempt(self, name, function, *arguments, **options):
        """The function's value, or None after a Mismatch."""
        try:
            value = function(*arguments, **options)
            self.check(name, True)
            return value
        except harness.Mismatch as mismatch:
            self.check(name, False, str(mismatch))


def normal(dtype, batch, nq, nk, dim, factor=1.0):
    sizes = ((batch, HEADS, n, dim) for n in (nq, nk, nk))
    return [(factor * torch.randn(size, device=harness.DEVICE)).to(harness.DTYPES[dtype]) for size in sizes]


def placed(tensors):
    """The same values, with NaNs before and after each tensor."""
    return [harness.Guarded.copy_of(x).tensor for x in tensors]


# --- beside cuDNN -----------------------------------------------------------


def peer(q, k, v, causal):
    """(name, output) of cuDNN; of FlashAttention-2 where cuDNN has no kernel."""
    for name, backend in (("cuDNN", SDPBackend.CUDNN_ATTENTION), ("FlashAttention-2", SDPBackend.FLASH_ATTENTION)):
        try:
            with sdpa_kernel(backend):
                return name, F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        except RuntimeError:
            continue
    return None, None


def compare_with_peer(results, name, runners, dtype, dim, causal):
    for batch, length in LENGTHS:
        inputs = normal(dtype, batch, length, length, dim)
        spec = runners[True].spec
        expected, expected_lse, envelope, weight_error = harness.attention(spec, *inputs)
        peer_name, other = peer(*inputs, causal)
        row = {"dtype": dtype, "D": dim, "causal": causal, "N": length, "peer": peer_name}
        empty = expected_lse.isneginf()
        errors = []
        for lse, runner in runners.items():
            what = f"{name} N{length}{' with LSE' if lse else ''}"
            o, actual_lse = runner.run(placed(inputs))
            arguments = (dtype, o, expected, envelope, weight_error, empty)
            results.attempt(f"{what} o", harness.check_output, *arguments)
            errors.append(harness.relative_error(o, expected))
            if lse:
                arguments = (actual_lse, expected_lse, torch.zeros_like(weight_error))
                row["lse_error"] = results.attempt(f"{what} lse", harness.check_lse, *arguments)
        if other is None:
            results.check(f"{name} N{length} has a peer", False, "torch's cuDNN and Flash backends refuse it")
            continue
        row["peer_error"] = harness.relative_error(other, expected)
        row["error"] = math.nan if any(map(math.isnan, errors)) else max(errors)
        ratio = row["ratio"] = row["error"] / row["peer_error"]
        detail = f"error {row['error']:.2e} is {ratio:.2f} times {peer_name}'s {row['peer_error']:.2e}"
        results.check(f"{name} N{length} beside {peer_name}", ratio <= 1.2, detail)
        results.rows.append(row)
        print(f"{name} N{length}: {detail}, lse {row.get('lse_error') or math.nan:.1e}", flush=True)


# --- bits -------------------------------------------------------------------


def repeat(results, name, runner, inputs):
    """Repeats write the same bits: alone, beside other work, and on two streams at a time."""
    outputs = runner.outputs(inputs[0].shape[0], inputs[0].shape[2])

    def once(stream=None):
        with torch.cuda.stream(stream or torch.cuda.current_stream()):
            runner.launch(inputs, outputs)
            harness.wait()
            return outputs["o"].take()

    first = once()
    differing = sum(not harness.same_bits(first, once()) for _ in range(REPEATS))
    results.check(f"{name} repeats", differing == 0, f"{differing} of {REPEATS} differ")

    busy, ours = torch.cuda.Stream(), torch.cuda.Stream()
    load = torch.randn(4096, 4096, device=harness.DEVICE, dtype=torch.bfloat16)
    differing = 0
    torch.cuda.synchronize()
    for _ in range(REPEATS):
        with torch.cuda.stream(busy):
            for _ in range(4):
                load @ load
        differing += not harness.same_bits(first, once(ours))
    torch.cuda.synchronize()
    results.check(f"{name} repeats under load", differing == 0, f"{differing} of {REPEATS} differ")
    two_streams(results, name, runner, inputs, first)
    runner.forget()


def two_streams(results, name, runner, inputs, first):
    """One program on two streams. Each has its own outputs, and so its own plan and workspace."""
    streams = [torch.cuda.Stream() for _ in range(2)]
    outputs = [runner.outputs(inputs[0].shape[0], inputs[0].shape[2]) for _ in streams]
    torch.cuda.synchronize()
    for _ in range(8):
        for stream, output in zip(streams, outputs):
            with torch.cuda.stream(stream):
                runner.launch(inputs, output)
    for stream in streams:
        harness.wait(stream)
    same = [harness.same_bits(first, output["o"].take()) for output in outputs]
    results.check(f"{name} on two streams", all(same), f"streams' outputs are right: {same}")


# --- extreme inputs ---------------------------------------------------------


def extreme_inputs(dtype, dim, length=700):
    """(name, inputs, greatest weight error or None for the oracle's)."""
    rand = lambda factor=1.0: normal(dtype, 1, length, length, dim, factor)  # noqa: E731
    for factor in (6, 50):
        yield f"x{factor}", rand(factor), None
    q, k, v = rand()
    yield "tiny scores", [q * 2.0**-14, k * 2.0**-10, v], None
    yield "equal rows", [torch.ones_like(q), torch.ones_like(k), v], None
    yield "equal values", [q, k, torch.ones_like(v)], None
    for at, operand in enumerate("qkv"):
        inputs = rand()
        inputs[at][:, :, 333, dim // 2] = 1e4
        yield f"outlier in {operand}", inputs, None
    # Beside a maximum of an early tile, and of the last one.
    for row in (0, length - 1):
        inputs = rand()
        inputs[1][:, :, row] *= 40
        yield f"key {row} x40", inputs, None
    for at, operand in enumerate("qk"):
        inputs = rand()
        inputs[at][:, :, ::97] = 60000
        yield f"rows of 60000 in {operand}", inputs, None
    large = 60000.0 if dtype == "f16" else 1e35
    inputs = rand()
    inputs[2] = (inputs[2].sign() * large).to(inputs[2].dtype)
    yield f"v of {large:g}", inputs, None
    yield from exact_products(dtype, dim, length)


def exact_products(dtype, dim, length):
    """q k is one exact product, so that rounding is that of the softmax alone.

    Keys ascend from 2^e to 2^(e + 1). Where scores are large, keys that differ at
    all differ by a lot, and only small scores' weights can be off.
    """
    for exponent in (12, 14, 15, 16, 17, 18, 20, 24, 27, 29):
        q, k, v = normal(dtype, 1, length, length, dim)
        ramp = 1 + torch.arange(length, device=harness.DEVICE) / length
        q.zero_(), k.zero_()
        q[..., 0] = 2.0 ** (exponent // 2)
        k[..., 0] = (2.0 ** (exponent - exponent // 2) * ramp).to(k.dtype)
        for sign, factor in (("", 1), ("-", -1)):
            yield f"products {sign}2^{exponent}", [factor * q, k, v], 4e-3


def check_extreme(results, name, runner, inputs, weight_limit):
    spec = runner.spec
    expected, expected_lse, envelope, weight_error = harness.attention(spec, *inputs)
    if weight_limit is not None:
        weight_error = weight_error.clamp(max=weight_limit)
    o, lse = runner.run(placed(inputs))
    empty = expected_lse.isneginf()
    results.attempt(f"{name}: o", harness.check_output, spec.dtype, o, expected, envelope, weight_error, empty)
    results.attempt(f"{name}: lse", harness.check_lse, lse, expected_lse, weight_error)


def check_degenerate(results, name, runner, dtype, dim):
    """No key, one query, one key, and rows that see nothing."""
    for nq, nk in ((100, 0), (1, 1), (1, 700), (700, 1), (65, 129), (700, 300)):
        inputs = normal(dtype, 2, nq, nk, dim)
        check_extreme(results, f"{name} Nq {nq} Nk {nk}", runner, inputs, None)


# --- the run ----------------------------------------------------------------


def run_configuration(results, runners, dtype, dim, causal):
    name = f"{dtype} D{dim} {'causal' if causal else 'no mask'}"
    with_lse, without = runners[dtype, dim, causal, True], runners[dtype, dim, causal, False]
    compare_with_peer(results, name, {False: without, True: with_lse}, dtype, dim, causal)
    repeat(results, name, without, placed(normal(dtype, 2, 1500, 1500, dim)))
    for kind, inputs, weight_limit in extreme_inputs(dtype, dim):
        check_extreme(results, f"{name} {kind}", with_lse, inputs, weight_limit)
    check_degenerate(results, name, with_lse, dtype, dim)
    with_lse.forget(), without.forget()


def run_all(results, runners, args):
    for dtype, dim in itertools.product(args.dtypes, args.dims):
        for causal in (False, True):
            run_configuration(results, runners, dtype, dim, causal)
        inputs = normal(dtype, 2, 300, 300, dim)
        check_extreme(results, f"{dtype} D{dim} hidden rows", runners[dtype, dim], inputs, None)
        runners[dtype, dim].forget()


def markdown(summary):
    lines = [
        f"{summary['device']}, torch {summary['torch']}, cuDNN {summary['cudnn']}, target {summary['target']}. "
        f"Error: relative to float64 (Frobenius); LSE: greatest, relative to max(1, abs(lse)). "
        f"{summary['passed']} checks passed, {len(summary['failures'])} failed.",
        "",
        "| dtype | D | causal | N | error | peer's | ratio | peer | LSE |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in summary["rows"]:
        lse = f"{r['lse_error']:.1e}" if r.get("lse_error") is not None else "wrong"
        lines.append(
            f"| {r['dtype']} | {r['D']} | {'yes' if r['causal'] else 'no'} | {r['N']} | {r['error']:.2e} "
            f"| {r['peer_error']:.2e} | {r['ratio']:.2f} | {r['peer']} | {lse} |"
        )
    lines += [f"- {failure['check']}: {failure['detail']}" for failure in summary["failures"]]
    return "\n".join(lines) + "\n"


def write(args, results, seconds):
    summary = {
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "target": args.target,
        "seconds": round(seconds, 1),
        **vars(results),
    }
    if args.json:
        with open(args.json, "w") as file:
            json.dump(summary, file, indent=1)
    if args.markdown:
        with open(args.markdown, "w") as file:
            file.write(markdown(summary))
    print(f"exact: {results.passed} checks passed, {len(results.failures)} failed in {seconds:.1f} s")
    return 1 if results.failures else 0


def compile_and_check(args, folder):
    chosen = all_specs(args)
    compiled = dict(zip(chosen, folder.compile_all(list(chosen.values()))))
    refused = {key: result for key, result in compiled.items() if isinstance(result, Exception)}
    for key, result in refused.items():
        print(f"FAIL refused: {chosen[key]}: {result}")
    if refused or args.compile_only:
        print(f"{len(compiled) - len(refused)} of {len(compiled)} operators compiled")
        return 1 if refused else 0
    torch.manual_seed(0)
    start = time.monotonic()
    results = Results()
    try:
        runners = {key: harness.Runner(chosen[key], files) for key, files in compiled.items()}
        run_all(results, runners, args)
    except harness.Dead as dead:
        results.check("run to the end", False, str(dead))
        write(args, results, time.monotonic() - start)
        harness.leave(3)
    return write(args, results, time.monotonic() - start)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attn-compile", default="attn-compile")
    parser.add_argument("--target", default="sm_90a", choices=("sm_80", "sm_90a"))
    parser.add_argument("--programs", help="folder that keeps compiled programs")
    parser.add_argument("--compile-only", action="store_true", help="fill --programs and stop")
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 96, 128, 192, 256])
    parser.add_argument("--dtypes", nargs="+", default=["bf16", "f16"], choices=("bf16", "f16"))
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    args = parser.parse_args()
    if not args.compile_only:
        reason = harness.find_gpu(args.target) if torch else "torch isn't installed"
        if reason:
            print(f"exact: skipped: {reason}")
            return 0
    with programs.Programs(args.attn_compile, args.programs) as folder:
        return compile_and_check(args, folder)


if __name__ == "__main__":
    sys.exit(main())
