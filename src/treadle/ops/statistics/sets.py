"""Sets of elements side by side: what two have in common, what either has, or the first alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import fresh_symbol
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.registry import Op, register, run

_OPERATIONS: dict[str, Callable[[set[Any], set[Any]], set[Any]]] = {
    "intersection": set.intersection,
    "union": set.union,
    "difference": set.difference,
}


def _infer(x: Spec, x_ids: Spec, y: Spec, y_ids: Spec, *, kind: str) -> tuple[TensorSpec, ...]:
    if x.dtype is not y.dtype:
        raise TypeError(f"sets of {x.dtype.name} and {y.dtype.name}")
    if not x.dtype.is_integer and x.dtype is not dtypes.string:
        raise TypeError(f"sets are of integers or strings, not {x.dtype.name}")
    count = fresh_symbol("elements")
    return (
        TensorSpec([count], x.dtype),
        TensorSpec([count], dtypes.int64),
        TensorSpec([count], dtypes.int64),
    )


def _by_group(values: NDArray, ids: NDArray) -> dict[int, set[Any]]:
    found: dict[int, set[Any]] = {}
    for number, value in zip(ids.tolist(), values.tolist(), strict=True):
        found.setdefault(number, set()).add(value)
    return found


def _combined(
    x: NDArray, x_ids: NDArray, y: NDArray, y_ids: NDArray, *, kind: str
) -> tuple[NDArray, NDArray, NDArray]:
    if x.dtype != y.dtype or x.dtype.kind not in "iuO":
        raise TypeError("sets are of integers or strings of one dtype")
    mine, theirs = _by_group(x, x_ids), _by_group(y, y_ids)
    values: list[Any] = []
    ids: list[int] = []
    places: list[int] = []
    for number in sorted({*mine, *theirs}):
        found = _OPERATIONS[kind](mine.get(number, set()), theirs.get(number, set()))
        values += sorted(found)
        ids += [number] * len(found)
        places += range(len(found))
    elements = np.empty(len(values), x.dtype)
    elements[:] = values
    return elements, np.array(ids, np.int64), np.array(places, np.int64)


# Compiled programs call Python: how many elements there are depends on all of them.
COMBINE = register(
    Op(
        "combine_sets", _infer, _combined, tags=frozenset({"dynamic", "strings"}),
        callback="it needs tables of the elements of each set",
    )
)  # fmt: skip


def combined(
    kind: str, x: Tensor, x_ids: Tensor, y: Tensor, y_ids: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Sets of two lists of elements combined, group by group.

    Args:
        kind: "intersection", "union" or "difference".
        x, y: elements of the sets.
        x_ids, y_ids: the number of the group of each.

    Returns:
        The elements of the results, in order, the group of each, and its place in its group.
    """
    return run(COMBINE, x, x_ids, y, y_ids, kind=kind)  # type: ignore[no-any-return]
