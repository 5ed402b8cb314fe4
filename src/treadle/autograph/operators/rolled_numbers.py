"""Python numbers in a loop that is rolled: the counter, and what the loop carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.numbers.python_numbers import (
    Domain,
    Source,
    SymbolicNumber,
    extreme,
    interval_of,
    is_symbolic_number,
    kind_of,
)


class Counting:
    """The numbers that a loop goes through: ``start``, ``start + step`` and so on, before `stop`.

    Attributes:
        start, stop: Python ints, or symbolic numbers of a loop around.
        trips: how many iterations there are.
    """

    def __init__(self, start: Any, stop: Any, step: int) -> None:
        self.start, self.stop, self.step = start, stop, step
        if step > 0:
            self.trips = extreme(max, (stop - start + (step - 1)) // step, 0)
        else:
            self.trips = extreme(max, (start - stop + (-step - 1)) // -step, 0)

    @property
    def known(self) -> range | None:
        """The numbers, where they are known while tracing."""
        if is_symbolic_number(self.start) or is_symbolic_number(self.stop):
            return None
        return range(self.start, self.stop, self.step)

    @property
    def interval(self) -> tuple[int, int] | None:
        """The least and the largest number, of at least one."""
        if self.known:
            ends = self.known[0], self.known[-1]
            return min(ends), max(ends)
        low, high = interval_of(self.start), interval_of(self.stop)
        if low is None or high is None:
            return None
        return (low[0], high[1] - 1) if self.step > 0 else (high[0] + 1, low[1])

    def after(self, count: Any) -> Any:
        """The number after `count` steps."""
        return self.start + count * self.step

    def shortened(self, trips: int) -> Counting:
        """The first `trips` iterations."""
        return Counting(self.start, self.start + trips * self.step, self.step)


class Iterations(Domain):
    """The iterations of a loop, by its counter."""

    def __init__(self, counting: Counting, size: int) -> None:
        super().__init__(size)
        self.counting = counting
        self.counter: Any = None

    def number(self) -> Any:
        """How many iterations were before this one."""
        counting = self.counting
        if abs(counting.step) == 1:
            return (self.counter - counting.start) * counting.step
        return (self.counter - counting.start) // counting.step


class Counter(Source):
    """The loop's own number."""

    exact = True

    def __init__(self, param: Tensor, iterations: Iterations) -> None:
        super().__init__(param)
        self.values = iterations.counting.known
        self.domain = iterations if self.values is not None else None


class Started(Source):
    """A number that the loop begins with, while its later values are not known yet.

    Attributes:
        taken: the dtypes of tensors that it met.
        computed: whether it was computed with, as a number.
    """

    tentative = True

    def __init__(self, value: Any) -> None:
        self.value = value
        self.taken: set[DType] = set()
        self.computed = False

    def left_open(self) -> None:
        self.computed = True

    def tensor(self) -> Tensor:
        self.computed = True
        kind = kind_of(self.value)
        if is_symbolic_number(self.value):
            return self.value.tensor()  # type: ignore[no-any-return]
        wide = {bool: dtypes.bool, int: dtypes.int64, float: dtypes.float64}
        return convert_to_tensor(self.value, wide.get(kind, dtypes.complex128))

    def converted(self, dtype: DType) -> Tensor | None:
        self.taken.add(dtype)
        return convert_to_tensor(self.value, dtype)


def depends_only_on(number: Any, sources: Sequence[Source]) -> bool:
    """Whether nothing else is needed to compute a number."""
    if not is_symbolic_number(number):
        return True
    allowed = {id(s) for s in sources}
    symbolic: SymbolicNumber = number
    return set(symbolic.sources()) <= allowed
