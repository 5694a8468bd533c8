"""attention(): an operator from PyTorch's and FlashAttention's arguments."""

import functools
import numbers
import re
import sys

from . import _backend, _kernel, _replay, _tensors

_replays = _replay.Replays()

_DTYPES = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2")
_MASK_DTYPES = ("i1", "f16", "bf16", "f32")
# Of run()'s `others`, in their order.
_OTHERS = (
    "attn_mask", "alibi_slopes", "sink", "q_descale", "k_descale", "v_descale", "cu_seqlens_q", "cu_seqlens_k", "seqused_k",
    "block_table",
)  # fmt: skip


def attention(
    q,
    k,
    v,
    *,
    attn_mask=None,
    is_causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    alibi_slopes=None,
    scale=None,
    enable_gqa=True,
    score_mod=None,
    mask_mod=None,
    return_lse=False,
    backend="auto",
    sink=None,
    q_descale=None,
    k_descale=None,
    v_descale=None,
    cu_seqlens_q=None,
    cu_seqlens_k=None,
    seqused_k=None,
    block_table=None,
    batch_invariant=False,
    captures_unchanged=False,
    out=None,
    stream=None,
):
    """softmax(scale * q k^T) v of q [B, H, N, D], k and v [B, Hkv, M, D].

    `is_causal`: query i sees keys up to i + M - N (bottom-right aligned, as
    FlashAttention). `window_size`: keys from left before to right after that
    position; -1 is unbounded. `attn_mask`: broadcasts to [B, H, N, M] (or
    [N, M]); of bool, True where a key is seen; of floats, added to scores.
    `softcap` c: scores become c tanh(s / c). `alibi_slopes`: float32 [H] or
    [B, H]; -slope * distance is added to scores. `sink` [H], of floats: a logit
    that joins the softmax's denominator, and the lse, of each row of its head.
    With q, k and v of float8 (e4m3fn, e5m2; sm_90a) o is bfloat16 or as `out`,
    and `q_descale`, `k_descale`, `v_descale` say what their values count:
    float32 [1], [heads] or [B, heads], where q's may be for k's heads too.
    `score_mod` and `mask_mod`: the text of MLIR regions, with their braces, of
    (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) and, without %s,
    of a mask; they apply after the other rules. `return_lse`: also the log of
    the sum of exp, float32 [B, H, N]. `batch_invariant`: a row's result is the
    same to the last bit whatever else is in the batch. `captures_unchanged`
    promises that `attn_mask` and sequences' lengths hold what they held at the
    last call like this on the stream, which then needn't look for tiles that
    see nothing again.

    Sequences of lengths that only the device knows take int32 tensors of
    FlashAttention's names (docs/Sequences.md). `cu_seqlens_q` [S + 1]: q is
    [1, H, T, D] and sequence s has its rows cu_seqlens_q[s] up to
    cu_seqlens_q[s + 1]; `cu_seqlens_k` the same of k and v. `seqused_k` [S]: how
    many keys a sequence has, from its first one on (of a cache, what
    FlashAttention calls cache_seqlens). `block_table` [S, P]: k and v are
    pages [pages, Hkv, page, D], and seqused_k is needed. FlashAttention's
    layouts are views: q.transpose(0, 1)[None], k_cache.transpose(1, 2).

    `backend`: "auto" (that of `with attnc.backend(...)`, else the fused kernel),
    "fused", "naive", "inplace", "math" or "cudnn". One that is named and can't
    serve a call is an error; explain() says why, of each.

    `out`: where to write, a tensor or, with the lse, a tuple; new tensors by
    default. `stream`: a CUDA stream as a number or with `cuda_stream`; by
    default torch's current one.

    Kernels are compiled once for each kind of operator; all batches and lengths
    share one. Under torch.compile, this is the operator torch.ops.attnc.attention.
    """
    # A tensor of one element would be told from others by its identity alone.
    if type(softcap) is not float:
        softcap = _get_number("softcap", softcap)
    if scale is not None and type(scale) is not float:
        scale = _get_number("scale", scale)
    if type(window_size) is not tuple:
        window_size = _get_window(window_size)
    torch = sys.modules.get("torch")
    if torch is not None and (torch.compiler.is_compiling() or _tensors.is_watched()):
        others = (
            attn_mask, alibi_slopes, sink, q_descale, k_descale, v_descale, cu_seqlens_q, cu_seqlens_k, seqused_k, block_table,
        )  # fmt: skip
        rules = (
            is_causal, window_size, softcap, scale, score_mod, mask_mod, return_lse, batch_invariant, backend, enable_gqa,
        )  # fmt: skip
        return _dispatch(q, k, v, others, rules, out, stream, captures_unchanged)
    others = None
    if not (
        attn_mask is alibi_slopes is sink is q_descale is k_descale is v_descale is cu_seqlens_q is cu_seqlens_k
        is seqused_k is block_table is None
    ):  # fmt: skip
        others = (
            attn_mask, alibi_slopes, sink, q_descale, k_descale, v_descale, cu_seqlens_q, cu_seqlens_k, seqused_k, block_table,
        )  # fmt: skip
    backend = _backend.choose(backend)
    rules = (
        is_causal, window_size, softcap, scale, score_mod, mask_mod, return_lse, batch_invariant, backend, enable_gqa,
    )  # fmt: skip
    return run(q, k, v, others, rules, out, stream, captures_unchanged)


def run(q, k, v, others, rules, out=None, stream=None, captures_unchanged=False):
    """attention() on tensors that have values; `others` (None if there are none) and `rules` as it makes them."""
    given, present = (q, k, v), None
    if others is not None:
        others = _spread_q_descale(others, q)
        present = tuple([tensor is not None for tensor in others])
        given += tuple([tensor for tensor in others if tensor is not None])
    inputs, num_outputs = given, 0
    if out is not None:
        outputs = _tensors.as_outputs(out)
        given, num_outputs = (*given, *outputs), len(outputs)
    options = (*rules, present, num_outputs)
    result = _replays.run(given, options, num_outputs, stream, captures_unchanged)
    if result is None:
        if _tensors.is_meta(q):
            return _dispatch(q, k, v, others, rules, out, stream, captures_unchanged)
        _check_tensors(q, k, v, others)
        if any(_tensors.is_virtual(tensor) for tensor in inputs):
            return _dispatch(q, k, v, others, rules, out, stream, captures_unchanged)
        kernel, tensors = _prepare(q, k, v, others, rules, out)
        result, replay = kernel.launch(tensors, out, stream, captures_unchanged, inputs)
        if replay is not None:
            _replays.add(given, options, replay)
    return result


def _dispatch(q, k, v, others, rules, out, stream, captures_unchanged):
    """As torch's operator: for what traces it, or tensors that are no memory."""
    from . import _torch

    if out is not None or stream is not None:
        raise NotImplementedError("out= and stream= aren't supported under torch.compile, nor with tensors that are no memory")
    _torch.refuse_gradient_transform()
    is_causal, window_size, softcap, scale, score_mod, mask_mod, return_lse, batch_invariant, backend, enable_gqa = rules
    _check_flags(is_causal=is_causal, return_lse=return_lse, batch_invariant=batch_invariant, enable_gqa=enable_gqa)
    _check_rules(window_size, softcap, scale, score_mod, mask_mod)
    _check_shapes(q, k, v, enable_gqa)
    return _torch.call(
        q, k, v, *(others or (None,) * len(_OTHERS)), bool(is_causal), *window_size, softcap, scale, score_mod, mask_mod,
        batch_invariant, captures_unchanged, backend, return_lse=return_lse,
    )  # fmt: skip


def explain(
    q, k, v, *, attn_mask=None, is_causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None, scale=None,
    enable_gqa=True, score_mod=None, mask_mod=None, return_lse=False, backend="auto", sink=None, q_descale=None,
    k_descale=None, v_descale=None, cu_seqlens_q=None, cu_seqlens_k=None, seqused_k=None, block_table=None,
    batch_invariant=False, target=None,
):  # fmt: skip
    """Says of each backend whether attention() with these arguments would use it, could, or why it can't.

    An Explanation: print it, or see `chosen` and `backends`. Nothing is run, so
    that torch's "meta" tensors do, for sizes that no memory has. `target`: as of
    compile(), instead of that of the tensors' device: "sm_90a" explains on a
    machine without such a GPU.
    """
    others = (
        attn_mask, alibi_slopes, sink, q_descale, k_descale, v_descale, cu_seqlens_q, cu_seqlens_k, seqused_k, block_table,
    )  # fmt: skip
    backend = _backend.choose(backend)
    rules = (
        is_causal, _get_window(window_size), _get_number("softcap", softcap),
        None if scale is None else _get_number("scale", scale), score_mod, mask_mod, return_lse, batch_invariant, backend,
        enable_gqa,
    )  # fmt: skip
    _check_tensors(q, k, v, others, has_memory=False)
    inputs, problem = _describe(q, k, v, _spread_q_descale(others, q), rules, None)
    device = _tensors.device_of(q)
    if target is None:
        target = "cpu" if device is None and not _tensors.is_meta(q) else "native"
    return _kernel.explain(_print(*problem), inputs, target, backend, device=device or 0)


def _prepare(q, k, v, others, rules, out):
    """(the kernel, its inputs)"""
    inputs, problem = _describe(q, k, v, others, rules, out)
    return _get_kernel(_tensors.device_of(q), rules[-2], *problem), inputs


def _describe(q, k, v, others, rules, out):
    """(the inputs of a kernel, what _print makes its text of)"""
    attn_mask, alibi_slopes, sink, *others = others or (None,) * len(_OTHERS)
    descales, sequences = others[:3], others[3:]
    cu_seqlens_q, _, _, block_table = sequences
    (
        is_causal, window_size, softcap, scale, score_mod, mask_mod, return_lse, batch_invariant, _, enable_gqa,
    ) = rules  # fmt: skip
    _check_flags(is_causal=is_causal, return_lse=return_lse, batch_invariant=batch_invariant, enable_gqa=enable_gqa)
    _check_shapes(q, k, v, enable_gqa)
    _check_rules(window_size, softcap, scale, score_mod, mask_mod)
    dtypes = _get_dtypes(q, k, v, out)
    captures, types = [], {}
    if attn_mask is not None:
        mask = attn_mask if len(attn_mask.shape) == 4 else attn_mask[(None,) * (4 - len(attn_mask.shape))]
        sizes = (
            _count_sequences(q, k, *sequences),
            q.shape[1],
            None if cu_seqlens_q is not None else q.shape[2],
            None if any(x is not None for x in sequences[1:]) else k.shape[2],
        )
        types["mask"] = _get_capture_type("attn_mask", mask, sizes, _MASK_DTYPES)
        captures.append(mask)
    if alibi_slopes is not None:
        sizes = (_count_sequences(q, k, *sequences), q.shape[1])[len(alibi_slopes.shape) == 1 :]
        types["slopes"] = _get_capture_type("alibi_slopes", alibi_slopes, sizes, ("f32",))
        captures.append(alibi_slopes)
    scales = {}
    if sink is not None:
        scales["sink"] = _get_sink_type(sink, q.shape[1])
        captures.append(sink)
    for name, tensor, descale in zip("qkv", (q, k, v), descales):
        if descale is not None:
            if not dtypes[0].startswith("f8"):
                raise ValueError(f"{name}_descale is for tensors of float8, not of {q.dtype}; use scale")
            scales[name + "_scale"] = _get_descale_type(name, tensor, descale)
            captures.append(descale)
    if block_table is not None and sequences[2] is None:
        raise ValueError("block_table needs seqused_k: pages don't say how many of their rows are keys")
    lengths = {}
    for name, tensor, rank in zip(_SEQUENCE_OPERANDS, sequences, (1, 1, 1, 2)):
        if tensor is None:
            continue
        if str(tensor.dtype).rpartition(".")[2] != "int32" or len(tensor.shape) != rank:
            raise TypeError(
                f"{_SEQUENCE_OPERANDS[name]} must be an int32 tensor of {rank} dimensions, "
                f"not {tensor.dtype} of {tuple(tensor.shape)}"
            )
        lengths[name] = tensor
    page = k.shape[2] if block_table is not None else None
    problem = (
        dtypes, q.shape[1], k.shape[1], q.shape[3], v.shape[3], bool(is_causal),
        window_size, float(softcap), types.get("mask"), types.get("slopes"),
        None if scale is None else float(scale), score_mod, mask_mod, bool(return_lse),
        tuple(lengths), page, tuple(scales.items()), bool(batch_invariant),
    )  # fmt: skip
    return (q, k, v, *captures, *lengths.values()), problem


def _check_tensors(q, k, v, others, has_memory=True):
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        _tensors.check(name, tensor, has_memory=has_memory)
    for name, tensor in zip(_OTHERS, others or ()):
        if tensor is not None:
            _tensors.check(name, tensor, has_memory=has_memory)


def _get_dtypes(q, k, v, out):
    """Of q, k, v and o, as MLIR has them."""
    first = _tensors.name_of("q", q)
    if first not in _DTYPES:
        known = ", ".join(_tensors.NAMES[name] for name in _DTYPES)
        raise TypeError(f"q is of {q.dtype}, which isn't supported; known are {known}")
    if not first.startswith("f8"):
        for name, tensor in (("k", k), ("v", v)):
            if _tensors.name_of(name, tensor) != first:
                raise TypeError(f"{name} is of {tensor.dtype}, but q of {q.dtype}; pass both of one type")
        return (first,) * 4
    result = "bf16"
    if out is not None:
        output = _tensors.as_outputs(out)[0]
        _tensors.check("out", output, is_output=True)
        result = _tensors.name_of("out", output)
    return (first, _tensors.name_of("k", k), _tensors.name_of("v", v), result)


def _spread_q_descale(others, q):
    """One for each of k's heads, as FlashAttention has it, as one for each of q's."""
    descale = others[3]
    if descale is None:
        return others
    for name, tensor in (("q", q), ("q_descale", descale)):
        _tensors.check(name, tensor, has_memory=False)
    _check_rank("q", q)
    heads, shape = q.shape[1], tuple(descale.shape)
    if shape[-1:] in ((1,), (heads,)):
        return others
    count = shape[-1] if shape else 0
    if count == 0 or heads % count:
        raise ValueError(f"q_descale of shape {shape} isn't for {heads} heads")
    spread = descale[..., None].expand(*descale.shape, heads // count).reshape(*descale.shape[:-1], heads)
    return (*others[:3], spread, *others[4:])


def _get_descale_type(name, tensor, descale):
    """Of a descale of [1], [heads] or [batch, heads]."""
    dtype, shape = _tensors.name_of(f"{name}_descale", descale), tuple(descale.shape)
    batch, heads = tensor.shape[:2]
    if dtype != "f32" or shape not in ((1,), (heads,), (batch, heads)):
        raise ValueError(
            f"{name}_descale must be float32 of shape (1,), ({heads},) or ({batch}, {heads}), not {dtype} of {shape}"
        )
    return f"tensor<{'?x' if len(shape) == 2 else ''}{shape[-1]}xf32>"


def _get_sink_type(sink, heads):
    dtype, shape = _tensors.name_of("sink", sink), tuple(sink.shape)
    if dtype not in ("f16", "bf16", "f32") or shape != (heads,):
        raise ValueError(f"sink must be float16, bfloat16 or float32 of shape ({heads},), not {dtype} of {shape}")
    return f"tensor<{heads}x{dtype}>"


# The operator's names for what FlashAttention calls so.
_SEQUENCE_OPERANDS = {
    "cu_q": "cu_seqlens_q",
    "cu_k": "cu_seqlens_k",
    "kv_len": "seqused_k",
    "block_table": "block_table",
}
# What errors call the arguments.
_ARGUMENTS = {
    "mask": "attn_mask",
    "slopes": "alibi_slopes",
    "q_scale": "q_descale",
    "k_scale": "k_descale",
    "v_scale": "v_descale",
    "o": "out",
    **_SEQUENCE_OPERANDS,
}


def _count_sequences(q, k, cu_seqlens_q, cu_seqlens_k, seqused_k, block_table):
    return q.shape[0] if cu_seqlens_q is None else cu_seqlens_q.shape[0] - 1


def _get_capture_type(name, tensor, sizes, dtypes):
    """Of a tensor that broadcasts to `sizes`, of which None is any; a size of 1 is static, which broadcasts it."""
    dtype = _tensors.name_of(name, tensor)
    if dtype not in dtypes:
        known = ", ".join(_tensors.NAMES[known] for known in dtypes)
        raise TypeError(f"{name} is of {tensor.dtype}, which isn't supported; known are {known}")
    shape = tuple(tensor.shape)
    if len(shape) != len(sizes) or any(size is not None and n not in (1, size) for n, size in zip(shape, sizes)):
        raise ValueError(f"{name} of shape {shape} doesn't broadcast to {sizes}")
    return f"tensor<{''.join('1x' if n == 1 else '?x' for n in shape)}{dtype}>"


# Of float32.
_GREATEST, _LEAST = 3.4e38, 1.2e-38


def _get_window(window_size):
    if not isinstance(window_size, (tuple, list)):
        raise TypeError(f"window_size must be two bounds (left, right), not {type(window_size).__name__}")
    return tuple(window_size)


def _get_number(name, value):
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}") from None


def _check_flags(**flags):
    for name, flag in flags.items():
        if not isinstance(flag, numbers.Integral):
            raise TypeError(f"{name} must be True or False, not {type(flag).__name__}")


def _check_rules(window_size, softcap, scale, score_mod, mask_mod):
    if len(window_size) != 2 or not all(isinstance(bound, numbers.Integral) and bound >= -1 for bound in window_size):
        raise ValueError(f"window_size must be two bounds of -1 or more, integers, not {window_size}")
    if softcap and not _LEAST <= abs(softcap) <= _GREATEST:
        raise ValueError(f"softcap must be 0 or a finite float32, not {softcap}")
    if scale is not None and not abs(scale) <= _GREATEST:
        raise ValueError(f"scale must be a finite float32, not {scale}")
    for name, rule in (("score_mod", score_mod), ("mask_mod", mask_mod)):
        if rule is not None and not isinstance(rule, str):
            raise TypeError(f"{name} must be the text of an MLIR region (docs/API.md), not {type(rule).__name__}")


def _check_rank(name, tensor):
    if len(tensor.shape) != 4:
        raise ValueError(f"{name} has {len(tensor.shape)} dimensions, needed are 4: batch, heads, length, head dimension")


def _check_shapes(q, k, v, enable_gqa):
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        _check_rank(name, tensor)
    for dim, what in ((0, "batches"), (1, "heads"), (2, "rows")):
        if k.shape[dim] != v.shape[dim]:
            raise ValueError(f"k has {k.shape[dim]} {what} and v has {v.shape[dim]}, which must be equal")
    if q.shape[3] != k.shape[3]:
        raise ValueError(f"q has a head dimension of {q.shape[3]} and k of {k.shape[3]}, which must be equal")
    heads, kv_heads = q.shape[1], k.shape[1]
    if heads != kv_heads and (kv_heads == 0 or heads % kv_heads):
        raise ValueError(f"q has {heads} heads, which is no multiple of k's {kv_heads}")
    if not enable_gqa and heads != kv_heads:
        raise ValueError(f"q has {heads} heads and k has {kv_heads}: this needs enable_gqa=True")


@functools.lru_cache(maxsize=256)
def _get_kernel(device, backend, *problem):
    if device is None:
        return _kernel.compile(_print(*problem), "cpu", backend=backend)
    return _kernel.compile(_print(*problem), "native", backend=backend, device=device)


# --- MLIR --------------------------------------------------------------------


def _print(
    dtypes, heads, kv_heads, qk_dim, v_dim, is_causal, window, softcap, mask_type, slopes_type, scale,
    score_mod, mask_mod, return_lse, lengths, page, scales, batch_invariant,
):  # fmt: skip
    captures = {"mask": mask_type, "slopes": slopes_type}
    captures = {name: type_ for name, type_ in captures.items() if type_}
    return _print_module(
        dtypes, heads, kv_heads, qk_dim, v_dim, scale, return_lse, captures, dict(scales), lengths, page,
        _print_score_mod(softcap, captures, score_mod),
        _print_mask_mod(is_causal, window, captures, mask_mod), batch_invariant,
    )  # fmt: skip


def _print_module(
    dtypes, heads, kv_heads, qk_dim, v_dim, scale, return_lse, captures, scales, lengths, page, score_mod, mask_mod,
    batch_invariant,
):  # fmt: skip
    batch, kv_batch = ("1" if name in lengths else "?" for name in ("cu_q", "cu_k"))
    q_rows, kv_rows = f"{batch}x{heads}x?", f"{kv_batch}x{kv_heads}x{page or '?'}"
    rows = ((q_rows, qk_dim), (kv_rows, qk_dim), (kv_rows, v_dim), (q_rows, v_dim))
    q, k, v, o = (f"tensor<{row}x{dim}x{dtype}>" for (row, dim), dtype in zip(rows, dtypes))
    outs = [("o", o)] + ([("lse", f"tensor<{q_rows}xf32>")] if return_lse else [])
    length_types = {name: "tensor<?x?xi32>" if name == "block_table" else "tensor<?xi32>" for name in lengths}
    inputs = [("q", q), ("k", k), ("v", v), *captures.items(), *scales.items(), *length_types.items()]
    arguments = ", ".join(
        f'%{name}: {type_} {{attn.name = "{_ARGUMENTS.get(name, name)}"}}' for name, type_ in [*inputs, *outs]
    )
    inputs = ", ".join("%" + name for name in ["q", "k", "v", *captures])
    input_types = ", ".join([q, k, v, *captures.values()])
    names = ", ".join("%" + name for name, _ in outs)
    types = ", ".join(type_ for _, type_ in outs)
    results = ", ".join(f"%r#{i}" for i in range(len(outs)))
    # In the order in which the operator takes them.
    others = sorted([*length_types.items(), *scales.items()], key=lambda item: item[0] != "sink")
    operands = "".join(f"{name}(%{name} : {type_}) " for name, type_ in others)
    attributes = [] if scale is None else [f"scale = {_print_f32(scale)}"]
    attributes += ["batch_invariant"] if batch_invariant else []
    attributes = f" {{{', '.join(attributes)}}}" if attributes else ""
    return f"""func.func @attention({arguments}) -> ({types}) {{
  %r:{len(outs)} = attn.attention ins({inputs} : {input_types}) {operands}outs({names} : {types}){attributes}
{score_mod}{mask_mod} -> {types}
  return {results} : {types}
}}
"""


def _print_f32(value):
    """A constant whatever its value, infinities and NaN included."""
    return f"{value!r} : f32" if abs(value) < 3e38 and "e" not in repr(value) else f"{value:.9e} : f32"


_POSITION = """    %q_len = attn.q_len : i32
    %kv_len = attn.kv_len : i32
    %shift = arith.subi %kv_len, %q_len : i32
    %position = arith.addi %q_idx, %shift : i32
"""


def _own(text):
    """Renames our values, so that a caller's region may use any name."""
    return re.sub(r"%(?!(?:b|h|s|q_idx|kv_idx)\b)(?=\w)", "%attnc_", text)


def _strip_braces(name, region):
    text = region.strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError(f"{name} must be the text of a region, in braces")
    return text[1:-1]


def _split_yield(name, region, type_):
    """The operations before a region's attn.yield, and the value that it yields."""
    body, found, last = _strip_braces(name, region).rpartition("attn.yield")
    value = last.partition(":")[0].strip()
    if not found or last.partition(":")[2].strip() != type_:
        raise ValueError(f"{name} must end in attn.yield of {type_}")
    return body, value


def _print_score_mod(softcap, captures, score_mod):
    """Softcap, then ALiBi, then a mask of floats, then the caller's."""
    mask_type = captures.get("mask", "i1>")
    body, score = "", "%score"
    if softcap:
        body += f"""    %cap = arith.constant {_print_f32(softcap)}
    %uncapped = arith.divf {score}, %cap : f32
    %tanh = math.tanh %uncapped : f32
    %capped = arith.mulf %tanh, %cap : f32
"""
        score = "%capped"
    if "slopes" in captures:
        body += _print_alibi(captures["slopes"], score)
        score = "%biased"
    if not mask_type.endswith("i1>"):
        body += _print_float_mask(mask_type, score)
        score = "%masked"
    if score_mod is None:
        return "" if score == "%score" else _wrap("score_mod (%score: f32, ", captures, _own(body), _own(score), "f32")
    own, value = _split_yield("score_mod", score_mod, "f32")
    # A name for what the caller's region takes as %s.
    body += f"    %zero = arith.constant -0.0 : f32\n    %s = arith.addf {score}, %zero : f32\n"
    return _wrap("score_mod (%score: f32, ", captures, _own(body) + own, value, "f32")


def _print_alibi(slopes_type, score):
    indices = "%b, %h" if slopes_type.count("x") == 2 else "%h"
    return f"""{_POSITION}    %slope = attn.capture_load %slopes[{indices}] : {slopes_type} -> f32
    %left = arith.minsi %kv_idx, %position : i32
    %right = arith.maxsi %kv_idx, %position : i32
    %minus_distance = arith.subi %left, %right : i32
    %minus_distance_f = arith.sitofp %minus_distance : i32 to f32
    %bias = arith.mulf %slope, %minus_distance_f : f32
    %biased = arith.addf {score}, %bias : f32
"""


def _print_float_mask(mask_type, score):
    dtype = mask_type.rpartition("x")[2][:-1]
    body = f"    %loaded = attn.capture_load %mask[%b, %h, %q_idx, %kv_idx] : {mask_type} -> {dtype}\n"
    if dtype != "f32":
        body += f"    %extended = arith.extf %loaded : {dtype} to f32\n"
    return body + f"    %masked = arith.addf {score}, {'%loaded' if dtype == 'f32' else '%extended'} : f32\n"


def _print_mask_mod(is_causal, window, captures, mask_mod):
    """All of: the window, causal, a mask of bool, the caller's."""
    # Positions are below 2^30; beyond, a sum would wrap.
    left, right = (min(bound, 1 << 30) for bound in window)
    if is_causal:
        right = 0 if right < 0 else min(right, 0)
    body, visible = "", []
    if left >= 0 or right >= 0:
        body += _POSITION
    for name, bound, operation, predicate in (
        ("first", left, "subi", "sge"),
        ("last", right, "addi", "sle"),
    ):
        if bound >= 0:
            body += f"""    %{name}_bound = arith.constant {bound} : i32
    %{name} = arith.{operation} %position, %{name}_bound : i32
    %visible_{name} = arith.cmpi {predicate}, %kv_idx, %{name} : i32
"""
            visible.append(f"%visible_{name}")
    if captures.get("mask", "").endswith("i1>"):
        body += f"    %seen = attn.capture_load %mask[%b, %h, %q_idx, %kv_idx] : {captures['mask']} -> i1\n"
        visible.append("%seen")
    body, visible = _own(body), [_own(name) for name in visible]
    if mask_mod is not None:
        own, value = _split_yield("mask_mod", mask_mod, "i1")
        body += own
        visible.append(value)
    if not visible:
        return ""
    result = visible[0]
    for index, value in enumerate(visible[1:]):
        body += f"\n    %attnc_all{index} = arith.andi {result}, {value} : i1\n"
        result = f"%attnc_all{index}"
    return _wrap("mask_mod (", captures, body, result, "i1")


def _wrap(head, captures, body, value, type_):
    """Both regions take all captures."""
    arguments = "".join(f", %{name}: {capture}" for name, capture in captures.items())
    return f"""  {_own(head)}%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32{_own(arguments)}) {{
{body}
    attn.yield {value} : {type_}
  }}
"""
