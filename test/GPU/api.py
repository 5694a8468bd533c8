#!/usr/bin/env python3
"""The Python package on a GPU: results, streams, graphs, threads, refusals, and host time.

    python3 test/GPU/api.py --target sm_90a [--json FILE]

Takes libattnc.so from the source tree or the bundle, or from $ATTNC_LIBRARY.
Host times are printed beside torch's own backends.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import attnc  # noqa: E402

CAUSAL = """
func.func @causal(%q: tensor<?x16x?x64xbf16> {attn.name = "q"}, %k: tensor<?x16x?x64xbf16> {attn.name = "k"},
                  %v: tensor<?x16x?x64xbf16> {attn.name = "v"}, %o: tensor<?x16x?x64xbf16> {attn.name = "o"})
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention ins(%q, %k, %v : tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>)
    outs(%o : tensor<?x16x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %last = arith.addi %q_idx, %shift : i32
      %visible = arith.cmpi sle, %kv_idx, %last : i32
      attn.yield %visible : i1
    } -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}
"""


class Checks:
    def __init__(self):
        self.passed, self.failures, self.times = 0, [], {}

    def check(self, name, is_right, detail=""):
        self.passed += bool(is_right)
        if not is_right:
            self.failures.append(f"{name}: {detail}")
            print(f"FAIL {name}: {detail}", flush=True)

    def raises(self, name, error, text, call):
        try:
            call()
        except error as raised:
            self.check(name, text in str(raised), f"says {raised}")
        else:
            self.check(name, False, "nothing was raised")


def make(batch=2, heads=16, kv_heads=16, nq=1000, nk=1000, dim=64, dtype=torch.bfloat16):
    sizes = ((batch, h, n, dim) for h, n in ((heads, nq), (kv_heads, nk), (kv_heads, nk)))
    return [torch.randn(size, device="cuda", dtype=dtype) for size in sizes]


def expect(q, k, v, bias=0.0, visible=None):
    """(o, lse) in float64."""
    q, k, v = q.double(), *(x.double().repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = q @ k.mT / math.sqrt(q.shape[-1]) + bias
    if visible is not None:
        s = s.masked_fill(~visible, -math.inf)
    return torch.softmax(s, -1).nan_to_num(0.0) @ v, torch.logsumexp(s, -1)


def error_of(actual, expected):
    return ((actual.double() - expected).norm() / expected.norm()).item()


def check_results(checks):
    q, k, v = make(kv_heads=4, nq=700)
    i = torch.arange(700, device="cuda")[:, None] + 300
    j = torch.arange(1000, device="cuda")
    mask = torch.rand(2, 1, 700, 1000, device="cuda") < 0.5
    slopes = torch.rand(16, device="cuda")
    cases = {
        "plain": ({}, {}),
        "causal": ({"is_causal": True}, {"visible": j <= i}),
        "window": ({"window_size": (100, 20)}, {"visible": (j >= i - 100) & (j <= i + 20)}),
        "mask of bool": ({"attn_mask": mask}, {"visible": mask}),
        "mask of floats": ({"attn_mask": mask.float()}, {"bias": mask.double()}),
        "slopes": ({"alibi_slopes": slopes}, {"bias": -slopes.double()[:, None, None] * (i - j).abs()}),
    }
    for name, (arguments, rule) in cases.items():
        for backend in ("fused", "naive"):
            o, lse = attnc.attention(q, k, v, return_lse=True, backend=backend, **arguments)
            expected, expected_lse = expect(q, k, v, **rule)
            error = error_of(o, expected)
            checks.check(f"{name} {backend}", error < (4e-3 if backend == "fused" else 2e-2), f"error {error:.1e}")
            if backend == "fused":
                checks.check(f"{name} lse", (lse - expected_lse).abs().max() < 1e-3, "")
    # A base that TMA can't read.
    memory = torch.randn(q.numel() + 1, device="cuda", dtype=q.dtype)
    odd = memory[1:].view(q.shape)
    checks.check("odd base", error_of(attnc.attention(odd, k, v), expect(odd, k, v)[0]) < 4e-3)


def check_float8(checks):
    """Types, descales in every shape, FlashAttention's of k's heads for q, and outputs. Also repeated."""
    q, k, v = make(kv_heads=4, nq=700, dim=128)
    heads, batches = torch.rand(4, device="cuda") + 0.5, torch.rand(2, 4, device="cuda") + 0.5
    one = torch.full((1,), 1.5, device="cuda")
    cases = {
        "no descale": (None, None, None),
        "one": (one, one, one),
        "heads": (heads.repeat_interleave(4), heads, one),
        "batches": (batches, batches, batches),
    }
    for dtypes in ((torch.float8_e4m3fn,) * 3, (torch.float8_e4m3fn, torch.float8_e4m3fn, torch.float8_e5m2)):
        inputs = [x.to(dtype) for x, dtype in zip((q, k, v), dtypes)]
        for name, descales in cases.items():
            values = []
            for x, descale in zip(inputs, descales):
                descale = one * 0 + 1 if descale is None else descale
                if descale.shape != (1,):
                    descale = descale.repeat_interleave(x.shape[1] // descale.shape[-1], -1)[..., None, None]
                values.append(x.double() * descale)
            expected, expected_lse = expect(*values)
            arguments = dict(zip(("q_descale", "k_descale", "v_descale"), descales), return_lse=True)
            for turn in range(2):
                o, lse = attnc.attention(*inputs, **arguments)
                error, lse_error = error_of(o, expected), (lse - expected_lse).abs().max().item()
                checks.check(f"float8 {name}", o.dtype == torch.bfloat16 and error < 4e-2, f"error {error:.1e}")
                checks.check(f"float8 {name} lse", lse_error < 2e-2, f"off by {lse_error:.1e}")
            half = torch.empty(o.shape, device="cuda", dtype=torch.float16)
            arguments["return_lse"] = False
            error = error_of(attnc.attention(*inputs, out=half, **arguments), expected)
            checks.check(f"float8 {name} f16", error < 4e-2, f"error {error:.1e}")
    checks.raises(
        "descale's shape", ValueError, "k_descale must be float32 of shape (1,), (4,) or (2, 4)",
        lambda: attnc.attention(*inputs, k_descale=batches.T.contiguous()),
    )  # fmt: skip


def check_sequences(checks):
    """Packed sequences and pages against each sequence alone, and numbers that are wrong."""
    lengths, kv_lengths, page = (5, 0, 300, 128), (9, 40, 300, 1000), 16
    make = lambda heads, n: torch.randn(1, n, heads, 64, device="cuda", dtype=torch.bfloat16).transpose(1, 2)  # noqa: E731
    parts = [(make(8, n), make(2, m), make(2, m)) for n, m in zip(lengths, kv_lengths)]
    q, k, v = (torch.cat([part[i] for part in parts], dim=2) for i in range(3))
    expected = torch.cat([attnc.attention(*part, is_causal=True) for part in parts], dim=2)
    ends, kv_ends = (torch.tensor([0, *torch.tensor(x).cumsum(0)], dtype=torch.int32, device="cuda") for x in (lengths, kv_lengths))
    result = attnc.attention(q, k, v, is_causal=True, cu_seqlens_q=ends, cu_seqlens_k=kv_ends)
    checks.check("packed", (result - expected).abs().max() < 2e-2)

    counts = [-(-n // page) for n in kv_lengths]
    order = torch.randperm(sum(counts)).tolist()
    table = torch.full((4, max(counts)), 1 << 30, dtype=torch.int32)
    pools = [torch.full((sum(counts), 2, page, 64), math.nan, device="cuda", dtype=torch.bfloat16) for _ in "kv"]
    for s, count in enumerate(counts):
        for p in range(count):
            table[s, p] = order.pop()
            for pool, x in zip(pools, parts[s][1:]):
                rows = x[0, :, p * page : (p + 1) * page]
                pool[table[s, p], :, : rows.shape[1]] = rows
    used = torch.tensor(kv_lengths, dtype=torch.int32, device="cuda")
    paged = dict(is_causal=True, cu_seqlens_q=ends, seqused_k=used)
    result = attnc.attention(q, *pools, block_table=table.cuda(), **paged)
    checks.check("pages", (result - expected).abs().max() < 2e-2)

    # The check is chosen when a kernel is loaded: another one, by its softcap.
    os.environ["ATTNC_CHECK_INPUTS"] = "1"
    bad = table.clone()
    bad[2, 1] = -1
    call = lambda t: attnc.attention(q, *pools, block_table=t.cuda(), softcap=50.0, **paged)  # noqa: E731
    checks.raises("bad page", attnc.AttncError, "block_table[2, 1] is -1, but there are 86 pages", lambda: call(bad))
    checks.check("good pages", not call(table).isnan().any())
    del os.environ["ATTNC_CHECK_INPUTS"]


def check_streams(checks, kernel):
    """Side by side, each stream's launches have their own tile counter."""
    q, k, v = make(nq=4096, nk=4096, batch=1)
    expected = kernel(q, k, v)
    streams = [torch.cuda.Stream() for _ in range(4)]
    outputs = [[torch.full_like(q, math.nan) for _ in range(10)] for _ in streams]
    torch.cuda.synchronize()
    for turn in range(10):
        for stream, output in zip(streams, outputs):
            kernel(q, k, v, out=output[turn], stream=stream)
    torch.cuda.synchronize()
    wrong = sum(not torch.equal(o, expected) for output in outputs for o in output)
    checks.check("streams", wrong == 0, f"{wrong} of 40 results differ")


def check_graphs(checks, kernel):
    """A replay beside launches on the stream that was captured."""
    q, k, v = make(nq=4096, nk=4096, batch=1)
    expected = kernel(q, k, v)
    captured, eager = torch.full_like(q, math.nan), torch.full_like(q, math.nan)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        for _ in range(3):
            kernel(q, k, v, out=captured)
    checks.check("capture doesn't run", bool(captured.isnan().all()))
    other = torch.cuda.Stream()
    torch.cuda.synchronize()
    for _ in range(20):
        with torch.cuda.stream(other):
            graph.replay()
        kernel(q, k, v, out=eager, stream=side)
    torch.cuda.synchronize()
    checks.check("replay", torch.equal(captured, expected))
    checks.check("launch beside a replay", torch.equal(eager, expected))


def check_layouts(checks, kernel):
    """A tensor that TMA can't access gets another kernel, and a warning."""
    q, k, v = make()
    visible = torch.ones(1000, 1000, device="cuda").tril() > 0
    shifted = torch.empty(k.numel() + 1, device="cuda", dtype=k.dtype)[1:].view(k.shape).copy_(k)
    for is_first in (True, False):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            error = error_of(kernel(q, shifted, v), expect(q, k, v, visible=visible)[0])
        checks.check("shifted tensor", error < 4e-3, f"{error}")
        texts = [str(w.message) for w in caught if w.category is attnc.AttncWarning]
        is_right = len(texts) == 1 and "argument 'k'" in texts[0] if is_first else not texts
        checks.check("warning of another kernel", is_right, f"first: {is_first}: {texts}")


def check_threads(checks, kernel):
    wrong = []

    def work(seed):
        with torch.cuda.stream(torch.cuda.Stream()):
            q, k, v = make(nq=100 + 37 * seed, nk=500)
            expected = expect(q, k, v, visible=torch.ones(q.shape[2], 500, device="cuda").tril(500 - q.shape[2]) > 0)[0]
            for _ in range(50):
                error = error_of(kernel(q, k, v), expected)
                if not error < 4e-3:
                    wrong.append((seed, error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    checks.check("threads", not wrong, f"{wrong[:3]}")


def check_refusals(checks, kernel):
    q, k, v = make()
    host = torch.empty(q.shape, dtype=q.dtype)
    checks.raises("host tensor", attnc.AttncError, "argument 'k' is on the CPU, needed is GPU 0", lambda: kernel(q, host, v))
    checks.raises("wrong dtype", attnc.AttncError, "argument 'v': needs", lambda: kernel(q, k, v.half()))
    checks.raises("device of attention", attnc.AttncError, "argument 'k' is on the CPU", lambda: attnc.attention(q, host, v))
    checks.raises("out in q", attnc.AttncError, "'o' lies in the memory of 'q'", lambda: kernel(q, k, v, out=q))
    checks.raises("out of attention", attnc.AttncError, "'out' lies in the memory of 'k'", lambda: attnc.attention(q, k, v, out=k))
    checks.raises("no memory", TypeError, "k is on meta", lambda: attnc.attention(q, k.to("meta"), v))
    checks.raises("gradient", NotImplementedError, "no backward pass", lambda: kernel(q.requires_grad_(), k, v))


def host_microseconds(call, count=200, rounds=15):
    """The median of what a call costs while the GPU isn't waited for."""
    samples = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        samples.append((time.perf_counter() - start) / count * 1e6)
    torch.cuda.synchronize()
    return statistics.median(samples)


def measure(checks, kernel):
    # So little work that the GPU keeps up.
    q, k, v = make(batch=1, nq=64, nk=64)
    out = torch.empty_like(q)
    calls = {
        "kernel(q, k, v, out=o)": lambda: kernel(q, k, v, out=out),
        "kernel(q, k, v)": lambda: kernel(q, k, v),
        "attnc.attention": lambda: attnc.attention(q, k, v, is_causal=True),
    }
    backends = {"torch flash": SDPBackend.FLASH_ATTENTION, "torch cuDNN": SDPBackend.CUDNN_ATTENTION}
    for name, call in calls.items():
        checks.times[name] = host_microseconds(call)
    for name, backend in backends.items():
        try:
            with sdpa_kernel(backend), torch.no_grad():
                checks.times[name] = host_microseconds(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
        except RuntimeError as error:
            print(f"{name}: {error}")
    for name, microseconds in checks.times.items():
        print(f"{name}: {microseconds:.1f} us of host time a call")


# torch and CUDA are there already, as in a process that uses them.
START = """
import json, sys, time
start = time.perf_counter()
def lap(name):
    global start
    now = time.perf_counter()
    parts[name], start = 1000 * (now - start), now
parts = {}
import torch
lap("import torch")
q, k, v = (torch.randn(2, 16, 1024, 64, device="cuda", dtype=torch.bfloat16) for _ in "qkv")
torch.cuda.synchronize()
lap("CUDA")
sys.path.insert(0, sys.argv[1])
import attnc
lap("import attnc")
kernel = attnc.compile(sys.argv[2])
lap("compile, or find on disk")
o = kernel(q, k, v)
lap("load and launch")
torch.cuda.synchronize()
lap("wait")
print(json.dumps(parts))
"""
MAX_START_MS = 150
# Of the parts, those that aren't our package's.
OTHERS = ("import torch", "CUDA", "wait")


def measure_start(checks):
    """From the package's import to the first launch, with the kernel on disk."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", START, os.path.dirname(os.path.dirname(attnc.__file__)), CAUSAL]
        environment = dict(os.environ, ATTNC_CACHE_DIR=folder)
        runs = [json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout) for _ in range(6)]
    times = [sum(ms for part, ms in run.items() if part not in OTHERS) for run in runs]
    median = statistics.median(times[1:])
    print(f"start: {times[0]:.0f} ms with an empty cache, {median:.0f} ms with the kernel in it")
    for part, first in runs[0].items():
        warm = statistics.median(run[part] for run in runs[1:])
        aside = " (aside)" if part in OTHERS else ""
        print(f"  {part}: {first:.1f} ms with an empty cache, {warm:.1f} ms{aside}")
    checks.times["start, warm cache"] = 1000 * median
    checks.check("start with a warm cache", median <= MAX_START_MS, f"{median:.0f} ms")


def check_lazy_kernels(checks, target):
    """The first launch that needs a kernel is captured; and prepare() leaves nothing for launches."""
    q, k, v = make(heads=16, nq=1024)
    queries = q[:, :, :1].contiguous()
    for name, inputs in (("many queries", (q, k, v)), ("one query", (queries, k, v))):
        kernel = attnc.compile(CAUSAL + f"// captured: {name}", target=target, cache_dir="off")
        out = torch.full_like(inputs[0], math.nan)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kernel(*inputs, out=out)
        graph.replay()
        torch.cuda.synchronize()
        length = inputs[0].shape[2]
        visible = torch.ones(length, 1000, device="cuda").tril(1000 - length) > 0
        error = error_of(out, expect(*inputs, visible=visible)[0])
        checks.check(f"first launch captured, {name}", error < 4e-3, f"error {error:.1e}")

    kernel = attnc.compile(CAUSAL + "// prepared", target=target, cache_dir="off").prepare()
    for inputs in ((q, k, v), (queries, k, v), (q[:, :, :100].contiguous(), k, v)):
        start = time.perf_counter()
        kernel(*inputs)
        ms = 1000 * (time.perf_counter() - start)
        checks.check(f"launch of {inputs[0].shape[2]} queries after prepare()", ms < 20, f"{ms:.0f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="native")
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.manual_seed(0)
    checks = Checks()
    kernel = attnc.compile(CAUSAL, target=args.target)
    print(kernel)
    if args.target in ("native", "sm_90a"):
        check_results(checks)
        check_float8(checks)
        check_sequences(checks)
    check_streams(checks, kernel)
    check_graphs(checks, kernel)
    if kernel.manifest.get("kernel_target", kernel.manifest["target"]) == "sm_90a":
        check_layouts(checks, kernel)
    check_threads(checks, kernel)
    check_refusals(checks, kernel)
    check_lazy_kernels(checks, args.target)
    measure(checks, kernel)
    measure_start(checks)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"passed": checks.passed, "failures": checks.failures, "host_us": checks.times}, file, indent=1)
    print(f"{checks.passed} passed, {len(checks.failures)} failed")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
