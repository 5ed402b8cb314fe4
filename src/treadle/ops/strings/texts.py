"""What makers of the ops on strings share, and numbers written as strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.control.io import format_array
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.registry import Op, register, run
from treadle.ops.scalars import integer

STRINGS = frozenset({"strings"})


def string_tensor(value: Any) -> Tensor:
    """`value` as a tensor of strings; TypeError for a tensor of another dtype."""
    return convert_to_tensor(value, dtypes.string)


def invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, text)


def mapped(fn: Callable[[Any], Any], x: NDArray, dtype: DType = dtypes.string) -> NDArray:
    """``fn`` of every element."""
    found = np.empty(x.size, dtype.np_dtype)
    found[:] = [fn(e) for e in x.reshape(-1).tolist()]
    return found.reshape(x.shape)


def elementwise(name: str, fn: Callable[..., Any], dtype: DType = dtypes.string) -> Op:
    """Register an op of one tensor of strings: ``fn(string, **attrs)`` gives an element."""

    def eager(x: NDArray, **attrs: Any) -> NDArray:
        return mapped(lambda s: fn(s, **attrs), x, dtype)

    return register(
        Op(name, lambda x, **attrs: TensorSpec(x.dims, dtype), eager, tags=STRINGS)
    )  # fmt: skip


# -- as_string -----------------------------------------------------------------------------------


def _number_format(
    dtype: DType, precision: int, scientific: bool, shortest: bool, width: int, fill: str
) -> tuple[str, str]:
    """The formats of finite numbers, and of others, which have no zeros in front.

    Raises:
        InvalidArgumentError: the dtype has no such format.
    """
    if scientific and shortest:
        raise invalid("Cannot select both scientific and shortest notation")
    if len(fill) > 1:
        raise invalid("Fill string must be one or fewer characters")
    if fill and fill not in " +-0#":
        raise invalid(f"Fill argument not supported: {fill!r}")
    whole = not (dtype.is_floating or dtype.is_complex)
    if whole and (scientific or shortest):
        raise invalid(f"scientific and shortest format not supported for datatype {dtype.name}")
    if whole and precision >= 0:
        raise invalid(f"precision not supported for datatype {dtype.name}")
    size = str(width) if width >= 0 else ""
    digits = f".{precision}" if precision >= 0 else ""
    letter = "d" if whole else "e" if scientific else "g" if shortest else "f"
    return f"%{fill}{size}{digits}{letter}", f"%{fill.replace('0', '')}{size}{letter}"


def _infer_as_string(x: Spec, *, dtype: DType, **attrs: Any) -> TensorSpec:
    if not dtype.is_bool and dtype is not dtypes.string:
        _number_format(dtype, **attrs)
    return TensorSpec(x.dims, dtypes.string)


def _as_string(x: NDArray, *, dtype: DType, **attrs: Any) -> NDArray:
    if dtype.is_bool:
        return mapped(lambda b: b"true" if b else b"false", x)
    if dtype is dtypes.string:
        form = f"%{attrs['fill']}{attrs['width']}s".encode()
        return mapped(lambda s: form % s, x)
    finite, other = _number_format(dtype, **attrs)

    def text(number: Any) -> str:
        if dtype.is_complex:
            return f"({text_of(number.real)},{text_of(number.imag)})"
        return text_of(number)

    def text_of(number: Any) -> str:
        return str((finite if isinstance(number, int) or np.isfinite(number) else other) % number)

    values = x.astype(np.float64) if dtype.is_floating else x
    return mapped(lambda number: text(number).encode(), values)


AS_STRING = register(Op("as_string", _infer_as_string, _as_string, tags=STRINGS))


def as_string(
    input: Any, precision: int = -1, scientific: bool = False, shortest: bool = False,
    width: int = -1, fill: str = "", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Every number (or bool) as a string, in the formats of C; strings are filled up to a width.

    Args:
        input: a tensor of any dtype and shape; the result has its shape.
        precision: digits behind the point; six without it. For floats and complex numbers.
        scientific: with an exponent, as ``%e``.
        shortest: as ``%g``.
        width: the least number of characters; bools ignore it.
        fill: the flag of the format: "0", " ", "-" (blanks behind), "+".

    Raises:
        InvalidArgumentError: a format that the dtype has not, or an unknown `fill`.
    """
    x = convert_to_tensor(input)
    if x.dtype is dtypes.string and width < 0:
        return x
    return run(  # type: ignore[no-any-return]
        AS_STRING, x, dtype=x.dtype, precision=integer("as_string: precision", precision),
        scientific=bool(scientific), shortest=bool(shortest),
        width=integer("as_string: width", width), fill=fill,
    )  # fmt: skip


# -- format --------------------------------------------------------------------------------------


def _format(*arrays: NDArray, parts: tuple[str, ...], summarize: int) -> NDArray:
    shown = [format_array(array, summarize) for array in arrays]
    pieces = [piece for pair in zip(parts, [*shown, ""], strict=True) for piece in pair]
    return np.array("".join(pieces).encode(), object)


FORMAT = register(
    Op("string_format", lambda *x, **attrs: TensorSpec((), dtypes.string), _format, tags=STRINGS)
)  # fmt: skip


def format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The template with tensors in place of its placeholders, a scalar string.

    They are written as `td.print` writes them.

    Args:
        inputs: a tensor, or a list of tensors of any dtypes and shapes.
        summarize: how many first and last elements of each dimension to show; -1 for all.

    Raises:
        ValueError: the template has not one placeholder for each tensor.
    """
    given = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    parts = tuple(template.split(placeholder))
    if len(parts) - 1 != len(given):
        raise ValueError(
            f"The template expects {len(parts) - 1} tensors, but the inputs only has {len(given)}. "
            "Please ensure the number of placeholders in template matches inputs length."
        )
    tensors = [convert_to_tensor(x) for x in given]
    return run(FORMAT, *tensors, parts=parts, summarize=integer("format: summarize", summarize))  # type: ignore[no-any-return]
