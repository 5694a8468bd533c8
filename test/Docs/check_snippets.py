"""Whether what the documentation shows to type works.

    check_snippets.py SOURCE python             runs its Python on the CPU
    check_snippets.py SOURCE cpp                writes its C++ as one file, to be compiled
    check_snippets.py SOURCE shell BIN          looks for the options of its command lines among those of the tools

Names that a snippet leaves to the reader are given here.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile


def read_snippets(source, language):
    """(file:line, text) of each block, without what stands for the reader's own lines."""
    pages = [os.path.join(source, name) for name in ("README.md", "CONTRIBUTING.md")]
    for path in pages + sorted(glob.glob(os.path.join(source, "docs", "*.md"))):
        with open(path, encoding="utf-8") as file:
            page = file.read()
        for found in re.finditer(rf"^```{language}\n(.*?)^```", page, re.S | re.M):
            text = re.sub(r"^\.\.\.\n", "", found[1], flags=re.M)
            yield f"{os.path.relpath(path, source)}:{page.count(chr(10), 0, found.start()) + 2}", text


def run_python(source):
    import numpy as np

    import attnc

    q, k, v = (np.ones((1, heads, 8, 64), np.float32) for heads in (4, 2, 2))
    names = {
        "attnc": attnc, "q": q, "k": k, "v": v, "sdpa": lambda *_: None, "ends": np.array([0, 3, 8], np.int32),
        "lengths": np.array([7, 9], np.int32), "table": np.arange(4, dtype=np.int32).reshape(2, 2),
        "k_pages": np.ones((4, 2, 8, 64), np.float32), "v_pages": np.ones((4, 2, 8, 64), np.float32),
    }  # fmt: skip
    names["mlir_text"] = """func.func @f(
        %q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %v: tensor<?x2x?x64xf32>, %o: tensor<?x4x?x64xf32>)
        -> tensor<?x4x?x64xf32> {
      %r = attn.attention ins(%q, %k, %v : tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>)
        outs(%o : tensor<?x4x?x64xf32>) -> tensor<?x4x?x64xf32>
      return %r : tensor<?x4x?x64xf32>
    }"""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for place, text in read_snippets(source, "python"):
            print(place, flush=True)
            try:
                exec(compile(text, place, "exec"), dict(names))
            except attnc.AttncError as error:
                # A snippet may show what only a GPU can do, or a build with charts.
                if not re.search("cuDNN needs a GPU|libjs-chart.js", str(error)):
                    raise
        os.chdir(source)


def write_cpp(source):
    includes, functions = {'#include "attn/Compiler/CompiledKernel.h"'}, []
    for place, text in read_snippets(source, "cpp"):
        includes.update(re.findall(r"^#include.*", text, re.M))
        body = re.sub(r"^#include.*", "", text, flags=re.M)
        file, line = place.split(":")
        functions.append(f'void snippet{len(functions)}() {{\n#line {line} "{file}"\n{body}}}\n')
    print("\n".join(sorted(includes)))
    print("extern attn::AttentionSpec spec;\nextern void *stream;\nextern attn::TensorView q, k, v, o;")
    print("\n".join(functions))


def check_shell(source, folder):
    options, problems = {}, 0
    commands = [(place, line) for place, text in read_snippets(source, "sh") for line in text.splitlines()]
    with open(os.path.join(source, "README.md"), encoding="utf-8") as file:
        commands += [("README.md, tools", line) for line in re.findall(r"^\| `(attn-[^`]*)`", file.read(), re.M)]
    checked = 0
    for place, line in commands:
        tool, _, arguments = line.partition("#")[0].strip().rpartition("/")[2].partition(" ")
        if not tool.startswith("attn-") or not os.path.exists(os.path.join(folder, tool)):
            continue
        if tool not in options:
            text = subprocess.run([os.path.join(folder, tool), "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
            options[tool] = set(re.findall(r"^ +(--?[\w-]+)", text, re.M))
        checked += 1
        for option in re.findall(r"(?:^| )(--?[A-Za-z][\w-]*)", arguments):
            if option not in options[tool] and "-" + option not in options[tool]:
                problems += 1
                print(f"{place}: {tool} has no {option}")
    print(f"{checked} command lines, {problems} problems")


source = os.path.abspath(sys.argv[1])
{"python": run_python, "cpp": write_cpp, "shell": check_shell}[sys.argv[2]](source, *sys.argv[3:])
