"""Whose code computes an attention, and why (docs/Backends.md)."""

import ctypes
import glob
import importlib.util
import json
import os
import sys
import threading

NAMES = ("auto", "fused", "naive", "inplace", "math", "cudnn")

_local = threading.local()


def check(name):
    if name not in NAMES:
        raise ValueError(f"unknown backend {name!r}; known are {', '.join(NAMES)}")
    return name


def current():
    """That of this thread's innermost scope, or "auto"."""
    scopes = getattr(_local, "scopes", None)
    return scopes[-1] if scopes else "auto"


def choose(name):
    """What a call that names one computes with."""
    return current() if name == "auto" else check(name)


class backend:
    """with attnc.backend("cudnn"): what calls in it, on this thread, compute with.

    Scopes nest; a backend that a call names, other than "auto", wins.
    """

    def __init__(self, name):
        self._name = check(name)

    def __enter__(self):
        torch = sys.modules.get("torch")
        if torch is not None and torch.compiler.is_compiling():
            raise NotImplementedError("under torch.compile, enter attnc.backend() outside or pass backend=")
        if not hasattr(_local, "scopes"):
            _local.scopes = []
        _local.scopes.append(self._name)
        return self

    def __exit__(self, *_):
        _local.scopes.pop()


def find_cudnn():
    """Loads cuDNN from Python's packages, unless $ATTNC_CUDNN names one or torch, which brings it, is there."""
    if "ATTNC_CUDNN" in os.environ or "torch" in sys.modules:
        return
    try:
        package = importlib.util.find_spec("nvidia.cudnn")
    except ModuleNotFoundError:
        return
    for folder in package.submodule_search_locations if package else ():
        for path in glob.glob(os.path.join(folder, "lib", "libcudnn.so.9")):
            try:
                ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
            except OSError:  # the library says what it misses
                return


class Explanation:
    """What explain() returns; as text, a line for each backend."""

    def __init__(self, text, data):
        self._text = text
        self._data = json.loads(data)
        #: {"backend", "status", "reason"} of each, the chosen one first
        self.backends = self._data["backends"]

    @property
    def chosen(self):
        """The backend that a call would use; None where the one that is named can't."""
        first = self.backends[0]
        return first["backend"] if first["status"] == "chosen" else None

    def __getitem__(self, name):
        return next(entry for entry in self.backends if entry["backend"] == name)

    def __str__(self):
        return self._text.rstrip("\n")

    def to_json(self):
        return json.dumps(self._data)
