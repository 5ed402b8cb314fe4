"""The trampoline tried out on every kind of argument and result before a function relies on it."""

from __future__ import annotations

import ctypes
import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.context import modes
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor, from_array
from treadle.runtime.cpu.program_entry import RAISED
from treadle.runtime.dispatch.layout import call_layout
from treadle.runtime.dispatch.native_type import Calls, native_type, probe_address
from treadle.runtime.dispatch.plans import (
    DICT,
    DICT_RESULT,
    LIST,
    LIST_RESULT,
    SINGLE,
    TUPLE,
    TUPLE_RESULT,
    CallPlan,
    Output,
)

_SPEC = TensorSpec((4,), np.float32)


@functools.cache
def works() -> bool:
    """Whether calls may go through the trampoline in this process."""
    if call_layout() is None:
        return False
    try:
        for kind, hold in ((SINGLE, False), (LIST_RESULT, True), (TUPLE_RESULT, False),
                           (DICT_RESULT, True)):  # fmt: skip
            _try(kind, hold)
    except Exception:  # whatever is odd, calls take the portable path
        return False
    return True


class _Callee:
    """A Python class to derive from; records the calls that no plan takes."""

    def __init__(self) -> None:
        self.missed: list[Any] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.missed.append((args, kwargs))


def _plan(kind: int, hold: bool, state: Any) -> CallPlan:
    def failed() -> None:
        raise ZeroDivisionError

    plan = CallPlan(3, probe_address(_Callee.__basicsize__), ctypes.addressof(state), [0, 0], hold,
                    failed)  # fmt: skip
    plan.tensor(0, 0, _SPEC, 0)
    items = plan.container(0, 1, LIST, 3)
    plan.float(items, 0, -0.0)
    plan.value(items, 1, "a long enough string", by_identity=False)
    plan.value(items, 2, None, by_identity=True)
    named = plan.container(0, 2, DICT, 1)
    inner = plan.container(named, "key", TUPLE, 1)
    plan.value(inner, 0, 12345678, by_identity=False)
    plan.finish([Output(_SPEC, 1)], kind, ["name"] if kind == DICT_RESULT else ())
    return plan


def _try(kind: int, hold: bool) -> None:
    state = (ctypes.c_int64 * 1)()
    function: Any = native_type(_Callee)()
    calls = Calls(function)
    calls.add(state, _plan(kind, hold, state))
    array = np.arange(4, dtype=np.float32)
    tensor, text = from_array(array), "".join(["a long enough ", "string"])
    good = ([-0.0, text, None], {"key": (int("12345678"),)})
    for value in (array, tensor, from_array(array.copy())):
        _check_result(kind, function(value, *good), array)
    assert not function.missed
    watched = (array, tensor, _SPEC, _SPEC.dtype.np_dtype, Tensor, np.ndarray, None, text, *good)
    _call_often(function, tensor, array, good)
    before = [sys.getrefcount(x) for x in watched]
    _call_often(function, tensor, array, good)
    assert [sys.getrefcount(x) for x in watched] == before, "reference counts"
    _check_reuse(lambda: _tensor_in(function(tensor, *good)))
    _check_misses(function, tensor, array, good)
    state[0] = RAISED
    try:
        function(tensor, *good)
    except ZeroDivisionError:
        pass
    else:
        raise AssertionError("no exception")
    calls.remove([state])
    function(tensor, *good)
    assert len(function.missed) == 1


def _call_often(function: Any, tensor: Tensor, array: Any, good: tuple[Any, Any]) -> None:
    """Calls whose results are dropped at once, and calls whose results are held for a while."""
    for _ in range(50):
        function(tensor, *good)
        function(array, *good)
    held = [function(tensor, *good) for _ in range(50)]
    del held


def _tensor_in(result: Any) -> Tensor:
    if type(result) is dict:
        result = list(result.values())
    found: Tensor = result[0] if type(result) in (list, tuple) else result
    return found


def _check_reuse(call: Callable[[], Tensor]) -> None:
    """No tensor is used again that somebody has, or its array, or a weak reference to either."""
    looks: list[Callable[[Tensor], Any]] = [lambda t: t, lambda t: t._array]
    for look in looks:
        held = look(call())
        assert all(look(call()) is not held for _ in range(4)), "used while held"
        del held  # the next result shall be this one
    for look in looks:
        seen = weakref.ref(look(call()))
        again = [look(call()) for _ in range(4)]
        assert all(x is not seen() for x in again), "used while seen"
        del again
    changed = call()
    changed._array.flags.writeable = False
    del changed
    assert all(call()._array.flags.writeable for _ in range(4)), "used although changed"


def _check_result(kind: int, result: Any, array: Any) -> None:
    if kind == LIST_RESULT:
        assert type(result) is list and len(result) == 1, result
        result = result[0]
    elif kind == TUPLE_RESULT:
        assert type(result) is tuple and len(result) == 1, result
        result = result[0]
    elif kind == DICT_RESULT:
        assert type(result) is dict and list(result) == ["name"], result
        result = result["name"]
    assert type(result) is Tensor and result._spec is _SPEC, result
    assert type(result._array) is np.ndarray and result._array.dtype is array.dtype
    assert (result._array == array + array).all()
    assert result._array.flags.owndata and result._array.base is None


def _check_misses(function: Any, tensor: Tensor, array: Any, good: tuple[Any, Any]) -> None:
    """Everything that differs in one place is passed on, with its arguments."""
    items, named = good
    bad: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((tensor, [0.0, *items[1:]], named), {}),
        ((tensor, [-0.0, items[1] + "x", None], named), {}),
        ((tensor, [-0.0, items[1], 0], named), {}),
        ((tensor, [*items, None], named), {}),
        ((tensor, tuple(items), named), {}),
        ((tensor, items, {"other": (12345678,)}), {}),
        ((tensor, items, {"key": (12345679,)}), {}),
        ((tensor, items, {"key": (12345678,), "more": 1}), {}),
        ((tensor, items), {}),
        ((tensor, items, named, 1), {}),
        ((tensor, items), {"named": named}),
        ((tensor, items, named), {"more": 1}),
        ((from_array(np.zeros(3, np.float32)), items, named), {}),
        ((array.astype(np.float64), items, named), {}),
        ((array[::-1], items, named), {}),
        ((array.reshape(2, 2), items, named), {}),
        ((1.0, items, named), {}),
    ]
    for args, kwargs in bad:
        function.missed.clear()
        assert function(*args, **kwargs) is None
        seen_args, seen_kwargs = function.missed[0]
        assert all(a is b for a, b in zip(seen_args, args, strict=True))
        assert seen_kwargs == kwargs
    modes.value += 1
    try:
        function.missed.clear()
        assert function(tensor, *good) is None and len(function.missed) == 1
    finally:
        modes.value -= 1
    function.missed.clear()
