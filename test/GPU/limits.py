#!/usr/bin/env python3
"""Sizes, strides and counts at their limits, through the Python package.

    python3 test/GPU/limits.py --target sm_90a [--only NAME ...] [--json FILE]

Grids past 65535, elements whose offset passes 2^31, views of all sorts, one
kernel for 100 lengths. Takes up to 20 GB of the GPU's memory; a check for
which there isn't enough is skipped. --small --target cpu runs the same checks on
sizes that a CPU can do. Takes libattnc.so from the source tree or the bundle,
or from $ATTNC_LIBRARY.
"""

import argparse
import json
import math
import os
import sys
import tempfile
import time

import torch

import specs

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import attnc  # noqa: E402

# Relative errors of all rows together, and of the worst row.
TOLERANCE, ROW_TOLERANCE = 4e-3, 4e-2
# Of float64 scores that are held at a time.
MOST_SCORES = 1 << 28


class Wrong(Exception):
    pass


class Context:
    def __init__(self, args, cache):
        self.target, self.cache = args.target, cache
        self.device = "cpu" if args.target == "cpu" else "cuda"
        self.shrink = 64 if args.small else 1

    def kernel(self, heads, dim, kv_heads=None, mask=specs.NO_RULE):
        kv_heads = kv_heads or heads
        spec = specs.Spec(self.target, "bf16", heads, kv_heads, dim, dim, mask=mask, lse=False)
        return attnc.compile(spec.source(), target=self.target, cache_dir=self.cache)

    def normal(self, *shape):
        return torch.randn(shape, device=self.device, dtype=torch.bfloat16)

    def strided(self, shape, strides, start=0):
        """A view of memory that is no larger than needed, the elements of the view random."""
        size = start + 1 + sum((n - 1) * stride for n, stride in zip(shape, strides))
        memory = torch.empty(size, device=self.device, dtype=torch.bfloat16)
        view = memory.as_strided(shape, strides, start)
        view.copy_(self.normal(*shape))
        return view


def attention(q, k, v, is_causal):
    """In float64, of a chunk."""
    repeat = q.shape[1] // k.shape[1]
    q, k, v = q.double(), *(x.double().repeat_interleave(repeat, 1) for x in (k, v))
    s = q @ k.mT / math.sqrt(q.shape[-1])
    if is_causal:
        visible = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).tril(s.shape[3] - s.shape[2])
        # A row without keys gives 0.
        return torch.softmax(s.masked_fill(~visible, -math.inf), -1).nan_to_num(0.0) @ v
    return torch.softmax(s, -1) @ v


def chunks(q, k, is_causal):
    """(batches, heads, rows) slices of which the scores can be held."""
    batch, heads, nq, _ = q.shape
    repeat, nk = heads // k.shape[1], k.shape[2]
    rows = nq if is_causal else max(1, min(nq, MOST_SCORES // (repeat * nk)))
    groups = max(1, min(k.shape[1], MOST_SCORES // (repeat * nk * rows)))
    batches = max(1, min(batch, MOST_SCORES // (groups * repeat * nk * rows)))
    for b in range(0, batch, batches):
        for g in range(0, k.shape[1], groups):
            for i in range(0, nq, rows):
                yield slice(b, b + batches), g, g + groups, repeat, slice(i, i + rows)


def compare(o, q, k, v, is_causal=False):
    """The relative error; raises Wrong."""
    squares = torch.zeros(2, dtype=torch.float64, device=q.device)
    for b, first, last, repeat, rows in chunks(q, k, is_causal):
        heads, kv_heads = slice(first * repeat, last * repeat), slice(first, last)
        expected = attention(q[b, heads, rows], k[b, kv_heads], v[b, kv_heads], is_causal)
        difference = o[b, heads, rows].double() - expected
        norms = expected.norm(dim=-1)
        # A row of a few keys may cancel: its error is that of a usual row.
        of_rows = difference.norm(dim=-1) / norms.clamp(min=norms.mean())
        if not of_rows.amax() < ROW_TOLERANCE:
            row = (~(of_rows < ROW_TOLERANCE)).nonzero()[0].tolist()
            at = [b.start + row[0], heads.start + row[1], rows.start + row[2]]
            raise Wrong(f"row {at} is off by {of_rows[tuple(row)].item():.1e} of its norm")
        squares += torch.stack([difference.square().sum(), norms.square().sum()])
    error = (squares[0] / squares[1]).sqrt().item()
    if not error < TOLERANCE:
        raise Wrong(f"error {error:.1e}")
    return f"error {error:.1e}"


def run(context, q, k, v, out=None, mask=specs.NO_RULE):
    kernel = context.kernel(q.shape[1], q.shape[3], k.shape[1], mask)
    out = torch.empty_like(q, memory_format=torch.contiguous_format) if out is None else out
    out.fill_(math.nan)
    kernel(q, k, v, out=out)
    return compare(out, q, k, v, mask is specs.CAUSAL)


# --- grids past 65535 ---------------------------------------------------------


def many_batches(context):
    return run(context, *(context.normal(65536 // context.shrink, 8, 4, 64) for _ in "qkv"))


def many_heads(context):
    return run(context, *(context.normal(1, 65536 // context.shrink, 10, 16) for _ in "qkv"))


def many_query_tiles(context):
    q = context.normal(1, 1, 65536 * 192 // context.shrink + 5, 64)
    return run(context, q, context.normal(1, 1, 70, 64), context.normal(1, 1, 70, 64))


# --- offsets past 2^31 elements -----------------------------------------------


def far_heads(context):
    """The second head lies past 2^31 elements."""
    shape, far = (1, 2, 1000, 64), (1 << 31) // context.shrink + 64
    q, k, v, out = (context.strided(shape, (2 * far, far, 64, 1)) for _ in range(4))
    return run(context, q, k, v, out, specs.CAUSAL)


def far_batches(context):
    shape, far = (2, 2, 1000, 64), (1 << 31) // context.shrink + 64
    q, k, v, out = (context.strided(shape, (far, 64000, 64, 1)) for _ in range(4))
    return run(context, q, k, v, out)


def far_rows(context):
    """Row 2048 and later ones lie past 2^31 elements."""
    row = (1 << 20) // context.shrink + 64
    q = context.normal(1, 1, 300, 64)
    return run(context, q, *(context.strided((1, 1, 2100, 64), (64, 64, row, 1)) for _ in "kv"))


def many_keys(context):
    """K and V of more than 2^31 elements in one piece."""
    shape = (1, 16, (1 << 21) // context.shrink + 1000, 64)
    return run(context, context.normal(1, 16, 130, 64), context.normal(*shape), context.normal(*shape))


# --- views ----------------------------------------------------------------------


def projections(context):
    """q, k, v as parts of one [B, N, 3, H, D], and O as [B, N, H, D]."""
    packed = context.normal(2, 500, 3, 6, 64)
    q, k, v = packed.permute(2, 0, 3, 1, 4)
    out = context.normal(2, 500, 6, 64).transpose(1, 2)
    return run(context, q, k, v, out, specs.CAUSAL)


def view_of_rows(context):
    """V as a view of [B, N, H*D] and K as every second head of another."""
    v = context.normal(2, 300, 4 * 64).view(2, 300, 4, 64).transpose(1, 2)
    k = context.normal(2, 8, 300, 64)[:, ::2]
    return run(context, context.normal(2, 4, 200, 64), k, v)


def expanded(context):
    """K and V with a stride of 0 for batches and heads."""
    k, v = (context.normal(1, 1, 300, 64).expand(3, 4, 300, 64) for _ in "kv")
    return run(context, context.normal(3, 4, 200, 64), k, v)


def odd_rows(context):
    """Rows and bases that are 2 bytes off any alignment."""
    strides = (3 * 200 * 67 + 1, 200 * 67, 67, 1)
    q, k, v, out = (context.strided((2, 3, 200, 64), strides, start=1) for _ in range(4))
    return run(context, q, k, v, out, specs.CAUSAL)


def refuses_columns_apart(context):
    q, k, v = (context.normal(1, 2, 64, 64) for _ in "qkv")
    try:
        context.kernel(2, 64)(q, k.transpose(2, 3), v)
    except attnc.AttncError as error:
        return f"refused: {error}"
    raise Wrong("an innermost stride of 64 isn't refused")


# --- others -----------------------------------------------------------------------


def race(context):
    """50 repeats write the same bits."""
    kernel = context.kernel(1, 128)
    q, k, v = context.normal(1, 1, 2048, 128), context.normal(1, 1, 128, 128), context.normal(1, 1, 128, 128)
    first = kernel(q, k, v)
    differing = sum(not torch.equal(kernel(q, k, v), first) for _ in range(50))
    if differing:
        raise Wrong(f"{differing} of 50 repeats differ")
    return compare(first, q, k, v)


def lengths_share_a_kernel(context):
    """9 lengths, then 100: one kernel is compiled."""
    entries = set(os.listdir(context.cache))
    lengths = [100, 200, 300, 500, 700, 1000, 1500, 2000, 3000] + list(range(1, 101))
    for n in lengths[-20:] if context.shrink > 1 else lengths:
        q, k, v = (context.normal(1, 5, length, 64) for length in (n, 3 * n % 301 + 1, 3 * n % 301 + 1))
        run(context, q, k, v, mask=specs.CAUSAL)
    added = set(os.listdir(context.cache)) - entries
    if len(added) != 1:
        raise Wrong(f"{len(added)} kernels were compiled")
    return "one kernel"


# --- keys in parts ------------------------------------------------------------


def batch_invariant(context):
    """A sequence alone, and the same one in a batch: the same bits."""
    q_type, k_type = "tensor<?x12x?x128xbf16>", "tensor<?x4x?x128xbf16>"
    kernel = attnc.compile(
        f"""
        func.func @attention(%q: {q_type}, %k: {k_type}, %v: {k_type}, %o: {q_type}) -> {q_type} {{
          %r = attn.attention ins(%q, %k, %v : {q_type}, {k_type}, {k_type}) outs(%o : {q_type})
                              {{batch_invariant}} -> {q_type}
          return %r : {q_type}
        }}""",
        target=context.target,
        cache_dir=context.cache,
    )
    q, k, v = context.normal(5, 12, 1, 128), context.normal(5, 4, 5000, 128), context.normal(5, 4, 5000, 128)
    together = kernel(q, k, v)
    for i in range(5):
        if not torch.equal(kernel(q[i : i + 1], k[i : i + 1], v[i : i + 1]), together[i : i + 1]):
            raise Wrong(f"sequence {i} has other bits alone")
    return compare(together, q, k, v)


def merges(context):
    """Parts that are empty (lse of either infinity, whatever they hold) or far apart."""
    kernel = attnc.compile(
        """
        !o = tensor<2x3x21x40xf32>
        !l = tensor<2x3x21xf32>
        func.func @merge(%o0: !o, %o1: !o, %l0: !l, %l1: !l) -> (!o, !l) {
          %o, %l = attn.merge %o0, %o1 with %l0, %l1 : !o, !o with !l, !l -> !o, !l
          return %o, %l : !o, !l
        }""",
        target=context.target,
        cache_dir=context.cache,
    )
    outputs = torch.randn(2, 2, 3, 21, 40, device=context.device)
    lses = 5 * torch.randn(2, 2, 3, 21, device=context.device)
    # Of rows: one part is empty, both are, or hardly counts.
    ends = ((0, -math.inf), (-math.inf, 0), (0, math.inf), (-math.inf, -math.inf), (math.inf, -math.inf), (-3e38, 3e38))
    for row, pair in enumerate(ends):
        lses[:, :, :, row] = torch.tensor(pair, device=context.device)[:, None, None]
    outputs[lses.isinf()] = math.nan
    o, lse = kernel(*outputs, *lses)
    logits = lses.double().masked_fill(lses.isinf(), -math.inf)
    top = logits.amax(0)
    top = top.masked_fill(top.isinf(), 0)
    weights = torch.exp(logits - top)
    total = weights.sum(0)
    values = outputs.double().masked_fill(lses.isinf()[..., None], 0) * weights[..., None]
    expected = values.sum(0) / total.masked_fill(total == 0, 1)[..., None]
    for name, actual, wanted in (("o", o, expected), ("lse", lse, total.log() + top)):
        if not torch.allclose(actual.double(), wanted, rtol=2e-5, atol=1e-6):
            raise Wrong(f"{name} is off by {(actual.double() - wanted).abs().nan_to_num().amax().item():.1e}")
    return "right"


CHECKS = [many_batches, many_heads, many_query_tiles, far_heads, far_batches, far_rows, many_keys]
CHECKS += [projections, view_of_rows, expanded, odd_rows, refuses_columns_apart, race, lengths_share_a_kernel]
CHECKS += [batch_invariant, merges]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", nargs="+", choices=[check.__name__ for check in CHECKS])
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.manual_seed(0)
    results, failed = {}, 0
    with tempfile.TemporaryDirectory() as cache:
        context = Context(args, cache)
        for check in CHECKS:
            if args.only and check.__name__ not in args.only:
                continue
            start = time.monotonic()
            try:
                result = check(context)
            except torch.OutOfMemoryError:
                result = "skipped: not enough memory"
            except (Wrong, attnc.AttncError) as error:
                failed += 1
                result = f"FAIL: {error}"
            if context.device == "cuda":
                torch.cuda.empty_cache()
            results[check.__name__] = result
            print(f"{check.__name__}: {result} ({time.monotonic() - start:.1f} s)", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
