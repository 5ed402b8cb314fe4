"""Crosses of features: all combinations of the values that an example has in several columns."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import fresh_symbol
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.repeating import repeat
from treadle.ops.registry import Op, register, run
from treadle.ops.scalars import as_bytes, integer
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.shaping.reshaping import reshape
from treadle.ops.strings.hashing import concatenated, fingerprint
from treadle.ops.strings.texts import STRINGS, invalid
from treadle.sparse.tensor import SparseTensor

_KEY = 0xDECAFCAFFE  # what hashes begin with, where no other number is given


def cross(inputs: Any, name: str | None = None, separator: Any = None) -> SparseTensor:
    """The values that each row has in several columns in all combinations, as strings.

    Args:
        inputs: a list of matrices, sparse or dense, of strings or integers, with one number of
            rows. In the result values of sparse ones come before those of dense ones.
        separator: what stands between the values; ``"_X_"`` where omitted.

    Returns:
        A sparse matrix of strings, in whose rows the combinations are, the last column's values
        changing first.

    Raises:
        TypeError: `inputs` is no list of tensors.
        InvalidArgumentError: they are no matrices, or have different numbers of rows.
    """
    given = "_X_" if separator is None else separator
    text = as_bytes("sparse.cross: separator", given)
    return SparseTensor(*crossed(_columns("sparse.cross", inputs), text))


def cross_hashed(
    inputs: Any, num_buckets: Any = 0, hash_key: Any = None, name: str | None = None
) -> SparseTensor:
    """The hashes of the combinations that `cross` gives, as TensorFlow computes them.

    Args:
        inputs: as for `cross`.
        num_buckets: the hashes are taken modulo this number; 0 for hashes of 63 bits.
        hash_key: what they begin with.

    Returns:
        A sparse matrix of int64.

    Raises:
        TypeError, InvalidArgumentError: as for `cross`.
    """
    columns = _columns("sparse.cross_hashed", inputs)
    return SparseTensor(*hashed_crosses("sparse.cross_hashed", columns, num_buckets, hash_key))


# A column: the row of each value, the values, and the number of rows.
Column: TypeAlias = "tuple[Tensor, Tensor, Tensor]"


def crossed(
    columns: Sequence[Column], separator: bytes | None, key: int = 0, buckets: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """The places, values and shape of the crosses of columns: strings, or hashes without a
    separator."""
    found: tuple[Tensor, Tensor, Tensor] = run(
        CROSS, *itertools.chain(*columns), separator=separator, key=key, buckets=buckets
    )
    return found


def hashed_crosses(
    what: str, columns: Sequence[Column], num_buckets: Any, hash_key: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """The places, hashes and shape of the crosses of columns."""
    key = _KEY if hash_key is None else integer(f"{what}: hash_key", hash_key)
    return crossed(columns, None, key, integer(f"{what}: num_buckets", num_buckets))


def column_of(what: str, x: Tensor | SparseTensor) -> Column:
    """The column that a matrix is."""
    return _of_sparse(what, x) if isinstance(x, SparseTensor) else _of_dense(what, x)


def column_of_rows(what: str, rows: Tensor, values: Tensor, count: Any) -> Column:
    """The column of values that are in some rows."""
    return cast(rows, dtypes.int64), _texts_or_integers(what, values), cast(count, dtypes.int64)


def _columns(what: str, inputs: Any) -> list[Column]:
    if not isinstance(inputs, list | tuple) or not inputs:
        raise TypeError(f"{what}: inputs must be a list of tensors{at(user_origin())}")
    given = [x if isinstance(x, SparseTensor) else convert_to_tensor(x) for x in inputs]
    sparse = [x for x in given if isinstance(x, SparseTensor)]
    dense = [x for x in given if not isinstance(x, SparseTensor)]
    return [*(_of_sparse(what, x) for x in sparse), *(_of_dense(what, x) for x in dense)]


def _of_sparse(what: str, x: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """The row of each value, the values, and the number of rows."""
    if x.shape.rank != 2:
        raise invalid(f"{what}: sparse inputs are matrices, not {x.shape}{at(user_origin())}")
    return x.indices[:, 0], _texts_or_integers(what, x.values), x.dense_shape[0]


def _of_dense(what: str, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if x.ndim != 2:
        raise invalid(f"{what}: dense inputs are matrices, not {x.shape}{at(user_origin())}")
    count, width = (dims_tensor(d, dtypes.int64) for d in x.dims)
    rows = repeat(number_range(count), width)
    return rows, reshape(_texts_or_integers(what, x), [-1]), count


def _texts_or_integers(what: str, x: Tensor) -> Tensor:
    if x.dtype is dtypes.string:
        return x
    if not x.dtype.is_integer:
        raise errors.DtypeError(
            None, None, f"{what} takes strings and integers, not {x.dtype.name}{at(user_origin())}"
        )
    return cast(x, dtypes.int64)


def _infer(
    *columns: TensorSpec, separator: bytes | None, key: int, buckets: int
) -> tuple[Spec, ...]:
    count = fresh_symbol("crosses")
    kind = dtypes.int64 if separator is None else dtypes.string
    return (
        TensorSpec((count, 2), dtypes.int64), TensorSpec((count,), kind),
        TensorSpec((2,), dtypes.int64),
    )  # fmt: skip


def _all(
    *columns: NDArray, separator: bytes | None, key: int, buckets: int
) -> tuple[NDArray, NDArray, NDArray]:
    """The places and values of the crosses, and the shape."""
    sizes = {int(count) for count in columns[2::3]}
    if len(sizes) != 1:
        raise invalid(f"the inputs of a cross have different numbers of rows: {sorted(sizes)}")
    (size,) = sizes
    prepare = _as_hashes if separator is None else _as_texts
    features = [
        _by_row(rows, prepare(values), size)
        for rows, values in zip(columns[0::3], columns[1::3], strict=True)
    ]
    places: list[tuple[int, int]] = []
    found: list[Any] = []
    widest = 0
    for row in range(size):
        combinations = list(itertools.product(*(column[row] for column in features)))
        places += [(row, k) for k in range(len(combinations))]
        widest = max(widest, len(combinations))
        if separator is None:
            hashes = (functools.reduce(concatenated, c, key) for c in combinations)
            found += [_bucket(number, buckets) for number in hashes]
        else:
            found += map(separator.join, combinations)
    kind: Any = np.int64 if separator is None else object
    indices = np.array(places, np.int64).reshape(-1, 2)
    return indices, np.array(found, kind), np.array([size, widest], np.int64)


def _by_row(rows: NDArray, values: Sequence[Any], count: int) -> list[list[Any]]:
    found: list[list[Any]] = [[] for _ in range(count)]
    for row, value in zip(rows.tolist(), values, strict=True):
        found[row].append(value)
    return found


def _as_hashes(values: NDArray) -> list[int]:
    numbers = values.reshape(-1).tolist()
    return [fingerprint(v) if isinstance(v, bytes) else v % 2**64 for v in numbers]


def _as_texts(values: NDArray) -> list[bytes]:
    return [v if isinstance(v, bytes) else str(v).encode() for v in values.reshape(-1).tolist()]


def _bucket(number: int, buckets: int) -> int:
    return number % (buckets if buckets > 0 else 2**63 - 1)


CROSS = register(
    Op("cross_features", _infer, _all, tags=STRINGS, callback="strings are objects of Python")
)
