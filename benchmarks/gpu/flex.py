"""The rules of mods.py for torch: FlexAttention's functions, their tensors, and what they say in float64."""

import math
import os
import tempfile
import time

import torch

import mods

# Inductor's and Triton's, empty: a first call compiles.
_caches = tempfile.TemporaryDirectory()
os.environ["TORCHINDUCTOR_CACHE_DIR"] = _caches.name
os.environ["TRITON_CACHE_DIR"] = os.path.join(_caches.name, "triton")


def _causal(b, h, q, k):
    return q >= k


def _window(size):
    return lambda b, h, q, k: (q >= k) & (q - k < size)


def _band(size):
    return lambda b, h, q, k: (q - k <= size) & (k - q <= size)


def _prefix(size):
    return lambda b, h, q, k: (k < size) | (q >= k)


def _neighborhood(size, image):
    height, width = mods.IMAGES[image]

    def visible(b, h, q, k):
        row = (q // width).clamp(size, height - 1 - size)
        column = (q % width).clamp(size, width - 1 - size)
        return ((k // width - row).abs() <= size) & ((k % width - column).abs() <= size)

    return visible


def _document(document):
    return lambda b, h, q, k: document[b, q] == document[b, k]


def _causal_document(document):
    return lambda b, h, q, k: (document[b, q] == document[b, k]) & (q >= k)


def _alibi(slopes):
    return lambda s, b, h, q, k: s + slopes[h] * (k - q)


def _softcap(size):
    return lambda s, b, h, q, k: size * torch.tanh(s / size)


def _bias(bias):
    matrix = bias[0, 0]
    return lambda s, b, h, q, k: s + matrix[q, k]


def _head_bias(bias):
    matrices = bias[0]
    return lambda s, b, h, q, k: s + matrices[h, q, k]


def _head_offset(offsets):
    return lambda s, b, h, q, k: s + offsets[h]


def _relative(s, b, h, q, k):
    return s + (k - q)


def _double(s, b, h, q, k):
    return s * 2


# Kind -> (score_mod, mask_mod), of a rule's size and captured tensors.
_RULES = {
    "none": lambda size: (None, None),
    "causal": lambda size: (None, _causal),
    "window": lambda size: (None, _window(size)),
    "band": lambda size: (None, _band(size)),
    "prefix": lambda size: (None, _prefix(size)),
    "neighborhood": lambda size: (None, _neighborhood(size, "neighborhood")),
    "wide neighborhood": lambda size: (None, _neighborhood(size, "wide neighborhood")),
    "document": lambda size, document: (None, _document(document)),
    "causal document": lambda size, document: (None, _causal_document(document)),
    "alibi": lambda size, slopes: (_alibi(slopes), None),
    "softcap": lambda size: (_softcap(size), None),
    "causal softcap": lambda size: (_softcap(size), _causal),
    "bias": lambda size, bias: (_bias(bias), None),
    "head bias": lambda size, bias: (_head_bias(bias), None),
    "head offset": lambda size, offsets: (_head_offset(offsets), None),
    "relative": lambda size: (_relative, None),
    "double": lambda size: (_double, None),
}


def rules(problem, captures):
    """(score_mod, mask_mod) as FlexAttention takes them."""
    kind, size = mods.split(problem.mod or "none")
    return _RULES[kind](size, **captures)


def make_captures(problem, dtype, device):
    """{name: tensor} for the rules of a problem."""
    batch, heads, length = problem.batch, problem.heads, problem.length
    kind, size = mods.split(problem.mod)
    if kind.endswith("document"):
        # So many pieces, with boundaries of their own in each batch.
        starts = torch.zeros(batch, length, dtype=torch.int32)
        for row in starts:
            row[1 + torch.randperm(length - 1)[: size - 1]] = 1
        return {"document": starts.cumsum(1, dtype=torch.int32).to(device)}
    if kind == "alibi":
        return {"slopes": torch.exp2(-8 / heads * torch.arange(1, heads + 1, device=device))}
    if kind == "head offset":
        return {"offsets": torch.randn(heads, device=device)}
    if kind.endswith("bias"):
        shape = (1, heads if kind == "head bias" else 1, length, length)
        return {"bias": torch.randn(shape, dtype=dtype, device=device)}
    return {}


class Flex:
    """Compiled FlexAttention on a problem, and what its first use took."""

    def __init__(self, problem, captures, inputs):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        # Beyond a few recompilations, dynamo runs the materialised form instead.
        torch._dynamo.reset()
        attention = torch.compile(flex_attention, dynamic=False)
        score_mod, mask_mod = rules(problem, captures)
        block_mask = None
        start = time.perf_counter()
        if mask_mod:
            batch = problem.batch if "document" in captures else None
            sizes = (batch, None, problem.queries, problem.length)
            block_mask = create_block_mask(mask_mod, *sizes, device=inputs.sets[0][0].device)
            torch.cuda.synchronize()
        self.block_mask_seconds = time.perf_counter() - start

        def run():
            return attention(*inputs(), score_mod=score_mod, block_mask=block_mask)

        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        self.first_call_seconds = time.perf_counter() - start
        self.run = run


def _indices(problem, rows):
    """b, h, q_idx and kv_idx, each in a dimension of its own."""
    sizes = problem.batch, problem.heads, problem.length
    b, h, k = (torch.arange(n, device=rows.device) for n in sizes)
    return b[:, None, None, None], h[:, None, None], rows[:, None], k


class Checker:
    """Relative Frobenius errors against float64, in some rows of every head."""

    def __init__(self, problem, captures, inputs, rows=128):
        self.inputs = inputs
        q, k, v = inputs.sets[0]
        self.rows = torch.randperm(problem.queries, device=q.device)[:rows].sort().values
        repeat = problem.heads // problem.kv_heads
        score_mod, mask_mod = rules(problem, captures)
        self.expected = torch.empty_like(q[:, :, self.rows], dtype=torch.float64)
        b, h, i, j = _indices(problem, self.rows)
        # One batch at a time, for the memory.
        for n in range(problem.batch):
            keys, values = (x[n : n + 1].double().repeat_interleave(repeat, 1) for x in (k, v))
            s = q[n : n + 1, :, self.rows].double() @ keys.mT / math.sqrt(problem.dim)
            at = b[n : n + 1], h, i, j
            s = score_mod(s, *at) if score_mod else s
            if mask_mod:
                s = s.masked_fill(~mask_mod(*at), -math.inf)
            self.expected[n] = (torch.softmax(s, -1) @ values)[0]

    def error(self, run):
        self.inputs.rewind()
        difference = run()[:, :, self.rows].double() - self.expected
        return (difference.norm() / self.expected.norm()).item()


def hidden_fraction(problem, captures, tile, device):
    """Of the tiles of (queries, keys), those in which a mask hides everything; the mean of the batches."""
    _, mask_mod = rules(problem, captures)
    b, h, i, j = _indices(problem, torch.arange(problem.queries, device=device))
    fractions = []
    for n in range(problem.batch):
        visible = mask_mod(b[n], h[:1], i, j).reshape(problem.queries, problem.length)
        padding = (0, -problem.length % tile[1], 0, -problem.queries % tile[0])
        visible = torch.nn.functional.pad(visible, padding)
        seen = visible.unflatten(1, (-1, tile[1])).any(2).unflatten(0, (-1, tile[0])).any(1)
        fractions.append(1 - seen.float().mean().item())
    return sum(fractions) / len(fractions)
