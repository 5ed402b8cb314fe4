"""Lists whose elements differ in shape, as tensors: how they pass from one program to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.list_value import ListValue
from treadle.core.shapes import Dim, fresh_symbol
from treadle.core.spec import ListSpec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.collections.lists import list_add
from treadle.ops.lowering import ListAction, ListForm
from treadle.ops.registry import Op, register, run
from treadle.ops.shaping.creation import zeros_like


def list_pack(items: Tensor) -> tuple[Tensor, Tensor]:
    """All elements of a list of rank 1 or more, flat and one after the other, and their shapes.

    Returns:
        A vector of the list's dtype, and an int64 matrix with a row of dims for each element; the
        dims of an element that was never written are -1.
    """
    return run(LIST_PACK, items)  # type: ignore[no-any-return]


def list_unpack(values: Tensor, shapes: Tensor, dims: tuple[Dim, ...]) -> Tensor:
    """The list that `list_pack` was given; `dims`: the element shape of its spec."""
    return run(LIST_UNPACK, values, shapes, dims=dims)  # type: ignore[no-any-return]


def _infer_pack(items: ListSpec) -> tuple[TensorSpec, TensorSpec]:
    return (
        TensorSpec((fresh_symbol(),), items.dtype),
        TensorSpec((fresh_symbol("n"), items.rank), dtypes.int64),
    )


def _pack(items: ListValue) -> tuple[NDArray, NDArray]:
    spec, found = items.spec, items.items()
    shapes = np.full((len(found), len(spec.dims)), -1, np.int64)
    written = [(k, x) for k, x in enumerate(found) if x is not None]
    for k, x in written:
        shapes[k] = x.shape
    empty = np.zeros(0, spec.dtype.np_dtype)
    return np.concatenate([empty, *(x.ravel() for _, x in written)]), shapes


def _unpack(values: NDArray, shapes: NDArray, *, dims: Any) -> ListValue:
    written: NDArray = np.all(shapes >= 0, 1, keepdims=False)
    ends = np.cumsum(np.where(written, shapes.prod(1), 0))
    pieces = np.split(values, ends[:-1]) if len(ends) else []
    items: list[NDArray | None] = [
        piece.reshape(shape).copy() if known else None
        for piece, shape, known in zip(pieces, shapes, written, strict=True)
    ]
    return ListValue(items, ListSpec(dims, dtypes.from_numpy(values.dtype)))


def _grad_pack(call: Any, grad: Tensor, _: Any) -> list[Any]:
    return [list_unpack(grad, call.outputs[1], call.inputs[0].spec.dims)]


def _grad_unpack(call: Any, grad: Tensor) -> list[Any]:
    values, shapes = call.inputs
    zeros = list_unpack(zeros_like(values), shapes, call.attrs["dims"])
    return [list_pack(list_add(grad, zeros))[0], None]  # elements nobody read have no gradient yet


LIST_PACK = register(
    Op(
        "list_pack",
        _infer_pack,
        _pack,
        _grad_pack,
        lower=ListForm(ListAction.PACK, "read", ragged=True),
    )
)
LIST_UNPACK = register(
    Op(
        "list_unpack",
        lambda values, shapes, *, dims: ListSpec(dims, values.dtype),
        _unpack,
        _grad_unpack,
        lower=ListForm(ListAction.UNPACK, "made", ragged=True),
    )
)
