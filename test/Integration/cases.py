"""The cases that the CPU and the GPU run: the matrix, and reported bugs."""

import dataclasses
import itertools
from typing import Callable, Optional, Tuple

import numpy as np

import quantized as quantized_cases
import rules
from sequences import Sequences

VARIANTS = ("naive", "inplace", "math", "fused")
DTYPES = ("f16", "bf16", "f32")
DIMS = (32, 64, 96, 128)
# Of q and k, and of v: not of a matrix instruction's 16, a TMA block's 64, or of anything.
OTHER_DIMS = ((8, 8), (16, 16), (24, 24), (40, 40), (72, 72), (80, 80), (136, 136), (160, 160), (192, 192))
OTHER_DIMS += ((31, 31), (1, 1), (2, 2), (33, 97), (100, 44), (255, 3), (0, 16), (16, 0))
OTHER_DIMS += ((200, 200), (256, 256), (192, 128), (64, 128), (128, 64), (96, 256), (256, 40), (8, 256))
# Several programs share the columns of v.
OTHER_DIMS += ((576, 512), (264, 264), (512, 40), (72, 576), (320, 320))


@dataclasses.dataclass
class Case:
    name: str
    dtype: str
    dim: int  # of q and k, and of v unless v_dim says otherwise
    shape: Tuple[int, int, int, int, int]  # batch, heads, K/V heads, queries, keys
    score: Optional[str] = None
    mask: Optional[str] = None
    scale: Optional[float] = None
    lse: bool = False
    variants: Tuple[str, ...] = VARIANTS
    # Changes the random q, k, v in place.
    edit: Optional[Callable] = None
    # Batch and lengths are part of the types.
    static: bool = False
    # The files hold the arrays in Fortran's order.
    fortran: bool = False
    v_dim: Optional[int] = None
    # A logit for each head, repeated to as many as there are.
    sink: Optional[Tuple[float, ...]] = None
    sink_dtype: str = "f32"
    # Lengths that the device knows; those of `shape` are the greatest.
    sequences: Optional[Sequences] = None
    # With q of 8 bits: the other types and the scales.
    quantized: Optional[quantized_cases.Quantized] = None
    # Instead of the table's: parameters of an #attn.schedule.
    schedule: Optional[str] = None

    def __post_init__(self):
        self.v_dim = self.dim if self.v_dim is None else self.v_dim

    def input_dtypes(self):
        """Of q, k and v."""
        return (self.dtype, self.quantized.k_dtype, self.quantized.v_dtype) if self.quantized else (self.dtype,) * 3

    def source(self):
        batch, heads, kv_heads, nq, nk = self.shape
        static = (batch, nq, nk) if self.static else None
        dims = (self.dim, self.v_dim)
        return rules.source(
            self.dtype, heads, kv_heads, dims, self.score, self.mask, self.scale, self.lse, static,
            self.sink and self.sink_dtype, self.sequences, self.quantized, self.schedule
        )


# Ragged, one, either longer, exact tiles; with and without grouped heads.
SHAPES = (
    (1, 2, 2, 64, 64),
    (2, 4, 2, 129, 129),
    (1, 2, 1, 1, 77),
    (2, 2, 2, 33, 200),
    (1, 6, 2, 200, 33),
    (1, 1, 1, 255, 257),
    (3, 2, 2, 1, 1),
)
RULES = (
    (None, None),
    (None, "causal"),
    (None, "window"),
    ("softcap", None),
    ("alibi", "causal"),
    (None, "prefix"),
    (None, "scattered"),
    ("relative", "causal_top_left"),
)


def matrix():
    """Every variant x dtype x D, with shapes and rules taken in turn so that
    each pair of (D, rule), (D, shape) and (rule, shape) occurs."""
    turn = itertools.count()
    for dtype, dim in itertools.product(DTYPES, DIMS):
        for _ in range(5):
            n = next(turn)
            score, mask = RULES[n % len(RULES)]
            shape = SHAPES[n % len(SHAPES)]
            name = f"{dtype}-d{dim}-{score or 'plain'}-{mask or 'all'}-" + "x".join(map(str, shape))
            yield Case(name, dtype, dim, shape, score, mask, lse=n % 2 == 0)


def head_dims():
    """Every variant x dtype x other head dimension, in turn with and without a mask."""
    for n, (dtype, (dim, v_dim)) in enumerate(itertools.product(DTYPES, OTHER_DIMS)):
        mask = (None, "causal")[n % 2]
        # Without the shape of one query and one key, whose errors don't average out.
        shape = SHAPES[n % (len(SHAPES) - 1)]
        name = f"head-dim-{dtype}-{dim}-{v_dim}-{mask or 'all'}-" + "x".join(map(str, shape))
        yield Case(name, dtype, dim, shape, mask=mask, lse=n % 4 < 2, v_dim=v_dim)


def _ones(q, k, v):
    for x in (q, k, v):
        x[...] = 1


def _huge(q, k, v):
    for x in (q, k, v):
        x[...] = 133120


def _nan_key_1(q, k, v):
    k[:, :, 1] = np.nan


def _inf_key_1(q, k, v):
    k[:, :, 1] = np.inf


def _negative_scores(q, k, v):
    """q . k / sqrt(192) is between -610 and -152."""
    q[...] = 1 + np.abs(q) % 1
    k[...] = -11 * (1 + np.abs(k) % 1)


def _nan_behind_40(q, k, v):
    k[:, :, 40:] = np.nan
    v[:, :, 40::2] = np.nan
    v[:, :, 41::2] = np.inf


def reported():
    """Inputs that broke other attention kernels, named by what they test."""

    def case(name, dtype, dim, shape, **fields):
        return Case("reported-" + name, dtype, dim, shape, **fields)

    yield case("last-row-hidden", "f32", 8, (1, 2, 2, 6, 10), mask="last_row_hidden", lse=True)
    yield case("bool-mask-hides-rows", "f32", 32, (1, 1, 1, 8, 8), mask="top_left_4x4", lse=True)
    yield case("lowest-finite-bias-is-visible", "f32", 32, (1, 1, 1, 3, 70), score="lowest_row_0")
    for dtype in DTYPES:
        yield case(f"first-tile-hidden-{dtype}", dtype, 2, (1, 1, 1, 600, 600), mask="last_10", edit=_ones)
        yield case(f"every-row-empty-{dtype}", dtype, 64, (1, 2, 2, 70, 70), mask="all_hidden", lse=True)
    yield case("empty-causal-rows-lse", "bf16", 64, (1, 2, 2, 150, 70), mask="causal", lse=True)
    yield case("extreme-values", "bf16", 64, (1, 1, 1, 1, 1), edit=_huge, variants=("math", "fused"))
    yield case("extreme-values-many", "bf16", 64, (1, 1, 1, 3, 130), edit=_huge, variants=("math", "fused"))
    for mask in ("causal", "scattered", "window", "key_padding", None):
        fields = dict(score="minus_120", mask=mask, lse=True)
        yield case(f"very-negative-logits-{mask or 'all'}", "bf16", 64, (1, 1, 1, 704, 704), **fields)
    yield case("negative-scores-odd-gqa", "f32", 128, (1, 9, 1, 377, 377), score="minus_490", lse=True)
    # The unfused variants round such scores too coarsely.
    for dtype in ("f16", "bf16"):
        fields = dict(v_dim=128, edit=_negative_scores, lse=True, variants=("math", "fused"))
        yield case(f"negative-products-odd-gqa-{dtype}", dtype, 192, (1, 9, 1, 130, 3770), **fields)
    yield case("nan-in-hidden-key", "f32", 32, (1, 2, 2, 5, 4), mask="key_1_hidden", edit=_nan_key_1)
    yield case("inf-in-hidden-key", "bf16", 64, (1, 2, 2, 70, 70), mask="key_1_hidden", edit=_inf_key_1)
    for dtype in DTYPES:
        for nq in (1, 70):
            for mask in ("keys_before_40", "keys_to_39", "keys_from_40_hidden"):
                fields = dict(mask=mask, edit=_nan_behind_40, lse=True, static=nq == 70)
                yield case(f"nan-behind-padding-{mask}-{nq}-{dtype}", dtype, 64, (2, 2, 2, nq, 170), **fields)
    yield case("twice-as-many-queries", "f16", 64, (1, 1, 1, 2048, 1024), mask="causal", lse=True)
    for nq, nk in ((2, 5), (5, 2), (3, 128), (256, 128)):
        yield case(f"causal-bottom-right-{nq}x{nk}", "bf16", 128, (1, 1, 1, nq, nk), mask="causal", lse=True)
    yield case("no-keys", "f32", 32, (1, 2, 2, 5, 0), lse=True)
    yield case("no-queries", "f32", 32, (1, 2, 2, 0, 5))
    yield case("no-batch", "f32", 32, (0, 2, 2, 5, 5))
    yield case("ragged-tail-score-mod", "bf16", 64, (1, 1, 1, 1025, 1025), score="relative", mask="causal")
    for n in (1, 15, 17, 31, 63, 65, 127, 128, 192, 300):
        yield case(f"ragged-tail-{n}", "bf16", 32, (1, 8, 8, n, n), lse=True)
    yield case("ragged-tail-192-narrow", "bf16", 16, (1, 8, 8, 192, 192), lse=True)
    yield case("bias-f32-with-f16", "f16", 64, (1, 4, 4, 32, 32), score="bias_11qk_f32", lse=True)
    yield case("bias-f16-with-bf16", "bf16", 64, (1, 4, 4, 32, 32), score="bias_11qk_f16", lse=True)
    for n in (16, 40):
        yield case(f"mask-padding-{n}", "f32", 32, (1, 1, 1, n, n), mask="scattered")
    yield case("gqa-6-one-query", "bf16", 32, (1, 12, 2, 1, 4096), lse=True)
    for ratio in (2, 3, 5, 7):
        yield case(f"gqa-{ratio}-short-q", "f16", 64, (1, 2 * ratio, 2, 100, 300), mask="causal")
    yield case("window-longer-q", "f32", 64, (1, 1, 1, 129, 70), mask="window_32_64", lse=True)
    yield case("window-past-the-end", "f32", 64, (1, 1, 1, 70, 90), mask="window_past_the_end")
    yield case("alibi-12-heads", "bf16", 64, (1, 12, 12, 70, 70), score="alibi", mask="causal")
    for nq in (129, 5):
        yield case(f"window-longer-q-{nq}", "bf16", 64, (1, 1, 1, nq, 60), mask="window_32_64", lse=True)
    yield case("alibi-slopes-12-heads", "bf16", 64, (1, 12, 12, 70, 70), score="alibi_slopes", mask="causal", lse=True)
    yield case("alibi-symmetric-12-heads", "bf16", 64, (1, 12, 12, 70, 70), score="alibi_symmetric")
    yield case("divides-by-rows-left", "f32", 32, (1, 1, 1, 5, 70), mask="divides_by_rows_left", lse=True)
    yield case("document", "bf16", 64, (1, 2, 2, 170, 190), mask="document", lse=True)
    yield case("index-arithmetic", "f16", 32, (1, 2, 1, 70, 90), mask="index_arithmetic")
    for dtype, nq, nk in itertools.product(("f16", "f32"), (0, 1, 77), (0, 1, 77)):
        yield case(f"static-{nq}x{nk}-{dtype}", dtype, 32, (2, 4, 2, nq, nk), static=True, lse=True)
    for dtype in DTYPES:
        yield case(f"fortran-order-{dtype}", dtype, 32, (2, 4, 2, 13, 21), mask="causal", fortran=True)
    yield case("many-batches", "f16", 32, (65536, 1, 1, 2, 3))
    yield case("negative-scale", "f32", 64, (1, 2, 2, 70, 90), scale=-0.3, lse=True)
    yield case("zero-scale", "f32", 64, (1, 2, 2, 70, 90), scale=0.0, mask="causal", lse=True)


CAPTURE_SHAPES = ((2, 4, 2, 129, 129), (2, 2, 1, 33, 200), (3, 6, 3, 200, 33), (1, 2, 2, 1, 77), (2, 2, 2, 128, 192))


def score_terms():
    """Sums of scores that are taken apart: parts of rows, keys and elements."""
    for n, (score, mask) in enumerate(
        (("alibi_symmetric", "causal"), ("alibi_symmetric", None), ("sum", None), ("sum", "window"), ("negated", "causal"))
    ):
        shape = SHAPES[(1, 3, 5, 4, 1)[n]]
        # The others round such scores too coarsely in 16 bits.
        variants = ("math", "fused") if score == "sum" else VARIANTS
        name = f"score-terms-{score}-{mask or 'all'}"
        yield Case(name, DTYPES[n % 3], 64, shape, score, mask, lse=True, variants=variants)
    yield Case("score-terms-alibi_ends", "bf16", 64, SHAPES[1], "alibi_ends", "causal", lse=True)
    for dtype, shape in (("f32", SHAPES[3]), ("bf16", SHAPES[1])):
        yield Case(f"score-terms-{dtype}-types", dtype, 64, shape, "types", lse=True)
    yield Case("score-terms-negative-scale", "f32", 64, (1, 2, 2, 40, 50), "sum", scale=-0.3, lse=True)


def key_ramps():
    """Terms that rise or fall with the key, far and steeply."""
    masks = (None, "causal", "window", "documents", "keep_blocks")
    shapes = ((1, 6, 6, 450, 700), (2, 6, 2, 200, 131), (1, 6, 3, 70, 16384))
    for n, (score, (mask, shape)) in enumerate(
        itertools.product(rules.KEY_RAMPS, list(itertools.product(masks, shapes[:2])) + [(None, shapes[2]), ("causal", shapes[2])])
    ):
        dtype = ("bf16", "f16")[n % 2]
        name = f"key-ramps-{dtype}-{score}-{mask or 'all'}-" + "x".join(map(str, shape))
        yield Case(name, dtype, (64, 128)[n // 2 % 2], shape, score, mask, lse=n % 3 != 0, variants=("fused",))


def captures():
    """Every rule that reads captured tensors, in every variant, with dtypes and shapes taken in turn."""
    turn = itertools.count()
    kinds = [(name, None) for name, rule in rules.SCORES.items() if rules.get_captures(rule)]
    kinds += [(None, name) for name, rule in rules.MASKS.items() if rules.get_captures(rule)]
    kinds += [("bias_b11k_f32", "causal"), ("alibi_slopes", "documents"), ("head_softcap", "causal_key_padding")]
    exact = {"bias_lowest_row_0": "f32"}  # beyond what 16 bits hold
    for score, mask in kinds:
        n = next(turn)
        dtype = exact.get(score, DTYPES[n % len(DTYPES)])
        shape = CAPTURE_SHAPES[n % len(CAPTURE_SHAPES)]
        dim = (64, 128)[n % 2]
        name = f"captures-{dtype}-{score or 'plain'}-{mask or 'all'}-" + "x".join(map(str, shape))
        # The others round scores of thousands too coarsely in 16 bits.
        variants = ("math", "fused") if score in rules.KEY_RAMPS else VARIANTS
        yield Case(name, dtype, dim, shape, score, mask, lse=n % 2 == 0, static=n % 7 == 3, variants=variants)
    for n in (16, 40):
        yield Case(f"captures-mask-padding-{n}", "f32", 32, (1, 1, 1, n, n), mask="keep_11qk_i1", lse=True)
    for dtype in DTYPES:
        yield Case(f"captures-{dtype}-mask-of-floats", dtype, 64, (1, 6, 2, 300, 450), mask="heads_by_float", lse=True)
    # Nothing to read. Naive's copy for the mask has no bytes, and isn't made.
    none = ("inplace", "math", "fused")
    yield Case("captures-no-keys", "f32", 32, (2, 2, 2, 5, 0), "bias_b11k_f32", "documents", lse=True, variants=none)
    yield Case("captures-no-keys-static", "f16", 32, (2, 2, 2, 5, 0), mask="key_padding", lse=True, static=True, variants=none)
    yield Case("captures-no-queries", "f16", 32, (2, 2, 2, 0, 5), "bias_11qk_f16", "keep_bhqk_i1")


def bounded_masks():
    """Masks whose tiles are known only when they run, at lengths of several tiles."""
    masks = ("documents", "wide_documents", "hidden_from_row", "prefix_lengths", "keep_blocks", "computed_tables", "captured_blocks")
    shapes = ((2, 4, 2, 450, 470), (1, 4, 4, 300, 700), (2, 4, 1, 640, 128))
    for n, (mask, shape) in enumerate(itertools.product(masks, shapes)):
        dtype = DTYPES[n % len(DTYPES)]
        name = f"bounded-{dtype}-{mask}-" + "x".join(map(str, shape))
        score = ("alibi_slopes", None)[n % 2]
        yield Case(name, dtype, (64, 128)[n % 2], shape, score, mask, lse=True, variants=("fused",))


def listed_masks():
    """Masks whose visible tiles don't lie side by side, with shared KV heads, sinks and ragged lengths."""
    images = (
        ("neighborhood_96", (1, 4, 2, 960, 960)),
        ("neighborhood_200", (2, 2, 2, 700, 700)),
        ("neighborhood_256", (1, 2, 1, 1024, 1024)),
    )
    masks = ("window_and_first", "strided", "shuffled_documents", "keep_blocks_of_heads", "positive_blocks")
    # With a single query or key, and lengths of a few tiles and a bit.
    shapes = ((2, 4, 2, 450, 470), (1, 4, 4, 300, 1001), (2, 4, 1, 641, 129), (1, 8, 2, 1, 300), (1, 2, 2, 200, 1))
    kinds = list(images) + list(itertools.product(masks, shapes))
    for n, (mask, shape) in enumerate(kinds):
        dtype = DTYPES[n % len(DTYPES)]
        name = f"listed-{dtype}-{mask}-" + "x".join(map(str, shape))
        sink = (0.5, -3.25, 4.0, 12.0, -1.0, 0.0, 2.0, 1.5)[: shape[1]] if n % 3 == 1 else None
        score = (None, "alibi", None, "softcap")[n % 4]
        variants = VARIANTS if n % 5 == 0 and score is None else ("fused",)
        yield Case(name, dtype, (64, 128, 80)[n % 3], shape, score, mask, lse=True, sink=sink, variants=variants)
    for dtype in DTYPES:
        yield Case(f"listed-no-keys-{dtype}", dtype, 64, (1, 2, 2, 200, 0), mask="strided", lse=True, variants=("fused",))
        yield Case(f"listed-no-queries-{dtype}", dtype, 64, (1, 2, 2, 0, 200), mask="strided", variants=("fused",))
        yield Case(f"listed-all-hidden-{dtype}", dtype, 64, (1, 2, 2, 200, 300), mask="nothing", lse=True, variants=("fused",))


def key_intervals():
    """Masks that become intervals of columns, at lengths of several tiles, whole and ragged."""
    shapes = ((1, 2, 2, 450, 470), (1, 2, 2, 384, 512), (1, 2, 1, 200, 700))
    for n, (mask, shape) in enumerate(itertools.product(rules.KEY_INTERVALS, shapes)):
        dtype = ("bf16", "f16", "bf16", "f32")[n % 4]
        name = f"key-intervals-{dtype}-{mask}-" + "x".join(map(str, shape))
        # The others take masks as they are.
        variants = VARIANTS if n % 3 == 0 else ("fused",)
        yield Case(name, dtype, (64, 128)[n // 2 % 2], shape, None, mask, lse=True, variants=variants)


# Several tiles both ways, in rows that TMA can copy (multiples of 16 bytes) and, with 1001, that it can't.
PLANE_SHAPES = ((2, 4, 2, 400, 656), (1, 2, 2, 1000, 1000), (2, 2, 1, 208, 1001), (3, 6, 3, 136, 384))


def planes():
    """Captures over queries and keys, which kernels with warp roles copy to shared memory."""
    masks = (None, "causal", "keep_bhqk_i1", "keep_11qk_i8")
    rows = itertools.product(("bhqk", "1hqk", "b1qk", "11qk"), ("f32", "f16", "bf16"))
    kinds = [(f"bias_{dims}_{dtype}", masks[n % len(masks)]) for n, (dims, dtype) in enumerate(rows)]
    kinds += [(None, f"keep_{dims}_{dtype}") for dims in ("bhqk", "11qk") for dtype in ("i1", "i8")]
    for n, (score, mask) in enumerate(kinds):
        # Neither the same dim nor the same rows for the masks that come around.
        dtype, dim = ("bf16", "f16")[n % 2], (64, 128)[n // 2 % 2]
        shape = PLANE_SHAPES[(n + n // 4) % len(PLANE_SHAPES)]
        name = f"captures-plane-{dtype}-{score or 'plain'}-{mask or 'all'}-" + "x".join(map(str, shape))
        yield Case(name, dtype, dim, shape, score, mask, lse=n % 2 == 0, variants=("fused",))


def sinks():
    """Sinks near, far below and far above the scores, none (-inf) and all (inf)."""
    infinity = float("inf")
    mixed = (0.5, -3.25, 4.0, 12.0)
    for n, (dtype, sink_dtype) in enumerate(itertools.product(DTYPES, DTYPES)):
        score, mask = RULES[n % len(RULES)]
        shape = CAPTURE_SHAPES[n % len(CAPTURE_SHAPES)]
        name = f"sink-{dtype}-{sink_dtype}-{score or 'plain'}-{mask or 'all'}"
        yield Case(name, dtype, (64, 128)[n % 2], shape, score, mask, lse=n % 3 != 1, sink=mixed, sink_dtype=sink_dtype)
    extremes = (-infinity, infinity, 100.0, -100.0, 30000.0, -30000.0, 0.0)
    for dtype in DTYPES:
        for name, fields in (
            ("extremes", dict(mask="causal")),
            ("rows-without-keys", dict(mask="all_hidden")),
            ("some-rows-without-keys", dict(mask="last_row_hidden", static=True)),
            # The others round such scores too coarsely in 16 bits.
            ("negative-scale", dict(scale=-0.3, variants=("math", "fused"))),
            ("negative-scores", dict(score="minus_490", variants=("math", "fused"))),
        ):
            case = Case(f"sink-{name}-{dtype}", dtype, 64, (2, 14, 7, 70, 150), lse=True, sink=extremes)
            yield dataclasses.replace(case, **fields)
    yield Case("sink-without-lse", "bf16", 128, (1, 4, 4, 200, 300), mask="causal", sink=mixed)
    yield Case("sink-no-keys", "f32", 32, (1, 2, 2, 5, 0), lse=True, sink=(0.5, 100.0))
    yield Case("sink-no-queries", "f32", 32, (1, 2, 2, 0, 5), lse=True, sink=(0.5,))


def _sequence_case(name, dtype, dim, heads, sequences, **fields):
    shape = (len(sequences.q), *heads, max(sequences.q), max(sequences.k))
    fields = {"lse": True, "variants": ("fused",), **fields}
    return Case("sequences-" + name, dtype, dim, shape, sequences=sequences, **fields)


SEQUENCE_KEYS = ("packed", "cache", "packed_cache", "pages", "batch")
PAGES = (1, 16, 64, 256)

# Lengths of queries and keys: empty ones, ones, tiles and one row more or less.
LENGTHS = (
    ((77, 0, 128, 1, 300), (77, 5, 129, 64, 300)),
    ((1, 1, 1, 1), (1, 500, 0, 130)),
    ((129, 64, 33), (1000, 64, 0)),
)


def sequences():
    """Every form with every rule, dtypes, lengths and heads in turn."""
    turn = itertools.count()
    forms = [(True, keys) for keys in SEQUENCE_KEYS] + [(False, keys) for keys in SEQUENCE_KEYS if keys != "batch"]
    for score, mask in RULES + (("bias_b11k_f32", "causal"), (None, "key_padding"), ("alibi_slopes", "documents")):
        for packed_queries, keys in forms:
            n = next(turn)
            q, k = LENGTHS[n % len(LENGTHS)]
            if not packed_queries:
                q = (q[0],) * len(q)
            if keys == "batch":
                k = (k[0],) * len(k)
            page = PAGES[n // len(forms) % len(PAGES)]
            lengths = Sequences(q, k, packed_queries, keys, page)
            form = f"{'packed' if packed_queries else 'batch'}-{keys}{page if keys == 'pages' else ''}"
            name = f"{DTYPES[n % 3]}-{form}-{score or 'plain'}-{mask or 'all'}"
            heads = ((4, 2), (6, 1), (3, 3))[n % 3]
            yield _sequence_case(name, DTYPES[n % 3], (64, 128, 32)[n // 3 % 3], heads, lengths, score=score, mask=mask)
    for dtype in ("bf16", "f32"):
        # Reported against other kernels: empty parts, and lengths of one.
        empty = Sequences((0, 1208, 840, 0), (2538, 1742, 840, 3072))
        yield _sequence_case(f"empty-parts-{dtype}", dtype, 256 if dtype == "bf16" else 64, (4, 1), empty)
        ones = Sequences((1, 0, 1), (3, 0, 5))
        yield _sequence_case(f"ones-{dtype}", dtype, 64, (9, 3), ones, mask="causal")
        nothing = Sequences((0, 0), (0, 3))
        yield _sequence_case(f"no-queries-{dtype}", dtype, 64, (2, 2), nothing)
        many = Sequences(tuple(n % 7 for n in range(100)), tuple(n % 11 for n in range(100)))
        yield _sequence_case(f"many-{dtype}", dtype, 64, (2, 1), many, mask="causal")
        chunk = Sequences((200,) * 3, (200, 700, 450), packed_queries=False, keys="cache")
        yield _sequence_case(f"chunked-prefill-{dtype}", dtype, 128, (4, 2), chunk, mask="causal")
    # Few queries, whose heads share tiles, over keys in parts that some sequences are too short for.
    for n, (keys, parts) in enumerate(itertools.product(("cache", "pages", "packed", "packed_cache"), (1, 5))):
        dtype = DTYPES[n % 3]
        few = Sequences((1 + n % 4,) * 4, (1, 500, 0, 130), packed_queries=False, keys=keys, page=PAGES[n % 4])
        mask = (None, "causal")[n // 2 % 2]
        name = f"parts-{parts}-{dtype}-{keys}-{mask or 'all'}"
        yield _sequence_case(name, dtype, 64, (6, 2), few, mask=mask, schedule=_decode(parts))


    # The same of packed queries: lengths that are none, one, and more than a tile of rows.
    lengths = ((1, 1, 0, 3, 9), (1, 1, 1, 1, 1))
    rules_in_turn = ((None, None), (None, "causal"), ("alibi_slopes", "documents"), ("bias_b11k_f32", "key_padding"))
    turn = itertools.count()
    for keys, parts in itertools.product(SEQUENCE_KEYS, (1, 3, 7)):
        n = next(turn)
        k = (64,) * 5 if keys == "batch" else (1, 500, 70, 0, 130)
        packed = Sequences(lengths[n % 2], k, keys=keys, page=PAGES[n % 4])
        score, mask = rules_in_turn[n % 4]
        fields = dict(score=score, mask=mask, sink=(0.5, -3.25, 4.0) if n % 3 == 0 else None, schedule=_decode(parts))
        dtype, heads = DTYPES[n % 3], ((6, 2), (4, 4), (5, 1))[n // 2 % 3]
        name = f"packed-parts-{parts}-{dtype}-{keys}-{score or 'plain'}-{mask or 'all'}"
        yield _sequence_case(name, dtype, (64, 96)[n % 2], heads, packed, **fields)
    for dtype in ("bf16", "f32"):
        # By the table, and more sequences than a tile has rows.
        queries = tuple(1 + n % 2 for n in range(90))
        keys = tuple(n % 11 * 13 for n in range(90))
        yield _sequence_case(f"packed-few-{dtype}", dtype, 128, (8, 2), Sequences(queries, keys, keys="pages"), mask="causal")
    nothing = Sequences((0, 0), (0, 3))
    yield _sequence_case("packed-parts-no-queries", "bf16", 64, (2, 2), nothing, schedule=_decode(3))


def quantized():
    return quantized_cases.cases(lambda *args, **fields: Case(*args, variants=("fused",), **fields))


# Of one form each: ends that move with the query, or don't, read or computed, and lists of tiles.
TAIL_MASKS = ("causal", "causal_top_left", "window_32_64", "prefix", "near", "neighborhood_100", "document", "documents")
TAIL_MASKS += ("key_padding", "causal_key_padding", "prefix_lengths", "window_and_first", "strided", "keep_blocks")
# Tiles have 64, 128 or 192 rows.
TAILS = (1, 63, 65, 127, 129, 191, 193)


def ragged_tails():
    """Last query tiles of one row, or one less than all, on more keys than queries and on fewer; and such sequences."""
    turn = itertools.count()
    for mask in TAIL_MASKS:
        for nk in (500, 90, 130):
            n = next(turn)
            nq, dtype = TAILS[n % len(TAILS)], DTYPES[n % len(DTYPES)]
            heads = ((2, 2), (6, 2))[n // 2 % 2]
            name = f"ragged-tail-{dtype}-{mask}-{nq}x{nk}"
            yield Case(name, dtype, (64, 128)[n % 2], (2, *heads, nq, nk), mask=mask, lse=True, variants=("fused",))
        keys = SEQUENCE_KEYS[n % len(SEQUENCE_KEYS)]
        k = (200,) * len(TAILS) if keys == "batch" else (1, 500, 65, 300, 40, 191, 0)
        lengths = Sequences(TAILS, k, keys=keys, page=PAGES[n % len(PAGES)])
        yield _sequence_case(f"ragged-tails-{dtype}-{keys}-{mask}", dtype, (64, 128)[n // 2 % 2], heads, lengths, mask=mask)


def listed_sequences():
    """Masks whose visible tiles are listed, of sequences of several tiles in every form."""
    masks = ("window_and_first", "strided", "shuffled_documents", "keep_blocks_of_heads", "prefix_lengths", "hidden_from_row")
    forms = [(True, keys) for keys in SEQUENCE_KEYS] + [(False, keys) for keys in SEQUENCE_KEYS if keys != "batch"]
    for n, (packed_queries, keys) in enumerate(form for form in forms for _ in range(2)):
        mask = masks[n % len(masks)]
        q = (450, 0, 1, 300, 129) if packed_queries else (300,) * 5
        k = (470,) * 5 if keys == "batch" else (470, 40, 257, 0, 900)
        lengths = Sequences(q, k, packed_queries, keys, PAGES[n % len(PAGES)])
        dtype, heads = DTYPES[n % len(DTYPES)], ((4, 2), (3, 3))[n // 2 % 2]
        name = f"listed-{dtype}-{'packed' if packed_queries else 'batch'}-{keys}-{mask}"
        yield _sequence_case(name, dtype, (64, 128)[n // 3 % 2], heads, lengths, mask=mask)
    for name, lengths in (("queries", Sequences((0, 0), (0, 300))), ("keys", Sequences((300, 200), (0, 0)))):
        yield _sequence_case(f"listed-no-{name}", "bf16", 64, (2, 2), lengths, mask="window_and_first")


def _decode(parts, block_m=16, block_n=32, warps=1):
    """A schedule that cuts the keys into `parts` parts, where there are as many steps."""
    tile = f"block_m = {block_m}, block_n = {block_n}, num_stages = 2, num_warps = {warps}"
    return f"{tile}, decode = <max_splits = {parts}, programs_per_sm = 65536>"


DECODE_RULES = RULES + (("alibi_slopes", "causal_key_padding"), ("bias_b11k_f32", None), (None, "documents"))


def latent():
    """Head dimensions 576 and 512, all query heads on one: with decoding, rules, sequences and a strided output."""
    fused = ("fused",)
    for dtype in DTYPES:
        for number in (1, 3):
            fields = dict(v_dim=512, lse=True, sink=(0.5, -3.25), schedule=_decode(number, block_n=16), variants=fused)
            if dtype != "f32":
                fields["schedule"] += ", v_columns = 256"
            else:
                fields["schedule"] += ", v_columns = 128"
            yield Case(f"latent-decode-{number}-{dtype}", dtype, 576, (2, 16, 1, 2, 300), mask="causal", **fields)
        yield Case(f"latent-few-{dtype}", dtype, 576, (2, 16, 1, 1, 200), v_dim=512, lse=True)
        packed = Sequences((77, 0, 1, 130), (77, 5, 64, 200))
        yield _sequence_case(f"latent-packed-{dtype}", dtype, 576, (4, 1), packed, v_dim=512, mask="causal")
        pages = Sequences((33,) * 3, (200, 70, 33), packed_queries=False, keys="pages", page=16)
        yield _sequence_case(f"latent-pages-{dtype}", dtype, 576, (4, 1), pages, v_dim=512, mask="causal")
    for heads, nq, nk in ((128, 1, 700), (32, 2, 333), (40, 3, 90)):
        name = f"latent-{heads}-heads-{nq}"
        yield Case(name, "bf16", 576, (2, heads, 1, nq, nk), v_dim=512, mask="causal", lse=True, variants=fused)
    yield Case("latent-alibi", "bf16", 576, (1, 4, 1, 200, 300), "alibi_slopes", "documents", v_dim=512, lse=True)
    yield Case("latent-fortran-order", "f16", 576, (1, 4, 1, 100, 90), v_dim=512, fortran=True, variants=fused)


def decode():
    """Few queries of packed heads, over keys in parts: ratios, lengths, numbers of parts and rules in turn."""
    ratios = (1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17)
    keys = (1, 2, 31, 32, 33, 77, 200, 513, 1000, 4100)
    parts = (1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 32)
    fused = ("fused",)
    for n, (dtype, queries) in enumerate(itertools.product(DTYPES, range(1, 9))):
        for m in range(3):
            turn = 3 * n + m
            ratio, nk, number = ratios[turn % 11], keys[turn % 10], parts[(turn + turn // 11) % 11]
            score, mask = DECODE_RULES[(turn + turn // 10) % 11]
            dim = (64, 128, 40, 96)[turn % 4]
            shape = (1 + turn % 3, 2 * ratio, 2, queries, nk)
            name = f"decode-{dtype}-d{dim}-{number}-{score or 'plain'}-{mask or 'all'}-" + "x".join(map(str, shape))
            sink = (0.5, -3.25, 40.0) if turn % 3 == 1 else None
            yield Case(
                name, dtype, dim, shape, score, mask, lse=turn % 4 != 3, sink=sink, schedule=_decode(number), variants=fused
            )
    infinity = float("inf")
    for number in (1, 5):
        for name, fields in (
            ("sinks", dict(sink=(-infinity, infinity, 30000.0), mask="last_row_hidden")),
            ("rows-without-keys", dict(mask="all_hidden", sink=(0.5, -infinity))),
            ("every-row-empty", dict(mask="all_hidden")),
            ("empty-parts", dict(mask="window_32_64")),
            ("no-keys", dict(shape=(2, 6, 2, 3, 0))),
            ("no-batch", dict(shape=(0, 6, 2, 3, 90))),
            ("no-queries", dict(shape=(2, 6, 2, 0, 90))),
            ("many-rows", dict(shape=(2, 6, 2, 150, 190), mask="causal", schedule=_decode(number, 64, 64, 4))),
            ("v-dim", dict(v_dim=72)),
            ("fortran-order", dict(fortran=True, mask="causal")),
            ("negative-scale", dict(scale=-0.3)),
        ):
            case = Case(
                f"decode-{number}-{name}", "bf16", 64, (2, 6, 2, 3, 300), lse=True, schedule=_decode(number), variants=fused
            )
            yield dataclasses.replace(case, **fields)


def all_cases():
    basic = [*matrix(), *head_dims(), *reported(), *score_terms(), *captures(), *bounded_masks(), *listed_masks(), *planes(), *key_intervals(), *key_ramps()]
    return [*basic, *sinks(), *sequences(), *ragged_tails(), *listed_sequences(), *quantized(), *decode(), *latent()]
