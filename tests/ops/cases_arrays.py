"""The table of op tests, continued: matrices, shapes, slices, gathers."""

from __future__ import annotations

from typing import Any

import numpy as np

import treadle as td
from tests.ops.cases import BOOL, REALS, Case
from treadle.ops.linalg.einsum import einsum
from treadle.ops.statistics import sorting

SOME = ("float32", "int32", "bfloat16", "bool")
TWO_D = (((3, 4),), ((1, 1),))
THREE_D = (((2, 3, 4),), ((1, 3, 2),))


def moves(name: str, fn: Any, ref: Any, shapes: Any = TWO_D, dtypes: Any = SOME, **k: Any) -> Case:
    """A case that only moves elements."""
    return Case(name, fn, ref, shapes, dtypes, **k)


MATMULS = [
    Case(
        f"matmul_{ta}{tb}",
        lambda x, y, ta=ta, tb=tb: td.matmul(x, y, transpose_a=ta, transpose_b=tb),
        lambda x, y, ta=ta, tb=tb: np.matmul(
            x.swapaxes(-1, -2) if ta else x, y.swapaxes(-1, -2) if tb else y
        ),
        [
            ((3, 2) if ta else (2, 3), (4, 3) if tb else (3, 4)),
            ((5, 3, 2) if ta else (5, 2, 3), (1, 4, 3) if tb else (1, 3, 4)),
            ((3, 2) if ta else (2, 3), (2, 4, 3) if tb else (2, 3, 4)),
            ((0, 2) if ta else (2, 0), (4, 0) if tb else (0, 4)),
        ],
        ("float32", "float64", "float16", "bfloat16", "int32", "complex64"),
        kernels=False,
    )
    for ta in (False, True)
    for tb in (False, True)
]
LINALG = [
    Case("matmul_of_bytes", lambda x, y: td.matmul(x, y, output_type=td.int32), np.matmul,
         (((2, 3), (3, 4)), ((5, 2, 3), (1, 3, 4)), ((2, 0), (0, 4))), ("int8", "uint8"),
         differentiable=False, kernels=False),
    Case("matvec", td.linalg.matvec, lambda a, x: (a @ x[..., None])[..., 0],
         (((2, 3), (3,)), ((4, 2, 3), (4, 3))), ("float32", "float64")),
    Case("tensordot_1", lambda x, y: td.tensordot(x, y, 1), lambda x, y: np.tensordot(x, y, 1),
         (((2, 3), (3, 4)), ((5, 2, 3), (3,))), ("float32", "float64")),
    Case("tensordot_axes", lambda x, y: td.tensordot(x, y, [[0, 2], [1, 0]]),
         lambda x, y: np.tensordot(x, y, [[0, 2], [1, 0]]), (((2, 5, 3), (3, 2, 4)),),
         ("float32", "float64")),
    Case("tensordot_0", lambda x, y: td.tensordot(x, y, 0), lambda x, y: np.tensordot(x, y, 0),
         (((2,), (3,)), ((), (3,))), ("float32", "float64")),
    Case("matrix_transpose", td.linalg.matrix_transpose, lambda x: x.swapaxes(-1, -2), THREE_D),
    Case("diag", td.linalg.diag, lambda x: x[..., None] * np.eye(x.shape[-1], dtype=x.dtype),
         (((3,),), ((2, 3),)), ("float32", "float64", "int32")),
    Case("diag_part", td.linalg.diag_part, lambda x: np.diagonal(x, axis1=-2, axis2=-1),
         (((3, 3),), ((2, 3, 5),), ((4, 2),)), ("float32", "float64", "int32")),
    Case("trace", td.linalg.trace, lambda x: np.trace(x, axis1=-2, axis2=-1),
         (((3, 3),), ((2, 3, 4),)), ("float32", "float64", "int32")),
    Case("norm", td.norm, np.linalg.norm, (((3,),), ((3, 4),)), ("float32", "float64")),
    Case("norm_1", lambda x: td.norm(x, 1, -1), lambda x: np.sum(np.abs(x), -1), TWO_D,
         ("float32", "float64")),
    Case("norm_inf", lambda x: td.norm(x, np.inf, 0), lambda x: np.max(np.abs(x), 0), TWO_D,
         ("float32", "float64")),
    Case("norm_3", lambda x: td.norm(x, 3, -1), lambda x: np.sum(np.abs(x) ** 3, -1) ** (1 / 3),
         TWO_D, ("float32", "float64")),
]  # fmt: skip
EINSUMS = [
    Case(f"einsum_{eq}", lambda *xs, e=eq: einsum(e, *xs), lambda *xs, e=eq: np.einsum(e, *xs),
         shapes, ("float32", "float64", "int32"), kernels=False)
    for eq, shapes in [
        ("ij,jk->ik", (((2, 3), (3, 4)), ((2, 0), (0, 4)))),
        ("bij,bjk->bik", (((5, 2, 3), (5, 3, 4)),)),
        ("ij->ji", (((2, 3),),)),
        ("ij->", (((2, 3),),)),
        ("ii->i", (((3, 3),),)),
        ("ii", (((3, 3),),)),
        ("ij,kj", (((2, 3), (4, 3)),)),
        ("i,j->ji", (((2,), (3,)),)),
        ("i,i->", (((3,), (3,)),)),
        ("bhqd,bhkd->bhqk", (((2, 3, 4, 5), (2, 3, 6, 5)),)),
        ("abc,cd,de->ae", (((2, 3, 4), (4, 5), (5, 6)),)),
        ("...ij,...jk->...ik", (((5, 2, 3), (3, 4)), ((2, 3), (3, 4)), ((2, 1, 2, 3), (4, 3, 4)))),
        ("i...->...", (((2, 3),), ((4,),))),
        ("iij,j->ij", (((3, 3, 2), (2,)),)),
        (",i->i", (((), (3,)),)),
        ("ijk,ik->kj", (((2, 3, 4), (2, 4)),)),
    ]
]  # fmt: skip
SORTING = [
    Case("sort", sorting.sort, lambda x: np.sort(x, -1), TWO_D, REALS, kernels=False),
    Case("sort_down", lambda x: sorting.sort(x, 0, "DESCENDING"),
         lambda x: np.sort(x, 0)[::-1], (((3, 4),), ((5,),)), REALS, kernels=False),
    Case("argsort", sorting.argsort, lambda x: np.argsort(x, -1, kind="stable"), TWO_D, REALS,
         differentiable=False, kernels=False),
    Case("argsort_down", lambda x: sorting.argsort(x, 1, "DESCENDING"),
         lambda x: np.argsort(-x, 1, kind="stable"), THREE_D, ("float64", "int32"),
         differentiable=False, kernels=False),
    Case("top_k", lambda x: sorting.top_k(x, 2).values, lambda x: -np.sort(-x, -1)[..., :2],
         (((3, 4),), ((2,),)), REALS, kernels=False),
    Case("top_k_indices", lambda x: sorting.top_k(x, 2).indices,
         lambda x: np.argsort(-x, -1, kind="stable")[..., :2], (((3, 4),), ((2,),)),
         ("float64", "int32"), differentiable=False, kernels=False),
    Case("searchsorted", lambda x, y: sorting.searchsorted(td.cumsum(x), y),
         lambda x, y: np.searchsorted(np.cumsum(x), y), (((4,), (3,)),), ("float64", "int32"),
         low=1, differentiable=False, kernels=False),
]  # fmt: skip
SHAPING = [
    moves("reshape", lambda x: td.reshape(x, [-1]), lambda x: x.reshape(-1)),
    moves("reshape_flat", lambda x: td.reshape(x, [-1]), lambda x: x.reshape(-1),
          (((2, 3, 4),), ((2, 3, 1, 5, 2),))),
    moves("reshape_regroup", lambda x: td.reshape(x, [4, 6]), lambda x: x.reshape(4, 6),
          (((2, 3, 4),), ((3, 2, 2, 2),), ((24,),)), symbolic=False),
    moves("reshape_split", lambda x: td.reshape(x, [2, -1, 3]), lambda x: x.reshape(2, -1, 3),
          (((4, 3),), ((12,),), ((2, 3, 2),)), symbolic=False),
    moves("reshape_merge", lambda x: td.reshape(x, [td.shape(x)[0], -1]),
          lambda x: x.reshape(len(x), -1), THREE_D),
    moves("reshape_keep_last", lambda x: td.reshape(x, [-1, td.shape(x)[2]]),
          lambda x: x.reshape(-1, x.shape[2]), THREE_D),
    moves("transpose", td.transpose, np.transpose, (((3, 4),), ((2, 3, 4),), ((5,),), ((),))),
    moves("transpose_perm", lambda x: td.transpose(x, [1, 2, 0]),
          lambda x: x.transpose(1, 2, 0), THREE_D),
    moves("expand_dims", lambda x: td.expand_dims(x, 1), lambda x: np.expand_dims(x, 1)),
    moves("expand_dims_last", lambda x: td.expand_dims(x, -1), lambda x: x[..., None]),
    moves("expand_dims_list", lambda x: td.expand_dims(x, [-1]), lambda x: x[..., None]),
    moves("squeeze_unknown", lambda x: td.squeeze(x), np.squeeze, (((2, 3),),), symbolic=True),
    moves("ensure_shape", lambda x: td.ensure_shape(x, [2, None]), lambda x: x, (((2, 3),),)),
    moves("squeeze", td.squeeze, np.squeeze, (((1, 3, 1),), ((1,),), ((2,),))),
    moves("squeeze_axis", lambda x: td.squeeze(x, [-1]), lambda x: x.squeeze(-1), (((1, 3, 1),),)),
    moves("reverse", lambda x: td.reverse(x, [1]), lambda x: x[:, ::-1]),
    moves("reverse_all", lambda x: td.reverse(x, [0, -1]), lambda x: x[::-1, ..., ::-1], THREE_D),
    moves("broadcast_to", lambda x: td.broadcast_to(x, [2, 3, 4]),
          lambda x: np.broadcast_to(x, (2, 3, 4)), (((3, 1),), ((),), ((1, 1, 4),), ((3, 4),))),
    moves("tile", lambda x: td.tile(x, [2, 3]), lambda x: np.tile(x, (2, 3))),
    moves("concat", lambda x: td.concat([x, x[:1], x], 0),
          lambda x: np.concatenate([x, x[:1], x], 0)),
    moves("concat_last", lambda x, y: td.concat([x, y], -1),
          lambda x, y: np.concatenate([x, y], -1), (((2, 3), (2, 1)), ((2, 0), (2, 3)))),
    moves("stack", lambda x: td.stack([x, td.reverse(x, [0])]), lambda x: np.stack([x, x[::-1]])),
    moves("stack_last", lambda x: td.stack([x, x, x], axis=-1), lambda x: np.stack([x] * 3, -1)),
    moves("unstack", lambda x: td.unstack(x, axis=1)[1], lambda x: x[:, 1], THREE_D,
          symbolic=False),
    moves("split", lambda x: td.split(x, 2, 1)[1], lambda x: np.split(x, 2, 1)[1],
          (((3, 4),), ((1, 2),)), symbolic=False),
    moves("split_sizes", lambda x: td.split(x, [1, -1], 0)[1], lambda x: x[1:]),
    moves("repeat", lambda x: td.repeat(x, 3, 1), lambda x: np.repeat(x, 3, 1)),
    moves("repeat_each", lambda x: td.repeat(x, [2, 0, 1], 0),
          lambda x: np.repeat(x, [2, 0, 1], 0), (((3, 2),),)),
    moves("repeat_flat", lambda x: td.repeat(x, 2), lambda x: np.repeat(x, 2)),
    moves("roll", lambda x: td.roll(x, 1, 0), lambda x: np.roll(x, 1, 0)),
    moves("roll_two", lambda x: td.roll(x, [-1, 5], [0, 1]), lambda x: np.roll(x, (-1, 5), (0, 1)),
          (((3, 4),),), symbolic=False),
    moves("meshgrid", lambda x, y: td.meshgrid(x, y)[0], lambda x, y: np.meshgrid(x, y)[0],
          (((3,), (2,)),)),
    moves("meshgrid_ij", lambda x, y: td.meshgrid(x, y, indexing="ij")[1],
          lambda x, y: np.meshgrid(x, y, indexing="ij")[1], (((3,), (2,)),)),
    moves("linspace", lambda x, y: td.linspace(x, y, 5), lambda x, y: np.linspace(x, y, 5),
          (((), ()), ((3,), (3,))), ("float32", "float64")),
    moves("fill_like", lambda x: td.fill(td.shape(x), 3.5), lambda x: np.full(x.shape, 3.5),
          differentiable=False),
    moves("eye_like", lambda x: td.eye(td.shape(x)[0], td.shape(x)[1]),
          lambda x: np.eye(*x.shape), differentiable=False),
    moves("range_of", lambda x: td.range(td.shape(x)[0]), lambda x: np.arange(x.shape[0]),
          differentiable=False),
    moves("shape_product", lambda x: td.shape(x)[0] * td.shape(x)[1] + td.size(x),
          lambda x: 2 * x.size, differentiable=False),
    *[
        moves(f"pad_{mode}", lambda x, m=mode: td.pad(x, [[1, 0], [2, 1]], m),
              lambda x, m=mode: np.pad(x, [[1, 0], [2, 1]], mode=m), (((3, 4),), ((2, 3),)))
        for mode in ("constant", "reflect", "symmetric")
    ],
    Case("pad_value", lambda x: td.pad(x, [[1, 1], [0, 0]], constant_values=7),
         lambda x: np.pad(x, [[1, 1], [0, 0]], constant_values=7), TWO_D, ("float32", "int32")),
]  # fmt: skip


def key(name: str, *index: Any, shapes: Any = (((4, 5),),), **k: Any) -> Case:
    """A case of ``x[index]``."""
    chosen = index if len(index) > 1 else index[0]
    return moves(f"getitem_{name}", lambda x: x[chosen], lambda x: x[chosen], shapes, **k)


INDEXING = [
    key("int", 1),
    key("negative", -1),
    key("column", slice(None), 2),
    key("both", 1, -2),
    key("slice", slice(1, 3)),
    key("tail", slice(1, None)),
    key("head", slice(None, -1)),
    key("middle", slice(1, -1), slice(-3, 100)),
    key("past", slice(10, None)),
    key("step", slice(None, None, 2), slice(1, None, 3)),
    key("backwards", slice(None, None, -1)),
    key("backwards_part", slice(-2, None, -2), slice(3, 0, -1)),
    key("negative_stop", slice(None, -2), slice(-2, None)),
    key("new_axis", None, slice(None), None, 1),
    key("ellipsis", ..., 1, shapes=(((2, 3, 4),), ((3, 2),))),
    key("ellipsis_middle", 1, ..., None, slice(0, 2), shapes=(((2, 3, 4),),)),
    key("nothing", ..., shapes=(((2, 3),), ((),)), kernels=False),
    moves("getitem_mask", lambda x: x[x > 0], lambda x: x[x > 0], (((4, 5),), ((3,),)),
          ("float32", "int32", "bfloat16"), batched=False),
    moves("getitem_tensor", lambda x: x[td.cast(td.reduce_sum(x * 0), td.int32) + 2],
          lambda x: x[2], (((4, 5),), ((3,),)), ("float32", "int32")),
    moves("getitem_tensor_negative",
          lambda x: x[:, td.cast(td.reduce_sum(x * 0), td.int32) - 1],
          lambda x: x[:, -1], (((4, 5),),), ("float32", "int32")),
    moves("getitem_tensor_slice",
          lambda x: x[td.cast(td.reduce_sum(x * 0), td.int32) + 1 :, 1:3],
          lambda x: x[1:, 1:3], (((4, 5),),), ("float32", "int32"), batched=False),
    moves("slice_op", lambda x: td.slice(x, [1, 0], [2, -1]), lambda x: x[1:3],
          (((4, 5),), ((3, 1),))),
    moves("slice_open",
          lambda x: td.slice(x, [td.cast(td.reduce_sum(x * 0), td.int32) + 1, 0], [2, 3]),
          lambda x: x[1:3, :3], (((4, 5),),), ("float32",)),
]  # fmt: skip
INDICES = np.array([[2, 0], [1, 2]], np.int32)
GATHERS = [
    moves("gather", lambda x: td.gather(x, [2, 0, 2]), lambda x: x[[2, 0, 2]],
          (((3, 2),), ((4,),))),
    moves("gather_scalar", lambda x: td.gather(x, 1), lambda x: x[1], (((3, 2),),)),
    moves("gather_axis", lambda x: td.gather(x, INDICES, axis=1), lambda x: x[:, INDICES],
          (((2, 3, 2),), ((2, 3),))),
    moves("gather_batch", lambda x: td.gather(x, INDICES, batch_dims=1),
          lambda x: np.stack([x[0][INDICES[0]], x[1][INDICES[1]]]), (((2, 3),), ((2, 3, 4),))),
    moves("gather_batch_from_end", lambda x: td.gather(x, INDICES, batch_dims=-1),
          lambda x: np.stack([x[0][INDICES[0]], x[1][INDICES[1]]]), (((2, 3),),)),
    moves("gather_batch_axis", lambda x: td.gather(x, INDICES, axis=2, batch_dims=1),
          lambda x: np.stack([x[0][:, INDICES[0]], x[1][:, INDICES[1]]]),
          (((2, 5, 3),), ((2, 5, 3, 2),))),
    moves("gather_nd", lambda x: td.gather_nd(x, [[0, 1], [1, 0]]),
          lambda x: x[[0, 1], [1, 0]], (((2, 3),), ((2, 2, 3),))),
    moves("gather_nd_rows", lambda x: td.gather_nd(x, [[[1]], [[0]]]),
          lambda x: x[[[1], [0]]], (((2, 3),),)),
    moves("gather_nd_batch", lambda x: td.gather_nd(x, [[[1]], [[0]]], batch_dims=1),
          lambda x: np.stack([x[0][[1]], x[1][[0]]]), (((2, 3),), ((2, 2, 3),))),
    moves("boolean_mask", lambda x: td.boolean_mask(x, [True, False, True], axis=1),
          lambda x: x[:, [0, 2]], (((2, 3),), ((2, 3, 2),))),
    moves("where_positions", lambda x: td.where(x), lambda x: np.argwhere(x), TWO_D,
          ("int32", "bool"), differentiable=False, kernels=False, batched=False),
    Case("scatter_nd", lambda x: td.scatter_nd([[1], [3], [1]], x, [5, 2]),
         lambda x: _scatter(np.zeros((5, 2), x.dtype), [1, 3, 1], x), (((3, 2),),),
         ("float32", "float64", "int32"), kernels=False),
    Case("tensor_scatter_add", lambda x, y: td.tensor_scatter_nd_add(x, [[1], [0]], y),
         lambda x, y: _scatter(x.copy(), [1, 0], y), (((3, 2), (2, 2)),),
         ("float32", "float64", "int32"), kernels=False),
    Case("tensor_scatter_update", lambda x, y: td.tensor_scatter_nd_update(x, [[2], [0]], y),
         lambda x, y: np.stack([y[1], x[1], y[0]]), (((3, 2), (2, 2)),),
         ("float32", "float64", "int32"), kernels=False),
    Case("unsorted_segment_sum",
         lambda x: td.math.unsorted_segment_sum(x, [1, -1, 1, 0], 3),
         lambda x: np.stack([x[3], x[0] + x[2], 0 * x[0]]), (((4, 2),), ((4,),)),
         ("float32", "float64", "int32", "bfloat16"), kernels=False),
    *(Case(f"tensor_scatter_{name}", lambda x, y, f=fn: f(x, [[1], [0], [1]], y),
           lambda x, y, r=ref: np.stack([r(x[0], y[1]), r(r(x[1], y[0]), y[2]), x[2]]),
           (((3, 2), (3, 2)),), ("float32", "float64", "int32", "bfloat16"), kernels=False)
      for name, fn, ref in [("max", td.tensor_scatter_nd_max, np.maximum),
                            ("min", td.tensor_scatter_nd_min, np.minimum)]),
    *(Case(f"unsorted_segment_{name}",
           lambda x, f=fn: f(x, [1, -1, 1, 0], 3),
           lambda x, r=ref: np.stack([x[3], r(x[0], x[2]), np.full_like(x[0], r(x[0], x[0]))])[:2],
           (((4, 2),), ((4,),)), ("float32", "float64", "int32", "bfloat16"), kernels=False)
      for name, fn, ref in [
          ("prod", lambda *a: td.math.unsorted_segment_prod(*a)[:2], np.multiply),
          ("max", lambda *a: td.math.unsorted_segment_max(*a)[:2], np.maximum),
          ("min", lambda *a: td.math.unsorted_segment_min(*a)[:2], np.minimum),
      ]),
    Case("complex_segment_prod", lambda x: td.math.unsorted_segment_prod(x, [1, -1, 1, 0], 2),
         lambda x: np.stack([x[3], x[0] * x[2]]), (((4, 2),), ((4,),)), ("complex64", "complex128"),
         kernels=False),
    Case("unsorted_segment_mean", lambda x: td.math.unsorted_segment_mean(x, [1, -1, 1, 0], 3),
         lambda x: np.stack([x[3], (x[0] + x[2]) / 2, 0 * x[0]]), (((4, 2),), ((4,),)),
         ("float32", "float64", "bfloat16"), kernels=False),
    Case("unsorted_segment_sqrt_n",
         lambda x: td.math.unsorted_segment_sqrt_n(x, [1, -1, 1, 0], 3),
         lambda x: np.stack([x[3], (x[0] + x[2]) / np.sqrt(2), 0 * x[0]]), (((4, 2),), ((4,),)),
         ("float32", "float64"), kernels=False),
    *(Case(f"segment_{name}", lambda x, f=fn: f(x, [0, 0, 2, 2]),
           lambda x, r=ref, e=empty: np.stack([r(x[0], x[1]), 0 * x[0] + e, r(x[2], x[3])]),
           (((4, 2),), ((4,),)), ("float32", "float64", "int32"), kernels=False)
      for name, fn, ref, empty in [
          ("sum", td.math.segment_sum, np.add, 0), ("prod", td.math.segment_prod, np.multiply, 1),
          ("max", td.math.segment_max, np.maximum, 0), ("min", td.math.segment_min, np.minimum, 0),
      ]),
    Case("segment_mean", lambda x: td.math.segment_mean(x, [0, 0, 2, 2]),
         lambda x: np.stack([(x[0] + x[1]) / 2, 0 * x[0], (x[2] + x[3]) / 2]), (((4, 2),), ((4,),)),
         ("float32", "float64"), kernels=False),
    Case("one_hot", lambda x: td.one_hot(td.cast(x, td.int32), 3), lambda x: np.eye(3)[
        np.trunc(x).astype(int)], (((4,),), ((2, 3),)), ("int32", "int64"), low=0, high=2,
        differentiable=False),
    Case("one_hot_axis", lambda x: td.one_hot(x, 3, 5, -1, axis=0),
         lambda x: np.moveaxis(np.where(np.eye(3)[x], 5, -1), -1, 0), (((4,),), ((2, 3),)),
         ("int32", "int64"), low=0, high=2, differentiable=False),
]  # fmt: skip


def _scatter(target: Any, rows: Any, updates: Any) -> Any:
    np.add.at(target, rows, updates)
    return target


CASTS = [
    Case(f"cast_{target}", lambda x, t=target: td.cast(x, t),
         lambda x, t=target: np.trunc(x).astype(t) if "int" in t else x.astype(t), TWO_D,
         ("float32", "float64", "bfloat16", "int32", "int8", *BOOL), differentiable=False)
    for target in ("float32", "float64", "int32", "int64", "bool")
]  # fmt: skip
