"""``td.data.experimental``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import treadle as td
from treadle.data.dataset import Dataset
from treadle.data.elements import Leaves
from treadle.data.options import AutoShardPolicy
from treadle.data.stages.devices import CopiedToDevice
from treadle.data.stages.parallel import AUTOTUNE
from treadle.data.stages.stage import INFINITE as INFINITE_CARDINALITY
from treadle.data.stages.stage import UNKNOWN as UNKNOWN_CARDINALITY
from treadle.data.stages.stage import Stage
from treadle.data.tables import CsvDataset, make_csv_dataset
from treadle.iteration import Optional

__all__ = [
    "AUTOTUNE",
    "AutoShardPolicy",
    "Counter",
    "CsvDataset",
    "INFINITE_CARDINALITY",
    "Optional",
    "UNKNOWN_CARDINALITY",
    "assert_cardinality",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "enumerate_dataset",
    "get_single_element",
    "group_by_window",
    "ignore_errors",
    "load",
    "make_csv_dataset",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "save",
    "snapshot",
    "take_while",
    "unbatch",
]


def Counter(start: Any = 0, step: Any = 1, dtype: Any = td.int64) -> Dataset:
    """See `Dataset.counter`."""
    return Dataset.counter(start, step, dtype)


def sample_from_datasets(
    datasets: Any, weights: Any = None, seed: Any = None, stop_on_empty_dataset: bool = False
) -> Dataset:
    """See `Dataset.sample_from_datasets`."""
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


def choose_from_datasets(
    datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = False
) -> Dataset:
    """See `Dataset.choose_from_datasets`."""
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def copy_to_device(
    target_device: Any, source_device: Any = "/cpu:0"
) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: the elements are on a device. Strings stay on the host.
    It must be the last transformation but `prefetch`.

    Args:
        target_device: as `td.device` takes it; a device that there is not stands for the processor.
        source_device: accepted for TensorFlow programs: pipelines run on the host.

    Raises:
        ValueError: it is no name of a device.
        InvalidArgumentError: another transformation follows.
    """
    return lambda dataset: dataset._then(CopiedToDevice(dataset._stage, target_device))


def prefetch_to_device(
    device: Any, buffer_size: Any = None
) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: elements are copied to a device ahead of their use.

    Up to `buffer_size` are made in a thread and copied while the device does other work. It must be
    the last transformation. A loop over the dataset in a compiled function reads the elements of
    the host.

    Args:
        device, buffer_size: as in `copy_to_device` and `Dataset.prefetch`.

    Raises:
        ValueError: it is no name of a device.
        InvalidArgumentError: another transformation follows.
    """
    return lambda dataset: copy_to_device(device)(dataset).prefetch(buffer_size)


def get_single_element(dataset: Dataset) -> Any:
    """See `Dataset.get_single_element`."""
    return dataset.get_single_element()


def take_while(predicate: Callable[..., Any]) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: see `Dataset.take_while`."""
    return lambda dataset: dataset.take_while(predicate)


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any], bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int], padded_shapes: Any = None, padding_values: Any = None,
    pad_to_bucket_boundary: bool = False, no_padding: bool = False, drop_remainder: bool = False,
) -> Callable[[Dataset], Dataset]:  # fmt: skip
    """A transformation for `Dataset.apply`: see `Dataset.bucket_by_sequence_length`."""
    return lambda dataset: dataset.bucket_by_sequence_length(
        element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values,
        pad_to_bucket_boundary, no_padding, drop_remainder,
    )  # fmt: skip


def cardinality(dataset: Dataset) -> td.Tensor:
    """The number of elements, or INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
    return dataset.cardinality()


class AssertCardinality(Stage):
    """Elements whose number is known by promise."""

    def __init__(self, inner: Stage, count: int) -> None:
        self.inner, self.spec, self.count = inner, inner.spec, count

    def open(self) -> Iterator[Leaves]:
        found = 0
        for leaves in self.inner.open():
            found += 1
            if 0 <= self.count < found:
                raise self._wrong("more")
            yield leaves
        if found != self.count and self.count != UNKNOWN_CARDINALITY:
            raise self._wrong(f"only {found}")

    def _wrong(self, found: str) -> td.errors.FailedPreconditionError:
        return td.errors.FailedPreconditionError(
            None, None, f"the dataset was expected to contain {self.count} elements, has {found}"
        )

    def cardinality(self) -> int:
        return self.count


def assert_cardinality(expected_cardinality: Any) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: the dataset has that many elements.

    Raises:
        FailedPreconditionError: while iterating, it has another number.
    """
    return lambda dataset: dataset._then(
        AssertCardinality(dataset._stage, int(expected_cardinality))
    )


def group_by_window(
    key_func: Callable[..., Any], reduce_func: Callable[..., Any], window_size: Any = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Callable[[Dataset], Dataset]:  # fmt: skip
    """A transformation for `Dataset.apply`: see `Dataset.group_by_window`."""
    return lambda dataset: dataset.group_by_window(
        key_func, reduce_func, window_size, window_size_func
    )


def ignore_errors(log_warning: bool = False) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: see `Dataset.ignore_errors`."""
    return lambda dataset: dataset.ignore_errors(log_warning)


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: Any = None
) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: see `Dataset.rejection_resample`."""
    return lambda dataset: dataset.rejection_resample(class_func, target_dist, initial_dist, seed)


def snapshot(
    path: Any, compression: Any = "AUTO", reader_func: Callable[..., Any] | None = None,
    shard_func: Callable[..., Any] | None = None,
) -> Callable[[Dataset], Dataset]:  # fmt: skip
    """A transformation for `Dataset.apply`: see `Dataset.snapshot`."""
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def save(
    dataset: Dataset, path: Any, compression: Any = None,
    shard_func: Callable[..., Any] | None = None, checkpoint_args: Any = None,
) -> None:  # fmt: skip
    """See `Dataset.save`."""
    dataset.save(path, compression, shard_func, checkpoint_args)


def load(
    path: Any, element_spec: Any = None, compression: Any = None,
    reader_func: Callable[..., Any] | None = None,
) -> Dataset:  # fmt: skip
    """See `Dataset.load`."""
    return Dataset.load(path, element_spec, compression, reader_func)


def enumerate_dataset(start: Any = 0) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: see `Dataset.enumerate`."""
    return lambda dataset: dataset.enumerate(start)


def unbatch() -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: see `Dataset.unbatch`."""
    return lambda dataset: dataset.unbatch()
