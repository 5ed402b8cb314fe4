"""Builtin functions that iterate, over tensors of the graph too."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from treadle.autograph.operators.calls import call
from treadle.autograph.operators.collecting import collect
from treadle.autograph.operators.elements import Enumerated, is_pulled, length_of, zipped
from treadle.autograph.operators.iteration import (
    as_staged,
    is_graph_iterable,
    number_range,
    staged_range,
)
from treadle.autograph.operators.streams import Numbered, Stream
from treadle.autograph.operators.values import GraphIteration, Staged, is_staged
from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.collections.graph_list import GraphList
from treadle.ops.control import io
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise import arithmetic
from treadle.ops.numbers.python_numbers import symbolic_number
from treadle.ops.state import Variable


def range(*args: Any) -> Any:
    """``range``; over symbolic numbers something that loops of the graph iterate."""
    if not builtins.any(is_staged(a) for a in args):
        if None in args:
            raise TypeError(
                "range(None): a size that is not known while tracing reads as None in x.shape; use "
                f"td.range(td.shape(x)[0]){at(user_origin())}"
            )
        return builtins.range(*args)
    if builtins.len(args) == 1:
        args = (0, *args)
    if not builtins.any(isinstance(a, Tensor | Variable) for a in args):
        return number_range(*args)
    return staged_range(*args, *((1,) if builtins.len(args) == 2 else ()))


def len(value: Any) -> Any:
    """``len``; a scalar tensor where the length is only known when the graph runs."""
    if is_pulled(value):
        return length_of(value)
    if isinstance(value, Stream | Numbered):
        raise TypeError(f"A generator or filter has no len(){at(user_origin())}")
    staged = as_staged(value) if is_graph_iterable(value) else None
    if staged is None:
        return builtins.len(value)
    if staged.size is not None:
        return staged.size
    if isinstance(value, Staged):
        return arithmetic.maximum(staged.length, 0)  # of a range that counts the wrong way
    return staged.length


def enumerate(iterable: Any, start: Any = 0) -> Any:
    if is_pulled(iterable):
        return Enumerated(iterable, start)
    if isinstance(iterable, Stream) and iterable.in_graph:
        return Numbered(iterable, start)
    staged = as_staged(iterable)
    if staged is None:
        return builtins.enumerate(iterable, start)
    return Staged(staged.length, lambda i: (i + start, staged.item(i)), staged.size)


def zip(*iterables: Any, strict: bool = False) -> Any:
    if builtins.any(is_pulled(x) for x in iterables):
        return zipped(iterables, strict)
    iterables = builtins.tuple(builtins.map(_plain, iterables))
    if not builtins.any(is_graph_iterable(x) for x in iterables):
        return builtins.zip(*iterables, strict=strict)
    found = [_positional(x, "zip") for x in iterables]
    if builtins.any(s is None for s in found):  # some only Python can iterate
        return builtins.zip(*builtins.map(_in_python, iterables), strict=strict)
    return _together(found, strict)


def _plain(iterable: Any) -> Any:
    """A generator or filter that Python alone can iterate as an iterator of Python's."""
    if isinstance(iterable, Stream) and not iterable.in_graph:
        return (item for item in iterable)
    return iterable


def _together(found: Sequence[Any], strict: bool) -> Staged:
    sizes = [s.size for s in found]
    if strict:
        _check_lengths(found, sizes)
    size = builtins.min(sizes) if None not in sizes else None
    length = found[0].length
    for other in found[1:]:
        length = arithmetic.minimum(length, other.length)
    return Staged(length, lambda i: builtins.tuple(s.item(i) for s in found), size)


def _check_lengths(found: Sequence[Any], sizes: Sequence[int | None]) -> None:
    known = {s for s in sizes if s is not None}
    if builtins.len(known) > 1:
        raise ValueError(f"zip() arguments have different lengths: {sizes}{at(user_origin())}")
    if None in sizes:
        for other in found[1:]:
            message = "zip() arguments have different lengths"
            io.Assert(found[0].length == other.length, [message])


def _positional(iterable: Any, use: str) -> Staged | None:
    """`iterable` with positions that may be tensors, or None where that is not possible."""
    if isinstance(iterable, Stream | Numbered):
        raise TypeError(
            f"{use}() cannot take a generator or filter over a tensor: make a list of it first"
            f"{at(user_origin())}"
        )
    if is_graph_iterable(iterable):
        return as_staged(iterable)
    if isinstance(iterable, builtins.range):
        start, step = iterable.start, iterable.step
        count: Any = builtins.len(iterable)
        return Staged(convert_to_tensor(count), lambda i: start + i * step, count)
    if not isinstance(iterable, Sequence | Tensor) and not hasattr(iterable, "__array__"):
        return None
    try:
        numbers = isinstance(iterable, builtins.list | builtins.tuple) and _numbers(iterable)
        if numbers:
            return numbers
        whole = convert_to_tensor(iterable)
    except (TypeError, ValueError):
        return None
    count = whole.dims[0]
    return Staged(convert_to_tensor(count), lambda i: whole[i], count)


def _numbers(values: Any) -> Staged | None:
    """Python numbers of one type by position: weak, as they are one by one."""
    kind = type(values[0]) if values else None
    wide = {int: dtypes.int64, float: dtypes.float64}.get(kind)  # type: ignore[arg-type]
    if wide is None or builtins.any(type(v) is not kind for v in values):
        return None
    table = convert_to_tensor(values, wide)
    ends = (builtins.min(values), builtins.max(values)) if kind is int else None
    size = builtins.len(values)
    return Staged(convert_to_tensor(size), lambda i: symbolic_number(table[i], ends), size)


def _in_python(iterable: Any) -> Any:
    if not is_graph_iterable(iterable):
        return iterable
    found = collect(iterable)
    if isinstance(found, GraphList):
        raise TypeError(
            "zip: a tensor whose length is only known when the graph runs, or is large, can only "
            f"be zipped with tensors and lists of numbers{at(user_origin())}"
        )
    return found


def reversed(sequence: Any) -> Any:
    if isinstance(sequence, Stream | Numbered):
        raise TypeError(f"A generator or filter is not reversible{at(user_origin())}")
    staged = as_staged(sequence)
    if staged is None:
        return builtins.reversed(sequence)
    return Staged(staged.length, lambda i: staged.item(staged.length - 1 - i), staged.size)


def map(function: Any, *iterables: Any) -> Any:
    function = call(function)
    if builtins.len(iterables) == 1 and isinstance(iterables[0], Stream):
        return Stream(function, iterables[0])
    if not builtins.any(is_graph_iterable(x) for x in iterables):
        return builtins.map(function, *iterables)
    if builtins.len(iterables) == 1 and isinstance(iterables[0], Numbered):
        return Stream(function, iterables[0])
    if builtins.any(is_pulled(x) for x in iterables):
        return _mapped_elements(function, iterables)
    items = zip(*iterables)
    if not isinstance(items, Staged):
        return (function(*together) for together in items)
    return Staged(items.length, lambda i: function(*items.item(i)), items.size)


def _mapped_elements(function: Any, iterables: Any) -> Stream:
    if builtins.len(iterables) == 1:
        return Stream(function, iterables[0])
    return Stream(lambda together: function(*together), zipped(iterables, False))


def filter(function: Any, iterable: Any) -> Any:
    condition = call(function) if function is not None else lambda item: item
    return Stream(lambda item: item, iterable, (condition,))


def list(*iterable: Any) -> Any:
    """``list``; a list of the graph where the length depends on it or is large."""
    return collect(*iterable) if iterable else []


def tuple(*iterable: Any) -> Any:
    """``tuple`` of a tensor of known length, or of any Python iterable."""
    found = collect(*iterable) if iterable else ()
    if isinstance(found, GraphList):
        raise TypeError(
            "The length of this tuple is only known when the graph runs, or is large: use list()"
            f"{at(user_origin())}"
        )
    return builtins.tuple(found)


def iter(iterable: Any, *sentinel: Any) -> Any:
    """``iter``; over a tensor of the graph if its length is known."""
    if sentinel or not isinstance(iterable, GraphIteration | Tensor | GraphList):
        return builtins.iter(iterable, *sentinel)
    return builtins.iter(tuple(iterable))
