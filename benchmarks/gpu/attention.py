#!/usr/bin/env python3
"""Times attnc's kernels beside torch's on one GPU and checks them.

    python3 benchmarks/gpu/attention.py --attn-compile build/bin/attn-compile \\
        [--suite fused|variants|all] [--target sm_80] [--json F] [--markdown F]

fused: bf16, B*N = 16384, H = 2048/D, against each of torch SDPA's FlashAttention-2
and cuDNN backends, every pair alone in one process, interleaved after heating,
medians (a power-limited card: only such ratios compare). TFLOP/s are analytic,
4*B*H*N*N*D / t, half for causal. Inputs rotate past the L2.
variants: naive, inplace, math and fused at B8 H16 N1024 D64 causal, beside
torch's own naive sequence.

Needs torch with CUDA.
"""

import argparse
import datetime
import hashlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from attnc_program import Program, reference
except ImportError:  # --compile-only works without
    torch = None

CAUSAL_MOD = """
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %last = arith.addi %q_idx, %shift : i32
      %visible = arith.cmpi sle, %kv_idx, %last : i32
      attn.yield %visible : i1
    }"""


def source(heads, dim, causal, schedule=None):
    """One attention function with dynamic batch and lengths."""
    t = f"tensor<?x{heads}x?x{dim}xbf16>"
    args = ", ".join(f'%{n}: {t} {{attn.name = "{n}"}}' for n in "qkvo")
    attrs = f"{{schedule = #attn.schedule<{schedule}>}}" if schedule else ""
    return f"""func.func @attention({args}) -> {t} {{
  %r = attn.attention ins(%q, %k, %v : {t}, {t}, {t}) outs(%o : {t}) {attrs}
    {CAUSAL_MOD if causal else ""} -> {t}
  return %r : {t}
}}
"""


class Compiler:
    """Compiles programs into a folder; those already there are taken as they are."""

    def __init__(self, path, target, folder=None):
        self.path, self.target = path, target
        self.temporary = None if folder else tempfile.TemporaryDirectory()
        self.folder = folder or self.temporary.name
        os.makedirs(self.folder, exist_ok=True)

    def compile(self, text, variant):
        """The stem of the program's manifest and PTX."""
        key = hashlib.sha256("\0".join((text, variant, self.target)).encode())
        stem = os.path.join(self.folder, key.hexdigest()[:16])
        if os.path.exists(stem + ".json") and os.path.exists(stem + ".ptx"):
            return stem
        with open(stem + ".mlir", "w") as file:
            file.write(text)
        command = [self.path, stem + ".mlir", f"--variant={variant}"]
        command += [f"--target={self.target}", "--emit=manifest,ptx", "-o", stem]
        subprocess.run(command, check=True)
        return stem

    def __call__(self, text, variant="fused"):
        stem = self.compile(text, variant)
        return Program(stem + ".json", stem + ".ptx")


def compile_only(compiler, args):
    """Fills the folder of programs on a machine without a GPU."""
    for dim in args.dims:
        for causal in (False, True):
            compiler.compile(source(2048 // dim, dim, causal, args.schedule), "fused")
    for variant in ("naive", "inplace", "math", "fused"):
        compiler.compile(source(16, 64, True), variant)


def rotating(make, bytes_each):
    """Enough input sets that a repeat doesn't find its inputs in the L2."""
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    sets = [make() for _ in range(max(1, min(8, math.ceil(2 * l2 / bytes_each))))]
    state = {"next": 0}

    def take():
        state["next"] = (state["next"] + 1) % len(sets)
        return sets[state["next"]]

    return take


def interleaved(functions, heat=0.25, rounds=30):
    """{name: callable} -> {name: (median ms, min ms, p90 - p10 over median)}."""
    for function in functions.values():
        for _ in range(3):
            function()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    while True:
        for function in functions.values():
            function()
        end.record()
        end.synchronize()
        if start.elapsed_time(end) > heat * 1e3:
            break
    events = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            a.record()
            function()
            b.record()
            events[name].append((a, b))
    torch.cuda.synchronize()
    result = {}
    for name, pairs in events.items():
        times = sorted(a.elapsed_time(b) for a, b in pairs)
        median = statistics.median(times)
        spread = (times[int(len(times) * 0.9)] - times[int(len(times) * 0.1)]) / median
        result[name] = (median, times[0], spread)
    return result


def sdpa(backend, inputs, causal):
    def run():
        q, k, v = inputs()
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return run


def relative_error(actual, expected):
    return ((actual.double() - expected).norm() / expected.norm()).item()


def check(program, heads, dim, causal):
    """Relative Frobenius error against float64, ours and FlashAttention-2's."""
    q, k, v = (
        torch.randn(2, heads, 517, dim, device="cuda", dtype=torch.bfloat16) for _ in range(3)
    )
    o = torch.full_like(q, math.nan)
    program(q=q, k=k, v=v, o=o)
    expected, _ = reference(q, k, v, causal)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        flash = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return relative_error(o, expected), relative_error(flash, expected)


def fused_suite(compiler, args):
    rows = []
    for dim in args.dims:
        heads = 2048 // dim
        for causal in (False, True):
            program = compiler(source(heads, dim, causal, args.schedule))
            error, flash_error = check(program, heads, dim, causal)
            for length in args.lengths:
                batch = 16384 // length

                def make():
                    shape = (batch, heads, length, dim)
                    return [
                        torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3)
                    ]

                inputs = rotating(make, 3 * 16384 * 2048 * 2)
                out = torch.empty(batch, heads, length, dim, device="cuda", dtype=torch.bfloat16)

                def ours():
                    q, k, v = inputs()
                    program(q=q, k=k, v=v, o=out)

                row = {"D": dim, "N": length, "causal": causal, "error": error, "flash_error": flash_error}
                flops = 4 * batch * heads * length * length * dim * (0.5 if causal else 1)
                for peer, backend in (
                    ("flash", SDPBackend.FLASH_ATTENTION),
                    ("cudnn", SDPBackend.CUDNN_ATTENTION),
                ):
                    times = interleaved({peer: sdpa(backend, inputs, causal), "ours": ours})
                    row[f"{peer}_tflops"] = flops / times[peer][0] / 1e9
                    row[f"ours_beside_{peer}_tflops"] = flops / times["ours"][0] / 1e9
                    row[f"ratio_{peer}"] = times[peer][0] / times["ours"][0]
                    row[f"spread_{peer}"] = max(times[peer][2], times["ours"][2])
                rows.append(row)
                print(
                    f"D={dim:3d} N={length:5d} {'causal' if causal else 'none  '} "
                    f"ours {row['ours_beside_flash_tflops']:5.0f} TFLOP/s, "
                    f"/flash {row['ratio_flash']:.2f}, /cudnn {row['ratio_cudnn']:.2f}, "
                    f"error {error:.2e} (flash {flash_error:.2e})",
                    flush=True,
                )
    return rows


def torch_naive(inputs, mask):
    """The sequence people write: 5 kernels and a copy."""

    def run():
        q, k, v = inputs()
        scores = q @ k.transpose(-1, -2)
        scores = scores * (1 / math.sqrt(q.shape[-1]))
        scores = scores.masked_fill(mask, -math.inf)
        return torch.softmax(scores, -1) @ v

    return run


# The torch sequence that each variant is to be as exact as.
COUNTERPARTS = {
    "naive": "torch naive",
    "inplace": "torch naive",
    "math": "torch math",
    "fused": "torch flash",
}


def variant_runs(compiler, inputs, out, mask):
    """{name: callable that returns the output}."""
    heads, dim = out.shape[1], out.shape[3]
    runs = {
        "torch naive": torch_naive(inputs, mask),
        "torch math": sdpa(SDPBackend.MATH, inputs, True),
        "torch flash": sdpa(SDPBackend.FLASH_ATTENTION, inputs, True),
    }
    for variant in COUNTERPARTS:
        program = compiler(source(heads, dim, True), variant)

        def run(program=program):
            q, k, v = inputs()
            program(q=q, k=k, v=v, o=out)
            return out

        runs[variant] = run
    return runs


def variants_suite(compiler, args):
    batch, heads, length, dim = 8, 16, 1024, 64
    shape = (batch, heads, length, dim)

    def make():
        return [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3)]

    mask = torch.ones(length, length, dtype=torch.bool, device="cuda").triu(1)
    out = torch.empty(shape, device="cuda", dtype=torch.bfloat16)
    fixed = make()
    expected, _ = reference(*fixed, causal=True)
    errors = {}
    for name, run in variant_runs(compiler, lambda: fixed, out, mask).items():
        out.fill_(math.nan)
        errors[name] = relative_error(run(), expected)
    inputs = rotating(make, 3 * batch * heads * length * dim * 2)
    runs = variant_runs(compiler, inputs, out, mask)
    rows = []
    for name, (median, least, spread) in interleaved(runs).items():
        row = {
            "variant": name,
            "median_us": 1e3 * median,
            "min_us": 1e3 * least,
            "spread": spread,
            "error": errors[name],
        }
        if name in COUNTERPARTS:
            row["error_ratio"] = errors[name] / errors[COUNTERPARTS[name]]
        rows.append(row)
        print(
            f"{name:12s} {1e3 * median:8.1f} us (min {1e3 * least:.1f}), error {errors[name]:.2e}",
            f"({row['error_ratio']:.2f}x of {COUNTERPARTS[name]}'s)" if name in COUNTERPARTS else "",
            flush=True,
        )
    return rows


def markdown(result):
    lines = [
        f"{result['device']}, {result['date']}, torch {result['torch']}, "
        f"CUDA {result['cuda']}, cuDNN {result['cudnn']}, target {result['target']}.",
        "",
    ]
    if result.get("fused"):
        lines += [
            "| D | N | causal | ours TFLOP/s | ours : FlashAttention-2 | ours : cuDNN | error | FlashAttention-2's |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for r in result["fused"]:
            lines.append(
                f"| {r['D']} | {r['N']} | {'yes' if r['causal'] else 'no'} | {r['ours_beside_flash_tflops']:.0f} "
                f"| {r['ratio_flash']:.2f} | {r['ratio_cudnn']:.2f} | {r['error']:.2e} | {r['flash_error']:.2e} |"
            )
        lines.append("")
    if result.get("variants"):
        lines += [
            "| B8 H16 N1024 D64 causal | median us | min us | error | of its torch counterpart's |",
            "|---|---|---|---|---|",
        ]
        for r in result["variants"]:
            ratio = f"{r['error_ratio']:.2f}" if "error_ratio" in r else ""
            lines.append(
                f"| {r['variant']} | {r['median_us']:.1f} | {r['min_us']:.1f} | {r['error']:.2e} | {ratio} |"
            )
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attn-compile", default="attn-compile")
    parser.add_argument("--programs", help="folder that keeps compiled programs")
    parser.add_argument("--compile-only", action="store_true", help="fill --programs and stop")
    parser.add_argument("--suite", choices=("fused", "variants", "all"), default="all")
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--lengths", type=int, nargs="+", default=[2048, 8192, 16384])
    parser.add_argument("--schedule", help="schedule attribute's fields, instead of the table's")
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    args = parser.parse_args()
    compiler = Compiler(args.attn_compile, args.target, args.programs)
    if args.compile_only:
        return compile_only(compiler, args)
    torch.manual_seed(0)
    result = {
        "device": torch.cuda.get_device_name(0),
        "date": datetime.date.today().isoformat(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "target": args.target,
    }
    if args.suite in ("fused", "all"):
        result["fused"] = fused_suite(compiler, args)
    if args.suite in ("variants", "all"):
        result["variants"] = variants_suite(compiler, args)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(result, file, indent=1)
    if args.markdown:
        with open(args.markdown, "w") as file:
            file.write(markdown(result))


if __name__ == "__main__":
    main()
