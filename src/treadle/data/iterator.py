"""Iterators over datasets: of Python when eager, and inside functions."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.data.elements import (
    Ahead,
    DatasetSpec,
    Leaves,
    as_value,
    holds_composites,
    leaves_of,
    map_components,
    on_host,
    packer,
    spec_key,
)
from treadle.data.stages.handles import dataset_of_handle
from treadle.data.stages.stage import forked, name_stage, outline, randomness_in, restored
from treadle.iteration import (
    HANDLE,
    ElementSource,
    GraphElements,
    GraphIterable,
    NDArray,
    Optional,
    at,
    close_iterator,
    context,
    from_array,
    get_next,
    get_optional,
    handle_of,
    has_next,
    is_symbolic,
    no_value,
    number_of,
    object_of,
    recording,
    register_node,
    taping,
    user_origin,
)  # fmt: skip

_MOST_TRACED = 1000  # calls of next() in a trace: Python's `for` would never end
_KEPT = 64  # windows and optionals that a compiled program may use at once


class IteratorSpec:
    """The type of an iterator that is an argument, for an input_signature.

    Args:
        element_spec: the spec of its elements.
    """

    def __init__(self, element_spec: Any) -> None:
        self.element_spec = element_spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IteratorSpec) and self.element_spec == other.element_spec

    def __hash__(self) -> int:
        return hash(spec_key(self.element_spec))

    def __repr__(self) -> str:
        return f"IteratorSpec({self.element_spec!r})"


class Cursor(ElementSource):
    """One pass over a stage, one element read ahead where somebody asked whether there is one."""

    def __init__(self, stage: Any) -> None:
        self._dataset, self._stage = stage, forked(stage)
        self._leaves: Iterator[Leaves] = self._stage.open()
        self._ahead: Leaves | None = None
        self._taken = 0  # elements that were given out, and the one that is read ahead
        self._lock = threading.RLock()
        self._kept: deque[Any] = deque(maxlen=_KEPT)

    def take(self) -> Leaves | None:
        """The next element's leaves, or None at the end."""
        with self._lock:
            if self._ahead is not None:
                leaves, self._ahead = self._ahead, None
                return leaves
            try:
                if context.recorder is None and not context.tapes:
                    found = next(self._leaves, None)
                else:
                    with recording(None), taping(()):
                        found = next(self._leaves, None)
            except td.errors.OpError as error:
                name_stage(error)
                raise
            self._taken += found is not None
            return found

    def has_next(self) -> bool:
        with self._lock:
            if self._ahead is None:
                self._ahead = self.take()
            return self._ahead is not None

    def next_leaves(self) -> Sequence[NDArray]:
        leaves = self.take()
        if leaves is None:
            raise end_of_sequence()
        return self.handles(leaves)

    def handles(self, leaves: Leaves) -> list[NDArray]:
        """The leaves, with numbers for datasets, which this keeps alive for a while."""
        leaves = on_host(leaves)
        self._kept += [x for x in leaves if not isinstance(x, np.ndarray)]
        return [
            x if isinstance(x, np.ndarray) else np.array(number_of(x), np.int64) for x in leaves
        ]

    def as_optional(self) -> ElementSource:
        found = OneElement(self, self.take())
        self._kept.append(found)
        return found

    def close(self) -> None:
        close = getattr(self._leaves, "close", None)
        if close is not None:
            with self._lock:
                close()
        self._leaves, self._ahead = iter(()), None

    def state(self) -> dict[str, Any]:
        """Where the pass is: `restore` goes on there, in another process too."""
        with self._lock:
            taken = self._taken - (self._ahead is not None)
            random = [randomness.state() for randomness in randomness_in(self._stage)]
            return {"pipeline": outline(self._stage), "taken": taken, "random": random}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where a pass over an equal pipeline was.

        Raises:
            ValueError: it was one over another pipeline.
        """
        pipeline = outline(self._dataset)
        if state["pipeline"] != pipeline:
            raise ValueError(
                f"The iterator that was saved is over other stages, {state['pipeline']}, than this "
                f"one: {pipeline}{at(user_origin())}"
            )
        random = [[int(number) for number in numbers] for numbers in state["random"]]
        stage = restored(self._dataset, random)
        with self._lock:
            self.close()
            self._stage, self._taken = stage, int(state["taken"])
            self._leaves = stage.resume(self._taken)


class OneElement(ElementSource):
    """The element that `get_next_as_optional` took, or none."""

    def __init__(self, cursor: Cursor, leaves: Leaves | None) -> None:
        self._leaves = None if leaves is None else cursor.handles(leaves)

    def has_next(self) -> bool:
        return self._leaves is not None

    def next_leaves(self) -> Sequence[NDArray]:
        if self._leaves is None:
            raise no_value()
        return self._leaves

    def as_optional(self) -> ElementSource:
        return self

    def close(self) -> None:
        self._leaves = None


def end_of_sequence() -> td.errors.OutOfRangeError:
    return td.errors.OutOfRangeError(None, None, f"End of sequence{at(user_origin())}")


class OwnedIterator(GraphIterable):
    """Iterates over a dataset once. Made by ``iter(dataset)``.

    As an argument of a function, iterators with one element_spec share one trace.
    """

    def __init__(self, stage: Any) -> None:
        self._cursor, self._spec = Cursor(stage), stage.spec
        self._pack = packer(stage.spec, as_value)

    @classmethod
    def over(cls, cursor: Cursor, spec: Any) -> OwnedIterator:
        """An iterator that goes on where `cursor` is."""
        iterator = cls.__new__(cls)
        iterator._cursor, iterator._spec = cursor, spec
        iterator._pack = packer(spec, as_value)
        return iterator

    @property
    def element_spec(self) -> Any:
        """The structure of the elements, with a TensorSpec for every tensor."""
        return self._spec

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if context.recorder is not None:
            return self.in_graph().traced_next()
        leaves = self._cursor.take()
        if leaves is None:
            raise StopIteration
        return self._pack(leaves)

    def next(self) -> Any:
        """The next element, as the built-in `next` gives it."""
        return next(self)

    def get_next(self) -> Any:
        """The next element.

        Raises:
            OutOfRangeError: there are no more.
        """
        if context.recorder is not None:
            return self.in_graph().get_next()
        leaves = self._cursor.take()
        if leaves is None:
            raise end_of_sequence()
        return self._pack(leaves)

    def __repr__(self) -> str:
        return f"<Iterator element_spec={self._spec!r}>"

    def _state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps: the kinds of the stages, how many elements were taken, and the
        seeds of what is random. Random ops in functions of the user are not among it."""
        return self._cursor.state()

    def _load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where an iterator over an equal dataset was; elements before are left out, and
        made again only where what comes later depends on them.

        Raises:
            ValueError: it was over a dataset of other stages.
        """
        self._cursor.restore(state)

    def get_next_as_optional(self) -> Any:
        """The next element as an `Optional`, which is empty at the end."""
        if context.recorder is not None:
            return self.in_graph().get_next_as_optional()
        leaves = self._cursor.take()
        if leaves is None:
            return Optional.empty(self._spec)
        return Optional(self._spec, td.constant(True), self._pack(leaves))

    def in_graph(self) -> GraphIterator:
        return GraphIterator(self._spec, handle_of(self._cursor))


class GraphIterator(GraphElements, GraphIterable):
    """An iterator inside a function that is traced: getting the next element is an operation."""

    def __init__(self, spec: Any, handle: Any, slot: Any = None) -> None:
        self._spec, self.handle, self._slot = spec, handle, slot
        self._count = 0

    @property
    def element_spec(self) -> Any:
        return self._spec

    def __repr__(self) -> str:
        return f"<Iterator element_spec={self._spec!r}>"

    def in_graph(self) -> GraphIterator:
        return self if self._slot is None else GraphIterator(self._spec, self.handle)

    def has_next(self) -> td.Tensor:
        return has_next(self.handle)

    def get_next(self) -> Any:
        """The next element; OutOfRangeError when the function runs and there is none."""
        return traced_element(self._spec, self.handle)

    def get_next_as_optional(self) -> Any:
        return GraphOptional(self._spec, get_optional(self.handle))

    def close(self) -> None:
        if self._slot is not None:
            close_iterator(self.handle, self._slot)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self.traced_next()

    def traced_next(self) -> Any:
        self._count += 1
        if self._count > _MOST_TRACED:
            raise ValueError(
                "next() was called more than 1000 times while tracing: a Python loop over a "
                "dataset inside a function does not end. Let AutoGraph convert the loop, or use "
                f"dataset.reduce{at(user_origin())}"
            )
        return self.get_next()


def traced_element(spec: Any, handle: Any) -> Any:
    specs = leaves_of(spec)
    wanted = [HANDLE if isinstance(s, DatasetSpec) else s for s in specs]
    leaves = [
        dataset_of_handle(s.element_spec, x) if isinstance(s, DatasetSpec) else x
        for s, x in zip(specs, get_next(handle, wanted), strict=True)
    ]
    return packer(spec)(tuple(leaves))


class GraphOptional(Optional):
    """An Optional inside a function: whether it has a value is known when the function runs."""

    def __init__(self, spec: Any, handle: Any) -> None:
        super().__init__(spec, None, None)
        self.handle = handle

    def has_value(self, name: str | None = None) -> td.Tensor:
        return has_next(self.handle)

    def get_value(self, name: str | None = None) -> Any:
        return traced_element(self.element_spec, self.handle)


class NumpyIterator:
    """The elements of a dataset as NumPy values."""

    def __init__(self, stage: Any) -> None:
        self._cursor, self._pack = Cursor(stage), _numpy_packer(stage.spec)

    def __iter__(self) -> NumpyIterator:
        return self

    def __next__(self) -> Any:
        leaves = self._cursor.take()
        if leaves is None:
            raise StopIteration
        return self._pack(leaves)

    def next(self) -> Any:
        """``next(self)``."""
        return self.__next__()

    def save(self) -> td.Tensor:
        """Where the pass is, as a scalar string: `restore` goes on there, in another process too;
        see `Iterator._state_dict` for what it holds."""
        return td.constant(json.dumps(self._cursor.state()))

    def restore(self, state: Any) -> None:
        """Go on where an iterator over an equal dataset was saved.

        Raises:
            ValueError: it was over a dataset of other stages, or the state is none.
        """
        text = state.numpy() if isinstance(state, td.Tensor) else state
        try:
            found = json.loads(text)
            found["pipeline"], found["taken"], found["random"]
        except (TypeError, ValueError, KeyError):
            raise ValueError(
                f"NumpyIterator.restore: no state of an iterator: {text!r}{at(user_origin())}"
            ) from None
        self._cursor.restore(found)

    def _state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps, as of other iterators."""
        return self._cursor.state()

    def _load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where an iterator over an equal dataset was."""
        self._cursor.restore(state)


def _numpy_packer(spec: Any) -> Callable[[Leaves], Any]:
    """A function from leaves to an element of NumPy values: a ragged tensor is an array of its
    rows, a sparse one the dense array."""
    if not holds_composites(spec):
        return packer(spec, _numpy_value)
    whole = packer(spec, as_value)
    return lambda leaves: map_components(_array_of, whole(on_host(leaves)))


def _numpy_value(leaf: Any) -> Any:
    if isinstance(leaf, Ahead):
        leaf = leaf.array
    return from_array(leaf).numpy() if isinstance(leaf, np.ndarray) else leaf


def _array_of(component: Any) -> Any:
    if isinstance(component, td.SparseTensor):
        component = td.sparse.to_dense(component)
    return component.numpy() if hasattr(component, "numpy") else component


def _iterator_key(iterator: Any) -> Any:
    return "iterator", spec_key(iterator.element_spec)


def _with_handle(iterator: Any, parts: list[Any]) -> Any:
    if isinstance(parts[0], td.Tensor) and not is_symbolic(parts[0]):
        return OwnedIterator.over(object_of(int(parts[0])), iterator.element_spec)
    return GraphIterator(iterator.element_spec, parts[0])


register_node(OwnedIterator, lambda it: [handle_of(it._cursor)], _with_handle, _iterator_key)
register_node(GraphIterator, lambda it: [it.handle], _with_handle, _iterator_key)
register_node(IteratorSpec, lambda spec: [HANDLE], _with_handle, _iterator_key)
register_node(
    GraphOptional,
    lambda optional: [optional.handle],
    lambda optional, parts: GraphOptional(optional.element_spec, parts[0]),
    lambda optional: ("optional", spec_key(optional.element_spec)),
)
