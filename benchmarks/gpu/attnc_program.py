"""Runs a compiled attnc program on torch tensors, through the CUDA driver.

    program = Program("causal.json", "causal.ptx")   # attn-compile --emit=manifest,ptx (or cubin)
    program(q=q, k=k, v=v, o=o)                      # on torch's current stream

The runtime library does the same in C++ (include/attn/Runtime); this module
lets a benchmark time our kernels and torch's in one process. Needs torch with
CUDA. Temporaries come from torch's caching allocator.
"""

import ctypes
import json
import math

import torch

from manifest import evaluate

_CTYPES = {
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "ptr": ctypes.c_uint64,
}
# dtype -> (CUtensorMapDataType, bytes)
_TENSOR_MAP_TYPES = {
    **dict.fromkeys(("f8E4M3FN", "f8E5M2", "i8", "i1"), (0, 1)),
    **dict.fromkeys(("f32", "i32"), (7, 4)),
    "f16": (6, 2),
    "bf16": (9, 2),
}
_SWIZZLES = {32: 1, 64: 2, 128: 3}  # bytes of a box's row -> CUtensorMapSwizzle
_TENSOR_MAP_BYTES, _TENSOR_MAP_ALIGNMENT = 128, 64
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_JIT_ERROR_LOG, _JIT_ERROR_LOG_BYTES = 5, 6  # CUjit_option

_cuda = None


def _driver():
    global _cuda
    if _cuda is None:
        torch.cuda.init()
        torch.zeros(1, device="cuda")  # makes torch's context current
        _cuda = ctypes.CDLL("libcuda.so.1")
    return _cuda


def _check(status, what):
    if status:
        name = ctypes.c_char_p()
        _driver().cuGetErrorName(status, ctypes.byref(name))
        raise RuntimeError(f"{what}: {name.value.decode()}")


class Program:
    """One entry function: its plan, and its kernels as a loaded module."""

    def __init__(self, manifest_path, code_path):
        with open(manifest_path) as file:
            self.manifest = json.load(file)
        with open(code_path, "rb") as file:
            self._module = self._load(file.read())
        self._kernels = {}
        for kernel in self.manifest["kernels"]:
            handle = ctypes.c_void_p()
            _check(
                _driver().cuModuleGetFunction(
                    ctypes.byref(handle), self._module, kernel["name"].encode()
                ),
                kernel["name"],
            )
            shared = kernel["dynamic_smem_bytes"]
            _check(
                _driver().cuFuncSetAttribute(handle, _MAX_DYNAMIC_SHARED, shared),
                f"{kernel['name']}: {shared} bytes of shared memory",
            )
            self._kernels[kernel["name"]] = (handle, kernel)
        self._plans = {}
        self._nowhere = torch.zeros(4096, dtype=torch.uint8, device="cuda")

    @staticmethod
    def _load(code):
        module = ctypes.c_void_p()
        log = ctypes.create_string_buffer(16384)
        options = (ctypes.c_int * 2)(_JIT_ERROR_LOG, _JIT_ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        status = _driver().cuModuleLoadDataEx(
            ctypes.byref(module), code + b"\0", 2, options, values
        )
        _check(status, f"module load: {log.value.decode()}")
        return module

    def kernel_names(self):
        return list(self._kernels)

    def has_prepass(self):
        """Whether a run that knows of no change in its captures has less to do."""
        return any(step.get("prepass") for step in self.manifest["plan"])

    def __call__(self, scalars=None, captures_unchanged=False, **tensors):
        """Runs the plan. Tensors go by their argument's name.

        `captures_unchanged`: as at the last run with these tensors.
        """
        key = tuple((n, t.data_ptr(), t.shape, t.stride()) for n, t in tensors.items())
        plan = self._plans.get(key)
        known = plan is not None and captures_unchanged
        if plan is None:
            plan = self._plans[key] = self._bind(tensors, scalars or {})
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        for step, is_prepass in plan:
            if not (known and is_prepass):
                step(stream)

    def forget(self):
        """Drops the plans, and with them the tensors, of earlier calls."""
        self._plans.clear()

    def _bind(self, tensors, scalars):
        buffers = {}
        device = torch.cuda.get_device_properties(torch.cuda.current_device())
        symbols = {"num_sms": device.multi_processor_count}
        for name, tensor in tensors.items():
            buffers[name] = tensor
            for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride())):
                symbols[f"{name}.dim{dim}"] = size
                symbols[f"{name}.stride{dim}"] = stride
        for check in self.manifest["checks"]:
            if not evaluate(check["expr"], symbols):
                raise ValueError(check["message"])
        steps = []  # (callable, whether it is a pre-pass)
        for step in self.manifest["plan"]:
            if step["op"] == "alloc":
                size = max(evaluate(step["bytes"], symbols), 16)
                # Zeroed once: the plan's kernels leave such memory zero again.
                allocate = torch.zeros if step.get("zeroed") else torch.empty
                buffers[step["buffer"]] = allocate(size, dtype=torch.uint8, device="cuda")
            elif step["op"] == "launch":
                grid = evaluate(step["grid"], symbols)
                if grid:
                    launch = self._bind_launch(step, grid, symbols, buffers, scalars)
                    steps.append((launch, step.get("prepass", False)))
            elif step["op"] == "copy":
                size = evaluate(step["bytes"], symbols)
                copy = self._bind_copy(buffers[step["dst"]], buffers[step["src"]], size)
                steps.append((copy, False))
            elif step["op"] == "memset":
                raise NotImplementedError("memset")
        return steps

    @staticmethod
    def _bind_copy(dst, src, size):
        def run(stream):
            _check(
                _driver().cuMemcpyDtoDAsync_v2(
                    ctypes.c_uint64(dst.data_ptr()),
                    ctypes.c_uint64(src.data_ptr()),
                    ctypes.c_size_t(size),
                    stream,
                ),
                "copy",
            )

        run.keep_alive = (dst, src)
        return run

    def _bind_launch(self, step, grid, symbols, buffers, scalars):
        handle, kernel = self._kernels[step["kernel"]]
        values = [self._argument(a, symbols, buffers, scalars) for a in step["args"]]
        params = (ctypes.c_void_p * len(values))(
            *(ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values)
        )
        shape = (grid, 1, 1, *kernel["block"], kernel["dynamic_smem_bytes"])

        def run(stream):
            _check(
                _driver().cuLaunchKernel(handle, *shape, stream, params, None),
                step["kernel"],
            )

        run.keep_alive = (values, [buffers.get(a.get("buffer")) for a in step["args"]])
        return run

    def _tensor_map(self, arg, symbols, buffers):
        data_type, element_bytes = _TENSOR_MAP_TYPES[arg["dtype"]]
        dims = [max(evaluate(e, symbols), 1) for e in arg["dims"]]
        strides = [element_bytes * evaluate(e, symbols) for e in arg["strides"]]
        # The stride of a single element says nothing: take one that is aligned.
        strides = [16 * dims[0] if n == 1 else s for s, n in zip(strides, dims[1:])]
        rank = len(dims)
        storage = (ctypes.c_char * (_TENSOR_MAP_BYTES + _TENSOR_MAP_ALIGNMENT))()
        offset = -ctypes.addressof(storage) % _TENSOR_MAP_ALIGNMENT
        tensor_map = (ctypes.c_char * _TENSOR_MAP_BYTES).from_buffer(storage, offset)
        # A tensor without elements has no address, and nothing is read through its map.
        base = buffers[arg["buffer"]].data_ptr() or self._nowhere.data_ptr()
        # A map with a lead begins before the buffer; nothing before it is asked for.
        lead = element_bytes * evaluate(arg.get("lead", 0), symbols)
        address = base + evaluate(arg["offset_bytes"], symbols) - lead
        no_interleave, l2_128b, zero_fill = 0, 2, 0
        _check(
            _driver().cuTensorMapEncodeTiled(
                ctypes.byref(tensor_map),
                data_type,
                rank,
                ctypes.c_void_p(address),
                (ctypes.c_uint64 * rank)(*dims),
                (ctypes.c_uint64 * (rank - 1))(*strides),
                (ctypes.c_uint32 * rank)(*arg["box"]),
                (ctypes.c_uint32 * rank)(*[1] * rank),
                no_interleave,
                _SWIZZLES[element_bytes * arg["box"][0]],
                l2_128b,
                zero_fill,
            ),
            "tensor map",
        )
        return tensor_map

    def _argument(self, arg, symbols, buffers, scalars):
        if arg["type"] == "tensor_map":
            return self._tensor_map(arg, symbols, buffers)
        ctype = _CTYPES[arg["type"]]
        if arg["type"] == "ptr":
            offset = evaluate(arg.get("offset_bytes", 0), symbols)
            return ctype(buffers[arg["buffer"]].data_ptr() + offset)
        if "scalar" in arg:
            return ctype(scalars[arg["scalar"]])
        return ctype(evaluate(arg["value"], symbols))


def reference(q, k, v, mask="none", window=0):
    """float64 attention, masks counted from the end of both sequences: (o, lse).

    `window` counts the visible keys, the query's own included.
    """
    q, k, v = q.double(), k.double(), v.double()
    if k.shape[1] != q.shape[1]:
        repeat = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]))
    if mask != "none":
        nq, nk = scores.shape[-2:]
        keep = torch.ones(nq, nk, dtype=torch.bool, device=q.device).tril(nk - nq)
        if mask == "window":
            keep = keep.triu(nk - nq - window + 1)
        scores = scores.masked_fill(~keep, -math.inf)
    lse = torch.logsumexp(scores, -1)
    safe = torch.where(lse.isinf(), torch.zeros_like(lse), lse)
    return torch.exp(scores - safe[..., None]) @ v, lse
