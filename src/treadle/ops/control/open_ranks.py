"""What loops carry and branches give as values of the graph: one for each tensor, or two where only
a run knows the rank.

A tensor of unknown rank is its elements in a row and its shape. A loop variable is one from the
start, or because its shape invariant leaves the rank open and the body gives it another one; a
result of branches because they give two ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import Tensor, UnrankedTensor, lacks_rank


class _Parts:
    """How a tensor becomes its elements and its shape; told by the ops on shapes, a layer above."""

    of: Callable[[Tensor], tuple[Tensor, Tensor]]


def set_parts(parts_of: Callable[[Tensor], tuple[Tensor, Tensor]]) -> None:
    _Parts.of = parts_of


class Results:
    """The results of two branches.

    Args:
        then, otherwise: the tensors that they give.
    """

    def __init__(self, then: Sequence[Tensor], otherwise: Sequence[Tensor]) -> None:
        pairs = zip(then, otherwise, strict=True)
        self._is_open = [
            lacks_rank(a) or lacks_rank(b) or _differ(a.spec, b.spec) for a, b in pairs
        ]

    def values(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The values of the graph for the tensors of a branch, where it is traced."""
        return _values(self._is_open, tensors)

    def tensors(self, values: Sequence[Any]) -> list[Any]:
        """The tensors that stand for values of the graph."""
        return _tensors(self._is_open, values)


def _values(is_open: Sequence[bool], tensors: Sequence[Tensor]) -> list[Tensor]:
    found: list[Tensor] = []
    for opened, x in zip(is_open, tensors, strict=True):
        found += _Parts.of(x) if opened else [x]
    return found


def _tensors(is_open: Sequence[bool], values: Sequence[Any]) -> list[Any]:
    given = iter(values)
    return [UnrankedTensor(next(given), next(given)) if opened else next(given)
            for opened in is_open]  # fmt: skip


class RankChanges(Exception):
    """A trace of the body gave a variable another rank, which it may have."""


class LoopVariables:
    """The variables of one loop.

    Args:
        start: their first values.
        shapes: for each of them its shape invariant, or None.
        widen: without an invariant a variable may get a rank that only a run knows.

    Attributes:
        start, shapes: the same for the values of the graph.
    """

    def __init__(
        self, start: Sequence[Tensor], shapes: Sequence[TensorShape | None] | None, widen: bool
    ) -> None:
        self._start = list(start)
        self._shapes = [None] * len(self._start) if shapes is None else list(shapes)
        self._has_invariants = shapes is not None
        self._widen = widen
        self._is_open = [lacks_rank(x) for x in self._start]
        for number, (x, shape) in enumerate(zip(self._start, self._shapes, strict=True)):
            if lacks_rank(x) and shape is not None and shape.rank is not None:
                raise ValueError(
                    f"while_loop: loop variable {number} is of unknown rank, which its shape "
                    f"invariant {shape} does not allow{at(user_origin())}"
                )

    @property
    def start(self) -> list[Tensor]:
        return self.values(self._start)

    @property
    def shapes(self) -> list[TensorShape | None] | None:
        if not self._has_invariants:
            return None
        vector, found = TensorShape([None]), list[TensorShape | None]()
        for is_open, shape in zip(self._is_open, self._shapes, strict=True):
            found += [vector, vector] if is_open else [shape]
        return found

    def of_values(self, each: Sequence[Any]) -> list[Any]:
        """For each value of the graph what is given for its variable."""
        pairs = zip(self._is_open, each, strict=True)
        return [x for is_open, x in pairs for _ in range(2 if is_open else 1)]

    def variables(self, values: Sequence[Any]) -> list[Any]:
        """The variables that stand for values of the graph."""
        return _tensors(self._is_open, values)

    def values(self, variables: Sequence[Tensor]) -> list[Tensor]:
        """The values of the graph for variables."""
        return _values(self._is_open, variables)

    def after(self, variables: Sequence[Tensor]) -> list[Tensor]:
        """The values for what the body gives; there may be another number of them.

        Raises:
            RankChanges: the loop is traced again, with variables that are of unknown rank.
            ValueError: one has a rank that only a run knows, and may not change its rank.
        """
        if len(variables) != len(self._is_open):
            return [x for x in variables if not lacks_rank(x)]  # which is refused
        changed = False
        for number, x in enumerate(variables):
            if not self._is_open[number] and _differ(self._start[number].spec, x.spec):
                if self._may_change(number, x):
                    self._is_open[number] = changed = True
                elif lacks_rank(x):
                    raise ValueError(
                        f"while_loop: loop variable {number} has shape "
                        f"{self._start[number].shape} before an iteration, and a rank that only "
                        "a run knows after it; settle it with td.ensure_shape, or give "
                        f"shape_invariants with td.TensorShape(None){at(user_origin())}"
                    )
        if changed:
            raise RankChanges
        return self.values(variables)

    def _may_change(self, number: int, x: Tensor) -> bool:
        shape = self._shapes[number]
        if shape is not None:
            return shape.rank is None
        return self._widen and lacks_rank(x)


def _differ(before: Spec, after: Spec) -> bool:
    """Whether specs of tensors differ in their rank, known or not."""
    if type(before) is not TensorSpec or type(after) is not TensorSpec:
        return False
    return before.dtype is after.dtype and before.shape.rank != after.shape.rank
