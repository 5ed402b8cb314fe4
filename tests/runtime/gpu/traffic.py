"""What programs move between a GPU and its memory, beside what their work needs to move.

The shim counts the sectors that the blocks of a launch load and store (`Kernels.moved`). A routine
of a library moves its operands and its result once: what it does beyond that is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.workload import Workload
from tests.runtime.gpu import sources
from tests.runtime.gpu.collected import Call, Collection
from tests.runtime.gpu.on_processor import GPU, Kernels
from treadle.core.records import record
from treadle.runtime.gpu.machine import Gpu


@record(frozen=True)
class Moved:
    """What the calls of a workload's programs move.

    Attributes:
        launches: of kernels and routines.
        kernels: bytes that kernels move.
        routines: bytes that routines move at least.
        needed: bytes of arguments, variables and results, each read or written once, variables
            that change both.
    """

    launches: int
    kernels: int
    routines: int
    needed: int

    @property
    def ratio(self) -> float:
        """How much more is moved than is needed."""
        return (self.kernels + self.routines) / max(self.needed, 1)

    def microseconds(self, gpu: Gpu) -> float:
        """How long the device's memory takes."""
        return 1e6 * (self.kernels + self.routines) / gpu.bandwidth


def moved(calls: Iterable[Call], kernels: Kernels, gpu: Gpu = GPU) -> Moved:
    """What some calls move; buffers stay in the cache of a device that take half of it at most."""
    kernels.cached = gpu.cache // 2
    launches = routines = needed = 0
    before = kernels.moved
    for call in calls:
        program = call.repeated(kernels)
        launches += program.launches
        routines += program.moved
        needed += _needed(call)
    return Moved(launches, kernels.moved - before, routines, needed)


def _needed(call: Call) -> int:
    arrays = [v for v in call.values if isinstance(v, np.ndarray)] + call.results
    total = sum(a.nbytes for a in arrays)
    for _, before, after in call.state:
        total += before.nbytes * (1 if np.array_equal(before, after, equal_nan=True) else 2)
    return total


def of_workload(made: Workload, gpu: Gpu = GPU) -> Moved | None:
    """What one call of a workload's job moves; None where no program runs."""
    found = Collection(natively=False)
    sources.workload(found, made)
    if found.unsupported:
        raise AssertionError(found.unsupported)
    first = {id(call.planned): call for call in reversed(found.calls)}
    return moved(first.values(), Kernels(found.forms, gpu), gpu) if first else None


def table(workloads: Iterable[Workload], gpus: Iterable[Gpu]) -> dict[str, Any]:
    """By the names of workloads."""
    rows: dict[str, Any] = {}
    for made in workloads:
        found = of_workload(made)
        if found is None:
            continue
        rows[made.name] = {
            "launches": found.launches, "bytes of kernels": found.kernels,
            "bytes of routines": found.routines, "bytes needed": found.needed,
            "ratio": round(found.ratio, 3),
            "microseconds": {g.name: round(found.microseconds(g), 2) for g in gpus},
        }  # fmt: skip
        print(made.name, rows[made.name], flush=True)
    return rows
