"""Compiles attention functions with attn-compile, and varies their schedules."""

import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import tempfile

from manifest import launched_kernel


class Refused(Exception):
    """attn-compile's first error."""


class Compiler:
    """Compiles programs into a folder; those already there are taken as they are."""

    def __init__(self, path, target, code, folder=None):
        self.path, self.target, self.code = path, target, code
        self.temporary = None if folder else tempfile.TemporaryDirectory()
        self.folder = folder or self.temporary.name
        os.makedirs(self.folder, exist_ok=True)

    def compile(self, text, variant="fused"):
        """The stem of the program's manifest and code; raises Refused."""
        key = hashlib.sha256("\0".join((text, variant, self.target)).encode())
        stem = os.path.join(self.folder, key.hexdigest()[:16])
        if all(os.path.exists(f"{stem}.{kind}") for kind in ("log", self.code)):
            return stem
        log = self._run(text, variant, stem)
        with open(stem + ".log", "w") as file:
            file.write(log)
        return stem

    def _run(self, text, variant, stem):
        """What attn-compile said."""
        with open(stem + ".mlir", "w") as file:
            file.write(text)
        command = [self.path, stem + ".mlir", f"--variant={variant}"]
        command += [f"--target={self.target}", f"--emit=manifest,{self.code}", "-o", stem]
        result = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        if result.returncode == 1:
            raise Refused(re.search(r"error: (.*)|$", result.stderr)[1] or result.stderr)
        result.check_returncode()
        return result.stderr

    def compile_all(self, programs):
        """Of (text, variant), on all cores; those refused, {(text, variant): Refused}, are left for later."""
        refused = {}

        def attempt(program):
            try:
                self.compile(*program)
            except Refused as reason:
                refused[program] = reason

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(attempt, dict.fromkeys(programs)))
        return refused

    def manifest(self, text):
        with open(self.compile(text) + ".json") as file:
            return json.load(file)

    def spilled_bytes(self, text):
        """By a thread, as ptxas says; None if it wasn't asked (--code=ptx)."""
        with open(self.compile(text) + ".log") as file:
            return max(map(int, re.findall(r"(\d+) bytes spilled", file.read())), default=None)

    def load(self, text, variant="fused"):
        """The program on the device."""
        from attnc_program import Program

        stem = self.compile(text, variant)
        return Program(stem + ".json", f"{stem}.{self.code}")


_ROLE_DEFAULTS = {
    "pipeline": "overlap",
    "lazy_rescale": "false",
    "persistent": "false",
    "q_stages": "1",
    "tma_store": "false",
    "v_transpose": "prepass",
}


def table_schedule(compiler, problem):
    """The fields of the schedule that the table has for a problem."""
    text = launched_kernel(compiler.manifest(problem.source()), problem.shapes)["schedule"]
    return {**_ROLE_DEFAULTS, **dict(re.findall(r"(\w+) = (\w+)", text))}


def format_schedule(fields):
    """What stands between the brackets of #attn.schedule<>."""
    tile = ", ".join(f"{n} = {v}" for n, v in fields.items() if n not in _ROLE_DEFAULTS)
    roles = ", ".join(f"{n} = {fields[n]}" for n in _ROLE_DEFAULTS)
    return f"{tile}, warp_roles = <{roles}>"


def transposed_otherwise(compiler, problem):
    """(v_transpose, schedule) of the way to transpose 8-bit V that the table's schedule doesn't go."""
    fields = table_schedule(compiler, problem)
    way = "prepass" if fields["v_transpose"] == "producer" else "producer"
    return way, format_schedule({**fields, "v_transpose": way})


def ablations(row):
    """{what is changed: schedule}: one flag of a table's schedule at a time."""
    changes = {f"pipeline = {p}": {"pipeline": p} for p in ("simple", "overlap")}
    # Two score tiles in registers leave no room for wider steps.
    changes["pipeline = ahead, block_n = 64"] = {"pipeline": "ahead", "block_n": "64"}
    for flag in ("lazy_rescale", "persistent", "tma_store"):
        value = "false" if row[flag] == "true" else "true"
        changes[f"{flag} = {value}"] = {flag: value}
    stages = "1" if row["q_stages"] == "2" else "2"
    changes[f"q_stages = {stages}"] = {"q_stages": stages}
    schedules = {name: {**row, **change} for name, change in changes.items()}
    return {name: schedule for name, schedule in schedules.items() if schedule != row}
