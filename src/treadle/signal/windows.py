"""Windows: the weights of the elements of a frame."""

from __future__ import annotations

import math
from typing import Any

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.unary import cos, sin, sqrt, square
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.reductions.scan import cumsum
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.permuting import reverse
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.special.bessel import bessel_i0


def _dtype(name: str, dtype: Any) -> DType:
    found = dtypes.as_dtype(dtype)
    if not found.is_floating:
        text = f"{name}: the dtype must be floating, not {found.name}{at(user_origin())}"
        raise ValueError(text)
    return found


def _raised_cosine(
    name: str, window_length: Any, periodic: Any, dtype: Any, a: float, b: float
) -> Tensor:
    kind = _dtype(name, dtype)
    length = _length(name, window_length)
    even = 1 - length % 2
    n = length + cast(convert_to_tensor(periodic), dtypes.int32) * even - 1
    # A window of one element is 1: the angle is made 0 by a count that is not 0.
    angle = 2 * math.pi / cast(maximum(n, 1), kind) * cast(number_range(length), kind)
    one = cast(length > 1, kind)
    return (a - b * cos(angle)) * one + (1 - one)


def _length(name: str, window_length: Any) -> Tensor:
    if isinstance(window_length, int) and abs(window_length) > dtypes.int32.max:
        text = f"{name}: there is no window of {window_length} elements"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    length = cast(window_length, dtypes.int32)
    if length.ndim:
        text = f"{name}: the length must be a scalar, not of shape {length.shape}"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    return length


def hann_window(
    window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """``0.5 - 0.5 * cos(2 pi k / n)`` for k below `window_length`.

    Args:
        periodic: n is the length, where that is even, as transforms want it; otherwise it is one
            less, and the window is symmetric.
    """
    return _raised_cosine("hann_window", window_length, periodic, dtype, 0.5, 0.5)


def hamming_window(
    window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """``0.54 - 0.46 * cos(2 pi k / n)`` for k below `window_length`; see `hann_window`."""
    return _raised_cosine("hamming_window", window_length, periodic, dtype, 0.54, 0.46)


def kaiser_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """``I0(beta * sqrt(1 - x ** 2)) / I0(beta)`` for x from -1 to 1."""
    kind = _dtype("kaiser_window", dtype)
    length = _length("kaiser_window", window_length)
    half = cast(length - 1, kind) / 2
    places = cast(number_range(length), kind) - half
    scale = convert_to_tensor(beta, kind)
    inner = maximum(1 - square(places / maximum(half, 0.5)), convert_to_tensor(0, kind))
    return bessel_i0(scale * sqrt(inner)) / bessel_i0(scale)


def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """The root of the running sums of a Kaiser window, and the same in reverse order."""
    length = _length("kaiser_bessel_derived_window", window_length)
    half = kaiser_window(length // 2 + 1, beta, dtype)
    rising = sqrt(cumsum(half)[:-1] / reduce_sum(half))
    return concat([rising, reverse(rising, [0])], 0)


def vorbis_window(
    window_length: Any, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """``sin(pi / 2 * sin(pi * (k + 0.5) / n) ** 2)`` for k below n, the length."""
    kind = _dtype("vorbis_window", dtype)
    length = _length("vorbis_window", window_length)
    places = (cast(number_range(length), kind) + 0.5) / cast(length, kind)
    return sin(math.pi / 2 * square(sin(math.pi * places)))
