"""What attnc is compared with: torch's and cuDNN's attention as callables.

`inputs` is a callable that yields q, k and v; the callables return the output.
"""

import dataclasses
import functools
import math
import typing

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str
    run: typing.Callable


def sdpa(backend, inputs, causal):
    def run():
        q, k, v = inputs()
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(
                q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1]
            )

    return run


def torch_naive(inputs, mask):
    """The sequence people write: 5 kernels and a copy."""

    def run():
        q, k, v = inputs()
        scores = q @ k.transpose(-1, -2)
        scores = scores * (1 / math.sqrt(q.shape[-1]))
        scores = scores.masked_fill(mask, -math.inf)
        return torch.softmax(scores, -1) @ v

    return run


def cudnn(problem, inputs):
    """cuDNN's kernel for a problem, or the nearest peer where it has none."""
    if problem.mask == "window":
        return cudnn_window(problem, inputs) or flex_window(problem, inputs)
    run = sdpa(SDPBackend.CUDNN_ATTENTION, inputs, problem.mask == "causal")
    if problem.kv_heads == problem.heads:
        return Peer("cuDNN", run)
    try:
        run()
        return Peer("cuDNN", run)
    except RuntimeError:
        return Peer("cuDNN, K and V repeated", repeated(problem, inputs))


def repeated(problem, inputs):
    """cuDNN on K and V that were copied to all heads beforehand."""
    q, k, v = inputs()
    count = problem.heads // problem.kv_heads
    copies = q, k.repeat_interleave(count, 1), v.repeat_interleave(count, 1)
    return sdpa(SDPBackend.CUDNN_ATTENTION, lambda: copies, problem.mask == "causal")


def cudnn_window(problem, inputs):
    """cuDNN's sliding window, which torch doesn't pass on; None without cudnn-frontend."""
    try:
        import cudnn as frontend
    except ImportError:
        return None
    try:
        return Peer("cuDNN's window", build_window(frontend, problem, inputs))
    except (RuntimeError, frontend.cudnnGraphNotSupportedError) as error:
        print(f"cuDNN refuses the window: {error}", flush=True)
        return None


def build_window(frontend, problem, inputs):
    dtype = {"bf16": frontend.data_type.BFLOAT16, "f16": frontend.data_type.HALF}[problem.dtype]
    handle = frontend.create_handle()
    frontend.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
    graph = frontend.pygraph(
        io_data_type=dtype,
        intermediate_data_type=frontend.data_type.FLOAT,
        compute_data_type=frontend.data_type.FLOAT,
        handle=handle,
    )
    out = torch.empty(problem.shapes["o"], device="cuda", dtype=DTYPES[problem.dtype])
    q, k, v = (
        graph.tensor(name=name, dim=list(t.shape), stride=list(t.stride()), data_type=dtype)
        for name, t in zip("qkv", inputs())
    )
    # Its left bound counts the query's own key.
    o, _ = graph.sdpa(
        name="window",
        q=q,
        k=k,
        v=v,
        attn_scale=1 / math.sqrt(problem.dim),
        generate_stats=False,
        diagonal_alignment=frontend.diagonal_alignment.TOP_LEFT,
        diagonal_band_left_bound=problem.window,
        diagonal_band_right_bound=0,
    )
    o.set_output(True).set_dim(list(out.shape)).set_stride(list(out.stride()))
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([frontend.heur_mode.A, frontend.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans()
    workspace = torch.empty(max(graph.get_workspace_size(), 1), device="cuda", dtype=torch.uint8)

    def run():
        buffers = dict(zip((q, k, v), inputs()))
        graph.execute({**buffers, o: out}, workspace, handle=handle)
        return out

    return run


@functools.cache
def compiled_flex():
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=False)


def flex_window(problem, inputs):
    from torch.nn.attention.flex_attention import create_block_mask

    def visible(_batch, _head, q_idx, kv_idx):
        return (kv_idx <= q_idx) & (q_idx - kv_idx < problem.window)

    mask = create_block_mask(visible, None, None, problem.length, problem.length, device="cuda")
    return Peer("FlexAttention, compiled", lambda: compiled_flex()(*inputs(), block_mask=mask))
