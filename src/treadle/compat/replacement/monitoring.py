"""TensorFlow's private module ``monitoring``: what libraries note of how they are used."""

from __future__ import annotations

from typing import Any


class Cell:
    """A noted value."""

    def __init__(self) -> None:
        self._value: Any = 0

    def set(self, value: Any) -> None:
        """Note another value."""
        self._value = value

    def increase_by(self, value: Any) -> None:
        """Add to it."""
        self._value += value

    add = increase_by

    def value(self) -> Any:
        """What was noted last."""
        return self._value


class Metric:
    """Values by labels. Nothing sends them anywhere."""

    def __init__(self, name: str, description: str = "", *labels: str) -> None:
        self.name, self.description, self.labels = name, description, labels
        self._cells: dict[tuple[Any, ...], Cell] = {}

    def get_cell(self, *labels: Any) -> Cell:
        """The value of these labels."""
        return self._cells.setdefault(labels, Cell())


BoolGauge = StringGauge = IntGauge = Counter = Metric
