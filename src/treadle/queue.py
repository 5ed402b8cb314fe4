"""``td.queue``: queues of tensors between threads.

Threads put elements in and take them out, and wait while a queue is full or has too few. New
programs use `td.data.Dataset`, which does all of this itself; queues are for programs that have
threads of their own. They belong to Python: a `td.function` that is traced refuses them, and graphs
of `td.compat.v1` have operations for them.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes as known_dtypes
from treadle.core.context import context
from treadle.core.errors import (
    CancelledError,
    InvalidArgumentError,
    OutOfRangeError,
    UnimplementedError,
)
from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape
from treadle.core.tensor import Tensor
from treadle.names import missing_in
from treadle.ops.conversion import convert_to_tensor

Element = tuple[np.ndarray, ...]

_numbers = itertools.count()


class Contents:
    """The elements of a queue, which threads put in and take out.

    Args:
        name: for the texts of errors.
        capacity: elements that fit; who puts more in waits.
        keep: elements that must remain behind those that are taken, until the queue is closed.
    """

    def __init__(self, name: str, capacity: int, keep: int = 0) -> None:
        self.name, self.capacity, self.keep = name, capacity, keep
        self.closed = self._cancelled = False
        self._elements: list[Any] = []
        self._changed = threading.Condition()
        self._takers: list[object] = []  # threads that wait, in the order in which they came

    def __len__(self) -> int:
        return len(self._elements)

    def put(self, element: Element) -> None:
        """Add an element, when there is room.

        Raises:
            CancelledError: the queue is closed, or is closed meanwhile and cancels who waits.
        """
        with self._changed:
            if self.closed:
                raise CancelledError(None, None, f"{self.name} is closed.{at(user_origin())}")
            while len(self._elements) >= self.capacity and not self._cancelled:
                self._changed.wait()
            if self._cancelled:
                text = f"Enqueue operation was cancelled: {self.name} was closed"
                raise CancelledError(None, None, f"{text}{at(user_origin())}")
            self.add(element)
            self._changed.notify_all()

    def take(self, count: int, fewer: bool = False) -> list[Element]:
        """Take elements; threads get theirs in the order in which they ask.

        Args:
            fewer: what a closed queue still has is enough, if it is an element at least.

        Raises:
            OutOfRangeError: the queue is closed and has too few; it keeps what it has.
        """
        me = object()
        found: list[Element] = []
        with self._changed:
            self._takers.append(me)
            try:
                while len(found) < count:
                    while not (self._takers[0] is me and self._has_one()) and not self._ended(me):
                        self._changed.wait()
                    if not self._has_one():
                        if fewer and found:
                            break
                        raise self._too_few(count, found)
                    found.append(self.next())
                    self._changed.notify_all()
            except BaseException:
                for element in reversed(found):
                    self.give_back(element)
                raise
            finally:
                self._takers.remove(me)
                self._changed.notify_all()
        return found

    def close(self, cancel: bool) -> None:
        """Nothing more can be put in; `cancel` ends those that wait for room, too."""
        with self._changed:
            self.closed = True
            self._cancelled |= cancel
            self._changed.notify_all()

    def _has_one(self) -> bool:
        return len(self._elements) > (0 if self.closed else self.keep)

    def _ended(self, taker: object) -> bool:
        return self.closed and self._takers[0] is taker and not self._elements

    def _too_few(self, count: int, found: list[Element]) -> OutOfRangeError:
        text = f"{self.name} is closed and has insufficient elements (requested {count}, "
        return OutOfRangeError(
            None, None, f"{text}current size {len(found) + len(self)}){at(user_origin())}"
        )

    # -- in which order ----------------------------------------------------------------------

    def add(self, element: Element) -> None:
        """Note an element."""
        self._elements.append(element)

    def next(self) -> Element:
        """The element that is taken next."""
        found: Element = self._elements.pop(0)
        return found

    def give_back(self, element: Element) -> None:
        """Undo `next`."""
        self._elements.insert(0, element)


class _Shuffled(Contents):
    """Elements in random order."""

    def __init__(self, name: str, capacity: int, keep: int, seed: int | None) -> None:
        super().__init__(name, capacity, keep)
        self._random = np.random.default_rng(seed)

    def next(self) -> Element:
        elements = self._elements
        place = int(self._random.integers(len(elements)))
        elements[place], elements[-1] = elements[-1], elements[place]
        found: Element = elements.pop()
        return found


class _Sorted(Contents):
    """Elements by their first components, the smallest first; equal ones in their order."""

    def __init__(self, name: str, capacity: int) -> None:
        super().__init__(name, capacity)
        self._count = itertools.count()

    def add(self, element: Element) -> None:
        heapq.heappush(self._elements, (int(element[0]), next(self._count), element))

    def next(self) -> Element:
        found: Element = heapq.heappop(self._elements)[2]
        return found

    def give_back(self, element: Element) -> None:
        heapq.heappush(self._elements, (int(element[0]), -1, element))


class Components:
    """Of which tensors the elements of a queue are made.

    Args:
        dtypes: a dtype, or a list of them.
        shapes: a shape for each, or None: they may have any.
        names: a name for each where elements are dicts, or None.
        pads: sizes that are None are filled up with zeros where elements are joined.
    """

    def __init__(self, dtypes: Any, shapes: Any, names: Any, pads: bool = False) -> None:
        listed = dtypes if isinstance(dtypes, list | tuple) else [dtypes]
        self.dtypes = [known_dtypes.as_dtype(d) for d in listed]
        self.names = [names] if isinstance(names, str) else list(names or ()) or None
        self.shapes = None if shapes is None else [TensorShape(s) for s in self._listed(shapes)]
        self.pads = pads
        count = len(self.dtypes)
        if self.shapes is not None and len(self.shapes) != count:
            raise ValueError(
                f"Queue shapes must have the same length as dtypes, received {len(self.shapes)} "
                f"shapes, {count} dtypes{at(user_origin())}"
            )
        if self.names is not None and len(self.names) != count:
            raise ValueError(
                f"Queue names must have the same length as dtypes, received {len(self.names)} "
                f"names, {count} dtypes{at(user_origin())}"
            )
        if self.shapes is not None and not pads:
            for shape in self.shapes:
                if not shape.is_fully_defined():
                    text = f"All shapes must be fully defined: {shape}"
                    raise ValueError(f"{text}{at(user_origin())}")

    def _listed(self, shapes: Any) -> Sequence[Any]:
        """The shapes: one of numbers is that of the only component."""
        if isinstance(shapes, TensorShape):
            return [shapes]
        numbers = all(isinstance(s, int) or s is None for s in shapes)
        if numbers and len(self.dtypes) == 1 and (shapes or isinstance(shapes, tuple)):
            return [shapes]
        return list(shapes)

    def flat(self, values: Any) -> list[Any]:
        """The components of what is put in.

        Raises:
            ValueError: it is no dict of the queue's names, or has another number of them.
        """
        if isinstance(values, Mapping):
            if self.names is None or sorted(values) != sorted(self.names):
                raise ValueError(
                    "Keys in dictionary to enqueue do not match names of Queue components.  "
                    f"Dictionary: {sorted(values)}, Queue: {sorted(self.names or ())}"
                    f"{at(user_origin())}"
                )
            return [values[name] for name in self.names]
        if self.names is not None:
            raise ValueError(
                f"You must enqueue a dictionary in a Queue with names{at(user_origin())}"
            )
        found = list(values) if isinstance(values, list | tuple) else [values]
        if len(found) != len(self.dtypes):
            if len(self.dtypes) == 1:
                return [values]
            raise ValueError(
                f"The queue has {len(self.dtypes)} components, and {len(found)} are put in"
                f"{at(user_origin())}"
            )
        return found

    def packed(self, values: Sequence[Any]) -> Any:
        """What is taken out: a tensor, a list of them, or a dict."""
        if self.names is not None:
            return dict(zip(self.names, values, strict=True))
        return values[0] if len(values) == 1 else list(values)

    def named(self, values: Sequence[Any]) -> Any:
        """The components as `flat` takes them."""
        return list(values) if self.names is None else dict(zip(self.names, values, strict=True))

    def checked(self, arrays: Sequence[np.ndarray]) -> Element:
        """An element.

        Raises:
            InvalidArgumentError: a component has another shape than the queue's.
        """
        for index, array in enumerate(arrays):
            if self.shapes is not None and not self.shapes[index].is_compatible_with(array.shape):
                raise InvalidArgumentError(
                    None, None,
                    f"Shape mismatch in tuple component {index}. Expected "
                    f"{self.shapes[index]}, got {list(array.shape)}{at(user_origin())}",
                )  # fmt: skip
        return tuple(arrays)

    def elements(self, arrays: Sequence[np.ndarray]) -> list[Element]:
        """The elements of arrays that have one in each row.

        Raises:
            InvalidArgumentError: they differ in the number of rows.
        """
        if any(a.ndim == 0 or len(a) != len(arrays[0]) for a in arrays):
            shapes = ", ".join(str(list(a.shape)) for a in arrays)
            raise InvalidArgumentError(
                None, None,
                f"All tensors must have the same size in the first dimension: {shapes}"
                f"{at(user_origin())}",
            )  # fmt: skip
        return [self.checked([np.asarray(a[i]) for a in arrays]) for i in range(len(arrays[0]))]

    def joined(self, elements: Sequence[Element]) -> list[np.ndarray]:
        """Arrays that have an element in each row."""
        return [self._rows(i, [e[i] for e in elements]) for i in range(len(self.dtypes))]

    def _rows(self, index: int, arrays: list[np.ndarray]) -> np.ndarray:
        dtype = self.dtypes[index].np_dtype
        assert self.shapes is not None
        if not arrays:
            return np.zeros((0, *(d or 0 for d in self.shapes[index].as_list())), dtype)
        if not self.pads:
            return np.stack(arrays)
        sizes = tuple(max(a.shape[axis] for a in arrays) for axis in range(arrays[0].ndim))
        found = np.full((len(arrays), *sizes), b"" if dtype.hasobject else 0, dtype)
        for row, array in zip(found, arrays, strict=True):
            row[tuple(map(slice, array.shape))] = array
        return found

    def check_joins(self, kind: str) -> None:
        """InvalidArgumentError where elements may have any shapes, so that none can be joined."""
        if self.shapes is None:
            raise InvalidArgumentError(
                None, None,
                f"{kind}'s DequeueMany and DequeueUpTo require the components to have specified "
                f"shapes: give shapes= to the queue{at(user_origin())}",
            )  # fmt: skip


class QueueBase:
    """A queue of elements: `FIFOQueue`, `PaddingFIFOQueue`, `RandomShuffleQueue` and
    `PriorityQueue` are queues."""

    def __init__(self, components: Components, name: str,
                 make: Callable[[str], Contents]) -> None:  # fmt: skip
        self._components, self._name = components, name
        label = f"{type(self).__name__} '_{next(_numbers)}_{name}'"
        self._contents = make(label)

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtypes(self) -> list[Any]:
        """The dtypes of the components."""
        return list(self._components.dtypes)

    @property
    def shapes(self) -> list[TensorShape]:
        """The shapes of the components; of unknown rank where none were given."""
        return list(self._components.shapes or [TensorShape(None)] * len(self.dtypes))

    @property
    def names(self) -> list[str] | None:
        """The names of the components, or None."""
        return self._components.names

    @staticmethod
    def from_list(index: Any, queues: Sequence[QueueBase]) -> QueueBase:
        """One of several queues, which have the same components.

        Raises:
            TypeError: there are no queues, or their components differ.
        """
        listed: list[QueueBase] = list(queues) if isinstance(queues, list | tuple) else []
        if not listed or not all(isinstance(q, QueueBase) for q in listed):
            raise TypeError(f"A list of queues expected{at(user_origin())}")
        if any((q.dtypes, q.names) != (listed[0].dtypes, listed[0].names) for q in listed):
            raise TypeError(f"Queues do not have matching component dtypes{at(user_origin())}")
        return listed[int(index)]

    def enqueue(self, vals: Any, name: str | None = None) -> None:
        """Add an element, when there is room.

        Args:
            vals: a tensor, a list or tuple of them, or a dict where the queue has names.

        Raises:
            CancelledError: the queue is closed.
            InvalidArgumentError: the element has other shapes than the queue's.
        """
        self._check_called_at_once()
        self._contents.put(self._components.checked(self._arrays(vals)))

    def enqueue_many(self, vals: Any, name: str | None = None) -> None:
        """Add an element for each row of tensors. See `enqueue`."""
        self._check_called_at_once()
        for element in self._components.elements(self._arrays(vals)):
            self._contents.put(element)

    def dequeue(self, name: str | None = None) -> Any:
        """Take an element, when there is one.

        Raises:
            OutOfRangeError: the queue is closed and empty.
        """
        self._check_called_at_once()
        return self._components.packed(self.dequeue_flat())

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Take n elements: tensors that have one in each row.

        Raises:
            OutOfRangeError: the queue is closed and has fewer; it keeps them.
            InvalidArgumentError: the queue has no shapes.
        """
        return self._joined(n, fewer=False)

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """Take n elements, or what a closed queue still has. See `dequeue_many`."""
        return self._joined(n, fewer=True)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> None:
        """Nothing more can be put in. What is in it can be taken out.

        Args:
            cancel_pending_enqueues: those that wait for room get a CancelledError.
        """
        self._contents.close(cancel_pending_enqueues)

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether the queue is closed, a bool tensor."""
        return convert_to_tensor(self._contents.closed)

    def size(self, name: str | None = None) -> Tensor:
        """How many elements there are, an int32 tensor."""
        return convert_to_tensor(len(self._contents), known_dtypes.int32)

    def _joined(self, n: Any, fewer: bool) -> Any:
        self._check_called_at_once()
        self._components.check_joins(type(self).__name__)
        return self._components.packed(self.joined_flat(int(n), fewer))

    def dequeue_flat(self) -> list[Tensor]:
        """The components of an element that is taken."""
        (element,) = self._contents.take(1)
        return self._tensors(element)

    def joined_flat(self, n: int, fewer: bool) -> list[Tensor]:
        """The components of n elements that are taken and joined."""
        elements = self._contents.take(n, fewer)
        return self._tensors(self._components.joined(elements))

    def _arrays(self, vals: Any) -> list[np.ndarray]:
        flat = self._components.flat(vals)
        return [
            convert_to_tensor(value, dtype)._numpy().copy()
            for value, dtype in zip(flat, self._components.dtypes, strict=True)
        ]

    def _tensors(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        pairs = zip(arrays, self._components.dtypes, strict=True)
        return [convert_to_tensor(array, dtype) for array, dtype in pairs]

    def _check_called_at_once(self) -> None:
        if context.recorder is not None:
            raise UnimplementedError(
                None, None,
                f"The queue {self._name!r} belongs to Python and is no part of a program: take "
                "elements outside of the td.function and pass them to it, or use a "
                f"td.data.Dataset{at(user_origin())}",
            )  # fmt: skip


class FIFOQueue(QueueBase):
    """A queue that gives its elements in the order in which they came.

    Args:
        capacity: elements that fit; `enqueue` waits where there is no room.
        dtypes: of the components of an element: one, or a list.
        shapes: of the components; needed where several elements are taken at once.
        names: of the components: elements are dicts then.
    """

    def __init__(self, capacity: int, dtypes: Any, shapes: Any = None, names: Any = None,
                 shared_name: str | None = None, name: str = "fifo_queue") -> None:  # fmt: skip
        super().__init__(
            Components(dtypes, shapes, names), name, lambda label: Contents(label, capacity)
        )


class PaddingFIFOQueue(QueueBase):
    """A `FIFOQueue` whose components may have sizes that are None: where elements are joined,
    smaller ones are filled up with zeros.

    Raises:
        ValueError: `shapes` are not one for each dtype.
    """

    def __init__(self, capacity: int, dtypes: Any, shapes: Any, names: Any = None,
                 shared_name: str | None = None,
                 name: str = "padding_fifo_queue") -> None:  # fmt: skip
        if shapes is None:
            raise ValueError(
                f"PaddingFIFOQueue needs the shapes of its components{at(user_origin())}"
            )
        super().__init__(
            Components(dtypes, shapes, names, pads=True), name,
            lambda label: Contents(label, capacity),
        )  # fmt: skip


class RandomShuffleQueue(QueueBase):
    """A queue that gives its elements in random order.

    Args:
        min_after_dequeue: elements that remain in the queue until it is closed: the more there are,
            the better they are mixed.
        seed: the same one gives the same order.
    """

    def __init__(self, capacity: int, min_after_dequeue: int, dtypes: Any, shapes: Any = None,
                 names: Any = None, seed: int | None = None, shared_name: str | None = None,
                 name: str = "random_shuffle_queue") -> None:  # fmt: skip
        super().__init__(
            Components(dtypes, shapes, names), name,
            lambda label: _Shuffled(label, capacity, min_after_dequeue, seed),
        )  # fmt: skip


class PriorityQueue(QueueBase):
    """A queue that gives the elements of the smallest priority first. The priority, an int64, is
    the first component, before those of `types`."""

    def __init__(self, capacity: int, types: Any, shapes: Any = None, names: Any = None,
                 shared_name: str | None = None, name: str = "priority_queue") -> None:
        listed = list(types) if isinstance(types, list | tuple) else [types]
        if shapes is not None:
            shapes = [(), *Components(types, shapes, None)._listed(shapes)]
        super().__init__(
            Components([known_dtypes.int64, *listed], shapes, names), name,
            lambda label: _Sorted(label, capacity),
        )  # fmt: skip


__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue"]

__getattr__ = missing_in(__name__)
