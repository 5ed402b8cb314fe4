"""TensorArray: a list of tensors to write and read by index, in loops too."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes, errors, nest
from treadle.core.composite_spec import CompositeSpec
from treadle.core.context import context
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import (
    ANY,
    UNKNOWN_RANK,
    UNKNOWN_SHAPE,
    Dim,
    TensorShape,
    dim_symbols,
)
from treadle.core.spec import ListSpec, has_element_shape
from treadle.core.tensor import Tensor
from treadle.ops.collections import lists
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import as_dim_value
from treadle.ops.indexing.gather import gather
from treadle.ops.shaping.creation import zeros
from treadle.ops.shaping.reshaping import with_dims


class _Elements:
    """What is known of the elements, shared by all versions of one TensorArray.

    Python sees a loop's body once, so what it writes is known when the loop has been traced,
    while the graph's list is still of unknown shape where it enters the loop.

    Attributes:
        dims: their shape, None while nothing is known of it.
        infer: whether all have the shape of the first.
        count: how many there are, None where only a run can tell.
    """

    def __init__(self, dims: tuple[Dim, ...] | None, infer: bool, count: int | None) -> None:
        self.dims = dims
        self.infer = infer
        self.count = count

    def meet(self, dims: tuple[Dim, ...]) -> None:
        """Learn the shape from an element that is written."""
        dims = tuple(d if isinstance(d, int) or is_argument(d) else ANY for d in dims)
        if not self.infer:
            dims = tuple(ANY for _ in dims)
        if self.dims is None:
            self.dims = dims
        elif not TensorShape(self.dims).is_compatible_with(TensorShape(dims)):
            raise ValueError(
                f"TensorArray: a value of shape {TensorShape(dims)} does not fit the elements' "
                f"shape {TensorShape(self.dims)}{at(user_origin())}"
            )

    def recount(self, count: Dim) -> None:
        """Learn that the array may have this many elements from now on."""
        if count != self.count:
            self.count = None


def is_argument(dim: Dim) -> bool:
    """Whether a symbolic dim is known in the whole function: one of its arguments' dims."""
    if context.recorder is None:
        return False
    params = context.recorder.graph.params  # type: ignore[attr-defined]
    known = frozenset().union(*(p.spec.symbols() for p in params))
    return dim_symbols(dim) <= known


def _known_count(size: Any) -> int | None:
    """The number of elements that a TensorArray is made with, where it is static."""
    count = 0 if size is None else as_dim_value(size)
    return count if isinstance(count, int) else None


class TensorArray:
    """A list of tensors of one dtype.

    Eagerly, `write` changes the array and returns it. In a function it returns a new one, as in
    TensorFlow: go on with ``ta = ta.write(i, x)``. An element may be read more than once, and one
    that was never written reads as zeros.

    Args:
        dtype: of the elements.
        size: how many elements, an int or scalar tensor; 0 when omitted.
        dynamic_size: whether writing beyond the end extends the array.
        infer_shape: whether all elements must have the shape of the first.
        element_shape: the elements' shape, None for dims that vary; learned when omitted.
        clear_after_read, tensor_array_name, colocate_with_first_write_call, name: accepted for
            TensorFlow programs.
    """

    def __init__(
        self, dtype: Any, size: Any = None, dynamic_size: bool | None = None,
        clear_after_read: bool | None = None, tensor_array_name: str | None = None,
        handle: Any = None, flow: Any = None, infer_shape: bool = True,
        element_shape: Any = None, colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:  # fmt: skip
        if handle is not None or flow is not None:
            raise ValueError(
                f"TensorArray: handle and flow belong to TensorFlow's graphs{at(user_origin())}"
            )
        self._dtype = dtypes.as_dtype(dtype)
        self.dynamic_size = bool(dynamic_size)
        dims = None if element_shape is None else TensorShape(element_shape).exact
        self._elements = _Elements(dims, infer_shape, None if dynamic_size else _known_count(size))
        unknown = UNKNOWN_SHAPE if infer_shape else UNKNOWN_RANK
        spec = ListSpec(unknown if dims is None else dims, self._dtype)
        self._list = lists.list_new(spec, None if size is None else size)

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def element_shape(self) -> TensorShape | None:
        """The elements' shape; None while it is not known."""
        return None if self._elements.dims is None else TensorShape(self._elements.dims)

    @property
    def dims_of_elements(self) -> tuple[Dim, ...] | None:
        """What is known of the elements' shape, None while that is nothing."""
        return self._elements.dims

    @property
    def handle(self) -> None:
        return None

    @property
    def flow(self) -> Tensor:
        """The list itself, which nodes of a graph depend on."""
        return self._list

    # -- writing -----------------------------------------------------------------------------

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with `value` at `index`.

        Raises:
            ValueError: the value's shape is not that of the other elements.
            OutOfRangeError: `index` is beyond the end and the size is not dynamic.
        """
        tensor = self._value(value)
        self._elements.meet(tensor.dims)
        return self._updated(lists.list_set(self._list, index, tensor, grow=self.dynamic_size))

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array of ``value[0], value[1], ...``."""
        tensor = self._value(value)
        self._elements.meet(tensor.dims[1:])
        self._elements.recount(tensor.dims[0])
        return self._updated(lists.list_unstack(tensor))

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array of consecutive pieces of `value`, with these lengths along the first axis."""
        tensor = self._value(value)
        lengths = convert_to_tensor(lengths, dtype_hint=dtypes.int32)
        self._elements.meet((ANY, *tensor.dims[1:]))
        self._elements.recount(lengths.dims[0] if lengths.ndim else ANY)
        return self._updated(lists.list_split(tensor, lengths))

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with ``value[k]`` at ``indices[k]``."""
        tensor = self._value(value)
        self._elements.meet(tensor.dims[1:])
        return self._updated(
            lists.list_scatter(self._list, indices, tensor, grow=self.dynamic_size)
        )

    def _value(self, value: Any) -> Tensor:
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        if tensor.dtype is not self._dtype:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"TensorArray of {self._dtype.name}: cannot write a value of dtype "
                f"{tensor.dtype.name}{at(user_origin())}",
            )
        return tensor

    def _updated(self, items: Tensor) -> TensorArray:
        if context.recorder is None:
            self._list = items
            return self
        return self._with(items)

    def _with(self, items: Any) -> TensorArray:
        """The same array in another state."""
        return self.of(items, self, self._elements)

    @classmethod
    def of(cls, items: Any, like: TensorArray | TensorArraySpec, known: _Elements) -> TensorArray:
        """The array of a list, with the dtype of another array or type."""
        array = object.__new__(cls)
        array._dtype, array.dynamic_size = like.dtype, like.dynamic_size
        array._elements, array._list = known, items
        return array

    # -- reading -----------------------------------------------------------------------------

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at `index`.

        Raises:
            OutOfRangeError: there is no such element.
            ValueError: the element's shape is not known: nothing was written before.
        """
        return lists.list_get(self._list, index, self._elements.dims)

    def stack(self, name: str | None = None) -> Tensor:
        """All elements along a new first axis; it is static where the array's size is. Those of an
        array without elements, whose shape nobody has said, are numbers."""
        if self._is_empty():
            return zeros([0], self.dtype)
        stacked = lists.list_stack(self._list, self._elements.dims)
        if self._elements.count is None:
            return stacked
        return with_dims(stacked, (self._elements.count, *stacked.dims[1:]))

    def _is_empty(self) -> bool:
        """Whether there surely is no element, nor a shape of elements."""
        eager = not self._list.is_symbolic
        return eager and self._elements.dims is None and not int(self.size())

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at `indices` along a new first axis."""
        return gather(self.stack(), indices)

    def concat(self, name: str | None = None) -> Tensor:
        """The elements joined along their first axis."""
        return lists.list_concat(self._list, self._elements.dims)[0]

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, an int32 scalar."""
        return lists.list_length(self._list)

    def identity(self) -> TensorArray:
        """An array with the same elements."""
        return self._with(self._list)

    def close(self, name: str | None = None) -> None:
        """Drop the elements."""
        self._list = lists.list_new(ListSpec(self._list.spec.dims, self._dtype))

    def mark_used(self) -> None:
        """Accepted for TensorFlow programs."""

    @property
    def _type_spec(self) -> TensorArraySpec:
        known = self._elements
        return TensorArraySpec(known.dims, self._dtype, self.dynamic_size, known.infer)

    def __len__(self) -> int:
        return int(self.size())

    def __repr__(self) -> str:
        shape = self.element_shape
        return f"<td.TensorArray dtype={self._dtype.name} element_shape={shape}>"


class TensorArraySpec(CompositeSpec):
    """The type of a `TensorArray`, for an `input_signature`.

    Args:
        element_shape: of the elements; None where it is not known.
        dtype: of the elements.
        dynamic_size: whether writing beyond the end extends the array.
        infer_shape: whether all elements have one shape.
    """

    __slots__ = ("dynamic_size", "infer", "items")

    value_type = seen_as = TensorArray

    def __init__(
        self,
        element_shape: Any = None,
        dtype: Any = dtypes.float32,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:
        self.dynamic_size, self.infer = bool(dynamic_size), bool(infer_shape)
        shape = TensorShape(element_shape)
        unknown = UNKNOWN_SHAPE if infer_shape else UNKNOWN_RANK
        self.items = ListSpec(unknown if shape.rank is None else shape, dtype)

    @classmethod
    def of(cls, items: ListSpec, dynamic_size: bool, infer_shape: bool) -> TensorArraySpec:
        """The type of arrays whose list has this spec."""
        spec = cls(None, items.dtype, dynamic_size, infer_shape)
        spec.items = items
        return spec

    @property
    def dtype(self) -> DType:
        return self.items.dtype

    @property
    def element_shape(self) -> TensorShape:
        return self.items.shape if has_element_shape(self.items) else TensorShape(None)

    def __repr__(self) -> str:
        return (
            f"TensorArraySpec({self.element_shape}, {self.dtype!r}, {self.dynamic_size}, "
            f"{self.infer})"
        )


def _of_items(like: Any, parts: list[Any]) -> Any:
    """An array in another state, or the type of one where the part is a spec."""
    (items,) = parts
    if isinstance(items, ListSpec):
        known = like._elements if isinstance(like, TensorArray) else like
        return TensorArraySpec.of(items, like.dynamic_size, known.infer)
    if isinstance(like, TensorArray):
        return like._with(items)
    dims = like.items.dims if has_element_shape(like.items) else None
    return TensorArray.of(items, like, _Elements(dims, like.infer, None))


nest.register_node(TensorArray, lambda array: [array._list], _of_items)
nest.register_node(TensorArraySpec, lambda spec: [spec.items], _of_items)
