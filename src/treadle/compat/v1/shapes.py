"""TensorFlow 1's shapes: their elements are `Dimension`s, which may be unknown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import treadle as td
from treadle.core.dimension import Dimension


class TensorShape(td.TensorShape):
    """A shape whose elements are `Dimension`s, as ``x.shape[0].value`` of TensorFlow 1 asks."""

    def __init__(self, dims: Any) -> None:
        super().__init__(plain(dims))

    def __getitem__(self, key: Any) -> Any:
        found = self._plain()[key] if self.rank is not None else None
        if isinstance(key, slice):
            return TensorShape(None if found is None else found)
        return Dimension(found)

    def __iter__(self) -> Iterator[Any]:
        return iter([Dimension(d) for d in self._plain()])

    def _plain(self) -> list[int | None]:
        return self.as_list()

    def concatenate(self, other: Any) -> TensorShape:
        return TensorShape(super().concatenate(plain(other)))

    def merge_with(self, other: Any) -> TensorShape:
        return TensorShape(super().merge_with(plain(other)))

    def with_rank(self, rank: int) -> TensorShape:
        return TensorShape(super().with_rank(rank))

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __str__(self) -> str:
        if self.rank is None:
            return "<unknown>"
        sizes = ["?" if d is None else str(d) for d in self.as_list()]
        return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"


def plain(value: Any) -> Any:
    """A shape without `Dimension`s: None, or a list of ints and None; other values as they are."""
    if isinstance(value, Dimension):
        return value.value
    if isinstance(value, td.TensorShape):
        return None if value.rank is None else value.as_list()
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value
