"""``acc + (zeros with g at position i)`` becomes an addition at position i.

The gradient of ``x[i]`` is an array of zeros but for one part. A loop that adds one to an
accumulator in every iteration would cost a pass over the whole array each time. The ops made here
change the accumulator where the part is, in place where it is the loop's own (`takeovers`).

Sums of several parts are added to the accumulator one by one, except parts at the same position,
which are added up first as the graph says.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.graph.ir import Graph, Node, Region, Value, uses
from treadle.ops.control.control_flow import WHILE
from treadle.ops.elementwise.arithmetic import ADD
from treadle.ops.indexing import additions  # noqa: F401  (registers the ops that it writes)
from treadle.ops.properties import Part, PartKind, PartUse
from treadle.ops.registry import op_on_part
from treadle.runtime.fusion.takeovers import source_of, storage
from treadle.runtime.schedule.facts import Facts


def add_in_place(graph: Graph, facts: Facts) -> bool:
    """Rewrite the additions in loop bodies, also inner ones, that this makes cheaper."""
    changed = False
    for node in list(graph.walk()):
        if node.op is WHILE:
            changed |= _rewrite(node.regions[1])
    return changed


def _rewrite(body: Region) -> bool:
    if not any(map(_places_part, body.nodes)):
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
    if "adds" not in root.op.tags or not root.outputs[0].spec.rank:
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
        if once and node is not None and "adds" in node.op.tags:
            sums.append(node)
            stack += reversed(node.inputs)
        elif once and node is not None and _is_part(node):
            parts.append(value)
        else:
            dense.append(value)
    return (dense[0], parts, sums) if parts and len(dense) == 1 else None


def _is_part(node: Node) -> bool:
    dtype = node.outputs[0].spec.dtype
    narrow = dtype.is_floating and dtype.size == 2
    real = not dtype.is_complex and not dtype.is_bool
    if not _places_part(node) or not real:
        return False
    return not (narrow and _part(node).kind is PartKind.SEGMENTS)  # those sum up in float32


def _places_part(node: Node) -> bool:
    """Whether a node gives zeros with a part in its place."""
    return node.op.part is not None and node.op.part.use is PartUse.PLACE


def _part(node: Node) -> Part:
    assert node.op.part is not None
    return node.op.part


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
        data = _data(first)
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
        data = _data(node)
        place = tuple(v for k, v in enumerate(node.inputs) if k != data)
        same = (node.op, place, repr(node.attrs), node.inputs[data].spec)
        groups.setdefault(same, []).append(part)
    return list(groups.values())


def _data(node: Node) -> int:
    """The number of the operand that is added; the others are positions."""
    number = _part(node).data
    assert number is not None
    return number


def _addition(body: Region, total: Value, part: Node, inputs: Sequence[Value], root: Node) -> Value:
    op = op_on_part(_part(part).kind, PartUse.ADD)
    assert op.part is not None and op.part.data is not None
    attrs = {k: v for k, v in part.attrs.items() if k in ("axis", "given", "begin", "strides")}
    operands = [total, *(v for k, v in enumerate(inputs) if k != _data(part))]
    operands.insert(op.part.data % (len(operands) + 1), inputs[_data(part)])
    return body.append(Node(op, operands, attrs, [total.spec], (), root.origin)).outputs[0]
