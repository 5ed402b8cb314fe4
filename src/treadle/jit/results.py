"""The caller's result of a jitted function, made of what the program gives.

An argument that is returned is the caller's own array, a view of one a view of it; other arrays are
new. Numbers are Python's where plain NumPy code would have Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core import nest
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jit.arrays import Array, Scalar
from treadle.jit.iteration import Counted
from treadle.jit.storage import Storage
from treadle.jit.views import Key, Permuted, Reshaped
from treadle.ops.python_numbers import SymbolicNumber

Make = Callable[[Sequence[Any], Sequence[Any]], Any]  # of the program's results and the arguments


class Results:
    """How a result is made."""

    def __init__(self, structure: Any, makers: list[Make]) -> None:
        self._structure = structure
        self._makers = makers
        self._single = makers[0] if not nest.is_nested(structure) else None

    def pack(self, found: Sequence[Any], leaves: Sequence[Any]) -> Any:
        if self._single is not None:
            return self._single(found, leaves)
        return nest.pack(self._structure, [make(found, leaves) for make in self._makers])


def collect(result: Any, arguments: dict[Storage, int]) -> tuple[Results, list[Tensor]]:
    """How to make `result`, and the tensors that the program gives for it.

    Raises:
        TypeError: a value that only has a meaning while the function is traced.
    """
    tensors: list[Tensor] = []
    arrays: dict[Any, int] = {}

    def number(tensor: Tensor) -> int:
        tensors.append(tensor)
        return len(tensors) - 1

    def leaf(value: Any) -> Make:
        if isinstance(value, Array):
            return _array(value)
        if isinstance(value, Scalar):
            place = number(value.tensor)
            return lambda found, leaves: found[place][()]
        if type(value) is SymbolicNumber:
            place = number(value.tensor())
            return lambda found, leaves: found[place].item()
        if isinstance(value, Tensor):
            place = number(value)
            return lambda found, leaves: found[place]
        if isinstance(value, Counted):
            raise TypeError(
                f"a jitted function cannot return an iterator or range{at(user_origin())}"
            )
        return lambda found, leaves: value

    def _array(value: Array) -> Make:
        source = arguments.get(value.storage)
        if source is not None and all(_is_constant(v) for v in value.views):
            return lambda found, leaves: _view(leaves[source], value.views)
        key = (id(value.storage), value.views)
        if key not in arrays:
            arrays[key] = number(value.tensor)
        place = arrays[key]
        return lambda found, leaves: found[place]

    return Results(result, [leaf(v) for v in nest.flatten(result)]), tensors


def _is_constant(view: Any) -> bool:
    """Whether NumPy can show the same view of the caller's array."""
    if isinstance(view, Key):
        return not any(isinstance(x, Tensor) for k in view.key for x in _parts(k))
    if isinstance(view, Reshaped):
        return all(isinstance(d, int) for d in view.dims)
    return isinstance(view, Permuted)


def _parts(item: Any) -> list[Any]:
    return [item.start, item.stop, item.step] if isinstance(item, slice) else [item]


def _view(array: np.ndarray[Any, Any], views: Sequence[Any]) -> Any:
    for view in views:
        if isinstance(view, Key):
            array = array[view.key]
        elif isinstance(view, Permuted):
            array = array.transpose(view.perm)
        else:
            array = array.reshape(view.dims)
    return array
