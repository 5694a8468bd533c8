"""Score and mask rules, each as MLIR and as a Python function of index arrays.

SCORES: name -> (body that yields %r from %s, %b, %h, %q_idx, %kv_idx;
                 function of s, b, h, i, j, nq, nk)
MASKS:  name -> (body that yields %r, function of b, h, i, j, nq, nk)

A rule that reads captured tensors has a third item, name -> Capture. Its body
has them as %name of the type {name}, its function takes them by name.
"""

import dataclasses
from typing import Callable, Tuple

import numpy as np


@dataclasses.dataclass
class Capture:
    dtype: str
    # Of "b" (batch), "h" (query heads), "q", "k" (lengths) and numbers.
    dims: Tuple
    # The values, from a random generator, the shape and the shape of the case.
    make: Callable = lambda random, shape, case: random.standard_normal(shape)

    def type(self, heads, static=None):
        batch, nq, nk = static or "???"
        sizes = {"b": batch, "h": heads, "q": nq, "k": nk}
        return "tensor<" + "".join(f"{sizes.get(d, d)}x" for d in self.dims) + self.dtype + ">"

    def values(self, random, case_shape):
        batch, heads, _, nq, nk = case_shape
        sizes = {"b": batch, "h": heads, "q": nq, "k": nk}
        return self.make(random, tuple(sizes.get(d, d) for d in self.dims), case_shape)


def get_captures(rule):
    return rule[2] if rule and len(rule) > 2 else {}

# %pos: the query's position, counted so that the last query meets the last key.
_POSITION = """
      %ql = attn.q_len : i32
      %kl = attn.kv_len : i32
      %shift = arith.subi %kl, %ql : i32
      %pos = arith.addi %q_idx, %shift : i32"""

_ALIBI_SLOPE = """
      %step = arith.constant -0.6666667 : f32
      %hf = arith.sitofp %h : i32 to f32
      %e0 = arith.mulf %hf, %step : f32
      %e1 = arith.addf %e0, %step : f32
      %slope = math.exp2 %e1 : f32"""


def _alibi_slope(h):
    # The public rule for a power of two, taken as it is for 12 heads: 2^(-8 (h+1) / 12).
    return 2.0 ** (-8.0 * (h + 1) / 12)


SCORES = {
    # The distance by its ends.
    "alibi_ends": (
        _POSITION
        + _ALIBI_SLOPE
        + """
      %low = arith.minsi %kv_idx, %pos : i32
      %high = arith.maxsi %pos, %kv_idx : i32
      %d = arith.subi %low, %high : i32
      %df = arith.sitofp %d : i32 to f32
      %bias = arith.mulf %slope, %df : f32
      %r = arith.addf %s, %bias : f32""",
        lambda s, b, h, i, j, nq, nk: s - _alibi_slope(h) * abs(j - (i + nk - nq)),
    ),
    # All that a sum can be made of, and a factor of the whole.
    "sum": (
        """
      %two = arith.constant 2.0 : f32
      %qf = arith.sitofp %q_idx : i32 to f32
      %kf = arith.sitofp %kv_idx : i32 to f32
      %tenth = arith.constant 0.1 : f32
      %k1 = arith.mulf %kf, %tenth : f32
      %cap = arith.constant 3.0 : f32
      %a = arith.divf %s, %cap : f32
      %t = math.tanh %a : f32
      %x = arith.subf %s, %qf : f32
      %y = arith.addf %t, %k1 : f32
      %z = arith.addf %x, %y : f32
      %w = arith.negf %z : f32
      %r = arith.divf %w, %two : f32""",
        lambda s, b, h, i, j, nq, nk: -(s - i + np.tanh(s / 3) + 0.1 * j) / 2,
    ),
    "negated": (
        """
      %r = arith.negf %s : f32""",
        lambda s, b, h, i, j, nq, nk: -s,
    ),
    "softcap": (
        """
      %cap = arith.constant 5.0 : f32
      %a = arith.divf %s, %cap : f32
      %t = math.tanh %a : f32
      %r = arith.mulf %t, %cap : f32""",
        lambda s, b, h, i, j, nq, nk: 5 * np.tanh(s / 5),
    ),
    "relative": (
        """
      %d = arith.subi %q_idx, %kv_idx : i32
      %df = arith.sitofp %d : i32 to f32
      %r = arith.addf %s, %df : f32""",
        lambda s, b, h, i, j, nq, nk: s + (i - j),
    ),
    "alibi": (
        _POSITION
        + _ALIBI_SLOPE
        + """
      %d = arith.subi %kv_idx, %pos : i32
      %df = arith.sitofp %d : i32 to f32
      %bias = arith.mulf %slope, %df : f32
      %r = arith.addf %s, %bias : f32""",
        lambda s, b, h, i, j, nq, nk: s + _alibi_slope(h) * (j - (i + nk - nq)),
    ),
    "alibi_symmetric": (
        _POSITION
        + _ALIBI_SLOPE
        + """
      %d = arith.subi %kv_idx, %pos : i32
      %zero = arith.constant 0 : i32
      %n = arith.subi %zero, %d : i32
      %abs = arith.maxsi %d, %n : i32
      %df = arith.sitofp %abs : i32 to f32
      %bias = arith.mulf %slope, %df : f32
      %r = arith.subf %s, %bias : f32""",
        lambda s, b, h, i, j, nq, nk: s - _alibi_slope(h) * abs(j - (i + nk - nq)),
    ),
    # A bias of the lowest finite value hides nothing: row 0 becomes mean(V).
    "lowest_row_0": (
        """
      %zero = arith.constant 0 : i32
      %low = arith.constant -3.40282347e+38 : f32
      %first = arith.cmpi eq, %q_idx, %zero : i32
      %r = arith.select %first, %low, %s : f32""",
        lambda s, b, h, i, j, nq, nk: np.where(i == 0, -3.40282347e38, s),
    ),
    "minus_120": (
        """
      %c = arith.constant -120.0 : f32
      %r = arith.addf %s, %c : f32""",
        lambda s, b, h, i, j, nq, nk: s - 120,
    ),
    "minus_490": (
        """
      %c = arith.constant -490.0 : f32
      %r = arith.addf %s, %c : f32""",
        lambda s, b, h, i, j, nq, nk: s - 490,
    ),
}


def _window(left, right):
    return (
        _POSITION
        + f"""
      %left = arith.constant {left} : i32
      %right = arith.constant {right} : i32
      %first = arith.subi %pos, %left : i32
      %last = arith.addi %pos, %right : i32
      %c0 = arith.cmpi sge, %kv_idx, %first : i32
      %c1 = arith.cmpi sle, %kv_idx, %last : i32
      %r = arith.andi %c0, %c1 : i1""",
        lambda b, h, i, j, nq, nk: (j >= i + nk - nq - left) & (j <= i + nk - nq + right),
    )


def _key_is_not(key):
    return (
        f"""
      %key = arith.constant {key} : i32
      %r = arith.cmpi ne, %kv_idx, %key : i32""",
        lambda b, h, i, j, nq, nk: j != key,
    )


def _neighborhood(width, radius, offset=0):
    """In rows of `width`, from `radius` before to `radius` behind, at a border as many; queries begin at `offset`."""

    def near(i, j):
        center = np.clip(i, radius, width - 1 - radius)
        return abs(j - center) <= radius

    return (
        f"""
      %width = arith.constant {width} : i32
      %radius = arith.constant {radius} : i32
      %minus_radius = arith.constant {-radius} : i32
      %last_center = arith.constant {width - 1 - radius} : i32
      %offset = arith.constant {offset} : i32
      %position = arith.addi %q_idx, %offset : i32
      %q_row = arith.divsi %position, %width : i32
      %k_row = arith.divsi %kv_idx, %width : i32
      %rows = arith.subi %k_row, %q_row : i32
      %rows_apart = math.absi %rows : i32
      %c0 = arith.cmpi sle, %rows_apart, %radius : i32
      %q_column = arith.remsi %position, %width : i32
      %inside = arith.maxsi %q_column, %radius : i32
      %column = arith.minsi %inside, %last_center : i32
      %k_column = arith.remui %kv_idx, %width : i32
      %columns = arith.subi %k_column, %column : i32
      %c1 = arith.cmpi sge, %columns, %minus_radius : i32
      %c2 = arith.cmpi sge, %radius, %columns : i32
      %c3 = arith.andi %c1, %c2 : i1
      %r = arith.andi %c0, %c3 : i1""",
        lambda b, h, i, j, nq, nk: (abs(j // width - (i + offset) // width) <= radius)
        & near((i + offset) % width, j % width),
    )


# What comparisons ask of the key, in all forms that become intervals of columns, and some that don't.
KEY_INTERVALS = {
    "neighborhood_128": _neighborhood(128, 3),
    "neighborhood_100": _neighborhood(100, 1),
    "neighborhood_48": _neighborhood(48, 2, offset=150),
    "neighborhood_20": _neighborhood(20, 4),
    "near": (
        """
      %distance = arith.subi %kv_idx, %q_idx : i32
      %apart = math.absi %distance : i32
      %size = arith.constant 17 : i32
      %r = arith.cmpi slt, %apart, %size : i32""",
        lambda b, h, i, j, nq, nk: abs(j - i) < 17,
    ),
    "near_without_sign": (
        _POSITION
        + """
      %distance = arith.subi %pos, %kv_idx : i32
      %nine = arith.constant 9 : i32
      %behind = arith.addi %distance, %nine : i32
      %size = arith.constant 150 : i32
      %r = arith.cmpi ule, %behind, %size : i32""",
        lambda b, h, i, j, nq, nk: (0 <= i + nk - nq - j + 9) & (i + nk - nq - j + 9 <= 150),
    ),
    # A bound that can't be added to the position in 32 bits.
    "any_distance": (
        """
      %distance = arith.subi %kv_idx, %q_idx : i32
      %most = arith.constant 2147483647 : i32
      %least = arith.constant -40 : i32
      %c0 = arith.cmpi sle, %distance, %most : i32
      %c1 = arith.cmpi sgt, %distance, %least : i32
      %r = arith.andi %c0, %c1 : i1""",
        lambda b, h, i, j, nq, nk: j - i > -40,
    ),
    # Sums that wrap, and so hide every key.
    "wraps": (
        """
      %most = arith.constant 2147483647 : i32
      %far = arith.addi %q_idx, %most : i32
      %c0 = arith.cmpi sle, %kv_idx, %far : i32
      %zero = arith.constant 0 : i32
      %is_first = arith.cmpi eq, %q_idx, %zero : i32
      %r = arith.ori %c0, %is_first : i1""",
        lambda b, h, i, j, nq, nk: i == 0,
    ),
    "first_and_last": (
        _POSITION
        + """
      %four = arith.constant 4 : i32
      %size = arith.constant 30 : i32
      %first = arith.subi %pos, %size : i32
      %c0 = arith.cmpi ult, %kv_idx, %four : i32
      %c1 = arith.cmpi sge, %kv_idx, %first : i32
      %c2 = arith.cmpi sge, %pos, %kv_idx : i32
      %c3 = arith.ori %c0, %c1 : i1
      %r = arith.andi %c2, %c3 : i1""",
        lambda b, h, i, j, nq, nk: ((j < 4) | (j >= i + nk - nq - 30)) & (j <= i + nk - nq),
    ),
    "chunks": (
        """
      %size = arith.constant 70 : i32
      %a = arith.divsi %q_idx, %size : i32
      %d = arith.floordivsi %kv_idx, %size : i32
      %c0 = arith.cmpi eq, %d, %a : i32
      %first = arith.constant 2 : i32
      %c1 = arith.cmpi slt, %d, %first : i32
      %r = arith.ori %c0, %c1 : i1""",
        lambda b, h, i, j, nq, nk: (j // 70 == i // 70) | (j // 70 < 2),
    ),
    # Of quotients and remainders that no key has.
    "no_quotient": (
        """
      %size = arith.constant 60 : i32
      %a = arith.divsi %kv_idx, %size : i32
      %d = arith.remsi %kv_idx, %size : i32
      %three = arith.constant 3 : i32
      %least = arith.subi %a, %three : i32
      %sixty = arith.constant 60 : i32
      %c0 = arith.cmpi slt, %a, %least : i32
      %below = arith.subi %q_idx, %sixty : i32
      %c1 = arith.cmpi sgt, %d, %below : i32
      %c2 = arith.cmpi sge, %a, %below : i32
      %c3 = arith.andi %c1, %c2 : i1
      %r = arith.ori %c0, %c3 : i1""",
        lambda b, h, i, j, nq, nk: (j % 60 > i - 60) & (j // 60 >= i - 60),
    ),
    "scattered_in_window": (
        """
      %size = arith.constant 90 : i32
      %two = arith.constant 2 : i32
      %zero = arith.constant 0 : i32
      %distance = arith.subi %q_idx, %kv_idx : i32
      %odd = arith.remsi %distance, %two : i32
      %c0 = arith.cmpi eq, %odd, %zero : i32
      %c1 = arith.cmpi sge, %distance, %zero : i32
      %c2 = arith.cmpi slt, %distance, %size : i32
      %c3 = arith.andi %c1, %c2 : i1
      %r = arith.andi %c0, %c3 : i1""",
        lambda b, h, i, j, nq, nk: ((i - j) % 2 == 0) & (j <= i) & (i - j < 90),
    ),
}

MASKS = {
    **KEY_INTERVALS,
    "causal": (
        _POSITION
        + """
      %r = arith.cmpi sle, %kv_idx, %pos : i32""",
        lambda b, h, i, j, nq, nk: j <= i + nk - nq,
    ),
    "causal_top_left": (
        """
      %r = arith.cmpi sle, %kv_idx, %q_idx : i32""",
        lambda b, h, i, j, nq, nk: j <= i,
    ),
    "window": _window(32, 16),
    "window_32_64": _window(32, 64),
    "window_past_the_end": _window(8, 4096),
    # Only keys i-9 .. i: late rows see their first key tile fully hidden.
    "last_10": _window(9, 0),
    "prefix": (
        _POSITION
        + """
      %prefix = arith.constant 20 : i32
      %c0 = arith.cmpi slt, %kv_idx, %prefix : i32
      %c1 = arith.cmpi sle, %kv_idx, %pos : i32
      %r = arith.ori %c0, %c1 : i1""",
        lambda b, h, i, j, nq, nk: (j < 20) | (j <= i + nk - nq),
    ),
    # No structure that an analysis could use; differs by batch and head.
    "scattered": (
        """
      %c3 = arith.constant 3 : i32
      %a = arith.addi %q_idx, %kv_idx : i32
      %ab = arith.addi %a, %b : i32
      %abh = arith.addi %ab, %h : i32
      %m = arith.remsi %abh, %c3 : i32
      %zero = arith.constant 0 : i32
      %r = arith.cmpi ne, %m, %zero : i32""",
        lambda b, h, i, j, nq, nk: (i + j + b + h) % 3 != 0,
    ),
    "all_hidden": (
        """
      %r = arith.constant false""",
        lambda b, h, i, j, nq, nk: False,
    ),
    "last_row_hidden": (
        """
      %ql = attn.q_len : i32
      %one = arith.constant 1 : i32
      %last = arith.subi %ql, %one : i32
      %r = arith.cmpi ne, %q_idx, %last : i32""",
        lambda b, h, i, j, nq, nk: i != nq - 1,
    ),
    "top_left_4x4": (
        """
      %four = arith.constant 4 : i32
      %c0 = arith.cmpi slt, %q_idx, %four : i32
      %c1 = arith.cmpi slt, %kv_idx, %four : i32
      %r = arith.andi %c0, %c1 : i1""",
        lambda b, h, i, j, nq, nk: (i < 4) & (j < 4),
    ),
    "key_1_hidden": _key_is_not(1),
    # Divides by zero in the row behind the last one, which a tile reaches.
    "divides_by_rows_left": (
        """
      %ql = attn.q_len : i32
      %left = arith.subi %ql, %q_idx : i32
      %a = arith.divsi %kv_idx, %left : i32
      %c3 = arith.constant 3 : i32
      %r = arith.cmpi sle, %a, %c3 : i32""",
        lambda b, h, i, j, nq, nk: j // (nq - i) <= 3,
    ),
    "document": (
        """
      %size = arith.constant 50 : i32
      %a = arith.divui %q_idx, %size : i32
      %d = arith.divui %kv_idx, %size : i32
      %c0 = arith.cmpi eq, %a, %d : i32
      %c1 = arith.cmpi sle, %kv_idx, %q_idx : i32
      %r = arith.andi %c0, %c1 : i1""",
        lambda b, h, i, j, nq, nk: (i // 50 == j // 50) & (j <= i),
    ),
    "index_arithmetic": (
        """
      %qi = arith.index_cast %q_idx : i32 to index
      %ki = arith.index_cast %kv_idx : i32 to index
      %c3 = arith.constant 3 : index
      %last = arith.addi %qi, %c3 : index
      %r = arith.cmpi sle, %ki, %last : index""",
        lambda b, h, i, j, nq, nk: j <= i + 3,
    ),
}


def _bias(dims, dtype):
    """An additive bias, every dimension of which is that of the scores or 1."""
    convert = "" if dtype == "f32" else f"\n      %f = arith.extf %x : {dtype} to f32"
    body = (
        f"""
      %x = attn.capture_load %bias[%b, %h, %q_idx, %kv_idx] : {{bias}} -> {dtype}{convert}
      %r = arith.addf %s, %{"x" if dtype == "f32" else "f"} : f32"""
    )
    return (body, lambda s, b, h, i, j, nq, nk, bias: s + bias, {"bias": Capture(dtype, dims)})


for _dims in ("bhqk", "1hqk", "b1qk", "b11k", "1h1k", "11qk", "bh11", "b1q1", "1111"):
    for _dtype in ("f32", "f16", "bf16"):
        SCORES[f"bias_{_dims}_{_dtype}"] = _bias(tuple(int(d) if d == "1" else d for d in _dims), _dtype)


SCORES.update(
    {
        # In a dimension of size 1 every index reads the one element.
        "constant_indices": (
            """
      %c0 = arith.constant 0 : i32
      %c5 = arith.constant 5 : i32
      %x = attn.capture_load %table[%c5, %c5] : {table} -> f32
      %y = attn.capture_load %first[%c0, %kv_idx] : {first} -> f32
      %z = arith.addf %s, %x : f32
      %r = arith.addf %z, %y : f32""",
            lambda s, b, h, i, j, nq, nk, table, first: s + table[5, 0] + first[0, j],
            {"table": Capture("f32", (6, 1)), "first": Capture("f32", ("b", "k"))},
        ),
        # Every type that a rule may compute with.
        "types": (
            """
      %k8 = arith.trunci %kv_idx : i32 to i8
      %q16 = arith.trunci %q_idx : i32 to i16
      %c300 = arith.constant 300 : i16
      %p16 = arith.muli %q16, %c300 : i16
      %kw = arith.extsi %k8 : i8 to i16
      %sum16 = arith.addi %p16, %kw : i16
      %q64 = arith.extsi %q_idx : i32 to i64
      %c40 = arith.constant 40 : i64
      %far = arith.shli %q64, %c40 : i64
      %near64 = arith.shrsi %far, %c40 : i64
      %near = arith.trunci %near64 : i64 to i32
      %ki = arith.index_cast %kv_idx : i32 to index
      %c2 = arith.constant 2 : index
      %twice = arith.muli %ki, %c2 : index
      %k2 = arith.index_cast %twice : index to i32
      %odd = arith.trunci %kv_idx : i32 to i1
      %kf16 = arith.sitofp %k8 : i8 to f16
      %half = arith.constant 0.5 : f16
      %f = arith.mulf %kf16, %half : f16
      %f32 = arith.extf %f : f16 to f32
      %one = arith.constant 1.0 : bf16
      %none = arith.constant 0.0 : bf16
      %parity = arith.select %odd, %one, %none : bf16
      %bf32 = arith.extf %parity : bf16 to f32
      %sum32 = arith.extsi %sum16 : i16 to i32
      %d = arith.subi %sum32, %near : i32
      %e = arith.addi %d, %k2 : i32
      %ef = arith.sitofp %e : i32 to f32
      %small = arith.constant 1.0e-4 : f32
      %g = arith.mulf %ef, %small : f32
      %tenth = arith.constant 0.01 : f32
      %fs = arith.mulf %f32, %tenth : f32
      %a = arith.addf %g, %fs : f32
      %c = arith.addf %a, %bf32 : f32
      %r = arith.addf %s, %c : f32""",
            lambda s, b, h, i, j, nq, nk: s
            + 1e-4 * (_signed(i * 300 + _signed(j, 8), 16) - i + 2 * j)
            + 0.005 * _signed(j, 8)
            + j % 2,
        ),
    }
)


def _signed(x, bits):
    """What is left of an integer in so many bits."""
    half = 2 ** (bits - 1)
    return (x + half) % (2 * half) - half


def _head_slopes(random, shape, case):
    """Steep both ways, none, and gentle."""
    return np.resize(np.array([12.0, -7.5, 0.0, 0.03125, -1.0, 300.0], np.float32), shape)


# Terms that rise or fall with the key alone.
KEY_RAMPS = {
    "head_slopes": (
        _POSITION
        + """
      %slope = attn.capture_load %slopes[%h] : {slopes} -> f32
      %d = arith.subi %pos, %kv_idx : i32
      %df = arith.sitofp %d : i32 to f32
      %bias = arith.mulf %df, %slope : f32
      %r = arith.subf %s, %bias : f32""",
        lambda s, b, h, i, j, nq, nk, slopes: s - slopes[h] * (i + nk - nq - j),
        {"slopes": Capture("f32", ("h",), _head_slopes)},
    ),
    "rising": (
        """
      %two = arith.constant 2.0 : f32
      %c9 = arith.constant 9 : i32
      %k9 = arith.addi %kv_idx, %c9 : i32
      %kf = arith.sitofp %k9 : i32 to f32
      %step = arith.constant 0.4 : f32
      %a = arith.mulf %s, %two : f32
      %c = arith.mulf %step, %kf : f32
      %r = arith.addf %a, %c : f32""",
        lambda s, b, h, i, j, nq, nk: 2 * s + 0.4 * (j + 9),
    ),
    "falling": (
        """
      %q2 = arith.addi %q_idx, %q_idx : i32
      %c5 = arith.constant 5 : i32
      %d = arith.subi %c5, %kv_idx : i32
      %dq = arith.addi %d, %q2 : i32
      %df = arith.sitofp %dq : i32 to f32
      %r = arith.addf %df, %s : f32""",
        lambda s, b, h, i, j, nq, nk: s + 5 - j + 2 * i,
    ),
}
SCORES.update(KEY_RAMPS)


def _t5_bucket(d):
    """The public bidirectional rule of 32 buckets up to a distance of 128."""
    n = abs(d)
    with np.errstate(divide="ignore"):
        far = 8 + (np.log(np.maximum(n, 1) / 8) / np.log(128 / 8) * 8).astype(np.int64)
    return np.where(d > 0, 16, 0) + np.where(n < 8, n, np.minimum(far, 15))


def _lowest_row_0(random, shape, case):
    x = random.standard_normal(shape)
    x[..., 0, :] = np.finfo(np.float32).min
    return x


def _hides_some(random, shape, case):
    x = np.where(random.random(shape) < 0.3, -np.inf, random.standard_normal(shape))
    x[..., 1:2, :] = -np.inf
    return x


def _top_left_4x4(random, shape, case):
    x = np.zeros(shape)
    x[..., :4, :4] = 1
    return x


def _last_row_false(random, shape, case):
    x = np.ones(shape)
    x[..., -1, :] = 0
    return x


# Tensors with values that were misread elsewhere.
for _name, _make in (("lowest_row_0", _lowest_row_0), ("hides_some", _hides_some), ("4x4", _top_left_4x4)):
    _rule = _bias((1, 1, "q", "k"), "f32")
    SCORES["bias_" + _name] = (*_rule[:2], {"bias": Capture("f32", (1, 1, "q", "k"), _make)})


def _documents(random, shape, case):
    return np.sort(random.integers(0, 5, shape), axis=-1)


def _wide_documents(random, shape, case):
    numbers = np.array([-(2**40), 2**33, 2**33 + 1, 2**34, 5])
    return np.repeat(random.permutation(numbers), -(-shape[0] // 5))[: shape[0]]


def _last_rows(random, shape, case):
    # Runs of keys share a row.
    rows = random.integers(0, case[3] + 1, shape)
    return rows[..., np.arange(shape[-1]) // 50 * 50]


def _blocks(random, shape, case):
    squares = random.integers(0, 3, (shape[0], -(-shape[1] // 64), -(-shape[2] // 64)))
    squares = squares.repeat(64, 1).repeat(64, 2)[:, : shape[1], : shape[2]]
    return (squares == 2) | ((squares == 1) & (random.random(shape) < 0.5))


def _shuffled_documents(random, shape, case):
    # Pieces of a few documents in any order, each one again and again.
    pieces = random.integers(0, 4, (*shape[:-1], -(-shape[-1] // 48)))
    return pieces.repeat(48, -1)[..., : shape[-1]]


def _steps(random, shape, case):
    return np.sort(random.integers(-20, 40, shape))


SCORES.update(
    {
        # Slopes of any kind, i64 lengths and i8 switches, converted.
        "alibi_slopes": (
            _POSITION
            + """
      %slope = attn.capture_load %slopes[%h] : {slopes} -> f32
      %d = arith.subi %kv_idx, %pos : i32
      %df = arith.sitofp %d : i32 to f32
      %x = arith.mulf %slope, %df : f32
      %r = arith.addf %s, %x : f32""",
            lambda s, b, h, i, j, nq, nk, slopes: s + slopes[h] * (j - (i + nk - nq)),
            {"slopes": Capture("f32", ("h",), lambda random, shape, case: 0.5 ** np.arange(1, shape[0] + 1))},
        ),
        "head_softcap": (
            """
      %cap = attn.capture_load %caps[%h] : {caps} -> f32
      %a = arith.divf %s, %cap : f32
      %t = math.tanh %a : f32
      %r = arith.mulf %t, %cap : f32""",
            lambda s, b, h, i, j, nq, nk, caps: caps[h] * np.tanh(s / caps[h]),
            {"caps": Capture("f32", ("h",), lambda random, shape, case: np.arange(2.0, shape[0] + 2))},
        ),
        # A table by head and clipped distance: a gather for each element.
        "relative_table": (
            """
      %c8 = arith.constant 8 : i32
      %c16 = arith.constant 16 : i32
      %zero = arith.constant 0 : i32
      %d = arith.subi %kv_idx, %q_idx : i32
      %d8 = arith.addi %d, %c8 : i32
      %low = arith.maxsi %d8, %zero : i32
      %at = arith.minsi %low, %c16 : i32
      %x = attn.capture_load %table[%h, %at] : {table} -> bf16
      %f = arith.extf %x : bf16 to f32
      %r = arith.addf %s, %f : f32""",
            lambda s, b, h, i, j, nq, nk, table: s + table[h, np.clip(j - i + 8, 0, 16)],
            {"table": Capture("bf16", ("h", 17))},
        ),
        # The same without clipping: 0 outside of the table.
        "relative_outside": (
            """
      %c8 = arith.constant 8 : i32
      %d = arith.subi %kv_idx, %q_idx : i32
      %at = arith.addi %d, %c8 : i32
      %x = attn.capture_load %table[%h, %at] : {table} -> f16
      %f = arith.extf %x : f16 to f32
      %r = arith.addf %s, %f : f32""",
            lambda s, b, h, i, j, nq, nk, table: s
            + np.where(abs(j - i) <= 8, table[h, np.clip(j - i + 8, 0, 16)], 0),
            {"table": Capture("f16", ("h", 17))},
        ),
        # One capture's element indexes another: by row, by column and by both.
        "nested_table": (
            """
      %a = attn.capture_load %rows[%q_idx] : {rows} -> i32
      %k = attn.capture_load %columns[%b, %kv_idx] : {columns} -> i64
      %c = arith.trunci %k : i64 to i32
      %x = attn.capture_load %table[%a, %c] : {table} -> f32
      %r = arith.addf %s, %x : f32""",
            lambda s, b, h, i, j, nq, nk, rows, columns, table: s + table[rows[i], columns[b, j]],
            {
                "rows": Capture("i32", ("q",), lambda random, shape, case: random.integers(0, 6, shape)),
                "columns": Capture("i64", ("b", "k"), lambda random, shape, case: random.integers(0, 7, shape)),
                "table": Capture("f32", (6, 7)),
            },
        ),
    }
)


def _bool_mask(dims, dtype):
    zero = "" if dtype == "i1" else f"\n      %zero = arith.constant 0 : {dtype}"
    test = "" if dtype == "i1" else f"\n      %r = arith.cmpi ne, %x, %zero : {dtype}"
    result = "r" if dtype == "i1" else "x"
    body = f"""
      %{result} = attn.capture_load %keep[%b, %h, %q_idx, %kv_idx] : {{keep}} -> {dtype}{zero}{test}"""

    def make(random, shape, case):
        return random.random(shape) < 0.6

    return (body, lambda b, h, i, j, nq, nk, keep: keep != 0, {"keep": Capture(dtype, dims, make)})


for _dims in ("bhqk", "b11k", "11qk"):
    for _dtype in ("i1", "i8"):
        MASKS[f"keep_{_dims}_{_dtype}"] = _bool_mask(tuple(int(d) if d == "1" else d for d in _dims), _dtype)

for _name, _make in (("4x4", _top_left_4x4), ("last_row_false", _last_row_false)):
    _rule = _bool_mask((1, 1, "q", "k"), "i1")
    MASKS["keep_" + _name] = (*_rule[:2], {"keep": Capture("i1", (1, 1, "q", "k"), _make)})

MASKS.update(
    {
        "key_padding": (
            """
      %n = attn.capture_load %lens[%b] : {lens} -> i32
      %r = arith.cmpi slt, %kv_idx, %n : i32""",
            lambda b, h, i, j, nq, nk, lens: j < lens[b],
            {"lens": Capture("i32", ("b",), lambda random, shape, case: random.integers(0, case[4] + 1, shape))},
        ),
        # Some lengths are known to the case.
        "keys_before_40": (
            """
      %n = attn.capture_load %lens[%b] : {lens} -> i32
      %r = arith.cmpi slt, %kv_idx, %n : i32""",
            lambda b, h, i, j, nq, nk, lens: j < lens[b],
            {"lens": Capture("i32", ("b",), lambda random, shape, case: np.minimum(40 - 17 * np.arange(shape[0]), 40))},
        ),
        "keys_from_40_hidden": (
            """
      %n = attn.capture_load %lens[%b] : {lens} -> i64
      %key = arith.extsi %kv_idx : i32 to i64
      %after = arith.cmpi sge, %key, %n : i64
      %is_second = arith.cmpi eq, %kv_idx, %q_idx : i32
      %c0 = arith.ori %after, %is_second : i1
      %true = arith.constant true
      %r = arith.xori %c0, %true : i1""",
            lambda b, h, i, j, nq, nk, lens: (j < lens[b]) & (j != i),
            {"lens": Capture("i64", ("b",), lambda random, shape, case: 40 - 17 * np.arange(shape[0]))},
        ),
        "keys_to_39": (
            _POSITION
            + """
      %last = arith.constant 39 : i32
      %c0 = arith.cmpi sge, %last, %kv_idx : i32
      %c1 = arith.cmpi sge, %kv_idx, %q_idx : i32
      %r = arith.andi %c0, %c1 : i1""",
            lambda b, h, i, j, nq, nk: (j <= 39) & (j >= i),
        ),
        "causal_key_padding": (
            _POSITION
            + """
      %n64 = attn.capture_load %lens[%b] : {lens} -> i64
      %n = arith.trunci %n64 : i64 to i32
      %c0 = arith.cmpi slt, %kv_idx, %n : i32
      %c1 = arith.cmpi sle, %kv_idx, %pos : i32
      %r = arith.andi %c0, %c1 : i1""",
            lambda b, h, i, j, nq, nk, lens: (j < lens[b]) & (j <= i + nk - nq),
            {"lens": Capture("i64", ("b",), lambda random, shape, case: random.integers(0, case[4] + 1, shape))},
        ),
        "documents": (
            """
      %a = attn.capture_load %of_query[%b, %q_idx] : {of_query} -> i32
      %d = attn.capture_load %of_key[%b, %kv_idx] : {of_key} -> i32
      %c0 = arith.cmpi eq, %a, %d : i32
      %c1 = arith.cmpi sle, %kv_idx, %q_idx : i32
      %r = arith.andi %c0, %c1 : i1""",
            lambda b, h, i, j, nq, nk, of_query, of_key: (of_query[b, i] == of_key[b, j]) & (j <= i),
            {"of_query": Capture("i32", ("b", "q"), _documents), "of_key": Capture("i32", ("b", "k"), _documents)},
        ),
        # Numbers beyond i32, in any order.
        "wide_documents": (
            """
      %a = attn.capture_load %of_query[%q_idx] : {of_query} -> i64
      %d = attn.capture_load %of_key[%kv_idx] : {of_key} -> i64
      %r = arith.cmpi eq, %a, %d : i64""",
            lambda b, h, i, j, nq, nk, of_query, of_key: of_query[i] == of_key[j],
            {"of_query": Capture("i64", ("q",), _wide_documents), "of_key": Capture("i64", ("k",), _wide_documents)},
        ),
        # As Ernie's sparse mask: a row per key from which on queries don't see it.
        "hidden_from_row": (
            """
      %first = attn.capture_load %rows[%b, %h, %kv_idx] : {rows} -> i32
      %c0 = arith.cmpi slt, %q_idx, %first : i32
      %c1 = arith.cmpi sge, %q_idx, %kv_idx : i32
      %r = arith.andi %c0, %c1 : i1""",
            lambda b, h, i, j, nq, nk, rows: (i < rows[b, h, j]) & (i >= j),
            {"rows": Capture("i32", ("b", "h", "k"), _last_rows)},
        ),
        # A prefix of each sequence in both directions, causal behind it.
        "prefix_lengths": (
            _POSITION
            + """
      %n = attn.capture_load %lens[%b, %q_idx] : {lens} -> i8
      %e = arith.extsi %n : i8 to i32
      %c0 = arith.cmpi slt, %kv_idx, %e : i32
      %c1 = arith.cmpi sle, %kv_idx, %pos : i32
      %r = arith.ori %c0, %c1 : i1""",
            lambda b, h, i, j, nq, nk, lens: (j < lens[b, i]) | (j <= i + nk - nq),
            {"lens": Capture("i8", ("b", "q"), lambda random, shape, case: random.integers(-3, 127, shape))},
        ),
        # Squares of the mask, some empty, some full.
        "keep_blocks": (
            """
      %r = attn.capture_load %keep[%b, %q_idx, %kv_idx] : {keep} -> i1""",
            lambda b, h, i, j, nq, nk, keep: keep[b, i, j],
            {"keep": Capture("i1", ("b", "q", "k"), _blocks)},
        ),
        # What is read is computed with, compared without a sign, and chosen from.
        "computed_tables": (
            """
      %a = attn.capture_load %xs[%q_idx] : {xs} -> i32
      %d = attn.capture_load %ys[%kv_idx] : {ys} -> i32
      %c3 = arith.constant 3 : i32
      %c7 = arith.constant 7 : i32
      %zero = arith.constant 0 : i32
      %m = arith.muli %a, %d : i32
      %q = arith.divsi %m, %c7 : i32
      %e = arith.remsi %q, %c3 : i32
      %n = arith.subi %zero, %e : i32
      %abs = arith.maxsi %e, %n : i32
      %even = arith.cmpi eq, %abs, %zero : i32
      %near = arith.cmpi ult, %d, %c7 : i32
      %far = arith.cmpi slt, %a, %d : i32
      %r = arith.select %even, %near, %far : i1""",
            lambda b, h, i, j, nq, nk, xs, ys: np.where(
                np.abs(np.fix(xs[i] * ys[j] / 7)) % 3 == 0, (0 <= ys[j]) & (ys[j] < 7), xs[i] < ys[j]
            ),
            {"xs": Capture("i32", ("q",), _steps), "ys": Capture("i32", ("k",), _steps)},
        ),
    }
)


def _neighborhood(width, radius):
    """Pixels at most `radius` away in both directions, in an image with rows of `width`."""
    body = f"""
      %width = arith.constant {width} : i32
      %radius = arith.constant {radius} : i32
      %q_row = arith.divsi %q_idx, %width : i32
      %k_row = arith.divsi %kv_idx, %width : i32
      %q_column = arith.remsi %q_idx, %width : i32
      %k_column = arith.remsi %kv_idx, %width : i32
      %d_row = arith.subi %q_row, %k_row : i32
      %d_column = arith.subi %q_column, %k_column : i32
      %abs_row = math.absi %d_row : i32
      %abs_column = math.absi %d_column : i32
      %c0 = arith.cmpi sle, %abs_row, %radius : i32
      %c1 = arith.cmpi sle, %abs_column, %radius : i32
      %r = arith.andi %c0, %c1 : i1"""
    return (
        body,
        lambda b, h, i, j, nq, nk: (abs(i // width - j // width) <= radius) & (abs(i % width - j % width) <= radius),
    )


for _width, _radius in ((96, 3), (200, 2), (256, 1)):
    MASKS[f"neighborhood_{_width}"] = _neighborhood(_width, _radius)


def _widths(random, shape, case):
    """Of blocks; 0: there are none, and everything is visible."""
    return np.resize(np.array([37, 0, 150], np.int32), shape)


# Both positions divided by a number that only the capture knows, which may be 0.
MASKS["captured_blocks"] = (
    """
      %w = attn.capture_load %widths[%b] : {widths} -> i32
      %zero = arith.constant 0 : i32
      %whole = arith.cmpi eq, %w, %zero : i32
      %qb = arith.divsi %q_idx, %w : i32
      %kb = arith.divsi %kv_idx, %w : i32
      %same = arith.cmpi eq, %qb, %kb : i32
      %r = arith.ori %whole, %same : i1""",
    lambda b, h, i, j, nq, nk, widths: (widths[b] == 0) | (i // np.maximum(widths[b], 1) == j // np.maximum(widths[b], 1)),
    {"widths": Capture("i32", ("b",), _widths)},
)

MASKS.update(
    {
        # The first keys for all, and a window.
        "window_and_first": (
            _POSITION
            + """
      %c4 = arith.constant 4 : i32
      %c60 = arith.constant 60 : i32
      %d = arith.subi %pos, %kv_idx : i32
      %c0 = arith.cmpi ult, %d, %c60 : i32
      %c1 = arith.cmpi slt, %kv_idx, %c4 : i32
      %r = arith.ori %c0, %c1 : i1""",
            lambda b, h, i, j, nq, nk: ((i + nk - nq - j >= 0) & (i + nk - nq - j < 60)) | (j < 4),
        ),
        # What only the numbers say.
        "nothing": (
            """
      %c2 = arith.constant 2 : i32
      %rest = arith.remsi %kv_idx, %c2 : i32
      %r = arith.cmpi sge, %rest, %c2 : i32""",
            lambda b, h, i, j, nq, nk: False & (j < 0),
        ),
        # Every 150th key: whole tiles between them are hidden.
        "strided": (
            """
      %c150 = arith.constant 150 : i32
      %c2 = arith.constant 2 : i32
      %d = arith.subi %kv_idx, %q_idx : i32
      %abs = math.absi %d : i32
      %rest = arith.remsi %abs, %c150 : i32
      %r = arith.cmpi slt, %rest, %c2 : i32""",
            lambda b, h, i, j, nq, nk: abs(j - i) % 150 < 2,
        ),
        "shuffled_documents": (
            """
      %a = attn.capture_load %of_query[%b, %q_idx] : {of_query} -> i32
      %d = attn.capture_load %of_key[%b, %kv_idx] : {of_key} -> i32
      %r = arith.cmpi eq, %a, %d : i32""",
            lambda b, h, i, j, nq, nk, of_query, of_key: of_query[b, i] == of_key[b, j],
            {
                "of_query": Capture("i32", ("b", "q"), _shuffled_documents),
                "of_key": Capture("i32", ("b", "k"), _shuffled_documents),
            },
        ),
        # Squares of each head's own mask, and numbers that hide what is not above 0.
        "keep_blocks_of_heads": (
            """
      %r = attn.capture_load %keep[%h, %q_idx, %kv_idx] : {keep} -> i1""",
            lambda b, h, i, j, nq, nk, keep: keep[h, i, j],
            {"keep": Capture("i1", ("h", "q", "k"), _blocks)},
        ),
        "positive_blocks": (
            """
      %x = attn.capture_load %weights[%q_idx, %kv_idx] : {weights} -> f16
      %zero = arith.constant 0.0 : f16
      %r = arith.cmpf ogt, %x, %zero : f16""",
            lambda b, h, i, j, nq, nk, weights: weights[i, j] > 0,
            {
                "weights": Capture(
                    "f16", ("q", "k"), lambda random, shape, case: 2.0 * _blocks(random, (1, *shape), case)[0] - 1
                )
            },
        ),
    }
)


def source(
    dtype, heads, kv_heads, dims, score=None, mask=None, scale=None, lse=False, static=None, sink=None, sequences=None,
    quantized=None,
    schedule=None
):
    """One function `attention` of q, k, v, with dynamic batch and lengths or `static` ones.

    dims: the head dimensions of q and k, and of v.
    sink: the element type of the sinks; they come after the captures.
    sequences: their form (sequences.py); the operands come after the sinks.
    quantized: the other types and the scales beside q of 8 bits (quantized.py).
    schedule: the parameters of an #attn.schedule.
    """
    batch, nq, nk = static or "???"
    (batch, nq), (kv_batch, nk) = sequences.type_sizes() if sequences else ((batch, nq), (batch, nk))
    dtypes = (quantized.k_dtype, quantized.v_dtype, quantized.o_dtype) if quantized else (dtype,) * 3
    tq, to = (f"tensor<{batch}x{heads}x{nq}x{dim}x{t}>" for dim, t in zip(dims, (dtype, dtypes[2])))
    tk, tv = (f"tensor<{kv_batch}x{kv_heads}x{nk}x{dim}x{t}>" for dim, t in zip(dims, dtypes))
    scales = quantized.operands(batch, heads, kv_heads) if quantized else {}
    tl = f"tensor<{batch}x{heads}x{nq}xf32>"
    lengths = sequences.operands() if sequences else {}
    outs = [("o", to)] + ([("lse", tl)] if lse else [])
    captures = {
        name: capture.type(heads, static)
        for rule in (SCORES.get(score), MASKS.get(mask))
        for name, capture in get_captures(rule).items()
    }
    args = [("q", tq), ("k", tk), ("v", tv)] + list(captures.items())
    args += [("sink", f"tensor<{heads}x{sink}>")] if sink else []
    args += lengths.items()
    args += scales.items()
    args += outs
    types = ", ".join(t for _, t in outs)
    text = "func.func @attention("
    text += ", ".join(f'%{n}: {t} {{attn.name = "{n}"}}' for n, t in args)
    text += f") -> ({types}) {{\n  %result{':2' if lse else ''} = attn.attention\n"
    names = "".join(f", %{name}" for name in captures)
    text += f"      ins(%q, %k, %v{names} : {', '.join([tq, tk, tv, *captures.values()])})\n"
    text += f"      sink(%sink : tensor<{heads}x{sink}>)\n" if sink else ""
    text += "".join(f"      {name}(%{name} : {type})\n" for name, type in lengths.items())
    text += "".join(f"      {name}(%{name} : {type})\n" for name, type in scales.items())
    text += f"      outs({', '.join('%' + n for n, _ in outs)} : {types})\n"
    attributes = [] if scale is None else [f"scale = {scale:.9e} : f32"]
    attributes += [f"schedule = #attn.schedule<{schedule}>"] if schedule else []
    if attributes:
        text += f"      {{{', '.join(attributes)}}}\n"
    index = "%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32"
    index += "".join(f", %{name}: {type}" for name, type in captures.items())

    def body(rule):
        result = rule[0]
        for name, type in captures.items():
            result = result.replace("{" + name + "}", type)
        return result

    if score:
        text += f"    score_mod (%s: f32, {index}) {{{body(SCORES[score])}\n      attn.yield %r : f32\n    }}\n"
    if mask:
        text += f"    mask_mod ({index}) {{{body(MASKS[mask])}\n      attn.yield %r : i1\n    }}\n"
    text += f"    -> {types}\n"
    returned = "%result#0, %result#1" if lse else "%result"
    return text + f"  return {returned} : {types}\n}}\n"

MASKS.update(
    {
        # Heads of small weight are causal, the others see everything.
        "heads_by_float": (
            _POSITION
            + """
      %limit = arith.constant 0.25 : f32
      %weight = attn.capture_load %weights[%h] : {weights} -> f32
      %square = arith.mulf %weight, %weight : f32
      %c0 = arith.cmpf ogt, %square, %limit : f32
      %c1 = arith.cmpi sle, %kv_idx, %pos : i32
      %r = arith.ori %c0, %c1 : i1""",
            lambda b, h, i, j, nq, nk, weights: (weights[h] ** 2 > 0.25) | (j <= i + nk - nq),
            {"weights": Capture("f32", ("h",), lambda random, shape, case: np.arange(shape[0]) / 4)},
        ),
    }
)

SCORES.update(
    {
        # Every third query sees nothing, by a score of -inf.
        "row_bias": (
            """
          %x = attn.capture_load %rows[%b, %h, %q_idx] : {rows} -> f32
          %r = arith.addf %s, %x : f32""",
            lambda s, b, h, i, j, nq, nk, rows: s + rows[b, h, i],
            {
                "rows": Capture(
                    "f32",
                    ("b", "h", "q"),
                    lambda random, shape, case: np.where(
                        np.arange(shape[2]) % 3 == 1, -np.inf, 4 * random.standard_normal(shape)
                    ),
                )
            },
        ),
    }
)
