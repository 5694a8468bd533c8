"""Checks that the tests exist that the last column of docs/Contract.md names: check_contract.py ROOT."""

import fnmatch
import os
import re
import sys

sys.dont_write_bytecode = True
root = sys.argv[1]
sys.path.insert(0, os.path.join(root, "test/Integration"))
import cases  # noqa: E402


def read(*folders, ending):
    """The text of all files."""
    files = (
        os.path.join(folder, name)
        for top in folders
        for folder, _, names in os.walk(os.path.join(root, top))
        for name in names
        if name.endswith(ending)
    )
    return "".join(open(file).read() for file in files)


CASES = [case.name for case in cases.all_cases()]
UNIT_TESTS = {
    ".".join(names)
    for names in re.findall(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", read("unittests", ending=".cpp"), re.MULTILINE)
}
PYTHON_TESTS = set(re.findall(r"def (test_\w+)\(", read("python/tests", ending=".py")))


def exists(test):
    script, _, function = test.partition(" ")
    if function:
        return f"def {function}(" in open(os.path.join(root, "test/GPU", script)).read()
    if test.startswith("test/"):
        return os.path.exists(os.path.join(root, test))
    return test in UNIT_TESTS or test in PYTHON_TESTS or any(fnmatch.fnmatch(name, test + "*") for name in CASES)


tests = []
for line in open(os.path.join(root, "docs/Contract.md")):
    if line.startswith("| ") and "`" in line:
        named = re.findall(r"`([^`]+)`", line.split("|")[-2])
        if not named:
            sys.exit(f"no test: {line}")
        tests += named
missing = [test for test in tests if not exists(test)]
if missing or len(tests) < 50:
    sys.exit(f"{len(tests)} tests are named; there are none of the name {', '.join(missing)}")
