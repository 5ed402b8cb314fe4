"""Stage: one step of a pipeline, and what a pipeline depends on inside a function."""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

import treadle as td
from treadle.data.elements import Leaves
from treadle.data.rows import Rows
from treadle.iteration import SymbolicTensor, at, is_symbolic, user_origin

INFINITE, UNKNOWN = -1, -2


class Stage:
    """A recipe for elements: iterating does not change it.

    Attributes:
        spec: the structure of the elements, of TensorSpecs and DatasetSpecs.

    Attributes of a stage may hold symbolic tensors while a function is traced; `bound` replaces
    them by their values when the function runs.
    """

    spec: Any = None

    def open(self) -> Iterator[Leaves]:
        """A new pass over the elements."""
        rows = self.rows()
        assert rows is not None, type(self)
        return rows.elements()

    def rows(self) -> Rows | None:
        """The elements of a new pass as rows of arrays that can be gathered, where they are."""
        return None

    def cardinality(self) -> int:
        """The number of elements, INFINITE or UNKNOWN."""
        return UNKNOWN

    def renew(self) -> None:
        """Called for a copy whose symbolic tensors got values: drop results that depend on them."""


def symbols_in(value: Any) -> list[Any]:
    """The symbolic tensors that a pipeline depends on, each once."""
    found: dict[int, Any] = {}
    _find_symbols(value, found, set())
    return list(found.values())


def _find_symbols(value: Any, found: dict[int, Any], seen: set[int]) -> None:
    if is_symbolic(value):
        found[id(value)] = value
    elif id(value) not in seen:
        seen.add(id(value))
        for part in _parts(value):
            _find_symbols(part, found, seen)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Stage):
        return vars(value).values()
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, Mapping):
        return value.values()
    return ()


def bound(value: Any, values: Mapping[int, Any]) -> Any:
    """A pipeline with its symbolic tensors (by id) replaced; without any, the same object."""
    if is_symbolic(value):
        return values[id(value)]
    if not symbols_in(value):
        return value
    if isinstance(value, Stage):
        other = copy.copy(value)
        for name, part in vars(value).items():
            setattr(other, name, bound(part, values))
        other.renew()
        return other
    if isinstance(value, Mapping):
        return {k: bound(v, values) for k, v in value.items()}
    return type(value)(bound(v, values) for v in value)


def integer(value: Any, what: str) -> Any:
    """A whole number: an int, or the symbolic tensor.

    Raises:
        TypeError: it is none.
    """
    if is_symbolic(value):
        if value.ndim or not value.dtype.is_integer:
            raise TypeError(f"{what} must be an integer scalar, got {value!r}{at(user_origin())}")
        return value
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "iu":
        raise TypeError(f"{what} must be an integer, got {value!r}{at(user_origin())}")
    return int(array)


def invalid(message: str) -> td.errors.InvalidArgumentError:
    return td.errors.InvalidArgumentError(None, None, f"{message}{at(user_origin())}")


def known(value: Any) -> bool:
    """Whether a parameter has its value already."""
    return not isinstance(value, SymbolicTensor)


def scaled(count: int, change: Any) -> int:
    """``change(count)``, where there is a count."""
    return int(change(count)) if count >= 0 else count


def counted(items: Iterator[Any]) -> Generator[Any, None, int]:
    """All items; the value of the `yield from` is how many there were."""
    count = 0
    for item in items:
        count += 1
        yield item
    return count


def available_processors() -> int:
    """The threads that a stage under AUTOTUNE may use."""
    setting = td.config.threading
    return setting.get_inter_op_parallelism_threads() or setting.usable_processors()
