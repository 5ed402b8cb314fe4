"""What programs move between a GPU and its memory, beside what their work needs to move.

Programs are those that a GPU gets (`GpuProgram`). The shim counts the sectors that the blocks of a
launch load and store. Routines of a library are not run: each moves its operands and its result
once, and what it does beyond that is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import treadle as td
from benchmarks.libraries import LIBRARIES
from benchmarks.measure import call
from benchmarks.workload import Workload
from tests.runtime.gpu.on_processor import GPU
from tests.runtime.gpu.recorder import RecordingDriver, recorded_gpu
from treadle.core.records import record
from treadle.core.shapes import product
from treadle.graph.ir import Node
from treadle.ops.state import Variable
from treadle.runtime import devices
from treadle.runtime.gpu.backend import GpuBackend
from treadle.runtime.gpu.driver import Driver
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.memory import Buffer
from treadle.runtime.gpu.program import GpuProgram
from treadle.runtime.gpu.routines import Routine
from treadle.runtime.gpu.routines.routine import size_of
from treadle.runtime.planned import Planned
from treadle.runtime.schedule.steps import LibraryCall


@record(frozen=True)
class Moved:
    """What the calls of a workload's programs move.

    Attributes:
        launches: of kernels and routines.
        kernels: bytes that kernels and copies move.
        routines: bytes that routines move at least.
        needed: bytes of arguments, variables and results, each read or written once, variables
            that are changed both.
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


class Count:
    """What was asked of a device since the count began.

    Attributes:
        has_begun: whether kernels are run, and counted.
    """

    def __init__(self) -> None:
        self.has_begun = False
        self.routines = self.bytes_of_routines = self.needed = 0


class CountedRoutine(Routine):
    """Counts the calls of a routine instead of making them."""

    def __init__(self, routine: Routine, node: Node, count: Count) -> None:
        self.routine, self.node, self.count = routine, node, count
        self.workspace, self.launches = routine.workspace, routine.launches

    def __call__(
        self, driver: Driver, inputs: Sequence[Any], outputs: Sequence[Any], workspace: int,
        symbols: Mapping[str, int],
    ) -> None:  # fmt: skip
        for array in outputs:
            array[...] = 0
        if not self.count.has_begun:
            return
        specs = [v.spec for v in (*self.node.inputs, *self.node.outputs)]
        self.count.routines += size_of(self.launches, symbols)
        for spec in specs:
            self.count.bytes_of_routines += spec.dtype.size * size_of(product(spec.dims), symbols)


class CountedProgram(GpuProgram):
    """A program whose calls are counted."""

    def __init__(self, planned: Planned, backend: Counting) -> None:
        super().__init__(planned, backend.storage)
        self.is_recorded, self.count = False, backend.count
        self.routines = {
            step: CountedRoutine(routine, step.node, backend.count)
            for step, routine in self.routines.items()
            if isinstance(step, LibraryCall)
        }

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        results = super().run(arrays)
        if self.count.has_begun:
            for number, value in enumerate([*arrays, *results]):
                if isinstance(value, Variable):
                    size = value.cell().buffer.size
                    self.count.needed += size * (2 if number in self.written else 1)
                elif isinstance(value, Buffer):
                    self.count.needed += value.size
        return results


class Counting(GpuBackend):
    """A GPU whose programs are counted."""

    def __init__(self, storage: Any) -> None:
        super().__init__(storage)
        self.count = Count()

    def build(self, planned: Planned) -> CountedProgram:
        return CountedProgram(planned, self)


def of_workload(made: Workload, gpu: Gpu = GPU) -> Moved | None:
    """What a call of a workload's job moves that is not the first one; None where there is none.
    Buffers stay in the cache of a device that take half of it at most."""
    with recorded_gpu(gpu=gpu) as device, td.device(str(device)):
        storage: Any = device.storage
        driver: RecordingDriver = storage.driver
        with devices.using(Counting(storage), "GPU") as backend:
            count: Count = backend.count  # type: ignore[attr-defined]
            driver.is_idle = True
            job = made.job(LIBRARIES["treadle"])
            if job is None:
                return None
            call(job)
            driver.is_idle, driver.cached, driver.moved = False, gpu.cache // 2, 0
            driver.counts.clear()
            count.has_begun = True
            call(job)
            launches = driver.counts["launches"] + count.routines
            return Moved(launches, driver.moved, count.bytes_of_routines, count.needed)


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
