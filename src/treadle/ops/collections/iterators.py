"""Iteration over datasets as operations: iterators are int64 handles in the graph.

What is behind a handle is an object of Python. A pipeline that a function uses is opened by
``make_iterator``; its elements come from ``iterator_get_next``, a callback in compiled programs.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor, from_array
from treadle.ops.registry import Op, register, run

HANDLE = TensorSpec((), dtypes.int64)
_KEPT = 8  # iterators of one place in a program that a thread may use at once


class GraphIterable(ABC):
    """What a converted `for` makes a loop of the graph over: datasets and their iterators."""

    @abstractmethod
    def in_graph(self) -> GraphElements:
        """Its elements inside the function that is being traced."""

    def graph_length(self) -> Any:
        """The number of elements: an int, or a tensor where only a run can tell.

        Raises:
            TypeError: it has none.
        """
        raise TypeError(f"{type(self).__name__} has no len(){at(user_origin())}")


class GraphElements(ABC):
    """The elements of a graph loop, one after another."""

    @abstractmethod
    def has_next(self) -> Tensor:
        """A bool scalar: whether there is another element."""

    @abstractmethod
    def get_next(self) -> Any:
        """The next element; OutOfRangeError when the program runs and there is none."""

    @abstractmethod
    def close(self) -> None:
        """Nobody wants further elements."""


class ElementSource(ABC):
    """An iterator of Python that handles stand for."""

    @abstractmethod
    def has_next(self) -> bool: ...

    @abstractmethod
    def next_leaves(self) -> Sequence[NDArray]:
        """The arrays of the next element, datasets in it as handles.

        Raises:
            OutOfRangeError: there are no more elements.
        """

    @abstractmethod
    def as_optional(self) -> ElementSource:
        """Takes the next element, if there is one: a source that gives it as often as asked."""

    @abstractmethod
    def close(self) -> None: ...


class Slot:
    """Keeps the iterators alive that one ``make_iterator`` node opened, for each thread."""

    def __init__(self) -> None:
        self._open: dict[int, deque[ElementSource]] = {}

    def keep(self, source: ElementSource) -> None:
        mine = self._open.setdefault(threading.get_ident(), deque())
        mine.append(source)
        while len(mine) > _KEPT:
            mine.popleft().close()

    def drop(self, source: ElementSource) -> None:
        mine = self._open.get(threading.get_ident())
        if mine is not None and source in mine:
            mine.remove(source)
            if not mine:
                self._open.pop(threading.get_ident(), None)

    def release(self) -> None:
        """Close what this thread has open: its run has failed."""
        for source in self._open.pop(threading.get_ident(), ()):
            source.close()


# What the handles stand for. Whoever uses a handle keeps its object alive.
_objects: WeakValueDictionary[int, Any] = WeakValueDictionary()
_numbers = itertools.count(1)


def number_of(obj: Any) -> int:
    """A number for the object, the same for as long as it lives."""
    number: int | None = getattr(obj, "_handle_number", None)
    if number is None:
        number = next(_numbers)
        _objects[number] = obj  # first: an interrupt here must not leave a number without object
        obj._handle_number = number
    return number


def object_of(number: int) -> Any:
    """The object of a handle; FailedPreconditionError where it is gone."""
    try:
        return _objects[int(number)]
    except KeyError:
        raise errors.FailedPreconditionError(
            None, None, "the iterator or dataset of this handle no longer exists"
        ) from None


class _Word:
    """The memory of a handle's array, which keeps the object alive with it."""

    def __init__(self, obj: Any) -> None:
        self.owner = obj
        self.word = ctypes.c_int64(number_of(obj))

    @property
    def __array_interface__(self) -> dict[str, Any]:
        address = ctypes.addressof(self.word)
        return {"version": 3, "shape": (), "typestr": "<i8", "data": (address, True)}


def handle_of(obj: Any) -> Tensor:
    """An eager tensor that stands for the object, which lives at least as long."""
    return from_array(np.asarray(_Word(obj)))


def make_iterator(tensors: Sequence[Tensor], opener: Callable[..., ElementSource]) -> Any:
    """The handle of a new iterator, and the slot it lives in.

    Args:
        tensors: the symbolic tensors that the pipeline depends on.
        opener: ``opener(*arrays)`` starts it.
    """
    slot = Slot()
    return run(MAKE_ITERATOR, *tensors, opener=opener, slot=slot), slot


def source_length(tensors: Sequence[Tensor], counter: Callable[..., int]) -> Tensor:
    """How many elements a pipeline has, or a negative number (int64).

    Args:
        tensors: the symbolic tensors that the pipeline depends on.
        counter: ``counter(*arrays)`` tells.
    """
    return run(SOURCE_LENGTH, *tensors, counter=counter)  # type: ignore[no-any-return]


def has_next(handle: Tensor) -> Tensor:
    """Whether the iterator has another element, which is read ahead to know."""
    return run(HAS_NEXT, handle)  # type: ignore[no-any-return]


def get_next(handle: Tensor, specs: Sequence[TensorSpec]) -> list[Tensor]:
    """The leaves of the next element, of these types.

    Raises:
        OutOfRangeError: when it runs and there are no more elements.
    """
    outputs = run(GET_NEXT, handle, specs=tuple(specs))
    return [outputs] if len(specs) == 1 else list(outputs)


def get_optional(handle: Tensor) -> Tensor:
    """The handle of the next element or of nothing, for `has_next` and `get_next`."""
    return run(GET_OPTIONAL, handle)  # type: ignore[no-any-return]


def close_iterator(handle: Tensor, slot: Slot) -> None:
    """End an iterator that `make_iterator` made."""
    run(CLOSE_ITERATOR, handle, slot=slot)


def release_iterators(region: Any) -> None:
    """Close what the nodes of a failed program have opened in this thread."""
    for node in region.walk():
        if node.op is MAKE_ITERATOR:
            node.attrs["slot"].release()


def _infer_make(*inputs: Spec, opener: Any, slot: Slot) -> TensorSpec:
    return HANDLE


def _make(*arrays: NDArray, opener: Callable[..., ElementSource], slot: Slot) -> NDArray:
    source = opener(*(np.array(a) for a in arrays))
    slot.keep(source)
    return np.array(number_of(source), np.int64)


def _length(*arrays: NDArray, counter: Callable[..., int]) -> NDArray:
    return np.array(counter(*(np.array(a) for a in arrays)), np.int64)


def _infer_next(handle: Spec, *, specs: tuple[TensorSpec, ...]) -> tuple[Spec, ...]:
    return tuple(spec.with_fresh_symbols("batch") for spec in specs)


def _get_next(handle: NDArray, *, specs: tuple[TensorSpec, ...]) -> tuple[NDArray, ...]:
    return tuple(object_of(int(handle)).next_leaves())


def _has_next(handle: NDArray) -> NDArray:
    return np.array(object_of(int(handle)).has_next())


def _get_optional(handle: NDArray) -> NDArray:
    return np.array(number_of(object_of(int(handle)).as_optional()), np.int64)


def _close(handle: NDArray, *, slot: Slot) -> tuple[()]:
    source = object_of(int(handle))
    source.close()
    slot.drop(source)
    return ()


_CALLED = "datasets and their iterators are objects of Python"
MAKE_ITERATOR = register(
    Op(
        "make_iterator", _infer_make, _make,
        effect="io", callback=_CALLED, tags=frozenset({"strings"}),
    )
)  # fmt: skip
SOURCE_LENGTH = register(
    Op(
        "source_length", lambda *inputs, counter: HANDLE, _length,
        effect="io", callback=_CALLED,
    )
)  # fmt: skip
HAS_NEXT = register(
    Op(
        "iterator_has_next", lambda handle: TensorSpec((), dtypes.bool), _has_next,
        effect="io", callback=_CALLED,
    )
)  # fmt: skip
GET_OPTIONAL = register(
    Op(
        "iterator_get_optional", lambda handle: HANDLE, _get_optional,
        effect="io", callback=_CALLED,
    )
)  # fmt: skip
GET_NEXT = register(
    Op(
        "iterator_get_next", _infer_next, _get_next,
        effect="io", callback=_CALLED, tags=frozenset({"gives_own_arrays", "strings"}),
    )
)  # fmt: skip
CLOSE_ITERATOR = register(
    Op(
        "close_iterator", lambda handle, *, slot: (), _close, effect="io", callback=_CALLED
    )
)
