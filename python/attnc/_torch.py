"""attention() as torch operators, so that torch.compile sees through it.

attnc::attention returns o, attnc::attention_lse (o, lse). Eager calls don't pass
through the dispatcher: they would pay for it and gain nothing.
"""

from typing import Optional, Tuple

import torch
from torch import Tensor

from . import _tensors


def _run(*arguments, return_lse):
    from . import _attention

    q, k, v, attn_mask, alibi_slopes, is_causal, left, right, softcap, scale, score_mod, mask_mod, backend = arguments
    return _attention.run(
        q, k, v, attn_mask=attn_mask, alibi_slopes=alibi_slopes, is_causal=is_causal,
        window_size=(left, right), softcap=softcap, scale=scale, score_mod=score_mod,
        mask_mod=mask_mod, return_lse=return_lse, backend=backend,
    )  # fmt: skip


def _empty_output(q, v):
    return q.new_empty((*q.shape[:3], v.shape[3]))


@torch.library.custom_op("attnc::attention", mutates_args=())
def _attention_op(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Optional[Tensor], alibi_slopes: Optional[Tensor],
    is_causal: bool, window_left: int, window_right: int, softcap: float, scale: Optional[float],
    score_mod: Optional[str], mask_mod: Optional[str], backend: str,
) -> Tensor:  # fmt: skip
    return _run(
        q, k, v, attn_mask, alibi_slopes, is_causal, window_left, window_right, softcap, scale,
        score_mod, mask_mod, backend, return_lse=False,
    )  # fmt: skip


@_attention_op.register_fake
def _(q, k, v, *_):
    return _empty_output(q, v)


@torch.library.custom_op("attnc::attention_lse", mutates_args=())
def _attention_lse_op(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Optional[Tensor], alibi_slopes: Optional[Tensor],
    is_causal: bool, window_left: int, window_right: int, softcap: float, scale: Optional[float],
    score_mod: Optional[str], mask_mod: Optional[str], backend: str,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    return _run(
        q, k, v, attn_mask, alibi_slopes, is_causal, window_left, window_right, softcap, scale,
        score_mod, mask_mod, backend, return_lse=True,
    )  # fmt: skip


@_attention_lse_op.register_fake
def _(q, k, v, *_):
    return _empty_output(q, v), q.new_empty(q.shape[:3], dtype=torch.float32)


def _refuse_gradient(*_):
    raise NotImplementedError(_tensors.NO_GRADIENT)


_attention_op.register_autograd(_refuse_gradient)
_attention_lse_op.register_autograd(_refuse_gradient)


def call(q, k, v, attn_mask, alibi_slopes, is_causal, window_size, softcap, scale, score_mod, mask_mod, return_lse, backend):
    """The operator, for a graph that is being traced."""
    operator = _attention_lse_op if return_lse else _attention_op
    return operator(
        q, k, v, attn_mask, alibi_slopes, bool(is_causal), *window_size, float(softcap), scale,
        score_mod, mask_mod, backend,
    )  # fmt: skip
