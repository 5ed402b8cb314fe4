"""RaggedTensor: rows of different lengths, as one tensor of values and offsets of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.composite_spec import CompositeTensor, CompositeTensorSpec
from treadle.core.dtypes import DType
from treadle.core.errors import InvalidArgumentError
from treadle.core.origin import at, user_origin
from treadle.core.refusals import explain_methods
from treadle.core.shapes import ANY, Dim, TensorShape
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import Tensor
from treadle.core.trace_types import TypeSpec
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import not_equal
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import gather
from treadle.ops.indexing.masks import boolean_mask
from treadle.ops.reductions.reduction import reduce_any, reduce_max
from treadle.ops.shaping.creation import fill
from treadle.ops.shaping.joining import concat, stack
from treadle.ops.shaping.ranges import range as range_
from treadle.ops.shaping.reshaping import broadcast_to, reshape
from treadle.ops.shaping.static_values import get_static_value
from treadle.ops.statistics.sequences import sequence_mask
from treadle.ops.type_specs import type_spec_from_value
from treadle.ragged import partitions
from treadle.ragged.partitions import as_offsets, check_splits, count_of, lengths_of, require
from treadle.sparse.tensor import SparseTensor


class RaggedTensor(CompositeTensor):
    """A tensor some of whose axes have rows of different lengths.

    It is made by `td.ragged.constant` or by methods such as `from_row_splits`. Its elements are one
    tensor, `flat_values`; for each ragged axis there are the offsets of the rows, `row_splits`. So
    what works on elements works on `flat_values`, and all of it is differentiable and compiled.
    To programs it is a structure of these tensors: functions take and give it, loops carry it.

        lines = td.RaggedTensor.from_row_splits([3, 1, 4, 1, 5], [0, 2, 2, 5])  # [[3, 1], [], ...]
        td.reduce_sum(lines, axis=1)  # [4, 0, 10]
    """

    __slots__ = ("_row_splits", "_uniform", "_values")
    __array_ufunc__ = None  # operators of NumPy's arrays ask this class
    __hash__ = None  # type: ignore[assignment]  # == compares the elements
    __array_priority__ = 100

    if TYPE_CHECKING:  # ragged/operators.py gives these

        def __getitem__(self, key: Any) -> Any: ...
        def __iter__(self) -> Iterator[Any]: ...

    def __init__(self, values: Any, row_splits: Tensor, uniform_row_length: Any = None) -> None:
        if not isinstance(values, Tensor | RaggedTensor) or not isinstance(row_splits, Tensor):
            raise TypeError(
                "RaggedTensors are made by td.ragged.constant, RaggedTensor.from_row_splits and "
                f"the like{at(user_origin())}"
            )
        self._values, self._row_splits = values, row_splits
        self._uniform: int | None = uniform_row_length

    # -- construction --------------------------------------------------------------------------

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows by their offsets: row i has ``values[row_splits[i]:row_splits[i + 1]]``.

        Args:
            values: a tensor with at least one axis, or a ragged tensor.
            row_splits: from 0 to the number of values, never decreasing.
            validate: whether this is checked.

        Raises:
            InvalidArgumentError: the offsets are no partition of the values.
            ValueError: there are no offsets, not even 0.
        """
        values = as_values(values)
        splits = as_offsets(row_splits, _offsets_dtype(values, row_splits), "row_splits")
        if splits.dims == (0,):
            raise ValueError(f"row_splits begins with 0; it is empty{at(user_origin())}")
        if validate:
            check_splits(splits, count_of(values, splits.dtype))
        return cls(values, splits)

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows by their lengths; see `from_row_splits`."""
        values = as_values(values)
        lengths = as_offsets(row_lengths, _offsets_dtype(values, row_lengths), "row_lengths")
        splits = partitions.splits_of_lengths(lengths)
        if validate:
            check_splits(splits, count_of(values, splits.dtype))
        return cls(values, splits)

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:  # fmt: skip
        """Rows by the row of each value.

        Args:
            values: see `from_row_splits`.
            value_rowids: the number of the row of each value, never decreasing.
            nrows: how many rows there are; up to the last one that has values if it is omitted.
            validate: whether this is checked.
        """
        values = as_values(values)
        ids = as_offsets(value_rowids, _offsets_dtype(values, value_rowids), "value_rowids")
        if nrows is None:
            nrows = reduce_max(concat([ids[-1:] + 1, [0]], 0))
        rows = cast(convert_to_tensor(nrows), ids.dtype)
        if validate:
            require(
                _all_in_order(ids) & ~reduce_any(ids >= rows),
                "Arguments to from_value_rowids do not form a valid RaggedTensor",
            )
            require(count_of(values, ids.dtype) == dims_tensor(ids.dims[0], ids.dtype),
                    "from_value_rowids: values and value_rowids differ in length")  # fmt: skip
        return cls(values, partitions.splits_of_row_ids(ids, rows))

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows by the offsets of their first values."""
        values = as_values(values)
        starts = as_offsets(row_starts, _offsets_dtype(values, row_starts), "row_starts")
        end = reshape(count_of(values, starts.dtype), [1])
        return cls.from_row_splits(values, concat([starts, end], 0), validate=validate)

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows by the offsets behind their last values."""
        values = as_values(values)
        limits = as_offsets(row_limits, _offsets_dtype(values, row_limits), "row_limits")
        splits = concat([fill([1], cast(0, limits.dtype)), limits], 0)
        return cls.from_row_splits(values, splits, validate=validate)

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True,
        name: str | None = None,
    ) -> RaggedTensor:  # fmt: skip
        """Rows that are of one length, such as the middle axis of ``[None, 2, None]``.

        Args:
            values: see `from_row_splits`; their number is a multiple of the length.
            uniform_row_length: the length.
            nrows: how many rows there are; needed where the length is 0.
        """
        values = as_values(values)
        dtype = _offsets_dtype(values, None) or dtypes.int64
        length = cast(convert_to_tensor(uniform_row_length), dtype)
        count = count_of(values, dtype)
        if nrows is None:
            rows = count // where(length > 0, length, 1)
        else:
            rows = cast(convert_to_tensor(nrows), dtype)
        if validate:
            require(rows * length == count, "from_uniform_row_length: the number of values is not "
                    "nrows * uniform_row_length")  # fmt: skip
        known = get_static_value(length)
        static = None if known is None else int(known)
        return cls(values, range_(rows + 1) * length, static)

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Sequence[Any], name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:  # fmt: skip
        """Several ragged axes by their offsets, those of the outermost first."""
        return _nested(cls.from_row_splits, flat_values, nested_row_splits, validate)

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Sequence[Any], name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:  # fmt: skip
        """Several ragged axes by the lengths of their rows, the outermost first."""
        return _nested(cls.from_row_lengths, flat_values, nested_row_lengths, validate)

    @classmethod
    def from_nested_value_rowids(
        cls, flat_values: Any, nested_value_rowids: Sequence[Any], nested_nrows: Any = None,
        name: str | None = None, validate: bool = True,
    ) -> RaggedTensor:  # fmt: skip
        """Several ragged axes by the rows of their values, the outermost first."""
        counts = [None] * len(nested_value_rowids) if nested_nrows is None else nested_nrows
        result = flat_values
        for ids, count in zip(reversed(nested_value_rowids), reversed(counts), strict=True):
            result = cls.from_value_rowids(result, ids, count, validate=validate)
        return result  # type: ignore[no-any-return]

    @classmethod
    def from_tensor(
        cls, tensor: Any, lengths: Any = None, padding: Any = None, ragged_rank: int = 1,
        name: str | None = None, row_splits_dtype: Any = dtypes.int64,
    ) -> RaggedTensor:  # fmt: skip
        """The rows of a tensor, cut to lengths or to what comes before their padding.

        Args:
            tensor: at least `ragged_rank` + 1 axes.
            lengths: of each row, or a tuple of lengths for each ragged axis.
            padding: elements of this value at the ends of rows are left out. Not with `lengths`.
            ragged_rank: how many axes become ragged.
            row_splits_dtype: of the offsets.

        Raises:
            ValueError: `lengths` and `padding` are both given; the tensor has too few axes.
        """
        tensor, dtype = convert_to_tensor(tensor), dtypes.as_dtype(row_splits_dtype)
        if lengths is not None and padding is not None:
            raise ValueError(
                f"Specify argument `lengths` or `padding`, but not both{at(user_origin())}"
            )
        if ragged_rank < 1 or tensor.ndim <= ragged_rank:
            raise ValueError(
                f"from_tensor: ragged_rank {ragged_rank} for a tensor of {tensor.ndim} axes"
                f"{at(user_origin())}"
            )
        nested = isinstance(lengths, list | tuple) and bool(lengths)
        if nested and not isinstance(lengths[0], int | float):
            if ragged_rank not in (1, len(lengths)):
                raise ValueError(
                    f"from_tensor: ragged_rank {ragged_rank} for the lengths of {len(lengths)} axes"
                    f"{at(user_origin())}"
                )
            return cls._cut_axes(tensor, list(lengths), dtype)
        if ragged_rank > 1:
            return cls._cut_inner(tensor, lengths, padding, ragged_rank, dtype)
        columns = tensor.dims[1]
        if padding is not None:
            filler = convert_to_tensor(padding, tensor.dtype)
            if filler.shape.as_list() != tensor.shape.as_list()[2:]:
                raise ValueError(
                    f"from_tensor: the shape of padding is {filler.shape}, that of an element "
                    f"{tensor.shape[2:]}{at(user_origin())}"
                )
            used = not_equal(tensor, filler)
            if tensor.ndim > 2:
                used = reduce_any(used, axis=list(range(2, tensor.ndim)))
            lengths = reduce_max(cast(used, dtype) * range_(1, dims_tensor(columns, dtype) + 1), 1)
            lengths = where(
                lengths < 0, cast(0, dtype), lengths
            )  # rows of a tensor without columns
        if lengths is None:
            flat = reshape(tensor, _merged(tensor, 1))
            uniform = columns if isinstance(columns, int) else None
            rows = range_(dims_tensor(tensor.dims[0], dtype) + 1)
            return cls(flat, rows * dims_tensor(columns, dtype), uniform)
        lengths = partitions.clipped(
            as_offsets(lengths, dtype, "lengths"), dims_tensor(columns, dtype)
        )
        kept = boolean_mask(tensor, sequence_mask(lengths, dims_tensor(columns, dtype)))
        return cls(kept, partitions.splits_of_lengths(lengths))

    @classmethod
    def _cut_axes(cls, tensor: Tensor, lengths: list[Any], dtype: DType) -> RaggedTensor:
        """Each of several axes cut to its lengths."""
        result = cls.from_tensor(tensor, lengths[0], row_splits_dtype=dtype)
        if len(lengths) == 1:
            return result
        return result.with_values(cls._cut_axes(result.values, lengths[1:], dtype))

    @classmethod
    def _cut_inner(
        cls, tensor: Tensor, lengths: Any, padding: Any, ragged_rank: int, dtype: DType
    ) -> RaggedTensor:
        """The outer axes have rows of one length; the innermost ragged axis is cut."""
        flat = reshape(tensor, _merged(tensor, ragged_rank - 1))
        inner = cls.from_tensor(flat, lengths, padding, row_splits_dtype=dtype)
        for axis in range(ragged_rank - 1, 0, -1):
            size, rows = tensor.dims[axis], _product(tensor.dims[:axis])
            splits = range_(dims_tensor(rows, dtype) + 1) * dims_tensor(size, dtype)
            inner = cls(inner, splits, size if isinstance(size, int) else None)
        return inner

    # -- parts ---------------------------------------------------------------------------------

    @property
    def values(self) -> Any:
        """The rows one after another: a tensor, or a ragged one where further axes are ragged."""
        return self._values

    @property
    def flat_values(self) -> Tensor:
        """The values of the innermost ragged axis."""
        values = self._values
        while isinstance(values, RaggedTensor):
            values = values._values
        return values

    @property
    def row_splits(self) -> Tensor:
        """Where the rows begin in `values`, and where the last one ends."""
        return self._row_splits

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The offsets of all ragged axes, the outermost first."""
        inner = self._values
        return (
            self._row_splits,
            *(inner.nested_row_splits if isinstance(inner, RaggedTensor) else ()),
        )

    @property
    def uniform_row_length(self) -> Tensor | None:
        """The length of all rows, where it is known to be one."""
        return None if self._uniform is None else cast(self._uniform, self._row_splits.dtype)

    @property
    def ragged_rank(self) -> int:
        """How many axes are partitioned into rows."""
        inner = self._values
        return 1 + (inner.ragged_rank if isinstance(inner, RaggedTensor) else 0)

    @property
    def dtype(self) -> DType:
        return self.flat_values.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape: None for axes of different lengths."""
        rows = self._row_splits.dims[0]
        first: Dim = rows - 1 if isinstance(rows, int) else ANY
        second: Dim = ANY if self._uniform is None else self._uniform
        return TensorShape((first, second, *self._values.shape.exact[1:]))

    def get_shape(self) -> TensorShape:
        """See `shape`."""
        return self.shape

    @property
    def device(self) -> str:
        """TensorFlow's name of the device of the values."""
        return self.flat_values.device

    @property
    def is_symbolic(self) -> bool:
        """Whether it is a value of a function that is being traced."""
        return self.flat_values.is_symbolic or self._row_splits.is_symbolic

    @property
    def _type_spec(self) -> RaggedTensorSpec:
        """The type, which says how many rows there are, but not how many values these have."""
        values, splits = map(type_spec_from_value, (self._values, self._row_splits))
        return RaggedTensorSpec.of([_opened(values), splits], self._uniform)

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The lengths of the rows of a ragged axis; of a deeper one as a ragged tensor."""
        if axis == 0:
            return self.nrows()
        if axis == 1:
            return lengths_of(self._row_splits)
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.row_lengths(axis - 1))
        shape = self._values.dims
        size = dims_tensor(shape[axis - 1], self._row_splits.dtype)
        return self.with_values(
            fill([dims_tensor(d, dtypes.int64) for d in shape[: axis - 1]], size)
        )

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The lengths of the rows of all ragged axes, the outermost first."""
        return tuple(map(lengths_of, self.nested_row_splits))

    def value_rowids(self, name: str | None = None) -> Tensor:
        """The row of each of `values`."""
        return partitions.row_ids(self._row_splits, self._nvals())

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The rows of the values of all ragged axes, the outermost first."""
        inner = self._values
        more = inner.nested_value_rowids() if isinstance(inner, RaggedTensor) else ()
        return (self.value_rowids(), *more)

    def nrows(self, out_type: Any = None, name: str | None = None) -> Tensor:
        """How many rows there are."""
        dtype = self._row_splits.dtype if out_type is None else dtypes.as_dtype(out_type)
        return dims_tensor(self._row_splits.dims[0], dtype) - 1

    def _nvals(self, out_type: Any = None) -> Tensor:
        """How many `values` there are."""
        return count_of(self._values, self._row_splits.dtype if out_type is None else out_type)

    def row_starts(self, name: str | None = None) -> Tensor:
        """Where the rows begin in `values`."""
        return self._row_splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """Where the rows end in `values`."""
        return self._row_splits[1:]

    def bounding_shape(
        self, axis: Any = None, name: str | None = None, out_type: Any = None
    ) -> Tensor:
        """The shape of the smallest tensor that holds all rows; along one axis if that is given."""
        dtype = self._row_splits.dtype if out_type is None else dtypes.as_dtype(out_type)
        sizes = [cast(self.nrows(), dtype)]
        for splits in self.nested_row_splits:
            longest = reduce_max(concat([lengths_of(splits), [0]], 0))
            sizes.append(cast(longest, dtype))
        sizes += [dims_tensor(d, dtype) for d in self.flat_values.dims[1:]]
        if axis is None:
            return stack(sizes)
        return sizes[axis] if isinstance(axis, int) else gather(stack(sizes), axis)

    # -- with other parts ----------------------------------------------------------------------

    def _count(self) -> Tensor:
        return self.nrows()

    def _row_count(self) -> Dim:
        return self._row_splits.dims[0] - 1

    def _row(self, index: Any) -> Any:
        return self[index]

    def _elements(self) -> Tensor:
        return self.flat_values

    def _with_elements(self, elements: Any) -> RaggedTensor:
        return self.with_flat_values(elements)

    def with_values(self, new_values: Any) -> RaggedTensor:
        """The same rows of other values.

        Raises:
            ValueError: their number is known to be another one.
        """
        values = as_values(new_values)
        mine, theirs = self._values.shape[0], values.shape[0]
        if mine is not None and theirs is not None and mine != theirs:
            raise ValueError(
                f"with_values: {theirs} values for rows of {mine} in all{at(user_origin())}"
            )
        return RaggedTensor(values, self._row_splits, self._uniform)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """The same rows of other `flat_values`."""
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """The same rows with int32 or int64 offsets."""
        values = self._values
        if isinstance(values, RaggedTensor):
            values = values.with_row_splits_dtype(dtype)
        return RaggedTensor(
            values, as_offsets(self._row_splits, dtype, "row_splits"), self._uniform
        )

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """Neighbouring axes as one, from `outer_axis` to `inner_axis`."""
        rank = len(self.shape)
        outer, inner = (a + rank if a < 0 else a for a in (outer_axis, inner_axis))
        if not 0 <= outer <= inner < rank:
            raise ValueError(f"merge_dims: no axes {outer_axis} to {inner_axis}{at(user_origin())}")
        if outer == inner:
            return self
        if outer > 1:
            return self.with_values(_merged_values(self._values, outer - 1, inner - 1))
        values, splits = self._values, self._row_splits
        for _ in range(inner - outer - (outer == 0)):
            if isinstance(values, RaggedTensor):
                splits, values = gather(values._row_splits, splits), values._values
            else:
                splits = splits * dims_tensor(values.dims[1], splits.dtype)
                values = _merged_values(values, 0, 1)
        return values if outer == 0 else RaggedTensor(values, splits)

    # -- to other forms ------------------------------------------------------------------------

    def to_tensor(
        self, default_value: Any = None, name: str | None = None, shape: Any = None
    ) -> Tensor:
        """A tensor with the rows filled up at their ends.

        Args:
            default_value: what they are filled with; zeros, or empty strings, if it is omitted.
            shape: of the tensor, None for sizes that the longest rows tell. Longer rows are cut.
        """
        sizes: list[Any] = [None] * len(self.shape)
        if shape is not None:
            given = shape if isinstance(shape, list | tuple) else list(TensorShape(shape))
            sizes[: len(given)] = given
        flat = self.flat_values
        if default_value is None:
            default_value = "" if flat.dtype is dtypes.string else 0
        default = convert_to_tensor(default_value, flat.dtype)
        return self._padded(default, sizes)

    def _padded(self, default: Tensor, sizes: Sequence[Any]) -> Tensor:
        values, splits = self._values, self._row_splits
        if isinstance(values, RaggedTensor):
            values = values._padded(default, [None, *sizes[2:]])
        count, dtype = dims_tensor(values.dims[0], splits.dtype), splits.dtype
        filler = broadcast_to(
            default, [1, *(dims_tensor(d, dtypes.int64) for d in values.dims[1:])]
        )
        starts, lengths = splits[:-1], lengths_of(splits)
        if sizes[0] is not None:
            rows = cast(convert_to_tensor(sizes[0]), dtype)
            more = range_(rows)
            inside = more < self.nrows()
            source = where(inside, more, self.nrows())
            starts = gather(splits, source)
            lengths = where(inside, gather(concat([lengths, [0]], 0), source), cast(0, dtype))
        if sizes[1] is not None:
            width = cast(convert_to_tensor(sizes[1]), dtype)
        elif self._uniform is not None:
            width = cast(self._uniform, dtype)
        else:
            width = reduce_max(concat([lengths, [0]], 0))
        columns = range_(width)[None, :]
        inside = columns < lengths[:, None]
        # Places without a value read the row of fillers behind the values.
        places = where(inside, starts[:, None] + columns, count)
        return gather(concat([values, filler], 0), places)

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """The elements with their places, as a sparse tensor of the bounding shape."""
        flat = self.flat_values
        columns: list[Tensor] = [
            partitions.positions(self.nested_row_splits[-1], count_of(flat, dtypes.int64))
        ]
        part: Any = self
        levels = []
        while isinstance(part, RaggedTensor):
            levels.append(part)
            part = part._values
        row = levels[-1].value_rowids()
        for level in reversed(levels[:-1]):
            places = partitions.positions(level._row_splits, level._nvals())
            columns.insert(0, gather(places, row))
            row = gather(level.value_rowids(), row)
        columns.insert(0, row)
        indices = stack([cast(c, dtypes.int64) for c in columns], 1)
        if flat.ndim > 1:
            inner = dims_tensor(_product(flat.dims[1:]), dtypes.int64)
            number = range_(inner)
            rest: list[Tensor] = []
            for size in reversed(flat.dims[1:]):
                width = dims_tensor(size, dtypes.int64)
                rest.insert(0, number % width)
                number = number // width
            count = dims_tensor(flat.dims[0], dtypes.int64)
            outer = gather(indices, range_(count * inner) // inner)
            below = gather(stack(rest, 1), range_(count * inner) % inner)
            indices = concat([outer, below], 1)
        shape = self.bounding_shape(out_type=dtypes.int64)
        return SparseTensor(indices, reshape(flat, [-1]), shape)

    @classmethod
    def from_sparse(
        cls, st_input: Any, name: str | None = None, row_splits_dtype: Any = dtypes.int64
    ) -> RaggedTensor:
        """The rows of a sparse matrix whose elements are at the beginning of their rows.

        Raises:
            ValueError: it is no matrix.
            InvalidArgumentError: an element is missing before another one.
        """
        if not isinstance(st_input, SparseTensor):
            raise TypeError(
                f"from_sparse: Expected SparseTensor, got {st_input!r}{at(user_origin())}"
            )
        if len(st_input.shape) != 2:
            raise ValueError(f"from_sparse: rank(st_input) must be 2{at(user_origin())}")
        dtype = dtypes.as_dtype(row_splits_dtype)
        rows, columns = (cast(st_input.indices[:, i], dtype) for i in (0, 1))
        splits = partitions.splits_of_row_ids(rows, cast(st_input.dense_shape[0], dtype))
        found = partitions.positions(splits, count_of(st_input.values, dtype))
        require(
            ~reduce_any(not_equal(found, columns)), "from_sparse: SparseTensor is not right-ragged"
        )
        return cls(st_input.values, splits)

    def to_list(self) -> list[Any]:
        """Nested Python lists.

        Raises:
            ValueError: of a value of a function that is being traced.
        """
        if self.is_symbolic:
            raise ValueError(
                "to_list: a ragged tensor of a function that is being traced has no elements yet"
                f"{at(user_origin())}"
            )
        values = self._values
        inner = values.to_list() if isinstance(values, RaggedTensor) else values.numpy().tolist()
        splits = self._row_splits.numpy().tolist()
        return [inner[a:b] for a, b in zip(splits, splits[1:], strict=False)]

    def numpy(self) -> Any:
        """An array of the rows: an array of objects where their lengths differ.

        Raises:
            ValueError: of a value of a function that is being traced.
        """
        if self.is_symbolic:
            raise ValueError(
                "numpy: a ragged tensor of a function that is being traced has no elements yet"
                f"{at(user_origin())}"
            )
        values = self._values.numpy()
        splits = self._row_splits.numpy().tolist()
        rows = [values[a:b] for a, b in zip(splits, splits[1:], strict=False)]
        if len({len(row) for row in rows}) <= 1 and rows:
            return np.stack(rows)
        found = np.empty(len(rows), object)
        for i, row in enumerate(rows):
            found[i] = row
        return found if rows else np.empty((0, *values.shape), values.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        found = self.numpy()
        return found if dtype is None else found.astype(dtype)

    def __repr__(self) -> str:
        if self.is_symbolic:
            return f"tf.RaggedTensor(values={self._values!r}, row_splits={self._row_splits!r})"
        return f"<tf.RaggedTensor {self.to_list()}>"

    def __bool__(self) -> bool:
        raise TypeError(
            "RaggedTensor may not be used as a boolean: compare its elements, or reduce them"
            f"{at(user_origin())}"
        )


def as_values(values: Any) -> Any:
    """Values that can be partitioned: a tensor with axes, or a ragged tensor."""
    if isinstance(values, RaggedTensor):
        return values
    tensor = convert_to_tensor(values)
    if not tensor.ndim:
        raise InvalidArgumentError(
            None, None, f"The values of a ragged tensor need an axis{at(user_origin())}"
        )
    return tensor


def _offsets_dtype(values: Any, given: Any) -> DType | None:
    """The dtype that offsets have beside those of the values; None where both leave it open."""
    mine = given.dtype if isinstance(given, Tensor) else None
    if isinstance(given, np.ndarray) and given.dtype in (np.int32, np.int64):
        mine = dtypes.from_numpy(given.dtype)
    if not isinstance(values, RaggedTensor):
        return mine
    theirs = values.row_splits.dtype
    if mine is not None and mine is not theirs:
        raise ValueError(
            f"The offsets are {mine.name}, those of the values {theirs.name}: use "
            f"with_row_splits_dtype{at(user_origin())}"
        )
    return theirs


def _nested(
    make: Callable[..., Any], flat: Any, nested: Sequence[Any], validate: bool
) -> RaggedTensor:
    if isinstance(nested, Tensor):
        raise TypeError(f"Offsets of several axes are a list of tensors{at(user_origin())}")
    result = flat
    for part in reversed(nested):
        result = make(result, part, validate=validate)
    return result  # type: ignore[no-any-return]


def _all_in_order(ids: Tensor) -> Tensor:
    return ~reduce_any(concat([ids[:1], ids[1:] - ids[:-1]], 0) < 0)


def _product(dims: Sequence[Dim]) -> Dim:
    found: Dim = 1
    for dim in dims:
        found = found * dim
    return found


def _merged(tensor: Tensor, axis: int) -> list[Any]:
    """The shape of a tensor whose axes up to axis + 1 are one."""
    first = _product(tensor.dims[: axis + 1])
    if axis >= 1:
        first = _product(tensor.dims[: axis + 1])
    return [dims_tensor(d, dtypes.int64) for d in (first, *tensor.dims[axis + 1 :])]


def _merged_values(values: Any, outer: int, inner: int) -> Any:
    """Values with the axes from `outer` to `inner` as one."""
    if isinstance(values, RaggedTensor):
        return values.merge_dims(outer, inner)
    if outer == inner:
        return values
    dims = values.dims
    sizes = (*dims[:outer], _product(dims[outer : inner + 1]), *dims[inner + 1 :])
    return reshape(values, [dims_tensor(d, dtypes.int64) for d in sizes])


# -- the type ------------------------------------------------------------------------------------


class RaggedTensorSpec(CompositeTensorSpec):
    """The type of ragged tensors, for an `input_signature` or the elements of a dataset.

    Args:
        shape: None for the axes whose rows differ in length.
        dtype: of the elements.
        ragged_rank: how many axes are partitioned; all but the first if it is omitted. 0 is the
            type of tensors that are rows of a ragged tensor, so that batches of them are ragged.
        row_splits_dtype: of the offsets.
        flat_values_spec: the spec of the elements, in place of `dtype`.

    Raises:
        ValueError: neither a shape nor a ragged rank is given, or they do not fit.
    """

    __slots__ = ("offsets", "row_splits", "uniform", "values")

    value_type = seen_as = RaggedTensor

    def __init__(
        self, shape: Any = None, dtype: Any = dtypes.float32, ragged_rank: int | None = None,
        row_splits_dtype: Any = dtypes.int64, flat_values_spec: Any = None,
    ) -> None:  # fmt: skip
        whole = TensorShape(shape)
        if ragged_rank is None:
            if whole.rank is None:
                raise ValueError(
                    f"RaggedTensorSpec needs a shape or a ragged_rank{at(user_origin())}"
                )
            ragged_rank = whole.rank - 1
        if whole.rank is not None and ragged_rank >= whole.rank:
            raise ValueError(
                f"ragged_rank {ragged_rank} must be less than the rank {whole.rank}"
                f"{at(user_origin())}"
            )
        if flat_values_spec is None:
            inner = None if whole.rank is None else [None, *whole[ragged_rank + 1 :]]
            flat_values_spec = TensorSpec(whole if ragged_rank == 0 else inner, dtype)
        self.values: Any = flat_values_spec
        self.offsets = dtypes.as_dtype(row_splits_dtype)
        self.row_splits: Any = None
        self.uniform = None
        if ragged_rank == 0:
            return
        rows = None if whole.rank is None else whole[0]
        self.uniform = None if whole.rank is None else whole[1]
        self.row_splits = TensorSpec([None if rows is None else rows + 1], row_splits_dtype)
        if ragged_rank > 1:
            below = None if whole.rank is None else [None, *whole[2:]]
            self.values = RaggedTensorSpec(
                below, dtype, ragged_rank - 1, row_splits_dtype, flat_values_spec
            )

    @classmethod
    def of(cls, parts: Sequence[Any], uniform: int | None) -> RaggedTensorSpec:
        """The type of ragged tensors whose parts have these specs."""
        spec = object.__new__(cls)
        (spec.values, spec.row_splits), spec.uniform = parts, uniform
        spec.offsets = spec.row_splits.dtype
        return spec

    @classmethod
    def of_rows(cls, values: Any, offsets: DType) -> RaggedTensorSpec:
        """The type of tensors with the spec `values` that are rows of a ragged tensor."""
        return cls(None, ragged_rank=0, flat_values_spec=values, row_splits_dtype=offsets)

    @classmethod
    def from_value(cls, value: RaggedTensor) -> RaggedTensorSpec:
        """The type of a ragged tensor."""
        return value._type_spec

    @property
    def flat_values_spec(self) -> Any:
        """The spec of the elements."""
        values = self.values
        return values.flat_values_spec if isinstance(values, RaggedTensorSpec) else values

    @property
    def dtype(self) -> DType:
        return self.flat_values_spec.dtype  # type: ignore[no-any-return]

    @property
    def row_splits_dtype(self) -> DType:
        return self.offsets

    @property
    def ragged_rank(self) -> int:
        if self.row_splits is None:
            return 0
        return 1 + (self.values.ragged_rank if isinstance(self.values, RaggedTensorSpec) else 0)

    @property
    def shape(self) -> TensorShape:
        if self.row_splits is None:
            return self.values.shape  # type: ignore[no-any-return]
        rows = self.row_splits.dims[0]
        first: Any = rows - 1 if isinstance(rows, int) else None
        below = self.values.shape
        return TensorShape([first, self.uniform, *below[1:]])

    @property
    def rank(self) -> int | None:
        return self.shape.rank

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        spec = getattr(spec_or_value, "_type_spec", spec_or_value)
        if self.row_splits is None:
            given = spec.values if isinstance(spec, RaggedTensorSpec) else spec
            return bool(self.values.is_compatible_with(given))
        fits = isinstance(spec, RaggedTensorSpec) and self.uniform in (None, spec.uniform)
        return fits and super().is_compatible_with(spec)

    def as_invariant(self, shape: TensorShape) -> RaggedTensorSpec:
        """The type of ragged tensors of a shape."""
        return RaggedTensorSpec(shape, self.dtype, self.ragged_rank, self.offsets)

    # -- batches -------------------------------------------------------------------------------

    def batched(self, size: int | None) -> RaggedTensorSpec:
        """The type of a batch: ragged along the first axis of the values."""
        splits = TensorSpec([None if size is None else size + 1], self.offsets)
        values, shape = self.values if self.row_splits is None else self, self.shape
        return RaggedTensorSpec.of([_opened(values), splits], shape[0] if shape.rank else None)

    def joined(self, values: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        """A batch of values."""
        flat, *nested = zip(*values, strict=True)
        counts = [len(v) - 1 for v in nested[-1]] if nested else [len(v) for v in flat]
        splits = [_joined_offsets(column) for column in nested]
        outer = np.cumsum([0, *counts]).astype(self.offsets.np_dtype)
        return (np.concatenate(flat), *splits, outer)

    def unbatched(self) -> RaggedTensorSpec:
        """The type of the rows."""
        inner = _opened(self.values, self.uniform)
        return (
            inner
            if isinstance(inner, RaggedTensorSpec)
            else RaggedTensorSpec.of_rows(inner, self.offsets)
        )

    def sliced(self, arrays: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The rows of a value."""
        *inner, outer = arrays
        return [_rows_between(inner, a, b) for a, b in zip(outer, outer[1:], strict=False)]

    def opened(self) -> RaggedTensorSpec:
        """The type of the same values of any shape."""
        rank = self.shape.rank
        shape = None if rank is None else [None] * rank
        return RaggedTensorSpec(shape, self.dtype, self.ragged_rank, self.offsets)

    def piece_specs(self) -> list[TensorSpec]:
        """The types of the elements, and of the lengths of the rows of each axis."""
        flat = self.flat_values_spec.shape
        whole = flat if flat.rank is None else [None, *flat[1:]]
        axes = [TensorSpec([None], self.offsets)] * self.ragged_rank
        return [TensorSpec(whole, self.dtype), *axes]

    def pieces(self, value: Any) -> list[Tensor]:
        """The elements, and the lengths of the rows of each axis."""
        if not isinstance(value, RaggedTensor):
            return [convert_to_tensor(value)]
        return [value.flat_values, *value.nested_row_lengths()]

    def of_pieces(
        self, joined: Sequence[Tensor], lengths: Sequence[Tensor], size: Any
    ) -> RaggedTensor:
        """The batch of values with these elements and lengths of rows."""
        flat, *nested = joined
        outer = cast(lengths[1] if nested else lengths[0], self.offsets)
        result: Any = flat
        uniform = [None] if self.shape.rank is None else self.shape[: len(nested) + 1]
        for axis in reversed(nested):
            result = RaggedTensor(result, partitions.splits_of_lengths(axis))
        result = RaggedTensor(result, partitions.splits_of_lengths(outer))
        return _with_uniform(result, uniform)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return (
            f"RaggedTensorSpec({self.shape!r}, {self.dtype!r}, {self.ragged_rank}, "
            f"{self.row_splits_dtype!r})"
        )


def _with_uniform(ragged: Any, sizes: Sequence[Any]) -> Any:
    """A ragged tensor of whose axes some are known to have rows of one length."""
    if not isinstance(ragged, RaggedTensor):
        return ragged
    size, *more = sizes if sizes else [None]
    return RaggedTensor(_with_uniform(ragged._values, more), ragged._row_splits, size)


def _opened(spec: Any, rows: int | None = None) -> Any:
    """The type of so many rows of values; of any number where `rows` is None."""
    if not isinstance(spec, RaggedTensorSpec):
        if not spec.has_rank:
            return TensorSpec(None, spec.dtype).on(spec.device)
        return spec.with_dims([ANY if rows is None else rows, *spec.dims[1:]])
    count = None if rows is None else rows + 1
    splits = TensorSpec([count], spec.offsets).on(spec.row_splits.device)
    return RaggedTensorSpec.of([_opened(spec.values), splits], spec.uniform)


def _joined_offsets(column: Sequence[Any]) -> Any:
    """The offsets of values behind one another."""
    base, found = 0, [column[0][:1]]
    for offsets in column:
        found.append(offsets[1:] + base)
        base += offsets[-1]
    return np.concatenate(found)


def _rows_between(arrays: Sequence[Any], begin: int, end: int) -> tuple[Any, ...]:
    """Neighbouring rows of a value, which has its elements and the offsets of its axes."""
    found = []
    for offsets in arrays[:0:-1]:
        part = offsets[begin : end + 1]
        found.append(part - part[0])
        begin, end = part[0], part[-1]
    return (arrays[0][begin:end], *found[::-1])


def _parts(ragged: Any) -> list[Any]:
    if isinstance(ragged, RaggedTensor):
        return [ragged._values, ragged._row_splits]
    if ragged.row_splits is None:
        return [ragged.values]
    return [ragged.values, ragged.row_splits]


def _of_parts(like: Any, parts: list[Any]) -> Any:
    """Of other parts, which may be specs or whatever stands for tensors.

    That rows are of one length is no part of the type, so that a trace serves all lengths: only a
    spec that the user wrote hands it on, and the result of a function, whose trace knows it.
    """
    uniform = like.uniform if isinstance(like, RaggedTensorSpec) else None
    if uniform is None and any(getattr(p, "is_result", False) for p in (*parts, *_parts(like))):
        uniform = like._uniform if isinstance(like, RaggedTensor) else None
    if len(parts) == 1:  # rows of a ragged tensor are tensors
        is_spec = isinstance(parts[0], Spec | TypeSpec)
        return RaggedTensorSpec.of_rows(parts[0], like.offsets) if is_spec else parts[0]
    if isinstance(parts[1], Spec | TypeSpec):
        return RaggedTensorSpec.of(parts, uniform)
    made = object.__new__(RaggedTensor)
    made._values, made._row_splits = parts
    made._uniform = uniform
    return made


nest.register_node(RaggedTensor, _parts, _of_parts, lambda ragged: None)
nest.register_node(RaggedTensorSpec, _parts, _of_parts, lambda spec: None)
explain_methods(RaggedTensor)
