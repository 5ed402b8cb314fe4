"""The processor's memory as programs use it (`treadle.runtime.backend.ProgramMemory`)."""

from __future__ import annotations

from typing import Any

from treadle.runtime.cpu.abi import array_at
from treadle.runtime.cpu.kept_memory import kept_memory


class HostMemory:
    """Addresses in programs are those of arrays."""

    def view(self, address: int, dtype: Any, shape: tuple[int, ...]) -> Any:
        return array_at(address, dtype, shape)

    def write(self, address: int, array: Any) -> None:
        array_at(address, array.dtype, array.shape)[...] = array

    def use(self) -> dict[str, int]:
        if not kept_memory.is_made:  # nothing was compiled yet
            return {"current": 0, "peak": 0, "kept": 0}
        memory = kept_memory()
        return {"current": memory.used, "peak": memory.peak, "kept": memory.kept}

    def reset_peak(self) -> None:
        if kept_memory.is_made:
            kept_memory().reset_peak()


host_memory = HostMemory()
