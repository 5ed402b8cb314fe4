"""The elements of `TensorShape.dims`, and of the shapes of TensorFlow 1."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


class Dimension:
    """A size that may be unknown. Arithmetic and comparisons with an unknown one give an unknown
    `Dimension`, or None.

    Attributes:
        value: an int, or None.
    """

    def __init__(self, value: Any) -> None:
        if isinstance(value, Dimension):
            value = value.value
        self.value: int | None = None if value is None else operator.index(value)
        if self.value is not None and self.value < 0:
            raise ValueError(f"Dimension {value} must be >= 0")

    def is_compatible_with(self, other: Any) -> bool:
        """Whether both may be the same size."""
        other = Dimension(other)
        return self.value is None or other.value is None or self.value == other.value

    def merge_with(self, other: Any) -> Dimension:
        """What is known of a size that is both.

        Raises:
            ValueError: they are different.
        """
        other = Dimension(other)
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")
        return other if self.value is None else self

    def __int__(self) -> int:
        return self.value  # type: ignore[return-value]  # (None: Python's TypeError)

    def __index__(self) -> int:
        return self.value  # type: ignore[return-value]

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"Dimension({self.value!r})"

    def __str__(self) -> str:
        return "?" if self.value is None else str(self.value)

    def _compared(self, other: Any, compare: Callable[[Any, Any], bool]) -> Any:
        try:
            other = Dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self.value is None or other.value is None:
            return None
        return compare(self.value, other.value)

    def __eq__(self, other: object) -> Any:
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, operator.ge)


def _arithmetic(compute: Callable[[int, int], int]) -> tuple[Any, Any]:
    def forward(self: Dimension, other: Any) -> Any:
        try:
            other = Dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self.value is None or other.value is None:
            return Dimension(None)
        return Dimension(compute(self.value, other.value))

    def backward(self: Dimension, other: Any) -> Any:
        return forward(Dimension(other), self)

    return forward, backward


for _name, _compute in {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "floordiv": operator.floordiv, "mod": operator.mod,
}.items():  # fmt: skip
    _forward, _backward = _arithmetic(_compute)
    setattr(Dimension, f"__{_name}__", _forward)
    setattr(Dimension, f"__r{_name}__", _backward)
