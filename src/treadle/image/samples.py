"""Which elements of an axis make those of a shorter or longer one, and with which weights.

What depends on known sizes only is computed while a function is traced and becomes a constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from treadle.core import dtypes
from treadle.core.shapes import Dim, compound
from treadle.core.tensor import Tensor
from treadle.ops.control.ordering import init_scope
from treadle.ops.conversion import constant
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.arithmetic import maximum, minimum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import abs as magnitude
from treadle.ops.elementwise.unary import ceil, exp, floor, sin
from treadle.ops.elementwise.unary import round as rounded
from treadle.ops.indexing.gather import gathered
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.shaping.reshaping import expand_dims, reshape_to

_TINY = 1000 * 1.17549435e-38  # sums of weights below this are taken for 0


class Samples(NamedTuple):
    """For each element of the new axis the positions that it is made of, and their weights:
    int64 and float32, both [elements, positions]."""

    positions: Tensor
    weights: Tensor


def float_of(dim: Any) -> Tensor:
    """A dim as a float32 scalar."""
    return cast(dims_tensor(dim, dtypes.int64), dtypes.float32)


def _early(fn: Callable[..., Any], old: Dim, new: Dim, *rest: Any) -> Any:
    """``fn(old, new, ...)``, computed now where both sizes are known."""
    if isinstance(old, int) and isinstance(new, int):
        with init_scope():
            return fn(old, new, *rest)
    return fn(old, new, *rest)


def _numbers(size: Dim) -> Tensor:
    return cast(number_range(dims_tensor(size, dtypes.int64)), dtypes.float32)


def _scale(old: Dim, new: Dim) -> Tensor:
    return float_of(old) / float_of(new)


def _inside(position: Tensor, old: Dim) -> Tensor:
    """Positions as int64, kept on the axis."""
    last = dims_tensor(old - 1, dtypes.int64)
    return maximum(minimum(cast(position, dtypes.int64), last), constant(0, dtypes.int64))


def nearest_positions(old: Dim, new: Dim) -> Tensor:
    """The element of the axis in which the centre of each new one is."""
    return _early(_nearest, old, new)  # type: ignore[no-any-return]


def _nearest(old: Dim, new: Dim) -> Tensor:
    return _inside(floor((_numbers(new) + 0.5) * _scale(old, new)), old)


def neighbours(old: Dim, new: Dim) -> tuple[Tensor, Tensor, Tensor]:
    """The positions before and behind the centre of each new element, and the latter's share."""
    return _early(_neighbours, old, new)  # type: ignore[no-any-return]


def _neighbours(old: Dim, new: Dim) -> tuple[Tensor, Tensor, Tensor]:
    place = (_numbers(new) + 0.5) * _scale(old, new) - 0.5
    low = floor(place)
    return _inside(low, old), _inside(ceil(place), old), place - low


def samples(old: Dim, new: Dim, kernel: str, antialias: bool) -> Samples:
    """Samples with the weights of a kernel."""
    return _early(_RULES.get(kernel, _by_kernel), old, new, kernel, antialias)  # type: ignore[no-any-return]


def resampled(x: Tensor, axis: int, found: Samples) -> Tensor:
    """`x` with another axis: sums of its elements with weights."""
    elements = gathered(x, found.positions, axis)
    behind = x.ndim - 1 - axis
    weights = reshape_to(found.weights, (*found.weights.dims, *(1,) * behind))
    return reduce_sum(elements * weights, axis + 1)


def _normal(weights: Tensor) -> Tensor:
    total = reduce_sum(weights, 1, keepdims=True)
    some = magnitude(total) >= _TINY
    return where(some, weights, 0.0) / where(some, total, 1.0)


# -- area ------------------------------------------------------------------------------------------


def _areas(old: Dim, new: Dim, kernel: str, antialias: bool) -> Samples:
    """The share that each element has in the part of the axis that a new one covers."""
    scale = _scale(old, new)
    begin, end = _numbers(new) * scale, (_numbers(new) + 1.0) * scale
    count = old // new + 2
    places = expand_dims(floor(begin), 1) + _numbers(count)
    begin, end = expand_dims(begin, 1), expand_dims(end, 1)
    covered = maximum(minimum(places + 1.0, end) - maximum(places, begin), 0.0)
    return Samples(_inside(places, old), covered / scale)


# -- kernels ---------------------------------------------------------------------------------------


def _triangle(x: Tensor) -> Tensor:
    return maximum(1.0 - x, 0.0)


def _cubic(near: tuple[float, ...], far: tuple[float, ...]) -> Callable[[Tensor], Tensor]:
    """A polynomial of degree 3 below 1, another one below 2; coefficients from the highest."""

    def kernel(x: Tensor) -> Tensor:
        def polynomial(a: float, b: float, c: float, d: float) -> Tensor:
            return ((a * x + b) * x + c) * x + d

        return where(x < 1.0, polynomial(*near), where(x < 2.0, polynomial(*far), 0.0))

    return kernel


def _lanczos(radius: float) -> Callable[[Tensor], Tensor]:
    def kernel(x: Tensor) -> Tensor:
        angle = math.pi * maximum(x, 1e-3)
        wave = radius * sin(angle) * sin(angle / radius) / (angle * angle)
        return where(x > radius, 0.0, where(x <= 1e-3, 1.0, wave))

    return kernel


def _gaussian(x: Tensor) -> Tensor:
    sigma = 0.5
    return where(x < 1.5, exp(-x * x / (2 * sigma * sigma)), 0.0)


_keys = _cubic((1.5, -2.5, 0.0, 1.0), (-0.5, 2.5, -4.0, 2.0))
# Twice the radius, and the weight at a distance of the centre.
_KERNELS: dict[str, tuple[int, Callable[[Tensor], Tensor]]] = {
    "triangle": (2, _triangle),
    "keyscubic": (4, _keys),
    "mitchellcubic": (
        4, _cubic((7 / 6, -2.0, 0.0, 8 / 9), (-7 / 18, 2.0, -10 / 3, 16 / 9))
    ),
    "lanczos3": (6, _lanczos(3.0)),
    "lanczos5": (10, _lanczos(5.0)),
    "gaussian": (3, _gaussian),
}  # fmt: skip


def _by_kernel(old: Dim, new: Dim, kernel: str, antialias: bool) -> Samples:
    """Elements within the kernel's radius of the centre; the kernel is as wide as new elements
    where it smoothes and these are larger."""
    diameter, weight = _KERNELS[kernel]
    step = 1.0 / (float_of(new) / float_of(old))
    if antialias:
        reach = -(-diameter * compound("max", old, new) // (2 * new))
        spread = maximum(step, 1.0)
    else:
        reach = -(-diameter // 2)
        spread = constant(1.0)
    centre = expand_dims((_numbers(new) + 0.5) * step, 1)
    radius = diameter / 2 * spread
    last = float_of(old - 1)
    first = minimum(maximum(ceil(centre - radius - 0.5), 0.0), last)
    final = minimum(maximum(floor(centre + radius - 0.5), 0.0), last)
    places = first + _numbers(2 * reach + 1)
    weights = weight(magnitude((places + 0.5 - centre) * (1.0 / spread)))
    return Samples(_inside(places, old), _normal(where(places <= final, weights, 0.0)))


def _four(old: Dim, new: Dim, kernel: str, antialias: bool) -> Samples:
    """Keys' cubic kernel on the four nearest elements, at distances in steps of 1/1024."""
    place = (_numbers(new) + 0.5) * _scale(old, new) - 0.5
    low = floor(place)
    share = rounded((place - low) * 1024.0) / 1024.0
    offsets = _numbers(4) - 1.0
    places = expand_dims(low, 1) + offsets
    weights = _keys(magnitude(offsets - expand_dims(share, 1)))
    inside = (places >= 0.0) & (places <= float_of(old - 1))
    return Samples(_inside(places, old), _normal(where(inside, weights, 0.0)))


_RULES = {"area": _areas, "bicubic": _four}
