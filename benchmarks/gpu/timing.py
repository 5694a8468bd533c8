"""Fair timing on one power-limited GPU: what is compared alternates, when the card is hot."""

import collections
import math
import statistics
import time

import torch

Timing = collections.namedtuple("Timing", "median least spread")
Timing.__doc__ = "Milliseconds; spread is (p90 - p10) / median."


class Gauge:
    """SM clock and power while kernels run, if NVML is there."""

    def __init__(self):
        self.readings, self.handle = [], None
        self.driver, self.power_limit = None, None
        try:
            import pynvml

            pynvml.nvmlInit()
            self.nvml, self.handle = pynvml, self._find_device(pynvml)
            self.driver = pynvml.nvmlSystemGetDriverVersion()
            self.power_limit = pynvml.nvmlDeviceGetEnforcedPowerLimit(self.handle) / 1e3
            self.read()
        except Exception as error:  # no NVML, or one that may not be asked
            self.handle = None
            print(f"no clocks and power: {error}", flush=True)
        self.take()

    @staticmethod
    def _find_device(nvml):
        device = torch.cuda.current_device()
        try:
            uuid = torch.cuda.get_device_properties(device).uuid
            return nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
        except nvml.NVMLError:
            return nvml.nvmlDeviceGetHandleByIndex(device)

    def read(self):
        if self.handle:
            clock = self.nvml.nvmlDeviceGetClockInfo(self.handle, self.nvml.NVML_CLOCK_SM)
            self.readings.append((clock, self._power()))

    def _power(self):
        """The reading of this instant, or the last second's mean on devices without one."""
        instant = self.nvml.NVML_FI_DEV_POWER_INSTANT
        value = self.nvml.nvmlDeviceGetFieldValues(self.handle, [instant])[0]
        if value.nvmlReturn == 0:
            return value.value.uiVal / 1e3
        return self.nvml.nvmlDeviceGetPowerUsage(self.handle) / 1e3

    def take(self):
        """{sm_clock_mhz, power_w}: medians since the last call."""
        readings, self.readings = self.readings, []
        if not readings:
            return {}
        clocks, powers = zip(*readings)
        return {"sm_clock_mhz": statistics.median(clocks), "power_w": statistics.median(powers)}


class Rotating:
    """Enough input sets that a repeat doesn't find its inputs in the L2."""

    def __init__(self, make, bytes_each):
        l2 = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        self.sets = [make() for _ in range(max(1, min(8, math.ceil(2 * l2 / bytes_each))))]
        self.next = 0

    def __call__(self):
        taken = self.sets[self.next]
        self.next = (self.next + 1) % len(self.sets)
        return taken

    def rewind(self):
        """The next call yields the first set."""
        self.next = 0


def interleaved(functions, gauge=None, heat=0.25, rounds=30):
    """{name: callable} -> {name: Timing}, the gauge read while the rounds run."""
    for function in functions.values():
        for _ in range(3):
            function()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    while True:
        for function in functions.values():
            function()
        end.record()
        end.synchronize()
        if start.elapsed_time(end) > heat * 1e3:
            break
    events = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            a.record()
            function()
            b.record()
            events[name].append((a, b))
    while gauge and not b.query():
        gauge.read()
        time.sleep(0.005)
    torch.cuda.synchronize()
    return {name: summarise(pairs) for name, pairs in events.items()}


def graphed(function, calls):
    """A CUDA graph of so many calls, as a callable."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(calls):
            function()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(calls):
            function()
    return graph.replay


def summarise(pairs):
    times = sorted(a.elapsed_time(b) for a, b in pairs)
    median = statistics.median(times)
    spread = (times[int(len(times) * 0.9)] - times[int(len(times) * 0.1)]) / median
    return Timing(median, times[0], spread)
