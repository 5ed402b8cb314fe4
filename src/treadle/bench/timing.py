"""Medians of interleaved timing rounds."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import treadle as td

Call = Callable[[], Any]

ROUNDS = 7
BLOCK = 0.002  # seconds: the shortest stretch worth reading a clock for
SECONDS = 0.05  # a round of one call, unless a single call takes longer


def seconds_per_call(calls: Mapping[str, Call], rounds: int = ROUNDS) -> dict[str, float]:
    """Median seconds of each call, timed in turn so that a disturbance hits all of them."""
    td.test.experimental.sync_devices()
    numbers = {name: calls_per_block(call) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(statistics.median(blocks(call, numbers[name])))
    return {name: statistics.median(values) for name, values in times.items()}


def calls_per_block(call: Call) -> int:
    number = 1
    while (elapsed := block(call, number)) < BLOCK:
        number = max(2 * number, int(number * BLOCK / max(elapsed, 1e-9)))
    return number


def blocks(call: Call, number: int) -> Sequence[float]:
    """Seconds a call, for each of the blocks that fit into a round."""
    found: list[float] = []
    end = time.perf_counter() + SECONDS
    while not found or time.perf_counter() < end:
        found.append(block(call, number) / number)
    return found


def block(call: Call, number: int) -> float:
    """Seconds of some calls, until all devices have done their work."""
    start = time.perf_counter()
    for _ in range(number):
        call()
    td.test.experimental.sync_devices()
    return time.perf_counter() - start
