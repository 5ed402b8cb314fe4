"""Exceptions that a program raises when it runs: ``raise`` under a condition of the graph.

What the exception says may depend on values that only the run has, for which its text has marks
(`marks`).
"""

from __future__ import annotations

import copy
import dis
import os
import sys
from collections.abc import Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.spec import Spec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.control.marks import PACKAGE, with_values
from treadle.ops.registry import Op, register, run


def is_raised_by_user(error: BaseException, traced_by: str) -> bool:
    """Whether a ``raise`` statement of the user's code raised an exception, which no ``try`` of
    that code would catch.

    Args:
        traced_by: the module whose frame the code that is traced was called from.
    """
    found, after = error.__traceback__, None
    while found is not None:
        code = found.tb_frame.f_code
        if not code.co_filename.startswith(PACKAGE) and _is_tried(code, found.tb_lasti):
            return False
        found, after = found.tb_next, found
    return after is not None and _raises(after) and not _is_in_try(traced_by)


def is_raise_statement(error: BaseException) -> bool:
    """Whether a ``raise`` statement of the user's code raised an exception."""
    found = error.__traceback__
    while found is not None and found.tb_next is not None:
        found = found.tb_next
    return found is not None and _raises(found)


def _is_in_try(traced_by: str) -> bool:
    """Whether the user's code that is being traced is in a ``try`` statement now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != traced_by:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) and _is_tried(code, frame.f_lasti):
            return True
        frame = frame.f_back
    return False


def _raises(last: TracebackType) -> bool:
    code = last.tb_frame.f_code
    if code.co_filename.startswith((PACKAGE, os.path.dirname(np.__file__))):
        return False
    return dis.opname[code.co_code[last.tb_lasti]] == "RAISE_VARARGS"


def _is_tried(code: CodeType, position: int) -> bool:
    entries: Any = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    return any(e.start <= position < e.end for e in entries)


class Raised:
    """An exception of which parts are only known when the program runs.

    Attributes:
        error: the exception as it was raised while tracing.
        template: its arguments, with a `_Value` for each that the run knows.
    """

    def __init__(self, error: BaseException, shown: Sequence[Any]) -> None:
        self.error = error.with_traceback(None)
        self.tensors: list[Tensor] = []
        self.template = [self._argument(a, shown) for a in error.args]

    def _argument(self, value: Any, shown: Sequence[Any]) -> Any:
        tensor = _tensor_of(value)
        if tensor is not None:
            return self._value(value, tensor, "")
        if not isinstance(value, str):
            return value
        parts = with_values(value, shown, lambda v, spec: self._value(v, _tensor_of(v), spec))
        return value if parts is None else _Text(parts)

    def _value(self, value: Any, tensor: Any, spec: str) -> _Value:
        self.tensors.append(tensor)
        kind = getattr(value, "kind", None)
        return _Value(len(self.tensors) - 1, spec, isinstance(kind, type))

    def made(self, arrays: Sequence[NDArray]) -> BaseException:
        """The exception, with the values that the run has."""
        if not self.tensors:
            return self.error.with_traceback(None)
        new = copy.copy(self.error)
        new.args = tuple(a.of(arrays) if hasattr(a, "of") else a for a in self.template)
        return new


class _Value:
    """A value of the run: a Python number, a NumPy scalar or an array."""

    def __init__(self, number: int, spec: str, is_number: bool) -> None:
        self.number, self.spec, self.is_number = number, spec, is_number

    def of(self, arrays: Sequence[NDArray]) -> Any:
        array = arrays[self.number]
        if self.is_number:
            return array.item()
        return array[()] if array.ndim == 0 else array.copy()


class _Text:
    """A text with values of the run."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts

    def of(self, arrays: Sequence[NDArray]) -> str:
        return "".join(
            p if isinstance(p, str) else format(p.of(arrays), p.spec) for p in self.parts
        )


def _tensor_of(value: Any) -> Tensor | None:
    """The tensor behind an array, a NumPy scalar or a number that only the run knows."""
    tensor = getattr(value, "tensor", None)
    tensor = tensor() if callable(tensor) else tensor
    return tensor if isinstance(tensor, Tensor) else None


def raise_unless(condition: Tensor, raised: Raised) -> None:
    """Raise an exception when the program runs and `condition` is false."""
    run(RAISE, condition, *raised.tensors, raised=raised)


def _infer_raise(condition: Spec, *values: Spec, raised: Raised) -> tuple[()]:
    if condition.dtype is not dtypes.bool or condition.rank != 0:
        raise TypeError("the condition must be a scalar bool")
    return ()


def _raise_now(condition: NDArray, *arrays: NDArray, raised: Raised) -> tuple[()]:
    if not condition:
        raise raised.made([np.asarray(a) for a in arrays])
    return ()


RAISE = register(
    Op(
        "raise",
        _infer_raise,
        eager=_raise_now,
        effect="io",
        tags=frozenset({"asserts", "raises"}),
    )
)
