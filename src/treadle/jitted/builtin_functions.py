"""Python's builtin functions on traced arrays and numbers."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import Array, ConcreteValueError, as_number, is_traced, number_of
from treadle.jitted.conversion import call
from treadle.jitted.forms import form_of, joined
from treadle.jitted.iteration import Counted, as_counted, enumerate, range, reversed, zip
from treadle.jitted.operations import call_function
from treadle.jitted.statements import and_, for_stmt, or_, truth, truth_value
from treadle.ops.python_numbers import apply
from treadle.ops.selection import where as select


def abs(value: Any) -> Any:
    return builtins.abs(value)


def int(value: Any = 0, *args: Any) -> Any:
    """``int``: towards zero."""
    if not is_traced(value):
        return builtins.int(value, *args)
    return apply(builtins.int, as_number(value))


def float(value: Any = 0.0) -> Any:
    return apply(builtins.float, as_number(value)) if is_traced(value) else builtins.float(value)


def bool(value: Any = False) -> Any:
    return truth_value(value)


def len(value: Any) -> Any:
    if isinstance(value, Array) and value.ndim:
        return number_of(value.dims[0])
    if isinstance(value, Counted):
        return value.length if value.size is None else value.size
    return builtins.len(value)


def max(*args: Any, **options: Any) -> Any:
    return _extreme(builtins.max, operator.gt, args, options)


def min(*args: Any, **options: Any) -> Any:
    return _extreme(builtins.min, operator.lt, args, options)


def _extreme(python: Any, better: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    if builtins.len(args) == 1 and isinstance(args[0], Array) and not options:
        function = np.max if python is builtins.max else np.min
        return call_function(function, (args[0],), {})
    values = builtins.list(args[0] if builtins.len(args) == 1 else args)
    if options or not is_traced(values):
        return python(values, **options)
    found = values[0]
    for value in values[1:]:
        found = _chosen(better(value, found), value, found)
    return found


def _chosen(test: Any, a: Any, b: Any) -> Any:
    """``a if test else b`` of two numbers."""
    found = truth(test)
    if not isinstance(found, Tensor):
        return a if found else b
    first, second = form_of(a), form_of(b)
    if first is None or second is None:
        raise TypeError(f"{a!r} and {b!r} cannot be compared{at(user_origin())}")
    form = joined(first, second)
    return form.value(select(found, form.tensor(a), form.tensor(b)))


def _giving(value: Any) -> Callable[[], Any]:
    return lambda: value


def sum(iterable: Any, /, start: Any = 0) -> Any:
    if isinstance(iterable, Array):
        total = call_function(np.sum, (iterable, 0), {})
        return total if type(start) is builtins.int and start == 0 else start + total
    counted = as_counted(iterable)
    if counted is None or counted.size is not None:
        return builtins.sum(iterable if counted is None else counted.items(), start)
    return for_stmt(counted, lambda one, total: total + one, start)


def any(iterable: Any, /) -> Any:
    if isinstance(iterable, Array):
        return call_function(np.any, (iterable,), {})
    return or_(lambda: False, *(_giving(v) for v in iterable))


def all(iterable: Any, /) -> Any:
    if isinstance(iterable, Array):
        return call_function(np.all, (iterable,), {})
    return and_(lambda: True, *(_giving(v) for v in iterable))


def sorted(iterable: Any, /, *, key: Any = None, reverse: Any = False) -> Any:
    if isinstance(iterable, Array) and key is None:
        made = iterable.copy()
        made.sort()
        return made[::-1] if reverse else made
    if is_traced(iterable):
        raise ConcreteValueError(
            f"sorted() of a list of traced values: use np.sort of an array{at(user_origin())}"
        )
    return builtins.sorted(iterable, key=key, reverse=reverse)


def list(*iterable: Any) -> Any:
    counted = as_counted(iterable[0]) if iterable else None
    return builtins.list(*iterable) if counted is None else builtins.list(counted.items())


def tuple(*iterable: Any) -> Any:
    return builtins.tuple(list(*iterable))


def map(function: Any, *iterables: Any) -> Any:
    return builtins.map(call(function), *iterables)


def filter(function: Any, iterable: Any) -> Any:
    return builtins.filter(function if function is None else call(function), iterable)


def iter(iterable: Any, *sentinel: Any) -> Any:
    counted = None if sentinel else as_counted(iterable)
    return builtins.iter(iterable, *sentinel) if counted is None else counted.items()


def iterable(value: Any) -> Any:
    counted = as_counted(value)
    return value if counted is None else counted.items()


def list_comp(
    element: Callable[..., Any], source: Any, *conditions: Any, flat: Any = False
) -> Any:
    """``[element(x) for x in source if condition(x)]``, one element after the other; with `flat`
    of all that the elements hold."""
    found = []
    for one in iterable(source):
        if builtins.all(_known(c(one)) for c in conditions):
            made = element(one)
            found.extend(made) if flat else found.append(made)
    return found


def _known(value: Any) -> Any:
    found = truth(value)
    if isinstance(found, Tensor):
        raise ConcreteValueError(
            f"the length of a list would depend on array values{at(user_origin())}"
        )
    return found


def python_bool(value: Any, why: str) -> Any:
    """The truth of a condition of a statement that only Python can run."""
    try:
        return _known(value)
    except ConcreteValueError as problem:
        raise ConcreteValueError(f"{problem} ({why})") from None


def python_iterable(value: Any, why: str) -> Any:
    """What a statement iterates that only Python can run."""
    counted = as_counted(value)
    if counted is not None and counted.size is None:
        raise ConcreteValueError(
            f"The length of what this statement iterates is only known when the program runs, "
            f"which is not possible here: {why}{at(user_origin())}"
        )
    return iterable(value)


__all__ = ["enumerate", "range", "reversed", "zip"]
