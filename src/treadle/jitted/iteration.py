"""Iterables by position, for the `for` statements of jitted functions."""

from __future__ import annotations

import builtins
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from treadle.autograph.operators.rolled_items import Items, Numbers, Together, Values, items_of
from treadle.core import nest, shapes
from treadle.core.interrupts import during, is_mode
from treadle.core.origin import at, user_origin
from treadle.core.switches import is_on
from treadle.jitted.arrays import (
    Array,
    ConcreteValueError,
    ListedStorage,
    Traced,
    TracedSequence,
    as_number,
    is_traced,
    number_of,
    unwrapped_bound,
)
from treadle.jitted.forms import Form, form_of
from treadle.jitted.left import current
from treadle.jitted.records import Record, Records
from treadle.jitted.storage import captured_storage
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.numbers import python_numbers
from treadle.ops.shaping.joining import stack


class Counted:
    """Elements by position.

    Attributes:
        length: their number, a Python int or a symbolic one.
        item: gives the element at a (symbolic) position.
        size: the number, where it is known while tracing.
    """

    def __init__(self, length: Any, item: Callable[[Any], Any]) -> None:
        self.length = length
        self.item = item
        self.size = length if type(length) is int else None

    def items(self) -> Iterator[Any]:
        """The elements one by one.

        Raises:
            ConcreteValueError: only the run knows how many there are.
        """
        if self.size is None:
            raise ConcreteValueError(
                "Python cannot take elements one by one whose number is only known when the "
                f"program runs: use a for loop{at(user_origin())}"
            )
        return (self.item(i) for i in builtins.range(self.size))

    def __iter__(self) -> Iterator[Any]:
        return self.items()

    def rest(self) -> Counted:
        """The elements behind the first one."""
        return Counted(self.length - 1, lambda i: self.item(i + 1))

    def __getitem__(self, index: Any) -> Any:
        return self.item(index)


def as_counted(iterable: Any) -> Counted | None:
    """`iterable` by position; None for an object that only Python can iterate."""
    iterable = current(iterable)
    if isinstance(iterable, Counted):
        return iterable
    if isinstance(iterable, builtins.range):
        start, step = iterable.start, iterable.step
        return Counted(len(iterable), lambda i: i * step + start if step != 1 else i + start)
    if type(iterable) is itertools.repeat:
        return _repeated(iterable)
    if isinstance(iterable, Array) and iterable.ndim:
        return Counted(number_of(iterable.dims[0]), lambda i: iterable[i])
    if isinstance(iterable, TracedSequence):
        items = iterable.listed()
        return Counted(items.length, items.at)
    if isinstance(iterable, Records) and not isinstance(iterable, Record):
        return Counted(number_of(iterable.dims[0]), lambda i: iterable[i])
    return None


_FEWEST = 16  # items of a Python list that the graph loops over


def python_counted(iterable: Any) -> Counted | None:
    """A long list of numbers or arrays, or `zip`, `enumerate` or `reversed` of such lists, by
    position; None for others. The items are Python's own where the position is."""
    if not is_on("rolled_loops"):
        return None
    items = items_of(iterable)
    return None if items is None or items.size < _FEWEST else _counted(items)


def _counted(items: Items) -> Counted | None:
    if isinstance(items, Numbers):
        return as_counted(items.numbers)
    if isinstance(items, Values):
        return _of_values(items.values)
    if not isinstance(items, Together):
        return None
    parts = [_counted(part) for part in items.parts]
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return None
    return Counted(items.size, lambda i: tuple(p.item(i) for p in known))


def by_position(values: Sequence[Any]) -> Counted | None:
    """Values by position, however few; None where they are unlike each other."""
    return _of_values(values) if len(values) else Counted(0, lambda i: values[i])


def _of_values(values: Sequence[Any]) -> Counted | None:
    """Values of one structure with numbers and arrays in it, each read from a table."""
    structure, leaves = values[0], [nest.flatten(v) for v in values]
    try:
        for value in values:
            nest.assert_same_structure(structure, value)
    except (TypeError, ValueError):
        return None
    columns = [_table(column) for column in builtins.zip(*leaves, strict=True)]
    if any(c is None for c in columns):
        return None

    def item(i: Any) -> Any:
        if type(i) is int:
            return values[i]
        return nest.pack(structure, [column(i) for column in columns if column is not None])

    return Counted(len(values), item)


def _table(values: Sequence[Any]) -> Callable[[Any], Any] | None:
    """A function that reads an item: of numbers or arrays of one type; None for others."""
    form = form_of(values[0])
    kind = type(values[0])
    if isinstance(values[0], Array | np.ndarray):
        return _array_table(values)
    if form is None:
        return None
    if is_traced(values):
        if any(form_of(v) != form for v in values):
            return None
        known_form, whole = form, stack([form.tensor(v) for v in values])
        return lambda i: known_form.value(whole[unwrapped_bound(i)])
    if any(type(v) is not kind for v in values):
        return None
    try:
        table = np.asarray(values).astype(form.dtype.np_dtype)
    except OverflowError:
        return None
    known: Form = form
    return lambda i: known.value(convert_to_tensor(table)[i])


_MOST_COPIED = 1 << 20  # bytes of arrays that are put together for a loop of few iterations
_FEW = 64


def _array_table(values: Sequence[Any]) -> Callable[[Any], Any] | None:
    """A function that reads an item: of arrays of one dtype and shape, copied into one."""
    first = values[0]
    if not all(type(v) in (Array, np.ndarray) for v in values) or not first.ndim:
        return None
    dims = [v.dims if isinstance(v, Array) else v.shape for v in values]
    if any(v.dtype != first.dtype for v in values) or any(d != dims[0] for d in dims):
        return None
    if first.dtype.kind not in "biufc":
        return None
    size = shapes.product(dims[0]) * len(values) * first.dtype.itemsize
    if len(values) <= _FEW and not (isinstance(size, int) and size <= _MOST_COPIED):
        return None
    if not is_traced(values):
        constant = convert_to_tensor(np.stack(values))
        return lambda i: Array(ListedStorage(constant[i], []))
    arrays = [v if isinstance(v, Array) else Array(captured_storage(v)) for v in values]
    whole = stack([a.tensor for a in arrays])
    storages = [a.storage for a in arrays]
    return lambda i: Array(ListedStorage(whole[unwrapped_bound(i)], storages))


def _repeated(iterable: Any) -> Counted | None:
    """``itertools.repeat(element, times)``; None where it goes on for ever."""
    element, *times = iterable.__reduce__()[1]
    return Counted(times[0], lambda i: element) if times else None


def range(*args: Any) -> Any:
    """``range``; by position where a bound is only known when the program runs."""
    if not is_traced(args):
        return builtins.range(*args)
    bounds = [as_number(a) if isinstance(a, Traced) else a for a in args]
    for bound in bounds:
        kind = python_numbers.kind_of(bound)
        if issubclass(kind, float | complex):
            raise TypeError(
                f"'{kind.__name__}' object cannot be interpreted as an integer{at(user_origin())}"
            )
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if type(step) is int and step == 1:
        length = stop - start if not (type(start) is int and start == 0) else stop
        return Counted(length, lambda i: i + start)
    return Counted(-((start - stop) // step), lambda i: i * step + start)


def enumerate(iterable: Any, start: Any = 0) -> Any:
    counted = as_counted(iterable)
    if counted is None:
        return builtins.enumerate(iterable, start)
    return Counted(counted.length, lambda i: (i + start, counted.item(i)))


def zip(*iterables: Any, strict: bool = False) -> Any:
    found = [as_counted(x) for x in iterables]
    if builtins.any(isinstance(x, Array | Counted | TracedSequence) for x in iterables):
        found = [python_counted(x) if c is None else c for x, c in builtins.zip(iterables, found)]  # noqa: B905
    known = [c for c in found if c is not None]
    if len(known) < len(found) or not known:
        parts = (x if c is None else c.items() for x, c in builtins.zip(iterables, found))  # noqa: B905
        return builtins.zip(*parts, strict=strict)
    lengths = {getattr(c.length, "key", c.length): c.length for c in known}
    if strict and len(lengths) > 1:
        raise ValueError(f"zip() arguments have different lengths: {[*lengths.values()]}")
    shortest = python_numbers.extreme(min, *lengths.values())
    return Counted(shortest, lambda i: tuple(c.item(i) for c in known))


def product(*iterables: Any, repeat: int = 1) -> Any:
    """``itertools.product``; by position where all are."""
    found = [as_counted(x) for x in iterables] * repeat
    if not found or None in found:
        parts = (x if c is None else c.items() for x, c in builtins.zip(iterables, found))  # noqa: B905
        return itertools.product(*parts, repeat=repeat)
    return _products([c for c in found if c is not None])


def _products(factors: list[Counted]) -> Counted:
    """All combinations of elements; the last factor varies fastest."""
    length: Any = 1
    for factor in factors:
        length = factor.length * length

    def item(index: Any) -> tuple[Any, ...]:
        found = []
        for factor in builtins.reversed(factors[1:]):
            found.append(factor.item(index % factor.length))
            index = index // factor.length
        return (factors[0].item(index), *builtins.reversed(found))

    return Counted(length, item)


def ndindex(*shape: Any) -> Counted:
    """``np.ndindex``: the positions in an array of a shape, in row order."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    return _products([Counted(size, lambda i: i) for size in sizes])


def ndenumerate(array: Any) -> Any:
    """``np.ndenumerate``: positions and elements, in row order."""
    if not isinstance(array, Array):
        return np.ndenumerate(array)
    places = ndindex(array.shape)

    def item(index: Any) -> tuple[Any, Any]:
        place = places.item(index)
        return place, array[place]

    return Counted(places.length, item)


def nditer(op: Any, *args: Any, **options: Any) -> Any:
    """``np.nditer`` of one array that is read: its elements in row order.

    Raises:
        TypeError: several arrays, or flags.
    """
    if not isinstance(op, Array) and not is_traced(op):
        return np.nditer(op, *args, **options)
    if not isinstance(op, Array) or args or options:
        raise TypeError(
            "np.nditer takes one array and no flags in jitted functions: use np.ndindex or "
            f"np.ndenumerate{at(user_origin())}"
        )
    return op.reshape(-1)


def reversed(sequence: Any) -> Any:
    counted = as_counted(sequence)
    if counted is None:
        return builtins.reversed(sequence)
    return Counted(counted.length, lambda i: counted.item(counted.length - 1 - i))


# -- short loops ---------------------------------------------------------------------------------

_SHORT = 4  # iterations; written out, their positions are constants
_MOST_COPIES = 16  # of the innermost body where short loops are nested


class _Unrolling(threading.local):
    copies = 1


_unrolling = is_mode(_Unrolling())


def is_short(size: int) -> bool:
    """Whether a loop is better written out than made one of the graph."""
    return size <= _SHORT and size * _unrolling.copies <= _MOST_COPIES


def unrolled(size: int) -> during:
    """Write a loop out: loops inside of it are copied `size` times."""
    return during(_unrolling, "copies", _unrolling.copies * max(size, 1))
