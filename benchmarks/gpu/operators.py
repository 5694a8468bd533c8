"""The attention problems that are timed, and the attnc source of each."""

import dataclasses

_POSITION = """
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %last = arith.addi %q_idx, %shift : i32"""

_MASKS = {
    "none": "",
    "causal": """
      %visible = arith.cmpi sle, %kv_idx, %last : i32""",
    "window": """
      %distance = arith.subi %kv_idx, %last : i32
      %left = arith.constant {left} : i32
      %right = arith.constant 0 : i32
      %not_before = arith.cmpi sge, %distance, %left : i32
      %not_after = arith.cmpi sle, %distance, %right : i32
      %visible = arith.andi %not_before, %not_after : i1""",
}


@dataclasses.dataclass(frozen=True)
class Problem:
    """One attention forward. `window` counts the visible keys, the query's own included."""

    batch: int
    heads: int
    length: int
    dim: int
    mask: str = "none"
    dtype: str = "bf16"
    kv_heads: int = 0
    window: int = 0

    def __post_init__(self):
        if not self.kv_heads:
            object.__setattr__(self, "kv_heads", self.heads)

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
        q = (self.batch, self.heads, self.length, self.dim)
        kv = (self.batch, self.kv_heads, self.length, self.dim)
        return {"q": q, "k": kv, "v": kv, "o": q}

    @property
    def bytes(self):
        """Of Q, K and V."""
        return 2 * self.batch * (self.heads + 2 * self.kv_heads) * self.length * self.dim

    def source(self, schedule=None):
        """An attention function with dynamic batch and lengths."""
        q, kv = (f"tensor<?x{h}x?x{self.dim}x{self.dtype}>" for h in (self.heads, self.kv_heads))
        types = {"q": q, "k": kv, "v": kv, "o": q}
        args = ", ".join(f'%{n}: {t} {{attn.name = "{n}"}}' for n, t in types.items())
        attrs = f"{{schedule = #attn.schedule<{schedule}>}}" if schedule else ""
        return f"""func.func @attention({args}) -> {q} {{
  %r = attn.attention ins(%q, %k, %v : {q}, {kv}, {kv}) outs(%o : {q}) {attrs}
    {self._mask_mod()} -> {q}
  return %r : {q}
}}
"""

    def _mask_mod(self):
        if self.mask == "none":
            return ""
        visible = _MASKS[self.mask].format(left=1 - self.window)
        return f"""mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {{{_POSITION}{visible}
      attn.yield %visible : i1
    }}"""


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
