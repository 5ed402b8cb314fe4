"""Functions that are made of several ops, and of which an eager call may be one program.

Run op by op such a function goes through large arrays once for each op and makes an array for each
step. Its program computes all steps in one pass where they fuse. `tracing.composed_calls` has the
programs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from treadle.core.composite_spec import CompositeTensor
from treadle.core.context import context
from treadle.core.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

NOT_RUN: Any = object()  # what `programs.run` gives where the function is to be called


class _Programs:
    """What gives the results of calls.

    Attributes:
        elements: from how many on of an argument `run` is asked: fewer are not worth a look.
        run: ``run(function, args, kwargs)`` gives the result by a program; `NOT_RUN` where the
            function is to be called.
    """

    def __init__(self) -> None:
        self.elements = 1001
        self.run: Callable[[Callable[..., Any], Any, Any], Any] = lambda *call: NOT_RUN


programs = _Programs()


def composed(function: F) -> F:
    """Decorator: eager calls with large arrays are one program each, once there is one.

    The function gives tensors for tensors and Python values, keeps nothing, and reads no variable
    but its arguments. What it does with Python values alone must depend on nothing else.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if context.recorder is None and (_is_large(args) or kwargs and _is_large(kwargs.values())):
            result = programs.run(function, args, kwargs)
            if result is not NOT_RUN:
                return result
        return function(*args, **kwargs)

    # What other values claim (`core.refusals.Claimed`) is found by the public function, which this
    # is: the one inside is not looked for.
    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    del call.__dict__["__wrapped__"]
    return call  # type: ignore[return-value]


def _is_large(values: Iterable[Any]) -> bool:
    """Whether one of some arguments has many elements."""
    least = programs.elements
    for value in values:
        kind = type(value)
        if kind is Tensor:
            if value._numpy().size >= least:
                return True
        elif kind is np.ndarray:
            if value.size >= least:
                return True
        elif kind is list or kind is tuple:
            if value and not isinstance(value[0], (int, float, str)) and _is_large(value):
                return True
        elif isinstance(value, CompositeTensor) and _is_large((value._elements(),)):
            return True
    return False
