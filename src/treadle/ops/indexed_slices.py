"""IndexedSlices: some rows of a larger tensor, as gradients of what reads rows are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core import dtypes, nest
from treadle.core.composite_spec import CompositeSpec
from treadle.core.dtypes import DType
from treadle.core.origin import Origin, forced_origin
from treadle.core.shapes import Dim, TensorShape
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor


class IndexedSlices:
    """A tensor that is zero but for some rows: row ``indices[i]`` has ``values[i]`` added to it.

    Gradients of `gather`, `nn.embedding_lookup` and `Variable.sparse_read` are of this kind. Where
    an operation takes a tensor, they are converted to one, with the rows of equal indices added in
    their order. Optimizers and the scatters of variables work on the rows alone.

    Args:
        values: the rows, a tensor of shape ``[n, ...]``.
        indices: n integers.
        dense_shape: the shape of the whole tensor, as a vector of integers. Without it the rows
            cannot be converted to a tensor.
    """

    __slots__ = ("_dense_shape", "_dims", "_indices", "_values", "origin")

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values, self._indices = convert_to_tensor(values), convert_to_tensor(indices)
        self._dense_shape = None if dense_shape is None else convert_to_tensor(dense_shape)
        self._dims: tuple[Dim, ...] | None = None
        # The line that read the rows of which these are the gradient: the sum over the rows counts
        # as its own, wherever it is that a tensor is needed.
        self.origin: Origin | None = forced_origin()

    @classmethod
    def of_dims(
        cls, values: Tensor, indices: Tensor, dense_shape: Tensor, dims: tuple[Dim, ...]
    ) -> IndexedSlices:
        """Rows of a tensor whose dims are known exactly, symbolic ones included."""
        slices = cls(values, indices, dense_shape)
        slices._dims = dims
        return slices

    @property
    def values(self) -> Tensor:
        """The rows."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """The number of each row."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """The shape of the whole tensor, a vector of integers; None where it is not known."""
        return self._dense_shape

    @property
    def dims(self) -> tuple[Dim, ...] | None:
        """The exact dims of the whole tensor, where it was made with them."""
        return self._dims

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole tensor; of unknown rows where only a run can tell."""
        if self._dims is not None:
            return TensorShape(self._dims)
        rows = None
        if self._dense_shape is not None and not self._dense_shape.is_symbolic:
            rows = int(self._dense_shape.numpy()[0])
        return TensorShape((rows, *self._values.shape[1:]))

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def device(self) -> str:
        """TensorFlow's name of the device of the rows."""
        return self._values.device

    @property
    def _type_spec(self) -> IndexedSlicesSpec:
        return IndexedSlicesSpec.of([TensorSpec.from_tensor(part) for part in _parts(self)])

    def with_values(self, values: Tensor) -> IndexedSlices:
        """Other rows at the same places."""
        return self.with_rows(values, self._indices)

    def with_rows(self, values: Tensor, indices: Tensor) -> IndexedSlices:
        """Other rows of a tensor of the same shape."""
        slices = IndexedSlices(values, indices, self._dense_shape)
        slices._dims, slices.origin = self._dims, self.origin
        return slices

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        """The elements of the whole tensor."""
        return convert_to_tensor(self).__array__(dtype, copy)

    def __neg__(self) -> IndexedSlices:
        return self.with_values(-self._values)

    def __repr__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape}"
        return f"IndexedSlices(indices={self._indices}, values={self._values}{shape})"


def on_values(function: Callable[[Tensor], Tensor], x: Any) -> Any:
    """``function(x)``; for IndexedSlices that of their rows, which stay where they are."""
    if isinstance(x, IndexedSlices):
        return x.with_values(function(x.values))
    return function(x)


def values_of(x: Any) -> Any:
    """The rows of IndexedSlices; anything else as it is."""
    return x.values if isinstance(x, IndexedSlices) else x


def _parts(slices: Any) -> list[Any]:
    shape = slices.dense_shape
    return [slices.values, slices.indices, *(() if shape is None else (shape,))]


def _of_parts(like: Any, parts: list[Any]) -> Any:
    """Of other parts, which may be specs or whatever stands for tensors."""
    if isinstance(parts[0], Spec):
        return IndexedSlicesSpec.of(parts)
    slices = object.__new__(IndexedSlices)
    slices._values, slices._indices, *shape = parts
    slices._dense_shape, slices._dims = shape[0] if shape else None, None
    slices.origin = like.origin
    return slices


nest.register_node(IndexedSlices, _parts, _of_parts, lambda slices: slices.dense_shape is not None)


class IndexedSlicesSpec(CompositeSpec):
    """The type of `IndexedSlices`, for an `input_signature`.

    Args:
        shape: of the whole tensor; None for an unknown rank.
        dtype: of the rows.
        indices_dtype: int32 or int64.
        dense_shape_dtype: the dtype of `dense_shape`; None for rows of a tensor of unknown shape.
        indices_shape: ``[n]`` for n rows, any number where it is omitted.
    """

    __slots__ = ("dense_shape", "indices", "values")

    value_type = seen_as = IndexedSlices
    origin = None  # of the gradients that have this type

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        indices_dtype: Any = dtypes.int64,
        dense_shape_dtype: Any = None,
        indices_shape: Any = None,
    ) -> None:
        whole, count = TensorShape(shape), TensorShape(indices_shape or [None])
        unranked = whole.rank is None
        self.values = TensorSpec(None if unranked else count.concatenate(whole[1:]), dtype)
        self.indices = TensorSpec(count, indices_dtype)
        self.dense_shape = None
        if dense_shape_dtype is not None:
            self.dense_shape = TensorSpec([whole.rank], dense_shape_dtype)

    @classmethod
    def of(cls, parts: list[Any]) -> IndexedSlicesSpec:
        """The type of slices whose parts have these specs."""
        spec = object.__new__(cls)
        spec.values, spec.indices, *shape = parts
        spec.dense_shape = shape[0] if shape else None
        return spec

    def as_invariant(self, shape: TensorShape) -> IndexedSlicesSpec:
        """The type of slices whose rows together have a shape."""
        rows = TensorSpec(shape, self.dtype)
        indices = TensorSpec(shape[:1], self.indices.dtype)
        shapes = [] if self.dense_shape is None else [self.dense_shape]
        return IndexedSlicesSpec.of([rows, indices, *shapes])

    @property
    def dtype(self) -> DType:
        return self.values.dtype

    def __repr__(self) -> str:
        shape = "" if self.dense_shape is None else f", dense_shape={self.dense_shape!r}"
        return f"IndexedSlicesSpec(values={self.values!r}, indices={self.indices!r}{shape})"


nest.register_node(IndexedSlicesSpec, _parts, _of_parts, lambda spec: spec.dense_shape is not None)
