"""Repeated calls on torch tensors: what was checked once is only looked up.

DLPack makes a capsule a tensor and a call, which costs more than the launch. A
call on tensors laid out like those of an earlier one needs their addresses only.
"""

import ctypes
import sys

from . import _tensors
from ._library import last_error, library

_launch = library.attnc_launch_with
_MAX_REPLAYS = 256
#: Types of tensors whose layout says all about them; a subclass may be no memory at all.
_plain_types = set()


class Replays:
    """Those of a kernel or a function, by the tensors' layouts and what else the result depends on."""

    def __init__(self):
        self._known = {}

    def find(self, tensors, *options):
        """(a replay or None, the key to add one by; None if there can't be one)"""
        key = [*options]
        for tensor in tensors:
            if type(tensor) not in _plain_types:
                return None, None
            key += (tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.is_neg())
        key = tuple(key)
        return self._known.get(key), key

    def add(self, key, replay):
        if len(self._known) >= _MAX_REPLAYS:
            self._known.clear()
        self._known[key] = replay


def can_replay(tensors):
    """Whether all are torch's own; from then on find() knows such tensors."""
    torch = sys.modules.get("torch")
    if torch is None or not all(type(t) in (torch.Tensor, torch.nn.Parameter) for t in tensors):
        return False
    _plain_types.update((torch.Tensor, torch.nn.Parameter))
    return True


class Replay:
    """Launches a kernel on tensors that are laid out like those it was made for."""

    def __init__(self, kernel, handle, views, num_inputs, order, outputs):
        """`views`: DLPack's of the inputs, then the outputs; `order`: which of them each argument is."""
        torch = sys.modules["torch"]
        self._kernel = kernel  # which owns the handle
        self._handle = handle
        self._views = [_tensors.copy_view(views[index][0]) for index in order]
        self._descriptors = (ctypes.c_void_p * len(order))(*[ctypes.addressof(v) for v, _ in self._views])
        self._addresses = ctypes.c_void_p * len(order)
        self._num_inputs = num_inputs
        self._order = order
        self._outputs = [(output.shape, output.dtype, output.device) for output in outputs]
        self._gpu = outputs[0].device.index if outputs[0].is_cuda else None
        self._get_stream = _tensors.raw_stream_getter()
        self._empty = torch.empty
        self._is_grad_enabled = torch.is_grad_enabled

    def __call__(self, tensors, stream, captures_unchanged):
        """`tensors`: the inputs, and the outputs unless they are to be made. Returns the outputs."""
        if self._is_grad_enabled():
            for tensor in tensors:
                if tensor.requires_grad:
                    raise NotImplementedError(_tensors.NO_GRADIENT)
        outputs = tensors[self._num_inputs :]
        if not outputs:
            outputs = [
                self._empty(shape, dtype=dtype, device=device)
                for shape, dtype, device in self._outputs
            ]
            tensors = (*tensors, *outputs)
        if stream is None:
            if self._gpu is not None:
                stream = self._get_stream(self._gpu)
        elif hasattr(stream, "cuda_stream"):
            stream = stream.cuda_stream
        addresses = [tensor.data_ptr() for tensor in tensors]
        addresses = self._addresses(*[addresses[index] for index in self._order])
        if _launch(self._handle, stream, self._descriptors, addresses, len(addresses), captures_unchanged):
            raise last_error()
        return outputs[0] if len(outputs) == 1 else tuple(outputs)
