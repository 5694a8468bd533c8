"""Runs compiled programs on the GPU under a watchdog and judges what they write.

Needs torch; everything but `Runner` works on the CPU too.
"""

import math
import os
import sys
import time
import types

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../benchmarks/gpu"))

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
# Unit roundoff: 8, 11 and 24 bits of significand.
ROUNDOFF = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-24}
# Greatest relative error of all elements together (Frobenius), as in test/Integration.
TOLERANCE = {"bf16": 3.5e-3, "f16": 4.5e-4, "f32": 3e-6}
LSE_TOLERANCE = 1e-5
DEVICE = "cuda"

# --- the oracle -------------------------------------------------------------


def _indices(batch, heads, nq, nk, device):
    x = types.SimpleNamespace(nq=nq, nk=nk)
    for dim, (name, size) in enumerate((("b", batch), ("h", heads), ("i", nq), ("j", nk))):
        shape = [1] * 4
        shape[dim] = size
        setattr(x, name, torch.arange(size, device=device).view(shape))
    x.pos = x.i + (nk - nq)
    return x


def attention(spec, q, k, v):
    """In float64: o, lse, sum_j p_j |v_j|, and the relative error that f32 allows a row's weights."""
    repeat = spec.heads // spec.kv_heads
    q, k, v = q.double(), k.double().repeat_interleave(repeat, 1), v.double().repeat_interleave(repeat, 1)
    if k.shape[2] == 0:
        o = q.new_zeros(*q.shape[:3], v.shape[3])
        return o, q.new_full(q.shape[:3], -math.inf), o, q.new_zeros(q.shape[:3])
    scale = q.shape[-1] ** -0.5 if spec.scale is None else spec.scale
    x = _indices(*q.shape[:3], k.shape[2], q.device)
    x.s = q @ k.transpose(-1, -2) * scale
    s = spec.score.function(x) if spec.score.function else x.s
    if spec.mask.function:
        s = s.masked_fill(~spec.mask.function(x), -math.inf)
    # Rounding of the score's sum and of what is made of it, and of sums over all keys.
    largest = q.norm(dim=-1) * k.norm(dim=-1).amax(-1, keepdim=True) * abs(scale)
    largest += torch.where(s.isinf(), 0.0, s).abs().amax(-1)
    weight_error = 2.0**-21 * largest + 2.0**-22 * math.sqrt(k.shape[2])
    lse = torch.logsumexp(s, -1)
    p = torch.exp(s - torch.where(lse.isinf(), 0.0, lse)[..., None])
    return p @ v, lse, p @ v.abs(), weight_error


# --- the judge --------------------------------------------------------------


class Mismatch(Exception):
    pass


def _where(bad):
    return bad.nonzero()[0].tolist()


def relative_error(actual, expected):
    norm = expected.norm().item()
    return (actual.double() - expected).norm().item() / (norm or 1.0)


def check_output(dtype, o, expected, envelope, weight_error, empty):
    """The relative error; raises Mismatch.

    Every element is held to what rounding can do: P and the result are rounded to
    the dtype, and each weight has its relative error, so that the error is a part
    of sum_j p_j |v_j|. All elements together are held to much less.
    """
    if not o.isfinite().all():
        at = _where(~o.isfinite())
        raise Mismatch(f"o{at} is {o[tuple(at)].item()} instead of {expected[tuple(at)].item():.4g}")
    if o[empty].any():
        raise Mismatch("o isn't 0 in a row that sees no key")
    difference = (o.double() - expected).abs()
    of_weights = weight_error[..., None] * envelope
    bound = 3 * ROUNDOFF[dtype] * envelope + 3 * of_weights + 1e-30
    if dtype == "f16":  # subnormal weights and results
        bound += 2.0**-18 * (1 + envelope.amax())
    if (difference > bound).any():
        at = tuple(_where(difference > bound))
        count = (difference > bound).sum().item()
        raise Mismatch(
            f"o{list(at)} is {o[at].item():.6g} instead of {expected[at].item():.6g} "
            f"(allowed: {bound[at].item():.1e}); {count} of {o.numel()} elements are wrong"
        )
    error = relative_error(o, expected)
    allowed = TOLERANCE[dtype] * (1 + 4 / math.sqrt(o.numel()))
    allowed += of_weights.norm().item() / (expected.norm().item() or 1.0)
    if error > allowed:
        raise Mismatch(f"o has a relative error of {error:.2e}, allowed: {allowed:.1e}")
    return error


def check_lse(lse, expected, weight_error, tolerance=LSE_TOLERANCE):
    """The greatest error, relative to max(1, abs(lse)); raises Mismatch."""
    empty = expected.isneginf()
    if not torch.equal(lse.isneginf(), empty) or not lse[~empty].isfinite().all():
        at = tuple(_where((lse.isneginf() != empty) | lse.isnan() | lse.isposinf()))
        raise Mismatch(f"lse{list(at)} is {lse[at].item()} instead of {expected[at].item():.6g}")
    if empty.all():
        return 0.0
    actual, expected = lse[~empty].double(), expected[~empty]
    error = (actual - expected).abs() / expected.abs().clamp(min=1)
    bad = error > tolerance + weight_error[~empty]
    if bad.any():
        raise Mismatch(f"lse is off by {error[bad].amax().item():.1e} (relative) in {bad.sum().item()} rows")
    return error.amax().item()


# --- tensors between guards -------------------------------------------------

_GUARD_BYTES = 4096
_POISON = 0xFF  # NaN in every float type


class Guarded:
    """A tensor inside of a buffer of NaNs, in one of a few layouts."""

    def __init__(self, shape, dtype, layout="bhnd", device=None):
        batch, heads, length, dim = shape
        # TMA takes rows that are a multiple of 16 bytes apart.
        row = dim + (16 // dtype.itemsize if layout == "padded" else 0)
        size = batch * heads * length * row * dtype.itemsize
        self.buffer = torch.full((size + 2 * _GUARD_BYTES,), _POISON, dtype=torch.uint8, device=device or DEVICE)
        flat = self.buffer[_GUARD_BYTES : _GUARD_BYTES + size].view(dtype)
        if layout == "bnhd":
            self.tensor = flat.view(batch, length, heads, dim).transpose(1, 2)
        else:
            self.tensor = flat.view(batch, heads, length, row)[..., :dim]

    @classmethod
    def copy_of(cls, values, layout="bhnd"):
        result = cls(values.shape, values.dtype, layout, values.device)
        result.tensor.copy_(values)
        return result

    def poison(self):
        self.buffer.fill_(_POISON)

    def take(self):
        """The values; raises Mismatch if anything around them was written. Poisons again."""
        values = self.tensor.clone(memory_format=torch.contiguous_format)
        integer = {2: torch.int16, 4: torch.int32}[values.element_size()]
        self.tensor.view(integer).fill_(-1)
        if not (self.buffer == _POISON).all():
            at = (self.buffer != _POISON).nonzero()[0].item() - _GUARD_BYTES
            self.poison()
            raise Mismatch(f"memory around the output was written, first at byte {at} from its start")
        return values


def same_bits(a, b):
    integer = {2: torch.int16, 4: torch.int32}[a.element_size()]
    return torch.equal(a.contiguous().view(integer), b.contiguous().view(integer))


def make_inputs(spec, shape, device=None):
    """q, k, v of one of the kinds in specs.INPUTS."""
    device = device or DEVICE
    generator = torch.Generator(device=device).manual_seed(shape.seed)

    def normal(heads, length, dim):
        size = (shape.batch, heads, length, dim)
        return torch.randn(size, generator=generator, device=device)

    q = normal(spec.heads, shape.nq, spec.dim)
    k = normal(spec.kv_heads, shape.nk, spec.dim)
    v = normal(spec.kv_heads, shape.nk, spec.v_dim)
    if shape.inputs == "x6":
        q, k, v = 6 * q, 6 * k, 6 * v
    elif shape.inputs == "outliers":
        tensor = (q, k, v)[shape.seed % 3]
        tensor[:, :, shape.seed // 3 % max(tensor.shape[2], 1) :][:, :, :1] *= 100
    elif shape.inputs == "equal rows":
        q, k = q[:, :, :1].expand_as(q), k[:, :, :1].expand_as(k)
    elif shape.inputs == "large v":
        v = v * 4096
    return [x.to(DTYPES[spec.dtype]) for x in (q, k, v)]


# --- the GPU ----------------------------------------------------------------


def find_gpu(target):
    """None, or why this machine can't run programs of the target."""
    if not torch.cuda.is_available():
        return "torch finds no GPU with CUDA"
    major, minor = torch.cuda.get_device_capability()
    if target == "sm_90a" and (major, minor) != (9, 0):
        return f"sm_90a needs compute capability 9.0; this GPU has {major}.{minor}"
    return None


class Dead(Exception):
    """A hang or an error that ends the process: the GPU context is lost."""


def wait(stream=None, deadline=10.0):
    """Until everything on the stream is done; raises Dead after `deadline` seconds."""
    event = torch.cuda.Event()
    event.record(stream or torch.cuda.current_stream())
    end = time.monotonic() + deadline
    try:
        while not event.query():
            if time.monotonic() > end:
                raise Dead(f"hangs: not done after {deadline:.0f} s")
            time.sleep(2e-5)
    except RuntimeError as error:
        raise Dead(f"fails: {str(error).splitlines()[0]}")


def leave(status):
    """Ends the process without waiting for the GPU, which would never answer after a hang."""
    sys.stdout.flush()
    os._exit(status)


class Runner:
    """One compiled program."""

    def __init__(self, spec, files):
        # It needs a driver, which the judge doesn't.
        from attnc_program import Program

        self.spec, self.program = spec, Program(*files)

    def outputs(self, batch, nq, layout="bhnd"):
        shape = (batch, self.spec.heads, nq)
        outputs = {"o": Guarded((*shape, self.spec.v_dim), DTYPES[self.spec.dtype], layout)}
        if self.spec.lse:
            outputs["lse"] = Guarded((*shape, 1), torch.float32)
        return outputs

    def launch(self, inputs, outputs):
        """Enqueues one run on the current stream."""
        tensors = dict(zip("qkv", inputs), o=outputs["o"].tensor)
        if "lse" in outputs:
            tensors["lse"] = outputs["lse"].tensor[..., 0]
        try:
            self.program(**tensors)
        except RuntimeError as error:
            raise Dead(f"fails: {error}")

    def forget(self):
        self.program.forget()

    def run(self, inputs, layout="bhnd"):
        """(o, lse or None), after checks that nothing else was written."""
        outputs = self.outputs(inputs[0].shape[0], inputs[0].shape[2], layout)
        self.launch(inputs, outputs)
        wait()
        lse = outputs["lse"].take()[..., 0] if "lse" in outputs else None
        return outputs["o"].take(), lse
