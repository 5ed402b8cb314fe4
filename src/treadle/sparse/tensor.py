"""SparseTensor: the elements of a tensor that are not zero, and where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.composite_spec import CompositeTensor, CompositeTensorSpec
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.refusals import explain_methods
from treadle.core.shapes import Dim, TensorShape
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import Tensor
from treadle.core.trace_types import TypeSpec
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor, partial_dims, size_of
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal
from treadle.ops.indexing.masks import boolean_mask
from treadle.ops.indexing.repeating import repeat
from treadle.ops.reductions.reduction import reduce_max
from treadle.ops.requirements import require
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.ranges import range as range_
from treadle.ops.shaping.reshaping import expand_dims


class SparseTensorValue(NamedTuple):
    """A sparse tensor as arrays."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor(CompositeTensor):
    """A tensor most of whose elements are zero, or nothing.

    Args:
        indices: int64 [n, rank]: where the elements are, usually in the order of the rows.
        values: the n elements.
        dense_shape: int64 [rank]: the shape of the whole.

    To programs it is a structure of these three tensors: functions take and give it, loops carry
    it, and gradients go through `values`.

        edges = td.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 3])
        td.sparse.sparse_dense_matmul(edges, nodes)
    """

    __slots__ = ("_dense_shape", "_dims", "_indices", "_values")
    __array_ufunc__ = None  # operators of NumPy's arrays ask this class

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self._indices = cast(convert_to_tensor(indices, dtype_hint=dtypes.int64), dtypes.int64)
        self._values = convert_to_tensor(values)
        self._dims = partial_dims(dense_shape) if _is_known(dense_shape) else None
        self._dense_shape = cast(
            convert_to_tensor(dense_shape, dtype_hint=dtypes.int64), dtypes.int64
        )
        if self._indices.ndim != 2 or self._values.ndim != 1 or self._dense_shape.ndim != 1:
            raise ValueError(
                "A sparse tensor has indices [n, rank], values [n] and a dense_shape [rank], not "
                f"{self._indices.shape}, {self._values.shape} and {self._dense_shape.shape}"
                f"{at(user_origin())}"
            )
        self._check_sizes()

    def _check_sizes(self) -> None:
        pairs = (
            (self._indices.shape[0], self._values.shape[0]),
            (self._indices.shape[1], self._dense_shape.shape[0]),
        )
        for a, b in pairs:
            if a is not None and b is not None and a != b:
                raise ValueError(
                    f"The sizes of a sparse tensor do not fit: indices {self._indices.shape}, "
                    f"values {self._values.shape}, dense_shape {self._dense_shape.shape}"
                    f"{at(user_origin())}"
                )

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """A sparse tensor of a `SparseTensorValue`; sparse tensors pass through."""
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        return cls(*sparse_tensor_value)

    @property
    def indices(self) -> Tensor:
        """Where the elements are, int64 [n, rank]."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """The elements."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """The shape of the whole, int64 [rank]."""
        return self._dense_shape

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape: None for sizes that only a run can tell."""
        if not getattr(self._dense_shape, "is_symbolic", True):
            return TensorShape(self._dense_shape.numpy().tolist())
        if self._dims is not None:
            return TensorShape(self._dims)
        return TensorShape(partial_dims(self._dense_shape))

    def get_shape(self) -> TensorShape:
        """See `shape`."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Say more of the static shape.

        Raises:
            ValueError: the shape contradicts what is known.
        """
        mine = self.shape
        if not mine.is_compatible_with(shape):
            raise ValueError(f"Shapes {mine} and {shape} are not compatible{at(user_origin())}")
        self._dims = mine.merge_with(shape).exact

    @property
    def device(self) -> str:
        """TensorFlow's name of the device of the elements."""
        return self._values.device

    @property
    def is_symbolic(self) -> bool:
        """Whether it is a value of a function that is being traced."""
        return getattr(self._values, "is_symbolic", True) or self._indices.is_symbolic

    @property
    def _told(self) -> Any:
        """The known sizes of the whole, for signatures."""
        return _known_sizes(self.shape)

    def _tell(self, told: Any) -> None:
        """Let these be the known sizes of a value of a trace."""
        self._dims = TensorShape(told).exact

    @property
    def _type_spec(self) -> SparseTensorSpec:
        return SparseTensorSpec(self.shape, self.dtype)

    def _count(self) -> Tensor:
        raise TypeError(
            f"A sparse tensor is not iterated over: use td.sparse.split{at(user_origin())}"
        )

    def _row_count(self) -> Dim:
        known = self.shape[0] if self.shape.rank else None
        return size_of(self._dense_shape[0], "the number of rows") if known is None else known

    def _row(self, index: Any) -> SparseTensor:
        own = equal(self._indices[:, 0], cast(index, dtypes.int64))
        row = SparseTensor(
            boolean_mask(self._indices, own)[:, 1:],
            boolean_mask(self._values, own),
            self._dense_shape[1:],
        )
        if self.shape.rank is not None:
            row.set_shape(self.shape[1:])
        return row

    def _elements(self) -> Tensor:
        return self._values

    def _with_elements(self, elements: Any) -> SparseTensor:
        return self.with_values(elements)

    def with_values(self, new_values: Any) -> SparseTensor:
        """Other elements at the same places.

        Raises:
            ValueError: there are more or fewer; InvalidArgumentError where only a run tells.
        """
        made = SparseTensor(self._indices, new_values, self._dense_shape)._shaped_like(self)
        counts = made._indices.dims[0], made._values.dims[0]
        text = "The new values are not as many as the places of the sparse tensor"
        made._values = require(made._values, [counts], text)
        return made

    def _shaped_like(self, other: SparseTensor) -> SparseTensor:
        self._dims = other._dims
        return self

    def numpy(self) -> SparseTensorValue:
        """The parts as arrays."""
        parts = (self._indices, self._values, self._dense_shape)
        return SparseTensorValue(*(part.numpy() for part in parts))

    def eval(self, feed_dict: Any = None, session: Any = None) -> SparseTensorValue:
        """The parts as arrays."""
        return self.numpy()

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self._indices!s}, values={self._values!s}, "
            f"dense_shape={self._dense_shape!s})"
        )


def _known_sizes(shape: TensorShape) -> tuple[int | None, ...] | None:
    return None if shape.rank is None else tuple(shape.as_list())


def _is_known(shape: Any) -> bool:
    """Whether a shape is given in Python's numbers."""
    numbers = (int, np.integer)
    return isinstance(shape, list | tuple) and all(isinstance(d, numbers) for d in shape)


class SparseTensorSpec(CompositeTensorSpec):
    """The type of sparse tensors, for an `input_signature` or the elements of a dataset.

    Args:
        shape: of the whole; None for an unknown rank.
        dtype: of the elements.
    """

    __slots__ = ("_shape", "dense_shape", "indices", "values")

    value_type = seen_as = SparseTensor

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape = TensorShape(shape)
        rank = self._shape.rank
        self.indices = TensorSpec([None, rank], dtypes.int64)
        self.values = TensorSpec([None], dtype)
        self.dense_shape = TensorSpec([rank], dtypes.int64)

    @classmethod
    def of(cls, parts: Sequence[Any], shape: TensorShape) -> SparseTensorSpec:
        """The type of sparse tensors whose parts have these specs."""
        spec = object.__new__(cls)
        spec.indices, spec.values, spec.dense_shape = parts
        spec._shape = shape
        return spec

    @classmethod
    def from_value(cls, value: SparseTensor) -> SparseTensorSpec:
        """The type of a sparse tensor."""
        return value._type_spec

    @property
    def dtype(self) -> DType:
        return self.values.dtype

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def rank(self) -> int | None:
        return self._shape.rank

    @property
    def _told(self) -> Any:
        """The known sizes, for signatures."""
        return _known_sizes(self._shape)

    def _tell(self, told: Any) -> None:
        """Let these be the known sizes."""
        self._shape = TensorShape(told)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        spec = getattr(spec_or_value, "_type_spec", spec_or_value)
        fits = isinstance(spec, SparseTensorSpec) and self._shape.is_compatible_with(spec._shape)
        return fits and self.dtype is spec.dtype

    def most_specific_common_supertype(self, others: Sequence[Any]) -> SparseTensorSpec | None:
        shape = self._shape
        for other in others:
            if not isinstance(other, SparseTensorSpec) or other.dtype is not self.dtype:
                return None
            if shape.rank is None or other._shape.rank != shape.rank:
                shape = TensorShape(None)
            else:
                pairs = zip(shape, other._shape, strict=True)
                shape = TensorShape([a if a == b else None for a, b in pairs])
        return SparseTensorSpec(shape, self.dtype)

    def as_invariant(self, shape: TensorShape) -> SparseTensorSpec:
        """The type of sparse tensors of a shape."""
        return SparseTensorSpec(shape, self.dtype)

    # -- batches -------------------------------------------------------------------------------

    def batched(self, size: int | None) -> SparseTensorSpec:
        """The type of a batch."""
        shape = None if self._shape.rank is None else [size, *self._shape]
        return SparseTensorSpec(shape, self.dtype)

    def joined(self, values: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        """A batch of values, as large as the largest one."""
        indices, elements, shapes = zip(*values, strict=True)
        counts = [len(part) for part in elements]
        first = np.repeat(np.arange(len(counts)), counts)[:, None]
        places = np.concatenate([first, np.concatenate(indices)], 1)
        shape = np.array([len(counts), *np.max(shapes, 0)], np.int64)
        return places.astype(np.int64), np.concatenate(elements), shape

    def unbatched(self) -> SparseTensorSpec:
        """The type of the slices along the first axis."""
        if self._shape.rank == 0:
            raise ValueError(f"A sparse tensor without axes has no slices{at(user_origin())}")
        return SparseTensorSpec(None if self._shape.rank is None else self._shape[1:], self.dtype)

    def sliced(self, arrays: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The slices of a value along its first axis."""
        indices, elements, shape = arrays
        found = []
        for row in range(int(shape[0])):
            own = indices[:, 0] == row
            found.append((indices[own][:, 1:], elements[own], shape[1:]))
        return found

    def opened(self) -> SparseTensorSpec:
        """The type of the same values of any shape."""
        rank = self._shape.rank
        return SparseTensorSpec(None if rank is None else [None] * rank, self.dtype)

    def piece_specs(self) -> list[TensorSpec]:
        """The types of the places, of the elements, and of the shape as a row of a matrix."""
        rank = self._shape.rank
        places = TensorSpec([None, rank], dtypes.int64)
        return [places, TensorSpec([None], self.dtype), TensorSpec([1, rank], dtypes.int64)]

    def pieces(self, value: SparseTensor) -> list[Tensor]:
        """The places, the elements, and the shape as a row of a matrix."""
        return [value.indices, value.values, expand_dims(value.dense_shape, 0)]

    def of_pieces(
        self, joined: Sequence[Tensor], lengths: Sequence[Tensor], size: Any
    ) -> SparseTensor:
        """The batch of values, as large as the largest one."""
        places, elements, shapes = joined
        count = dims_tensor(size, dtypes.int64)
        numbers = repeat(range_(count), lengths[1])
        places = concat([expand_dims(numbers, 1), places], 1)
        largest = maximum(reduce_max(shapes, 0), cast(0, dtypes.int64))
        whole = SparseTensor(places, elements, concat([expand_dims(count, 0), largest], 0))
        if self._shape.rank is not None:
            whole.set_shape([size if isinstance(size, int) else None, *self._shape])
        return whole

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SparseTensorSpec)
            and self.dtype is other.dtype
            and self._shape.exact == other._shape.exact
        )

    def __hash__(self) -> int:
        return hash((SparseTensorSpec, self.dtype, self._shape.exact))

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self._shape!r}, {self.dtype!r})"


def _parts(sparse: Any) -> list[Any]:
    if isinstance(sparse, SparseTensor):
        return [sparse._indices, sparse._values, sparse._dense_shape]
    return [sparse.indices, sparse.values, sparse.dense_shape]


def _of_parts(like: Any, parts: list[Any]) -> Any:
    """Of other parts, which may be specs or whatever stands for tensors.

    Only a spec that the user wrote hands its sizes on, as another value of a loop may have others;
    signatures of functions tell them afterwards.
    """
    known = like._shape if isinstance(like, SparseTensorSpec) else None
    if isinstance(parts[1], Spec | TypeSpec):
        rank = parts[2].shape[0] if parts[2].shape.rank else None
        open_ = TensorShape(None if rank is None else [None] * rank)
        return SparseTensorSpec.of(parts, known if known is not None else open_)
    made = object.__new__(SparseTensor)
    made._indices, made._values, made._dense_shape = parts
    made._dims = known.exact if known is not None and known.rank is not None else None
    return made


nest.register_node(SparseTensor, _parts, _of_parts, lambda sparse: None)
nest.register_node(SparseTensorSpec, _parts, _of_parts, lambda spec: None)
explain_methods(SparseTensor)
