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

_NAMES = {
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
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
# DLPack's type codes. torch exports bytes only.
_FLOAT8_CODES = {"float8_e4m3fn": 10, "float8_e5m2": 12}


@functools.lru_cache(maxsize=64)
def _library_of(type_):
    """The package that a tensor's type is from."""
    if not hasattr(type_, "__dlpack__"):
        raise TypeError(f"{type_.__name__} is no tensor: it has no __dlpack__")
    return next(base.__module__ for base in type_.__mro__ if "__dlpack__" in vars(base)).split(".")[0]


def is_torch(tensor):
    return _library_of(type(tensor)) == "torch"


def device_of(tensor):
    """The GPU's number, or None for the CPU."""
    if is_torch(tensor):
        return tensor.device.index if tensor.device.type == "cuda" else None
    device_type, index = tensor.__dlpack_device__()
    return None if device_type == _CPU else index


@functools.lru_cache(maxsize=64)
def name_of(dtype):
    """As MLIR names it: "bf16"."""
    name = str(dtype).rpartition(".")[2]
    if name not in _DTYPES:
        raise TypeError(f"tensors of {dtype} aren't supported")
    return _DTYPES[name]


def empty_like(tensor, shape, dtype):
    """An uninitialised tensor of the same library, on the same device."""
    name = _NAMES[dtype]
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


def _export_torch(tensor):
    torch = sys.modules["torch"]
    if tensor.requires_grad:
        if torch.is_grad_enabled():
            raise NotImplementedError(NO_GRADIENT)
        tensor = tensor.detach()
    if tensor.is_neg():
        raise TypeError("a tensor that stands for the negative of its memory isn't supported; pass resolve_neg() of it")
    # Not __dlpack__, which may wait for streams: the launch goes to the tensor's own.
    code = _FLOAT8_CODES.get(str(tensor.dtype).rpartition(".")[2]) if tensor.element_size() == 1 else None
    if code is None:
        return torch.utils.dlpack.to_dlpack(tensor)
    capsule = torch.utils.dlpack.to_dlpack(tensor.view(torch.uint8))
    _DLTensor.from_address(_get_pointer(capsule, b"dltensor")).code = code
    return capsule


# By type.
_EXPORTERS = {}


def view(tensor):
    """(address of a DLTensor, what keeps it alive)"""
    export = _EXPORTERS.get(type(tensor))
    if export is None:
        export = _export_torch if is_torch(tensor) else type(tensor).__dlpack__
        _EXPORTERS[type(tensor)] = export
    capsule = export(tensor)
    return _get_pointer(capsule, b"dltensor"), capsule


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


def view_scalar(value, dtype):
    if dtype not in _SCALARS:
        raise TypeError(f"scalars of {dtype} aren't supported; pass a tensor of rank 0")
    make, code, bits = _SCALARS[dtype]
    number = make(value)
    tensor = _DLTensor(ctypes.addressof(number), _CPU, 0, 0, code, bits, 1, None, None, 0)
    return ctypes.addressof(tensor), (tensor, number)
