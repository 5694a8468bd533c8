"""Runs test/GPU's soak.py or exact.py without a GPU: a launch only opens the program's files.

    without_gpu.py SCRIPT INTERRUPT_AT ARGUMENTS...

Launch number INTERRUPT_AT is interrupted as by SIGTERM; 0 for none.
"""

import os
import signal
import sys
from unittest import mock

script, interrupt_at = sys.argv[1], int(sys.argv[2])
sys.argv[1:] = sys.argv[3:]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../GPU"))

harness = mock.MagicMock()
harness.find_gpu.return_value = None
harness.Mismatch = type("Mismatch", (Exception,), {})
harness.Dead = type("Dead", (Exception,), {})
launches = 0


class Runner:
    def __init__(self, spec, files):
        self.files = files

    def launch(self):
        global launches
        launches += 1
        if launches == interrupt_at:
            os.kill(os.getpid(), signal.SIGTERM)
        for path in self.files:
            open(path).close()


harness.Runner = Runner
sys.modules["harness"] = harness
for name in ("torch", "torch.nn", "torch.nn.functional", "torch.nn.attention"):
    sys.modules[name] = mock.MagicMock()


def check_launch(runner, shape):
    runner.launch()
    return 0.0, 0.0


def run_all(results, runners, args):
    for runner in runners.values():
        runner.launch()
        results.check("launch", True)


if script == "soak":
    import soak

    soak.check_launch = check_launch
    sys.exit(soak.main())
else:
    import exact

    exact.run_all = run_all
    exact.torch.__version__ = "none"
    sys.exit(exact.main())
