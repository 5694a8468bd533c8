"""attention() as torch operators, so that torch.compile sees through it.

attnc::attention returns o, attnc::attention_lse (o, lse). Eager calls don't pass
through the dispatcher: they would pay for it and gain nothing.
"""

import functools

import torch

from . import _tensors


def _run(q, k, v, *arguments, return_lse):
    from . import _attention, _backend

    # The dispatcher leaves out what is as in _SCHEMA at the end.
    arguments += _DEFAULTS[len(arguments) :]
    others, options = arguments[: len(_TENSORS)], arguments[len(_TENSORS) :]
    is_causal, left, right, softcap, scale, score_mod, mask_mod, batch_invariant, captures_unchanged, backend = options
    # Of the scope that it runs in, not that it was traced in.
    backend = _backend.choose(backend)
    rules = (
        is_causal, (left, right), softcap, scale, score_mod, mask_mod, return_lse, batch_invariant, backend, True,
    )  # fmt: skip
    return _attention.run(q, k, v, others, rules, captures_unchanged=captures_unchanged)


def _empty_output(q, v):
    dtype = torch.bfloat16 if q.element_size() == 1 else q.dtype
    return q.new_empty((*q.shape[:3], v.shape[3]), dtype=dtype)


def _empty_outputs(q, v):
    return _empty_output(q, v), q.new_empty(q.shape[:3], dtype=torch.float32)


def _refuse_gradient(*_):
    raise NotImplementedError(_tensors.NO_GRADIENT)


def refuse_gradient_transform():
    """Of torch.func, which asks for more than register_autograd before it comes to _refuse_gradient."""
    if not torch.compiler.is_compiling():
        interpreter = torch._C._functorch.peek_interpreter_stack()
        if interpreter is not None and interpreter.key().name in ("Grad", "Jvp"):
            _refuse_gradient()


_TENSORS = (
    "attn_mask", "alibi_slopes", "sink", "q_descale", "k_descale", "v_descale", "cu_seqlens_q", "cu_seqlens_k",
    "seqused_k", "block_table",
)  # fmt: skip
_DEFAULTS = (*[None] * len(_TENSORS), False, -1, -1, 0.0, None, None, None, False, False, "auto")
_SCHEMA = f"""(
    Tensor q, Tensor k, Tensor v, {", ".join(f"Tensor? {name}=None" for name in _TENSORS)},
    bool is_causal=False, int window_left=-1, int window_right=-1, float softcap=0.0, float? scale=None,
    str? score_mod=None, str? mask_mod=None, bool batch_invariant=False, bool captures_unchanged=False,
    str backend='auto')"""


def _define(name, results, function, fake):
    operator = torch.library.custom_op(name, function, mutates_args=(), schema=f"{_SCHEMA} -> {results}")
    operator.register_fake(lambda q, k, v, *_, **__: fake(q, v))
    operator.register_autograd(_refuse_gradient)
    return operator


_attention_op = _define("attnc::attention", "Tensor", functools.partial(_run, return_lse=False), _empty_output)
_attention_lse_op = _define(
    "attnc::attention_lse", "(Tensor, Tensor)", functools.partial(_run, return_lse=True), _empty_outputs
)


def call(*arguments, return_lse):
    """The operator, for a graph that is being traced."""
    return (_attention_lse_op if return_lse else _attention_op)(*arguments)
