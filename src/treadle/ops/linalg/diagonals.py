"""Diagonals of matrices: read, replaced, and made into matrices.

Several diagonals are the rows of one tensor ``[..., diagonals, length]``, the uppermost diagonal
first. Shorter ones begin at the first column of their row or end at the last one, as `align` says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, TensorShape, compound, product
from treadle.core.tensor import Tensor
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.dims import dims_tensor, size_of
from treadle.ops.elementwise.arithmetic import maximum, minimum
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import gathered
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.registry import run
from treadle.ops.requirements import require
from treadle.ops.shaping.creation import EYE
from treadle.ops.shaping.ranges import range as numbers
from treadle.ops.shaping.reshaping import reshape_to, with_dims
from treadle.ops.shaping.slicing import slice_known
from treadle.ops.sizes import at_most

_ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")


class _Band:
    """The diagonals from `low` to `high` of matrices, and where their elements are in a tensor.

    Args:
        k: an int, or two: 0 is the main diagonal, positive numbers are above it.
        align: where the rows of the diagonals above and below the main one are aligned.

    Raises:
        InvalidArgumentError: `k` is neither, or `align` is none of the four.
        TypeError: `k` is no integer.
    """

    def __init__(self, what: str, k: Any, align: str) -> None:
        given = np.asarray(k.numpy() if isinstance(k, Tensor) else k)
        if given.dtype.kind not in "iu":
            raise TypeError(f"{what}: k must be an integer or two, not {k!r}{at(user_origin())}")
        if given.shape not in ((), (1,), (2,)):
            raise _invalid(f"{what}: k must be an integer or a pair of them, not {k!r}")
        self.low, self.high = (int(n) for n in np.broadcast_to(given, (2,)))
        if self.low > self.high:
            raise _invalid(
                f"{what}: the lower diagonal must not be above the upper one: {self.low}, "
                f"{self.high}"
            )
        if align not in _ALIGNMENTS:
            raise _invalid(f"{what}: align {align!r} is none of {', '.join(_ALIGNMENTS)}")
        self.what, self.count = what, self.high - self.low + 1
        self.right_above, self.right_below = (word == "RIGHT" for word in align.split("_"))

    @property
    def is_main(self) -> bool:
        return self.low == self.high == 0

    def found_in(self, x: Tensor, rows: Dim, columns: Dim) -> Tensor:
        """`x`, where matrices of this size have the diagonals.

        Raises:
            InvalidArgumentError: there are no such diagonals.
        """
        for k in (self.low, self.high):
            size = rows if k < 0 else columns
            text = f"{self.what}: matrices of {{}} rows and {{}} columns have no diagonal {k}"
            if isinstance(size, int) and k and abs(k) >= size:
                raise _invalid(text.format(rows, columns))
            if k:
                few = f"{self.what}: matrices with so few rows or columns have no diagonal {k}"
                x = require(x, [at_most(abs(k) + 1, size)] * (not isinstance(size, int)), few)
        return x

    def length(self, rows: Dim, columns: Dim) -> Dim:
        """The length of the longest diagonal."""
        return compound("min", rows + min(self.high, 0), columns - max(self.low, 0))

    def shift(self, k: Tensor, sizes: Tensor, length: Tensor) -> Tensor:
        """The first column of diagonals `k` of these sizes in their rows."""
        gap, none = length - sizes, constant(0, dtypes.int64)
        above = gap if self.right_above else none
        return where(k > 0, above, gap if self.right_below else none)


def _int64(dim: Dim) -> Tensor:
    return dims_tensor(dim, dtypes.int64)


def _sizes(k: Tensor, rows: Dim, columns: Dim) -> Tensor:
    """The lengths of diagonals."""
    return minimum(_int64(rows) + minimum(k, 0), _int64(columns) - maximum(k, 0))


def _padding(value: Any, dtype: DType) -> Tensor:
    """What is beside diagonals; for bools the default, 0, is False."""
    is_number = dtype.is_bool and isinstance(value, int)
    return convert_to_tensor(bool(value) if is_number else value, dtype)


def _flat(x: Tensor) -> Tensor:
    """The last two axes as one."""
    return reshape_to(x, (*x.dims[:-2], product(x.dims[-2:])))


def diag_part(
    input: Any, name: str | None = None, k: Any = 0, padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:  # fmt: skip
    """Diagonals of matrices [..., m, n]: the main one [..., min(m, n)], another, or several.

    Args:
        k: which diagonal; 0 is the main one, those above it are positive. A pair (low, high): all
            from one to the other, as [..., high - low + 1, length], the upper ones first.
        padding_value: what fills up the rows of shorter diagonals.
        align: "RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT" or "RIGHT_RIGHT": at which end the rows of
            diagonals above the main one, and of those below, have their elements.

    Raises:
        InvalidArgumentError: the matrices have no such diagonal, `input` has fewer than two axes,
            or `align` is none of the four.
    """
    x, band = convert_to_tensor(input), _Band("diag_part", k, align)
    if x.ndim < 2:
        raise _invalid(f"diag_part: {x.spec} is no matrix or batch of matrices")
    rows, columns = x.dims[-2:]
    x, length = band.found_in(x, rows, columns), band.length(rows, columns)
    if band.is_main and not x.dtype.is_bool:
        square = slice_known(x, [0] * x.ndim, (*x.dims[:-2], length, length))
        mask = run(EYE, shape=(length, length), dtype=dtypes.bool)
        return reduce_sum(where(mask, square, constant(0, x.dtype)), -1)
    diagonals = constant(np.arange(band.high, band.low - 1, -1)[:, None], dtypes.int64)
    sizes, most = _sizes(diagonals, rows, columns), _int64(length)
    place = numbers(most)[None, :] - band.shift(diagonals, sizes, most)
    inside = (place >= 0) & (place < sizes)
    row, column = place + maximum(-diagonals, 0), place + maximum(diagonals, 0)
    found = gathered(_flat(x), where(inside, row * _int64(columns) + column, 0), axis=-1)
    found = where(inside, found, _padding(padding_value, x.dtype))
    return reshape_to(found, (*x.dims[:-2], length)) if band.count == 1 else found


def _spread(band: _Band, diagonal: Tensor, rows: Dim, columns: Dim, rest: Tensor) -> Tensor:
    """Matrices with diagonals of the band, and elsewhere the elements of `rest`."""
    diagonal = band.found_in(diagonal, rows, columns)
    batch = diagonal.dims[:-1] if band.count == 1 else diagonal.dims[:-2]
    length = band.length(rows, columns)
    wanted = (*batch, *((length,) if band.count == 1 else (band.count, length)))
    if not TensorShape(wanted).is_compatible_with(diagonal.shape):
        raise _invalid(f"{band.what}: the diagonals have the shape {diagonal.shape}, where "
                       f"{TensorShape(wanted)} is expected")  # fmt: skip
    diagonal = with_dims(diagonal, wanted)
    most = diagonal.dims[-1]
    row, column = numbers(_int64(rows))[:, None], numbers(_int64(columns))[None, :]
    k = column - row
    inside = (k >= band.low) & (k <= band.high)
    place = (band.high - k) * _int64(most) + minimum(row, column)
    place = place + band.shift(k, _sizes(k, rows, columns), _int64(most))
    flat = reshape_to(diagonal, (*batch, band.count * most))
    return where(inside, gathered(flat, where(inside, place, 0), -1), rest)


def diag(
    diagonal: Any, name: str | None = None, k: Any = 0, num_rows: Any = -1, num_cols: Any = -1,
    padding_value: Any = 0, align: str = "RIGHT_LEFT",
) -> Tensor:  # fmt: skip
    """Matrices with given diagonals: [..., n] on the main one of [..., n, n], another, or several.

    Args:
        diagonal: one diagonal [..., length], or [..., high - low + 1, length] for a pair `k`.
        k: the diagonal, or a pair (low, high), as in `diag_part`.
        num_rows, num_cols: the sizes of the matrices; the smallest square ones without them, and
            where one of them is given, the smallest that holds the diagonals.
        padding_value: what the other elements are.
        align: as in `diag_part`.

    Raises:
        InvalidArgumentError: the sizes do not fit, or another `align`.
    """
    x, band = convert_to_tensor(diagonal), _Band("diag", k, align)
    padding = _padding(padding_value, x.dtype)
    if x.ndim < 1 + (band.count > 1):
        raise _invalid(f"diag: {x.spec} is too small for {band.count} diagonals")
    if band.count > 1 and x.dims[-2] != band.count:
        raise _invalid(f"diag: {x.shape} has not the {band.count} diagonals of k={k}")
    rows, columns = x.dims[-1] - min(band.high, 0), x.dims[-1] + max(band.low, 0)
    if _is_open(num_rows) and _is_open(num_cols):
        rows = columns = compound("max", rows, columns)
    else:
        given = [None if _is_open(n) else size_of(n, "diag: a size") for n in (num_rows, num_cols)]
        least, (rows, columns) = (rows, columns), (
            small if n is None else n for n, small in zip(given, (rows, columns), strict=True)
        )  # fmt: skip
        if (rows, columns) != least and not (rows == least[0] or columns == least[1]):
            raise _invalid(f"diag: {rows} rows and {columns} columns do not fit to diagonals of "
                           f"{x.dims[-1]} elements")  # fmt: skip
    if band.is_main and rows == columns == x.dims[-1]:
        mask = run(EYE, shape=(rows, rows), dtype=dtypes.bool)
        return where(mask, reshape_to(x, (*x.dims, 1)), padding)
    return _spread(band, x, rows, columns, padding)


def _is_open(size: Any) -> bool:
    return size is None or (isinstance(size, int | np.integer) and size == -1)


def set_diag(
    input: Any, diagonal: Any, name: str | None = None, k: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Matrices [..., m, n] with diagonals replaced.

    Args:
        diagonal: [..., length], or [..., high - low + 1, length] for a pair `k`, as `diag_part`
            gives it.
        k, align: as in `diag_part`.

    Raises:
        InvalidArgumentError: the shapes do not fit, there is no such diagonal, or another `align`.
    """
    x, band = convert_to_tensor(input), _Band("set_diag", k, align)
    new = convert_to_tensor(diagonal, x.dtype)
    inner = 1 if band.count == 1 else 2
    fits = x.ndim >= 2 and new.ndim == x.ndim - 2 + inner
    if not fits or not TensorShape(x.dims[:-2]).is_compatible_with(new.shape[: x.ndim - 2]):
        raise _invalid(f"set_diag: {new.spec} are not the diagonals of {x.spec}")
    if band.is_main and x.dims[-1] == x.dims[-2] == new.dims[-1]:
        mask = run(EYE, shape=x.dims[-2:], dtype=dtypes.bool)
        return where(mask, reshape_to(new, (*new.dims, 1)), x)
    return _spread(band, new, x.dims[-2], x.dims[-1], x)


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the main diagonal of matrices."""
    return reduce_sum(diag_part(x), -1)


def tensor_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """The tensor of shape [*s, *s] with `diagonal`, of shape s, where both halves of the position
    are equal, and 0 elsewhere.

    Raises:
        InvalidArgumentError: a scalar.
    """
    x = convert_to_tensor(diagonal)
    if not x.ndim:
        raise _invalid("tensor_diag: a scalar has no axes")
    return reshape_to(diag(reshape_to(x, (product(x.dims),))), (*x.dims, *x.dims))


def tensor_diag_part(input: Any, name: str | None = None) -> Tensor:
    """The elements of a tensor of shape [*s, *s] whose position has equal halves, of shape s.

    Raises:
        InvalidArgumentError: another shape.
    """
    x = convert_to_tensor(input)
    half = x.ndim // 2
    dims = x.dims[:half]
    if not half or x.ndim % 2 or not TensorShape(dims).is_compatible_with(x.shape[half:]):
        raise _invalid(f"tensor_diag_part: {x.shape} is not a shape repeated")
    size = product(dims)
    return reshape_to(diag_part(reshape_to(x, (size, size))), dims)
