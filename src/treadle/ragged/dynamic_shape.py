"""DynamicRaggedShape: the shape of a ragged tensor, with the lengths of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core import dtypes, nest
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.refusals import explain_methods
from treadle.core.tensor import Tensor
from treadle.ops import dims
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import partial_dims
from treadle.ops.elementwise.arithmetic import add
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal
from treadle.ops.reductions.reduction import reduce_all
from treadle.ops.shaping import creation, reshaping
from treadle.ops.shaping.joining import stack
from treadle.ragged.elementwise import binary, broadcast_like
from treadle.ragged.row_partition import RowPartition
from treadle.ragged.tensor import RaggedTensor


class DynamicRaggedShape:
    """The shape of a tensor, or of a ragged one: partitions of its ragged axes, and the shape of
    its elements (`RaggedTensor.flat_values`).

    ``td.shape`` gives one for a ragged tensor; ``td.reshape``, ``td.zeros``, ``td.ones``,
    ``td.fill``, ``td.broadcast_to`` and ``td.broadcast_dynamic_shape`` take one.

    Args:
        row_partitions: a `RowPartition` for each ragged axis, the outermost first.
        inner_shape: integers, the shape of the elements; its first one is the number of values of
            the last partition.
        dtype: of sizes, int32 or int64; that of the partitions, else of the inner shape.

        shape = td.experimental.DynamicRaggedShape.from_lengths([2, (3, 1)])
        td.zeros(shape)  # [[0.0, 0.0, 0.0], [0.0]]
    """

    __slots__ = ("_inner", "_partitions")

    def __init__(
        self, row_partitions: Sequence[RowPartition], inner_shape: Any, dtype: Any = None,
        validate: bool = False, static_inner_shape: Any = None,
    ) -> None:  # fmt: skip
        rows: tuple[Any, ...] = tuple(row_partitions)
        if not all(isinstance(p, RowPartition) for p in rows):
            raise TypeError(f"row_partitions must be RowPartitions, not {rows}{at(user_origin())}")
        inner = convert_to_tensor(inner_shape, dtype_hint=dtypes.int64)
        if dtype is None:
            dtype = rows[0].dtype if rows else inner.dtype
        kind = dtypes.as_dtype(dtype)
        if kind not in (dtypes.int32, dtypes.int64) or inner.ndim != 1:
            raise ValueError(
                "A DynamicRaggedShape has sizes of int32 or int64, and an inner_shape that is a "
                f"vector, not {kind.name} and {inner.shape}{at(user_origin())}"
            )
        self._partitions = tuple(p.with_dtype(kind) for p in rows)
        self._inner = cast(inner, kind)

    @classmethod
    def from_tensor(cls, t: Any, dtype: Any = None) -> DynamicRaggedShape:
        """The shape of a tensor or ragged tensor."""
        if not isinstance(t, RaggedTensor):
            return cls([], dims.shape(t, dtypes.int64 if dtype is None else dtype))
        rows: list[RowPartition] = []
        values: Any = t
        while isinstance(values, RaggedTensor):
            rows.append(RowPartition(values.row_splits, values._uniform))
            values = values.values
        kind = t.row_splits.dtype if dtype is None else dtypes.as_dtype(dtype)
        return cls(rows, dims.shape(values, kind), kind)

    @classmethod
    def from_row_partitions(
        cls, row_partitions: Sequence[RowPartition], dtype: Any = None
    ) -> DynamicRaggedShape:
        """The shape of a ragged tensor with these partitions, whose values are a vector.

        Raises:
            ValueError: there is no partition.
        """
        rows = list(row_partitions)
        if not rows:
            raise ValueError(f"row_partitions cannot be empty{at(user_origin())}")
        return cls(rows, stack([rows[-1].nvals()]), dtype)

    @classmethod
    def from_lengths(
        cls, lengths: Sequence[Any], num_row_partitions: int | None = None,
        dtype: Any = dtypes.int64,
    ) -> DynamicRaggedShape:  # fmt: skip
        """By the size of each axis: a number, or the lengths of all rows of a ragged axis.

        Args:
            lengths: such as ``[2, (3, 1), 5]``.
            num_row_partitions: how many axes behind the first have a partition; all up to the last
                ragged one when omitted.

        Raises:
            ValueError: the lengths do not fit one another.
        """
        sizes = list(lengths)
        ragged = [i for i, size in enumerate(sizes) if isinstance(size, list | tuple)]
        if ragged and ragged[0] == 0:
            raise ValueError(f"The first axis has one size: {lengths}{at(user_origin())}")
        least = ragged[-1] if ragged else 0
        count = least if num_row_partitions is None else num_row_partitions
        if not least <= count < max(len(sizes), 1):
            raise ValueError(
                f"num_row_partitions must be from {least} to {len(sizes) - 1} for {lengths}"
                f"{at(user_origin())}"
            )
        rows, above = [], sizes[0] if sizes else 0
        for size in sizes[1 : count + 1]:
            if isinstance(size, list | tuple):
                if len(size) != above:
                    raise ValueError(
                        f"Shape not consistent: {len(size)} lengths for {above} rows in {lengths}"
                        f"{at(user_origin())}"
                    )
                rows.append(RowPartition.from_row_lengths(list(size), dtype=dtype))
                above = sum(size)
            else:
                made = RowPartition.from_uniform_row_length(size, nrows=above, dtype=dtype)
                rows.append(made)
                above *= size
        inner = [above, *sizes[count + 1 :]] if sizes else []
        return cls(rows, convert_to_tensor(inner, dtypes.as_dtype(dtype)), dtype)

    # -- parts ---------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """That of sizes: int32 or int64."""
        return self._inner.dtype

    @property
    def row_partitions(self) -> tuple[RowPartition, ...]:
        """The partitions of the ragged axes, and of what lies between them."""
        return self._partitions

    @property
    def num_row_partitions(self) -> int:
        """How many axes behind the first have a partition."""
        return len(self._partitions)

    @property
    def inner_shape(self) -> Tensor:
        """The shape of the elements."""
        return self._inner

    @property
    def inner_rank(self) -> int:
        """How many axes the elements have."""
        return int(self._inner.dims[0])  # type: ignore[arg-type]

    @property
    def rank(self) -> int:
        """How many axes there are."""
        return self.inner_rank + self.num_row_partitions

    def is_uniform(self, axis: int) -> bool:
        """Whether an axis is known to have one size."""
        place = self._axis(axis)
        return not 0 < place <= self.num_row_partitions or self._partitions[place - 1].is_uniform()

    def static_lengths(self, ragged_lengths: bool = True) -> list[Any]:
        """The size of each axis, as `from_lengths` takes them: None for what only a run tells.

        Args:
            ragged_lengths: whether ragged axes are tuples of lengths, where these are known; else
                they are None.
        """
        inner = [d if isinstance(d, int) else None for d in partial_dims(self._inner)]
        if not self._partitions:
            return inner
        found: list[Any] = [self._partitions[0].static_nrows]
        for rows in self._partitions:
            lengths = rows.row_lengths()
            if rows.is_uniform():
                found.append(rows.static_uniform_row_length)
            elif not ragged_lengths or lengths.is_symbolic:
                found.append(None)
            else:
                found.append(tuple(lengths.numpy().tolist()))
        return found + inner[1:]

    def _axis(self, axis: int) -> int:
        rank = self.rank
        if not -rank <= axis < rank:
            raise IndexError(f"Index {axis} is out of range for rank {rank}{at(user_origin())}")
        return axis % rank

    def _size(self, axis: int) -> Tensor:
        """The size of an axis.

        Raises:
            ValueError: the axis is ragged.
        """
        place, count = self._axis(axis), self.num_row_partitions
        if not place:
            return self._partitions[0].nrows() if count else self._inner[0]
        if place > count:
            return self._inner[place - count]
        length: Tensor | None = self._partitions[place - 1].uniform_row_length()
        if length is None:
            raise ValueError(f"Index {place} is not uniform{at(user_origin())}")
        return length

    def __getitem__(self, key: Any) -> Any:
        """The size of an axis, or the shape of some axes.

        Raises:
            ValueError: the axis is ragged, or one of some axes that do not begin with the first.
        """
        if not isinstance(key, slice):
            return self._size(int(key))
        start, stop, step = key.indices(self.rank)
        if step != 1:
            raise IndexError(f"Cannot stride through a shape{at(user_origin())}")
        if start == 0 and stop > 1 and self._partitions:
            return self._up_to(stop)
        if not all(self.is_uniform(axis) for axis in range(start, stop)):
            raise ValueError(f"All relevant dimensions must be uniform{at(user_origin())}")
        sizes = [self._size(axis) for axis in range(start, stop)]
        inner = stack(sizes) if sizes else convert_to_tensor([], self.dtype)
        return DynamicRaggedShape([], inner, self.dtype)

    def _up_to(self, stop: int) -> DynamicRaggedShape:
        """The shape of the first axes."""
        count = self.num_row_partitions
        if stop > count:
            return DynamicRaggedShape(self._partitions, self._inner[: stop - count], self.dtype)
        return DynamicRaggedShape.from_row_partitions(self._partitions[: stop - 1], self.dtype)

    def with_dtype(self, dtype: Any) -> DynamicRaggedShape:
        """The same with sizes of another dtype, int32 or int64."""
        return DynamicRaggedShape(self._partitions, self._inner, dtype)

    def __eq__(self, other: Any) -> Any:
        """A bool tensor: whether all sizes and lengths are equal. False for another type."""
        if not isinstance(other, DynamicRaggedShape):
            return False
        mine, theirs = self._flat_sizes(), other._flat_sizes()
        if self.rank != other.rank or len(mine) != len(theirs):
            return False
        return reduce_all(stack([_same(a, b) for a, b in zip(mine, theirs, strict=True)]))

    __hash__ = None  # type: ignore[assignment]

    def _flat_sizes(self) -> list[Tensor]:
        return [*(p.row_splits() for p in self._partitions), self._inner]

    def __repr__(self) -> str:
        return (
            f"<DynamicRaggedShape lengths={self._lengths_text()} "
            f"num_row_partitions={self.num_row_partitions}>"
        )

    def _lengths_text(self) -> str:
        return "[" + ", ".join(map(str, self.static_lengths())) + "]"

    # -- tensors of this shape -----------------------------------------------------------------

    def of_values(self, flat: Tensor) -> Any:
        """The tensor, or ragged tensor, of this shape with these elements."""
        found: Any = flat
        for rows in reversed(self._partitions):
            found = RaggedTensor(found, rows.row_splits(), rows.static_uniform_row_length)
        return found


def _same(a: Tensor, b: Tensor) -> Tensor:
    if a.dims != b.dims and isinstance(a.dims[0], int) and isinstance(b.dims[0], int):
        return convert_to_tensor(False)
    return reduce_all(equal(cast(a, dtypes.int64), cast(b, dtypes.int64)))


# -- functions that take shapes --------------------------------------------------------------------


def reshape(tensor: Any, shape: DynamicRaggedShape, name: str | None = None) -> Any:
    """The elements of a tensor, or of a ragged one, in another shape."""
    flat = tensor.flat_values if isinstance(tensor, RaggedTensor) else convert_to_tensor(tensor)
    return shape.of_values(reshaping.reshape(flat, shape.inner_shape))


def zeros(
    shape: DynamicRaggedShape, dtype: Any = dtypes.float32, name: str | None = None,
    layout: Any = None,
) -> Any:  # fmt: skip
    """Zeros in a shape."""
    return shape.of_values(creation.zeros(shape.inner_shape, dtype))


def ones(
    shape: DynamicRaggedShape, dtype: Any = dtypes.float32, name: str | None = None,
    layout: Any = None,
) -> Any:  # fmt: skip
    """Ones in a shape."""
    return shape.of_values(creation.ones(shape.inner_shape, dtype))


def fill(
    dims: DynamicRaggedShape, value: Any, name: str | None = None, layout: Any = None
) -> Any:
    """A value everywhere in a shape."""
    return dims.of_values(creation.fill(dims.inner_shape, value))


def broadcast_to(input: Any, shape: DynamicRaggedShape, name: str | None = None) -> Any:
    """A tensor, or a ragged one, repeated along axes of size 1 and new leading axes.

    Raises:
        InvalidArgumentError: it does not fit the shape.
    """
    if not shape.num_row_partitions and not isinstance(input, RaggedTensor):
        return reshaping.broadcast_to(input, shape.inner_shape)
    target = zeros(shape, dtypes.bool)
    given = input if isinstance(input, RaggedTensor) else convert_to_tensor(input)
    if isinstance(given, RaggedTensor) and given.row_splits.dtype is not shape.dtype:
        raise ValueError(
            f"The rows of the tensor are {given.row_splits.dtype.name}, those of the shape "
            f"{shape.dtype.name}: use shape.with_dtype{at(user_origin())}"
        )
    if not isinstance(given, RaggedTensor) and not given.ndim:
        return fill(shape, given)
    flat = broadcast_like(given, target)
    return shape.of_values(reshaping.broadcast_to(flat, shape.inner_shape))


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> DynamicRaggedShape:
    """The common shape of two shapes.

    Raises:
        InvalidArgumentError: there is none.
    """
    x, y = (_as_shape(shape) for shape in (shape_x, shape_y))
    y = y.with_dtype(x.dtype)
    a, b = zeros(x, dtypes.float32), zeros(y, dtypes.float32)
    ragged = x.num_row_partitions or y.num_row_partitions
    return DynamicRaggedShape.from_tensor(binary(add, a, b) if ragged else a + b, x.dtype)


def _as_shape(shape: Any) -> DynamicRaggedShape:
    return shape if isinstance(shape, DynamicRaggedShape) else DynamicRaggedShape([], shape)


def _of_parts(like: DynamicRaggedShape, parts: Sequence[Any]) -> DynamicRaggedShape:
    made = object.__new__(DynamicRaggedShape)
    *rows, inner = parts
    made._partitions, made._inner = tuple(rows), inner
    return made


nest.register_node(
    DynamicRaggedShape, lambda shape: [*shape._partitions, shape._inner], _of_parts,
    lambda shape: len(shape._partitions),
)  # fmt: skip
explain_methods(DynamicRaggedShape)
