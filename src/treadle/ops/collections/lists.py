"""Ops on lists of tensors (`ListSpec` values): what TensorArray and loop gradients are made of.

An item that was never written reads as zeros. A list made without an element shape has the spec
``list f32[*]`` until something is stored in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.arrays import zeros
from treadle.core.context import context
from treadle.core.list_value import ListValue
from treadle.core.shapes import (
    ANY,
    UNKNOWN_RANK,
    UNKNOWN_SHAPE,
    Dim,
    TensorShape,
    fresh_symbol,
)
from treadle.core.spec import (
    ListSpec,
    Spec,
    TensorSpec,
    has_element_shape,
    spec_text,
)
from treadle.core.tensor import NDArray, Tensor, buffer_of, from_array
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.indexing.gather import gather
from treadle.ops.lowering import ListAction, ListForm
from treadle.ops.registry import Op, register, run
from treadle.ops.shaping.creation import zeros_like


def list_new(spec: TensorSpec | ListSpec, size: Any = None, capacity: int | None = None) -> Tensor:
    """A list for elements of `spec`; `size` unwritten elements, or empty.

    Args:
        size: an int or an integer scalar tensor.
        capacity: how many elements to expect, a hint for compiled programs.
    """
    attrs = {"dims": spec.dims, "dtype": spec.dtype, "capacity": capacity}
    inputs = () if size is None else (convert_to_tensor(size, dtype_hint=dtypes.int32),)
    return run(LIST_NEW, *inputs, **attrs)  # type: ignore[no-any-return]


def list_push(items: Tensor, value: Any) -> Tensor:
    """The list with `value` appended. Costs O(1) when `items` is not used again."""
    return run(LIST_PUSH, items, convert_to_tensor(value, items.dtype))  # type: ignore[no-any-return]


def list_get(items: Tensor, index: Any, dims: Sequence[Dim] | None = None) -> Tensor:
    """The element at `index`; `dims` is its shape where the list's spec does not tell."""
    index = convert_to_tensor(index, dtype_hint=dtypes.int32)
    return run(LIST_GET, items, index, dims=_element_dims(items, dims))  # type: ignore[no-any-return]


def elements(items: Tensor) -> list[Tensor]:
    """All elements of an eager list."""
    value: Any = buffer_of(items)
    if context.tapes:  # they note which elements are read
        return [list_get(items, i) for i in range(len(value))]
    return [from_array(np.asarray(x)) for x in _full(value, _element_dims(items, None))]


def list_set(items: Tensor, index: Any, value: Any, grow: bool = False) -> Tensor:
    """The list with `value` at `index`; with `grow` the list is extended to hold it."""
    index = convert_to_tensor(index, dtype_hint=dtypes.int32)
    value = convert_to_tensor(value, items.dtype)
    return run(LIST_SET, items, index, value, grow=grow)  # type: ignore[no-any-return]


def list_length(items: Tensor) -> Tensor:
    """The number of elements, an int32 scalar."""
    return run(LIST_LENGTH, items)  # type: ignore[no-any-return]


def list_stack(items: Tensor, dims: Sequence[Dim] | None = None) -> Tensor:
    """All elements packed along a new first axis; they must have one shape."""
    return run(LIST_STACK, items, dims=_element_dims(items, dims))  # type: ignore[no-any-return]


def list_unstack(values: Any) -> Tensor:
    """The list of ``values[0], values[1], ...``."""
    return run(LIST_UNSTACK, convert_to_tensor(values))  # type: ignore[no-any-return]


def list_concat(items: Tensor, dims: Sequence[Dim] | None = None) -> tuple[Tensor, Tensor]:
    """The elements joined along their first axis, and their lengths there (int32)."""
    return run(LIST_CONCAT, items, dims=_element_dims(items, dims))  # type: ignore[no-any-return]


def list_split(values: Any, lengths: Any) -> Tensor:
    """The list of consecutive pieces of `values` with the given lengths along the first axis."""
    lengths = convert_to_tensor(lengths, dtype_hint=dtypes.int32)
    return run(LIST_SPLIT, convert_to_tensor(values), lengths)  # type: ignore[no-any-return]


def list_scatter(items: Tensor, indices: Any, values: Any, grow: bool = False) -> Tensor:
    """The list with ``values[k]`` at ``indices[k]`` for every k."""
    indices = convert_to_tensor(indices, dtype_hint=dtypes.int32)
    values = convert_to_tensor(values, items.dtype)
    return run(LIST_SCATTER, items, indices, values, grow=grow)  # type: ignore[no-any-return]


def list_add(a: Tensor, b: Tensor) -> Tensor:
    """Element by element sum of two lists: how gradients of lists accumulate."""
    return run(LIST_ADD, a, b)  # type: ignore[no-any-return]


def list_truncate(items: Tensor, length: Any) -> Tensor:
    """The first `length` elements."""
    length = convert_to_tensor(length, dtype_hint=dtypes.int32)
    return run(LIST_TRUNCATE, items, length)  # type: ignore[no-any-return]


def list_extend(items: Tensor, length: Any) -> Tensor:
    """The list with unwritten elements appended up to `length`."""
    length = convert_to_tensor(length, dtype_hint=dtypes.int32)
    return run(LIST_EXTEND, items, length)  # type: ignore[no-any-return]


def list_zeros_like(items: Tensor) -> Tensor:
    """A list of zeros of the same length."""
    return list_new(items.spec, list_length(items))


def _element_dims(items: Tensor, dims: Sequence[Dim] | None) -> tuple[Dim, ...] | None:
    if dims is not None:
        return tuple(dims)
    return items.spec.dims if has_element_shape(items.spec) else None


# -- shape rules -----------------------------------------------------------------------------


def _infer_new(
    *size: Spec, dims: Any, dtype: Any, capacity: Any = None, unset: bool = False
) -> ListSpec:
    """`unset`: no element is read before it is set, so they need not be zeros."""
    for spec in size:
        _check_index(spec)
    return ListSpec(dims, dtype)


def _check_index(spec: Spec) -> None:
    if spec.rank != 0 or not spec.dtype.is_integer:
        raise TypeError(f"a list index or size must be an integer scalar, got {spec_text(spec)}")


def _merged(items: Spec, element: Sequence[Dim], dtype: Any) -> ListSpec:
    """The list's spec after an element of the given dims was stored in it."""
    if dtype is not items.dtype:
        raise TypeError(f"cannot store {dtype.name} in a list of {items.dtype.name}")
    if items.dims == UNKNOWN_RANK:
        return ListSpec([None] * len(element), items.dtype)
    if items.dims == UNKNOWN_SHAPE:
        return ListSpec(element, items.dtype)
    if not items.shape.is_compatible_with(TensorShape(element)):
        raise ValueError(
            f"cannot store an element of shape {TensorShape(element)} in a list of elements of "
            f"shape {items.shape}"
        )
    return items  # type: ignore[return-value]


def _infer_push(items: ListSpec, value: Spec) -> ListSpec:
    return _merged(items, value.dims, value.dtype)


def _infer_set(items: ListSpec, index: Spec, value: Spec, *, grow: bool = False) -> ListSpec:
    _check_index(index)
    return _merged(items, value.dims, value.dtype)


def _infer_get(items: ListSpec, index: Spec, *, dims: Any = None) -> TensorSpec:
    _check_index(index)
    return TensorSpec(_read_dims(items, dims), items.dtype)


def _read_dims(items: ListSpec, dims: Any) -> tuple[Dim, ...]:
    if dims is None:
        if not has_element_shape(items):
            raise ValueError(
                "the shape of the list's elements is not known here: write an element first or "
                "give element_shape"
            )
        dims = items.dims
    return tuple(fresh_symbol() if d == ANY else d for d in dims)


def _infer_stack(items: ListSpec, *, dims: Any = None, count: int | None = None) -> TensorSpec:
    """`count`: the number of elements, where it is known."""
    first = fresh_symbol("n") if count is None else count
    return TensorSpec((first, *_read_dims(items, dims)), items.dtype)


def _infer_unstack(values: TensorSpec) -> ListSpec:
    if values.rank == 0:
        raise ValueError("a scalar cannot be unstacked")
    return ListSpec(values.dims[1:], values.dtype)


def _infer_concat(items: ListSpec, *, dims: Any = None) -> tuple[TensorSpec, TensorSpec]:
    element = _read_dims(items, dims)
    if not element:
        raise ValueError("scalars cannot be concatenated; use stack")
    joined = TensorSpec((fresh_symbol("n"), *element[1:]), items.dtype)
    return joined, TensorSpec((fresh_symbol("n"),), dtypes.int32)


def _infer_split(values: TensorSpec, lengths: TensorSpec) -> ListSpec:
    if values.rank == 0 or lengths.rank != 1:
        raise ValueError("split takes values of rank 1 or more and a vector of lengths")
    return ListSpec((ANY, *values.dims[1:]), values.dtype)


def _infer_scatter(items: Spec, indices: Spec, values: Spec, *, grow: bool = False) -> ListSpec:
    if indices.rank != 1 or values.rank == 0:
        raise ValueError("scatter takes a vector of indices and one value for each")
    return _merged(items, values.dims[1:], values.dtype)


def _infer_resize(items: ListSpec, length: Spec) -> ListSpec:
    _check_index(length)
    return items


def _infer_add(a: ListSpec, b: ListSpec) -> ListSpec:
    return _merged(b, a.dims, a.dtype) if has_element_shape(a) else b


# -- NumPy implementations -------------------------------------------------------------------


def _new(
    *size: NDArray, dims: Any, dtype: Any, capacity: Any = None, unset: bool = False
) -> ListValue:
    count = int(size[0]) if size else 0
    if count < 0:
        raise errors.InvalidArgumentError(None, None, f"a list cannot have {count} elements")
    return ListValue([None] * count, ListSpec(dims, dtype))


def _push(items: ListValue, value: NDArray) -> ListValue:
    return items.push(value, _merged(items.spec, value.shape, items.spec.dtype))


def _position(items: ListValue, index: Any, grow: bool = False) -> int:
    position = int(index)
    if position < 0 or (position >= len(items) and not grow):
        raise errors.OutOfRangeError(None, None, f"index {position} is out of range for {items!r}")
    return position


def _get(items: ListValue, index: NDArray, *, dims: Any = None) -> NDArray:
    position = _position(items, index)
    found = items.get(position)
    return _zeros(items, dims) if found is None else found


def _zeros(items: ListValue, dims: Any) -> NDArray:
    """The value of an unwritten element, shaped as the list, `dims` or the others say."""
    for shape in (items.spec.dims, dims):
        if shape is not None and all(isinstance(d, int) for d in shape):
            return zeros(tuple(map(int, shape)), items.spec.dtype.np_dtype)
    for written in items.items():
        if written is not None:
            return zeros(written.shape, written.dtype)
    raise errors.InvalidArgumentError(
        None, None, f"{items!r} is read before any of them was written: their shape is unknown"
    )


def _set(items: ListValue, index: NDArray, value: NDArray, *, grow: bool = False) -> ListValue:
    position = _position(items, index, grow)
    spec = _merged(items.spec, value.shape, items.spec.dtype)
    return items.grown(position + 1).set(position, value, spec)


def _full(items: ListValue, dims: Any) -> list[NDArray]:
    return [_zeros(items, dims) if item is None else item for item in items.items()]


def _stack(items: ListValue, *, dims: Any = None, count: int | None = None) -> NDArray:
    parts = _full(items, dims)
    return np.stack(parts) if parts else _zeros(items, dims)[None][:0]


def _unstack(values: NDArray) -> ListValue:
    spec = ListSpec(values.shape[1:], dtypes.from_numpy(values.dtype))
    return ListValue([np.asarray(v) for v in values.copy()], spec)


def _concat(items: ListValue, *, dims: Any = None) -> tuple[NDArray, NDArray]:
    parts = _full(items, dims)
    joined = np.concatenate(parts) if parts else _nothing(items, dims)
    return joined, np.array([len(p) for p in parts], np.int32)


def _nothing(items: ListValue, dims: Any) -> NDArray:
    """What elements are joined to where there are none: their first size does not matter."""
    for shape in (items.spec.dims, dims):
        if shape and all(isinstance(d, int) for d in shape[1:]):
            return zeros((0, *map(int, shape[1:])), items.spec.dtype.np_dtype)
    return _zeros(items, dims)[:0]


def _join(items: ListValue, lengths: NDArray, *, dims: Any) -> NDArray:
    """Like concat, where the lengths of unwritten elements are known."""
    rest, dtype = tuple(dims[1:]), items.spec.dtype.np_dtype
    parts = [
        zeros((int(length), *rest), dtype) if item is None else item
        for item, length in zip(items.items(), lengths, strict=True)
    ]
    return np.concatenate([zeros((0, *rest), dtype), *parts])


def _split(values: NDArray, lengths: NDArray) -> ListValue:
    if lengths.sum() != len(values):
        raise errors.InvalidArgumentError(
            None, None, f"the lengths add up to {lengths.sum()}, not to the {len(values)} values"
        )
    spec = ListSpec((ANY, *values.shape[1:]), dtypes.from_numpy(values.dtype))
    pieces = np.split(values, np.cumsum(lengths)[:-1]) if len(lengths) else []
    return ListValue([p.copy() for p in pieces], spec)


def _scatter(
    items: ListValue, indices: NDArray, values: NDArray, *, grow: bool = False
) -> ListValue:
    if len(indices) != len(values):
        raise errors.InvalidArgumentError(
            None, None, f"{len(indices)} indices for {len(values)} values"
        )
    for index, value in zip(indices, values.copy(), strict=True):
        items = _set(items, index, np.asarray(value), grow=grow)
    return items


def _add(a: ListValue, b: ListValue) -> ListValue:
    if len(a) != len(b):
        raise errors.InvalidArgumentError(None, None, f"{a!r} cannot be added to {b!r}")
    pairs = zip(a.items(), b.items(), strict=True)
    return ListValue([_sum(x, y) for x, y in pairs], _infer_add(a.spec, b.spec))


def _sum(x: NDArray | None, y: NDArray | None) -> NDArray | None:
    if x is None or y is None:
        return y if x is None else x
    return np.asarray(x + y)


def _truncate(items: ListValue, length: NDArray) -> ListValue:
    return ListValue(items.items()[: int(length)], items.spec)


def _extend(items: ListValue, length: NDArray) -> ListValue:
    return items.grown(int(length))


# -- gradients -------------------------------------------------------------------------------


def _grad_push(call: Any, grad: Tensor) -> list[Any]:
    items, value = call.inputs
    position = list_length(items)
    return [list_truncate(grad, position), list_get(grad, position, value.dims)]


def _grad_get(call: Any, grad: Tensor) -> list[Any]:
    items, index = call.inputs
    return [list_set(list_zeros_like(items), index, grad), None]


def _grad_set(call: Any, grad: Tensor) -> list[Any]:
    items, index, value = call.inputs
    rest = list_set(grad, index, zeros_like(value))
    if call.attrs.get("grow"):
        rest = list_truncate(rest, list_length(items))
    return [rest, None, list_get(grad, index, value.dims)]


def _grad_scatter(call: Any, grad: Tensor) -> list[Any]:
    items, indices, values = call.inputs
    rest = list_scatter(grad, indices, zeros_like(values))
    if call.attrs.get("grow"):
        rest = list_truncate(rest, list_length(items))
    return [rest, None, gather(list_stack(grad, values.dims[1:]), indices)]


def _grad_concat(call: Any, grad: Tensor, _: Any) -> list[Any]:
    return [list_split(grad, call.outputs[1])]


def _grad_split(call: Any, grad: Tensor) -> list[Any]:
    values, lengths = call.inputs
    return [run(LIST_JOIN, grad, lengths, dims=values.dims), None]


def _grad_join(call: Any, grad: Tensor) -> list[Any]:
    return [list_split(grad, call.inputs[1]), None]


def _grad_truncate(call: Any, grad: Tensor) -> list[Any]:
    return [list_extend(grad, list_length(call.inputs[0])), None]


def _grad_extend(call: Any, grad: Tensor) -> list[Any]:
    return [list_truncate(grad, list_length(call.inputs[0])), None]


_SHAPES_DIFFER = "the shapes of a list's elements are not known when it is compiled"
LIST_NEW = register(
    Op(
        "list_new",
        _infer_new,
        _new,
        lower=ListForm(ListAction.NEW, "made", reads_elements=False),
        callback=_SHAPES_DIFFER,
        tags=frozenset({"any_elements", "cheap"}),
    )
)
LIST_PUSH = register(
    Op(
        "list_push",
        _infer_push,
        _push,
        _grad_push,
        lower=ListForm(ListAction.PUSH, "changed", reads_elements=False, puts=True),
        tags=frozenset({"any_elements"}),
    )
)
LIST_GET = register(
    Op(
        "list_get",
        _infer_get,
        _get,
        _grad_get,
        lower=ListForm(ListAction.GET, "read"),
        tags=frozenset({"any_elements", "selects"}),
    )
)
LIST_SET = register(
    Op(
        "list_set",
        _infer_set,
        _set,
        _grad_set,
        lower=ListForm(ListAction.SET, "changed", reads_elements=False, puts=True),
        tags=frozenset({"any_elements"}),
    )
)
LIST_LENGTH = register(
    Op(
        "list_length",
        lambda items: TensorSpec((), dtypes.int32),
        lambda items: np.array(len(items), np.int32),
        lower=ListForm(ListAction.LENGTH, "read", reads_elements=False),
        tags=frozenset({"any_elements", "selects"}),
    )
)
LIST_STACK = register(
    Op(
        "list_stack",
        _infer_stack,
        _stack,
        lambda call, grad: [list_unstack(grad)],
        lower=ListForm(ListAction.STACK, "read"),
        callback=_SHAPES_DIFFER,
        tags=frozenset({"any_elements"}),
    )
)
LIST_UNSTACK = register(
    Op(
        "list_unstack",
        _infer_unstack,
        _unstack,
        lambda call, grad: [list_stack(grad, call.inputs[0].dims[1:])],
        lower=ListForm(ListAction.UNSTACK, "made"),
        callback=_SHAPES_DIFFER,
        tags=frozenset({"any_elements"}),
    )
)
LIST_CONCAT = register(
    Op(
        "list_concat",
        _infer_concat,
        _concat,
        _grad_concat,
        lower=ListForm(ListAction.CONCAT, "read", ragged=True),
        callback=_SHAPES_DIFFER,
        tags=frozenset({"any_elements"}),
    )
)
LIST_SPLIT = register(
    Op(
        "list_split",
        _infer_split,
        _split,
        _grad_split,
        lower=ListForm(ListAction.SPLIT, "made", ragged=True),
        callback=_SHAPES_DIFFER,
        tags=frozenset({"any_elements"}),
    )
)
LIST_JOIN = register(
    Op(
        "list_join",
        lambda items, lengths, *, dims: TensorSpec(dims, items.dtype),
        _join,
        _grad_join,
        lower=ListForm(ListAction.JOIN, "read", native=False),
        callback="the elements of a tensor tell the sizes of the pieces",
        tags=frozenset({"any_elements"}),
    )
)
LIST_SCATTER = register(
    Op(
        "list_scatter",
        _infer_scatter,
        _scatter,
        _grad_scatter,
        lower=ListForm(ListAction.SCATTER, "made", native=False),
        callback="the elements of a tensor tell which items change, and how many there are",
        tags=frozenset({"any_elements"}),
    )
)
LIST_TRUNCATE = register(
    Op(
        "list_truncate",
        _infer_resize,
        _truncate,
        _grad_truncate,
        lower=ListForm(ListAction.TRUNCATE, "changed", reads_elements=False),
        tags=frozenset({"any_elements"}),
    )
)
LIST_EXTEND = register(
    Op(
        "list_extend",
        _infer_resize,
        _extend,
        _grad_extend,
        lower=ListForm(ListAction.EXTEND, "changed", reads_elements=False),
        tags=frozenset({"any_elements"}),
    )
)
LIST_ADD = register(
    Op(
        "list_add",
        _infer_add,
        _add,
        lambda call, grad: [grad, grad],
        lower=ListForm(ListAction.ADD, "made", ragged=True),
    )
)
