"""Data that come batch by batch from Python, and datasets made of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import treadle as td


class PyDataset:
    """Base of data that Python computes: `__len__` gives the number of batches, `__getitem__` a
    batch, ``(x, y)`` or ``(x, y, sample_weight)``. `fit` takes the batches in a new order each
    epoch.

    Args:
        workers, use_multiprocessing, max_queue_size: accepted for Keras programs; batches are
            computed when they are needed.
    """

    def __init__(
        self, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10
    ) -> None:
        self.workers, self.use_multiprocessing = workers, use_multiprocessing
        self.max_queue_size = max_queue_size

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__()")

    def __len__(self) -> int:
        return self.num_batches

    @property
    def num_batches(self) -> int:
        """The number of batches; subclasses define it or `__len__`."""
        raise NotImplementedError(f"{type(self).__name__} must define __len__()")

    def on_epoch_begin(self) -> None:
        """Called before the batches of an epoch are taken."""

    def on_epoch_end(self) -> None:
        """Called when the batches of an epoch were taken."""

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))


Sequence = PyDataset  # Keras 2's name


def _share(size: float | int | None, count: int, name: str) -> int | None:
    if size is None:
        return None
    if isinstance(size, float):
        if not 0 < size < 1:
            raise ValueError(f"split_dataset: {name} as a float must be in (0, 1), got {size}")
        return int(size * count)
    if not 0 < size < count:
        raise ValueError(f"split_dataset: {name} must be in (0, {count}), got {size}")
    return size


def split_dataset(
    dataset: Any, left_size: float | int | None = None, right_size: float | int | None = None,
    shuffle: bool = False, seed: int | None = None, preferred_backend: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Two `td.data.Dataset`s of the first and the last elements.

    Args:
        dataset: a Dataset, an array, or a list or tuple of arrays of one length.
        left_size, right_size: numbers of elements, or fractions of them; one may be omitted.
        shuffle: whether the elements are shuffled before.
        seed: of shuffling.
        preferred_backend: "tensorflow", which has Datasets.

    Raises:
        ValueError: no size is given, there are not so many elements, or another backend.
    """
    if preferred_backend not in (None, "tensorflow"):
        raise ValueError(f"split_dataset gives td.data.Datasets, no {preferred_backend!r} ones")
    if left_size is None and right_size is None:
        raise ValueError("split_dataset: give left_size, right_size or both")
    whole = dataset
    if not isinstance(dataset, td.data.Dataset):
        whole = td.data.Dataset.from_tensor_slices(
            tuple(dataset) if isinstance(dataset, list | tuple) else dataset
        )
    count = int(whole.cardinality())
    if count < 0:
        count = sum(1 for _ in whole)
    left, right = _share(left_size, count, "left_size"), _share(right_size, count, "right_size")
    if left is None:
        left = count - (right or 0)
    if right is None:
        right = count - left
    if left + right > count:
        raise ValueError(f"split_dataset: {left} and {right} of {count} elements")
    if shuffle:
        drawn = int(np.random.default_rng().integers(2**31)) if seed is None else seed
        whole = whole.shuffle(count, seed=drawn, reshuffle_each_iteration=False)
    return whole.take(left), whole.skip(count - right).take(right)


def timeseries_dataset_from_array(
    data: Any, targets: Any, sequence_length: int, sequence_stride: int = 1,
    sampling_rate: int = 1, batch_size: int | None = 128, shuffle: bool = False,
    seed: int | None = None, start_index: int | None = None, end_index: int | None = None,
    format: str = "tf",
) -> Any:  # fmt: skip
    """A Dataset of windows of consecutive rows.

    Args:
        data: rows by time.
        targets: what belongs to the window that begins at each row; None for windows alone.
        sequence_length: rows of a window.
        sequence_stride: rows between the beginnings of windows.
        sampling_rate: every so many rows are in a window.
        format: "tf".
        batch_size: windows of a batch; None for single windows.
        start_index, end_index: the part of the data that is used.
    """
    if format != "tf":
        raise ValueError(f'`format` must be "tf": datasets are td.data.Dataset. Got {format!r}')
    for name, value in (
        ("sequence_length", sequence_length), ("sequence_stride", sequence_stride),
        ("sampling_rate", sampling_rate),
    ):  # fmt: skip
        if value <= 0:
            raise ValueError(f"timeseries_dataset_from_array: {name} must be positive: {value}")
    rows = np.asarray(data)
    first, last = start_index or 0, len(rows) if end_index is None else end_index
    if not 0 <= first < last <= len(rows):
        raise ValueError(
            f"timeseries_dataset_from_array: rows {first} to {last} of {len(rows)}"
        )
    span = (sequence_length - 1) * sampling_rate + 1
    count = max(last - first - span + 1, 0)
    if targets is not None:
        count = min(count, len(targets))
    starts = np.arange(0, count, sequence_stride)
    if shuffle:
        # The generators of Keras, so that the order for a seed is the same.
        drawn = np.random.randint(1_000_000) if seed is None else seed  # noqa: NPY002
        np.random.RandomState(drawn).shuffle(starts)
    steps = np.arange(sequence_length) * sampling_rate
    windows = td.data.Dataset.from_tensor_slices(starts)
    source = td.constant(rows[first:last])
    if targets is None:
        found = windows.map(lambda start: td.gather(source, start + steps))
    else:
        wanted = td.constant(np.asarray(targets)[first:last])
        found = windows.map(
            lambda start: (td.gather(source, start + steps), td.gather(wanted, start))
        )
    if shuffle:  # anew for each pass
        found = found.shuffle(1024 if batch_size is None else 8 * batch_size, seed=seed)
    if batch_size is not None:
        found = found.batch(batch_size)
    return found.prefetch(2)
