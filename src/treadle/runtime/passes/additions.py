"""``acc + (zeros with g at position i)`` becomes an addition at position i.

The gradient of ``x[i]`` is an array of zeros but for one part. A loop that adds one to an
accumulator in every iteration would cost a pass over the whole array each time. The ops made here
change the accumulator where the part is, in place where it is the loop's own (`takeovers`).

Sums of several parts are added to the accumulator one by one, except parts at the same position,
which are added up first as the graph says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray
from treadle.graph.ir import Graph, Node, Region, Value, uses
from treadle.kernel.ir import Expr, Index, apply
from treadle.ops.arithmetic import ADD, ADD_N
from treadle.ops.control_flow import WHILE
from treadle.ops.gather import SCATTER_ND
from treadle.ops.indexing import _bounds
from treadle.ops.lowering import Compute, LowerCall, dim_expr, index_expr
from treadle.ops.registry import Op
from treadle.ops.slicing import _lower_slice_grad, _python_slices
from treadle.runtime.fusion.takeovers import source_of, storage
from treadle.runtime.schedule.backend import Backend

# Op of the sparse part -> how its operands follow the accumulator in the new op.
_PARTS = {
    "index_grad": "index_add",
    "strided_slice_grad": "slice_add",
    "dynamic_slice_grad": "dynamic_slice_add",
    "unsorted_segment_sum": "segment_add",
    "scatter_nd": "tensor_scatter_nd_add",
}

_SUMS = (ADD, ADD_N)


def add_in_place(graph: Graph, backend: Backend) -> bool:
    """Rewrite the additions in loop bodies, also inner ones, that this makes cheaper."""
    changed = False
    for node in list(graph.walk()):
        if node.op is WHILE:
            changed |= _rewrite(node.regions[1])
    return changed


def _rewrite(body: Region) -> bool:
    if not any(node.op.name in _PARTS for node in body.nodes):
        return False
    counts = uses(body)
    carried = set(body.params[: len(body.results)])
    mapping: dict[Value, Value] = {}
    nodes, body.nodes = body.nodes, []
    absorbed: set[Node] = set()
    roots = {n: found for n in nodes if (found := _sum(n, counts)) is not None}
    for _, parts, sums in roots.values():
        absorbed |= {*sums, *(p.node for p in parts if p.node is not None)}
    kept = {n for n in roots if n not in absorbed and _is_carried(roots[n][0], roots, carried)}
    dropped: set[Node] = set()
    for root in kept:
        _, parts, sums = roots[root]
        dropped |= {*sums, *(p.node for p in parts if p.node is not None)}
    for node in nodes:
        node.inputs = [mapping.get(v, v) for v in node.inputs]
        if node in kept:
            base, parts, _ = roots[node]
            mapping[node.outputs[0]] = _additions(body, mapping.get(base, base), parts, node)
        elif node not in dropped:
            body.append(node)
    body.results = [mapping.get(v, v) for v in body.results]
    return bool(kept)


def _sum(root: Node, counts: dict[Value, int]) -> tuple[Value, list[Value], list[Node]] | None:
    """(the only dense term, the sparse ones, inner additions) of a sum; None for other nodes."""
    if root.op not in _SUMS or not root.outputs[0].spec.rank:
        return None
    dense: list[Value] = []
    parts: list[Value] = []
    sums: list[Node] = []
    stack = [*reversed(root.inputs)]
    spec = root.outputs[0].spec
    while stack:
        value = stack.pop()
        node = value.node
        once = node is not None and node.region is root.region and counts[value] == 1
        if value.spec is not spec:
            return None
        if once and node is not None and node.op in _SUMS:
            sums.append(node)
            stack += reversed(node.inputs)
        elif once and node is not None and _is_part(node):
            parts.append(value)
        else:
            dense.append(value)
    return (dense[0], parts, sums) if parts and len(dense) == 1 else None


def _is_part(node: Node) -> bool:
    dtype = node.outputs[0].spec.dtype
    narrow = dtype.is_floating and dtype.size == 2  # sums up in float32
    real = not dtype.is_complex and not dtype.is_bool
    return node.op.name in _PARTS and real and not (narrow and node.op.name[:8] == "unsorted")


def _is_carried(
    value: Value, roots: dict[Node, tuple[Value, list[Value], list[Node]]], carried: set[Value]
) -> bool:
    """Whether a value is a variable of the loop, changed by updates alone."""
    while value not in carried:
        value = storage(value)
        node = value.node
        if value in carried or node is None:
            break
        if node in roots:
            value = roots[node][0]
            continue
        source = source_of(value)
        if source is None:
            return False
        value = node.inputs[source]
    return value in carried


def _additions(body: Region, base: Value, parts: Sequence[Value], root: Node) -> Value:
    """The sum as additions at positions, parts at the same position added up first."""
    total = base
    for group in _together(parts):
        first = group[0].node
        assert first is not None
        data = _data_position(first)
        added = first.inputs[data]
        for other in group[1:]:
            assert other.node is not None
            pair = [added, other.node.inputs[data]]
            added = body.append(Node(ADD, pair, {}, [added.spec], (), root.origin)).outputs[0]
        inputs = [*first.inputs]
        inputs[data] = added
        total = _addition(body, total, first, inputs, root)
    return total


def _together(parts: Sequence[Value]) -> list[list[Value]]:
    groups: dict[object, list[Value]] = {}
    for part in parts:
        node = part.node
        assert node is not None
        data = _data_position(node)
        place = tuple(v for k, v in enumerate(node.inputs) if k != data)
        same = (node.op.name, place, repr(node.attrs), node.inputs[data].spec)
        groups.setdefault(same, []).append(part)
    return list(groups.values())


def _data_position(node: Node) -> int:
    """Which operand is added; the others are positions."""
    return 1 if node.op is SCATTER_ND else 0


def _addition(body: Region, total: Value, part: Node, inputs: Sequence[Value], root: Node) -> Value:
    name = _PARTS[part.op.name]
    attrs = {k: v for k, v in part.attrs.items() if k in ("axis", "given", "begin", "strides")}
    operands = [total, *inputs]
    if name in ("index_add", "dynamic_slice_add"):  # as in the updates, positions come first
        operands = [total, inputs[1], inputs[0]]
    if name == "tensor_scatter_nd_add":
        from treadle.ops.gather import SCATTER_ADD

        op = SCATTER_ADD
    else:
        op = ADDITIONS[name]
    return body.append(Node(op, operands, attrs, [total.spec], (), root.origin)).outputs[0]


# -- the ops -------------------------------------------------------------------------------------


def _eager_index_add(x: NDArray, i: NDArray, part: NDArray, *, axis: int) -> NDArray:
    result = x.copy()
    result[(slice(None),) * axis + (int(i),)] += part
    return result


def _lower_index_add(call: LowerCall, index: Sequence[Index]) -> Expr:
    from treadle.core import dtypes
    from treadle.kernel.ir import cast, const

    axis = call.attrs["axis"]
    place = cast(call.inputs[1](()), dtypes.int64)
    around = apply("add", place, dim_expr(call.out.dims[axis]))
    place = apply("select", apply("lt", place, const(0, dtypes.int64)), around, place)
    here = apply("eq", index_expr(index[axis]), place)
    old = call.inputs[0](index)
    part = call.inputs[2]([*index[:axis], *index[axis + 1 :]])
    return apply("select", here, apply("add", old, part), old)


def _eager_slice_add(
    x: NDArray, part: NDArray, *, begin: tuple[int, ...], strides: tuple[int, ...]
) -> NDArray:
    result = x.copy()
    result[_python_slices(begin, part.shape, strides)] += part
    return result


class _SecondOnly:
    """A call of the gradient's rule, which knows nothing of the accumulator."""

    def __init__(self, call: LowerCall) -> None:
        self.inputs, self.specs = call.inputs[1:], call.specs[1:]
        self.out, self.which, self.attrs, self.axis = call.out, 0, call.attrs, call.axis


def _lower_slice_add(call: LowerCall, index: Sequence[Index]) -> Expr:
    part = _lower_slice_grad(_SecondOnly(call), index)
    return apply("add", call.inputs[0](index), part)


def _eager_dynamic_add(
    x: NDArray, bounds: NDArray, part: NDArray, *, axis: int, given: tuple[bool, ...]
) -> NDArray:
    result = x.copy()
    result[_bounds(bounds, axis, given)] += part
    return result


def _eager_segment_add(x: NDArray, data: NDArray, ids: NDArray) -> NDArray:
    flat, result = ids.reshape(-1), x.copy()
    rows = data.reshape((flat.size, *data.shape[ids.ndim :]))
    kept = flat >= 0
    np.add.at(result, flat[kept], rows[kept])
    return result


def _like_first(x: TensorSpec, *_: object, **__: object) -> TensorSpec:
    return x


ADDITIONS = {
    op.name: op
    for op in (
        Op("index_add", _like_first, _eager_index_add,
           lower=Compute(_lower_index_add, "gather"), tags=frozenset({"checks_bounds"})),
        Op("slice_add", _like_first, _eager_slice_add,
           lower=Compute(_lower_slice_add, "gather")),
        Op("dynamic_slice_add", _like_first, _eager_dynamic_add),
        Op("segment_add", _like_first, _eager_segment_add),
    )
}  # fmt: skip
