"""Strings joined, taken apart and measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.arrays import broadcast_arrays
from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape, broadcast
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.axes import normalize_axis, reduced_dims
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.registry import Op, register, run
from treadle.ops.scalars import as_bytes
from treadle.ops.strings.listed import listed_pieces, with_pieces
from treadle.ops.strings.texts import STRINGS, elementwise, invalid, string_tensor

_UNITS = ("BYTE", "UTF8_CHAR")
_CHARACTER = re.compile(rb".[\x80-\xbf]*", re.DOTALL)  # a byte with those that continue it


def _unit(unit: str) -> str:
    if unit not in _UNITS:
        raise invalid(f"unit {unit!r} is not one of {', '.join(_UNITS)}{at(user_origin())}")
    return unit


# -- every string by itself ----------------------------------------------------------------------


def _length(s: bytes, unit: str) -> int:
    return len(s) if unit == "BYTE" else sum(byte & 0xC0 != 0x80 for byte in s)


def _cased(s: bytes, encoding: str, method: str) -> bytes:
    if not encoding:
        return getattr(s, method)()  # type: ignore[no-any-return]
    return getattr(s.decode(errors="replace"), method)().encode()  # type: ignore[no-any-return]


LENGTH = elementwise("string_length", _length, dtypes.int32)
CASED = elementwise("string_case", _cased)
STRIP = elementwise("string_strip", lambda s: s.strip())


def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """The number of bytes of each string, int32; with ``unit="UTF8_CHAR"`` that of characters.

    Raises:
        InvalidArgumentError: another unit.
    """
    return run(LENGTH, string_tensor(input), unit=_unit(unit))  # type: ignore[no-any-return]


def _in_case(input: Any, encoding: str, method: str) -> Tensor:
    if encoding not in ("", "utf-8"):
        raise invalid(
            f"only utf-8 or '' (no encoding) is supported, received {encoding}{at(user_origin())}"
        )
    return run(CASED, string_tensor(input), encoding=encoding, method=method)  # type: ignore[no-any-return]


def lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """The strings in lower case: letters of ASCII, or all with ``encoding="utf-8"``.

    Raises:
        InvalidArgumentError: another encoding.
    """
    return _in_case(input, encoding, "lower")


def upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """The strings in upper case: letters of ASCII, or all with ``encoding="utf-8"``.

    Raises:
        InvalidArgumentError: another encoding.
    """
    return _in_case(input, encoding, "upper")


def strip(input: Any, name: str | None = None) -> Tensor:
    """The strings without ASCII's blanks at their ends."""
    return run(STRIP, string_tensor(input))  # type: ignore[no-any-return]


# -- parts ---------------------------------------------------------------------------------------


def _infer_substr(x: Spec, begin: Spec, count: Spec, *, unit: str) -> TensorSpec:
    if not begin.dtype.is_integer or begin.dtype is not count.dtype:
        raise TypeError(
            f"pos is {begin.dtype.name}, len {count.dtype.name}: give one integer dtype"
        )
    return TensorSpec(broadcast(x.dims, begin.dims, count.dims), dtypes.string)


def _substr(x: NDArray, begin: NDArray, count: NDArray, *, unit: str) -> NDArray:
    if begin.dtype.kind not in "iu" or begin.dtype != count.dtype:
        raise TypeError("pos and len need one integer dtype")
    x, begin, count = broadcast_arrays(x, begin, count)
    found = np.empty(x.size, object)
    triples = zip(*(a.reshape(-1).tolist() for a in (x, begin, count)), strict=True)
    for i, (s, first, number) in enumerate(triples):
        units = s if unit == "BYTE" else _CHARACTER.findall(s)
        size = len(units)
        if not -size <= first <= size:
            raise invalid(f"pos {first} out of range for string b'{_shown(s)}' at index {i}")
        start = first + size if first < 0 else first
        part = units[start : start + number if number >= 0 else size]
        found[i] = part if unit == "BYTE" else b"".join(part)
    return found.reshape(x.shape)


def _shown(s: bytes) -> str:
    return s.decode(errors="backslashreplace")


SUBSTR = register(Op("substr", _infer_substr, _substr, tags=STRINGS))


def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """`len` bytes (or characters) of each string from position `pos`, or as many as there are.

    Args:
        pos: integers; negative ones count from the end. Strings, `pos` and `len` broadcast.
        unit: "BYTE" or "UTF8_CHAR".

    Raises:
        InvalidArgumentError: a position outside its string, another unit.
    """
    begin = convert_to_tensor(pos)
    count = convert_to_tensor(len, dtype_hint=begin.dtype)
    return run(SUBSTR, string_tensor(input), begin, count, unit=_unit(unit))  # type: ignore[no-any-return]


def _split(x: NDArray, *, sep: bytes, most: int) -> tuple[NDArray, NDArray]:
    return listed_pieces([_pieces(s, sep, most) for s in x.reshape(-1).tolist()], x.shape, b"")


def _pieces(s: bytes, sep: bytes, most: int) -> list[bytes]:
    return s.split(sep, most) if sep else s.split(None, most)


SPLIT = register(
    Op("string_split", lambda x, **attrs: with_pieces(x), _split, tags=STRINGS | {"dynamic"})
)  # fmt: skip


def split_pieces(input: Tensor, sep: Any = None, maxsplit: int = -1) -> tuple[Tensor, Tensor]:
    """The pieces of all strings one after another, and how many each string has.

    Args:
        sep: what stands between pieces; without it any number of blanks.
        maxsplit: how often to split a string; -1 for as often as possible.
    """
    between = b"" if sep is None else as_bytes("split: sep", sep)
    return run(SPLIT, input, sep=between, most=int(maxsplit))  # type: ignore[no-any-return]


# -- joining -------------------------------------------------------------------------------------


def _infer_join(*specs: Spec, separator: bytes) -> TensorSpec:
    _check_alike([s.shape for s in specs])
    return TensorSpec(broadcast(*(s.dims for s in specs)), dtypes.string)


def _check_alike(shapes: Sequence[TensorShape]) -> None:
    """InvalidArgumentError unless all shapes but those of scalars may be one."""
    shaped = [s for s in shapes if s.rank]
    for shape in shaped:
        if not shape.is_compatible_with(shaped[0]):
            raise invalid(f"strings of shapes {shaped[0]} and {shape} are not joined")


def _join(*arrays: NDArray, separator: bytes) -> NDArray:
    _check_alike([TensorShape(a.shape) for a in arrays])
    arrays = broadcast_arrays(*arrays)
    found = np.empty(arrays[0].size, object)
    columns = zip(*(a.reshape(-1).tolist() for a in arrays), strict=True)
    found[:] = [separator.join(parts) for parts in columns]
    return found.reshape(arrays[0].shape)


JOIN = register(Op("string_join", _infer_join, _join, tags=STRINGS))


def join(inputs: Sequence[Any], separator: Any = "", name: str | None = None) -> Tensor:
    """The strings at each position of several tensors, joined with `separator` between them.

    Args:
        inputs: tensors of one shape, and scalars, which stand at all positions.

    Raises:
        InvalidArgumentError: tensors of different shapes.
    """
    tensors = [string_tensor(x) for x in inputs]
    if not tensors:
        return constant("")
    return run(JOIN, *tensors, separator=as_bytes("join: separator", separator))  # type: ignore[no-any-return]


def _infer_reduce_join(
    x: Spec, *, axes: tuple[int, ...], keepdims: bool, separator: bytes
) -> TensorSpec:
    return TensorSpec(reduced_dims(x.dims, axes, keepdims), dtypes.string)


def _reduce_join(x: NDArray, *, axes: tuple[int, ...], keepdims: bool, separator: bytes) -> NDArray:
    rest = [i for i in range(x.ndim) if i not in axes]
    rows = x.transpose([*rest, *reversed(axes)]).reshape(
        [int(np.prod([x.shape[i] for i in part])) for part in (rest, axes)]
    )
    found = np.empty(len(rows), object)
    found[:] = [separator.join(row) for row in rows.tolist()]
    shape: Any = reduced_dims(x.shape, axes, keepdims)
    return found.reshape(shape)


REDUCE_JOIN = register(Op("reduce_join", _infer_reduce_join, _reduce_join, tags=STRINGS))


def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: Any = "",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The strings along axes joined with `separator` between them.

    Args:
        axis: an int or several, which are joined one after another; all without it, the last one
            first.
        keepdims: keep the joined axes, of size 1.

    Raises:
        InvalidArgumentError: there is no such axis, or one is named twice.
    """
    x = string_tensor(inputs)
    given = range(x.ndim)[::-1] if axis is None else np.atleast_1d(np.asarray(axis)).tolist()
    axes = tuple(normalize_axis(a, x.ndim) for a in given)
    if len({*axes}) != len(axes):
        raise invalid(f"reduce_join: an axis is named twice in {list(axes)}{at(user_origin())}")
    between = as_bytes("reduce_join: separator", separator)
    return run(  # type: ignore[no-any-return]
        REDUCE_JOIN, x, axes=axes, keepdims=bool(keepdims), separator=between
    )
