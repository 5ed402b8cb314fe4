"""Loops of a kernel: plain ones, and the loop along the vector axis in steps of several vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from treadle.core.shapes import Dim
from treadle.kernel.ir import Axis, Buffer, Kernel, Store, postorder
from treadle.runtime.cpu.elements import Elements, is_long
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.nest.accumulator import Accumulator
from treadle.runtime.cpu.nest.level import Level
from treadle.runtime.cpu.nest.memory import Memory
from treadle.runtime.cpu.nest.shape import Shape, choose_shape
from treadle.runtime.cpu.target import Target

Sets: TypeAlias = list[list[Accumulator]]  # accumulators of every copy
States: TypeAlias = list[list[list[str]]]  # the registers of each of them
Body: TypeAlias = Callable[[Level, States], States]


class Loops:
    """What all code of a kernel uses: the function being written, its arguments, its loops."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel = kernel
        self.shape: Shape = choose_shape(kernel, target)
        self.module = Module(target)
        self.tuning = target.tuning
        self.outlined = is_long(postorder([s.value for s in kernel.stores]))
        self.scratch: Dim = 0
        self.past_caches: frozenset[Store] = frozenset()  # whose vectors go past the caches
        self.side_by_side = 1  # rows whose code is emitted together
        self._open()

    def dim(self, dim: Dim) -> Word:
        return self.fn.dim(dim, self.dims.__getitem__)

    def _open(self) -> None:
        """Start a function: registers, memory and the values of symbols belong to it."""
        self.fn = Function(self.module)
        self.vector = Elements(self.fn, self.shape.lanes, self.outlined)
        self.scalar = Elements(self.fn, 0, self.outlined)
        self.memory = Memory(self.fn, self.vector, self.scalar)
        self.pointers: dict[Buffer, str] = {}
        self.dims: dict[str, str] = {}

    def _read_arguments(self) -> None:
        for i, buffer in enumerate(self.kernel.buffers):
            self.pointers[buffer] = self.fn.load_word("%buffers", i, "ptr")
        self._read_dims()

    def _read_dims(self) -> None:
        for i, name in enumerate(self.kernel.symbols):
            self.dims[name] = self.fn.load_word("%dims", i)

    def _carried(
        self, start: Word, stop: Word, step: int, kinds: Sequence[str], state: list[str],
        body: Callable[[Word, list[str]], list[str]], most: int = 1,
    ) -> list[str]:  # fmt: skip
        """``for i in range(start, stop, step): state = body(i, state)`` with state in registers.

        Loops of up to `most` known trips are written out.
        """
        return self.fn.carried(start, stop, step, kinds, state, body, most)

    def _range(self, axis: Axis, reducing: bool) -> tuple[Word, Word]:
        if axis is self.shape.parallel and not reducing and not self.shape.total:
            return "%lo", "%hi"
        return 0, self.dim(axis.extent)

    def _vector_loop(
        self, level: Level, axis: Axis, start: Word, stop: Word, sets: Sets,
        body: Body, states: States | None = None, broad: int = 1, singles: bool = True,
    ) -> States:  # fmt: skip
        """The loop along the vector axis: `copies` vectors at a time, single ones, a masked rest.

        sets: for every copy, its accumulators; states: their registers, changed by `body`.
        broad: vectors to take at a time first, where there are so many.
        singles: have code for single whole vectors; otherwise the masked one runs for these too.
        """
        fn, lanes = self.fn, self.shape.lanes
        states = states or []
        copies = len(sets) or self._copies(start, stop)
        kinds = [t for accumulators in sets for a in accumulators for t in a.types]

        def run(count: int, end: Word | None) -> Callable[[Word, list[str]], list[str]]:
            def one(i: Word, flat: list[str]) -> list[str]:
                current = unflatten(flat, sets)
                lane_mask = None if end is None else self.memory.lane_mask(fn.sub(end, i))
                inner = level.inside(axis, i, count, lane_mask)
                updated = body(inner, current[:count]) if sets else body(inner, [])
                return flatten([*updated, *current[count:]]) if sets else []

            return one

        flat = flatten(states)
        single = lanes
        if self.past_caches and not (isinstance(start, int) and start % lanes == 0):
            first = fn.min(self._next_multiple(start), stop)
            flat = self._carried(start, first, single, kinds, flat, run(1, first))
            start = first
        for count in (broad, copies) if broad > copies else (copies,):
            if count > 1:
                after = self._end(start, stop, count * lanes)
                flat = self._carried(start, after, count * lanes, kinds, flat, run(count, None))
                start = after
        if singles:
            after = self._end(start, stop, single)
            flat = self._carried(start, after, single, kinds, flat, run(1, None))
            start = after
        if not (isinstance(stop, int) and start == stop):
            flat = self._carried(start, stop, single, kinds, flat, run(1, stop))
        return unflatten(flat, sets)

    def _next_multiple(self, start: Word) -> Word:
        """`start` rounded up to a multiple of the lanes."""
        lanes = self.shape.lanes
        return self._multiple(self.fn.add(start, lanes - 1), lanes)

    def _multiple(self, n: Word, step: int) -> Word:
        """`n` rounded down to a multiple of `step`, a power of 2."""
        return n // step * step if isinstance(n, int) else self.fn.value(f"and i64 {n}, {-step}")

    def _end(self, start: Word, stop: Word, step: int) -> Word:
        """start + the largest multiple of `step` (a power of 2) within the range."""
        if isinstance(start, int) and isinstance(stop, int):
            return start + max(0, stop - start) // step * step
        length = self.fn.max(self.fn.sub(stop, start), 0)
        whole = self.fn.value(f"and i64 {length}, {-step}")
        return self.fn.add(start, whole)

    def _copies(self, start: Word, stop: Word) -> int:
        if isinstance(start, int) and isinstance(stop, int):
            vectors = (stop - start) // self.shape.lanes
            most = self.tuning.unroll // self.side_by_side
            return 1 << max(1, min(most, vectors)).bit_length() - 1
        return self.tuning.unroll


def flatten(states: States) -> list[str]:
    """All registers in one list, as loops carry them."""
    return [part for accumulators in states for state in accumulators for part in state]


def unflatten(flat: Sequence[str], sets: Sets) -> States:
    """The reverse of `flatten`."""
    parts = iter(flat)
    return [[[next(parts) for _ in a.types] for a in accumulators] for accumulators in sets]
