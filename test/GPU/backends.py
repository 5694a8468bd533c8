#!/usr/bin/env python3
"""Backends on a GPU: cuDNN's results, conditions, plans, streams, graphs, and that explain says what calls do.

    python3 test/GPU/backends.py --target sm_90a [--attn-run build/bin/attn-run] [--json FILE]

Takes libattnc.so from the source tree or the bundle, or from $ATTNC_LIBRARY; cuDNN is torch's. A build without
cudnn-frontend is skipped with its reason.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import threading
import time

import torch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(ROOT, "python"))
import attnc  # noqa: E402

# What 16-bit weights and outputs make of values of norm 1, as elsewhere in test/GPU.
TOLERANCE = {torch.bfloat16: 4e-3, torch.float16: 6e-4}
LSE_TOLERANCE = 1e-3


class Checks:
    def __init__(self):
        self.passed, self.failures, self.measured = 0, [], {}

    def check(self, name, is_right, detail=""):
        self.passed += bool(is_right)
        if not is_right:
            self.failures.append(f"{name}: {detail}")
            print(f"FAIL {name}: {detail}", flush=True)

    def raises(self, name, text, call):
        try:
            call()
        except (attnc.AttncError, ValueError) as raised:
            self.check(name, text in str(raised), f"says {raised}")
        else:
            self.check(name, False, "nothing was raised")


def make(batch=2, heads=8, kv_heads=8, nq=512, nk=512, dim=64, v_dim=None, dtype=torch.bfloat16):
    sizes = ((batch, heads, nq, dim), (batch, kv_heads, nk, dim), (batch, kv_heads, nk, v_dim or dim))
    return [torch.randn(size, device="cuda", dtype=dtype) for size in sizes]


def expect(q, k, v, scale=None, bias=0.0, visible=None):
    """(o, lse) in float64; a row without keys gives 0 and -inf."""
    q, k, v = q.double(), *(x.double().repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale) + bias
    if visible is not None:
        s = s.masked_fill(~visible, -math.inf)
    return torch.softmax(s, -1).nan_to_num(0.0) @ v, torch.logsumexp(s, -1)


def compare(checks, name, q, o, lse, expected):
    expected_o, expected_lse = expected
    error = ((o.double() - expected_o).norm() / expected_o.norm()).item()
    checks.check(f"{name} o", error < TOLERANCE[q.dtype], f"error {error:.1e}")
    if lse is not None:
        same_rows = torch.equal(lse.isinf(), expected_lse.isinf())
        lse_error = (lse.double() - expected_lse)[~expected_lse.isinf()].abs().max().item()
        checks.check(f"{name} lse", same_rows and lse_error < LSE_TOLERANCE, f"error {lse_error:.1e}")


def served_cases():
    """(name, shape, arguments of attention(), rule of expect()), each of which cuDNN serves."""
    for dtype in (torch.bfloat16, torch.float16):
        for dim in (64, 128):
            yield f"plain {dtype} {dim}", {"dtype": dtype, "dim": dim}, lambda *_: ({}, {})
    yield "scale", {}, lambda *_: ({"scale": 0.3}, {"scale": 0.3})
    yield "GQA", {"kv_heads": 2}, lambda *_: ({}, {})
    yield "ragged", {"nq": 333, "nk": 777}, lambda *_: ({}, {})
    yield "one query", {"nq": 1, "nk": 1000, "kv_heads": 2}, lambda *_: ({}, {})
    yield "head dims 128 and 64", {"dim": 128, "v_dim": 64}, lambda *_: ({}, {})
    yield "head dim 256", {"dim": 256}, lambda *_: ({}, {})
    yield "head dim 72", {"dim": 72}, lambda *_: ({}, {})

    def causal(q, k, i, j):
        return {"is_causal": True}, {"visible": j <= i + k.shape[2] - q.shape[2]}

    yield "causal", {}, causal
    yield "causal, more keys", {"nq": 300, "nk": 700}, causal
    yield "causal, one query", {"nq": 1, "nk": 700}, causal

    def window(left, right):
        def rule(q, k, i, j):
            position = i + k.shape[2] - q.shape[2]
            visible = j >= position - left
            if right >= 0:
                visible = visible & (j <= position + right)
            return {"window_size": (left, right)}, {"visible": visible}

        return rule

    yield "window", {}, window(100, 0)
    yield "window, more keys", {"nq": 300, "nk": 700}, window(100, 0)
    yield "window of one key", {}, window(0, 0)
    yield "band", {}, window(100, 20)
    yield "left window", {}, window(100, -1)

    def top_left(q, k, i, j):
        region = "{ %x = arith.cmpi sle, %kv_idx, %q_idx : i32\n attn.yield %x : i1 }"
        return {"mask_mod": region}, {"visible": j <= i}

    yield "causal from the first key", {"nq": 300, "nk": 500}, top_left
    yield "causal from the first key, more queries", {"nq": 500, "nk": 300}, top_left

    def bias(shape_of, dtype, is_causal=False):
        def rule(q, k, i, j):
            mask = torch.randn(shape_of(q, k), device="cuda", dtype=dtype)
            options = {"visible": j <= i} if is_causal else {}
            return {"attn_mask": mask, "is_causal": is_causal}, {"bias": mask.double(), **options}

        return rule

    def whole(q, k):
        return (*q.shape[:3], k.shape[2])

    def of_all(q, k):
        return (1, 1, q.shape[2], k.shape[2])

    yield "bias", {}, bias(whole, torch.bfloat16)
    yield "bias of all", {}, bias(of_all, torch.bfloat16)
    yield "bias of heads", {}, bias(lambda q, k: (1, *whole(q, k)[1:]), torch.bfloat16)
    yield "bias of float32", {}, bias(whole, torch.float32)
    yield "bias and causal", {}, bias(of_all, torch.bfloat16, is_causal=True)

    def lengths(numbers, is_causal=False):
        def rule(q, k, i, j):
            used = torch.tensor(numbers, device="cuda", dtype=torch.int32)
            return {"seqused_k": used, "is_causal": is_causal}, {"visible": j < used.view(-1, 1, 1, 1)}

        return rule

    yield "lengths", {}, lengths([512, 77])
    yield "lengths of 0", {}, lengths([512, 0])
    # The one query sees all keys in use.
    yield "lengths, one query", {"nq": 1}, lengths([512, 77], is_causal=True)


def check_results(checks):
    for name, shape, rule in served_cases():
        q, k, v = make(**shape)
        i = torch.arange(q.shape[2], device="cuda")[:, None]
        arguments, expected = rule(q, k, i, torch.arange(k.shape[2], device="cuda"))
        explanation = attnc.explain(q, k, v, backend="cudnn", return_lse=True, **arguments)
        checks.check(f"{name} is explained as chosen", explanation.chosen == "cudnn", str(explanation))
        try:
            o, lse = attnc.attention(q, k, v, backend="cudnn", return_lse=True, **arguments)
            alone = attnc.attention(q, k, v, backend="cudnn", **arguments)
        except attnc.AttncError as error:
            checks.check(name, False, str(error))
            continue
        compare(checks, name, q, o, lse, expect(q, k, v, **expected))
        compare(checks, f"{name}, no lse", q, alone, None, expect(q, k, v, **expected))


def check_layouts(checks):
    """Strides: heads inside of lengths, as projections leave them, and outputs given."""
    q, k, v = (torch.randn(2, 512, 8, 64, device="cuda", dtype=torch.bfloat16).transpose(1, 2) for _ in "qkv")
    out = torch.empty(2, 512, 8, 64, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    result = attnc.attention(q, k, v, backend="cudnn", out=out)
    checks.check("out is returned", result.data_ptr() == out.data_ptr())
    compare(checks, "BNHD", q, out, None, expect(q, k, v))
    packed = torch.randn(2, 512, 3, 8, 64, device="cuda", dtype=torch.bfloat16)
    q, k, v = (packed[:, :, index].transpose(1, 2) for index in range(3))
    compare(checks, "packed qkv", q, attnc.attention(q, k, v, backend="cudnn"), None, expect(q, k, v))


def check_conditions(checks):
    """Every condition is an error of a call and, in the same words, explained; nothing takes the backend's place."""
    q, k, v = make()
    flags = torch.ones(512, 512, device="cuda", dtype=torch.bool)
    one = torch.ones(8, device="cuda")
    prefix = "{ %c = arith.constant 9 : i32\n %x = arith.cmpi slt, %kv_idx, %c : i32\n attn.yield %x : i1 }"
    long = make(nq=513)
    cases = (
        ("softcap", (q, k, v), {"softcap": 30.0}, "score_mod: softcap"),
        ("ALiBi", (q, k, v), {"alibi_slopes": one}, "score_mod: a function of the positions"),
        ("mask of bool", (q, k, v), {"attn_mask": flags}, "mask_mod: a tensor of i1 [1, 1, ?, ?]"),
        ("bias of keys", (q, k, v), {"attn_mask": flags[:1].float()}, "a bias that is the same for all queries"),
        ("prefix", (q, k, v), {"mask_mod": prefix}, "mask_mod: arith.cmpi"),
        ("sink", (q, k, v), {"sink": one}, "a sink"),
        ("batch_invariant", (q, k, v), {"batch_invariant": True}, "batch_invariant"),
        ("float32", [x.float() for x in (q, k, v)], {}, "q, k and v are f32"),
        ("head dim 60", [x[..., :60].contiguous() for x in (q, k, v)], {}, "head dim 60 is not a multiple of 8"),
        ("more queries than keys", long, {"is_causal": True}, "at least as many keys as queries"),
        ("no keys", (q, k[:, :, :0], v[:, :, :0]), {}, "at least one key"),
    )
    for name, tensors, arguments, reason in cases:
        checks.raises(f"{name} is refused", reason, lambda: attnc.attention(*tensors, backend="cudnn", **arguments))
        explanation = attnc.explain(*tensors, backend="cudnn", **arguments)
        checks.check(f"{name}: nothing is chosen", explanation.chosen is None, str(explanation))
        checks.check(f"{name} is explained", reason in explanation["cudnn"]["reason"], str(explanation))
        # The default serves it.
        attnc.attention(*tensors, **arguments)
    odd = torch.randn(q.numel() + 1, device="cuda", dtype=q.dtype)[1:].view(q.shape)
    reason = "can't access 'q': its base lies 2 bytes past a multiple of 16"
    checks.raises("an odd base is refused", reason, lambda: attnc.attention(odd, k, v, backend="cudnn"))
    rows = torch.randn(2, 8, 512, 68, device="cuda", dtype=q.dtype)[..., :64]
    reason = "can't access 'k': the stride of dimension 2 is 136 bytes"
    checks.raises("odd strides are refused", reason, lambda: attnc.attention(q, rows, v, backend="cudnn"))
    checks.check("odd strides are explained", reason in str(attnc.explain(q, rows, v)), str(attnc.explain(q, rows, v)))


def check_scopes(checks):
    q, k, v = make()
    with attnc.backend("cudnn"):
        checks.check("a scope", attnc.explain(q, k, v).chosen == "cudnn")
        checks.raises("a scope is no wish", "softcap", lambda: attnc.attention(q, k, v, softcap=30.0))
        attnc.attention(q, k, v, softcap=30.0, backend="fused")
    checks.check("after it", attnc.explain(q, k, v).chosen == "fused")
    compiled = torch.compile(lambda q, k, v: attnc.attention(q, k, v, is_causal=True, backend="cudnn"))
    i = torch.arange(512, device="cuda")
    compare(checks, "torch.compile", q, compiled(q, k, v), None, expect(q, k, v, visible=i <= i[:, None]))


def check_plans(checks):
    """The first call of a shape plans, later ones don't; a profile shows that apart, and cuDNN's kernel by its name."""
    q, k, v = make(batch=4, heads=16, kv_heads=16, nq=1024, nk=1024)

    def call():
        return attnc.attention(q, k, v, is_causal=True, backend="cudnn")

    def time_call():
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        return 1e6 * (time.perf_counter() - start)

    first = time_call()
    later = statistics.median(time_call() for _ in range(50))
    checks.measured["first call us"], checks.measured["later call us"] = first, later
    checks.check("later calls don't plan", later < first / 5, f"{first:.0f} us, then {later:.1f} us")
    q, k, v = make(batch=3, heads=16, kv_heads=16, nq=1000, nk=1000)
    try:
        profile = attnc.profile({"cuDNN": call, "ours": lambda: attnc.attention(q, k, v, is_causal=True)})
    except attnc.AttncError as error:
        print(f"no profile: {error}", flush=True)
        return
    text = str(profile)
    print(text, flush=True)
    checks.check("the profile has a plan", "plan" in text and "cuDNN's graph" in json.dumps(profile.data), text)
    checks.check("and one kernel", profile.expect("cuDNN:kernels=1,cuDNN:copies=0"), text)
    checks.check("whose bytes and FLOPs are known", profile.expect("cuDNN:bound=compute"), text)


def check_streams_and_graphs(checks):
    q, k, v = make()
    expected = expect(q, k, v)
    out = torch.empty_like(q)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        attnc.attention(q, k, v, backend="cudnn", out=out)
    side.synchronize()
    compare(checks, "a stream", q, out, None, expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = attnc.attention(q, k, v, backend="cudnn")
    for _ in range(3):
        captured.zero_()
        graph.replay()
    torch.cuda.synchronize()
    compare(checks, "a graph", q, captured, None, expected)
    # A shape whose first call is captured: the plan is made meanwhile.
    q, k, v = make(nq=448, nk=448)
    used = torch.tensor([448, 100], device="cuda", dtype=torch.int32)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = attnc.attention(q, k, v, seqused_k=used, backend="cudnn")
    graph.replay()
    torch.cuda.synchronize()
    visible = torch.arange(448, device="cuda") < used.view(-1, 1, 1, 1)
    compare(checks, "a plan made in a capture", q, captured, None, expect(q, k, v, visible=visible))


def check_threads(checks):
    errors = []

    def work(seed):
        torch.cuda.manual_seed(seed)
        with torch.cuda.stream(torch.cuda.Stream()):
            for turn in range(10):
                q, k, v = make(nq=256 + 64 * (turn % 3), nk=512)
                o = attnc.attention(q, k, v, backend="cudnn")
                expected, _ = expect(q, k, v)
                errors.append(((o.double() - expected).norm() / expected.norm()).item())

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    checks.check("threads", len(errors) == 80 and max(errors) < TOLERANCE[torch.bfloat16], f"{len(errors)}: {max(errors)}")


def check_estimates(checks):
    """What explain estimates of cuDNN, beside times of a graph here; printed, as cards and versions differ."""
    for length in (2048, 8192):
        q, k, v = make(batch=16384 // length, heads=16, kv_heads=16, nq=length, nk=length, dim=128)
        times = {}
        for backend in ("fused", "cudnn"):
            graph = torch.cuda.CUDAGraph()
            attnc.attention(q, k, v, is_causal=True, backend=backend)
            with torch.cuda.graph(graph):
                attnc.attention(q, k, v, is_causal=True, backend=backend)
            samples = []
            for _ in range(30):
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                graph.replay()
                end.record()
                end.synchronize()
                samples.append(start.elapsed_time(end))
            times[backend] = statistics.median(samples)
        ratio = times["cudnn"] / times["fused"]
        reason = attnc.explain(q, k, v, is_causal=True)["cudnn"]["reason"]
        checks.measured[f"D=128 causal N={length}, cuDNN's time over fused's"] = ratio
        print(f"D=128 causal N={length}: cuDNN takes {ratio:.2f} times fused's time; explain: {reason}", flush=True)


def check_tool(checks, attn_run):
    """attn-run side by side, verified, with cuDNN in a profile; cuDNN is the one of torch."""
    environment = dict(os.environ)
    if "ATTNC_CUDNN" not in environment:
        for folder in sys.path:
            path = os.path.join(folder, "nvidia/cudnn/lib/libcudnn.so.9")
            if os.path.exists(path):
                environment["ATTNC_CUDNN"] = path
    command = [attn_run, os.path.join(ROOT, "examples/causal.mlir"), "--shapes=8x16x1024x64,8x16x1024x64,8x16x1024x64"]
    for name, options, text in (
        ("all", ["--backend=all", "--verify"], "cudnn ("),
        ("explain", ["--explain", "--backend=cudnn"], "cudnn   chosen"),
        ("profile", ["--backend=fused,cudnn", "--profile", "--expect=cudnn:kernels=1,fused:copies=0"], "cudnn"),
    ):
        run = subprocess.run([*command, *options], env=environment, capture_output=True, text=True)
        print(run.stdout, run.stderr, flush=True)
        is_right = run.returncode == 0 and text in run.stdout and "not served" not in run.stdout
        checks.check(f"attn-run {name}", is_right, f"status {run.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="native", help="unused but for sm_80: cuDNN is the same on it")
    parser.add_argument("--attn-run")
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.manual_seed(0)
    reason = attnc.explain(*make(), backend="cudnn")["cudnn"]
    if reason["status"] == "can't":
        print(f"skipped: {reason['reason']}")
        return 0
    checks = Checks()
    for function in (
        check_results, check_layouts, check_conditions, check_scopes, check_plans, check_streams_and_graphs,
        check_threads, check_estimates,
    ):  # fmt: skip
        try:
            function(checks)
        except Exception as error:  # the others still have something to say
            checks.check(function.__name__, False, f"{type(error).__name__}: {error}")
    if args.attn_run:
        check_tool(checks, args.attn_run)
    if args.json:
        with open(args.json, "w") as file:
            result = {"passed": checks.passed, "failures": checks.failures, "measured": checks.measured}
            json.dump(result, file, indent=1)
    print(f"{checks.passed} passed, {len(checks.failures)} failed")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
