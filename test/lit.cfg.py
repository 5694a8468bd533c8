# -*- Python -*-
import os
import shutil
import subprocess
import sys

import lit.formats
from lit.llvm import llvm_config

config.name = "ATTNC"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test", ".py"]
config.excludes = ["Inputs", "Integration", "GPU", "CMakeLists.txt", "check_contract.py", "check_snippets.py", "check_tutorial.py", "lit.cfg.py", "lit.site.cfg.py"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.attnc_obj_root, "test")
config.substitutions.append(("%attnc_src_root", config.attnc_src_root))
config.substitutions.append(("%attnc_obj_root", config.attnc_obj_root))
config.substitutions.append(("%attnc_cc", config.attnc_cc))
config.substitutions.append(("%attnc_cxx", config.attnc_cxx))
config.substitutions.append(("%llvm_lib_dir", config.llvm_lib_dir))

for python in (sys.executable, "python3", "/usr/bin/python3"):
    if subprocess.run([python, "-c", "import numpy"], stderr=subprocess.DEVNULL).returncode == 0:
        config.substitutions.append(("%python_numpy", python))
        config.available_features.add("numpy")
        break

for python in (sys.executable, "/usr/bin/python3"):
    if subprocess.run([python, "-c", "import setuptools, ensurepip, numpy, pip, venv, wheel"], stderr=subprocess.DEVNULL).returncode == 0:
        config.substitutions.append(("%wheel_python", python))
        config.available_features.add("wheel")
        break

# Without, `attn-prof --report` refuses; tests open reports where there is a browser.
if all(path and not path.endswith("-NOTFOUND") for path in config.attnc_charts):
    config.available_features.add("charts")
for program in ("chromium", "fish", "man", "zsh"):
    if shutil.which(program):
        config.available_features.add(program)

llvm_config.with_system_environment(["HOME", "TMP", "TEMP", "CUDA_HOME", "CUDA_PATH", "ATTNC_PTXAS"])
# Nothing of one run is found by the next.
config.environment["ATTNC_CACHE_DIR"] = "off"
llvm_config.use_default_substitutions()
tool_dirs = [os.path.join(config.attnc_obj_root, "bin"), config.llvm_tools_dir]
llvm_config.with_environment("PATH", tool_dirs, append_path=True)
llvm_config.add_tool_substitutions(["attn-bench", "attn-cache", "attn-compile", "attn-fuzz", "attn-lsp-server", "attn-opt", "attn-prof", "attn-run", "attn-tune"], tool_dirs)
if os.path.exists(os.path.join(tool_dirs[0], "attn-import-onnx")):
    llvm_config.add_tool_substitutions(["attn-import-onnx"], tool_dirs)
    config.available_features.add("onnx-import")

# Where the compiler looks for it (findPtxas).
cuda_folders = [os.environ[name] + "/bin" for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
ptxas_path = os.pathsep.join(cuda_folders + [os.environ["PATH"], "/usr/local/cuda/bin"])
if "ATTNC_PTXAS" in os.environ or shutil.which("ptxas", path=ptxas_path):
    config.available_features.add("ptxas")
