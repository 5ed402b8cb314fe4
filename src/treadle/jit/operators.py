"""What the generated code of a jitted function calls: AutoGraph's operators with NumPy's meaning.

The text that AutoGraph generates is the same as for `td.function`. There an assignment to an item
gives a variable a new tensor; here it changes the array, for all that see it.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from treadle.autograph import operators as python_operators
from treadle.autograph.operators.items import Path, path
from treadle.autograph.operators.outer import outer
from treadle.autograph.operators.places import attribute, item
from treadle.autograph.operators.undefined import Undefined, defined, undefined
from treadle.core import errors
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jit import iteration
from treadle.jit.arrays import Array, ConcreteValueError, Traced, as_number, is_traced, number_of
from treadle.jit.control import Loop, NotStaged, branch
from treadle.jit.conversion import call
from treadle.jit.forms import form_of, joined
from treadle.jit.iteration import Counted, as_counted, enumerate, range, reversed, zip
from treadle.ops.comparison import not_equal
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.creation import zeros
from treadle.ops.logic import logical_not
from treadle.ops.python_numbers import (
    SymbolicNumber,
    ValueNeededError,
    apply,
    symbolic_number,
)
from treadle.ops.selection import where as select
from treadle.ops.shaping import reshape_to

State = tuple[Any, ...]
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
# What a body raises that needs a value which only the run has: the loop stays Python's.
_CONCRETE = (ConcreteValueError, ValueNeededError, NotStaged, errors.OperatorNotAllowedInGraphError)


# -- truth ---------------------------------------------------------------------------------------


def truth(value: Any) -> Any:
    """``bool(value)``: a Python bool, or a bool tensor where only the run knows it."""
    if isinstance(value, Tensor):
        return value
    if type(value) is SymbolicNumber:
        tensor = value.tensor()
    elif isinstance(value, Traced):
        tensor = value.tensor
    else:
        return builtins.bool(value)
    if tensor.ndim:
        if builtins.any(d != 1 for d in tensor.dims):
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() "
                f"or a.all(){at(user_origin())}"
            )
        tensor = reshape_to(tensor, ())
    return tensor if tensor.dtype.is_bool else not_equal(tensor, zeros((), tensor.dtype))


def not_(value: Any) -> Any:
    found = truth(value)
    return symbolic_number(logical_not(found)) if isinstance(found, Tensor) else not found


def and_(first: Callable[[], Any], *others: Callable[[], Any]) -> Any:
    """``first() and ...``: later operands are evaluated only if the earlier ones are true."""
    value = first()
    for i, other in builtins.enumerate(others):
        test = truth(value)
        if isinstance(test, Tensor):
            rest = others[i:]
            return if_exp(value, lambda rest=rest: _boolean(and_(*rest)), lambda: False)  # type: ignore[misc]
        if not test:
            return value
        value = other()
    return value


def or_(first: Callable[[], Any], *others: Callable[[], Any]) -> Any:
    """``first() or ...``: later operands are evaluated only if the earlier ones are false."""
    value = first()
    for i, other in builtins.enumerate(others):
        test = truth(value)
        if isinstance(test, Tensor):
            rest = others[i:]
            return if_exp(value, lambda: True, lambda rest=rest: _boolean(or_(*rest)))  # type: ignore[misc]
        if test:
            return value
        value = other()
    return value


def _boolean(value: Any) -> Any:
    found = truth(value)
    return symbolic_number(found) if isinstance(found, Tensor) else found


def in_(item: Any, container: Any) -> Any:
    if isinstance(container, Array):
        return (container == item).any()
    if isinstance(container, list | tuple | builtins.range) and is_traced([item, *container]):
        return or_(lambda: False, *(lambda e=e: e == item for e in container))  # type: ignore[misc]
    return item in container


# -- branches ------------------------------------------------------------------------------------


def if_stmt(
    test: Any, then: Callable[..., Any], otherwise: Callable[..., Any], *state: Any,
    places: Sequence[Any] = (), filled: bool = False,
) -> Any:  # fmt: skip
    """``then(*state)`` or ``otherwise(*state)``; both are traced where `test` is traced."""
    found = truth(test)
    if not isinstance(found, Tensor):
        return then(*state) if found else otherwise(*state)
    kept = [p for p in places if p is not None]
    before = [p.get() for p in kept]

    def side(run: Callable[..., Any]) -> Callable[[], Any]:
        def traced() -> Any:
            try:
                result = run(*state)
                return result, tuple(p.get() for p in kept)
            finally:
                for place, value in builtins.zip(kept, before, strict=True):
                    place.set(value)

        return traced

    result, placed = branch(found, side(then), side(otherwise), state)
    for place, value in builtins.zip(kept, placed, strict=True):
        place.set(value)
    return result


def if_exp(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    found = truth(test)
    if not isinstance(found, Tensor):
        return then() if found else otherwise()
    return branch(found, then, otherwise, ())


# -- loops ---------------------------------------------------------------------------------------


class _Body:
    """A loop's body as a function from state to state, attributes and items included."""

    def __init__(self, body: Callable[..., Any], skip: int, places: Sequence[Any]) -> None:
        code = body.__code__
        self.body = body
        self.places = [p for p in places if p is not None]
        self.count = code.co_argcount - skip

    def begin(self, state: State) -> State:
        return (*state, *(p.get() for p in self.places))

    def step(self, state: State, *item: Any) -> State:
        self.set_places(state)
        result = self.body(*item, *state[: self.count])
        values = (result,) if self.count == 1 else tuple(result) if self.count else ()
        return (*values, *(p.get() for p in self.places))

    def set_places(self, state: State) -> None:
        for place, value in builtins.zip(self.places, state[self.count :], strict=True):
            place.set(value)

    def end(self, state: State) -> Any:
        self.set_places(state)
        if not self.count:
            return None
        return state[0] if self.count == 1 else tuple(state[: self.count])


def while_stmt(
    test: Callable[..., Any], body: Callable[..., Any], *state: Any,
    until: Callable[..., Any] | None = None, places: Sequence[Any] = (),
    options: Mapping[str, Any] = NO_OPTIONS,
) -> Any:  # fmt: skip
    """Repeat ``state = body(*state)`` while ``test(*state)`` and not ``until(*state)``."""
    loop = _Body(body, 0, places)
    count = loop.count

    def proceed(values: State) -> Any:
        loop.set_places(values)
        own = values[:count]
        if until is None:
            return truth(test(*own))
        return truth(and_(lambda: not_(until(*own)), lambda: test(*own)))

    values = loop.begin(state)
    steps = 0
    while True:
        go = proceed(values)
        if not isinstance(go, Tensor) and not go:
            return loop.end(values)
        if isinstance(go, Tensor) or steps < _PEELED:
            try:
                return loop.end(_staged(proceed, loop.step, values))
            except _CONCRETE as problem:
                if isinstance(go, Tensor):
                    raise _explained(problem) from None
        elif steps > _MOST_UNROLLED:
            raise _too_long()
        loop.set_places(values)
        values = loop.step(values)
        steps += 1


def _staged(proceed: Any, step: Any, values: State) -> State:
    return Loop(lambda s: convert_to_tensor(proceed(s)), step, values).run()


def for_stmt(
    iterable: Any, body: Callable[..., Any], *state: Any,
    until: Callable[..., Any] | None = None, places: Sequence[Any] = (),
    options: Mapping[str, Any] = NO_OPTIONS,
) -> Any:  # fmt: skip
    """``state = body(item, *state)`` for each item, until ``until(*state)``."""
    loop = _Body(body, 1, places)
    values = loop.begin(state)
    counted = as_counted(iterable)
    if counted is None:
        return loop.end(_python_for(loop, iterable, values, until))
    size = counted.size
    if size is not None and iteration.is_short(size):
        with iteration.unrolled(size):
            return loop.end(_python_for(loop, counted.items(), values, until))
    try:
        return loop.end(_counted_for(loop, counted, values, until))
    except _CONCRETE as problem:
        if size is None:
            raise _explained(problem) from None
        if size > _MOST_UNROLLED:
            raise _too_long() from problem
    return loop.end(_python_for(loop, counted.items(), values, until))


def _counted_for(loop: _Body, counted: Counted, values: State, until: Any) -> State:
    """The loop in the graph, over positions 0, 1, 2 and so on."""

    def proceed(state: State) -> Any:
        index, *rest = state
        more = index < counted.length
        if until is None:
            return truth(more)
        loop.set_places(tuple(rest))
        own = rest[: loop.count]
        return truth(and_(lambda: not_(until(*own)), lambda: more))

    def step(state: State) -> State:
        index, *rest = state
        position = symbolic_number(index.tensor(), (0, _last(counted.size)))
        return (index + 1, *loop.step(tuple(rest), counted.item(position)))

    return _staged(proceed, step, (0, *values))[1:]


def _last(size: Any) -> Any:
    """The last position of so many, or of any number where that is not known."""
    return builtins.max(size - 1, 0) if size is not None else 2**62


def _python_for(loop: _Body, iterable: Any, values: State, until: Any) -> State:
    """Iterations one by one; from the one in which a `break` depends on array values, guarded."""
    for one in iterable:
        if until is not None:
            loop.set_places(values)
            stop = truth(until(*values[: loop.count]))
            if isinstance(stop, Tensor):
                kept = values
                values = branch(
                    stop, lambda kept=kept: kept,  # type: ignore[misc]
                    lambda kept=kept, one=one: loop.step(kept, one), values,  # type: ignore[misc]
                )  # fmt: skip
                continue
            if stop:
                break
        values = loop.step(values, one)
    return values


def _explained(problem: Exception) -> Exception:
    return NotStaged(
        f"A loop that depends on array values cannot become one of the graph: {problem}"
    )


def _too_long() -> Exception:
    return NotStaged(
        f"A loop of more than {_MOST_UNROLLED} iterations needs Python values of its variables in "
        f"every iteration, and is too long to be written out{at(user_origin())}"
    )


_PEELED = 2
_MOST_UNROLLED = 2000


# -- items ---------------------------------------------------------------------------------------


def set_item(target: Any, key: Any, value: Any, owner: Any = None) -> Any:
    """``target[key] = value``; gives the target, which is the same object."""
    if isinstance(key, Path):
        holder = target
        for inner in key[:-1]:
            holder = holder[inner]
        set_item(holder, key[-1], value)
        return target
    if not isinstance(target, Array):
        _check_container(target, key, value)
        return python_operators.set_item(target, key, value)
    target[key] = value
    return target


def _check_container(target: Any, key: Any, value: Any) -> None:
    if isinstance(target, np.ndarray) and is_traced([key, value]):
        raise TypeError(
            "This array was made by a function that td.jit does not know, and cannot take values "
            f"that are only known when the program runs: make it with np.array(...){at(user_origin())}"
        )
    if is_traced(key):
        raise ConcreteValueError(
            f"a {type(target).__name__} takes only Python values as a key{at(user_origin())}"
        )


def update_item(target: Any, key: Any, symbol: str, value: Any, owner: Any = None) -> Any:
    """``target[key] += value`` or another assigning operator; gives the target."""
    holder, last = target, key
    if isinstance(key, Path):
        for inner in key[:-1]:
            holder = holder[inner]
        last = key[-1]
    set_item(holder, last, _UPDATES[symbol](holder[last], value))
    return target


def set_attribute_item(owner: Any, name: str, key: Any, value: Any) -> None:
    set_item(getattr(owner, name), key, value)


def update_attribute_item(owner: Any, name: str, key: Any, symbol: str, value: Any) -> None:
    update_item(getattr(owner, name), key, symbol, value)


_UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul,
    "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor, "<<=": operator.ilshift,
    ">>=": operator.irshift,
}  # fmt: skip


# -- builtins ------------------------------------------------------------------------------------


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
    return _boolean(value)


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
        array = args[0]
        return array.max() if python is builtins.max else array.min()
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
    forms = form_of(a), form_of(b)
    if forms[0] is None or forms[1] is None:
        raise TypeError(f"{a!r} and {b!r} cannot be compared{at(user_origin())}")
    form = joined(*forms)
    return form.value(select(found, form.tensor(a), form.tensor(b)))


def sum(iterable: Any, /, start: Any = 0) -> Any:
    if isinstance(iterable, Array):
        total = iterable.sum(axis=0)
        return total if type(start) is builtins.int and start == 0 else start + total
    counted = as_counted(iterable)
    if counted is None or counted.size is not None:
        return builtins.sum(iterable if counted is None else counted.items(), start)
    return for_stmt(counted, lambda one, total: total + one, start)


def any(iterable: Any, /) -> Any:
    if isinstance(iterable, Array):
        return iterable.any()
    return or_(lambda: False, *(lambda v=v: v for v in iterable))  # type: ignore[misc]


def all(iterable: Any, /) -> Any:
    if isinstance(iterable, Array):
        return iterable.all()
    return and_(lambda: True, *(lambda v=v: v for v in iterable))  # type: ignore[misc]


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


def list_comp(element: Callable[..., Any], source: Any, *conditions: Any) -> Any:
    """``[element(x) for x in source if condition(x)]``, one element after the other."""
    found = []
    for one in iterable(source):
        if builtins.all(_known(c(one)) for c in conditions):
            found.append(element(one))
    return found


def _known(value: Any) -> Any:
    found = truth(value)
    if isinstance(found, Tensor):
        raise ConcreteValueError(
            f"the length of a list would depend on array values{at(user_origin())}"
        )
    return found


def python_bool(value: Any) -> Any:
    return _known(value)


def python_iterable(value: Any) -> Any:
    return iterable(value)


def __getattr__(name: str) -> Any:
    """Operators that mean the same for arrays."""
    return getattr(python_operators, name)


__all__ = [
    "Undefined", "attribute", "call", "defined", "enumerate", "item", "outer", "path", "range",
    "reversed", "undefined", "zip",
]  # fmt: skip
