"""Texts, sizes and kinds of Python values, as programs for several versions of Python and
TensorFlow ask for them."""

from __future__ import annotations

import numbers
import os
from typing import Any

import numpy as np

from treadle.core.dimension import Dimension
from treadle.core.origin import at, user_origin

# For isinstance.
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)
bytes_or_text_types = (bytes, str)


def as_bytes(bytes_or_text: bytes | bytearray | str, encoding: str = "utf-8") -> bytes:
    """A text as bytes; bytes as they are.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(bytes_or_text, bytes | bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    raise _no_text(bytes_or_text)


def as_text(bytes_or_text: bytes | str, encoding: str = "utf-8") -> str:
    """Bytes as a text; a text as it is.

    Raises:
        TypeError: it is neither.
        UnicodeDecodeError: the bytes are no text of this encoding.
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise _no_text(bytes_or_text)


def as_str(bytes_or_text: bytes | str, encoding: str = "utf-8") -> str:
    """Bytes as a text; a text as it is: see `as_text`."""
    return as_text(bytes_or_text, encoding)


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Bytes and texts as a text, and ``str`` of everything else."""
    return as_text(value, encoding) if isinstance(value, bytes | str) else str(value)


def path_to_str(path: Any) -> Any:
    """The text of a `pathlib.Path`; other values as they are."""
    return as_str_any(os.fspath(path)) if hasattr(path, "__fspath__") else path


def _no_text(value: Any) -> TypeError:
    return TypeError(f"Expected binary or unicode string, got {value!r}{at(user_origin())}")


def dimension_value(dimension: Any) -> int | None:
    """The int of an element of a shape, or None: the elements of shapes of TensorFlow 1 and of
    `TensorShape.dims` are objects, those of TensorFlow 2 are ints."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape: Any, index: int) -> Dimension:
    """The size along an axis of a `TensorShape` as a `Dimension`, an unknown one where the rank is
    not known."""
    return Dimension(None if shape.rank is None else dimension_value(shape[index]))


def forward_compatible(year: int, month: int, day: int) -> bool:
    """True: other programs need not be told of operations that are newer than they are."""
    return True


class forward_compatibility_horizon:
    """A block in which `forward_compatible` is asked for this date: it changes nothing."""

    def __init__(self, year: int, month: int, day: int) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass
