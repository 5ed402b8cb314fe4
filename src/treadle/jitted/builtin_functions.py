"""Python's builtin functions on traced arrays and numbers."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import (
    Array,
    ConcreteValueError,
    TracedSequence,
    as_number,
    direct,
    is_traced,
    number_of,
)
from treadle.jitted.branches import raise_in_branch
from treadle.jitted.chosen_texts import ChosenText
from treadle.jitted.comprehensions import (
    Selected,
    dict_comp,
    generator,
    known,
    list_comp,
    list_of,
    selected,
    set_comp,
)
from treadle.jitted.conversion import call
from treadle.jitted.forms import form_of, joined
from treadle.jitted.iteration import Counted, as_counted, enumerate, range, reversed, zip
from treadle.jitted.operations import call_function
from treadle.jitted.records import Record, Records
from treadle.jitted.refused_numbers import check
from treadle.jitted.run_texts import RunText, to_int
from treadle.jitted.sorting import best, in_order, is_of_run
from treadle.jitted.stacked_lists import StackedList
from treadle.jitted.statements import (
    and_,
    for_stmt,
    if_exp,
    not_,
    or_,
    truth,
    truth_value,
)
from treadle.ops.elementwise.selection import where as select
from treadle.ops.numbers.python_numbers import apply, extreme
from treadle.ops.shaping.creation import zeros


def abs(value: Any) -> Any:
    return builtins.abs(value)


def int(value: Any = 0, *args: Any) -> Any:
    """``int``: towards zero."""
    if not is_traced(value):
        return builtins.int(value, *args)
    value = direct(value)
    if isinstance(value, RunText):
        return to_int(value, *args)
    if isinstance(value, ChosenText):
        return value.of_each(builtins.int)
    number = as_number(value)
    check(builtins.int, (number,))
    return apply(builtins.int, number)


def float(value: Any = 0.0) -> Any:
    return apply(builtins.float, as_number(value)) if is_traced(value) else builtins.float(value)


def bool(value: Any = False) -> Any:
    return truth_value(value)


def len(value: Any) -> Any:
    value = direct(value)
    if isinstance(value, Array) and value.ndim:
        return number_of(value.dims[0])
    if isinstance(value, TracedSequence):
        return value.length
    if isinstance(value, Records) and not isinstance(value, Record):
        return number_of(value.dims[0])
    if isinstance(value, ChosenText):
        return value.of_each(builtins.len)
    if isinstance(value, Counted):
        return extreme(builtins.max, 0, value.length) if value.size is None else value.size
    return builtins.len(value)


def max(*args: Any, **options: Any) -> Any:
    return _extreme(builtins.max, operator.gt, args, options)


def min(*args: Any, **options: Any) -> Any:
    return _extreme(builtins.min, operator.lt, args, options)


def _extreme(python: Any, better: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    if builtins.len(args) == 1 and not options:
        if isinstance(args[0], Array):
            function = np.max if python is builtins.max else np.min
            return call_function(function, (args[0],), {})
        if isinstance(args[0], Selected):
            return _extreme_selected(python.__name__, better, args[0])
        counted = _by_loop(args[0])
        if counted is not None:
            return best(python.__name__, counted, None)
    source = args[0] if builtins.len(args) == 1 else args
    if isinstance(source, Selected):
        source = selected(source)
    key = options.get("key")
    key = None if key is None else call(key)
    counted = as_counted(source)
    values: Any = source
    if counted is None or counted.size is not None:
        values = builtins.list(iterable(source))
        if not is_of_run(values, key):
            return python(values, **(options if key is None else options | {"key": key}))
    elif "default" in options:
        raise ConcreteValueError(
            f"{python.__name__}() with a default, of elements whose number only the run knows: ask "
            f"for it in an if statement before{at(user_origin())}"
        )
    return best(python.__name__, values, key)


def _extreme_selected(name: str, better: Any, source: Selected) -> Any:
    """``max(x for x in source if ...)``.

    Raises:
        ValueError: there is none, when the program runs.
    """
    taken = selected(source)
    if not isinstance(taken, StackedList):
        return (max if name == "max" else min)(taken)

    def fail() -> None:
        raise ValueError(f"{name}() iterable argument is empty")

    def step(index: Any, found: Any) -> Any:
        one = taken.at(index)
        return _chosen(or_(lambda: index == 0, lambda: better(one, found)), one, found)

    is_empty = truth(taken.length == 0)
    if isinstance(is_empty, Tensor):
        raise_in_branch(is_empty, fail)
    elif is_empty:
        fail()
    form = taken.forms[0]
    return for_stmt(Counted(taken.length, lambda i: i), step, form.value(zeros((), form.dtype)))


def _by_loop(source: Any) -> Counted | None:
    """A source that a loop of the graph is worth: more than a few elements by position."""
    counted = as_counted(source)
    if counted is None or counted.size is None:
        return counted
    is_staged = counted.size >= _FEWEST and is_traced(counted.item(0))
    return counted if is_staged else None  # values known while tracing stay Python's


_FEWEST = 16


def _chosen(test: Any, a: Any, b: Any) -> Any:
    """``a if test else b`` of two numbers."""
    found, a, b = truth(test), direct(a), direct(b)
    if not isinstance(found, Tensor):
        return a if found else b
    first, second = form_of(a), form_of(b)
    if first is None or second is None:
        raise TypeError(f"{a!r} and {b!r} cannot be compared{at(user_origin())}")
    form = joined(first, second)
    return form.value(select(found, form.tensor(a), form.tensor(b)))


def _giving(value: Any) -> Callable[[], Any]:
    return lambda: value


def sum(source: Any, /, start: Any = 0) -> Any:
    if isinstance(source, Array):
        # As Python adds them: in the dtype of the elements, bools as ints.
        dtype = np.int64 if source.tensor.dtype.is_bool else source.dtype
        total = call_function(np.sum, (source, 0), {"dtype": dtype})
        return total if type(start) is builtins.int and start == 0 else start + total
    if isinstance(source, Selected):
        return _sum_selected(source, start)
    counted = _by_loop(source)
    if counted is None:
        return builtins.sum(iterable(source), start)
    return for_stmt(counted, lambda one, total: total + one, start)


def _sum_selected(source: Selected, start: Any) -> Any:
    def step(item: Any, total: Any) -> Any:
        return if_exp(source.holds(item), lambda: total + source.element(item), lambda: total)

    return for_stmt(source.source, step, start)


def any(source: Any, /) -> Any:
    if isinstance(source, Array):
        return as_number(call_function(np.any, (source,), {}))
    counted = _by_loop(source)
    if counted is None:
        return or_(lambda: False, *(_giving(truth_value(v)) for v in iterable(source)))
    return for_stmt(counted, lambda one, _: truth_value(one), False, until=lambda found: found)


def all(source: Any, /) -> Any:
    if isinstance(source, Array):
        return as_number(call_function(np.all, (source,), {}))
    counted = _by_loop(source)
    if counted is None:
        return and_(lambda: True, *(_giving(truth_value(v)) for v in iterable(source)))
    return for_stmt(counted, lambda one, _: truth_value(one), True, until=not_)


def sorted(iterable: Any, /, *, key: Any = None, reverse: Any = False) -> Any:
    key = None if key is None else call(key)
    if isinstance(iterable, Array) and key is None and iterable.ndim == 1:
        made = iterable.copy()
        made.sort()
        return list_of(made[::-1] if reverse else made)
    if isinstance(iterable, Selected):
        iterable = selected(iterable)
    counted = as_counted(iterable)
    values = iterable
    if counted is None or counted.size is not None:
        source = iterable if counted is None else counted.items()
        values = builtins.list(source)
        if not is_of_run(values, key):
            return builtins.sorted(values, key=key, reverse=reverse)
    return in_order(values, key, reverse).listed()


def list(*iterable: Any) -> Any:
    source = [i.listed() if isinstance(i, TracedSequence) else i for i in iterable]
    return list_of(*source) if iterable else []


def tuple(*iterable: Any) -> Any:
    return builtins.tuple(*(builtins.list(i) for i in iterable))


def map(function: Any, *iterables: Any) -> Any:
    called = call(function)
    counted = [as_counted(i) for i in iterables]
    if builtins.any(c is not None and c.size is None for c in counted):
        items = zip(*iterables)
        if isinstance(items, Counted):
            return generator(lambda item: called(*item), items)
    return builtins.map(called, *iterables)


def filter(function: Any, iterable: Any) -> Any:
    return builtins.filter(function if function is None else call(function), iterable)


def iter(iterable: Any, *sentinel: Any) -> Any:
    counted = None if sentinel else as_counted(iterable)
    return builtins.iter(iterable, *sentinel) if counted is None else counted.items()


def iterable(value: Any) -> Any:
    counted = as_counted(value)
    return value if counted is None else counted.items()


def python_bool(value: Any, why: str) -> Any:
    """The truth of a condition of a statement that only Python can run."""
    try:
        return known(value)
    except ConcreteValueError as problem:
        raise ConcreteValueError(f"{problem} ({why})") from None


def python_iterable(value: Any, why: str) -> Any:
    """The iterable of a statement that only Python can run."""
    counted = as_counted(value)
    if counted is not None and counted.size is None:
        raise ConcreteValueError(
            f"The length of what this statement iterates is only known when the program runs, "
            f"which is not possible here: {why}{at(user_origin())}"
        )
    return iterable(value)


__all__ = [
    "dict_comp", "enumerate", "generator", "list_comp", "range", "reversed", "set_comp", "zip",
]  # fmt: skip
