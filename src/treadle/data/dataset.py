"""Dataset: sequences of elements, made by sources and changed by transformations."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.data import graph
from treadle.data.elements import as_structure, as_value, host_tensor, leaves_of, packer, spec_of
from treadle.data.iterator import Cursor, NumpyIterator, OwnedIterator
from treadle.data.options import Options
from treadle.data.seeds import seeds_for
from treadle.data.stages import (
    batching,
    combining,
    functions,
    nesting,
    parallel,
    selecting,
    sources,
)
from treadle.data.stages.stage import INFINITE, UNKNOWN, Stage, symbols_in
from treadle.experimental import ExtensionTypeSpec
from treadle.iteration import GraphIterable, at, context, user_origin


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
        self._stage, self._options = stage, options or Options()
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
            tensors: an array or tensor, or tuples and dicts of them, with equal first dimensions.

        Raises:
            ValueError: a scalar, or different first dimensions.
        """
        return Dataset(sources.FromSlices(tensors))

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
            TypeError: neither `output_signature` nor `output_types` is given.
            InvalidArgumentError: while iterating, an element does not fit.
        """
        if not callable(generator):
            raise TypeError(f"from_generator: generator must be callable{at(user_origin())}")
        given = () if args is None else tuple(args)
        if output_signature is not None:
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
        return Dataset(combining.Zip(_shape_of(structure), [p._stage for p in parts]))

    @staticmethod
    def sample_from_datasets(
        datasets: Any, weights: Any = None, seed: Any = None, stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:  # fmt: skip
        """From a dataset chosen at random each time, with the chances `weights`."""
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
        return Dataset(combining.Sample(parts, chances, seeds_for(seed), stop_on_empty_dataset))

    @staticmethod
    def choose_from_datasets(
        datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = True
    ) -> Dataset:
        """From the dataset whose number (int64) is the next element of `choice_dataset`."""
        combining.check_numbers(choice_dataset._stage)
        parts = [d._stage for d in datasets]
        return Dataset(combining.Choose(parts, choice_dataset._stage, stop_on_empty_dataset))

    @staticmethod
    def random(
        seed: Any = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Dataset:
        """Random numbers below 2**32 (int64) without end."""
        return Dataset(sources.Random(seeds_for(seed), bool(rerandomize_each_iteration)))

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
        return self._then(nesting.Interleave(self._stage, map_func, cycle, block))

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
        stage = selecting.Shuffle(self._stage, buffer_size, seeds_for(seed), reshuffle)
        return self._then(stage)

    def unique(self, name: str | None = None) -> Dataset:
        """The first of equal elements, which are scalars or arrays alone."""
        return self._then(selecting.Unique(self._stage))

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """These elements, then those of `dataset`; TypeError where their types differ."""
        return self._then(combining.Concatenate(self._stage, dataset._stage))

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """The elements, kept in memory from the first complete pass on.

        Raises:
            NotImplementedError: a file name is given.
        """
        if filename:
            raise NotImplementedError(f"cache: only in memory, not in a file{at(user_origin())}")
        return self._then(selecting.Cache(self._stage))

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
        """Batches of another size."""
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
            self._stage, key_func, reduce_func, window_size or window_size_func, Dataset
        )
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
            pad_to_bucket_boundary: only False is supported; batches are filled up to the longest of
                their elements.
            no_padding: the elements of a batch must have one shape.
            drop_remainder: leave out batches that are too small.

        Raises:
            ValueError: not one batch size more than boundaries.
            NotImplementedError: `pad_to_bucket_boundary` is True.
        """
        limits, sizes = list(bucket_boundaries), list(bucket_batch_sizes)
        if len(sizes) != len(limits) + 1:
            raise ValueError(
                "bucket_by_sequence_length: len(bucket_batch_sizes) must equal "
                f"len(bucket_boundaries) + 1, got {len(sizes)} and {len(limits)}{at(user_origin())}"
            )

        if pad_to_bucket_boundary:
            raise NotImplementedError(
                "bucket_by_sequence_length: pad_to_bucket_boundary=True is not supported: fill up "
                f"elements with map before{at(user_origin())}"
            )

        def bucket(*element: Any) -> td.Tensor:
            length = td.cast(element_length_func(*element), td.int64)
            return td.reduce_sum(td.cast(length >= td.constant(limits, td.int64), td.int64))

        def size(number: td.Tensor) -> td.Tensor:
            return td.gather(td.constant(sizes, td.int64), number)

        def batch(number: td.Tensor, window: Dataset) -> Dataset:
            if no_padding:
                return window.batch(size(number), drop_remainder)
            return window.padded_batch(
                size(number), padded_shapes, padding_values, drop_remainder
            )

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
                values = call((*values, *leaves))
        finally:
            cursor.close()
        return packer(spec, as_value)(values)

    def _reduce_in_graph(self, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
        state, inner = as_structure(initial_state), td.function(reduce_func)
        elements = self.in_graph()

        def step(state: Any) -> tuple[Any]:
            return (functions.as_result(inner(state, elements.get_next()), False),)

        (result,) = td.while_loop(lambda state: elements.has_next(), step, (state,))
        elements.close()
        return result

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element.

        Raises:
            InvalidArgumentError: there is none, or more than one.
        """
        iterator = OwnedIterator(self._stage)
        first, second = iterator.get_next_as_optional(), iterator.get_next_as_optional()
        if not first.has_value() or second.has_value():
            count = "more than one element" if first.has_value() else "no element"
            raise td.errors.InvalidArgumentError(
                None, None, f"get_single_element: the dataset has {count}{at(user_origin())}"
            )
        return first.get_value()

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
        """The options it was given."""
        return self._options

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
    "ragged_batch": "there are no ragged tensors; use padded_batch",
    "list_files": "list them with Python and use from_tensor_slices on what they hold",
    "save": "write the arrays with NumPy",
    "load": "read the arrays with NumPy",
    "snapshot": "use cache()",
    "ignore_errors": "leave out with filter what cannot be processed",
    "sparse_batch": "there are no sparse tensors; use padded_batch",
    "rejection_resample": "use filter, or sample_from_datasets",
    "make_one_shot_iterator": "it is TensorFlow 1's; use iter(dataset)",
    "make_initializable_iterator": "it is TensorFlow 1's; use iter(dataset)",
}

graph.register(Dataset)


def spec_of_signature(signature: Any) -> Any:
    """An output signature with its lists as tuples."""
    if isinstance(signature, list | tuple) and not hasattr(signature, "_fields"):
        return tuple(map(spec_of_signature, signature))
    if isinstance(signature, dict):
        return {k: spec_of_signature(v) for k, v in signature.items()}
    if isinstance(signature, tuple):
        return signature
    if not isinstance(signature, td.TensorSpec | ExtensionTypeSpec):
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
