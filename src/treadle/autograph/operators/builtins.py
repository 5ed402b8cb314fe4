"""Builtin functions that also take tensors of the graph."""

from __future__ import annotations

import builtins
from typing import Any

from treadle.autograph.operators.calls import call
from treadle.autograph.operators.iteration import as_staged, staged_range
from treadle.autograph.operators.values import Staged, is_staged
from treadle.core import dtypes
from treadle.ops import arithmetic, casting, reduction


def range(*args: Any) -> Any:
    """``range``; over symbolic numbers something that only a converted `for` iterates."""
    if not builtins.any(is_staged(a) for a in args):
        return builtins.range(*args)
    if builtins.len(args) == 1:
        args = (0, *args)
    return staged_range(*args, *((1,) if builtins.len(args) == 2 else ()))


def len(value: Any) -> Any:
    """``len``; a scalar tensor where the length is only known when the graph runs."""
    staged = as_staged(value) if is_staged(value) else None
    if staged is None:
        return builtins.len(value)
    dims = getattr(value, "dims", ())
    return dims[0] if dims and isinstance(dims[0], builtins.int) else staged.length


def enumerate(iterable: Any, start: Any = 0) -> Any:
    staged = as_staged(iterable)
    if staged is None:
        return builtins.enumerate(iterable, start)
    return Staged(staged.length, lambda i: (i + start, staged.item(i)))


def zip(*iterables: Any, strict: bool = False) -> Any:
    staged = [as_staged(x) for x in iterables]
    found = [s for s in staged if s is not None]
    if not found:
        return builtins.zip(*iterables, strict=strict)
    if builtins.len(found) != builtins.len(staged):
        raise TypeError("zip: a tensor of the graph can only be zipped with other tensors")
    length = found[0].length
    for other in found[1:]:
        length = arithmetic.minimum(length, other.length)
    return Staged(length, lambda i: tuple(s.item(i) for s in found))


def reversed(sequence: Any) -> Any:
    staged = as_staged(sequence)
    if staged is None:
        return builtins.reversed(sequence)
    return Staged(staged.length, lambda i: staged.item(staged.length - 1 - i))


def map(function: Any, *iterables: Any) -> Any:
    staged = [as_staged(x) for x in iterables]
    if builtins.any(s is not None for s in staged):
        raise NotImplementedError("map over a tensor of the graph: use td.map_fn")
    return builtins.map(call(function), *iterables)


def filter(function: Any, iterable: Any) -> Any:
    return builtins.filter(call(function) if function is not None else None, iterable)


def sorted(iterable: Any, *, key: Any = None, reverse: bool = False) -> Any:
    if is_staged(iterable):
        raise NotImplementedError("sorted of a tensor of the graph: use td.sort")
    return builtins.sorted(iterable, key=call(key) if key is not None else None, reverse=reverse)


def abs(value: Any) -> Any:
    return builtins.abs(value)


def any(iterable: Any) -> Any:
    return reduction.reduce_any(iterable) if is_staged(iterable) else builtins.any(iterable)


def all(iterable: Any) -> Any:
    return reduction.reduce_all(iterable) if is_staged(iterable) else builtins.all(iterable)


def sum(iterable: Any, start: Any = 0) -> Any:
    if is_staged(iterable):
        return reduction.reduce_sum(iterable, 0) + start
    return builtins.sum(iterable, start)


def max(*args: Any, **keywords: Any) -> Any:
    return _extreme(builtins.max, arithmetic.maximum, reduction.reduce_max, args, keywords)


def min(*args: Any, **keywords: Any) -> Any:
    return _extreme(builtins.min, arithmetic.minimum, reduction.reduce_min, args, keywords)


def _extreme(python: Any, pairwise: Any, reduce: Any, args: Any, keywords: Any) -> Any:
    if builtins.len(args) == 1 and is_staged(args[0]) and not keywords:
        return reduce(args[0], 0)
    if builtins.len(args) > 1 and builtins.any(is_staged(a) for a in args) and not keywords:
        found = args[0]
        for other in args[1:]:
            found = pairwise(found, other)
        return found
    return python(*args, **keywords)


def int(value: Any = 0, *args: Any) -> Any:
    return casting.cast(value, dtypes.int32) if is_staged(value) else builtins.int(value, *args)


def float(value: Any = 0.0) -> Any:
    return casting.cast(value, dtypes.float32) if is_staged(value) else builtins.float(value)
