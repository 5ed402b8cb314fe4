"""Run-time checks of what NumPy implementations refuse: added to a graph before it is compiled.

A kernel gives something for x // 0 or an index out of range. The checks added here call the op's
own NumPy implementation in that case, which raises the error that eager execution raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import Dim
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray
from treadle.graph.integers import Integers
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.pipeline import count_nodes
from treadle.kernel.ir import Expr, Index, Reduce, apply, as_index, cast, const
from treadle.ops.casting import CAST
from treadle.ops.gather import GATHER
from treadle.ops.lowering import Compute, LowerCall, dim_expr, elementwise_rule, index_expr
from treadle.ops.registry import Op
from treadle.runtime.fusion.roles import Role, literal, role_of
from treadle.runtime.schedule.backend import Backend

BOOL = dtypes.bool
POSITIONS = frozenset({"checks_bounds", "checks_elements"})  # tags of ops with positions to check


def _is_bad(call: LowerCall, x: Expr, *more: Expr) -> Expr:
    zero = const(0, x.dtype)
    match call.attrs["kind"]:
        case "zero":
            return apply("eq", x, zero)
        case "negative":
            return apply("lt", x, zero)
        case "empty":
            return apply("ge", x, more[0])
    size, wide = dim_expr(call.attrs["size"]), cast(x, dtypes.int64)
    if call.attrs["kind"] == "wrapping":  # the position as the op then computes it
        back = apply("lt", wide, const(0, dtypes.int64))
        wide = apply("select", back, apply("add", wide, size), wide)
    return _outside(wide, const(0, dtypes.int64), size)


def _outside(x: Expr, low: Expr, size: Expr) -> Expr:
    wide = cast(x, dtypes.int64)
    return apply("or", apply("lt", wide, low), apply("ge", wide, size))


def _is_bad_row(call: LowerCall, index: Sequence[Index]) -> Expr:
    """Rows of positions: the size depends on the place in the row, which is short."""
    sizes: Sequence[Dim] = call.attrs["size"]
    size = dim_expr(sizes[-1]) if sizes else const(0, dtypes.int64)
    for place in range(len(sizes) - 2, -1, -1):
        here = apply("eq", index_expr(index[-1]), const(place, dtypes.int64))
        size = apply("select", here, dim_expr(sizes[place]), size)
    return _outside(call.inputs[0](index), const(0, dtypes.int64), size)


def _any(call: LowerCall, index: Sequence[Index]) -> Expr:
    axes = tuple(call.axis(d) for d in call.specs[0].dims)
    return Reduce("any", axes, call.inputs[0]([as_index(a) for a in axes]))


def _not(call: LowerCall, x: Expr) -> Expr:
    return apply("not", x)


def _nothing_bad(x: NDArray, *_: Any, **__: Any) -> NDArray:
    """In a loop that the interpreter runs: the NumPy implementations check for themselves."""
    return np.zeros(x.shape, np.bool_)


BAD = Op(
    "is_bad",
    lambda x, *_, **__: TensorSpec(x.dims, BOOL),
    _nothing_bad,
    lower=elementwise_rule(_is_bad),
)
BAD_ROW = Op(
    "is_bad_row",
    lambda x, **_: TensorSpec(x.dims, BOOL),
    _nothing_bad,
    lower=Compute(_is_bad_row, "elementwise"),
)
ANY = Op(
    "any_bad", lambda x: TensorSpec((), BOOL), lambda x: x.any(), lower=Compute(_any, "reduce")
)
GOOD = Op("none_bad", lambda x: TensorSpec((), BOOL), np.logical_not, lower=elementwise_rule(_not))
# Inputs: (good, those of attrs["of"]).
CHECK = Op("check", lambda *_, **__: (), lambda *_, **__: (), effect="io")


def _from_start(position: NDArray, *_: Any, size: Dim, **__: Any) -> NDArray:
    """In a loop that the interpreter runs: what is outside stays so, for the node to refuse."""
    assert isinstance(size, int)
    return np.asarray(position + size if position < 0 else position).astype(np.uint64)


# A position along an axis of attrs["size"], counted from its beginning; attrs["wraps"]: it may be
# negative. Inputs: (position, those of attrs["of"], which refuses what lies outside).
PLACE = Op(
    "checked_position",
    lambda *_, **__: TensorSpec((), dtypes.uint64),
    _from_start,
    effect="io",
)

# What to look for, in which input, with which size.
Kind = tuple[str, int, Dim | tuple[Dim, ...] | None]


def add_checks(graph: Graph, backend: Backend) -> bool:
    """Put a check before every node, also in inner regions, that needs one."""
    before = count_nodes(graph)
    _add_checks(graph, Integers(graph, results=True))
    return count_nodes(graph) > before


def _add_checks(region: Region, integers: Integers) -> None:
    nodes, region.nodes = region.nodes, []
    unsigned: dict[Value, Value] = {}
    for node in nodes:
        for inner in node.regions:
            _add_checks(inner, integers)
        takes_element = _takes_element(node)
        given = list(node.inputs)
        for kind in _wanted(node):
            if _is_proved(node, kind, integers):
                continue
            if takes_element and kind[0] == "wrapping":
                wraps = not integers.is_not_negative(node.inputs[kind[1]])
                _insert_position(region, node, given, kind, wraps)
            else:
                _insert(region, node, kind)
        if takes_element:
            for number, size in enumerate(node.inputs[0].spec.dims, 1):
                if integers.lies_inside(node.inputs[number], 0, size):
                    node.inputs[number] = _unsigned(region, node.inputs[number], unsigned)
        region.append(node)


def _takes_element(node: Node) -> bool:
    """Whether the node reads or writes one element, with a position for each axis."""
    rank = node.inputs[0].spec.rank if node.inputs else 0
    single = "checks_bounds" in node.op.tags and rank == 1 and node.op is not GATHER
    return "checks_elements" in node.op.tags or single


def _unsigned(region: Region, position: Value, known: dict[Value, Value]) -> Value:
    """A position that is not negative as an unsigned number: it does not count from the end."""
    if position not in known and position.spec.dtype.kind == "i":
        spec = TensorSpec((), dtypes.uint64)
        node = Node(CAST, [position], {"dtype": dtypes.uint64}, [spec], (), None)
        known[position] = region.append(node).outputs[0]
    return known.get(position, position)


def _is_proved(node: Node, kind: Kind, integers: Integers) -> bool:
    """Whether a position stays inside because of how the loops around it count."""
    what, number, size = kind
    if what not in ("outside", "wrapping") or size is None or isinstance(size, tuple):
        return False
    return integers.lies_inside(node.inputs[number], -size if what == "wrapping" else 0, size)


def _wanted(node: Node) -> list[Kind]:
    if role_of(node) not in (Role.SCALAR, Role.ARRAY, Role.VIEW):
        return []
    find = _BY_NAME.get(node.op.name)
    if find is not None:
        found = [find(node)]
    elif "checks_bounds" in node.op.tags:
        found = [_inside(node, 1, node.inputs[0].spec.dims[node.attrs["axis"]])]
    elif "checks_elements" in node.op.tags:
        found = [_inside(node, 1 + k, d) for k, d in enumerate(node.inputs[0].spec.dims)]
    elif "checks_bounds_nd" in node.op.tags:
        depth = node.inputs[1].spec.dims[-1]
        assert isinstance(depth, int)
        found = [("row", 1, node.inputs[0].spec.dims[:depth])]
    else:
        found = []
    return [kind for kind in found if kind is not None]


def _divisor(node: Node) -> Kind | None:
    if not node.inputs[1].spec.dtype.is_integer or _never(node.inputs[1], lambda y: y == 0):
        return None
    return "zero", 1, None


def _exponent(node: Node) -> Kind | None:
    spec = node.inputs[1].spec
    if spec.dtype.kind != "i" or _never(node.inputs[1], lambda y: y < 0):
        return None
    return "negative", 1, None


def _inside(node: Node, number: int, size: Dim) -> Kind | None:
    # x[-1] is the last element; gather takes no such index.
    wraps = node.op.name in ("index", "index_update", "index_add", "element", "element_update")
    low = -size if wraps else 0
    if isinstance(size, int) and _never(node.inputs[number], lambda i: (i < low) | (i >= size)):
        return None
    return "wrapping" if wraps else "outside", number, size


def _position(node: Node) -> Kind | None:
    return "wrapping", 0, node.attrs["size"]


def _interval(node: Node) -> Kind | None:
    return "empty", 1, None


def _never(value: Value, bad: Callable[[Any], Any]) -> bool:
    """Whether a constant has no such element."""
    array = literal(value)
    return array is not None and not np.any(bad(array))


_BY_NAME: dict[str, Callable[[Node], Kind | None]] = {
    "floordiv": _divisor,
    "mod": _divisor,
    "truncatediv": _divisor,
    "truncatemod": _divisor,
    "pow": _exponent,
    "position": _position,
    "random_uniform_int": _interval,
}


def _insert(region: Region, node: Node, kind: Kind) -> None:
    what, position, size = kind
    operands = [node.inputs[position]]
    if what == "empty":
        operands.append(node.inputs[position + 1])
    attrs = {"kind": what, "size": size}
    bad = _new(region, node, BAD_ROW if what == "row" else BAD, operands, attrs)
    if bad.spec.rank:
        bad = _new(region, node, ANY, [bad], {})
    good = _new(region, node, GOOD, [bad], {})
    region.append(Node(CHECK, [good, *node.inputs], {"of": node}, (), (), node.origin))


def _insert_position(
    region: Region, node: Node, given: Sequence[Value], kind: Kind, wraps: bool
) -> None:
    """Let a node of single elements take a position that was checked."""
    _, number, size = kind
    attrs = {"size": size, "wraps": wraps, "of": node}
    operands = [given[number], *given]
    node.inputs[number] = _new(region, node, PLACE, operands, attrs)


def _new(
    region: Region, near: Node, op: Op, inputs: Sequence[Value], attrs: dict[str, Any]
) -> Value:
    spec = op.infer(*(v.spec for v in inputs), **attrs)
    return region.append(Node(op, inputs, attrs, [spec], (), near.origin)).outputs[0]  # type: ignore[list-item]
