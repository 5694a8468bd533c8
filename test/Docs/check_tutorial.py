"""Compares the excerpts of docs/Tutorial.md with dumped stages.

    check_tutorial.py docs/Tutorial.md STAGES

A block after `<!-- stage: PASS -->` is an excerpt of the last file NN-PASS.mlir: its
lines occur there, in this order. `...` stands for anything, names of values
don't matter, and memref types are compared as `memref<..>`.
"""

import glob
import os
import re
import sys


def normalise(line):
    line = re.sub(r"memref<[^<>]*(<[^<>]*>)?[^<>]*>", "memref<..>", line)
    return re.sub(r"\s+", " ", re.sub(r"%\w+", "%", line)).strip()


def check(stage, excerpt, folder):
    """None, or the first line that isn't there."""
    paths = sorted(glob.glob(os.path.join(folder, f"??-{stage}.mlir")))
    if not paths:
        return f"there is no stage {stage}"
    with open(paths[-1]) as file:
        dumped = iter([normalise(line) for line in file])
    for line in excerpt:
        if line.strip() == "...":
            continue
        pattern = re.compile(".*".join(re.escape(normalise(part)) for part in line.split("...")))
        if not any(pattern.search(candidate) for candidate in dumped):
            return line
    return None


def main():
    with open(sys.argv[1]) as file:
        blocks = re.findall(r"<!-- stage: (.*?) -->\n```mlir\n(.*?)```", file.read(), re.S)
    failed = 0
    for stage, text in blocks:
        missing = check(stage, text.splitlines(), sys.argv[2])
        if missing is not None:
            failed = 1
            print(f"{sys.argv[1]}: {stage}: not in the dump, in this order: {missing}")
    if not blocks:
        sys.exit("no excerpts found")
    sys.exit(failed)


if __name__ == "__main__":
    main()
