"""What the first use of a rule takes, in a process that has CUDA up: from its text to the first result.

Through the Python package, as FlexAttention is measured: nothing is in memory or on disk, the package is imported.
"""

import itertools
import os
import sys
import time

import torch

_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python")
_numbers = itertools.count()


def first_call(text, target, tensors):
    """(seconds of compile(), seconds of the first call), of inputs by name."""
    if _PACKAGE not in sys.path:
        sys.path.insert(0, _PACKAGE)
    import attnc  # it needs libattnc.so, the other suites don't

    # No other program has this comment, so that none is found in memory.
    text += f"\n// first call {next(_numbers)}\n"
    torch.cuda.synchronize()
    start = time.perf_counter()
    kernel = attnc.compile(text, target=target, cache_dir="off")
    compiled = time.perf_counter()
    kernel(*(tensors[a["name"]] for a in kernel.manifest["arguments"] if a["role"] == "input"))
    torch.cuda.synchronize()
    end = time.perf_counter()
    # What goes on in the background shall not disturb what is timed next.
    kernel.prepare()
    return compiled - start, end - compiled
