"""DLPack: the addresses of other libraries' tensors, and new ones like them."""

import ctypes
import functools
import sys

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

NO_GRADIENT = (
    "attnc has no backward pass yet: call it under torch.no_grad(), or detach() the tensors that "
    "require a gradient"
)

_CPU = 1


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


_SCALARS = {
    "f32": (ctypes.c_float, 2, 32),
    "f64": (ctypes.c_double, 2, 64),
    "i32": (ctypes.c_int32, 0, 32),
    "i64": (ctypes.c_int64, 0, 64),
}

#: of MLIR's types, as torch and numpy have them
NAMES = {
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
}
_DTYPES = {name: dtype for dtype, name in NAMES.items()}
# DLPack's type codes, and bits.
_CODES = {
    "f8E4M3FN": (10, 8),
    "f8E5M2": (12, 8),
    "f16": (2, 16),
    "bf16": (4, 16),
    "f32": (2, 32),
    "f64": (2, 64),
    "i1": (6, 8),
    "i8": (0, 8),
    "i16": (0, 16),
    "i32": (0, 32),
    "i64": (0, 64),
}
_OPAQUE = 3


@functools.lru_cache(maxsize=64)
def _library_of(type_):
    """The package that a tensor's type is from; None if it's no tensor."""
    return next((base.__module__.split(".")[0] for base in type_.__mro__ if "__dlpack__" in vars(base)), None)


def is_torch(tensor):
    return _library_of(type(tensor)) == "torch"


def is_meta(tensor):
    return is_torch(tensor) and tensor.is_meta


def is_virtual(tensor):
    """Whether torch's operators on it run code of its type, as with fake or distributed tensors: it may be no memory."""
    return is_torch(tensor) and type(tensor).__torch_dispatch__ is not sys.modules["torch"].Tensor.__torch_dispatch__


@functools.lru_cache(maxsize=1)
def _watchers():
    torch = sys.modules["torch"]
    return torch._C._len_torch_dispatch_stack, torch._C._functorch.peek_interpreter_stack


def is_watched():
    """Whether something sees all calls of torch's operators: a tracer, fake tensors, vmap."""
    count_modes, peek_transforms = _watchers()
    return count_modes() or peek_transforms() is not None


def as_outputs(out):
    outputs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    if not outputs:
        raise TypeError("out has no tensors")
    return outputs


def device_of(tensor):
    """The GPU's number, or None for the CPU."""
    if is_torch(tensor):
        return tensor.device.index if tensor.device.type == "cuda" else None
    device_type, index = tensor.__dlpack_device__()
    return None if device_type == _CPU else index


def check(name, tensor, is_output=False, has_memory=True):
    """Refuses what has no elements in memory that a kernel can use, by the name that the caller knows it by.

    Without `has_memory`, it may have shape and strides alone (torch's "meta").
    """
    package = _library_of(type(tensor))
    if package is None:
        raise TypeError(f"{name} must be a tensor, not {type(tensor).__name__}, which has no __dlpack__")
    if package == "torch":
        _check_torch(name, tensor, has_memory)
    elif package == "numpy":
        if tensor.dtype.kind not in "biufc" or not tensor.dtype.isnative:
            raise TypeError(f"{name} is of {tensor.dtype}, which numpy can't hand over to others")
        if is_output and not tensor.flags.writeable:
            raise ValueError(f"{name} is read-only")


def _check_torch(name, tensor, has_memory):
    torch = sys.modules["torch"]
    devices = ("cpu", "cuda") if has_memory else ("cpu", "cuda", "meta")
    for is_bad, reason in (
        (tensor.is_nested, "is a nested tensor; pass sequences one behind the other (cu_seqlens_q, cu_seqlens_k)"),
        (tensor.layout is not torch.strided, f"has the layout {tensor.layout}; pass to_dense() of it"),
        (tensor.is_quantized, "is quantised; pass dequantize() of it"),
        (tensor.device.type not in devices, f"is on {tensor.device}; needed is memory of a GPU or the CPU"),
        (tensor.is_neg(), "stands for the negative of its memory; pass resolve_neg() of it"),
    ):
        if is_bad:
            raise TypeError(f"{name} {reason}")
    if tensor.requires_grad and torch.is_grad_enabled():
        raise NotImplementedError(f"{name} requires a gradient, but {NO_GRADIENT}")


@functools.lru_cache(maxsize=64)
def _known_name_of(dtype):
    return _DTYPES.get(str(dtype).rpartition(".")[2])


def name_of(name, tensor):
    """Of a tensor's elements, as MLIR has it: "bf16"."""
    found = _known_name_of(tensor.dtype)
    if found is None:
        raise TypeError(f"{name} is of {tensor.dtype}, which isn't supported; known are {', '.join(_DTYPES)}")
    return found


def empty_like(tensor, shape, dtype):
    """An uninitialised tensor of the same library, on the same device."""
    name = NAMES[dtype]
    if is_torch(tensor):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, name), device=tensor.device)
    if _library_of(type(tensor)) == "numpy":
        numpy = sys.modules["numpy"]
        return numpy.empty(shape, dtype=getattr(numpy, name))
    raise TypeError(
        f"outputs for {type(tensor).__name__} can't be made here; pass them by out="
    )


@functools.lru_cache(maxsize=1)
def exchange_api():
    """The address of torch's functions that describe its tensors without a capsule; None before torch 2.10."""
    capsule = getattr(sys.modules["torch"].Tensor, "__dlpack_c_exchange_api__", None)
    return capsule and _get_pointer(capsule, b"dlpack_exchange_api")


def raw_stream_getter():
    """Of torch: from a GPU's number to its current stream, as a number."""
    torch = sys.modules["torch"]
    # What torch's own compilers call: it makes no Stream object.
    get_raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return get_raw or (lambda index: torch.cuda.current_stream(index).cuda_stream)


def current_stream(tensor):
    """Of the tensor's library and device; None is the default stream."""
    if not is_torch(tensor) or not tensor.is_cuda:
        return None
    return raw_stream_getter()(tensor.device.index)


def get_stream(stream):
    """A caller's, as a number."""
    stream = getattr(stream, "cuda_stream", stream)
    if not isinstance(stream, int):
        raise TypeError(f"stream must be a CUDA stream, as a number or with cuda_stream, not {type(stream).__name__}")
    return stream


def _view_torch(tensor):
    torch = sys.modules["torch"]
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_meta:
        return _make_view(None, tensor.dtype, tensor.element_size(), tensor.shape, tensor.stride())
    is_float8 = tensor.element_size() == 1 and tensor.is_floating_point()
    # Not __dlpack__, which may wait for streams: the launch goes to the tensor's own. torch exports no float8.
    capsule = torch.utils.dlpack.to_dlpack(tensor.view(torch.uint8) if is_float8 else tensor)
    address = _get_pointer(capsule, b"dltensor")
    if is_float8:
        _DLTensor.from_address(address).code = _get_code(tensor.dtype, 1)[0]
    return address, capsule


def _view_numpy(array):
    if array.flags.writeable:
        return _view_exported(array)
    # numpy exports none that is read-only, which kernels' inputs may be.
    itemsize = array.dtype.itemsize
    if any(stride % itemsize for stride in array.strides):
        raise BufferError("its strides are no multiples of an element")
    strides = [stride // itemsize for stride in array.strides]
    address, alive = _make_view(array.ctypes.data, array.dtype, itemsize, array.shape, strides)
    return address, (alive, array)


def _get_code(dtype, itemsize):
    return _CODES.get(_known_name_of(dtype), (_OPAQUE, 8 * itemsize))


def _make_view(data, dtype, itemsize, shape, strides):
    """As view(), of memory on the CPU, or none."""
    integers = ctypes.c_int64 * max(len(shape), 1)
    shape_, strides_ = integers(*shape), integers(*strides)
    tensor = _DLTensor(
        data, _CPU, 0, len(shape), *_get_code(dtype, itemsize), 1, ctypes.addressof(shape_), ctypes.addressof(strides_), 0
    )
    return ctypes.addressof(tensor), (tensor, shape_, strides_)


def _view_exported(tensor):
    capsule = tensor.__dlpack__()
    return _get_pointer(capsule, b"dltensor"), capsule


_VIEWS = {"torch": _view_torch, "numpy": _view_numpy}


def view(tensor, name="the tensor"):
    """(address of a DLTensor, what keeps it alive) of what check() let pass"""
    try:
        return _VIEWS.get(_library_of(type(tensor)), _view_exported)(tensor)
    except BufferError as error:
        raise TypeError(f"{name} can't be handed over: {error}") from None


def copy_view(address):
    """(a DLTensor like the one there, what keeps it alive): its shape and strides are its own."""
    copy = _DLTensor.from_buffer_copy((ctypes.c_char * ctypes.sizeof(_DLTensor)).from_address(address))
    arrays = []
    for name in ("shape", "strides"):
        source = getattr(copy, name)
        if source:
            array = (ctypes.c_int64 * copy.rank).from_buffer_copy((ctypes.c_int64 * copy.rank).from_address(source))
            arrays.append(array)
            setattr(copy, name, ctypes.addressof(array))
    return copy, arrays


def view_scalar(name, value, dtype):
    if dtype not in _SCALARS:
        raise TypeError(f"{name} is a scalar of {dtype}, which isn't supported; pass a tensor of rank 0")
    make, code, bits = _SCALARS[dtype]
    try:
        number = make(value)
    except TypeError:
        raise TypeError(f"{name} must be a number of {dtype}, not {type(value).__name__}") from None
    tensor = _DLTensor(ctypes.addressof(number), _CPU, 0, 0, code, bits, 1, None, None, 0)
    return ctypes.addressof(tensor), (tensor, number)
