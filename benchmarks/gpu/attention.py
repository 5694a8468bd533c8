#!/usr/bin/env python3
"""Times attnc's kernels beside torch's and cuDNN's on one GPU and checks them.

    python3 benchmarks/gpu/attention.py --attn-compile build/bin/attn-compile \\
        [--suite fused variants] [--target sm_80] [--json F] [--markdown F]

fused: against torch SDPA's FlashAttention-2 and cuDNN backends.
variants: naive, inplace, math and fused at B8 H16 N1024 D64 causal, beside
torch's own naive sequence.
hopper: for --target=sm_90a, all head dimensions, GQA and a sliding window
against cuDNN (the window through cudnn-frontend, else compiled FlexAttention).
ablation: for --target=sm_90a, the table's schedules with one flag changed at a
time; a ratio below 1 is what the flag is worth.
mods: score and mask rules against compiled FlexAttention, with the seconds from
a rule to its first result of both, in this process with CUDA up and nothing in
a cache (FlexAttention's block mask apart); ours takes libattnc.so as test/GPU's
api.py does.
skip: masks that hide half of the tiles and more, beside no mask.
scoremods: trivial score_mods, beside none.
fp8: for --target=sm_90a, q, k and v of e4m3 beside our own 16-bit kernel, and
beside the kernel whose producer transposes v.
decode: one query on long K and V, in GB/s, against torch's backends.

B*N = 16384 and H = 2048/D, every pair alone in one process, interleaved after
heating, medians (a power-limited card: only such ratios compare). TFLOP/s are
analytic, 4*B*H*N*N*D / t, half for causal. Inputs rotate past the L2.

Needs torch with CUDA.
"""

import argparse
import dataclasses
import datetime
import importlib.metadata
import json
import time

import operators
import table
from compiler import (
    Compiler,
    Refused,
    ablations,
    format_schedule,
    table_schedule,
    transposed_otherwise,
)

try:
    import mod_suites
    import suites
    import torch
    from timing import Gauge
except ImportError:  # --compile-only works without
    torch = None


def select(problems, args):
    """Those of the dimensions and lengths that were asked for."""
    return [
        problem
        for problem in problems
        if problem.dim in (args.dims or [problem.dim])
        and problem.length in (args.lengths or [problem.length])
        and problem.mod in (args.mods or [problem.mod])
    ]


def fused_problems(args):
    return select(operators.fused_problems(args.dtype), args)


def hopper_groups(args):
    groups = operators.hopper_problems(args.dtype)
    return {group: select(problems, args) for group, problems in groups.items()}


def ablation_problems(args):
    return select(operators.ablation_problems(args.dtype), args)


# Suite -> its problems for a dtype.
MOD_SUITES = {
    "mods": operators.mods_problems,
    "skip": operators.skip_problems,
    "scoremods": operators.scoremods_problems,
    "decode": operators.decode_problems,
    "fp8": operators.fp8_problems,
}


def mod_problems(suite, args):
    return select(MOD_SUITES[suite](args.dtype), args)


def suite_problems(suite, args):
    """What a suite runs; not its schedules and variants."""
    if suite == "variants":
        return [operators.VARIANTS_PROBLEM]
    if suite == "ablation":
        return ablation_problems(args)
    if suite == "hopper":
        return sum(hopper_groups(args).values(), [])
    if suite not in MOD_SUITES:
        return fused_problems(args)
    problems = mod_problems(suite, args)
    if suite in ("skip", "scoremods"):
        problems += list(dict.fromkeys(map(operators.without_mods, problems)))
    if suite == "fp8":
        problems += list(map(operators.in_16_bits, problems))
    return problems


def compile_ahead(suite, compiler, args):
    """What a suite is going to load, on all cores."""
    problems = suite_problems(suite, args)
    schedule = None if suite in ("ablation", "variants") else args.schedule
    variants = operators.VARIANTS if suite == "variants" else ("fused",)
    compiler.compile_all((p.source(schedule), v) for p in problems for v in variants)
    if suite == "fp8":
        compiler.compile_all(fp8_programs(compiler, args))
    if suite == "ablation":
        compiler.compile_all(list(ablation_programs(problems, compiler)))


def fp8_programs(compiler, args):
    """Those of the other schedule."""
    if not args.schedule:
        for problem in mod_problems("fp8", args):
            yield problem.source(transposed_otherwise(compiler, problem)[1]), "fused"


def report_compiled(suite, compiler, args):
    """Says what of a suite's fused programs is refused, and what spills."""
    schedule = None if suite in ("ablation", "variants") else args.schedule
    for problem in suite_problems(suite, args):
        about = f"{suite}: {table.describe(dataclasses.asdict(problem))}"
        try:
            spilled = compiler.spilled_bytes(problem.source(schedule))
        except Refused as reason:
            print(f"{about} refused: {reason}")
            continue
        if spilled:
            print(f"{about}: {spilled} bytes spilled")


def ablation_programs(problems, compiler):
    for problem in problems:
        row = table_schedule(compiler, problem)
        for schedule in (row, *ablations(row).values()):
            yield problem.source(format_schedule(schedule)), "fused"


def measure(suite, compiler, gauge, args):
    """Yields the rows of a suite."""
    if suite == "fused":
        return suites.fused_suite(fused_problems(args), compiler, gauge, args.schedule)
    if suite == "hopper":
        return suites.hopper_suite(hopper_groups(args), compiler, gauge, args.schedule)
    if suite == "ablation":
        return suites.ablation_suite(ablation_problems(args), compiler, gauge)
    if suite in MOD_SUITES:
        run = getattr(mod_suites, f"{suite}_suite")
        return run(mod_problems(suite, args), compiler, gauge, args.schedule)
    return suites.variants_suite(compiler)


def frontend_version():
    try:
        return importlib.metadata.version("nvidia-cudnn-frontend")
    except importlib.metadata.PackageNotFoundError:
        return None


def describe_system(gauge, args):
    return {
        "device": torch.cuda.get_device_name(),
        "date": datetime.date.today().isoformat(),
        "driver": gauge.driver,
        "power_limit_w": gauge.power_limit,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "cudnn_frontend": frontend_version(),
        "target": args.target,
        "dtype": args.dtype,
    }


def save(result, args):
    if args.json:
        with open(args.json, "w") as file:
            json.dump(result, file, indent=1)
    if args.markdown:
        with open(args.markdown, "w") as file:
            file.write(table.markdown(result))


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attn-compile", default="attn-compile")
    parser.add_argument("--programs", help="folder that keeps compiled programs")
    parser.add_argument("--compile-only", action="store_true", help="fill --programs and stop")
    parser.add_argument("--code", choices=("ptx", "cubin"), default="ptx",
                        help="cubin: assembled ahead, on all cores; needs ptxas and a GPU of just that target")  # fmt: skip
    parser.add_argument("--suite", nargs="+", choices=list(table.SUITES), default=["fused", "variants"])  # fmt: skip
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--dtype", choices=("bf16", "f16"), default="bf16")
    parser.add_argument("--dims", type=int, nargs="+", help="only these")
    parser.add_argument("--lengths", type=int, nargs="+", help="only these")
    parser.add_argument("--mods", nargs="+", help="only these rules, by their names in operators.py")
    parser.add_argument("--schedule", help="schedule attribute's fields, instead of the table's")
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    return parser.parse_args()


def main():
    args = parse_arguments()
    compiler = Compiler(args.attn_compile, args.target, args.code, args.programs)
    if args.compile_only:
        for suite in args.suite:
            compile_ahead(suite, compiler, args)
            report_compiled(suite, compiler, args)
        return
    torch.manual_seed(0)
    gauge = Gauge()
    result = describe_system(gauge, args)
    for suite in args.suite:
        start = time.monotonic()
        compile_ahead(suite, compiler, args)
        print(f"{suite}: compiled in {time.monotonic() - start:.1f} s", flush=True)
        result[suite] = []
        for row in measure(suite, compiler, gauge, args):
            result[suite].append(row)
            print(table.line(row), flush=True)
            # A run that is cut short leaves what it has.
            save(result, args)
        print(f"{suite}: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
