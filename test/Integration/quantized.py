"""Attention of 8-bit floats: types, scales, and cases."""

import dataclasses
import itertools
from typing import Optional

import numpy as np

# How a scale's shape follows from batch and heads.
SHAPES = {"tensor": lambda b, h: (1,), "heads": lambda b, h: (h,), "batches": lambda b, h: (b, h)}


@dataclasses.dataclass
class Quantized:
    """What an attention of 8-bit q has beside its other operands."""

    k_dtype: str = "f8E4M3FN"
    v_dtype: str = "f8E4M3FN"
    o_dtype: str = "bf16"
    # Of SHAPES, or None for no scale.
    q_scale: Optional[str] = None
    k_scale: Optional[str] = None
    v_scale: Optional[str] = None

    def _shapes(self, batch, heads, kv_heads):
        kinds = (("q_scale", self.q_scale, heads), ("k_scale", self.k_scale, kv_heads), ("v_scale", self.v_scale, kv_heads))
        return {name: SHAPES[kind](batch, count) for name, kind, count in kinds if kind}

    def operands(self, batch, heads, kv_heads):
        """The scales' types by name; they come after the sinks."""
        return {
            name: "tensor<" + "x".join(map(str, shape)) + "xf32>"
            for name, shape in self._shapes(batch, heads, kv_heads).items()
        }

    def values(self, random, batch, heads, kv_heads):
        """The scales by name: between 1/4 and 4, those of q and k nearer to 1."""
        result = {}
        for name, shape in self._shapes(batch, heads, kv_heads).items():
            reach = 2.0 if name == "v_scale" else 0.5
            result[name] = np.exp2(random.uniform(-reach, reach, shape)).astype(np.float32)
        return result


def apply(x, scale):
    """`x` [B, H, N, D] times a scale of any of the shapes."""
    if scale is None:
        return x
    return x.astype(np.float64) * (scale if scale.shape == (1,) else scale[..., None, None])


# Tiles and their neighbours, grouped heads, one row.
CASE_SHAPES = (
    (1, 2, 2, 192, 192),
    (2, 4, 2, 129, 129),
    (1, 2, 1, 1, 77),
    (2, 2, 2, 33, 200),
    (1, 6, 2, 200, 33),
    (1, 1, 1, 255, 257),
    (1, 3, 1, 400, 1000),
)
RULES = ((None, None), (None, "causal"), (None, "window"), ("softcap", None), ("alibi", "causal"), (None, "scattered"))
RULES += (("bias_b11k_f32", "causal"), (None, "all_hidden"))
DIMS = ((64, 64), (128, 128), (256, 256), (16, 16), (32, 32), (96, 96), (80, 80), (192, 128), (48, 112), (128, 64))




ROLES = "lazy_rescale = true, persistent = true, q_stages = 2"


def _schedule(dim, block_m, block_n=None, num_stages=None, roles=ROLES, v_transpose="producer"):
    """One whose kernel transposes v itself, or has a kernel in front for that."""
    by_dim = {64: (128, 4), 128: (96, 4), 192: (128, 2), 256: (96, 2)}
    keys, stages = next(tile for limit, tile in by_dim.items() if dim <= limit)
    tile = f"block_m = {block_m}, block_n = {block_n or keys}, num_stages = {num_stages or stages}, num_warps = {4 + block_m // 16}"
    return f"{tile}, warp_roles = <{roles}, v_transpose = {v_transpose}>"


def transposed_by_the_producer(make):
    """Cases whose kernels read v as it lies."""
    turn = itertools.count()
    for v_dtype in ("f8E4M3FN", "f8E5M2"):
        for dim, v_dim in DIMS:
            n = next(turn)
            # All pairs of rules and shapes in turn.
            score, mask = RULES[(n + n // len(RULES)) % len(RULES)]
            shape = CASE_SHAPES[n % len(CASE_SHAPES)]
            quantized = Quantized(v_dtype=v_dtype, v_scale="heads")
            rows = 192 if max(dim, v_dim) <= 128 and not score else 128
            name = f"f8t-{v_dtype[2:4]}-{dim}-{v_dim}-{score or 'plain'}-{mask or 'all'}-" + "x".join(map(str, shape))
            fields = dict(lse=n % 2 == 0, v_dim=v_dim, quantized=quantized, schedule=_schedule(max(dim, v_dim), rows))
            yield make(name, "f8E4M3FN", dim, shape, score, mask, **fields)
    # Rows of 32, 64 and 128 bytes, and more or fewer keys than warps; every pipeline and few stages.
    pipelines = ("pipeline = simple", "pipeline = overlap, persistent = true", "pipeline = ahead, persistent = true")
    tiles = ((64, 64, 32), (64, 64, 64), (96, 64, 160), (80, 64, 256), (128, 128, 64), (192, 128, 32), (64, 256, 64))
    for n, (dim, block_m, block_n) in enumerate(tiles):
        for pipeline in pipelines:
            if "ahead" in pipeline and (block_n > 64 or block_m > 192):
                continue  # two tiles of scores
            stages = 2 if "ahead" in pipeline else 1 + n % 3
            schedule = _schedule(dim, block_m, block_n, stages, pipeline)
            name = f"f8t-{dim}-{block_m}x{block_n}-{pipeline.split(',')[0].split()[-1]}"
            mask = ("causal", None, "window")[n % 3]
            yield make(name, "f8E4M3FN", dim, (1, 4, 2, 333, 777), mask=mask, quantized=Quantized(), schedule=schedule)
    for dim in (64, 128, 256):
        fields = dict(quantized=Quantized(q_scale="heads", v_scale="batches"), schedule=_schedule(dim, 192 if dim < 256 else 128))
        yield make(f"f8t-long-{dim}", "f8E4M3FN", dim, (1, 2, 1, 300, 4000), lse=True, **fields)
        yield make(f"f8t-long-causal-{dim}", "f8E4M3FN", dim, (1, 2, 2, 1500, 1500), mask="causal", lse=True, **fields)
    fields = dict(quantized=Quantized(), schedule=_schedule(128, 192))
    yield make("f8t-one-hot", "f8E4M3FN", 128, (1, 1, 1, 256, 256), scale=1.0, edit=one_hot, **fields)
    for kind in ("f8E4M3FN", "f8E5M2"):
        nan = {**fields, "quantized": Quantized(kind, kind)}
        yield make(f"f8t-nan-behind-padding-{kind}", kind, 128, (2, 4, 2, 70, 170), mask="keys_before_40", edit=nan_behind_40, **nan)
    yield make("f8t-sink", "f8E4M3FN", 128, (1, 4, 4, 70, 150), lse=True, sink=(0.5, -3.25, 4.0, 12.0), **fields)
    yield make("f8t-no-keys", "f8E4M3FN", 128, (1, 2, 2, 5, 0), lse=True, **fields)
    yield make("f8t-no-queries", "f8E4M3FN", 128, (1, 2, 2, 0, 5), **fields)
    yield make("f8t-static", "f8E4M3FN", 128, (2, 2, 2, 100, 300), static=True, **fields)


def transposed_in_front(make):
    """Cases of head dimensions for which the table lets the producer transpose."""
    for n, (dim, v_dim) in enumerate(pair for pair in DIMS if max(pair) <= 128):
        score, mask = RULES[n % len(RULES)]
        schedule = _schedule(max(dim, v_dim), 128, v_transpose="prepass")
        fields = dict(lse=True, v_dim=v_dim, quantized=Quantized(v_scale="heads"), schedule=schedule)
        yield make(f"f8p-{dim}-{v_dim}-{score or 'plain'}-{mask or 'all'}", "f8E4M3FN", dim, CASE_SHAPES[n % len(CASE_SHAPES)], score, mask, **fields)


def cases(make):
    """`make` is Case without the variants."""
    yield from transposed_by_the_producer(make)
    yield from transposed_in_front(make)
    turn = itertools.count()
    kinds = (None, "tensor", "heads", "batches")
    for q, k, v in itertools.product(("f8E4M3FN", "f8E5M2"), repeat=3):
        for dim, v_dim in DIMS:
            n = next(turn)
            score, mask = RULES[n % len(RULES)]
            shape = CASE_SHAPES[n % len(CASE_SHAPES)]
            quantized = Quantized(k, v, ("bf16", "f16", "f32")[n % 3], kinds[n % 4], kinds[n // 2 % 4], kinds[n // 3 % 4])
            short = "".join("4" if "E4" in dtype else "5" for dtype in (q, k, v))
            name = f"f8-{short}-{dim}-{v_dim}-{score or 'plain'}-{mask or 'all'}-" + "x".join(map(str, shape))
            yield make(name, q, dim, shape, score, mask, lse=n % 2 == 0, v_dim=v_dim, quantized=quantized)
    scales = Quantized(q_scale="heads", k_scale="tensor", v_scale="batches")
    for dim in (64, 128, 256):
        yield make(f"f8-long-{dim}", "f8E4M3FN", dim, (1, 2, 1, 300, 4000), lse=True, quantized=scales)
        yield make(f"f8-long-causal-{dim}", "f8E4M3FN", dim, (1, 2, 2, 1500, 1500), mask="causal", lse=True, quantized=scales)
    # Keys, and so weights, in their order: a wrong one gives another row of v.
    yield make("f8-one-hot", "f8E4M3FN", 128, (1, 1, 1, 256, 256), scale=1.0, edit=one_hot, quantized=Quantized())
    yield make("f8-sink", "f8E4M3FN", 64, (1, 4, 4, 70, 150), lse=True, sink=(0.5, -3.25, 4.0, 12.0), quantized=scales)
    yield make("f8-negative-scale", "f8E4M3FN", 64, (1, 2, 2, 70, 150), scale=-0.3, lse=True, quantized=scales)
    for dtype in ("f8E4M3FN", "f8E5M2"):
        fields = dict(mask="keys_before_40", edit=nan_behind_40, lse=True, quantized=Quantized(dtype, dtype))
        yield make(f"f8-nan-behind-padding-{dtype}", dtype, 128, (2, 4, 2, 70, 170), **fields)
    yield make("f8-no-keys", "f8E4M3FN", 64, (1, 2, 2, 5, 0), lse=True, quantized=scales)
    yield make("f8-no-queries", "f8E4M3FN", 64, (1, 2, 2, 0, 5), quantized=scales)
    yield make("f8-static", "f8E4M3FN", 128, (2, 2, 2, 100, 300), static=True, quantized=scales)


def nan_behind_40(q, k, v):
    k[:, :, 40:] = np.nan
    v[:, :, 40:] = np.nan


def one_hot(q, k, v):
    """Query i sees key i only: they have the same binary digits in signs."""
    digits = 1 - 2.0 * (np.arange(q.shape[2])[:, None] >> np.arange(8) & 1)
    for x in (q, k):
        x[...] = 0
        x[..., : digits.shape[1]] = 4 * digits[: x.shape[2]]
