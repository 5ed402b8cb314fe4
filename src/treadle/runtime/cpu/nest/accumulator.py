"""Accumulators of reductions: start, step, merging of lanes and copies, all in a fixed order."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.kernel.ir import Reduce
from treadle.kernel.reference import neutral
from treadle.runtime.cpu.elements import Elements

_STEP = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "any": "or", "all": "and"}
_MOST_NARROW = (1 << 31) - 1  # the largest position that 32 bits hold


class Accumulator:
    """The running state of one reduction in registers: a value, and for argmax a position.

    Positions take no more bits than the values where they may: a vector of them is one register
    then, too, and the masks of comparisons choose among them as they are.
    """

    def __init__(self, reduce: Reduce, elements: Elements) -> None:
        self.reduce, self.e = reduce, elements
        self.dtype: DType = reduce.value.dtype
        self.positions = reduce.op in ("argmax", "argmin")
        self.op = {"argmax": "max", "argmin": "min"}.get(reduce.op, reduce.op)
        extent = reduce.over[0].extent
        is_short = isinstance(extent, int) and extent <= _MOST_NARROW
        self.position_dtype = dtypes.int32 if is_short and self.dtype.size <= 4 else dtypes.int64

    @property
    def types(self) -> list[str]:
        """The LLVM types of the state."""
        kinds = [self.e.type(self.dtype)]
        return [*kinds, self.e.type(self.position_dtype)] if self.positions else kinds

    def start(self) -> list[str]:
        value = self.e.constant(neutral(self.op, self.dtype), self.dtype)
        return [value, self.e.constant(0, self.position_dtype)] if self.positions else [value]

    def step(
        self, state: Sequence[str], value: str, position: str | None, mask: str | None
    ) -> list[str]:
        """The state after one more value (or vector); lanes outside the mask do not count."""
        e = self.e
        if mask is not None:
            rest = e.constant(neutral(self.op, self.dtype), self.dtype)
            value = e.select(mask, value, rest, self.dtype)
        if not self.positions:
            return [e.apply(_STEP[self.op], [state[0], value], [self.dtype] * 2, self.dtype)]
        assert position is not None
        better = self._better(value, state[0])
        position = e.apply("cast", [position], [dtypes.int64], self.position_dtype)
        return [
            e.select(better, value, state[0], self.dtype),
            e.select(better, position, state[1], self.position_dtype),
        ]

    def _better(self, a: str, b: str) -> str:
        """Whether `a` replaces `b`: it is strictly beyond it, or the first NaN."""
        fn = "gt" if self.op == "max" else "lt"
        if not self.dtype.is_floating:
            return self.e.apply(fn, [a, b], [self.dtype] * 2, dtypes.bool)
        v = self.e.lanes(self.dtype)
        return v.both(v.compare(f"u{fn}", a, b), v.compare("ord", b, b))

    def merge(self, a: Sequence[str], b: Sequence[str]) -> list[str]:
        """Two states as one; positions break ties."""
        e = self.e
        if not self.positions:
            return [e.apply(_STEP[self.op], [a[0], b[0]], [self.dtype] * 2, self.dtype)]
        better = self._better(b[0], a[0])
        worse = self._better(a[0], b[0])
        earlier = e.apply("lt", [b[1], a[1]], [self.position_dtype] * 2, dtypes.bool)
        tie = e.lanes32.both(e.lanes32.negate(worse), earlier)
        take = e.lanes32.either(better, tie)
        return [
            e.select(take, b[0], a[0], self.dtype),
            e.select(take, b[1], a[1], self.position_dtype),
        ]

    def merge_all(self, states: Sequence[Sequence[str]]) -> list[str]:
        """States merged pairwise, as a balanced tree."""
        row = [list(s) for s in states]
        while len(row) > 1:
            pairs = [self.merge(row[i], row[i + 1]) for i in range(0, len(row) - 1, 2)]
            row = pairs + ([row[-1]] if len(row) % 2 else [])
        return row[0]

    def across(self, state: Sequence[str], scalar: Elements) -> list[str]:
        """The lanes of a vector state merged: a scalar state."""
        count, parts = self.e.count, list(state)
        kinds = self.types
        half = count // 2
        while half:
            order = ", ".join(f"i32 {lane ^ half}" for lane in range(count))
            other = [
                self.e.value(f"shufflevector {k} {p}, {k} poison, <{count} x i32> <{order}>")
                for k, p in zip(kinds, parts, strict=True)
            ]
            parts = self.merge(parts, other)
            half //= 2
        return [
            scalar.value(f"extractelement {k} {p}, i64 0")
            for k, p in zip(kinds, parts, strict=True)
        ]

    def result(self, state: Sequence[str]) -> str:
        """The value of the reduction, in its own dtype."""
        if not self.positions:
            return state[0]
        return self.e.apply("cast", [state[1]], [self.position_dtype], self.reduce.dtype)
