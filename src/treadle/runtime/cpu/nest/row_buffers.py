"""Row buffers: costly values that several loops along the vector axis need are computed once."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.shapes import Dim
from treadle.kernel.ir import Axis, Expr
from treadle.runtime.cpu.nest.function import KernelFunction
from treadle.runtime.cpu.nest.level import Level, Register, RowBuffer
from treadle.runtime.cpu.nest.shape import is_costly
from treadle.runtime.cpu.nest.walks import evaluated


class RowBuffers:
    """Memory of a thread for the elements of rows, as vectors without gaps.

    Attributes:
        size: bytes that all row buffers of the function take.
    """

    def __init__(self, code: KernelFunction) -> None:
        self.code, self.fn = code, code.fn
        self.size: Dim = 0

    def plan(self, level: Level, loops: Sequence[Sequence[Expr]]) -> None:
        """Give row buffers to costly values that several loops along the vector axis compute.

        Args:
            loops: for each loop that follows at the level the values that it computes.
        """
        axis = self.code.shape.vector
        assert axis is not None
        inside = {*level.axes, axis}
        seen: dict[Expr, int] = {}
        for roots in loops:
            for e in evaluated(roots):
                if axis in e.axes and e.axes <= inside:
                    seen[e] = seen.get(e, 0) + 1
        for e, times in seen.items():
            if times > 1 and is_costly(e) and level.find_kept(e) is None:
                level.kept[e] = RowBuffer(self._reserve(e, axis))

    def _reserve(self, e: Expr, axis: Axis) -> str:
        lanes = self.code.shape.lanes
        whole = (axis.extent + (lanes - 1)) // lanes * (lanes * element_bytes(e))
        # An offset of 0 is written out too: rows side by side have equal code.
        offset = self.code.dim(self.size)
        place = self.fn.value(f"getelementptr i8, ptr %scratch, i64 {offset}")
        self.size = self.size + ((whole + 63) // 64 * 64 + 320)
        return place

    def fill(self, e: Expr, register: Register, place: str, level: Level) -> None:
        """Store the vectors of a level."""
        for copy, part in enumerate(register.parts):
            kind, address = self._address(e, place, level, copy)
            if e.dtype.is_bool:
                part = self.code.vector.to_memory(part, e.dtype)
            self.fn.emit(f"store {kind} {part}, ptr {address}, align 4")

    def read(self, e: Expr, place: str, level: Level) -> Register:
        """The vectors of a level."""
        vector, parts = self.code.vector, []
        for copy in range(level.copies):
            kind, address = self._address(e, place, level, copy)
            raw = self.fn.value(f"load {kind}, ptr {address}, align 4")
            parts.append(vector.from_memory(raw, e.dtype) if e.dtype.is_bool else raw)
        return Register(parts, True)

    def _address(self, e: Expr, place: str, level: Level, copy: int) -> tuple[str, str]:
        """The type and the address of a vector."""
        code = self.code
        assert code.shape.vector is not None
        kind = code.vector.type(e.dtype) if not e.dtype.is_bool else code.vector.wrap("i8")
        at = self.fn.add(level.axes[code.shape.vector], copy * code.shape.lanes)
        return kind, self.fn.offset(place, self.fn.mul(at, element_bytes(e)), "i8")


def element_bytes(e: Expr) -> int:
    """Bytes of an element in a row buffer: small ones take the room of larger ones."""
    return 8 if e.dtype.size == 8 else 4
