"""The stores of a kernel: of whole vectors, of single elements, into computed places."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from treadle.core import dtypes
from treadle.kernel.ir import Buffer, Expr, Load, Store, postorder
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.function import KernelFunction
from treadle.runtime.cpu.nest.level import Level, Register
from treadle.runtime.cpu.nest.loops import Body, States
from treadle.runtime.cpu.nest.memory import Address
from treadle.runtime.cpu.nest.places import Places
from treadle.runtime.cpu.nest.reductions import Reductions
from treadle.runtime.cpu.nest.values import Values


class Stores:
    """Writes to buffers.

    Args:
        streamed: the buffers whose whole vectors go past the caches.
    """

    def __init__(
        self, code: KernelFunction, places: Places, values: Values, reductions: Reductions,
        streamed: AbstractSet[Buffer] = frozenset(),
    ) -> None:  # fmt: skip
        self.code, self.fn, self.places, self.values = code, code.fn, places, values
        self.reductions, self.streamed = reductions, streamed

    def storing(self, stores: list[Store]) -> Body:
        """The body of a loop that stores at its level, and carries nothing."""

        def body(level: Level, state: States) -> States:
            self.emit(stores, level)
            return state

        return body

    def emit(self, stores: list[Store], level: Level) -> None:
        """Compute the values of stores at a level, then store them."""
        self.reductions.settle(level, roots_of(stores))
        registers = [self.values.evaluate(s.value, level) for s in stores]
        for s, register in zip(stores, registers, strict=True):
            self.put(s, register, level)

    def put(self, store: Store, register: Register, level: Level) -> None:
        """Store a register at a level."""
        # Words and splats that the level keeps are computed before the branch around the store.
        base, stride = self.places.place(store.buffer, store.index, level, clamp=False)
        wide = level.copies > 0 and self.code.shape.vector in store.axes
        parts = register.parts[:1]
        if wide:
            parts = self.code.wide_parts(store.value, register, level)
        with self.fn.when(self._is_inside(store, level)) as needed:
            if needed and wide:
                self._put_lanes(store, parts, base, stride, level)
            elif needed:
                self._put_one(store, parts[0], base)

    def _put_one(self, store: Store, value: str, at: Word) -> None:
        memory, pointer = self.code.memory, self.code.pointers[store.buffer]
        dtype = store.value.dtype
        if store.combine != "set":
            old = memory.load_scalar(pointer, at, dtype, None)
            value = self.code.scalar.apply(store.combine, [old, value], [dtype] * 2, dtype)
        memory.store_scalar(value, pointer, at, dtype)

    def _put_lanes(
        self, store: Store, parts: list[str], base: Word, stride: Word, level: Level
    ) -> None:
        memory, dtype = self.code.memory, store.value.dtype
        rereads = store.combine in ("min", "max") or _reads_its_buffer(store)
        for copy, part in enumerate(parts):
            at = self.fn.add(base, self.fn.mul(stride, copy * self.code.shape.lanes))
            address = Address(self.code.pointers[store.buffer], at, stride)
            if store.combine != "set":
                old = memory.load(address, dtype, level.mask)
                part = self.code.vector.apply(store.combine, [old, part], [dtype] * 2, dtype)
            if rereads:
                part = self.code.vector.opaque(part, dtype)
            memory.store(part, address, dtype, level.mask, store.buffer in self.streamed)

    def _is_inside(self, store: Store, level: Level) -> str | bool:
        """Whether the computed indices, which all lanes share, are positions of the buffer."""
        inside: str | bool = True
        for index, size in zip(store.index, store.buffer.shape, strict=True):
            if isinstance(index, Expr):
                place = self.values.evaluate(index, level).parts[0]
                place = self.code.scalar.apply("cast", [place], [index.dtype], dtypes.int64)
                here = self.fn.compare("ult", place, self.code.dim(size))
                both = inside is not True and not isinstance(here, bool)
                inside = self.fn.value(f"and i1 {inside}, {here}") if both else here
        return inside


def roots_of(stores: Sequence[Store]) -> list[Expr]:
    """The expressions that stores need."""
    return [e for s in stores for e in s.roots]


def _reads_its_buffer(store: Store) -> bool:
    """Whether the value is computed from elements of the buffer itself. It may be a selection of
    one of them then, which many functions end with: tanh keeps tiny operands, for example."""
    return any(isinstance(e, Load) and e.buffer is store.buffer for e in postorder([store.value]))
