"""Datasets known by a handle only: arguments of functions, and elements that are datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from treadle.data.elements import Leaves
from treadle.data.rows import Rows
from treadle.data.stages.stage import UNKNOWN, Stage
from treadle.iteration import object_of


class FromHandle(Stage):
    """The dataset behind a handle: an argument of a function."""

    def __init__(self, spec: Any, handle: Any) -> None:
        self.spec, self.handle = spec, handle

    def _stage(self) -> Stage:
        stage: Stage = object_of(int(self.handle))._stage
        return stage

    def rows(self) -> Rows | None:
        return self._stage().rows()

    def open(self) -> Iterator[Leaves]:
        return self._stage().open()

    def cardinality(self) -> int:
        return self._stage().cardinality() if isinstance(self.handle, np.ndarray) else UNKNOWN


_kinds: list[Callable[[Stage], Any]] = []  # holds `Dataset`


def set_dataset(kind: Callable[[Stage], Any]) -> None:
    """Set the function that makes a dataset of a stage: `Dataset`, which imports the stages."""
    _kinds[:] = [kind]


def dataset_of_handle(spec: Any, handle: Any) -> Any:
    """The dataset behind a handle, with elements of a spec."""
    return _kinds[0](FromHandle(spec, handle))


def dataset_of_spec(spec: Any) -> Any:
    """A dataset that only has a type, for tracing a function that takes one."""
    return dataset_of_handle(spec, None)
