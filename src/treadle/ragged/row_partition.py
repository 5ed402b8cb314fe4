"""RowPartition: how values are shared out among rows, without the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core import dtypes, nest
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.refusals import explain_methods
from treadle.core.shapes import Dim
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.reductions.reduction import reduce_max
from treadle.ops.shaping.creation import fill
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.ranges import range as range_
from treadle.ops.shaping.reshaping import reshape
from treadle.ragged import partitions
from treadle.ragged.partitions import as_offsets, require


class RowPartition:
    """A partition of values into rows of different lengths: the offsets of the rows.

    It is made by methods such as `from_row_lengths`, and is what a `DynamicRaggedShape` has for
    each ragged axis.

        td.experimental.RowPartition.from_row_lengths([5, 3, 2]).nvals()  # 10
    """

    __slots__ = ("_splits", "_uniform")

    def __init__(self, row_splits: Tensor, uniform_row_length: Any = None) -> None:
        if not isinstance(row_splits, Tensor):
            raise ValueError(
                "RowPartitions are made by RowPartition.from_row_splits and the like"
                f"{at(user_origin())}"
            )
        self._splits = row_splits
        self._uniform: int | None = uniform_row_length

    # -- construction --------------------------------------------------------------------------

    @classmethod
    def from_row_splits(
        cls, row_splits: Any, validate: bool = True, dtype: Any = None,
        dtype_hint: Any = None,
    ) -> RowPartition:  # fmt: skip
        """By offsets, which begin with 0 and never decrease.

        Raises:
            InvalidArgumentError: they do not.
        """
        splits = as_offsets(row_splits, dtype, "row_splits")
        if validate:
            partitions.check_splits(splits, splits[-1])
        return cls(splits)

    @classmethod
    def from_row_lengths(
        cls, row_lengths: Any, validate: bool = True, dtype: Any = None,
        dtype_hint: Any = None,
    ) -> RowPartition:  # fmt: skip
        """By the lengths of the rows."""
        lengths = as_offsets(row_lengths, dtype, "row_lengths")
        splits = partitions.splits_of_lengths(lengths)
        if validate:
            partitions.check_splits(splits, splits[-1])
        return cls(splits)

    @classmethod
    def from_value_rowids(
        cls, value_rowids: Any, nrows: Any = None, validate: bool = True, dtype: Any = None,
        dtype_hint: Any = None,
    ) -> RowPartition:  # fmt: skip
        """By the row of each value, in order. Without `nrows` the last row is one with values."""
        ids = as_offsets(value_rowids, dtype, "value_rowids")
        if nrows is None:
            nrows = reduce_max(concat([ids[-1:] + 1, [0]], 0))
        return cls(partitions.splits_of_row_ids(ids, cast(convert_to_tensor(nrows), ids.dtype)))

    @classmethod
    def from_row_starts(
        cls, row_starts: Any, nvals: Any, validate: bool = True, dtype: Any = None,
        dtype_hint: Any = None,
    ) -> RowPartition:  # fmt: skip
        """By the offsets of the first values of rows, and the number of values."""
        starts = as_offsets(row_starts, dtype, "row_starts")
        end = reshape(cast(convert_to_tensor(nvals), starts.dtype), [1])
        return cls.from_row_splits(concat([starts, end], 0), validate)

    @classmethod
    def from_row_limits(
        cls, row_limits: Any, validate: bool = True, dtype: Any = None,
        dtype_hint: Any = None,
    ) -> RowPartition:  # fmt: skip
        """By the offsets behind the last values of rows."""
        limits = as_offsets(row_limits, dtype, "row_limits")
        return cls.from_row_splits(concat([fill([1], cast(0, limits.dtype)), limits], 0), validate)

    @classmethod
    def from_uniform_row_length(
        cls, uniform_row_length: Any, nvals: Any = None, nrows: Any = None, validate: bool = True,
        dtype: Any = None, dtype_hint: Any = dtypes.int64,
    ) -> RowPartition:  # fmt: skip
        """By the one length of all rows, and the number of values or of rows.

        Raises:
            ValueError: both numbers are missing.
            InvalidArgumentError: the number of values is no multiple of the length.
        """
        if nvals is None and nrows is None:
            raise ValueError(f"Either nvals or nrows must be specified{at(user_origin())}")
        kind = dtypes.as_dtype(dtype or dtype_hint)
        length = cast(convert_to_tensor(uniform_row_length), kind)
        if nrows is None:
            nrows = cast(convert_to_tensor(nvals), kind) // length
        rows = cast(convert_to_tensor(nrows), kind)
        if nvals is not None and validate:
            require(rows * length == cast(convert_to_tensor(nvals), kind),
                    "from_uniform_row_length: nvals is not nrows * uniform_row_length")  # fmt: skip
        static = None if length.is_symbolic else int(length)
        return cls(range_(rows + 1) * length, static)

    # -- parts ---------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """That of the offsets."""
        return self._splits.dtype

    def row_splits(self) -> Tensor:
        """Where each row begins, and the last one ends."""
        return self._splits

    def row_lengths(self) -> Tensor:
        """The length of each row."""
        return partitions.lengths_of(self._splits)

    def row_starts(self) -> Tensor:
        """Where each row begins."""
        return self._splits[:-1]

    def row_limits(self) -> Tensor:
        """Where each row ends."""
        return self._splits[1:]

    def value_rowids(self) -> Tensor:
        """The row of each value."""
        return partitions.row_ids(self._splits, self.nvals())

    def offsets_in_rows(self) -> Tensor:
        """The place of each value in its row."""
        return partitions.positions(self._splits, self.nvals())

    def nrows(self) -> Tensor:
        """How many rows there are."""
        return dims_tensor(self._splits.dims[0] - 1, self.dtype)

    def nvals(self) -> Tensor:
        """How many values there are."""
        return self._splits[-1]

    def uniform_row_length(self) -> Tensor | None:
        """The one length of all rows; None where they may differ."""
        return None if self._uniform is None else cast(self._uniform, self.dtype)

    def is_uniform(self) -> bool:
        """Whether all rows are known to be of one length."""
        return self._uniform is not None

    @property
    def static_nrows(self) -> int | None:
        """The number of rows, None where only a run tells."""
        return _known(self._splits.dims[0] - 1)

    @property
    def static_nvals(self) -> int | None:
        """The number of values, None where only a run tells."""
        rows, length = self.static_nrows, self._uniform
        return None if rows is None or length is None else rows * length

    @property
    def static_uniform_row_length(self) -> int | None:
        """The one length of all rows; None where they may differ."""
        return self._uniform

    def with_dtype(self, dtype: Any) -> RowPartition:
        """The same with offsets of another dtype, int32 or int64."""
        return RowPartition(as_offsets(self._splits, dtype, "row_splits"), self._uniform)

    def __repr__(self) -> str:
        if self._uniform is not None:
            return (
                f"tf.RowPartition(nrows={self.static_nrows}, uniform_row_length={self._uniform})"
            )
        shown = self._splits if self._splits.is_symbolic else self._splits.numpy()
        return f"tf.RowPartition(row_splits={shown})"


def _known(dim: Dim) -> int | None:
    return dim if isinstance(dim, int) else None


def _of_parts(like: RowPartition, parts: Sequence[Any]) -> RowPartition:
    made = object.__new__(RowPartition)
    (made._splits,), made._uniform = parts, like._uniform
    return made


nest.register_node(RowPartition, lambda p: [p._splits], _of_parts, lambda p: p._uniform)
explain_methods(RowPartition)
