"""Statements that only Python can run: their conditions must not be tensors of a graph."""

from __future__ import annotations

from typing import Any

from treadle.autograph.errors import StagingTypeError
from treadle.autograph.operators.values import is_staged
from treadle.core.origin import at, user_origin


def python_bool(value: Any, why: str) -> Any:
    """`value`, if it is Python's; StagingTypeError saying `why` for a symbolic tensor."""
    if is_staged(value):
        raise StagingTypeError(_message("condition", why))
    return value


def python_iterable(value: Any, why: str) -> Any:
    """`value`, if Python can iterate it; StagingTypeError saying `why` for a symbolic tensor."""
    if is_staged(value):
        raise StagingTypeError(_message("iterable", why))
    return value


def _message(what: str, why: str) -> str:
    place = at(user_origin())
    return f"The {what} of this statement is a tensor, which is not possible here: {why}{place}"
