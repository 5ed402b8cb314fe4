"""``sum``, ``min``, ``max``, ``any``, ``all`` and ``sorted``, which also take tensors."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from treadle.autograph.operators.calls import call
from treadle.autograph.operators.collecting import as_tensor, collect
from treadle.autograph.operators.conditionals import if_exp
from treadle.autograph.operators.iteration import is_graph_iterable
from treadle.autograph.operators.logical import and_, not_, or_
from treadle.autograph.operators.loops import for_stmt
from treadle.autograph.operators.streams import Stream
from treadle.autograph.operators.values import is_staged, truth
from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops import dims
from treadle.ops.collections.graph_list import GraphList
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise import arithmetic, casting, comparison, selection
from treadle.ops.indexing.gather import gather
from treadle.ops.numbers.python_numbers import extreme
from treadle.ops.reductions import reduction
from treadle.ops.state import Variable
from treadle.ops.statistics.sorting import argsort
from treadle.ops.statistics.sorting import sort as sort_tensor


def sum(iterable: Any, /, start: Any = 0) -> Any:
    """``sum``; over the first dimension of a tensor."""
    values = _values(iterable)
    if not isinstance(values, Tensor):
        return builtins.sum(values, start)
    if values.dtype.is_bool:
        values = casting.cast(values, dtypes.int32)
    total = reduction.reduce_sum(values, 0)
    return total if type(start) is int and start == 0 else total + start


def any(iterable: Any, /) -> Any:
    """``any``; elements after the first true one are not computed."""
    if isinstance(iterable, Tensor) and iterable.ndim == 1:
        return reduction.reduce_any(_truths(iterable))
    if isinstance(iterable, Stream) or is_graph_iterable(iterable):
        return for_stmt(
            iterable,
            lambda item, found: or_(lambda: found, lambda: _truth(item)),
            False,
            until=lambda found: found,
        )
    return _fold(iterable, or_, False)


def all(iterable: Any, /) -> Any:
    """``all``; elements after the first false one are not computed."""
    if isinstance(iterable, Tensor) and iterable.ndim == 1:
        return reduction.reduce_all(_truths(iterable))
    if isinstance(iterable, Stream) or is_graph_iterable(iterable):
        return for_stmt(
            iterable,
            lambda item, holds: and_(lambda: holds, lambda: _truth(item)),
            True,
            until=lambda holds: not_(holds),
        )
    return _fold(iterable, and_, True)


def max(*args: Any, **keywords: Any) -> Any:
    """``max`` of scalars, or of the elements of one tensor or other iterable."""
    return _extreme(builtins.max, args, **keywords)


def min(*args: Any, **keywords: Any) -> Any:
    """``min`` of scalars, or of the elements of one tensor or other iterable."""
    return _extreme(builtins.min, args, **keywords)


def sorted(iterable: Any, /, *, key: Any = None, reverse: Any = False) -> Any:
    """``sorted``: a tensor for a tensor, a list of tensors for a list that has tensors in it.

    Raises:
        ValueError: the compared values are not scalars.
    """
    values = _values(iterable)
    if not isinstance(values, Tensor):
        values = builtins.list(values)
        keys = values if key is None else [call(key)(v) for v in values]
        if not _has_staged(keys):
            order = builtins.sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)
            return [values[i] for i in order]
        _check_scalars("sorted", keys)
        whole = as_tensor(values)
        ordered = gather(whole, _order(as_tensor(keys), reverse))
        return [ordered[i] for i in range(len(values))]
    if key is None:
        _check_rank("sorted", values)
        return sort_tensor(values, direction=_direction(reverse))
    found = as_tensor(Stream(call(key), values))
    _check_rank("sorted", found)
    return gather(values, _order(found, reverse))


def _values(iterable: Any) -> Any:
    """The values to reduce: a tensor where they belong to the graph, else a Python iterable."""
    if isinstance(iterable, Stream) and not iterable.in_graph:
        iterable = collect(iterable)
    if isinstance(iterable, GraphList) or is_graph_iterable(iterable):
        return as_tensor(iterable)
    return iterable


def _fold(iterable: Any, combine: Any, value: Any) -> Any:
    """Python's any and all, where elements may be tensors."""
    for item in iterable:
        value = combine(lambda: value, lambda: _truth(item))  # noqa: B023
        if not is_staged(value) and builtins.bool(value) is (combine is or_):
            break
    return value


def _truth(item: Any) -> Any:
    return truth(item, "any() or all()") if is_staged(item) else builtins.bool(item)


def _truths(values: Tensor) -> Tensor:
    if values.dtype.is_bool:
        return values
    return comparison.not_equal(values, casting.cast(0, values.dtype))


def _extreme(
    python: Callable[..., Any], args: tuple[Any, ...], key: Any = None, **default: Any
) -> Any:
    name = python.__name__
    if len(args) == 1:
        values = _values(args[0])
        if isinstance(values, Tensor):
            return _of_tensor(name, values, key, default)
        values = builtins.list(values)
    else:
        values = builtins.list(args)
    keys = values if key is None else [call(key)(v) for v in values]
    if not values or not _has_staged(keys):
        if key is None:
            return python(values, **default)
        found: Any = python(range(len(keys)), key=keys.__getitem__, default=None)
        return python((), **default) if found is None else values[found]
    _check_scalars(name, keys)
    if key is None and not builtins.any(isinstance(v, Tensor | Variable) for v in values):
        return extreme(python, *values)
    if key is None:
        return _first_extreme(name, values)
    return _select(name, values, keys)


def _first_extreme(name: str, values: list[Any]) -> Any:
    """The number that Python takes: the first one of which no later one is strictly beyond. Beside
    a NaN, and of zeros of both signs, that is not what `minimum` and `maximum` give; of integers
    it is, and the range of these results is known to the compiler."""
    dtype = next(v.dtype for v in values if isinstance(v, Tensor | Variable))
    found, *others = (convert_to_tensor(v, dtype) for v in values)
    for other in others:
        if dtype.is_integer:
            function = arithmetic.minimum if name == "min" else arithmetic.maximum
            found = function(found, other)
        else:
            better = comparison.less if name == "min" else comparison.greater
            found = selection.where(better(other, found), other, found)
    return found


def _select(name: str, values: list[Any], keys: list[Any]) -> Any:
    """The first value with the least (or largest) key."""
    found, best = values[0], keys[0]
    for value, new in zip(values[1:], keys[1:], strict=True):
        better = new < best if name == "min" else new > best
        found = if_exp(better, lambda: value, lambda: found)  # noqa: B023
        best = if_exp(better, lambda: new, lambda: best)  # noqa: B023
    return found


def _of_tensor(name: str, values: Tensor, key: Any, default: dict[str, Any]) -> Any:
    if "default" in default:
        return if_exp(
            dims.shape(values)[0] == 0,
            lambda: default["default"],
            lambda: _of_tensor(name, values, key, {}),
        )
    if values.dims[0] == 0:
        raise ValueError(f"{name}() of an empty tensor{at(user_origin())}")
    if key is None:
        _check_rank(name, values)
        reduce = reduction.reduce_min if name == "min" else reduction.reduce_max
        return reduce(values, 0)
    keys = as_tensor(Stream(call(key), values))
    _check_rank(name, keys)
    position = reduction.argmin if name == "min" else reduction.argmax
    return gather(values, position(keys))


def _order(keys: Tensor, reverse: Any) -> Tensor:
    return argsort(keys, direction=_direction(reverse), stable=True)


def _direction(reverse: Any) -> str:
    return "DESCENDING" if reverse else "ASCENDING"


def _has_staged(values: list[Any]) -> bool:
    return builtins.any(is_staged(v) for v in values)


def _check_rank(name: str, values: Tensor) -> None:
    if values.ndim != 1:
        raise ValueError(
            f"{name}() compares scalars, and the rows of this tensor of shape {values.shape} are "
            f"none: use td.sort, td.reduce_{name if name != 'sorted' else 'max'} or give a key"
            f"{at(user_origin())}"
        )


def _check_scalars(name: str, values: list[Any]) -> None:
    for value in values:
        if isinstance(value, Tensor) and value.ndim:
            raise ValueError(
                f"{name}() compares scalars, not tensors of shape {value.shape}: use "
                f"td.{name}imum for elements one by one{at(user_origin())}"
                if name != "sorted"
                else f"sorted() compares scalars, not tensors of shape {value.shape}: use td.sort"
                f"{at(user_origin())}"
            )
