"""Repeated calls on torch tensors: what was checked once is only looked up.

DLPack makes a capsule a tensor and a call, which costs more than the launch. A
call on tensors laid out like those of an earlier one needs their addresses only.
Where torch has DLPack's C exchange API (2.10), the library compares the layouts
and reads the addresses itself; else Python does.
"""

import ctypes
import sys

from . import _tensors
from ._library import AttncError, last_error, library, python_library, remarks, warn

_launch = library.attnc_launch_with
_MAX_REPLAYS = 256
_CURRENT_STREAM = 2
_MISSED = 1
#: Types of tensors whose layout says all about them; a subclass may be no memory at all.
_plain_types = set()
#: torch's, once there are such types
_is_grad_enabled = None


class Replays:
    """Those of a kernel or a function, by the tensors' layouts and what else the result depends on."""

    def __init__(self):
        self._known = {}
        #: by options alone: the one of the last call, which most calls are like
        self._last = {}

    def run(self, tensors, options, num_outputs, stream, flags):
        """The outputs, or None if no such call was made; the last `num_outputs` tensors are where to write."""
        for tensor in tensors:
            if type(tensor) not in _plain_types or tensor.is_neg() or tensor.requires_grad and _is_grad_enabled():
                return None
        try:
            last = self._last.get(options)
            if last is not None:
                outputs = last(tensors, num_outputs, stream, flags)
                if outputs is not None:
                    return outputs
            replay = self._known.get(_describe(tensors, options))
        except AttncError:
            raise
        except RuntimeError:  # of torch: sparse and nested tensors have neither strides nor memory
            return None
        if replay is None:
            return None
        if replay.checks_layouts:
            self._last[options] = replay
        return replay(tensors, num_outputs, stream, flags)

    def add(self, tensors, options, replay):
        if len(self._known) >= _MAX_REPLAYS:
            self._known.clear()
            self._last.clear()
        self._known[_describe(tensors, options)] = replay


def _describe(tensors, options):
    key = [options]
    for tensor in tensors:
        key += (tensor.shape, tensor.stride(), tensor.dtype, tensor.device)
    return tuple(key)


def make(kernel, views, order, given, outputs):
    """A replay of a call whose tensors DLPack gave `views` of: the inputs, then the outputs.

    `given`: the inputs as the caller has them; `order`: which of the views each
    argument is.
    """
    descriptors = [_tensors.copy_view(views[index][0]) for index in order]
    addresses = (ctypes.c_void_p * len(order))(*[ctypes.addressof(view) for view, _ in descriptors])
    api = _tensors.exchange_api()
    if api:
        alive = [_tensors.view(tensor) for tensor in (*given, *outputs)]
        objects = (ctypes.c_void_p * len(order))(*[alive[index][0] for index in order])
        handle = library.attnc_replay_create(kernel.handle, api, addresses, objects, len(order))
        if handle:
            return _ObjectReplay(handle, order, given, outputs)
    return _AddressReplay(kernel, descriptors, addresses, order, given, outputs)


def can_replay(tensors):
    """Whether all are torch's own; from then on Replays know such tensors."""
    torch = sys.modules.get("torch")
    if torch is None or not all(type(t) in (torch.Tensor, torch.nn.Parameter) for t in tensors):
        return False
    global _is_grad_enabled
    _is_grad_enabled = torch.is_grad_enabled
    _plain_types.update((torch.Tensor, torch.nn.Parameter))
    return True


class _Replay:
    """Launches a kernel on tensors that are laid out like those it was made for.

    A call takes the inputs and, unless they are to be made, the outputs, of
    which there are `num_outputs`; it returns the outputs.
    """

    #: Whether it may be called with any tensors: None if they are laid out otherwise.
    checks_layouts = False

    def __init__(self, order, given, outputs):
        torch = sys.modules["torch"]
        #: None: as they come
        self._order = None if order == list(range(len(order))) else order
        self._outputs = [(o.shape, _get_row_major_strides(o.shape), o.dtype, o.device) for o in outputs]
        # From the quickest on; torch.empty has most to parse.
        self._is_like_first = len(outputs) == 1 and given[0].is_contiguous() and _is_like(given[0], outputs[0])
        self._empty_like = torch.empty_like
        self._empty = torch.empty_strided

    def _prepare(self, tensors, num_outputs):
        """(one tensor an argument, the outputs)"""
        if num_outputs:
            outputs = tensors[-num_outputs:]
        elif self._is_like_first:
            outputs = (self._empty_like(tensors[0]),)
            tensors += outputs
        else:
            outputs = [
                self._empty(shape, strides, dtype=dtype, device=device)
                for shape, strides, dtype, device in self._outputs
            ]
            tensors = (*tensors, *outputs)
        if self._order is not None:
            tensors = [tensors[index] for index in self._order]
        return tensors, outputs


class _ObjectReplay(_Replay):
    """Hands the library the tensors themselves."""

    checks_layouts = True
    # Smaller outputs are made before the library looks at the inputs.
    _LARGE_OUTPUT_BYTES = 64 << 20

    def __init__(self, handle, order, given, outputs):
        super().__init__(order, given, outputs)
        self._handle = handle
        is_large = sum(o.numel() * o.element_size() for o in outputs) > self._LARGE_OUTPUT_BYTES
        self._shapes = [tensor.shape for tensor in given] if is_large else None
        types = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, *[ctypes.py_object] * len(order)]
        self._launch = ctypes.PYFUNCTYPE(ctypes.c_int, *types)(("attnc_replay_launch", python_library))

    def __del__(self):
        library.attnc_replay_release(self._handle)

    def __call__(self, tensors, num_outputs, stream, flags):
        if self._shapes and self._shapes != [tensor.shape for tensor in tensors[: len(self._shapes)]]:
            return None
        tensors, outputs = self._prepare(tensors, num_outputs)
        if stream is None:
            flags |= _CURRENT_STREAM
        else:
            stream = _tensors.get_stream(stream)
        status = self._launch(self._handle, stream, flags, *tensors)
        if status == _MISSED:
            return None
        if status:
            raise last_error()
        if remarks:
            warn()
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


class _AddressReplay(_Replay):
    """Hands the library the tensors' addresses."""

    def __init__(self, kernel, descriptors, addresses, order, given, outputs):
        super().__init__(order, given, outputs)
        self._kernel = kernel  # which owns the handle
        self._handle = kernel.handle
        self._views = descriptors
        self._descriptors = addresses
        self._addresses = ctypes.c_void_p * len(order)
        self._gpu = outputs[0].device.index if outputs[0].is_cuda else None
        self._get_stream = _tensors.raw_stream_getter()

    def __call__(self, tensors, num_outputs, stream, flags):
        tensors, outputs = self._prepare(tensors, num_outputs)
        if stream is None:
            if self._gpu is not None:
                stream = self._get_stream(self._gpu)
        else:
            stream = _tensors.get_stream(stream)
        addresses = self._addresses(*[tensor.data_ptr() for tensor in tensors])
        if _launch(self._handle, stream, self._descriptors, addresses, len(addresses), flags):
            raise last_error()
        if remarks:
            warn()
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _is_like(tensor, other):
    return (tensor.shape, tensor.dtype, tensor.device) == (other.shape, other.dtype, other.device)


def _get_row_major_strides(shape):
    strides, stride = [], 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= max(size, 1)
    return tuple(reversed(strides))
