"""Builtin functions of numbers that also take tensors of the graph."""

from __future__ import annotations

import builtins
from typing import Any

from treadle.autograph.operators.values import is_staged, truth
from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.ops.elementwise import casting
from treadle.ops.numbers.python_numbers import apply, is_symbolic_number


def abs(value: Any) -> Any:
    return builtins.abs(value)


def int(value: Any = 0, *args: Any) -> Any:
    """``int``; an int32 tensor, rounded towards zero."""
    if is_symbolic_number(value):
        return apply(builtins.int, value, *args)
    if not is_staged(value):
        return builtins.int(value, *args)
    _only_numbers("int", args)
    return casting.cast(value, dtypes.int32)


def float(value: Any = 0.0) -> Any:
    """``float``; a float32 tensor."""
    if is_symbolic_number(value):
        return apply(builtins.float, value)
    return casting.cast(value, dtypes.float32) if is_staged(value) else builtins.float(value)


def bool(value: Any = False) -> Any:
    """``bool``; a bool scalar of the graph."""
    if is_symbolic_number(value):
        return apply(builtins.bool, value)
    return truth(value, "bool") if is_staged(value) else builtins.bool(value)


def _only_numbers(name: str, args: tuple[Any, ...]) -> None:
    if args:
        raise TypeError(f"{name}() of a tensor takes no base{at(user_origin())}")
