"""Random attention operators, their schedules and their shapes. Needs no torch.

A rule is one Python function of a namespace `x` with b, h, i (query), j (key),
nq, nk, pos (the query's position if the last query meets the last key) and, for
scores, s. With torch tensors in it the function is the oracle; `trace` runs it
on symbols instead and writes MLIR. So the two can differ only in an operator of
`Symbol`, which `soak.py --self-test` compares on the CPU.
"""

import dataclasses
import random
import types
from typing import Callable, Optional

# --- rules ------------------------------------------------------------------


class Symbol:
    """A value of a body that is being written: i32, f32 or i1."""

    def __init__(self, lines, name, type):
        self.lines, self.name, self.type = lines, name, type

    def _emit(self, text, type):
        name = f"%x{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return Symbol(self.lines, name, type)

    def _operand(self, value):
        if isinstance(value, Symbol):
            return value.name
        text = f"{float(value):.9e}" if self.type == "f32" else f"{value}"
        return self._emit(f"arith.constant {text} : {self.type}", self.type).name

    def _binary(self, integer, real, other, swapped=False):
        operands = [self.name, self._operand(other)]
        if swapped:
            operands.reverse()
        op = real if self.type == "f32" else integer
        return self._emit(f"arith.{op} {', '.join(operands)} : {self.type}", self.type)

    def _compare(self, predicate, other):
        op = f"cmpf o{predicate}" if self.type == "f32" else f"cmpi {predicate}"
        return self._emit(f"arith.{op}, {self.name}, {self._operand(other)} : {self.type}", "i1")

    __add__ = __radd__ = lambda self, other: self._binary("addi", "addf", other)
    __sub__ = lambda self, other: self._binary("subi", "subf", other)
    __rsub__ = lambda self, other: self._binary("subi", "subf", other, swapped=True)
    __mul__ = __rmul__ = lambda self, other: self._binary("muli", "mulf", other)
    __truediv__ = lambda self, other: self._binary(None, "divf", other)
    # Of numbers that aren't negative: there, rounding to zero is rounding down.
    __floordiv__ = lambda self, other: self._binary("divsi", None, other)
    __mod__ = lambda self, other: self._binary("remsi", None, other)
    __and__ = lambda self, other: self._binary("andi", None, other)
    __or__ = lambda self, other: self._binary("ori", None, other)
    __xor__ = lambda self, other: self._binary("xori", None, other)
    __le__ = lambda self, other: self._compare("sle", other)
    __lt__ = lambda self, other: self._compare("slt", other)
    __ge__ = lambda self, other: self._compare("sge", other)
    __gt__ = lambda self, other: self._compare("sgt", other)
    __eq__ = lambda self, other: self._compare("eq", other)
    __ne__ = lambda self, other: self._compare("ne", other)

    # The names are torch's. Scores are f32 in a kernel, float64 in the oracle.
    def double(self):
        return self._emit(f"arith.sitofp {self.name} : i32 to f32", "f32")

    def tanh(self):
        return self._emit(f"math.tanh {self.name} : f32", "f32")

    def exp2(self):
        return self._emit(f"math.exp2 {self.name} : f32", "f32")


def trace(rule):
    """The MLIR of a rule's body."""
    lines = []
    i32 = lambda name: Symbol(lines, name, "i32")  # noqa: E731
    x = types.SimpleNamespace(b=i32("%b"), h=i32("%h"), i=i32("%q_idx"), j=i32("%kv_idx"))
    x.nq, x.nk = x.b._emit("attn.q_len : i32", "i32"), x.b._emit("attn.kv_len : i32", "i32")
    x.pos = x.i + (x.nk - x.nq)
    x.s = Symbol(lines, "%s", "f32")
    result = rule(x)
    lines.append(f"attn.yield {result.name} : {result.type}")
    return "".join(f"      {line}\n" for line in lines)


@dataclasses.dataclass(frozen=True)
class Rule:
    name: str
    function: Callable


def random_mask(rng):
    n = rng.choice
    left, right = n((0, 1, 9, 63, 64, 200, 1000)), n((-3, 0, 0, 1, 31, 128, 4096))
    size, sink = n((1, 7, 50, 64, 100, 257)), n((1, 4, 20, 64, 129))
    a, b, c, w = rng.randint(0, 5), rng.randint(1, 4), rng.randint(-300, 300), rng.randint(0, 600)
    m = rng.randint(2, 7)
    choices = (
        (f"window({left}, {right})", lambda x: (x.j >= x.pos - left) & (x.j <= x.pos + right)),
        (f"prefix({sink})", lambda x: (x.j < sink) | (x.j <= x.pos)),
        ("causal, top-left", lambda x: x.j <= x.i),
        (f"interval {a} q / {b} + {c} .. + {w}",
         lambda x: (x.j >= x.i * a // b + c) & (x.j <= x.i * a // b + (c + w))),
        (f"interval (q % {size}) * {a} .. + {w}",
         lambda x: (x.j >= x.i % size * a) & (x.j <= x.i % size * a + w)),
        (f"anti-causal interval nk - q * {a} .. + {w}",
         lambda x: (x.j >= x.nk - x.i * a) & (x.j <= x.nk - x.i * a + w)),
        (f"sink {sink} and window {left}",
         lambda x: ((x.j < sink) | (x.j >= x.pos - left)) & (x.j <= x.pos)),
        (f"document({size})", lambda x: (x.i // size == x.j // size) & (x.j <= x.i)),
        (f"blocks of {size}", lambda x: x.j // size <= x.i // size),
        (f"window of 16 (h + 1), {right}",
         lambda x: (x.j >= x.pos - (x.h + 1) * 16) & (x.j <= x.pos + right)),
        (f"lengths nk - {size} b", lambda x: x.j < x.nk - x.b * size),
        ("opaque (q ^ k) & 3", lambda x: ((x.i ^ x.j) & 3) != 0),
        (f"opaque (q + 3 k + b + h) % {m}", lambda x: (x.i + x.j * 3 + x.b + x.h) % m != 0),
        (f"causal without key {sink}", lambda x: (x.j <= x.pos) & (x.j != sink)),
        (f"rows that are multiples of {m}", lambda x: x.i % m == 0),
    )  # fmt: skip
    return Rule(*rng.choice(choices))


NO_RULE = Rule("none", None)
CAUSAL = Rule("causal", lambda x: x.j <= x.pos)


def random_score(rng):
    cap = rng.choice((0.5, 5.0, 50.0))
    choices = (
        (f"softcap({cap})", lambda x: (x.s / cap).tanh() * cap),
        ("alibi", lambda x: x.s + (x.h.double() * -0.5 - 0.5).exp2() * (x.j - x.pos).double()),
        ("relative (q - k) / 8", lambda x: x.s + (x.i - x.j).double() * 0.125),
        ("relative, by 32 buckets", lambda x: x.s + ((x.i - x.j + 65536) // 32 % 8).double() * 0.25),
        ("shifted by -120", lambda x: x.s - 120.0),
        ("negated", lambda x: x.s * -1.0),
    )
    return Rule(*rng.choice(choices))


# --- schedules --------------------------------------------------------------

_GRANULE, _SHARED_BYTES = {"sm_80": 16, "sm_90a": 64}, {"sm_80": 163 * 1024, "sm_90a": 227 * 1024}
# What a kernel with warp roles keeps beside its tiles: barriers, posted numbers, alignment.
_RESERVED_BYTES = {"sm_80": 0, "sm_90a": 2048}


def _pad(dim, target):
    return -(-dim // _GRANULE[target]) * _GRANULE[target]


def _shared_bytes(target, dims, m, n, stages, q_stages, bytes_each):
    qk, v = (_pad(dim, target) for dim in dims)
    return (m * q_stages * qk + stages * n * (qk + v)) * bytes_each


def _fits_registers(dims, m, n, pipeline):
    """As verifySchedule (lib/Target/ScheduleTable.cpp) estimates it."""
    available = {64: 232, 128: 232, 192: 160, 256: 112}[m]
    output, scores = -(-dims[1] // 16) * 8, n // 2
    held = {"simple": scores, "overlap": scores + scores // 2, "ahead": 2 * scores}[pipeline]
    # What the threads of m / 16 + 4 warps have until the roles share it anew.
    at_launch = 65536 // (2 * m + 128) // 8 * 8
    return output + held + 28 <= available and output + 28 <= at_launch


def _random_roles(rng):
    flags = {name: rng.random() < 0.6 for name in ("lazy_rescale", "persistent", "tma_store")}
    pipeline = rng.choice(("simple", "overlap", "overlap", "ahead"))
    return pipeline, rng.choice((1, 2)), flags


def random_schedule(rng, target, dims, bytes_each):
    """A legal #attn.schedule's text. Some spill registers: they are to be right too."""
    while True:
        q_stages, n, roles = 1, 16 * rng.randint(1, 12), ""
        if target == "sm_90a":
            m = rng.choice((64, 128, 128, 192, 192, 256))
            warps = 4 + m // 16
            pipeline, q_stages, flags = _random_roles(rng)
            # O's tile must fit in Q's slot.
            flags["tma_store"] &= dims[1] <= _pad(dims[0], target)
            values = ", ".join(f"{name} = {str(on).lower()}" for name, on in flags.items())
            roles = f", warp_roles = <pipeline = {pipeline}, q_stages = {q_stages}, {values}>"
            if not _fits_registers(dims, m, n, pipeline):
                continue
        else:
            warps = rng.choice((1, 2, 4, 8))
            m = 16 * warps * rng.choice((1, 1, 2))
            n = min(n, 128)
        # A consumer that runs ahead holds two K tiles.
        stages = rng.randint(2 if "ahead" in roles else 1, 5)
        total = _shared_bytes(target, dims, m, n, stages, q_stages, bytes_each) + _RESERVED_BYTES[target]
        if total <= _SHARED_BYTES[target]:
            return f"block_m = {m}, block_n = {n}, num_stages = {stages}, num_warps = {warps}{roles}"


# --- operators and shapes ---------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Spec:
    """One operator with dynamic batch and lengths."""

    target: str
    dtype: str
    heads: int
    kv_heads: int
    dim: int  # of q and k
    v_dim: int
    mask: Rule = NO_RULE
    score: Rule = NO_RULE
    scale: Optional[float] = None
    lse: bool = True
    schedule: Optional[str] = None  # the table's

    def source(self):
        q, k, v, o = (
            f"tensor<?x{heads}x?x{dim}x{self.dtype}>"
            for heads, dim in (
                (self.heads, self.dim),
                (self.kv_heads, self.dim),
                (self.kv_heads, self.v_dim),
                (self.heads, self.v_dim),
            )
        )
        outs = {"o": o, **({"lse": f"tensor<?x{self.heads}x?xf32>"} if self.lse else {})}
        arguments = {"q": q, "k": k, "v": v, **outs}
        signature = ", ".join(f'%{name}: {type} {{attn.name = "{name}"}}' for name, type in arguments.items())
        types = ", ".join(outs.values())
        attributes = [] if self.scale is None else [f"scale = {self.scale:.9e} : f32"]
        if self.schedule:
            attributes.append(f"schedule = #attn.schedule<{self.schedule}>")
        indices, mods = "%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32", ""
        if self.score.function:
            mods += f"    score_mod (%s: f32, {indices}) {{\n{trace(self.score.function)}    }}\n"
        if self.mask.function:
            mods += f"    mask_mod ({indices}) {{\n{trace(self.mask.function)}    }}\n"
        results = ", ".join(f"%r#{n}" for n in range(len(outs)))
        return f"""func.func @attention({signature}) -> ({types}) {{
  %r:{len(outs)} = attn.attention ins(%q, %k, %v : {q}, {k}, {v})
    outs({", ".join("%" + name for name in outs)} : {types}) {{{", ".join(attributes)}}}
{mods}    -> {types}
  return {results} : {types}
}}
"""

    def __str__(self):
        dims = f"D{self.dim}" + (f"/{self.v_dim}" if self.v_dim != self.dim else "")
        return (
            f"{self.target} {self.dtype} H{self.heads}/{self.kv_heads} {dims} mask [{self.mask.name}] "
            f"score [{self.score.name}] scale {self.scale} lse {self.lse} schedule [{self.schedule or 'table'}]"
        )


def random_spec(target, seed, index):
    rng = random.Random(f"{seed} {index}")
    dtype = rng.choice(("bf16",) * 5 + ("f16",) * 4 + ("f32",))
    dims = lambda: rng.choice((64, 128, 256) * 12 + (96, 192) * 4 + tuple(range(8, 257, 8)) + (264, 320, 512, 576))  # noqa: E731
    dim = dims()
    v_dim = dim if rng.random() < 0.8 else dims()
    kv_heads = rng.choice((1, 1, 2, 3, 4))
    heads = kv_heads * rng.choice((1, 1, 1, 2, 3, 4, 8))
    kind = rng.random()
    mask = NO_RULE if kind < 0.2 else CAUSAL if kind < 0.45 else random_mask(rng)
    score = NO_RULE if rng.random() < 0.6 else random_score(rng)
    scale = None if rng.random() < 0.6 else rng.choice((1.0, 0.125, 0.0, -0.3, 1e-3, 3.0))
    schedule = None
    # Wider ones have the table's only, where programs share columns.
    if rng.random() < 0.5 and max(dim, v_dim) <= 256:
        # f32 has no kernel with warp roles: sm_80's runs on every target.
        is_f32 = dtype == "f32"
        schedule = random_schedule(rng, "sm_80" if is_f32 else target, (dim, v_dim), 4 if is_f32 else 2)
    lse = rng.random() < 0.5
    return Spec(target, dtype, heads, kv_heads, dim, v_dim, mask, score, scale, lse, schedule)


LAYOUTS = ("bhnd", "bnhd", "padded")
INPUTS = ("normal",) * 6 + ("x6", "outliers", "equal rows", "large v")
# Scores of one launch, over all heads: 1.2 GB in the oracle's float64.
MAX_SCORES = 150_000_000


@dataclasses.dataclass(frozen=True)
class Shape:
    batch: int
    nq: int
    nk: int
    layouts: tuple = ("bhnd",) * 4  # of q, k, v, o
    inputs: str = "normal"
    seed: int = 0

    def __str__(self):
        return (
            f"B{self.batch} Nq {self.nq} Nk {self.nk} layouts {'/'.join(self.layouts)} "
            f"inputs [{self.inputs}] seed {self.seed}"
        )


def _random_length(rng):
    kind = rng.random()
    if kind < 0.08:
        return 1
    if kind < 0.25:
        return rng.randint(2, 63)
    if kind < 0.6:
        return max(1, rng.choice((64, 128, 192)) * rng.randint(1, 8) + rng.choice((-2, -1, 0, 0, 1, 2)))
    if kind < 0.9:
        return rng.randint(64, 1000)
    # Above 4096, some operators take another kernel of the schedule table.
    return rng.randint(1000, 3000) if kind < 0.98 else rng.randint(4090, 4600)


def random_shape(spec, seed, index, turn):
    rng = random.Random(f"{seed} {index} {turn}")
    while True:
        batch, nq, nk = rng.choice((1, 1, 2, 3, 5)), _random_length(rng), _random_length(rng)
        if rng.random() < 0.25:
            nk = nq
        if batch * spec.heads * nq * nk <= MAX_SCORES:
            break
    layouts = tuple(rng.choice(LAYOUTS) if rng.random() < 0.3 else "bhnd" for _ in range(4))
    return Shape(batch, nq, nk, layouts, rng.choice(INPUTS), rng.randrange(1 << 31))
