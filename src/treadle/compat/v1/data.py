"""``td.compat.v1.data``: pipelines whose elements are tensors of a graph.

A pipeline is a recipe: it is made once in the outline of the graph, for the types of its elements,
and once more by each session that opens it, with the values of the tensors that it depends on. Each
run that needs `Iterator.get_next` takes one element from the session's iterator.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from collections.abc import Iterator as PythonIterator
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.host_operations import host_operation
from treadle.compat.v1.mirrored import fallback
from treadle.compat.v1.recording import writes_into
from treadle.compat.v1.shapes import TensorShape, plain
from treadle.compat.v1.values import Operation, Tensor, element, leaves_of, map_leaves, reading
from treadle.core.context import recording, taping
from treadle.core.origin import at, user_origin

_OLD = {"num_threads": "num_parallel_calls", "output_buffer_size": None}
_numbers = itertools.count()


class Dataset:
    """A pipeline: see `td.data.Dataset`, whose methods it has."""

    def __init__(self, make: Callable[[Callable[[Any], Any]], Any], given: Any) -> None:
        self._make, self._given = make, given
        self._tensors = list(
            dict.fromkeys(t for v in leaves_of(given) if (t := element(v)) is not None)
        )
        graph = get_default_graph()
        if self._tensors:
            with recording(graph._outline), taping(()):
                self._outlined = make(lambda v: reading(v, next(iter(self._tensors[0].readings))))
        else:
            with recording(None), taping(()):
                self._outlined = make(lambda v: v)

    # -- types -------------------------------------------------------------------------------

    @property
    def element_spec(self) -> Any:
        return self._outlined.element_spec

    @property
    def output_types(self) -> Any:
        return get_output_types(self)

    @property
    def output_shapes(self) -> Any:
        return get_output_shapes(self)

    @property
    def output_classes(self) -> Any:
        return td.nest.map_structure(lambda s: Tensor, self.element_spec)

    # -- making ------------------------------------------------------------------------------

    @classmethod
    def _of(cls, make: Callable[..., Any], *args: Any, **kwargs: Any) -> Dataset:
        given = map_leaves((args, kwargs), lambda v: v.copy() if isinstance(v, np.ndarray) else v)

        def again(value_of: Callable[[Any], Any]) -> Any:
            values = map_leaves(given, value_of)
            return make(*values[0], **values[1])

        return Dataset(again, given)

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        return Dataset._of(td.data.Dataset.from_tensors, tensors)

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        return Dataset._of(td.data.Dataset.from_tensor_slices, tensors)

    @staticmethod
    def range(*args: Any, **kwargs: Any) -> Dataset:
        return Dataset._of(td.data.Dataset.range, *args, **kwargs)

    @staticmethod
    def from_generator(generator: Any, output_types: Any = None, output_shapes: Any = None,
                       args: Any = None, output_signature: Any = None, name: Any = None) -> Dataset:
        if output_signature is None:
            shapes = output_shapes
            if shapes is None:
                shapes = td.nest.map_structure(lambda _: None, output_types)
            output_signature = _signature(output_types, shapes)
        signature = output_signature
        return Dataset._of(
            lambda *a: td.data.Dataset.from_generator(
                generator, output_signature=signature, args=a or None
            ),
            *(args or ()),
        )

    @staticmethod
    def zip(*datasets: Any, **kwargs: Any) -> Dataset:
        given = kwargs.get("datasets", datasets[0] if len(datasets) == 1 else datasets)
        flat = td.nest.flatten(given)

        def make(value_of: Callable[[Any], Any]) -> Any:
            return td.data.Dataset.zip(td.nest.map_structure(lambda d: d._make(value_of), given))

        return Dataset(make, [t for d in flat for t in d._tensors])

    @staticmethod
    def list_files(file_pattern: Any, shuffle: Any = None, seed: Any = None) -> Dataset:
        return Dataset._of(td.data.Dataset.list_files, file_pattern, shuffle, seed)

    def _with(self, call: Callable[..., Any], args: Any, kwargs: Any) -> Dataset:
        """The pipeline with another stage."""
        datasets = [a for a in (*args, *kwargs.values()) if isinstance(a, Dataset)]

        def again(value_of: Callable[[Any], Any]) -> Any:
            def value(v: Any) -> Any:
                return v._make(value_of) if isinstance(v, Dataset) else value_of(v)

            values = map_leaves((args, kwargs), value)
            return call(self._make(value_of), *values[0], **values[1])

        more = [t for d in datasets for t in d._tensors]
        return Dataset(again, [*self._tensors, *more, args, kwargs])

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "_":
            raise AttributeError(name)
        found = getattr(td.data.Dataset, name)

        def method(*args: Any, **kwargs: Any) -> Any:
            for old, new in _OLD.items():
                if old in kwargs:
                    value = kwargs.pop(old)
                    if new is not None:
                        kwargs[new] = value
            return self._with(lambda dataset, *a, **k: found(dataset, *a, **k), args, kwargs)

        return method

    def apply(self, transformation_func: Callable[[Any], Any]) -> Any:
        """What a function makes of the pipeline."""
        return transformation_func(self)

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        return self._with(lambda d, f: d.flat_map(_plain_function(f)), (map_func,), {})

    def interleave(self, map_func: Callable[..., Any], *args: Any, **kwargs: Any) -> Dataset:
        return self._with(
            lambda d, f, *a, **k: d.interleave(_plain_function(f), *a, **k), (map_func, *args),
            kwargs
        )

    # -- iterators ---------------------------------------------------------------------------

    def _opened(self, values: Any) -> PythonIterator[Any]:
        """An iterator of the pipeline for values of the tensors that it depends on."""
        known = dict(zip(self._tensors, values, strict=True))
        return iter(
            self._make(lambda v: known.get(t, v) if (t := element(v)) is not None else v)
        )

    def make_one_shot_iterator(self) -> Any:
        """An iterator that is opened by the first run in a session.

        Raises:
            ValueError: the pipeline depends on tensors of the graph.
        """
        if writes_into() is None:
            return _EagerIterator(iter(self._outlined))
        if any(t.op.type == "Placeholder" for t in self._tensors):
            raise ValueError(
                "Cannot capture a placeholder by value. make_one_shot_iterator takes none: "
                f"use make_initializable_iterator{at(user_origin())}"
            )
        return Iterator(self.element_spec, self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """An iterator that its `initializer` opens."""
        found = Iterator(self.element_spec)
        found.initializer = found.make_initializer(self)
        return found

    def __iter__(self) -> PythonIterator[Any]:
        if writes_into() is not None:
            raise RuntimeError(
                "dataset iteration in a graph: use make_one_shot_iterator().get_next()"
                f"{at(user_origin())}"
            )
        return iter(self._outlined)


class _EagerIterator:
    """An iterator where calls are made at once."""

    def __init__(self, iterator: Any) -> None:
        self._iterator, self.element_spec = iterator, iterator.element_spec

    def get_next_as_optional(self) -> Any:
        return self._iterator.get_next_as_optional()

    def get_next(self, name: str | None = None) -> Any:
        try:
            return next(self._iterator)
        except StopIteration:
            raise _ended() from None

    def __iter__(self) -> Any:
        return self._iterator

    next = __next__ = get_next


def _ended() -> td.errors.OutOfRangeError:
    return td.errors.OutOfRangeError(None, None, "End of sequence")


def _plain_function(function: Any) -> Any:
    """A function whose result may be a pipeline of this module."""

    def call(*args: Any) -> Any:
        found = function(*args)
        return found._make(lambda v: v) if isinstance(found, Dataset) else found

    return call


def _signature(types: Any, shapes: Any) -> Any:
    if isinstance(types, dict):
        return {k: _signature(
            t, shapes[k] if isinstance(shapes, dict) else None
        ) for k, t in types.items()}
    if isinstance(types, list | tuple):
        each = shapes if isinstance(shapes, list | tuple) else [None] * len(types)
        return tuple(_signature(t, s) for t, s in zip(types, each, strict=True))
    return td.TensorSpec(plain(shapes), types)


class Iterator:
    """Takes elements of a pipeline, in each session on its own.

    Attributes:
        initializer: the operation that opens it, or None.
    """

    def __init__(self, element_spec: Any, dataset: Dataset | None = None) -> None:
        self._spec, self._dataset = element_spec, dataset
        self.initializer: Any = None
        self._name = f"iterator{next(_numbers)}"
        self._string: Any = None

    @property
    def output_types(self) -> Any:
        return get_output_types(self)

    @property
    def output_shapes(self) -> Any:
        return get_output_shapes(self)

    element_spec = property(lambda self: self._spec)

    @staticmethod
    def from_structure(output_types: Any, output_shapes: Any = None, shared_name: Any = None,
                       output_classes: Any = None) -> Iterator:  # fmt: skip
        """An iterator for pipelines of these types, which `make_initializer` opens."""
        if output_shapes is None:
            output_shapes = td.nest.map_structure(lambda _: None, output_types)
        return Iterator(_signature(output_types, output_shapes))

    @staticmethod
    def from_string_handle(string_handle: Any, output_types: Any, output_shapes: Any = None,
                           output_classes: Any = None) -> Iterator:  # fmt: skip
        """The iterator that a string tensor names (`string_handle`)."""
        found = Iterator.from_structure(output_types, output_shapes)
        found._string = string_handle
        return found

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """An operation that opens a pipeline from its beginning."""
        graph, kind = get_default_graph(), "MakeIterator"

        def open_(session: Any, *values: Any) -> list[Any]:
            session.iterators[self._name] = dataset._opened(values)
            return []

        return host_operation(graph, name or kind, kind, open_, dataset._tensors, [])

    def _taken(self) -> list[Tensor]:
        """The tensors that the pipeline of a one-shot iterator depends on."""
        return [] if self._dataset is None else self._dataset._tensors

    def _open_once(self, session: Any, values: Any) -> None:
        """Open a one-shot iterator that is not open yet in a session."""
        if self._name not in session.iterators and self._dataset is not None:
            session.iterators[self._name] = self._dataset._opened(values)

    def get_next(self, name: str | None = None) -> Any:
        """The next element: tensors that each run takes anew.

        A run raises OutOfRangeError at the end, FailedPreconditionError where the iterator was not
        opened.
        """
        graph = get_default_graph()
        specs = td.nest.flatten(self._spec, expand_composites=True)
        named = [] if self._string is None else [element(self._string)]

        def take(session: Any, *values: Any) -> list[Any]:
            label = values[0] if named else self._name
            label = label.item() if isinstance(label, np.ndarray) else label
            label = label.decode() if isinstance(label, bytes) else label
            if not named:
                self._open_once(session, values)
            iterator = session.iterators.get(label)
            if iterator is None:
                raise td.errors.FailedPreconditionError(
                    None, op, "GetNext() failed because the iterator has not been initialized. "
                    "Ensure that you have run the initializer operation for this iterator before "
                    f"getting the next element.{at(op.origin)}",
                )  # fmt: skip
            try:
                return td.nest.flatten(next(iterator), expand_composites=True)
            except StopIteration:
                raise _ended() from None

        kind = "IteratorGetNext"
        op = host_operation(graph, name or kind, kind, take, named or self._taken(), specs)
        found = td.nest.pack(self._spec, list(op.outputs), expand_composites=True)
        return map_leaves(found, lambda v: v)

    def string_handle(self, name: str | None = None) -> Any:
        """A string tensor that names the iterator."""

        def opened(session: Any, *values: Any) -> list[Any]:
            self._open_once(session, values)
            return [np.array(self._name.encode(), object)]

        op = host_operation(
            get_default_graph(), name or "IteratorToStringHandle", "IteratorToStringHandle", opened,
            self._taken(), [td.TensorSpec([], td.string)],
        )  # fmt: skip
        return op.outputs[0]


def make_one_shot_iterator(dataset: Any) -> Any:
    """See `Dataset.make_one_shot_iterator`; a `td.data.Dataset` gives its elements at once."""
    if isinstance(dataset, td.data.Dataset):
        return _EagerIterator(iter(dataset))
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Any, shared_name: str | None = None) -> Iterator:
    """See `Dataset.make_initializable_iterator`; of a `td.data.Dataset` the graph gets a pipeline
    that gives its elements."""
    of_graph = dataset
    if isinstance(dataset, td.data.Dataset):
        of_graph = Dataset(lambda read: dataset, ())
    iterator: Iterator = of_graph.make_initializable_iterator(shared_name)
    return iterator


def _told(dataset_or_iterator: Any, of_tensors: Callable[[Any], Any]) -> Any:
    """What is told of the elements; None and datasets among them are told as they are."""

    def of(spec: Any) -> Any:
        return of_tensors(spec) if hasattr(spec, "dtype") else spec

    return td.nest.map_structure(of, dataset_or_iterator.element_spec)


def get_output_types(dataset_or_iterator: Any) -> Any:
    """The dtypes of elements, of datasets and iterators of `td.data`, too."""
    return _told(dataset_or_iterator, lambda spec: spec.dtype)


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """The shapes of elements, of datasets and iterators of `td.data`, too."""
    return _told(dataset_or_iterator, lambda spec: TensorShape(spec.shape))


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """The classes of elements, of datasets and iterators of `td.data`, too."""
    return _told(
        dataset_or_iterator,
        lambda spec: td.Tensor if isinstance(spec, td.TensorSpec) else spec.value_type,
    )


def TFRecordDataset(filenames: Any, *args: Any, **kwargs: Any) -> Dataset:
    """The records of files."""
    return Dataset._of(td.data.TFRecordDataset, filenames, *args, **kwargs)


def TextLineDataset(filenames: Any, *args: Any, **kwargs: Any) -> Dataset:
    """The lines of files."""
    return Dataset._of(td.data.TextLineDataset, filenames, *args, **kwargs)


def FixedLengthRecordDataset(filenames: Any, *args: Any, **kwargs: Any) -> Dataset:
    """The records of one length of files."""
    return Dataset._of(td.data.FixedLengthRecordDataset, filenames, *args, **kwargs)


Dataset.TFRecordDataset = staticmethod(TFRecordDataset)  # type: ignore[attr-defined]

__getattr__ = fallback(__name__, "treadle.data")
