"""Calls that may reach the user's own code."""

from __future__ import annotations

import contextlib
import dis
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.autograph import config, logs, operators
from treadle.autograph.errors import SourceNotFoundError
from treadle.autograph.memory import per_code
from treadle.core.context import context
from treadle.core.origin import LINE_MAPS
from treadle.core.trials import current_trial, refuse
from treadle.ops.control.control_flow import set_conversion
from treadle.ops.numbers.number_tables import operation_of
from treadle.ops.numbers.python_numbers import apply


def call(target: Any) -> Any:
    """The function to call instead of `target`: its converted form, or itself if it needs none.

    Functions, methods, partials and objects with a ``__call__`` of the user's are converted;
    classes, libraries and built-in functions are not. Functions of `math` take symbolic numbers.
    """
    if current_trial() is not None:
        _check(target)
    if isinstance(target, types.FunctionType):
        return convert_function(target)
    if isinstance(target, types.MethodType):
        return _convert_method(target)
    if isinstance(target, functools.partial):
        inner = call(target.func)
        if inner is target.func:
            return target
        return functools.partial(inner, *target.args, **target.keywords)
    if isinstance(target, types.BuiltinFunctionType):
        return _of_numbers(target)
    if isinstance(target, type):
        return target
    method = getattr(type(target), "__call__", None)  # noqa: B004
    if isinstance(method, types.FunctionType) and not config.is_library_object(method):
        return call(types.MethodType(method, target))
    return target


def _check(target: Any) -> None:
    """Refuse that a trial calls a function which may have side effects."""
    from treadle.autograph.analysis.effects import refusal_of_call

    reason = refusal_of_call(target)
    if reason is not None:
        refuse(reason)


def _of_numbers(function: Any) -> Any:
    """A function of `math` that takes numbers which only the running program knows."""
    if function.__module__ not in ("math", "cmath") or context.recorder is None:
        return function
    return functools.partial(apply, function) if operation_of(function) is not None else function


def _convert_method(method: types.MethodType) -> Any:
    function = method.__func__
    if not isinstance(function, types.FunctionType):
        return method
    made = convert_function(function)
    return method if made is function else types.MethodType(made, method.__self__)


def convert_function(function: types.FunctionType) -> Callable[..., Any]:
    """A Python function's converted form, or itself where it must not or need not be converted."""
    code = function.__code__
    if (
        config.is_library_object(function)
        or getattr(function, config.MARK, None) is code
        or code.co_filename in LINE_MAPS
        or code.co_flags & _GENERATORS
        or not (_may_branch(code) or _may_call(code) or _may_update(code))
        and not _may_read_array(function)
    ):
        return function
    from treadle.autograph.twins import twin

    try:
        return twin(function, operators)
    except SourceNotFoundError as error:
        if _may_branch(code) or _may_update(code):
            raise
        logs.tell(logs.DECISIONS, f"{code.co_name} runs as it is: {error}")
        return function


# CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR: run as they are; a tensor in a condition inside
# gives an error of its own.
_GENERATORS = 0x20 | 0x80 | 0x200


_TRUTH = frozenset({"FOR_ITER", "UNARY_NOT", "TO_BOOL", "CONTAINS_OP"})


@per_code
def _may_branch(code: types.CodeType) -> bool:
    """Whether the code has conditions or loops, in nested functions too."""
    for i in dis.get_instructions(code):
        if "JUMP" in i.opname and "_IF_" in i.opname:
            return True
        # Python 3.13 drops double negations: a comparison then gives a bool itself.
        if i.opname in _TRUTH or i.argrepr.startswith("bool("):
            return True
    return any(isinstance(c, types.CodeType) and _may_branch(c) for c in code.co_consts)


@per_code
def _may_update(code: types.CodeType) -> bool:
    """Whether the code assigns items, which may be a tensor's."""
    if any(i.opname in ("STORE_SUBSCR", "STORE_SLICE") for i in dis.get_instructions(code)):
        return True
    return any(isinstance(c, types.CodeType) and _may_update(c) for c in code.co_consts)


def _may_read_array(function: types.FunctionType) -> bool:
    """Whether the function may read items of an array that it finds by name."""
    code = function.__code__
    if not _may_read(code):
        return False
    found = [function.__globals__.get(name) for name in code.co_names]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not assigned yet
            found.append(cell.cell_contents)
    return any(isinstance(value, np.ndarray) for value in found)


@per_code
def _may_read(code: types.CodeType) -> bool:
    """Whether the code itself reads items."""
    reading = ("BINARY_SUBSCR", "BINARY_SLICE")
    return any(i.opname.startswith(reading) for i in dis.get_instructions(code))


@per_code
def _may_call(code: types.CodeType) -> bool:
    if any(i.opname.startswith("CALL") for i in dis.get_instructions(code)):
        return True
    return any(isinstance(c, types.CodeType) and _may_call(c) for c in code.co_consts)


set_conversion(call)
