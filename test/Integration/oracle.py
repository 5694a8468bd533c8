"""Attention in float64, straight from its definition, and bf16 for numpy.

Shares nothing with the compiler: the score and mask rules are Python functions
of index arrays (see rules.py).
"""

import numpy as np


def attention(q, k, v, scale=None, score=None, mask=None, score_captures=None, mask_captures=None, sink=None):
    """(o, lse) of [B, H, N, D] arrays; query heads share the fewer K/V heads, and v may have a D of its own.

    The captures are what the rules take by name. sink: for each head, what one more key without a value scores.
    """
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    batch, heads, nq, dim = q.shape
    nk = k.shape[2]
    repeat = heads // k.shape[1]
    k, v = np.repeat(k, repeat, axis=1), np.repeat(v, repeat, axis=1)
    b, h, i, j = np.ogrid[:batch, :heads, :nq, :nk]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        s = q @ k.swapaxes(-1, -2) * (max(dim, 1) ** -0.5 if scale is None else scale)
        if score:
            s = score(s, b, h, i, j, nq, nk, **score_captures or {})
        visible = True if mask is None else mask(b, h, i, j, nq, nk, **mask_captures or {})
        visible = np.broadcast_to(visible, s.shape)
        s = np.where(visible, s, -np.inf)
        # Values that no query sees don't matter, NaN or not.
        v = np.where(visible.any(axis=2)[..., None], v, 0.0)
        if sink is not None:
            sinks = np.broadcast_to(sink.astype(np.float64)[:, None, None], (*s.shape[:3], 1))
            s = np.concatenate([s, sinks], axis=-1)
            v = np.concatenate([v, np.zeros_like(v, shape=(*v.shape[:2], 1, v.shape[3]))], axis=2)
        top = s.max(axis=-1, initial=-np.inf, keepdims=True)
        top = np.where(np.isinf(top), 0.0, top)
        p = np.exp(s - top)
        total = p.sum(axis=-1, keepdims=True)
        o = np.divide(p @ v, total, out=np.zeros(q.shape[:3] + v.shape[3:]), where=total > 0)
        lse = np.log(total) + top
        if sink is not None:
            # Next to an infinite sink, finite scores have no weight.
            o = np.where(np.isposinf(sinks), 0.0, o)
            lse = np.where(np.isposinf(sinks), np.inf, lse)
    return o, lse[..., 0]


def to_bf16(x):
    """Rounds to the nearest bf16, ties to even; the bits as uint16."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rounded(x, dtype):
    """`x` as a file of `dtype` would hold it."""
    return from_bf16(to_bf16(x)) if dtype == "bf16" else x.astype(NUMPY_TYPES[dtype])


def _f8_values(exponent_bits, mantissa_bits, count):
    """The nonnegative finite values of an 8-bit float, in the order of their codes."""
    codes = np.arange(count)
    exponents, mantissas = codes >> mantissa_bits, codes % (1 << mantissa_bits)
    bias = (1 << (exponent_bits - 1)) - 1
    fractions = mantissas / (1 << mantissa_bits) + (exponents > 0)
    return fractions * 2.0 ** (np.maximum(exponents, 1) - bias)


# By their bits, and as ml_dtypes calls them in .npy files. E4M3 has a NaN, E5M2 infinities.
F8_VALUES = {"f8E4M3FN": _f8_values(4, 3, 0x7F), "f8E5M2": _f8_values(5, 2, 0x7C)}
F8_DESCR = {"f8E4M3FN": "<V1", "f8E5M2": "<f1"}


def to_f8(x, dtype):
    """Rounds to the nearest value, ties to even, and saturates but for NaN; the bits as uint8."""
    values, x = F8_VALUES[dtype], np.asarray(x, dtype=np.float64)
    middles = (values[1:] + values[:-1]) / 2
    code = np.searchsorted(middles, abs(x))
    tie = middles[np.minimum(code, len(middles) - 1)] == abs(x)
    code += tie & (code % 2 == 1)
    code = np.where(np.isnan(x), 0x7F, code)
    return (code + 0x80 * np.signbit(x)).astype(np.uint8)


def from_f8(bits, dtype):
    values = F8_VALUES[dtype]
    values = np.pad(values, (0, 0x80 - len(values)), constant_values=np.nan)
    return np.where(bits < 0x80, 1.0, -1.0) * values[bits & 0x7F]


NUMPY_TYPES = {
    "f16": np.float16,
    "f32": np.float32,
    "i1": np.bool_,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}


def save(path, x, dtype, fortran=False):
    """Writes `x` as .npy and returns the values that the file holds."""
    order = np.asfortranarray if fortran else np.ascontiguousarray
    if dtype == "bf16":
        bits = order(to_bf16(x))
        np.save(path, bits.view("V2"))
        return from_bf16(bits)
    if dtype in F8_VALUES:
        bits = order(to_f8(x, dtype))
        header = {"descr": F8_DESCR[dtype], "fortran_order": bool(fortran), "shape": bits.shape}
        with open(path, "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            file.write(bits.tobytes("F" if fortran else "C"))
        return from_f8(bits, dtype)
    x = order(np.asarray(x, dtype=NUMPY_TYPES[dtype]))
    np.save(path, x)
    return x


def load(path):
    x = np.load(path)
    return from_bf16(x.view(np.uint16)) if x.dtype.kind == "V" else x
