"""Fused attention kernels, compiled when they are first needed.

    import attnc
    o = attnc.attention(q, k, v, is_causal=True)      # [B, H, N, D], as PyTorch's

    kernel = attnc.compile(mlir_text)                 # one attn.attention
    o = kernel(q, k, v)

Tensors are anything that speaks DLPack: torch tensors on the GPU or the CPU,
numpy arrays on the CPU. Nothing is copied.
"""

import sys as _sys

from ._attention import attention, explain
from ._backend import Explanation, backend
from ._kernel import Kernel, compile
from ._library import AttncError, AttncWarning, version
from ._profile import Profile, profile

if "torch" in _sys.modules:
    from . import _torch  # noqa: F401

__all__ = [
    "AttncError", "AttncWarning", "Explanation", "Kernel", "Profile", "attention", "backend", "compile", "explain", "profile", "version",
]  # fmt: skip
__version__ = "0.1.0"
