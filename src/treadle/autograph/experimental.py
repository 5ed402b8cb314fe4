"""``autograph.experimental``: names as in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.autograph.operators.calls import MARK


def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """Mark a function to be run as it is, never converted. Usable as a decorator.

    Its Python conditions must then be Python's: a symbolic tensor in one is an error.
    """
    if func is None:
        return do_not_convert
    function = getattr(func, "__func__", func)
    code = getattr(function, "__code__", None)
    if code is not None:
        setattr(function, MARK, code)
    return func


__all__ = ["do_not_convert"]
