"""Compiles operators into a folder, several at a time. Needs no torch."""

import concurrent.futures
import glob
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../benchmarks/gpu"))
from compiler import Compiler, Refused  # noqa: E402


def _has_ptxas():
    places = (os.environ.get("ATTNC_PTXAS"), shutil.which("ptxas"), "/usr/local/cuda/bin/ptxas")
    return any(place and os.path.exists(place) for place in places)


class Programs:
    """A context with a folder of programs, for all targets; without `folder`, one that goes with the context."""

    def __init__(self, attn_compile, folder=None):
        self._temporary = None if folder else tempfile.TemporaryDirectory()
        folder = folder or self._temporary.name
        # Machine code loads at once; PTX costs the driver seconds a program. That of sm_80 runs on its
        # generation only, and these programs run on later ones too.
        machine_code = "cubin" if _has_ptxas() or glob.glob(f"{folder}/*.cubin") else "ptx"
        self._codes = {"sm_80": "ptx", "sm_90a": machine_code}
        self._compilers = {
            target: Compiler(attn_compile, target, code, folder) for target, code in self._codes.items()
        }

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._temporary:
            self._temporary.cleanup()

    def compile(self, spec):
        """(manifest, code)."""
        stem = self._compilers[spec.target].compile(spec.source())
        return f"{stem}.json", f"{stem}.{self._codes[spec.target]}"

    def compile_all(self, specs):
        """One result a spec: (manifest, code), or the exception."""

        def attempt(spec):
            try:
                return self.compile(spec)
            except (Refused, OSError, subprocess.SubprocessError) as error:
                return error

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(attempt, specs))
