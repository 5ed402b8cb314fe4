"""Epilogues: which group of elementwise nodes a library routine applies to its result.

A routine computes its result block by block; an epilogue is a kernel that it runs on each block
while that is in the cache: bias, activation, residual, scaling, conversion, the mask of a gradient,
the optimizer's update of a weight. The group must run over exactly the result's elements.
"""

from __future__ import annotations

from treadle.graph.ir import Value
from treadle.kernel.ir import Affine, Axis, Expr, Index, Load, Reduce, Scan, index_axes, postorder
from treadle.runtime.fusion.group import Group
from treadle.runtime.fusion.space import index_at


def is_epilogue(group: Group, result: Value) -> bool:
    """Whether a routine that computes `result` can run the group on blocks of it."""
    dims = result.spec.dims
    if group.space != dims or not dims or dims[-1] == 1:
        return False
    axes = {a for a in group.axes if a.extent != 1}
    if any(_axes_of(group, v) != axes for v in group.values):
        return False
    own = index_at(dims, range(len(dims)))
    return all(_fits(e, group, result, own) for e in postorder(list(group.values.values())))


def _axes_of(group: Group, value: Value) -> set[Axis]:
    return {a for i in group.index[value] for a in index_axes(i)}


def _fits(expr: Expr, group: Group, result: Value, own: tuple[Index, ...]) -> bool:
    """Elements of the result are read where the block is, others along its rows."""
    if isinstance(expr, Reduce | Scan):
        return False
    if not isinstance(expr, Load):
        return True
    if group.build.buffers[expr.buffer] is result:
        return expr.index == own and expr.valid is None
    along = group.axes[-1]
    return all(isinstance(i, Affine) or along not in i.axes for i in expr.index)
