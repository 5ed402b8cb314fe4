"""The states of a kernel's scans, from one position along their axis to the next."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.kernel.ir import Scan
from treadle.kernel.reference import scan_start
from treadle.runtime.cpu.elements import Elements
from treadle.runtime.cpu.nest.function import KernelFunction
from treadle.runtime.cpu.nest.level import Level, Register


class RunningScans:
    """The state of every scan at the point of the loops that is being written.

    A state is a scalar, or vectors, one for each copy of the vector loop's body. Along its own
    axis it is a scalar, also where the elements there are the lanes of a vector.
    """

    def __init__(self, code: KernelFunction) -> None:
        self.code = code
        self.scans = [e for e in code.kernel.exprs if isinstance(e, Scan)]
        self.states: dict[Scan, list[str]] = {}

    def kinds(self, level: Level) -> list[str]:
        """The types of all states at a level, in the order in which loops carry them."""
        return [
            self._elements(s, level).type(s.dtype)
            for s in self.scans
            for _ in self._parts(s, level)
        ]

    def start(self, level: Level) -> list[str]:
        """All states before the first position."""
        return [
            self._elements(s, level).constant(scan_start(s), s.dtype)
            for s in self.scans
            for _ in self._parts(s, level)
        ]

    def resume(self, registers: Sequence[str], level: Level) -> None:
        """Make the registers that a loop carries the states."""
        parts = iter(registers)
        self.states = {s: [next(parts) for _ in self._parts(s, level)] for s in self.scans}

    def registers(self) -> list[str]:
        """All states, as loops carry them."""
        return [part for s in self.scans for part in self.states[s]]

    def step(self, scan: Scan, level: Level) -> Register:
        """The value of a scan at a level, which leads to its next state."""
        code, value, before = self.code, level.find(scan.value), self.states[scan]
        assert value is not None
        if self._is_through_lanes(scan, level):
            (given,) = code.wide_parts(scan.value, value, level)
            result, self.states[scan] = _Lanes(code, scan, level.mask).through(given, before[0])
            return Register([result], True)
        elements = self._elements(scan, level)
        parts = code.wide_parts(scan.value, value, level) if elements.count else value.parts[:1]
        both = [scan.dtype] * 2
        after = [
            elements.apply(scan.op, [state, part], both, scan.dtype)
            for state, part in zip(before, parts, strict=True)
        ]
        self.states[scan] = after
        return Register(before if scan.exclusive else after, bool(elements.count))

    def _is_through_lanes(self, scan: Scan, level: Level) -> bool:
        """Whether the positions along the scan's axis are the lanes of vectors."""
        return self.code.is_wide(scan, level) and self.code.shape.vector is scan.axis

    def _elements(self, scan: Scan, level: Level) -> Elements:
        """The operations for the state of a scan: on vectors or on scalars."""
        wide = self.code.is_wide(scan, level) and not self._is_through_lanes(scan, level)
        return self.code.vector if wide else self.code.scalar

    def _parts(self, scan: Scan, level: Level) -> range:
        return range(level.copies if self._elements(scan, level).count else 1)


class _Lanes:
    """A scan through the lanes of a vector."""

    def __init__(self, code: KernelFunction, scan: Scan, mask: str | None) -> None:
        self.code, self.scan, self.mask = code, scan, mask
        self.count = code.shape.lanes
        self.kind = code.vector.type(scan.dtype)

    def through(self, value: str, state: str) -> tuple[str, list[str]]:
        """The scan at every lane, and the state after the last one."""
        if self.scan.dtype.is_integer:
            return self._in_steps(value, state)
        return self._in_order(value, state)

    def _apply(self, elements: Elements, a: str, b: str) -> str:
        dtype = self.scan.dtype
        return elements.apply(self.scan.op, [a, b], [dtype] * 2, dtype)

    def _in_order(self, value: str, state: str) -> tuple[str, list[str]]:
        fn, scan, kind = self.code.fn, self.scan, self.kind
        one, result = self.code.scalar.type(scan.dtype), "poison"
        for k in range(self.count)[:: -1 if scan.reverse else 1]:
            element = fn.value(f"extractelement {kind} {value}, i64 {k}")
            after = self._apply(self.code.scalar, state, element)
            given = state if scan.exclusive else after
            result = fn.value(f"insertelement {kind} {result}, {one} {given}, i64 {k}")
            if self.mask is not None:
                exists = fn.value(f"extractelement <{self.count} x i1> {self.mask}, i64 {k}")
                after = self.code.scalar.select(exists, after, state, scan.dtype)
            state = after
        return result, [state]

    def _in_steps(self, value: str, state: str) -> tuple[str, list[str]]:
        """Integers may be combined in any order: with lanes 1, 2, 4, ... away."""
        fn, v, scan, count = self.code.fn, self.code.vector, self.scan, self.count
        neutral = v.constant(scan_start(scan), scan.dtype)
        if self.mask is not None:
            value = v.select(self.mask, value, neutral, scan.dtype)
        distance = 1
        while distance < count:
            value = self._apply(v, self._moved(value, neutral, distance), value)
            distance *= 2
        before = v.splat(state, scan.dtype)
        result = self._apply(v, before, value)
        last = 0 if scan.reverse else count - 1
        after = fn.value(f"extractelement {self.kind} {result}, i64 {last}")
        return self._moved(result, before, 1) if scan.exclusive else result, [after]

    def _moved(self, value: str, outside: str, distance: int) -> str:
        """Lanes moved in the direction of the scan; the first ones come from `outside`."""
        count = self.count
        places = [k + distance if self.scan.reverse else k - distance for k in range(count)]
        order = ", ".join(f"i32 {p if 0 <= p < count else count}" for p in places)
        return self.code.fn.value(
            f"shufflevector {self.kind} {value}, {self.kind} {outside}, <{count} x i32> <{order}>"
        )
