"""libattnc.so through ctypes (include/attn-c/attnc.h)."""

import collections
import ctypes
import os
import sys
import warnings


class AttncError(RuntimeError):
    """What the library refuses, with its reason."""


class Options(ctypes.Structure):
    """attnc_options"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("variant", ctypes.c_char_p),
        ("target", ctypes.c_char_p),
        ("entry", ctypes.c_char_p),
        ("cache_dir", ctypes.c_char_p),
        ("device", ctypes.c_int),
        ("backend", ctypes.c_char_p),
        ("on_remark", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)),
        ("remark_context", ctypes.c_void_p),
    ]


class AttncWarning(RuntimeWarning):
    """What works, but slower than it could."""


#: What the library had to say, until warn() is called: in a callback, nothing can be raised.
remarks = collections.deque()
#: Kept as long as the library may call it.
on_remark = dict(Options._fields_)["on_remark"](lambda _, text: remarks.append(text.decode()))


def warn():
    """Passes on what the library had to say, as from the package's caller."""
    depth, frame = 1, sys._getframe()
    while frame and frame.f_globals.get("__package__") == __package__:
        depth, frame = depth + 1, frame.f_back
    while remarks:
        warnings.warn(remarks.popleft(), AttncWarning, stacklevel=depth)


_NAME = "libattnc.so"
_SIGNATURES = {
    "attnc_version": (ctypes.c_char_p, []),
    "attnc_last_error": (ctypes.c_char_p, []),
    "attnc_compile": (
        ctypes.c_void_p,
        [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(Options)],
    ),
    "attnc_explain": (
        ctypes.c_char_p,
        [
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.POINTER(Options),
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_int,
        ],
    ),
    "attnc_release": (None, [ctypes.c_void_p]),
    "attnc_manifest": (ctypes.c_char_p, [ctypes.c_void_p]),
    "attnc_device_name": (ctypes.c_char_p, [ctypes.c_void_p]),
    "attnc_prepare": (ctypes.c_int, [ctypes.c_void_p]),
    "attnc_output_shape": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_int64),
            ctypes.c_size_t,
        ],
    ),
    "attnc_launch_with": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_uint,
        ],
    ),
    "attnc_replay_create": (
        ctypes.c_void_p,
        [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_size_t,
        ],
    ),
    "attnc_replay_release": (None, [ctypes.c_void_p]),
    "attnc_profiler_create": (ctypes.c_void_p, [ctypes.POINTER(Options)]),
    "attnc_profiler_release": (None, [ctypes.c_void_p]),
    "attnc_profiler_set_command": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]),
    "attnc_profiler_begin": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]),
    "attnc_profiler_begin_phase": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]),
    "attnc_profiler_end_phase": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int64]),
    "attnc_profiler_end": (ctypes.c_int, [ctypes.c_void_p]),
    "attnc_profiler_save": (ctypes.c_char_p, [ctypes.c_void_p]),
    "attnc_profile_show": (
        ctypes.c_char_p,
        [
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.c_char_p,
            ctypes.c_int64,
            ctypes.POINTER(ctypes.c_int),
        ],
    ),
    "attnc_profile_report": (
        ctypes.c_char_p,
        [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_int64],
    ),
    "attnc_profile_trace": (ctypes.c_char_p, [ctypes.c_char_p, ctypes.c_size_t]),
}


def _candidates():
    """$ATTNC_LIBRARY alone; else this package's, the source tree's, the system's."""
    if "ATTNC_LIBRARY" in os.environ:
        return [os.environ["ATTNC_LIBRARY"]]
    here = os.path.dirname(os.path.abspath(__file__))
    tree = os.path.dirname(os.path.dirname(here))
    folders = [here, os.path.join(tree, "build", "lib"), os.path.join(tree, "lib")]
    return [os.path.join(folder, _NAME) for folder in folders] + [_NAME]


def _load():
    reasons = []
    for path in _candidates():
        try:
            loaded = ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
            continue
        missing = next((name for name in _SIGNATURES if not hasattr(loaded, name)), None)
        if missing is not None:
            reasons.append(
                f"{path}: has no {missing}, as this version of the package needs; is it another library, or an older one?"
            )
            continue
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
        return loaded
    raise ImportError(
        f"{_NAME} can't be loaded; build it (./dev build) or set ATTNC_LIBRARY to its path\n  " + "\n  ".join(reasons)
    )


library = _load()
#: The same one, for functions that are called with the GIL.
python_library = ctypes.PyDLL(library._name, handle=library._handle)


def last_error():
    return AttncError(library.attnc_last_error().decode())


def version():
    """Of the library."""
    return library.attnc_version().decode()
