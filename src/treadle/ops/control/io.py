"""Ops with effects outside the program: printing and assertions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from treadle.core import dtypes, errors, nest
from treadle.core.origin import at, user_origin
from treadle.core.shapes import product
from treadle.core.spec import Spec
from treadle.core.tensor import NDArray, SymbolicTensor, Tensor
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.registry import Op, register, run
from treadle.ops.scalars import integer

_STREAMS = ("stderr", "stdout")


def print(*inputs: Any, **kwargs: Any) -> None:
    """Print values when the function runs (Python's `print` runs once, while tracing).

    Args:
        inputs: tensors, Python values, or nested structures of them.
        output_stream: sys.stderr (default), sys.stdout, or "file://PATH" to append to a file.
        summarize: how many first and last elements of each dimension to show (3); -1 for all.
        sep, end: as in Python's print.

    Raises:
        ValueError: unknown keyword or output stream.
    """
    stream = _stream_name(kwargs.pop("output_stream", sys.stderr))
    summarize = kwargs.pop("summarize", 3)
    sep, end = kwargs.pop("sep", " "), kwargs.pop("end", "\n")
    kwargs.pop("name", None)
    if kwargs:
        raise ValueError(f"print() got unknown keywords {sorted(kwargs)}{at(user_origin())}")
    template: list[str | None] = []
    tensors: list[Tensor] = []
    for position, value in enumerate(inputs):
        if position:
            _add_text(template, sep)
        _add_value(template, tensors, value, top=True)
    _add_text(template, end)
    summarize = 3 if summarize is None else int(summarize)
    run(PRINT, *tensors, template=tuple(template), stream=stream, summarize=summarize)


def _stream_name(stream: Any) -> str:
    if stream is sys.stderr or stream is sys.__stderr__:
        return "stderr"
    if stream is sys.stdout or stream is sys.__stdout__:
        return "stdout"
    if isinstance(stream, str) and (stream in _STREAMS or stream.startswith("file://")):
        return stream
    raise ValueError(
        f"print() cannot write to {stream!r}: give sys.stdout, sys.stderr or 'file://PATH'"
        f"{at(user_origin())}"
    )


def _add_text(template: list[str | None], text: str) -> None:
    if template and template[-1] is not None:
        template[-1] += text
    else:
        template.append(text)


def _add_value(template: list[str | None], tensors: list[Tensor], value: Any, top: bool) -> None:
    """Literal text for Python values, a place (None) for each tensor."""
    if has_dtype(value):
        tensors.append(convert_to_tensor(value))
        template.append(None)
    elif isinstance(value, np.ndarray):
        _add_text(template, format_array(value, 3))
    elif not nest.is_nested(value):
        _add_text(template, str(value) if top else repr(value))
    else:
        _add_nested(template, tensors, value)


def _add_nested(template: list[str | None], tensors: list[Tensor], value: Any) -> None:
    left, right = "[]" if isinstance(value, list) else "()" if isinstance(value, tuple) else "{}"
    parts = nest.children(value) or []
    _add_text(template, left)
    for i, (key, child) in enumerate(parts):
        if i:
            _add_text(template, ", ")
        if isinstance(value, Mapping) or not isinstance(value, list | tuple):
            _add_text(template, f"{key!r}: ")
        _add_value(template, tensors, child, top=False)
    _add_text(template, ",)" if right == ")" and len(parts) == 1 else right)


def _print_now(
    *arrays: NDArray, template: tuple[str | None, ...], stream: str, summarize: int
) -> tuple[()]:
    values = iter(arrays)
    text = "".join(
        _alone(next(values), template, summarize) if part is None else part for part in template
    )
    if stream.startswith("file://"):
        with open(stream.removeprefix("file://"), "a", encoding="utf-8") as file:
            file.write(text)
    else:
        target = getattr(sys, stream)
        target.write(text)
        target.flush()
    return ()


def _alone(array: NDArray, template: tuple[str | None, ...], summarize: int) -> str:
    """A value as TensorFlow prints it: one string that is all there is to print has no quotes."""
    if len(template) == 2 and template[0] is None and array.dtype.hasobject and not array.ndim:
        return _text(array.item())
    return format_array(array, summarize)


def format_array(array: NDArray, summarize: int = 3) -> str:
    """An array as TensorFlow prints it: ``[[1 2 3] [4 5 6]]`` over lines, long dims cut."""
    if array.ndim == 0:
        return format_number(array[()])
    return _format_rows(array, summarize, indent=1)


def _format_rows(array: NDArray, summarize: int, indent: int) -> str:
    count = len(array)
    cut = summarize >= 0 and count > 2 * summarize
    rows = [*range(summarize), *range(count - summarize, count)] if cut else range(count)
    if array.ndim == 1:
        parts, separator = [format_number(array[i]) for i in rows], " "
    else:
        parts = [_format_rows(array[i], summarize, indent + 1) for i in rows]
        separator = "\n" * (array.ndim - 1) + " " * indent
    if cut:
        parts.insert(summarize, "...")
    return f"[{separator.join(parts)}]"


def _text(value: bytes) -> str:
    return value.decode(errors="backslashreplace")


def format_number(value: Any) -> str:
    """A number with the fewer of TensorFlow's two precisions that reads back to the same float; a
    string in quotes."""
    if isinstance(value, bytes):
        return f'"{_text(value)}"'
    kind = value.dtype.kind
    if kind == "b":
        return "1" if value else "0"
    if kind == "c":
        return f"({format_number(value.real)},{format_number(value.imag)})"
    if kind in "iu":
        return str(int(value))
    number, double = float(value), value.dtype == np.float64
    short = f"{number:.15g}" if double else f"{number:.6g}"
    if value.dtype.itemsize == 2:
        return short if float(short) == number else f"{number:.4g}"
    again = float(short) if double else float(np.float32(short))
    return short if again == number or number != number else f"{number:.{17 if double else 9}g}"


PRINT = register(
    Op(
        "print", lambda *specs, **attrs: (), eager=_print_now, effect="io",
        tags=frozenset({"quiet", "strings"}),
        callback="Python writes numbers as texts, and prints them",
    )
)  # fmt: skip


def _infer_assert(condition: Spec, *data: Spec, message: str, summarize: int) -> tuple[()]:
    if condition.dtype is not dtypes.bool or condition.rank != 0:
        raise TypeError("the condition must be a scalar bool")
    return ()


def _assert_now(condition: NDArray, *data: NDArray, message: str, summarize: int) -> tuple[()]:
    if condition.dtype != bool or condition.ndim:
        raise TypeError("the condition must be a scalar bool")
    if not condition:
        shown = "".join(f"\n{format_array(d, summarize)}" for d in data)
        raise errors.InvalidArgumentError(None, ASSERT, f"assertion failed: {message}{shown}")
    return ()


ASSERT = register(
    Op(
        "assert", _infer_assert, eager=_assert_now, effect="io",
        tags=frozenset({"asserts", "strings"}),
    )
)  # fmt: skip


def _one_bool(x: Tensor) -> Tensor:
    """The truth of a condition as Python tells it where it has a value: TensorFlow asks Python."""
    while x.ndim and product(x.dims) == 1:
        x = x[0]
    if isinstance(x, SymbolicTensor) or (x.dtype is dtypes.bool and not x.ndim):
        return x
    return convert_to_tensor(bool(x) if product(x.dims) else False)


def Assert(
    condition: Any, data: Any = (), summarize: int | None = None, name: str | None = None
) -> None:
    """Raise InvalidArgumentError when `condition` is false at run time, showing `data`.

    Args:
        condition: a bool, of any rank that has one element. Eagerly also a number, and an array
            without elements, which is false.
    """
    words = [d for d in data if isinstance(d, str)]
    tensors = [convert_to_tensor(d) for d in data if not isinstance(d, str)]
    run(
        ASSERT, _one_bool(convert_to_tensor(condition)), *tensors,
        message=" ".join(words),
        summarize=3 if summarize is None else integer("Assert: summarize", summarize),
    )  # fmt: skip
