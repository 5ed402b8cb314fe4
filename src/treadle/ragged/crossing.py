"""``td.ragged.cross`` and ``cross_hashed``: combinations of the values in the rows of columns."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.shaping.creation import zeros
from treadle.ragged.tensor import RaggedTensor
from treadle.sparse.crosses import column_of, column_of_rows, crossed, hashed_crosses
from treadle.sparse.tensor import SparseTensor


def cross(inputs: Any, name: str | None = None) -> RaggedTensor:
    """The values that each row has in several columns in all combinations, as strings with
    ``"_X_"`` between the values.

    Args:
        inputs: a list of matrices, ragged, sparse or dense, of strings or integers, with one number
            of rows.

    Returns:
        A ragged matrix of strings: the combinations of each row, the last column's values changing
        first.

    Raises:
        TypeError: `inputs` is no list.
        ValueError: one of them has another rank, or values of another dtype.
        InvalidArgumentError: they have different numbers of rows.
    """
    columns, splits = _columns("ragged.cross", inputs)
    found = crossed(columns, b"_X_")
    return _ragged(*found, splits)


def cross_hashed(
    inputs: Any, num_buckets: Any = 0, hash_key: Any = None, name: str | None = None
) -> RaggedTensor:
    """The hashes of the combinations that `cross` gives, int64.

    Args:
        inputs: as for `cross`.
        num_buckets: the hashes are taken modulo this number; 0 for hashes of 63 bits.
        hash_key: what they begin with.

    Raises:
        TypeError, ValueError, InvalidArgumentError: as for `cross`.
    """
    columns, splits = _columns("ragged.cross_hashed", inputs)
    found = hashed_crosses("ragged.cross_hashed", columns, num_buckets, hash_key)
    return _ragged(*found, splits)


def _columns(what: str, inputs: Any) -> tuple[list[Any], Any]:
    """The row of each value, the values and the number of rows of each input; and the dtype of the
    result's splits, which is that of the ragged ones."""
    if not isinstance(inputs, list | tuple):
        raise TypeError(f"{what}: Inputs must be a list{at(user_origin())}")
    given = [x if isinstance(x, RaggedTensor | SparseTensor) else convert_to_tensor(x)
             for x in inputs or [zeros([0, 0], dtypes.string)]]  # fmt: skip  (none have no rows)
    columns: list[Any] = []
    for number, x in enumerate(given):
        if x.shape.rank != 2:
            text = f"{what}: tf.ragged.cross only supports inputs with rank=2"
            raise ValueError(f"{text}, not {x.shape}{at(user_origin())}")
        if not (x.dtype.is_integer or x.dtype is dtypes.string):
            text = f"{what}: Unexpected dtype for inputs[{number}]: {x.dtype.name}"
            raise ValueError(f"{text}{at(user_origin())}")
        if isinstance(x, RaggedTensor):
            rows = x.value_rowids()
            columns.append(column_of_rows(what, rows, x.flat_values, x.nrows()))
        else:
            columns.append(column_of(what, x))
    splits = {x.row_splits.dtype for x in given if isinstance(x, RaggedTensor)}
    return columns, splits.pop() if len(splits) == 1 else dtypes.int64


def _ragged(places: Tensor, values: Tensor, shape: Tensor, splits: Any) -> RaggedTensor:
    found = RaggedTensor.from_value_rowids(values, places[:, 0], shape[0], validate=False)
    return found.with_row_splits_dtype(splits)
