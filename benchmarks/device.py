"""What a device does whatever the workload is: how fast it copies, what a call costs that it has
met before, and whether calls leave memory behind."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from benchmarks.libraries import Library
from benchmarks.measure import call
from benchmarks.report import cpu_name
from benchmarks.workload import load
from treadle.core.devices import find_device

COPIED = 1 << 28  # bytes: far more than the caches of a GPU have
CALLS = 100_000
ROW = 1000
ROUNDS = 7
STEP = "mlp", 0  # the workload whose calls are counted


def figures(
    library: Library, copied: int = COPIED, calls: int = CALLS, row: int = ROW
) -> dict[str, Any]:
    """What treadle finds of the device that it works on.

    Args:
        copied: bytes that are copied at once.
        calls: of a training step, between two looks at the memory.
        row: how many small calls are timed one after the other.
    """
    library.module()
    device = td.constant(0.0).device.rpartition("device:")[2]
    return {
        "device": device,
        "name": _name(device),
        "copy_bytes_per_second": copy_bandwidth(device, copied),
        **cost_of_a_call(row),
        **memory_of_calls(library, device, calls),
    }


def _name(device: str) -> str:
    storage: Any = find_device(device).storage
    return cpu_name() if device.startswith("CPU") else str(storage.driver.gpu.name)


def copy_bandwidth(device: str, size: int, count: int = 10) -> float:
    """Bytes read and written in a second by copies from the device's memory to the device's
    memory."""
    storage = find_device(device).storage
    source = storage.from_host(np.random.default_rng(0).integers(0, 256, size, np.uint8))

    def copies() -> None:
        for _ in range(count):
            storage.copy(source)

    return 2 * size * count / statistics.median(_seconds(copies) for _ in range(ROUNDS))


def _seconds(work: Callable[[], Any]) -> float:
    td.test.experimental.sync_devices()
    start = time.perf_counter()
    work()
    td.test.experimental.sync_devices()
    return time.perf_counter() - start


def cost_of_a_call(number: int) -> dict[str, Any]:
    """Microseconds of a call that does next to nothing: of many in a row, and of one until the
    result is there. `replayed` says whether it is a graph that the device has."""
    function = td.function(lambda x: td.sin(x) * 2.0)
    x = td.constant(np.ones(16, np.float32))

    def many() -> None:
        for _ in range(number):
            function(x)

    many()
    one = [_seconds(many) / number for _ in range(ROUNDS)]
    alone = [_seconds(lambda: function(x)) for _ in range(number)]
    program = function.get_concrete_function(x).executable
    return {
        "call_us": 1e6 * statistics.median(one),
        "call_until_done_us": 1e6 * statistics.median(alone),
        "replayed": bool(getattr(program, "is_recorded", False)),
    }


def memory_of_calls(library: Library, device: str, calls: int) -> dict[str, Any]:
    """Bytes in use before and after many training steps."""
    job = load(STEP).job(library)
    assert job is not None
    info = td.config.experimental.get_memory_info
    for _ in range(10):
        call(job)
    before = info(device)["current"]
    for _ in range(calls):
        call(job)
    return {"calls": calls, "bytes_before": before, "bytes_after": info(device)["current"]}
