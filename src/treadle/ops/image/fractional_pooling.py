"""Pooling over windows of varying sizes, so that images shrink by a factor that is no integer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.tensor import Tensor
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.dims import dims_tensor, size_of
from treadle.ops.elementwise.arithmetic import floordiv, minimum, truncatediv
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import ceil, floor
from treadle.ops.indexing.gather import gather
from treadle.ops.random.distributions import shuffle, uniform
from treadle.ops.reductions.reduction import argmax, reduce_sum
from treadle.ops.reductions.scan import cumsum
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.ranges import range as numbers
from treadle.ops.shaping.reshaping import expand_dims, reshape, reshape_to

_DTYPES = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)


class FractionalMaxPool(NamedTuple):
    """The results, and the bounds of the windows along rows and along columns."""

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


class FractionalAvgPool(NamedTuple):
    """The results, and the bounds of the windows along rows and along columns."""

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


class _Windows:
    """The windows along one axis of images.

    Attributes:
        bounds: where each window begins, and where the last one ends; int64.
        places: for each window the numbers of its elements, the last one repeated where others
            have more.
        inside: whether that is an element of its own.
    """

    def __init__(
        self, size: Dim, ratio: float, pseudo_random: bool, overlapping: bool, seed: int | None
    ) -> None:
        n = dims_tensor(size, dtypes.int64)
        if isinstance(size, int):
            count: Dim = int(size / ratio)
            if not count:
                raise _invalid(f"the pooling ratio {ratio} is larger than the size {size}")
        else:
            wanted = cast(floor(cast(n, dtypes.float64) / ratio), dtypes.int64)
            count = size_of(wanted, "fractional pooling: the size of the result", least=1)
        self.count = count
        m = dims_tensor(count, dtypes.int64)
        least = floordiv(n, m)
        self.bounds = _by_one_number(n, m, seed) if pseudo_random else _by_order(n, m, seed)
        width = size // count + 1 if isinstance(size, int) and isinstance(count, int) else least + 1
        steps = numbers(constant(0, dtypes.int64), width + int(overlapping))
        every = self.bounds[:-1, None] + steps
        last = self.bounds[1:, None] - 1
        if overlapping:
            last = minimum(last + 1, n - 1)
        self.places, self.inside = minimum(every, last), every <= last


def _by_one_number(n: Tensor, m: Tensor, seed: int | None) -> Tensor:
    """Bounds ``ceil(alpha * (i + u)) - 1`` for a random u, where alpha is n / m: with sizes that
    follow one another regularly."""
    size, count = cast(n, dtypes.float64), cast(m, dtypes.float64)
    alpha, least = size / count, floor(size / count)
    most = minimum((least + 2) / alpha - 1, (size + 1 - least) / alpha - (count - 1))
    u = uniform([], dtype=dtypes.float64, seed=seed) * most
    inner = ceil(alpha * (cast(numbers(1, m, dtype=dtypes.int64), dtypes.float64) + u)) - 1
    zero = constant([0], dtypes.int64)
    found = concat([zero, cast(inner, dtypes.int64), reshape_to(n, (1,))], 0)
    regular = numbers(constant(0, dtypes.int64), m + 1) * floordiv(n, m)
    return where(n % m == 0, regular, found)


def _by_order(n: Tensor, m: Tensor, seed: int | None) -> Tensor:
    """Bounds of windows of the two sizes around n / m, in random order."""
    index = numbers(constant(0, dtypes.int64), m)
    sizes = floordiv(n, m) + cast(index < n % m, dtypes.int64)
    return concat([constant([0], dtypes.int64), cumsum(shuffle(sizes, seed=seed))], 0)


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")


def _windows(
    what: str, value: Any, pooling_ratio: Any, pseudo_random: bool, overlapping: bool, seed: int
) -> tuple[Tensor, _Windows, _Windows]:
    """The images, and the windows along their rows and columns."""
    x = convert_to_tensor(value)
    if x.ndim != 4 or x.dtype not in _DTYPES:
        text = "images [n, rows, columns, channels] of 32 or 64 bits are expected"
        raise _invalid(f"{what}: {text}, not {x.spec}")
    rows, columns = _ratios(what, pooling_ratio)
    given = seed or None
    ways = bool(pseudo_random), bool(overlapping), given
    return x, _Windows(x.dims[1], rows, *ways), _Windows(x.dims[2], columns, *ways)


def _ratios(what: str, given: Any) -> tuple[float, float]:
    """The ratios of rows and columns.

    Raises:
        ValueError: they are no numbers from 1 on, or the images' number or channels change.
    """
    ratios = list(given) if isinstance(given, Sequence) else [1, given, given, 1]
    if len(ratios) != 4 or not all(isinstance(r, int | float) for r in ratios):
        wrong = "must be a number, or four of them"
    elif ratios[0] != 1 or ratios[3] != 1:
        wrong = "must be 1 for the images' number and channels"
    elif min(ratios) < 1:
        wrong = "must be at least 1"
    else:
        return float(ratios[1]), float(ratios[2])
    raise ValueError(f"{what}: pooling_ratio {wrong}, not {given!r}{at(user_origin())}")


def _first_largest(parts: Tensor, axis: int) -> Tensor:
    """The largest elements along an axis; gradients go to the first of equal ones."""
    place = expand_dims(argmax(parts, axis), axis)
    steps = [1] * parts.ndim
    steps[axis] = -1
    number = reshape(numbers(dims_tensor(parts.dims[axis], dtypes.int64)), steps)
    return reduce_sum(where(number == place, parts, constant(0, parts.dtype)), axis)


def fractional_max_pool(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False,
    seed: int = 0, name: str | None = None,
) -> FractionalMaxPool:  # fmt: skip
    """The largest elements of windows of two sizes, drawn at random.

    Args:
        value: images [n, rows, columns, channels].
        pooling_ratio: by how much rows and columns shrink, at least 1: a number, or
            ``[1, for rows, for columns, 1]``.
        pseudo_random: the sizes follow one another regularly from a random start; else they come in
            random order.
        overlapping: the first element of the next window belongs to a window, too.
        seed: makes the windows the same in every process; 0 for none.

    Returns:
        The results ``[n, floor(rows / ratio), floor(columns / ratio), channels]``, and the bounds
        of the windows along rows and along columns, int64.

    Raises:
        ValueError: a ratio is below 1, or the first or last of four is not 1.
        InvalidArgumentError: a ratio is larger than the image, or `value` is of another rank or
            dtype than float32, float64, int32 and int64.
    """
    x, rows, columns = _windows(
        "fractional_max_pool", value, pooling_ratio, pseudo_random, overlapping, seed
    )
    found = _first_largest(gather(x, columns.places, axis=2), 3)
    found = _first_largest(gather(found, rows.places, axis=1), 2)
    return FractionalMaxPool(found, rows.bounds, columns.bounds)


def fractional_avg_pool(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False,
    seed: int = 0, name: str | None = None,
) -> FractionalAvgPool:  # fmt: skip
    """The means of windows of two sizes, drawn at random; see `fractional_max_pool`."""
    x, rows, columns = _windows(
        "fractional_avg_pool", value, pooling_ratio, pseudo_random, overlapping, seed
    )
    total, count = x, constant(1, x.dtype)
    for axis, windows in ((1, rows), (2, columns)):
        parts = gather(total, windows.places, axis=axis)
        shape = [1] * axis + list(windows.inside.dims) + [1] * (parts.ndim - axis - 2)
        inside = reshape_to(windows.inside, tuple(shape))
        total = reduce_sum(where(inside, parts, constant(0, x.dtype)), axis + 1)
        counts = reduce_sum(cast(inside, x.dtype), axis + 1)
        count = count * counts
    mean = truncatediv(total, count) if x.dtype.is_integer else total / count
    return FractionalAvgPool(mean, rows.bounds, columns.bounds)
