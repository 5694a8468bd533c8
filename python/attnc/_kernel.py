"""Compiled kernels."""

import ctypes
import json
import os

from . import _backend, _replay, _tensors
from ._library import Options, last_error, library, on_remark, remarks, warn

_MAX_RANK = 8
# Of inputs, whose outputs' shapes a kernel remembers.
_MAX_SHAPES = 256
# Looked up once: they are on the way of every call.
_launch = library.attnc_launch_with


class Kernel:
    """A loaded kernel, or kernel sequence. Made by compile()."""

    def __init__(self, handle):
        self.handle = handle
        #: docs/Manifest.md
        self.manifest = json.loads(library.attnc_manifest(handle))
        #: "NVIDIA H200", or the CPU's name
        self.device_name = library.attnc_device_name(handle).decode()
        arguments = self.manifest["arguments"]
        self._inputs = [a for a in arguments if a["role"] == "input"]
        self._outputs = [a for a in arguments if a["role"] == "output"]
        self._has_scalars = any(a["kind"] == "scalar" for a in self._inputs)
        self._output_shapes = {}
        self._replays = _replay.Replays()
        #: of each argument, where it is among the inputs and then the outputs
        self._order = [(self._inputs + self._outputs).index(a) for a in arguments]
        self._pointers = ctypes.c_void_p * len(arguments)

    def __del__(self):
        library.attnc_release(self.handle)

    def __repr__(self):
        entry, variant, target = (self.manifest[key] for key in ("entry", "variant", "target"))
        return f"<attnc.Kernel {entry}: {variant} for {target} on {self.device_name}>"

    def prepare(self):
        """Makes all machine code now, so that no launch waits for it; returns the kernel.

        Else a GPU's is made when a launch first needs it: a fused operator has
        kernels for several lengths.
        """
        if library.attnc_prepare(self.handle):
            raise last_error()
        if remarks:
            warn()
        return self

    def __call__(self, *tensors, out=None, stream=None, captures_unchanged=False):
        """Runs one forward on the inputs; returns the output, or a tuple of them.

        `out`: where to write, a tensor or a tuple; new tensors by default.
        `stream`: a CUDA stream as a number or with `cuda_stream`; by default
        torch's current one. `captures_unchanged`: a promise that the tensors
        which a mask reads and sequences' lengths hold what they held at the
        last launch of the kernel on the stream.
        """
        if len(tensors) != len(self._inputs):
            names = ", ".join(argument["name"] for argument in self._inputs)
            raise TypeError(f"{len(self._inputs)} inputs are needed ({names}), {len(tensors)} given")
        given = tensors if out is None else (*tensors, *_tensors.as_outputs(out))
        num_outputs = len(given) - len(tensors)
        result = self._replays.run(given, num_outputs, num_outputs, stream, captures_unchanged)
        if result is None:
            for argument, tensor in zip(self._inputs, tensors):
                if argument["kind"] == "tensor":
                    _tensors.check(argument["name"], tensor)
            result, replay = self.launch(tensors, out, stream, captures_unchanged)
            if replay is not None:
                self._replays.add(given, num_outputs, replay)
        return result

    def launch(self, tensors, out, stream, captures_unchanged, given=None):
        """(the output or outputs, a replay for tensors like these, if they can have one)

        `given`: what the caller has in place of `tensors`, in the same memory.
        """
        views = [self._view(*pair) for pair in zip(self._inputs, tensors)]
        outputs = self._make_outputs(tensors, views) if out is None else _tensors.as_outputs(out)
        if len(outputs) != len(self._outputs):
            raise TypeError(f"{len(self._outputs)} outputs are needed, out= has {len(outputs)}")
        if out is not None:
            for argument, output in zip(self._outputs, outputs):
                _tensors.check(argument["name"], output, is_output=True)
        views += [self._view(*pair) for pair in zip(self._outputs, outputs)]
        pointers = self._pointers(*[views[index][0] for index in self._order])
        stream = _tensors.current_stream(outputs[0]) if stream is None else _tensors.get_stream(stream)
        if _launch(self.handle, stream, pointers, None, len(views), int(captures_unchanged)):
            raise last_error()
        if remarks:
            warn()
        result = outputs[0] if len(outputs) == 1 else tuple(outputs)
        if self._has_scalars or not _replay.can_replay((*(given or tensors), *outputs)):
            return result, None
        return result, _replay.make(self, views, self._order, given or tensors, outputs)

    @staticmethod
    def _view(argument, value):
        if argument["kind"] == "scalar" and not hasattr(value, "__dlpack__"):
            return _tensors.view_scalar(argument["name"], value, argument["dtype"])
        return _tensors.view(value, argument["name"])

    def _make_outputs(self, tensors, views):
        like = tensors[0]
        if self._has_scalars:
            like = next(t for a, t in zip(self._inputs, tensors) if a["kind"] == "tensor")
            shapes = self._infer_shapes(views)
        else:
            key = tuple([tensor.shape for tensor in tensors])
            shapes = self._output_shapes.get(key)
            if shapes is None:
                if len(self._output_shapes) >= _MAX_SHAPES:
                    self._output_shapes.clear()
                shapes = self._output_shapes[key] = self._infer_shapes(views)
        return tuple(
            [_tensors.empty_like(like, shape, a["dtype"]) for shape, a in zip(shapes, self._outputs)]
        )

    def _infer_shapes(self, views):
        """Of the outputs."""
        pointers = (ctypes.c_void_p * len(views))(*(address for address, _ in views))
        sizes = (ctypes.c_int64 * _MAX_RANK)()
        shapes = []
        for index in range(len(self._outputs)):
            rank = library.attnc_output_shape(
                self.handle, pointers, len(views), index, sizes, _MAX_RANK
            )
            if rank < 0:
                raise last_error()
            shapes.append(tuple(sizes[:rank]))
        return shapes


def _encode(name, value):
    """Of a string for the library; None is its default."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    return None if value is None else value.encode()


def make_options(target, variant, backend, entry, device, cache_dir):
    if backend == "cudnn":
        _backend.find_cudnn()
    if not isinstance(device, int):
        raise TypeError(f"device must be a GPU's number, not {type(device).__name__}")
    return Options(
        ctypes.sizeof(Options), _encode("variant", variant), _encode("target", target), _encode("entry", entry),
        None if cache_dir is None else os.fsencode(cache_dir), device, _encode("backend", backend), on_remark, None,
    )  # fmt: skip


def compile(mlir_text, target="native", variant=None, *, backend=None, entry=None, device=0, cache_dir=None):
    """Compiles a module with one entry function, or finds it compiled.

    `target`: "native", "cpu", "sm_80" or "sm_90a"; `variant`: "fused" (default),
    "naive", "inplace" or "math"; `backend`: these, "auto" or "cudnn", instead of
    a variant (by default that of `with attnc.backend(...)`); `cache_dir`: the
    folder of compiled kernels, "off" for none. Raises AttncError with the
    compiler's diagnostics.
    """
    if backend is None and variant is None:
        backend = _backend.current()
    if backend is not None:
        _backend.check(backend)
        if variant is not None:
            raise TypeError("variant= and backend= say the same thing; pass one of them")
    if not isinstance(mlir_text, str):
        raise TypeError(f"mlir_text must be a string, not {type(mlir_text).__name__}")
    text = mlir_text.encode()
    options = make_options(target, variant, backend, entry, device, cache_dir)
    handle = library.attnc_compile(text, len(text), ctypes.byref(options))
    if remarks:
        warn()
    if not handle:
        raise last_error()
    return Kernel(handle)


def explain(mlir_text, inputs, target, backend, *, device=0):
    """Of a module's one attention and these inputs."""
    _backend.find_cudnn()
    text = mlir_text.encode()
    options = make_options(target, None, backend, None, device, None)
    views = [_tensors.view(tensor) for tensor in inputs]
    pointers = (ctypes.c_void_p * len(views))(*(address for address, _ in views))
    results = []
    for as_json in (0, 1):
        result = library.attnc_explain(text, len(text), ctypes.byref(options), pointers, len(views), as_json)
        if result is None:
            raise last_error()
        results.append(result.decode())
    return _backend.Explanation(*results)
