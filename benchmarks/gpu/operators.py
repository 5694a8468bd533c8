"""The attention problems that are timed, and the attnc source of each."""

import dataclasses

import mods

@dataclasses.dataclass(frozen=True)
class Problem:
    """One attention forward. `window` counts the visible keys, the query's own included.

    `mod` names rules of mods.py, beside which `mask` stays "none". `queries` is
    the number of queries where it isn't that of the keys. `inputs` is the type
    of q, k and v where it isn't `dtype`, that of o; they have a scale each then.
    """

    batch: int
    heads: int
    length: int
    dim: int
    mask: str = "none"
    dtype: str = "bf16"
    kv_heads: int = 0
    window: int = 0
    mod: str = ""
    queries: int = 0
    inputs: str = ""

    def __post_init__(self):
        if not self.kv_heads:
            object.__setattr__(self, "kv_heads", self.heads)
        if not self.queries:
            object.__setattr__(self, "queries", self.length)

    @classmethod
    def of_tokens(cls, dim, length, mask="none", **kwargs):
        """B*N = 16384 and H = 2048/D, as papers measure it."""
        return cls(16384 // length, 2048 // dim, length, dim, mask, **kwargs)

    @property
    def flops(self):
        """Analytic: two products of what the mask leaves; half for causal, as papers count."""
        if self.mask == "window":
            pairs = self.window * self.length - self.window * (self.window - 1) // 2
        else:
            pairs = self.length**2 / (2 if self.mask == "causal" else 1)
        return 4 * self.batch * self.heads * self.dim * pairs

    @property
    def shapes(self):
        """Of the tensor arguments, by name."""
        q = (self.batch, self.heads, self.queries, self.dim)
        kv = (self.batch, self.kv_heads, self.length, self.dim)
        return {"q": q, "k": kv, "v": kv, "o": q}

    @property
    def bytes(self):
        """Of Q, K and V."""
        rows = self.heads * self.queries + 2 * self.kv_heads * self.length
        return 2 * self.batch * rows * self.dim

    @property
    def rules(self):
        if self.mask == "window":
            return mods.mod(f"window {self.window}")
        return mods.mod(self.mod or self.mask)

    def source(self, schedule=None):
        """An attention function with dynamic batch and lengths."""
        element = self.inputs or self.dtype
        q, kv = (f"tensor<?x{h}x?x{self.dim}x{element}>" for h in (self.heads, self.kv_heads))
        o = f"tensor<?x{self.heads}x?x{self.dim}x{self.dtype}>"
        scales = {f"{n}_scale": "tensor<1xf32>" for n in "qkv"} if self.inputs else {}
        rules = self.rules
        sizes = {"heads": self.heads, "dtype": self.dtype}
        captures = {name: kind.format(**sizes) for name, kind in rules.captures.items()}
        inputs = {"q": q, "k": kv, "v": kv, **captures}
        named = {**inputs, **scales, "o": o}
        args = ", ".join(f'%{n}: {t} {{attn.name = "{n}"}}' for n, t in named.items())
        attrs = f"{{schedule = #attn.schedule<{schedule}>}}" if schedule else ""
        names = ", ".join(f"%{name}" for name in inputs)
        scaled = "".join(f" {name}(%{name} : {kind})" for name, kind in scales.items())
        index = "%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32"
        index += "".join(f", %{name}: {kind}" for name, kind in captures.items())
        regions = ""
        if rules.score:
            body = rules.score.format(**captures, **sizes)
            regions += f"""
    score_mod (%s: f32, {index}) {{{body}
      attn.yield %result : f32
    }}"""
        if rules.mask:
            body = rules.mask.format(**captures, **sizes)
            regions += f"""
    mask_mod ({index}) {{{body}
      attn.yield %visible : i1
    }}"""
        return f"""func.func @attention({args}) -> {o} {{
  %r = attn.attention ins({names} : {", ".join(inputs.values())}){scaled}
    outs(%o : {o}) {attrs}{regions}
    -> {o}
  return %r : {o}
}}
"""


def of_tokens(dims, lengths, dtype="bf16"):
    """Problem.of_tokens without a mask and causal."""
    return [
        Problem.of_tokens(dim, length, mask, dtype=dtype)
        for dim in dims
        for mask in ("none", "causal")
        for length in lengths
    ]


def fused_problems(dtype):
    return of_tokens((64, 128), (2048, 8192, 16384), dtype)


def hopper_problems(dtype):
    """{group: problems} of the comparison with cuDNN."""
    return {
        "long": of_tokens((64, 128, 256), (2048, 8192, 16384), dtype),
        "short": of_tokens((64, 128, 256), (512,), dtype),
        "gqa": [Problem(2, 32, 8192, 128, "causal", dtype, kv_heads=8)],
        "window": [
            Problem.of_tokens(dim, 16384, "window", dtype=dtype, window=1024) for dim in (64, 128)
        ],
        "other": of_tokens((96, 192), (2048, 16384), dtype),
    }


def ablation_problems(dtype):
    return of_tokens((64, 128, 256), (2048, 16384), dtype)


VARIANTS = ("naive", "inplace", "math", "fused")
VARIANTS_PROBLEM = Problem(8, 16, 1024, 64, "causal")


# What FlexAttention's users ask for most.
MODS = (
    "causal",
    "window 1024",
    "document 16",
    "causal document 16",
    "prefix 1024",
    "alibi",
    "softcap 50",
    "bias",
    "head bias",
    "causal softcap 50",
)
# From half to 0.97 of the tiles hidden.
SKIPS = ("causal", "causal document 4", "causal document 16", "document 4", "document 16")
SKIPS += tuple(f"window {size}" for size in (4096, 2048, 1024, 512))
SKIPS += tuple(f"band {size}" for size in (3072, 1024, 256))
SKIPS += ("neighborhood 24", "neighborhood 4", "wide neighborhood 3")
SCORE_MODS = ("double", "relative", "head offset", "alibi")


def _with_mods(names, dims, lengths, dtype):
    return [
        Problem.of_tokens(dim, length, dtype=dtype, mod=name)
        for name in names
        for dim in dims
        for length in lengths
    ]


def mods_problems(dtype):
    problems = _with_mods(MODS, (64, 128), (8192, 16384), dtype)
    # FlexAttention's kernel faults on a bias of 2^32 elements, which ends the process.
    return [p for p in problems if p.mod != "head bias" or p.heads * p.length**2 < 1 << 32]


def skip_problems(dtype):
    return _with_mods(SKIPS, (64, 128), (16384,), dtype)


def scoremods_problems(dtype):
    return _with_mods(SCORE_MODS, (64, 128), (8192, 16384), dtype)


def without_mods(problem):
    return dataclasses.replace(problem, mod="")


def in_16_bits(problem):
    return dataclasses.replace(problem, inputs="")


def fp8_problems(dtype):
    """Of 8-bit inputs; `dtype` is the output's."""
    return [
        dataclasses.replace(problem, inputs="f8E4M3FN")
        for problem in of_tokens((64, 128), (2048, 8192, 16384), dtype)
    ]


def decode_problems(dtype):
    return [
        Problem(batch, 32, length, 128, dtype=dtype, kv_heads=8, queries=1)
        for batch in (1, 16)
        for length in (8192, 32768)
    ]
