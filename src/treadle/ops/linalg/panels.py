"""Products whose right factor is in panels, groups of columns with their rows one after another.

The product of matrices reads its right factor a panel at a time. Where many products share a
factor, it is laid out like this once. Users have no functions for these ops, and they have no
gradients: `treadle.runtime.passes.factor_panels` writes them when all gradients are there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray
from treadle.kernel.ir import Expr, Index
from treadle.ops.lowering import Compute, Library, LowerCall, scale_index, sum_index
from treadle.ops.registry import Op, register
from treadle.ops.shaping.slicing import in_range


def _infer_panels(b: TensorSpec, *, width: int) -> TensorSpec:
    k, n = b.dims
    return TensorSpec(((n + (width - 1)) // width, k, width), b.dtype)


def _eager_panels(b: NDArray, *, width: int) -> NDArray:
    k, n = b.shape
    count = -(-n // width)
    whole = np.zeros((k, count * width), b.dtype)
    whole[:, :n] = b
    return np.ascontiguousarray(whole.reshape(k, count, width).swapaxes(0, 1))


def _lower_panels(call: LowerCall, index: Sequence[Index]) -> Expr:
    panel, k, place = index
    column = sum_index(scale_index(panel, call.attrs["width"]), place)
    columns = call.specs[0].dims[1]
    inside = None if columns % call.attrs["width"] == 0 else in_range(column, columns)
    return call.inputs[0]((k, column), valid=inside, fill=0)


def _infer_product(a: TensorSpec, panels: TensorSpec, *, columns: int) -> TensorSpec:
    return TensorSpec((*a.dims[:-1], columns), a.dtype)


def _eager_product(a: NDArray, panels: NDArray, *, columns: int) -> NDArray:
    count, k, width = panels.shape
    b = panels.swapaxes(0, 1).reshape(k, count * width)[:, :columns]
    product: NDArray = np.matmul(a, b)
    return product


# Panels of `width` columns of a matrix [k, n]: an array [panels, k, width], whose last panel has
# zeros in place of columns beyond n.
PANELS = register(Op("panels", _infer_panels, _eager_panels, lower=Compute(_lower_panels, "view")))
# The product of an array [..., k] and a matrix of so many `columns`, which is in panels.
MATMUL_PANELS = register(
    Op("matmul_panels", _infer_product, _eager_product, lower=Library("matmul_panels"))
)
