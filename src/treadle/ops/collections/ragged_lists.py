"""Lists whose elements differ in shape, as tensors: how they pass from one program to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.list_value import ListValue
from treadle.core.shapes import Dim, fresh_symbol
from treadle.core.spec import ListSpec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.lowering import ListAction, ListForm
from treadle.ops.registry import Op, register, run


def list_pack(items: Tensor) -> tuple[Tensor, Tensor]:
    """All elements of a list, flat and one after the other, and their shapes.

    Returns:
        A vector of the list's dtype, and an int64 matrix with a row of dims for each element.
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
    spec = items.spec
    written = [np.zeros((0,) * len(spec.dims), spec.dtype.np_dtype) if x is None else x
               for x in items.items()]  # fmt: skip
    empty = np.zeros(0, spec.dtype.np_dtype)
    shapes = np.array([x.shape for x in written], np.int64)
    flat = np.concatenate([empty, *(x.ravel() for x in written)])
    return flat, shapes.reshape(len(written), len(spec.dims))


def _unpack(values: NDArray, shapes: NDArray, *, dims: Any) -> ListValue:
    ends = np.cumsum(shapes.prod(1))
    pieces = np.split(values, ends[:-1]) if len(ends) else []
    items: list[NDArray | None] = [
        piece.reshape(shape).copy() for piece, shape in zip(pieces, shapes, strict=True)
    ]
    return ListValue(items, ListSpec(dims, dtypes.from_numpy(values.dtype)))


def _grad_pack(call: Any, grad: Tensor, _: Any) -> list[Any]:
    return [list_unpack(grad, call.outputs[1], call.inputs[0].spec.dims)]


def _grad_unpack(call: Any, grad: Tensor) -> list[Any]:
    return [list_pack(grad)[0], None]


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
