"""Random orders of all elements, as a generator's state decides them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core.shapes import Dim, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.lowering import RowCall, Rows
from treadle.ops.random.arrays import for_each_stream
from treadle.ops.random.ops import DRAWS, streams_of
from treadle.ops.random.philox import random_words
from treadle.ops.registry import Op, register, run

_WORK = 32  # element operations for each element of an order


def _infer(state: Any, *, shape: tuple[Dim, ...], dtype: str) -> TensorSpec:
    return TensorSpec((*streams_of(state), *shape), dtype)


@for_each_stream
def _eager(state: NDArray, *, shape: tuple[int, ...], dtype: str) -> NDArray:
    """Each place in turn exchanges its number with one of those behind it, or keeps it."""
    *outer, count = shape
    rows = math.prod(outer)
    words = random_words(state, rows * count).astype(np.int64).reshape(rows, count)
    steps = words % np.arange(count, 0, -1)
    orders = np.empty((rows, count), dtype)
    for row in range(rows):
        order = list(range(count))
        for place, step in enumerate(steps[row].tolist()):
            other = place + step
            order[place], order[other] = order[other], order[place]
        orders[row] = order
    return orders.reshape(shape)


def _call(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], attrs: Mapping[str, Any]
) -> RowCall:
    dims, streams = outputs[0].dims, inputs[0].rank - 1
    numbers = {"n": dims[-1], "rows": product(dims[streams:-1])}
    names = {"I": outputs[0].dtype}
    return RowCall(product(dims[:-1]), _WORK * product(dims), numbers, names)


# The numbers 0 to n - 1 in a random order, for each row of a result [..., n].
ORDER = register(
    Op(
        "random_order", _infer, _eager, tags=DRAWS,
        lower=Rows("drawing.order", _call, eagerly=True),
    )
)  # fmt: skip


def random_order(state: Tensor, count: Dim) -> Tensor:
    """The numbers 0 to count - 1 in a random order: int32 where all of them are known to fit."""
    fits = isinstance(count, int) and count < 1 << 31
    return run(ORDER, state, shape=(count,), dtype="int32" if fits else "int64")  # type: ignore[no-any-return]
