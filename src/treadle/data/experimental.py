"""``td.data.experimental``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import treadle as td
from treadle.data.dataset import Dataset
from treadle.data.elements import Leaves
from treadle.data.options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ServiceOptions,
    ThreadingOptions,
)
from treadle.data.stages.devices import CopiedToDevice
from treadle.data.stages.parallel import AUTOTUNE
from treadle.data.stages.sources import FromList
from treadle.data.stages.stage import INFINITE as INFINITE_CARDINALITY
from treadle.data.stages.stage import UNKNOWN as UNKNOWN_CARDINALITY
from treadle.data.stages.stage import Stage, debugging
from treadle.data.tables import CsvDataset, make_csv_dataset
from treadle.iteration import Optional, context, user_origin
from treadle.iteration import at as place
from treadle.names import provided

if TYPE_CHECKING:
    from treadle.data.databases import SqlDataset
    from treadle.data.lookups import (
        DatasetInitializer,
        index_table_from_dataset,
        table_from_dataset,
    )

__all__ = [
    "AUTOTUNE",
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "Counter",
    "CsvDataset",
    "DatasetInitializer",
    "DistributeOptions",
    "ExternalStatePolicy",
    "INFINITE_CARDINALITY",
    "OptimizationOptions",
    "Optional",
    "RandomDataset",
    "Reducer",
    "SHARD_HINT",
    "ServiceOptions",
    "SqlDataset",
    "TFRecordWriter",
    "ThreadingOptions",
    "UNKNOWN_CARDINALITY",
    "assert_cardinality",
    "at",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "enable_debug_mode",
    "enumerate_dataset",
    "from_list",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "index_table_from_dataset",
    "load",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "map_and_batch",
    "pad_to_cardinality",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "save",
    "scan",
    "shuffle_and_repeat",
    "snapshot",
    "table_from_dataset",
    "take_while",
    "unbatch",
    "unique",
]


def Counter(start: Any = 0, step: Any = 1, dtype: Any = td.int64) -> Dataset:
    """See `Dataset.counter`."""
    return Dataset.counter(start, step, dtype)


def enable_debug_mode() -> None:
    """Let functions of datasets that are made from now on run in Python, eagerly: for each element
    and in the thread that takes it, so that a debugger stops in them. Nothing is prefetched or
    called in parallel meanwhile. It is slow, and stays on.

    Raises:
        ValueError: inside a function.
    """
    if context.recorder is not None:
        raise ValueError(f"enable_debug_mode: call it outside of functions{place(user_origin())}")
    debugging.on = True


def dense_to_ragged_batch(
    batch_size: Any, drop_remainder: bool = False, row_splits_dtype: Any = td.int64
) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`; see `Dataset.ragged_batch`."""
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`; see `Dataset.sparse_batch`."""
    return lambda dataset: dataset.sparse_batch(batch_size, row_shape)


SHARD_HINT = -1  # stands for the number of shards in `Dataset.shard`


class Reducer:
    """What `group_by_reducer` does with the elements of one key.

    Args:
        init_func: from the key to the first state.
        reduce_func: from the state and an element to the next state.
        finalize_func: from the last state to the result.
    """

    def __init__(
        self, init_func: Callable[..., Any], reduce_func: Callable[..., Any],
        finalize_func: Callable[..., Any],
    ) -> None:  # fmt: skip
        self.init_func, self.reduce_func = init_func, reduce_func
        self.finalize_func = finalize_func


def group_by_reducer(
    key_func: Callable[..., Any], reducer: Reducer
) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: one element for each key, in the order of the keys.

    Args:
        key_func: gives the key of an element, an int64 scalar.
        reducer: what becomes of the elements of a key.
    """

    def reduced(key: Any, elements: Any) -> Dataset:
        state = elements.reduce(reducer.init_func(key), reducer.reduce_func)
        parts = state if isinstance(state, tuple) else (state,)
        return Dataset.from_tensors(reducer.finalize_func(*parts))

    return lambda dataset: dataset.group_by_window(key_func, reduced, td.int64.max)


def pad_to_cardinality(
    cardinality: int, mask_key: str = "valid"
) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: elements of zeros follow, up to a number of elements.

    Args:
        cardinality: that number.
        mask_key: the elements are dicts, which get this key: True for those of the dataset.

    Raises:
        ValueError: the elements are no dicts, or their number is not known, or larger.
    """

    def padded(dataset: Dataset) -> Dataset:
        spec, known = dataset.element_spec, int(dataset.cardinality())
        if not isinstance(spec, dict):
            raise ValueError(f"pad_to_cardinality: the elements must be dicts, not {spec!r}")
        if known < 0 or known > cardinality:
            raise ValueError(
                "The dataset passed into `pad_to_cardinality` must have a cardinality of at most "
                f"{cardinality}, but has cardinality {known}"
            )
        zeros = td.nest.map_structure(lambda part: td.zeros(part.shape, part.dtype), spec)
        filler = Dataset.from_tensors({**zeros, mask_key: td.constant(False)})
        marked = dataset.map(lambda element: {**element, mask_key: td.constant(True)})
        return marked.concatenate(filler.repeat(cardinality - known))

    return padded


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


def get_next_as_optional(iterator: Any) -> Optional:
    """See ``Iterator.get_next_as_optional``."""
    return iterator.get_next_as_optional()  # type: ignore[no-any-return]


def get_structure(dataset_or_iterator: Any) -> Any:
    """The specs of the elements of a dataset or an iterator.

    Raises:
        TypeError: it is neither.
    """
    if not hasattr(dataset_or_iterator, "element_spec"):
        raise TypeError(f"get_structure: a dataset or iterator, not {dataset_or_iterator!r}")
    return dataset_or_iterator.element_spec


def at(dataset: Dataset, index: Any) -> Any:
    """The element of this number.

    Raises:
        OutOfRangeError: there are fewer elements.
    """
    number = int(index)
    for element in dataset.skip(max(number, 0)).take(1 if number >= 0 else 0):
        return element
    raise td.errors.OutOfRangeError(None, None, f"at: the dataset has no element {number}")


def from_list(elements: Sequence[Any], name: str | None = None) -> Dataset:
    """The elements of a list, which have one structure and one dtype in each place.

    Raises:
        ValueError: there is none, or their structures differ.
        TypeError: dtypes differ.
    """
    return Dataset(FromList(elements))


class RandomDataset(Dataset):
    """See `Dataset.random`."""

    def __init__(
        self, seed: Any = None, rerandomize_each_iteration: Any = None, name: str | None = None
    ) -> None:
        super().__init__(Dataset.random(seed, rerandomize_each_iteration)._stage)


class TFRecordWriter:
    """Writes a dataset of scalar strings to a file of records.

    Args:
        filename: the file, which is made anew.
        compression_type: "GZIP", "ZLIB" or "".
    """

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._place = filename, compression_type

    def write(self, dataset: Dataset) -> None:
        """Write all elements.

        Raises:
            TypeError: the elements are no scalar strings.
        """
        if dataset.element_spec != td.TensorSpec([], td.string):
            text = f"the elements are {dataset.element_spec}, not scalar strings"
            raise TypeError(f"TFRecordWriter: {text}")
        with td.io.TFRecordWriter(*self._place) as writer:
            for record in dataset.as_numpy_iterator():
                writer.write(record)


def scan(initial_state: Any, scan_func: Callable[..., Any]) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: see `Dataset.scan`."""
    return lambda dataset: dataset.scan(initial_state, scan_func)


def unique() -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: see `Dataset.unique`."""
    return lambda dataset: dataset.unique()


def shuffle_and_repeat(
    buffer_size: Any, count: Any = None, seed: Any = None
) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: `Dataset.shuffle`, then `Dataset.repeat`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def map_and_batch(
    map_func: Callable[..., Any], batch_size: Any, num_parallel_batches: Any = None,
    drop_remainder: bool = False, num_parallel_calls: Any = None,
) -> Callable[[Dataset], Dataset]:  # fmt: skip
    """A transformation for `Dataset.apply`: `Dataset.map`, then `Dataset.batch`.

    Raises:
        ValueError: both numbers of parallel calls are given.
    """
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError("map_and_batch: num_parallel_batches or num_parallel_calls, not both")
    if num_parallel_batches is not None:
        num_parallel_calls = int(batch_size) * int(num_parallel_batches)
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(
        batch_size, drop_remainder
    )


def parallel_interleave(
    map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1, sloppy: bool = False,
    buffer_output_elements: Any = None, prefetch_input_elements: Any = None,
) -> Callable[[Dataset], Dataset]:  # fmt: skip
    """A transformation for `Dataset.apply`: `Dataset.interleave` in threads.

    Args:
        map_func, cycle_length, block_length: as `Dataset.interleave` takes them.
        sloppy: whether elements may come in the order in which they are ready.
        buffer_output_elements, prefetch_input_elements: accepted for TensorFlow programs.
    """
    return lambda dataset: dataset.interleave(
        map_func, cycle_length, block_length, cycle_length, deterministic=not sloppy
    )


def parse_example_dataset(
    features: Any, num_parallel_calls: Any = 1, deterministic: Any = None
) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: batches of serialised examples become dicts, see
    `td.io.parse_example`."""

    def parse(serialized: Any) -> Any:
        return td.io.parse_example(serialized, features)

    return lambda dataset: dataset.map(parse, num_parallel_calls, deterministic)


def make_batched_features_dataset(
    file_pattern: Any, batch_size: int, features: Any, reader: Any = None,
    label_key: str | None = None, reader_args: Any = None, num_epochs: int | None = None,
    shuffle: bool = True, shuffle_buffer_size: int = 10000, shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None, reader_num_threads: int | None = None,
    parser_num_threads: int | None = None, sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:  # fmt: skip
    """Batches of the features of the examples in files.

    Args:
        file_pattern: files, or patterns of them.
        batch_size: how many examples are a batch.
        features: as `td.io.parse_example` takes them.
        reader: makes the dataset of serialised examples of a file; `TFRecordDataset` by default.
        label_key: the feature that is the label: the elements are then pairs.
        reader_args: further arguments of `reader`.
        num_epochs: how often the files are read; for ever by default.
        shuffle, shuffle_buffer_size, shuffle_seed: whether and how examples change their order.
        prefetch_buffer_size: how many batches are made ahead.
        reader_num_threads, parser_num_threads: how many files and batches are read at once.
        sloppy_ordering: whether the order may depend on which thread is the first.
        drop_final_batch: whether a last batch that is not full is left out.

    Raises:
        ValueError: `label_key` is none of the features.
        NotFoundError: no file fits a pattern.
    """
    if label_key is not None and label_key not in features:
        raise ValueError(f"make_batched_features_dataset: label_key {label_key!r} is no feature")
    make, more = reader or td.data.TFRecordDataset, reader_args or ()
    threads = reader_num_threads or 1
    names = Dataset.list_files(file_pattern, shuffle, shuffle_seed)
    found: Dataset = names.interleave(
        lambda name: make(name, *more), threads, 1, threads, deterministic=not sloppy_ordering
    )
    if shuffle:
        found = found.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        found = found.repeat(num_epochs)
    found = found.batch(batch_size, drop_final_batch or num_epochs is None)
    found = found.apply(parse_example_dataset(features, parser_num_threads or 2))
    if label_key is not None:

        def labelled(row: Any) -> Any:
            return {k: v for k, v in row.items() if k != label_key}, row[label_key]

        found = found.map(labelled)
    return found.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


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


__getattr__ = provided(__name__, {
    "treadle.data.databases": "SqlDataset",
    "treadle.data.lookups": "DatasetInitializer index_table_from_dataset table_from_dataset",
})  # fmt: skip
