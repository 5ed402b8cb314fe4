"""The trampoline tried out on every kind of argument and result before a function relies on it.

That it works is kept on disk: a process with the same machine code, Python and NumPy does not try
it again.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core import locks
from treadle.core.object_cache import default_cache
from treadle.core.sources import sources
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor, from_array
from treadle.runtime.cpu.dispatch.call_plan import (
    AGAIN,
    BOOL,
    COMPLEX,
    DICT,
    DICT_RESULT,
    INPUT,
    INT,
    KNOWN,
    LIST,
    LIST_RESULT,
    NUMBER_WORDS,
    PACKED_RESULT,
    PLAIN,
    REAL,
    RESULT,
    SCALAR,
    SINGLE,
    TUPLE,
    TUPLE_RESULT,
    VIEW,
    CallPlan,
    Item,
    Output,
)
from treadle.runtime.cpu.dispatch.layout import CallLayout, call_layout, value_offset
from treadle.runtime.cpu.dispatch.native_type import Calls, native_type, probe_address
from treadle.runtime.cpu.program_entry import RAISED

KIND = "trampoline"  # of verdicts on disk
_SPEC = TensorSpec((4,), np.float32)
# Rounds of calls whose references are counted, at most: of a busy thread beside them more than ten
# were disturbed in a fifth of all processes.
_ROUNDS = 100
_modes = ctypes.c_int64(0)  # of the tried calls: other threads may trace, and a tape may watch


@locks.made_once
def works() -> bool:
    """Whether calls may go through the trampoline in this process."""
    layout = call_layout()
    if layout is None:
        return False
    key = _surroundings(layout)
    if default_cache().load(KIND, key) is not None:
        return True
    found = _try_all()
    if found:
        default_cache().store(KIND, key, b"")
    return found


def _surroundings(layout: CallLayout) -> str:
    """Names a verdict: all that the trampoline's machine code and what it touches depend on."""
    from treadle.runtime.cpu.jit import process_jit

    numpy = importlib.import_module("numpy._core._multiarray_umath").__file__
    status = None if numpy is None else os.stat(numpy)
    built = None if status is None else (numpy, status.st_size, status.st_mtime_ns)
    python = sys.version, getattr(sys, "abiflags", "")
    words = KIND, sources("runtime"), layout.offsets, python, np.__version__, built
    return process_jit().key(repr(words))


def _try_all() -> bool:
    """Whether every kind of call has the right results, references and errors."""
    try:
        for kind, hold in ((SINGLE, False), (LIST_RESULT, True), (TUPLE_RESULT, False),
                           (DICT_RESULT, True)):  # fmt: skip
            _try(kind, hold)
        for hold in (False, True):
            try_numbers(hold)
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
    def failed() -> BaseException:
        return ZeroDivisionError()

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
    calls = Calls(function, modes=_modes)
    calls.add(state, _plan(kind, hold, state))
    array = np.arange(4, dtype=np.float32)
    tensor, text = from_array(array), "".join(["a long enough ", "string"])
    good = ([-0.0, text, None], {"key": (int("12345678"),)})
    for value in (array, tensor, from_array(array.copy())):
        _check_result(kind, function(value, *good), array)
    assert not function.missed
    watched = (array, tensor, _SPEC, _SPEC.dtype.np_dtype, Tensor, np.ndarray, None, text, *good)
    _check_references(watched, lambda: _call_often(function, tensor, array, good))
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


def _check_references(watched: Sequence[object], call_often: Callable[[], None]) -> None:
    """Calls leave as many references to the objects as there were. A call that does not shows in
    every round; other threads, which compile meanwhile, take and drop references to None and to
    types in some. In the first round the calls make what they keep."""
    call_often()
    for _ in range(_ROUNDS):
        before = [sys.getrefcount(x) for x in watched]
        call_often()
        if [sys.getrefcount(x) for x in watched] == before:
            return
    raise AssertionError("reference counts")


def _tensor_in(result: Any) -> Tensor:
    if type(result) is dict:
        result = list(result.values())
    found: Tensor = result[0] if type(result) in (list, tuple) else result
    return found


def _check_reuse(call: Callable[[], Tensor]) -> None:
    """No tensor is used again that somebody has, or its array, or a weak reference to either."""
    looks: list[Callable[[Tensor], Any]] = [lambda t: t, lambda t: t._buffer]
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
    changed._buffer.flags.writeable = False
    del changed
    assert all(call()._buffer.flags.writeable for _ in range(4)), "used although changed"


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
    assert type(result._buffer) is np.ndarray and result._buffer.dtype is array.dtype
    assert (result._buffer == array + array).all()
    assert result._buffer.flags.owndata and result._buffer.base is None


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
    _modes.value = 1
    try:
        function.missed.clear()
        assert function(tensor, *good) is None and len(function.missed) == 1
    finally:
        _modes.value = 0
    function.missed.clear()


# -- numbers, and arrays that are changed in place -------------------------------------------------

_PAIR = TensorSpec((2,), np.float64)
_READ = np.zeros(2)  # what a function reads by name


def try_numbers(hold: bool) -> None:
    """Numbers and scalars in and out, an array that is written, one that is only read, keywords."""
    state = (ctypes.c_int64 * 1)()
    function: Any = native_type(_Callee)()
    calls = Calls(function, modes=_modes)
    calls.add(state, _plan_of_numbers(hold, state))
    v, w, x, n = np.ones(2), np.ones(2), 0.5, int("1234567890123")
    for count in (1, 2):
        result = function(v, [w, w], x, n=n)
        _check_numbers(result, v, x, n)
        assert v.tolist() == [1 + count * x, 1] and w.tolist() == [1, 1]
    assert not function.missed
    watched = (v, w, x, n, _READ, _PAIR.dtype.np_dtype, np.ndarray, np.float64, None, _known)
    result = None

    def call_often() -> None:
        held = [function(v, [w, w], x, n=n) for _ in range(50)]
        del held
        for _ in range(50):
            function(v, [w, w], x, n=n)

    _check_references(watched, call_often)
    _check_array_reuse(lambda: function(v, [w, w], x, n=n)["items"][6])
    _check_number_misses(function, v, w, x, n)
    calls.remove([state])


_known = object()


def _packed(items: tuple[Any, ...]) -> dict[str, Any]:
    return {"items": items}


def _plan_of_numbers(hold: bool, state: Any) -> CallPlan:
    code = probe_address(_Callee.__basicsize__, "probe_numbers")
    plan = CallPlan(3, code, ctypes.addressof(state), [0] * 10, hold, dict, ("n",))
    number = plan.array(0, 0, _PAIR, 2)
    items = plan.container(0, 1, LIST, 2)
    other = plan.array(items, 0, _PAIR, 9)
    plan.distinct()
    plan.same(items, 1, other, _PAIR, 9)
    offset = value_offset(float)
    assert offset is not None
    plan.boxed(0, 2, float, offset, 0)
    plan.integer(0, 3, 1)
    plan.captured(_READ)
    plan.written(number, 2)
    plan.hold()
    forms = (INT, np.int64), (REAL, np.float64), (SCALAR, np.float64), (BOOL, np.bool_)
    outputs = [
        Output(TensorSpec((), dtype), 3 + i, form, plan.words(NUMBER_WORDS))
        for i, (form, dtype) in enumerate((*forms, (COMPLEX, np.complex128)))
    ]
    outputs.append(Output(TensorSpec((1,), np.float64), 8, PLAIN))
    made = [Item(RESULT, i) for i in range(5)]
    made += [Item(INPUT, number), Item(RESULT, 5), Item(AGAIN, 6)]
    made += [Item(VIEW, number, np.transpose), Item(KNOWN, 0, _known)]
    plan.finish(outputs, PACKED_RESULT, (), made, _packed)
    return plan


def _check_numbers(result: Any, v: Any, x: float, n: int) -> None:
    assert type(result) is dict and list(result) == ["items"]
    numbers, others = result["items"][:5], result["items"][5:]
    assert numbers == (n, x, x + n, True, complex(x, n))
    assert [type(a) for a in numbers] == [int, float, np.float64, bool, complex]
    given, made, again, view, known = others
    assert given is v and again is made and view.base is v and known is _known
    assert type(made) is np.ndarray and made.tolist() == [x] and made.base is None


def _check_array_reuse(call: Callable[[], Any]) -> None:
    """No array is used again that somebody has, or a view of it, or a weak reference."""
    looks: list[Callable[[Any], Any]] = [lambda a: a, lambda a: a[:]]
    for look in looks:
        held = look(call())
        address = held.ctypes.data
        assert all(call().ctypes.data != address for _ in range(4)), "used while held"
        del held
    seen = weakref.ref(call())
    again = [call() for _ in range(4)]
    assert all(a is not seen() for a in again), "used while seen"
    del again
    first = id(call())
    assert first in [id(call()) for _ in range(4)], "never used again"


def _check_number_misses(function: Any, v: Any, w: Any, x: float, n: int) -> None:
    """Everything that the plan is not for is passed on."""
    fixed, both = np.ones(2), np.ones(3)
    fixed.flags.writeable = False
    bad: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((v, [w, w], x), {}),
        ((v, [w, w], x, n), {}),
        ((v, [w, w], x), {"m": n}),
        ((v, [w, w], x), {"n": n, "m": n}),
        ((v, [w, w], np.float64(x)), {"n": n}),
        ((v, [w, w], 1), {"n": n}),
        ((v, [w, w], x), {"n": 1 << 63}),
        ((v, [w, w], x), {"n": True}),
        ((v, [w, w], x), {"n": 1.0}),
        ((v, [w, w.copy()], x), {"n": n}),
        ((v, [v, v], x), {"n": n}),
        ((fixed, [w, w], x), {"n": n}),
        ((_READ, [w, w], x), {"n": n}),
        ((both[1:], [both[:2]] * 2, x), {"n": n}),
        ((from_array(v), [w, w], x), {"n": n}),
        ((v[::-1], [w, w], x), {"n": n}),
        ((np.ones(3), [w, w], x), {"n": n}),
    ]
    for args, kwargs in bad:
        function.missed.clear()
        assert function(*args, **kwargs) is None and len(function.missed) == 1, (args, kwargs)
