"""``autograph.experimental``: names as in TensorFlow."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterable
from typing import Any

from treadle.autograph.config import MARK
from treadle.autograph.loop_options import set_loop_options


class Feature(enum.Enum):
    """Optional parts of AutoGraph in TensorFlow. treadle's conversion always has these parts."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"

    @classmethod
    def all(cls) -> tuple[Feature, ...]:
        """All features."""
        return tuple(cls)

    @classmethod
    def all_but(cls, exclude: Feature | Iterable[Feature]) -> tuple[Feature, ...]:
        """All features except one or several, and except ALL."""
        left_out = {exclude} if isinstance(exclude, Feature) else set(exclude)
        return tuple(set(cls) - left_out - {cls.ALL})


def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """Mark a function to be run as it is, never converted. Usable as a decorator.

    Its Python conditions must then be Python's: a symbolic tensor in one is an error. That holds
    for the functions that it calls, too. Of other callables a function around them is returned.
    """
    if func is None:
        return do_not_convert
    marked = getattr(func, "__func__", func)
    if isinstance(getattr(func, "python_function", None), types.FunctionType):  # a td.function
        marked = func.python_function  # type: ignore[attr-defined]
    if not isinstance(marked, types.FunctionType):
        inner = func

        def marked(*args: Any, **kwargs: Any) -> Any:
            return inner(*args, **kwargs)

        func = marked
    setattr(marked, MARK, marked.__code__)
    return func


def set_element_type(list_: Any, dtype: Any, shape: Any = None) -> None:
    """Tell the type of the elements of an empty list that grows in a loop or branch of a graph.

    Only needed where an element is read before the first one is appended.

    Args:
        dtype, shape: of the elements; None for dims that differ.
    """
    from treadle.autograph.operators import lists

    lists.set_element_type(list_, dtype, shape)


__all__ = ["Feature", "do_not_convert", "set_element_type", "set_loop_options"]
