"""Dataset: sequences of elements, made by sources and changed by transformations."""

from __future__ import annotations

import os
from abc import ABCMeta
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.data import graph
from treadle.data.elements import (
    DatasetSpec,
    UserStructure,
    as_structure,
    as_value,
    form_of,
    holds_composites,
    host_tensor,
    leaves_of,
    on_host,
    packed,
    packer,
    relaxed,
    spec_of,
)
from treadle.data.iterator import Cursor, NumpyIterator, OwnedIterator
from treadle.data.options import Options
from treadle.data.seeds import seeds_for
from treadle.data.stages import (
    batching,
    combining,
    devices,
    functions,
    nesting,
    parallel,
    selecting,
    sources,
    storing,
)
from treadle.data.stages.randomness import Randomness
from treadle.data.stages.stage import INFINITE, UNKNOWN, Stage, symbols_in
from treadle.experimental import ExtensionTypeSpec
from treadle.io.streams import compression
from treadle.iteration import (
    CompositeTensorSpec,
    GraphIterable,
    at,
    context,
    staged_loop,
    user_origin,
    without_rank,
)


class _DatasetType(ABCMeta):
    """Names of TensorFlow's that are missing say so, on the class too."""

    def __getattr__(cls, name: str) -> Any:
        raise missing_name(name)


class Dataset(GraphIterable, metaclass=_DatasetType):
    """A sequence of elements: tensors, or tuples and dicts of them.

    Datasets do not change: every transformation gives a new one, and every iteration starts a new
    pass. Inside a function, a `for` over a dataset is a loop of the graph.
    """

    is_dataset = True

    def __init__(self, stage: Stage, options: Options | None = None) -> None:
        if not isinstance(stage, Stage):
            raise TypeError(
                "Datasets are made by Dataset.from_tensor_slices, Dataset.range and the like"
                f"{at(user_origin())}"
            )
        if not leaves_of(stage.spec):
            raise td.errors.InvalidArgumentError(
                None, None, "the elements of a dataset must hold a tensor at least, not "
                f"{stage.spec!r} alone{at(user_origin())}"
            )  # fmt: skip
        devices.check_last(stage)
        self._stage, self._options = stage, options or Options()
        if stage.origin is None:
            place = user_origin()
            stage.origin = None if place is None else str(place)
        self._handle_in_graph: Any = None

    def _then(self, stage: Stage) -> Dataset:
        return Dataset(stage, self._options)

    # -- sources ---------------------------------------------------------------------------------

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """One element: the tensors."""
        return Dataset(sources.FromTensors(tensors))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """The slices of tensors along their first dimension.

        Args:
            tensors: an array or tensor, a ragged or sparse one, or tuples and dicts of them, with
                equal first dimensions; or a list of datasets, which are the elements then.

        Raises:
            TypeError: datasets whose elements are of different types.
            ValueError: a scalar, or different first dimensions.
        """
        if isinstance(tensors, list) and tensors and all(isinstance(t, Dataset) for t in tensors):
            return Dataset(_listed(tensors))
        value = as_structure(tensors)
        if holds_composites(value):
            return Dataset(batching.SlicesOfComposites(sources.FromTensors(value)))
        return Dataset(sources.FromSlices(value))

    @staticmethod
    def range(*args: Any, output_type: Any = None, name: str | None = None) -> Dataset:
        """The numbers of Python's ``range``, int64 unless `output_type` says otherwise."""
        return Dataset(sources.Range(*args, output_type=output_type))

    @staticmethod
    def counter(
        start: Any = 0, step: Any = 1, dtype: Any = td.int64, name: str | None = None
    ) -> Dataset:
        """start, start + step and so on without end."""
        return Dataset(sources.Counter(start, step, dtype))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """What a Python generator yields.

        Args:
            generator: called with `args` for every pass; returns an iterable.
            output_signature: the structure of the elements, of TensorSpecs.
            output_types, output_shapes: the same in TensorFlow's old form. Without shapes the
                generator is asked for one element now, to learn the ranks.

        Raises:
            TypeError: neither `output_signature` nor `output_types` is given, or both are.
            InvalidArgumentError: while iterating, an element does not fit.
        """
        if not callable(generator):
            raise TypeError(f"from_generator: generator must be callable{at(user_origin())}")
        given = () if args is None else tuple(args)
        if output_signature is not None:
            if output_types is not None or output_shapes is not None:
                raise TypeError(
                    "from_generator: output_types and output_shapes are given by output_signature: "
                    f"leave them out{at(user_origin())}"
                )
            spec = spec_of_signature(output_signature)
        elif output_types is not None:
            spec = sources.generator_spec(generator, given, output_types, output_shapes)
        else:
            raise TypeError(
                f"from_generator needs output_signature or output_types{at(user_origin())}"
            )
        return Dataset(sources.FromGenerator(generator, given, spec))

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Elements side by side, until the shortest dataset ends.

        Args:
            args: datasets, or one nested structure of them.

        Raises:
            TypeError: something else than datasets in tuples and dicts.
        """
        if datasets is not None:
            args = (datasets,)
        structure = args[0] if len(args) == 1 else args
        parts = leaves_of(structure)
        for part in parts:
            if not isinstance(part, Dataset):
                raise TypeError(
                    "Dataset.zip takes datasets in tuples and dicts, not "
                    f"{type(part).__name__}{at(user_origin())}"
                )
        stage = combining.Zip(_shape_of(structure), [p._stage for p in parts])
        return Dataset(stage, _options_of(parts))

    @staticmethod
    def sample_from_datasets(
        datasets: Any, weights: Any = None, seed: Any = None, stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:  # fmt: skip
        """From a dataset chosen at random each time, with the chances `weights`."""
        datasets = _some(datasets, "sample_from_datasets")
        parts = [d._stage for d in datasets]
        if weights is None:
            weights = [1.0 / len(parts)] * len(parts)
        if isinstance(weights, Dataset):
            chances: Any = weights._stage
        else:
            chances = np.asarray(weights, np.float64)
            if chances.shape != (len(parts),):
                raise ValueError(
                    f"sample_from_datasets: {chances.size} weights for {len(parts)} datasets"
                    f"{at(user_origin())}"
                )
        randomness = Randomness(seeds_for(seed), bool(rerandomize_each_iteration))
        stage = combining.Sample(parts, chances, randomness, stop_on_empty_dataset)
        return Dataset(stage, _options_of(datasets))

    @staticmethod
    def choose_from_datasets(
        datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = True
    ) -> Dataset:
        """From the dataset whose number (int64) is the next element of `choice_dataset`."""
        datasets = _some(datasets, "choose_from_datasets")
        if not isinstance(choice_dataset, Dataset):
            raise TypeError(
                f"choice_dataset must be a Dataset, not {type(choice_dataset).__name__}"
                f"{at(user_origin())}"
            )
        combining.check_numbers(choice_dataset._stage)
        parts = [d._stage for d in datasets]
        stage = combining.Choose(parts, choice_dataset._stage, stop_on_empty_dataset)
        return Dataset(stage, _options_of([*datasets, choice_dataset]))

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: Any = None, name: str | None = None
    ) -> Dataset:
        """The names of the files that fit a pattern of the shell, or one of several.

        Args:
            shuffle: False for the order of the alphabet; otherwise each pass has an order of its
                own.
            seed: decides the order; see `shuffle`.

        Raises:
            InvalidArgumentError: there are none.
        """
        names = td.io.matching_files(file_pattern)
        if td.is_symbolic_tensor(names):
            td.Assert(td.size(names) > 0, ["No files matched pattern:", file_pattern])
        elif not len(names):
            raise td.errors.InvalidArgumentError(
                None, None, f"No files matched pattern: {file_pattern}{at(user_origin())}"
            )
        found = Dataset.from_tensor_slices(names)
        return found if shuffle is False else found.shuffle(td.size(names, td.int64), seed)

    @staticmethod
    def random(
        seed: Any = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Dataset:
        """Random numbers below 2**32 (int64) without end."""
        randomness = Randomness(seeds_for(seed), bool(rerandomize_each_iteration))
        return Dataset(sources.Random(randomness))

    # -- one element after another ---------------------------------------------------------------

    def map(
        self, map_func: Callable[..., Any], num_parallel_calls: Any = None,
        deterministic: bool | None = None, synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """`map_func` of every element. It is traced once and runs compiled.

        Args:
            map_func: takes the element; the parts of a tuple as several arguments.
            num_parallel_calls: how many calls at once; AUTOTUNE measures what is best.
            deterministic: False lets results of parallel calls come in any order.
        """
        if num_parallel_calls is None:
            return self._then(functions.Map(self._stage, map_func))
        if deterministic is None:
            deterministic = self._options.deterministic is not False
        return self._then(
            parallel.ParallelMap(self._stage, map_func, num_parallel_calls, deterministic)
        )

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements for which `predicate` gives True.

        Raises:
            ValueError: it does not return a bool scalar.
        """
        return self._then(functions.Filter(self._stage, predicate))

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements before the first for which `predicate` gives False."""
        return self._then(functions.TakeWhile(self._stage, predicate))

    def scan(
        self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None
    ) -> Dataset:
        """The outputs of ``state, output = scan_func(state, element)``."""
        return self._then(functions.Scan(self._stage, initial_state, scan_func))

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements of the datasets that `map_func` gives, one dataset after another.

        `map_func` runs in Python for every element, with eager tensors.
        """
        return self._then(nesting.FlatMap(self._stage, map_func))

    def interleave(
        self, map_func: Callable[..., Any], cycle_length: Any = None, block_length: Any = None,
        num_parallel_calls: Any = None, deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """`block_length` elements of each of `cycle_length` datasets of `map_func` in turn."""
        cycle = -1 if cycle_length is None else cycle_length
        block = 1 if block_length is None else block_length
        return self._then(
            nesting.Interleave(self._stage, map_func, cycle, block, num_parallel_calls)
        )

    def enumerate(self, start: Any = 0, name: str | None = None) -> Dataset:
        """(number, element), the numbers int64 from `start`."""
        return self._then(selecting.Enumerate(self._stage, start))

    # -- which elements, in which order ----------------------------------------------------------

    def take(self, count: Any, name: str | None = None) -> Dataset:
        """The first `count` elements; all for -1."""
        return self._then(selecting.Take(self._stage, count))

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """The elements after the first `count`; none for -1."""
        return self._then(selecting.Skip(self._stage, count))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Every `num_shards`-th element from number `index` on."""
        return self._then(selecting.Shard(self._stage, num_shards, index))

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """The elements `count` times; without end for None or -1."""
        return self._then(selecting.Repeat(self._stage, count))

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """The elements in a random order, drawn from a buffer of `buffer_size` of them.

        Args:
            seed: with `td.random.set_seed`, decides the order.
            reshuffle_each_iteration: whether each pass has an order of its own.
        """
        reshuffle = reshuffle_each_iteration is not False
        randomness = Randomness(seeds_for(seed), reshuffle)
        return self._then(selecting.Shuffle(self._stage, buffer_size, randomness))

    def unique(self, name: str | None = None) -> Dataset:
        """The first of equal elements, which are scalars or arrays alone."""
        return self._then(selecting.Unique(self._stage))

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """These elements, then those of `dataset`; TypeError where their types differ."""
        stage = combining.Concatenate(self._stage, dataset._stage)
        return Dataset(stage, _options_of([self, dataset]))

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """The elements, kept from the first complete pass on.

        Args:
            filename: keep them in a file of this name (with ``.elements`` behind it), which is read
                where it is there, in other programs too; otherwise they are kept in memory.

        Raises:
            TypeError: elements of datasets or of classes of the user, for a file.
            InvalidArgumentError: while iterating, the file has elements of another spec.
            DataLossError: while iterating, the file is damaged.
        """
        if filename is None or (isinstance(filename, str) and not filename):
            return self._then(selecting.Cache(self._stage))
        return self._then(storing.FileCache(self._stage, _path(filename)))

    def snapshot(
        self, path: Any, compression: Any = "AUTO", reader_func: Callable[..., Any] | None = None,
        shard_func: Callable[..., Any] | None = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """The elements, kept in a folder from the first complete pass on.

        Args:
            path: the folder. Each pipeline has a folder of its own in it, named after its stages,
                functions and constants, so that a changed one is computed again.
            compression: "GZIP", "ZLIB", or "AUTO" and None for no compression.
            reader_func: gives the dataset of a dataset of datasets, the files in the folder;
                without it these are read in turn.
            shard_func: gives the number (int64) of the file of an element.

        Raises:
            TypeError: elements of datasets or of classes of the user.
            InvalidArgumentError: another compression.
            DataLossError: while iterating, a file is damaged.
        """
        stage = storing.Snapshot(
            self._stage, _path(path), _compression(compression, "snapshot"),
            storing.sharding(shard_func, self.element_spec, "snapshot"), _reader(reader_func),
        )  # fmt: skip
        return self._then(stage)

    def save(
        self, path: Any, compression: Any = None, shard_func: Callable[..., Any] | None = None,
        checkpoint_args: Any = None,
    ) -> None:  # fmt: skip
        """Write the elements into a folder, for `Dataset.load`. What was saved there before is
        valid until the new files are whole.

        Args:
            compression: "GZIP", "ZLIB", or None and "NONE".
            shard_func: gives the number (int64) of the file of an element.

        Raises:
            TypeError: elements of datasets or of classes of the user.
            InvalidArgumentError: another compression.
            ResourceExhaustedError: the disk is full.
            NotImplementedError: `checkpoint_args` is given.
        """
        if checkpoint_args is not None:
            raise NotImplementedError(
                f"save: checkpoint_args are not supported: save shards{at(user_origin())}"
            )
        if context.recorder is not None:
            raise RuntimeError(f"save() cannot be used inside a function{at(user_origin())}")
        devices.check_on_host(self._stage, "save")
        shard = storing.shard_function(storing.sharding(shard_func, self.element_spec, "save"))
        storing.save(self._stage, _path(path), _compression(compression, "save"), shard)

    @staticmethod
    def load(
        path: Any, element_spec: Any = None, compression: Any = None,
        reader_func: Callable[..., Any] | None = None, wait: bool = False,
    ) -> Dataset:  # fmt: skip
        """The elements that `save` wrote.

        Args:
            element_spec: what they should be; None for what they are, with named tuples as tuples.
            compression: accepted for TensorFlow programs: the folder knows it.
            reader_func: gives the dataset of a dataset of datasets, the files in the folder;
                without it these are read in turn.

        Raises:
            NotFoundError: nothing was saved there.
            InvalidArgumentError: the elements are of other dtypes than `element_spec`.
            DataLossError: a file is damaged.
            NotImplementedError: `wait` is True.
        """
        if wait:
            raise NotImplementedError(f"load: wait=True is not supported{at(user_origin())}")
        return Dataset(_reader(reader_func)(storing.shards_of(_path(path), element_spec)))

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """The elements that are made without an error.

        Args:
            log_warning: give a RuntimeWarning for each that is left out.
        """
        return self._then(selecting.IgnoreErrors(self._stage, bool(log_warning)))

    def rejection_resample(
        self, class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None,
        seed: Any = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """(class, element) for some of the elements, so that classes have the shares `target_dist`.

        Args:
            class_func: gives the class of an element, an integer scalar.
            target_dist: the share of each class, floats that add up to 1.
            initial_dist: the shares among these elements; without it, as they are found to be.
            seed: with `td.random.set_seed`, decides which elements are kept.

        Raises:
            ValueError: `class_func` does not give an integer scalar, or the shares are of different
                numbers of classes.
            InvalidArgumentError: while iterating, a class that has no share.
        """
        target = np.asarray(target_dist, np.float64)
        initial = None if initial_dist is None else np.asarray(initial_dist, np.float64)
        if target.ndim != 1 or (initial is not None and initial.shape != target.shape):
            raise ValueError(
                "rejection_resample: target_dist and initial_dist must be vectors of one length"
                f"{at(user_origin())}"
            )
        class_of = functions.Mapped(class_func, functions.argument_specs(self.element_spec))
        spec = class_of.spec
        if not isinstance(spec, td.TensorSpec) or spec.shape.rank != 0 or not spec.dtype.is_integer:
            raise ValueError(
                "rejection_resample: class_func must return an integer scalar, not "
                f"{spec!r}{at(user_origin())}"
            )
        stage = selecting.RejectionResample(
            self._stage, class_of, target, initial, Randomness(seeds_for(seed), True)
        )
        return self._then(stage)

    def prefetch(self, buffer_size: Any = None, name: str | None = None) -> Dataset:
        """The elements, made ahead in a thread: up to `buffer_size`, AUTOTUNE for a few."""
        return self._then(parallel.Prefetch(self._stage, buffer_size))

    # -- putting together and taking apart -------------------------------------------------------

    def batch(
        self, batch_size: Any, drop_remainder: bool = False, num_parallel_calls: Any = None,
        deterministic: bool | None = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """`batch_size` elements stacked; the last batch may be smaller.

        Raises:
            InvalidArgumentError: while iterating, the shapes of elements differ.
        """
        return self._then(batching.Batch(self._stage, batch_size, bool(drop_remainder)))

    def ragged_batch(
        self, batch_size: Any, drop_remainder: bool = False, row_splits_dtype: Any = td.int64,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """`batch_size` elements as the rows of ragged tensors; those of one shape are stacked.

        Args:
            row_splits_dtype: of the offsets of the rows.
        """
        stage = batching.AsRows(self._stage, row_splits_dtype)
        return self._then(batching.Batch(stage, batch_size, bool(drop_remainder)))

    def sparse_batch(self, batch_size: Any, row_shape: Any, name: str | None = None) -> Dataset:
        """`batch_size` elements as the rows of sparse tensors that have all values of the elements.

        Args:
            row_shape: of the rows: the shape of the elements, or a larger one.

        Raises:
            TypeError: the elements are no tensors.
        """
        spec = self.element_spec
        if not isinstance(spec, td.TensorSpec):
            raise TypeError(f"sparse_batch: the elements must be tensors, not {spec!r}")
        dims = td.TensorShape(row_shape).as_list()

        def as_sparse(rows: Any) -> Any:
            if isinstance(rows, td.RaggedTensor):
                sparse = rows.to_sparse()
            else:
                places = td.where(td.ones_like(rows, td.bool))
                sizes = td.shape(rows, td.int64)
                sparse = td.SparseTensor(places, td.reshape(rows, [-1]), sizes)
            own = td.unstack(sparse.dense_shape[1:], len(dims))
            wanted = [n if d is None else td.constant(d, td.int64)
                      for d, n in zip(dims, own, strict=True)]  # fmt: skip
            whole = td.stack([sparse.dense_shape[0], *wanted])
            return td.SparseTensor(sparse.indices, sparse.values, whole)

        return self.ragged_batch(batch_size).map(as_sparse)

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None,
        drop_remainder: bool = False, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """`batch_size` elements stacked, filled up to the largest of them or to given shapes.

        Args:
            padded_shapes: the structure of the elements, of shapes; None dims fit the batch.
            padding_values: the values to fill up with, zeros for None.
        """
        stage = batching.PaddedBatch(
            self._stage, batch_size, padded_shapes, padding_values, bool(drop_remainder)
        )
        return self._then(stage)

    def unbatch(self, name: str | None = None) -> Dataset:
        """The slices of every element, one after another."""
        return self._then(batching.Unbatch(self._stage))

    def rebatch(
        self, batch_size: Any, drop_remainder: bool = False, name: str | None = None
    ) -> Dataset:
        """Batches of another size, or of the sizes of a list one after another, in turn."""
        return self._then(batching.Rebatch(self._stage, batch_size, bool(drop_remainder)))

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Datasets of `size` elements, `stride` apart; the next begins `shift` later."""
        numbers = (size, size if shift is None else shift, stride)
        return self._then(batching.Window(self._stage, numbers, bool(drop_remainder), Dataset))

    def group_by_window(
        self, key_func: Callable[..., Any], reduce_func: Callable[..., Any],
        window_size: Any = None, window_size_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """``reduce_func(key, dataset)`` of `window_size` elements with one key (int64)."""
        if (window_size is None) == (window_size_func is None):
            raise ValueError(
                f"group_by_window: give window_size or window_size_func{at(user_origin())}"
            )
        stage = nesting.grouped(
            self._stage, key_func, reduce_func,
            window_size_func if window_size is None else window_size, Dataset,
        )  # fmt: skip
        return self._then(stage)

    def bucket_by_sequence_length(
        self, element_length_func: Callable[..., Any], bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int], padded_shapes: Any = None, padding_values: Any = None,
        pad_to_bucket_boundary: bool = False, no_padding: bool = False,
        drop_remainder: bool = False, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Batches of elements of similar length.

        Args:
            element_length_func: gives the length of an element, an integer scalar.
            bucket_boundaries: lengths in rising order. A bucket has the elements shorter than its
                boundary and not shorter than the one before; the last bucket has the others.
            bucket_batch_sizes: the size of the batches of each bucket, one more than boundaries.
            padded_shapes, padding_values: see `padded_batch`.
            pad_to_bucket_boundary: batches are filled up to the largest length that their bucket
                has (dims of `padded_shapes` that are None); otherwise to the longest of their
                elements.
            no_padding: the elements of a batch must have one shape.
            drop_remainder: leave out batches that are too small.

        Raises:
            ValueError: not one batch size more than boundaries.
            InvalidArgumentError: while iterating, an element of the last bucket, which has no
                largest length, where `pad_to_bucket_boundary` is True.
        """
        limits, sizes = list(bucket_boundaries), list(bucket_batch_sizes)
        if len(sizes) != len(limits) + 1:
            raise ValueError(
                "bucket_by_sequence_length: len(bucket_batch_sizes) must equal "
                f"len(bucket_boundaries) + 1, got {len(sizes)} and {len(limits)}{at(user_origin())}"
            )

        def bucket(*element: Any) -> td.Tensor:
            length = td.cast(element_length_func(*element), td.int64)
            return td.reduce_sum(td.cast(length >= td.constant(limits, td.int64), td.int64))

        def size(number: td.Tensor) -> td.Tensor:
            return td.gather(td.constant(sizes, td.int64), number)

        def batch(number: td.Tensor, window: Dataset) -> Dataset:
            if no_padding:
                return window.batch(size(number), drop_remainder)
            shapes = padded_shapes
            if pad_to_bucket_boundary and not td.is_symbolic_tensor(number):
                if int(number) == len(limits):
                    raise td.errors.InvalidArgumentError(
                        None, None, "bucket_by_sequence_length: when pad_to_bucket_boundary=True, "
                        f"elements must have length < max(bucket_boundaries), which is {limits[-1]}"
                    )  # fmt: skip
                longest = limits[int(number)] - 1
                shapes = batching.filled_shapes(window.element_spec, shapes, longest)
            return window.padded_batch(size(number), shapes, padding_values, drop_remainder)

        return self.group_by_window(bucket, batch, window_size_func=size)

    def apply(self, transformation_func: Callable[[Dataset], Any]) -> Any:
        """``transformation_func(self)``."""
        result = transformation_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(
                f"apply: the function must return a Dataset, not {result!r}{at(user_origin())}"
            )
        return result

    # -- reading ---------------------------------------------------------------------------------

    def reduce(
        self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None
    ) -> Any:
        """``state = reduce_func(state, element)`` over all elements; gives the last state.

        Raises:
            TypeError: the state changes its structure or dtype.
        """
        if context.recorder is not None:
            return self._reduce_in_graph(initial_state, reduce_func)
        state = as_structure(initial_state)
        spec, stage = spec_of(state), self._stage
        function = functions.folding("reduce", reduce_func, spec, stage.spec, pair=False)
        call, cursor = function.bound_to(function.captures), Cursor(stage)
        values = tuple(np.asarray(leaf) for leaf in leaves_of(state))
        try:
            while (leaves := cursor.take()) is not None:
                values = call((*values, *on_host(leaves)))
        finally:
            cursor.close()
        return packer(spec, as_value)(values)

    def _reduce_in_graph(self, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
        state, inner = as_structure(initial_state), td.function(reduce_func)
        of_any_rank = td.autograph.to_graph(reduce_func)
        elements = self.in_graph()

        def step(state: Any) -> tuple[Any]:
            known = all(leaf.shape.rank is not None for leaf in leaves_of(state))
            after = (inner if known else of_any_rank)(state, elements.get_next())
            after = functions.as_result(after, False)
            pairs = zip(leaves_of(state), leaves_of(after), strict=False)
            ranks = [(old.shape.rank, new.shape.rank) for old, new in pairs]
            if all(old == new for old, new in ranks) or form_of(state) != form_of(after):
                return (after,)
            # What the next iteration has is of a rank that only the run knows.
            found = [x if old == new else without_rank(x)
                     for x, (old, new) in zip(leaves_of(after), ranks, strict=True)]  # fmt: skip
            return (packed(after, found),)

        (result,) = staged_loop(lambda state: elements.has_next(), step, (state,), widen=True)
        elements.close()
        return result

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element.

        Raises:
            InvalidArgumentError: there is none, or more than one.
        """
        if context.recorder is not None:
            return self._single_element_in_graph()
        iterator = OwnedIterator(self._stage)
        first, second = iterator.get_next_as_optional(), iterator.get_next_as_optional()
        if not first.has_value() or second.has_value():
            count = "more than one element" if first.has_value() else "no element"
            raise td.errors.InvalidArgumentError(
                None, None, f"get_single_element: the dataset has {count}{at(user_origin())}"
            )
        return first.get_value()

    def _single_element_in_graph(self) -> Any:
        elements = self.in_graph()
        td.Assert(elements.has_next(), ["get_single_element: the dataset has no element"])
        element = elements.get_next()
        ended = td.logical_not(elements.has_next())
        td.Assert(ended, ["get_single_element: the dataset has more than one element"])
        elements.close()
        return element

    def __iter__(self) -> Any:
        if context.recorder is not None:
            return self.in_graph()
        if symbols_in(self._stage):
            raise td.errors.InaccessibleTensorError(
                "The dataset depends on tensors of a function that was traced: iterate over it in "
                f"that function{at(user_origin())}"
            )
        return OwnedIterator(self._stage)

    def in_graph(self) -> Any:
        """Its elements for a loop of the function that is being traced."""
        return graph.open_in_graph(self._stage)

    def as_numpy_iterator(self) -> NumpyIterator:
        """The elements with NumPy values in place of tensors.

        Raises:
            RuntimeError: inside a function.
        """
        if context.recorder is not None:
            raise RuntimeError(
                f"as_numpy_iterator() cannot be used inside a function{at(user_origin())}"
            )
        return NumpyIterator(self._stage)

    # -- its elements ------------------------------------------------------------------------------

    @property
    def element_spec(self) -> Any:
        """The structure of the elements, with a TensorSpec for every tensor."""
        return self._stage.spec

    def cardinality(self, name: str | None = None) -> td.Tensor:
        """The number of elements, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY (int64)."""
        if context.recorder is not None and symbols_in(self._stage):
            return graph.cardinality_in_graph(self._stage)  # type: ignore[no-any-return]
        return host_tensor(np.int64(self._stage.cardinality()))

    def graph_length(self) -> Any:
        """``len(dataset)`` inside a function; a run fails where the length is not known."""
        if not symbols_in(self._stage):
            return len(self)
        count = self.cardinality()
        td.Assert(count != INFINITE, ["The dataset is infinite"])
        td.Assert(count != UNKNOWN, ["The dataset length is unknown"])
        return count

    def __len__(self) -> int:
        count = self._stage.cardinality()
        if count == INFINITE:
            raise TypeError(f"The dataset is infinite{at(user_origin())}")
        if count == UNKNOWN:
            raise TypeError(f"The dataset length is unknown{at(user_origin())}")
        return count

    def __bool__(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing: a dataset holds nothing open (what is open in a function is closed)."""

    def options(self) -> Options:
        """The options it was given, which cannot be changed here: see `with_options`."""
        told: Options = self._options._as_told()
        return told

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """The same elements with `options` set."""
        return Dataset(self._stage, self._options.merge(options))

    def __repr__(self) -> str:
        return f"<{type(self._stage).__name__}Dataset element_spec={self.element_spec!r}>"

    def __getattr__(self, name: str) -> Any:
        raise missing_name(name)


def missing_name(name: str) -> AttributeError:
    """The error for a name that datasets do not have, or not here."""
    if name in _MISSING:
        return AttributeError(f"Dataset.{name} is not supported: {_MISSING[name]}")
    return AttributeError(f"Dataset has no attribute {name!r}")


_MISSING = {
    "fingerprint": "pipelines have no number that stands for them",
    "make_one_shot_iterator": "it is TensorFlow 1's; use iter(dataset)",
    "make_initializable_iterator": "it is TensorFlow 1's; use iter(dataset)",
}

graph.register(Dataset)


def _options_of(datasets: Sequence[Dataset]) -> Options:
    """The options of a dataset made of others: what a later one sets counts."""
    merged = Options()
    for dataset in datasets:
        merged = merged.merge(dataset.options())
    return merged


def _some(datasets: Any, what: str) -> list[Dataset]:
    """The datasets as a list; ValueError where there is none."""
    found = list(datasets)
    if not found:
        raise ValueError(f"{what}: datasets must not be empty{at(user_origin())}")
    return found


def _listed(datasets: list[Dataset]) -> Stage:
    """The stage whose elements are these datasets."""
    spec = datasets[0].element_spec
    for dataset in datasets[1:]:
        spec = relaxed(spec, dataset.element_spec, "from_tensor_slices")
    return batching.Listed(DatasetSpec(spec), [(dataset,) for dataset in datasets])


def _path(path: Any) -> str:
    """The name of a file, of a str, bytes, a path or an eager tensor."""
    given = path.numpy() if isinstance(path, td.Tensor) else path
    return os.fsdecode(given)


def _compression(kind: Any, what: str) -> str:
    return compression(None if kind in ("AUTO", "NONE") else kind, what)


def _reader(function: Callable[..., Any] | None) -> Callable[[storing.Shards], Stage]:
    """What reads the files of a folder, for the user's ``reader_func``."""

    def read(shards: storing.Shards) -> Stage:
        if function is None:
            return shards
        files = [(Dataset(shard),) for shard in shards.parts]
        result = function(Dataset(batching.Listed(DatasetSpec(shards.spec), files)))
        if not isinstance(result, Dataset):
            raise TypeError(
                f"reader_func must return a Dataset, not {result!r}{at(user_origin())}"
            )
        return result._stage

    return read


def spec_of_signature(signature: Any) -> Any:
    """An output signature with its lists as tuples."""
    if isinstance(signature, list | tuple) and not hasattr(signature, "_fields"):
        return tuple(map(spec_of_signature, signature))
    if isinstance(signature, dict):
        return {k: spec_of_signature(v) for k, v in signature.items()}
    if isinstance(signature, tuple):
        return signature
    kinds = td.TensorSpec | ExtensionTypeSpec | CompositeTensorSpec | UserStructure
    if signature is not None and not isinstance(signature, kinds):
        raise TypeError(
            f"output_signature must hold TensorSpecs, got {signature!r}{at(user_origin())}"
        )
    return signature


def _shape_of(structure: Any) -> Any:
    """The structure with plain leaves."""
    if isinstance(structure, tuple):
        parts = [_shape_of(s) for s in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return {k: _shape_of(v) for k, v in structure.items()} if isinstance(structure, dict) else 0
