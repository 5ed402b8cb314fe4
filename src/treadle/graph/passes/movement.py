"""Simplification of ops that only move elements: reshape, transpose, broadcast, matmul flags."""

from __future__ import annotations

from typing import Any

from treadle.core.shapes import Dim, SymbolicDim, product
from treadle.graph.ir import Node, Value
from treadle.graph.rewrite import Rewriter
from treadle.ops.broadcasting import BROADCAST_TO, OF_SIZE
from treadle.ops.indexing.updates import INDEX_UPDATE, SLICE_UPDATE
from treadle.ops.linalg.matrices import MATMUL
from treadle.ops.properties import PartUse
from treadle.ops.registry import Op, op_on_part
from treadle.ops.shaping.joining import CONCAT
from treadle.ops.shaping.permuting import TRANSPOSE
from treadle.ops.shaping.reshaping import ENSURE_SHAPE, RESHAPE
from treadle.ops.shaping.slicing import STRIDED_SLICE


def _merge_reshapes(rewriter: Rewriter, node: Node) -> Value | None:
    """reshape(reshape(x, a), b) is reshape(x, b); a reshape to x's own shape is x."""
    x = node.inputs[0]
    if x.spec is node.outputs[0].spec:
        return x
    inner = x.node
    if inner is None or inner.op is not node.op or not _same_size(inner.inputs[0], node.outputs[0]):
        return None
    source = inner.inputs[0]
    if source.spec is node.outputs[0].spec:
        return source
    return rewriter.emit(node.op, [source], node.attrs)


def _shape_is_known(rewriter: Rewriter, node: Node) -> Value | None:
    """A check for the shape that x is known to have is x."""
    x = node.inputs[0]
    return x if x.spec is node.outputs[0].spec else None


def _same_size(a: Value, b: Value) -> bool:
    """Provably the same number of elements: skipping a reshape must not skip its check."""
    return product(a.spec.dims) == product(b.spec.dims)


def _merge_transposes(rewriter: Rewriter, node: Node) -> Value | None:
    """transpose(transpose(x, p), q) is one transpose; the identity is x."""
    x, perm = node.inputs[0], tuple(node.attrs["perm"])
    if perm == tuple(range(len(perm))):
        return x
    inner = x.node
    if inner is not None and inner.op is node.op:
        first = inner.attrs["perm"]
        merged = tuple(first[p] for p in perm)
        if merged == tuple(range(len(merged))):
            return inner.inputs[0]
        return rewriter.emit(node.op, [inner.inputs[0]], {"perm": merged})
    if _moves_only_ones(x.spec.dims, perm):
        return rewriter.emit(RESHAPE, [x], {"shape": node.outputs[0].spec.dims})
    return None


def _moves_only_ones(dims: tuple[Dim, ...], perm: tuple[int, ...]) -> bool:
    """True when the axes longer than 1 keep their order: the elements stay where they are."""
    moved = [p for p in perm if dims[p] != 1]
    return moved == sorted(moved)


def _drop_broadcast(rewriter: Rewriter, node: Node) -> Value | None:
    x = node.inputs[0]
    if x.spec is node.outputs[0].spec:
        return x
    inner = x.node
    if inner is not None and inner.op is node.op:
        return rewriter.emit(node.op, [inner.inputs[0]], node.attrs)
    return None


def _fold_transposes(rewriter: Rewriter, node: Node) -> Value | None:
    """matmul(transpose(a), b) is matmul(a, b, transpose_a)."""
    inputs, attrs = list(node.inputs), dict(node.attrs)
    for position, flag in enumerate(("transpose_a", "transpose_b")):
        source = _matrix_transpose_of(inputs[position])
        if source is not None:
            inputs[position] = source
            attrs[flag] = not attrs[flag]
    if inputs == node.inputs:
        return None
    return rewriter.emit(node.op, inputs, attrs)


def _matrix_transpose_of(value: Value) -> Value | None:
    """x where `value` is x with only its last two axes exchanged."""
    node = value.node
    if node is None or node.op is not TRANSPOSE:
        return None
    perm = tuple(node.attrs["perm"])
    rank = len(perm)
    wanted = (*range(rank - 2), rank - 1, rank - 2)
    return node.inputs[0] if rank >= 2 and perm == wanted else None


def _multiply_before_broadcast(rewriter: Rewriter, node: Node) -> Value | None:
    """matmul(broadcast(x), w) is broadcast(matmul(x, w)) where rows are repeated: each row of the
    result is computed once. The sums are the same."""
    rows, weights = node.inputs
    source = rows.node
    if source is None or source.op is not BROADCAST_TO or node.attrs["transpose_a"]:
        return None
    x = source.inputs[0]
    out = node.outputs[0].spec.dims
    fits = x.spec.rank >= 2 and x.spec.dims[-1] == rows.spec.dims[-1] and weights.spec.rank == 2
    if not fits or product(x.spec.dims) == product(rows.spec.dims):
        return None
    few = rewriter.emit(node.op, [x, weights], node.attrs)
    return rewriter.emit(source.op, [few], {"shape": out})


def _single_part(rewriter: Rewriter, node: Node) -> Value | None:
    """concat(x) is x."""
    return node.inputs[0] if len(node.inputs) == 1 else None


def no_axes(rewriter: Rewriter, node: Node) -> Value | None:
    """A reduction over no axis is its operand."""
    x = node.inputs[0]
    if not node.attrs["axis"] and x.spec is node.outputs[0].spec:
        return x
    return None


def _whole_slice(rewriter: Rewriter, node: Node) -> Value | None:
    """x[:, :] is x."""
    x = node.inputs[0]
    begins = all(_is_zero(b) for b in node.attrs["begin"])
    forward = all(s == 1 for s in node.attrs["strides"])
    return x if begins and forward and x.spec is node.outputs[0].spec else None


def _is_zero(dim: Any) -> bool:
    return not isinstance(dim, SymbolicDim) and dim == 0


def _write_back(rewriter: Rewriter, node: Node) -> Value | None:
    """An assignment of a part's own elements to the part. ``x[i] += y`` ends with one: it reads the
    part, changes it in place and assigns it. The write before must have checked the position."""
    x, read = node.inputs[0], node.inputs[-1].node
    assert node.op.part is not None
    if read is None or read.op is not op_on_part(node.op.part.kind, PartUse.READ):
        return None
    if read.inputs[0] is not x:
        return None
    if not _same_part(node, read) or node.inputs[-1].spec is not read.outputs[0].spec:
        return None
    if len(node.inputs) > 2 and not _is_written(x, node):
        return None
    return x


def _is_written(x: Value, node: Node) -> bool:
    """Whether x was made by writing the part that a node writes."""
    made = x.node
    return made is not None and made.op is node.op and _same_part(node, made)


def _same_part(node: Node, other: Node) -> bool:
    """Whether an update and another update, or a read, are of one part."""
    names = ("axis", "given", "begin", "strides")
    same = all(node.attrs.get(name) == other.attrs.get(name) for name in names)
    count = len(node.inputs) - 1
    return same and node.inputs[1:count] == other.inputs[1:count]


MOVEMENT_RULES: dict[Op, Any] = {
    RESHAPE: (_merge_reshapes,),
    ENSURE_SHAPE: (_shape_is_known,),
    OF_SIZE: (_shape_is_known,),
    TRANSPOSE: (_merge_transposes,),
    BROADCAST_TO: (_drop_broadcast,),
    MATMUL: (_fold_transposes, _multiply_before_broadcast),
    CONCAT: (_single_part,),
    STRIDED_SLICE: (_whole_slice,),
    SLICE_UPDATE: (_write_back,),
    INDEX_UPDATE: (_write_back,),
}
