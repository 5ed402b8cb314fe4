"""A GPU as a backend (`treadle.runtime.backend`)."""

from __future__ import annotations

from treadle.ops.registry import Op
from treadle.runtime.backend import Backend
from treadle.runtime.gpu.facts import GpuFacts
from treadle.runtime.gpu.memory import DeviceStorage
from treadle.runtime.gpu.program import GpuProgram
from treadle.runtime.gpu.routines import has_form
from treadle.runtime.planned import Planned


class GpuBackend(Backend):
    """One GPU: see `treadle.runtime.backend.Backend`."""

    def __init__(self, storage: DeviceStorage) -> None:
        self.storage = storage

    @property
    def program_memory(self) -> DeviceStorage:
        return self.storage

    def facts(self) -> GpuFacts:
        return GpuFacts(self.storage.driver.gpu)

    def runs_eagerly(self, op: Op) -> bool:
        return op.lower is not None or has_form(op)

    def build(self, planned: Planned) -> GpuProgram:
        return GpuProgram(planned, self.storage)
