#!/usr/bin/env python3
"""Hammers one folder of compiled kernels from processes and threads while its entries are damaged and processes killed.

    python3 test/Integration/soak_cache.py [--seconds 60] [--processes 2] [--threads 16] [--target cpu]

Each thread compiles one of some kernels, which it then finds on disk, damaged,
or pruned (the folder holds half of them), runs it and compares it with float64.
Takes libattnc.so as the Python package does, and torch for a GPU's target; all
processes share its first GPU. Exits with 1 on any wrong result, crash, growing
memory, or a folder that isn't as it should be at the end.
"""

import argparse
import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))

# The CPU's are found on disk by many numbers of devices; a GPU's, because no more
# than 256 are kept in memory.
CPU_KERNELS, GPU_KERNELS = 6, 400
# A run on a busy machine goes on until so much has happened, up to ten times as long.
LEAST_DAMAGES = 20
# A process has all that it keeps when it has compiled so many.
FILLED = 512
# Of what is in memory in a process of kernels that don't differ, beside 256 that it keeps.
MAX_GROWTH = {"cpu": 64 << 20, "gpu": 256 << 20}

TEXT = """
func.func @f(%q: TENSOR, %k: TENSOR, %v: TENSOR, %o: TENSOR) -> TENSOR {
  %r = attn.attention ins(%q, %k, %v : TENSOR, TENSOR, TENSOR) outs(%o : TENSOR) {scale = SCALE : f32} -> TENSOR
  return %r : TENSOR
}
"""


def get_scale(kernel):
    return (kernel + 1) / 64


def get_text(kernel, dtype):
    return TEXT.replace("TENSOR", f"tensor<?x1x?x8x{dtype}>").replace("SCALE", str(get_scale(kernel)))


def attention(q, k, v, scale):
    s = scale * (q.astype(float) @ k.swapaxes(2, 3))
    p = np.exp(s - s.max(-1, keepdims=True))
    return p @ v / p.sum(-1, keepdims=True)


# --- a worker ---------------------------------------------------------------


def get_memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class CPU:
    name, dtype, tolerance, num_kernels = "cpu", "f32", 1e-5, CPU_KERNELS

    def __init__(self):
        # The CPU has no number: another one is found on disk instead of in memory.
        self.devices = itertools.count()

    def next_device(self):
        return next(self.devices)

    def to_device(self, array):
        return array

    def to_host(self, array):
        return array

    def get_used_bytes(self):
        return 0


class GPU:
    name, dtype, tolerance, num_kernels = "gpu", "f16", 4e-3, GPU_KERNELS

    def __init__(self):
        import torch

        self.torch = torch

    def next_device(self):
        return 0

    def to_device(self, array):
        return self.torch.from_numpy(array).half().cuda()

    def to_host(self, tensor):
        return tensor.double().cpu().numpy()

    def get_used_bytes(self):
        """Of the GPU, by all processes."""
        free, total = self.torch.cuda.mem_get_info()
        return total - free


def get_platform(target):
    return CPU if target == "cpu" else GPU


class Worker:
    def __init__(self, folder, seed, target):
        import attnc

        self.attnc, self.folder, self.seed, self.target = attnc, folder, seed, target
        self.platform = get_platform(target)()
        self.is_ended = threading.Event()
        self.memory_when_filled = None
        self.runs = itertools.count()
        self.counts, self.wrong, self.lock = [], [], threading.Lock()

    def work(self, number):
        choose = random.Random((self.seed, number).__repr__())
        values = np.random.default_rng(number)
        platform, count = self.platform, 0
        try:
            inputs = [
                platform.to_device(values.standard_normal((1, 1, n, 8)).astype(np.float32)) for n in (5, 9, 9)
            ]
            exact = [platform.to_host(tensor) for tensor in inputs]
            while not self.is_ended.is_set():
                kernel = choose.randrange(platform.num_kernels)
                if next(self.runs) == FILLED:
                    self.memory_when_filled = get_memory() + platform.get_used_bytes()
                run = self.attnc.compile(
                    get_text(kernel, platform.dtype), self.target, device=platform.next_device(), cache_dir=self.folder
                )
                result = platform.to_host(run(*inputs))
                error = abs(result - attention(*exact, get_scale(kernel))).max()
                count += 1
                if not error < platform.tolerance:
                    raise AssertionError(f"kernel {kernel}: error {error}")
        except Exception as error:  # noqa: BLE001
            with self.lock:
                self.wrong.append(f"{type(error).__name__}: {error}")
        with self.lock:
            self.counts.append(count)

    def run(self, num_threads):
        threads = [threading.Thread(target=self.work, args=(number,)) for number in range(num_threads)]
        for thread in threads:
            thread.start()
        # Until it is closed.
        sys.stdin.read()
        self.is_ended.set()
        for thread in threads:
            thread.join()
        growth = 0
        if self.memory_when_filled:
            growth = get_memory() + self.platform.get_used_bytes() - self.memory_when_filled
        print(json.dumps({"count": sum(self.counts), "wrong": self.wrong[:5], "growth": growth}), flush=True)


# --- the whole --------------------------------------------------------------


def damage(folder, choose):
    """Does one bad thing to one entry; what it was."""
    entries = [name for name in os.listdir(folder) if name.endswith(".attnc")]
    if not entries:
        return None
    path = os.path.join(folder, choose.choice(entries))
    what = choose.choice(("cut", "flip", "empty", "remove", "swap"))
    try:
        if what == "cut":
            os.truncate(path, choose.randrange(os.path.getsize(path)))
        elif what == "empty":
            os.truncate(path, 0)
        elif what == "remove":
            os.remove(path)
        elif what == "swap":
            os.replace(path, os.path.join(folder, choose.choice(entries)))
        else:
            with open(path, "r+b") as file:
                size = os.path.getsize(path)
                file.seek(choose.randrange(size))
                file.write(bytes([choose.randrange(256)]))
    except (FileNotFoundError, ValueError):
        return None  # somebody else was quicker
    return what


class Soak:
    def __init__(self, args, folder):
        self.args, self.folder, self.platform = args, folder, get_platform(args.target)
        self.choose = random.Random(args.seed)
        self.begin = time.monotonic()
        self.starts = itertools.count()
        self.problems, self.launches, self.kills, self.damages = [], 0, 0, 0

    def start(self):
        command = [sys.executable, os.path.abspath(__file__), "--worker", self.folder, str(next(self.starts))]
        command += ["--threads", str(self.args.threads), "--target", self.args.target]
        return subprocess.Popen(
            command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def goes_on(self):
        age = time.monotonic() - self.begin
        return age < self.args.seconds or (age < 10 * self.args.seconds and self.damages < LEAST_DAMAGES)

    def run(self, environment):
        self.environment = environment
        workers = [self.start() for _ in range(self.args.processes)]
        # None is killed on a GPU, of whose memory each would free so much.
        next_kill = time.monotonic() + self.args.seconds / 2 if self.platform is CPU else math.inf
        while self.goes_on():
            time.sleep(0.005)
            self.damages += damage(self.folder, self.choose) is not None
            if time.monotonic() > next_kill:
                next_kill += max(3, self.args.seconds / 10)
                victim = self.choose.randrange(len(workers))
                # One that has ended by itself is judged in the end.
                if workers[victim].poll() is None:
                    workers[victim].kill()
                    workers[victim].communicate()
                    workers[victim] = self.start()
                    self.kills += 1
        for worker in workers:
            worker.stdin.close()
            worker.stdin = None
        for worker in workers:
            self.judge(worker)
        if self.damages < LEAST_DAMAGES or not self.launches:
            self.problems.append(f"too little happened: {self.launches} launches, {self.damages} damages")

    def judge(self, worker):
        try:
            output, _ = worker.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            worker.kill()
            self.problems.append("a process hangs")
            return
        if worker.returncode:
            self.problems.append(f"a process ended with {worker.returncode}")
            return
        result = json.loads(output.splitlines()[-1])
        self.launches += result["count"]  # of the last ones only; those that were killed don't say
        self.problems += result["wrong"]
        if result["growth"] > MAX_GROWTH[self.platform.name]:
            self.problems.append(f"memory grew by {result['growth'] >> 20} MiB")

    def check_folder(self, max_bytes):
        names = os.listdir(self.folder)
        unfinished = [name for name in names if not name.endswith(".attnc")]
        if len(unfinished) > self.kills * self.args.threads:
            self.problems.append(f"unfinished files that nobody was killed at: {unfinished}")
        size = sum(os.path.getsize(os.path.join(self.folder, name)) for name in names if name not in unfinished)
        if size > max_bytes:
            self.problems.append(f"the folder holds {size} bytes, allowed are {max_bytes}")


def measure_entry(folder, target, environment):
    """The bytes of an entry."""
    script = "import sys, attnc; attnc.compile(sys.argv[1], sys.argv[2], cache_dir=sys.argv[3]).prepare()"
    command = [sys.executable, "-c", script, get_text(0, get_platform(target).dtype), target, folder]
    subprocess.run(command, check=True, env=environment)
    (name,) = os.listdir(folder)
    return os.path.getsize(os.path.join(folder, name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        folder, seed = args.worker
        Worker(folder, int(seed), args.target).run(args.threads)
        return 0
    environment = dict(os.environ, PYTHONPATH=sys.path[0])
    with tempfile.TemporaryDirectory() as root:
        entry_bytes = measure_entry(os.path.join(root, "one"), args.target, environment)
        folder = os.path.join(root, "kernels")
        os.mkdir(folder, 0o700)
        # Half of the kernels: entries are pruned all the time.
        max_bytes = entry_bytes * get_platform(args.target).num_kernels // 2
        soak = Soak(args, folder)
        soak.run(dict(environment, ATTNC_CACHE_BYTES=str(max_bytes)))
        # A write that a late damage made larger is followed by one that prunes.
        soak.check_folder(max_bytes + entry_bytes)
    for problem in soak.problems:
        print(f"WRONG: {problem}")
    print(
        f"soak_cache: {soak.launches} kernels compiled or found and run, {soak.damages} damages, {soak.kills} processes killed, "
        f"{len(soak.problems)} problems"
    )
    return bool(soak.problems)


if __name__ == "__main__":
    sys.exit(main())
