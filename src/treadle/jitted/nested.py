"""Jitted functions among treadle's own: called with tensors, under tapes, inside other functions.

There arrays are tensors: the result is made of tensors, and gradients go through the call. Nothing
can be changed in place, because a tensor never changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core import nest
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.jitted.arguments import ARRAY, NUMBER, SCALAR, Bound
from treadle.jitted.arrays import Array, Scalar, Traced
from treadle.jitted.containers import Contents, have_two_places, put, received
from treadle.jitted.conversion import call as converted
from treadle.jitted.handed_out import check_copies, copies
from treadle.jitted.namespace import stand_in
from treadle.jitted.operations import call_ufunc
from treadle.jitted.optional_values import MaybeNone
from treadle.jitted.random_numbers import GENERATORS
from treadle.jitted.storage import Storage, assign_states, own_trace
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.numbers.python_numbers import SymbolicNumber
from treadle.ops.state import Variable


def call_with_tensors(jitted: Any, bound: Bound) -> Any:
    """The result of a call, with tensors in place of arrays and scalars."""
    if context.recorder is None:
        return _call_traced(jitted, bound)
    with own_trace(call_ufunc), copies():
        result = _spliced(jitted, bound)
        check_copies()
    return result


def _call_traced(jitted: Any, bound: Bound) -> Any:
    """An eager call: the program runs, and tapes see it as one operation."""
    plan, bound = jitted.plan_for(bound)
    if plan.written:
        raise _changes(jitted, bound, plan.written[0])
    operands, _ = bound.operands(())
    values = (operands[i] for i in plan.order)
    inputs = [v if isinstance(v, Variable) else convert_to_tensor(v) for v in values]
    found = plan.concrete.run([*inputs, *plan.concrete.graph.captures])
    made = plan.results.tensors(found, bound.leaves)
    _check_places(jitted, bound, plan.results.changed)
    return received(bound.given, plan.results.changed, made)


def _spliced(jitted: Any, bound: Bound) -> Any:
    """A call inside of a trace, which records the function's operations."""
    storages: dict[Storage, tuple[int, Any]] = {}
    values: list[Any] = []
    for i, (kind, leaf) in enumerate(zip(bound.kinds, bound.leaves, strict=True)):
        if kind.startswith(ARRAY):
            tensor = convert_to_tensor(leaf)
            storage = Storage(tensor, bound.names()[i])
            storages[storage] = i, tensor
            values.append(Array(storage))
        elif kind.startswith(NUMBER):
            values.append(leaf)
        elif kind == SCALAR:
            values.append(Scalar(convert_to_tensor(leaf)))
        else:
            values.append(stand_in(leaf) if isinstance(leaf, GENERATORS) else leaf)
    args, kwargs = nest.pack((bound.args, bound.kwargs), values)
    before = Contents((args, kwargs))
    result = converted(jitted.python_function)(*args, **kwargs)
    for storage, (i, tensor) in storages.items():
        if storage.tensor is not tensor:
            raise _changes(jitted, bound, i)
    assign_states()
    changed = before.changed()
    _check_values(result)
    _check_places(jitted, bound, changed)
    contents = nest.map_structure(_tensor_of, [holder for _, holder in changed])
    put(bound.given, [path for path, _ in changed], contents)
    return nest.map_structure(_tensor_of, result)


def _check_places(jitted: Any, bound: Bound, changed: Sequence[Any]) -> None:
    """Raise TypeError where a function changes lists or dicts of which one is two arguments."""
    if changed and have_two_places(bound.given):
        raise TypeError(
            f"{jitted!r} changes lists or dicts among its arguments, where one of them is at two "
            f"places: give it a copy at one, or call it without tensors{at(user_origin())}"
        )


def _check_values(result: Any) -> None:
    """Raise TypeError for a result that is None in some runs, which no tensor is."""
    if isinstance(result, MaybeNone):
        raise TypeError(
            "A jitted function gives a value in some runs and None in others, which a function of "
            f"tensors that calls it cannot do: give a number for None{at(user_origin())}"
        )
    if isinstance(result, list | tuple | dict):
        for part in result.values() if isinstance(result, dict) else result:
            _check_values(part)


def _tensor_of(value: Any) -> Any:
    if isinstance(value, Traced):
        return value.tensor
    return value.tensor() if type(value) is SymbolicNumber else value


def _changes(jitted: Any, bound: Bound, number: int) -> TypeError:
    return TypeError(
        f"{jitted!r} changes its argument {bound.names()[number]!r} in place, which a tensor does "
        "not allow: call it with ndarrays and without a tape, or have it work on a copy "
        f"({bound.names()[number]}.copy()){at(user_origin())}"
    )
