"""Functions that give batches of arrays, as `Estimator.train` takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.v1.data import Dataset
from treadle.names import missing_in


def numpy_input_fn(x: Any, y: Any = None, batch_size: int = 128, num_epochs: int | None = 1,
                   shuffle: bool | None = None, queue_capacity: int = 1000,
                   num_threads: int = 1) -> Callable[[], Any]:  # fmt: skip
    """A function that gives batches of arrays, as `Estimator.train` takes it."""
    if shuffle is None:
        raise ValueError("shuffle must be provided and explicitly set as boolean")

    def input_fn() -> Any:
        given = (x,) if y is None else (x, y)
        dataset = Dataset.from_tensor_slices(given)
        count = len(next(iter(td.nest.flatten(x))))
        if shuffle:
            dataset = dataset.shuffle(max(count, queue_capacity))
        dataset = dataset.repeat(num_epochs).batch(batch_size)
        found = dataset.make_one_shot_iterator().get_next()
        return found[0] if y is None else found

    return input_fn


def pandas_input_fn(x: Any, y: Any = None, batch_size: int = 128,
                    num_epochs: int | None = 1, shuffle: bool | None = None,
                    queue_capacity: int = 1000, num_threads: int = 1,
                    target_column: str = "target") -> Callable[[], Any]:  # fmt: skip
    """A function that gives batches of the columns of a DataFrame.

    Args:
        y: a Series, or a DataFrame of several columns; None for no labels.
    """
    columns = {str(name): np.asarray(x[name]) for name in x.columns}
    labels = y
    if y is not None:
        several = hasattr(y, "columns")
        labels = {n: np.asarray(y[n]) for n in y.columns} if several else np.asarray(y)
    return numpy_input_fn(
        columns, labels, batch_size, num_epochs, shuffle, queue_capacity, num_threads
    )


__getattr__ = missing_in(__name__)
