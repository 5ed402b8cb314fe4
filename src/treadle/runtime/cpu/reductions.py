"""Accumulators of reductions: a vector (two for argmax and argmin) per reduction."""

from __future__ import annotations

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.kernel.ir import Reduce
from treadle.kernel.reference import neutral
from treadle.runtime.cpu.operations import Operations

_COMBINE = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "any": "or", "all": "and"}


class Accumulators:
    """What several reductions carry through a loop, all in one list of SSA values."""

    def __init__(self, ops: Operations, reduces: list[Reduce]) -> None:
        self.ops, self.reduces = ops, reduces

    def initial(self) -> list[tuple[str, str]]:
        """(LLVM type, starting value) of every carried value."""
        pairs = []
        for reduce in self.reduces:
            dtype = reduce.value.dtype
            op = reduce.op.removeprefix("arg")
            pairs.append((self.ops.type(dtype), self.ops.const(neutral(op, dtype), dtype)))
            if reduce.op.startswith("arg"):
                # No position yet: any element, even one equal to the neutral value, is better.
                pairs.append((self.ops.type(dtypes.int64), self.ops.const(_NOWHERE, dtypes.int64)))
        return pairs

    def slots(self) -> list[int]:
        """Where each reduction's values start in the list."""
        places, place = [], 0
        for reduce in self.reduces:
            places.append(place)
            place += 2 if reduce.op.startswith("arg") else 1
        return places

    def slot(self, carried: list[str], number: int) -> list[str]:
        start = self.slots()[number]
        width = 2 if self.reduces[number].op.startswith("arg") else 1
        return carried[start : start + width]

    def step(
        self, carried: list[str], values: list[str], places: list[str | None], mask: str | None
    ) -> list[str]:
        """The carried values after one more element; lanes outside `mask` stay."""
        updated: list[str] = []
        for n, reduce in enumerate(self.reduces):
            old, value, dtype = self.slot(carried, n), values[n], reduce.value.dtype
            if reduce.op.startswith("arg"):
                place = places[n]
                assert place is not None
                updated += self._better(self.ops, reduce, old, [value, place], mask)
                continue
            if mask is not None:
                idle = self.ops.const(neutral(reduce.op, dtype), dtype)
                value = self.ops.select(mask, value, idle, dtype)
            updated.append(self._combine(self.ops, reduce, old[0], value))
        return updated

    def _combine(self, ops: Operations, reduce: Reduce, a: str, b: str) -> str:
        dtype = reduce.value.dtype
        return ops.apply(_COMBINE[reduce.op], [a, b], [dtype, dtype], dtype)

    def _better(
        self, ops: Operations, reduce: Reduce, old: list[str], new: list[str], mask: str | None
    ) -> list[str]:
        """The better of two (value, position) pairs; NaN beats all, ties go to the first."""
        dtype = reduce.value.dtype
        fn = "gt" if reduce.op == "argmax" else "lt"
        wins = _order(ops, fn, new[0], old[0], dtype)
        loses = _order(ops, fn, old[0], new[0], dtype)
        earlier = ops.compare("lt", new[1], old[1], dtypes.int64)
        tie = ops.bool_function("and", [ops.bool_function("not", [loses]), earlier])
        take = ops.bool_function("or", [wins, tie])
        if mask is not None:
            take = ops.bool_function("and", [take, mask])
        return [
            ops.select(take, new[0], old[0], dtype),
            ops.select(take, new[1], old[1], dtypes.int64),
        ]

    def results(self, carried: list[str]) -> list[str]:
        """Strips: each lane's own result."""
        return [
            self._result(self.ops, r, self.slot(carried, n)) for n, r in enumerate(self.reduces)
        ]

    def _result(self, ops: Operations, reduce: Reduce, slot: list[str]) -> str:
        if not reduce.op.startswith("arg"):
            return slot[0]
        empty = ops.compare("eq", slot[1], ops.const(_NOWHERE, dtypes.int64), dtypes.int64)
        place = ops.select(empty, ops.const(0, dtypes.int64), slot[1], dtypes.int64)
        return ops.cast(place, dtypes.int64, reduce.dtype)

    def fold(self, number: int, parts: list[list[str]]) -> str:
        """Rows: the copies' vectors and their lanes combined by a fixed tree into a scalar."""
        reduce = self.reduces[number]
        while len(parts) > 1:
            pairs = [parts[n : n + 2] for n in range(0, len(parts), 2)]
            parts = [
                self._merge(self.ops, reduce, *pair) if len(pair) == 2 else pair[0]
                for pair in pairs
            ]
        slot, lanes = parts[0], self.ops.count
        while lanes > 1:
            slot = self._halve(reduce, slot, lanes)
            lanes //= 2
        scalar = Operations(self.ops.function, 0)
        kinds = [reduce.value.dtype, dtypes.int64]
        one = Operations(self.ops.function, 1)
        slot = [
            self.ops.function.value(f"extractelement {one.type(kind)} {x}, i64 0")
            for kind, x in zip(kinds, slot, strict=False)
        ]
        return self._result(scalar, reduce, slot)

    def _merge(self, ops: Operations, reduce: Reduce, a: list[str], b: list[str]) -> list[str]:
        if reduce.op.startswith("arg"):
            return self._better(ops, reduce, a, b, None)
        return [self._combine(ops, reduce, a[0], b[0])]

    def _halve(self, reduce: Reduce, slot: list[str], lanes: int) -> list[str]:
        half = Operations(self.ops.function, lanes // 2)
        full = Operations(self.ops.function, lanes)
        halves: list[list[str]] = [[], []]
        for kind, x in zip([reduce.value.dtype, dtypes.int64], slot, strict=False):
            for n, part in enumerate(halves):
                start = n * (lanes // 2)
                places = ", ".join(f"i32 {start + k}" for k in range(lanes // 2))
                vector = full.type(kind)
                part.append(
                    self.ops.function.value(
                        f"shufflevector {vector} {x}, {vector} poison, "
                        f"<{lanes // 2} x i32> <{places}>"
                    )
                )
        return self._merge(half, reduce, halves[0], halves[1])


_NOWHERE = 2**63 - 1


def _order(ops: Operations, fn: str, a: str, b: str, dtype: DType) -> str:
    """``a fn b`` with NaN before everything else."""
    if dtype.is_bool:
        return ops.compare({"gt": "gt", "lt": "lt"}[fn], a, b, dtype)
    if not dtype.is_floating:
        return ops.compare(fn, a, b, dtype)
    v = ops.lanes(dtype)
    real = v.compare("ord", b, b)
    return v.both(v.compare("ugt" if fn == "gt" else "ult", a, b), real)
