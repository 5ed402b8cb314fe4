"""Run-time checks for operands that NumPy implementations refuse.

A kernel gives something for x // 0 or an index out of range. The checks added here call the op's
own NumPy implementation in that case, which raises the error that eager execution raises.

On a device that the host waits for, they note what is refused and the program goes on; the error is
raised at its end (`treadle.runtime.schedule.status`). Kernels stay inside of their arrays anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import Dim, compound
from treadle.core.spec import TensorSpec
from treadle.graph.integers import Integers
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.pipeline import count_nodes
from treadle.graph.rewrite import mentioned_symbols
from treadle.ops.control.checks import (
    ANY,
    BAD,
    BAD_ROW,
    CHECK,
    ELEMENT_AT,
    FIRST,
    GOOD,
    NOTE,
    PLACE,
)
from treadle.ops.elementwise.casting import CAST
from treadle.ops.properties import PartKind, Refusal
from treadle.ops.registry import Op
from treadle.runtime.roles import Role, kind_of, literal, role_of
from treadle.runtime.schedule.facts import Facts
from treadle.runtime.symbols import symbol_sources

# The kind of check, the number of the input, the size that it is compared with.
Kind = tuple[str, int, Dim | tuple[Dim, ...] | None]


def add_checks(graph: Graph, facts: Facts) -> bool:
    """Put a check before every node, also in inner regions, that needs one."""
    before = count_nodes(graph)
    entry = None if facts.unified else {s.name for s in symbol_sources(graph.params)}
    _add_checks(graph, Integers(graph, results=True), entry)
    return count_nodes(graph) > before


def _add_checks(region: Region, integers: Integers, entry: AbstractSet[str] | None) -> None:
    """`entry`: where failures are noted, the sizes that are known all the time: checks of others
    stop the program."""
    nodes, region.nodes = region.nodes, []
    unsigned: dict[Value, Value] = {}
    for node in nodes:
        for inner in node.regions:
            _add_checks(inner, integers, entry)
        takes_element = _takes_element(node)
        notes = entry is not None and mentioned_symbols(node) <= entry
        wanted = _wanted(node)
        if notes and (rows := _rows_written(node)) is not None:
            wanted.append(rows)
        given = list(node.inputs)
        for kind in wanted:
            if _is_proved(node, kind, integers):
                continue
            if takes_element and kind[0] == "wrapping" and not notes:
                wraps = not integers.is_not_negative(node.inputs[kind[1]])
                _insert_position(region, node, given, kind, wraps)
            else:
                _insert(region, node, kind, notes)
        if takes_element:
            for number, size in enumerate(node.inputs[0].spec.dims, 1):
                if integers.lies_inside(node.inputs[number], 0, size):
                    node.inputs[number] = _unsigned(region, node.inputs[number], unsigned)
        region.append(node)


def _takes_element(node: Node) -> bool:
    """Whether the node reads or writes one element, with a position for each axis."""
    rank = node.inputs[0].spec.rank if node.inputs else 0
    if node.op.refuses is Refusal.WRAPPING_POSITION:
        return rank == 1
    return node.op.refuses is Refusal.ELEMENT_POSITIONS


def _unsigned(region: Region, position: Value, known: dict[Value, Value]) -> Value:
    """A position that is not negative as an unsigned number: it does not count from the end."""
    if position not in known and position.spec.dtype.kind == "i":
        spec = TensorSpec((), dtypes.uint64)
        node = Node(CAST, [position], {"dtype": dtypes.uint64}, [spec], (), None)
        known[position] = region.append(node).outputs[0]
    return known.get(position, position)


def _is_proved(node: Node, kind: Kind, integers: Integers) -> bool:
    """Whether a position stays inside because of how the loops around it count, or positions
    because they are clamped. That an axis has no elements is found by the checks of a kernel's
    loads (`Emission.check_bounds`)."""
    what, number, size = kind
    if what not in ("outside", "wrapping") or size is None or isinstance(size, tuple):
        return False
    if node.inputs[number].spec.rank:
        last = compound("max", size - 1, 0)
        clamped = what == "outside" and integers.are_clamped(node.inputs[number], 0, last)
        return clamped and _is_loaded(node.inputs[0])
    return integers.lies_inside(node.inputs[number], -size if what == "wrapping" else 0, size)


def _is_loaded(value: Value) -> bool:
    """Whether a kernel that evaluates an element of a value loads one of an array of its size."""
    stack = [value]
    while stack:
        current = stack.pop()
        node = current.node
        role = None if node is None else role_of(node)
        if node is not None and role is Role.ARRAY and kind_of(node) == "elementwise":
            stack += [v for v in node.inputs if v.spec.dims == current.spec.dims]
        elif node is not None and role is Role.ALIAS:
            stack += node.inputs
        elif role is not Role.VIEW:
            return True
    return False


def _wanted(node: Node) -> list[Kind]:
    if role_of(node) not in (Role.SCALAR, Role.ARRAY, Role.VIEW):
        return []
    refuses = node.op.refuses
    if refuses is None:
        return []
    found: list[Kind | None] = []
    if refuses is Refusal.DIVISOR:
        found = [_divisor(node)]
    elif refuses is Refusal.EXPONENT:
        found = [_exponent(node)]
    elif refuses is Refusal.INTERVAL:
        found = [("empty", 1, None)]
    elif refuses is Refusal.OWN_POSITION:
        found = [("wrapping", 0, node.attrs["size"])]
    elif refuses is Refusal.ELEMENT_POSITIONS:
        found = [_inside(node, 1 + k, d) for k, d in enumerate(node.inputs[0].spec.dims)]
    elif refuses is Refusal.ROW_OF_POSITIONS:
        depth = node.inputs[1].spec.dims[-1]
        assert isinstance(depth, int)
        found = [("row", 1, node.inputs[0].spec.dims[:depth])]
    else:
        found = [_inside(node, 1, node.inputs[0].spec.dims[node.attrs["axis"]])]
    return [kind for kind in found if kind is not None]


def _rows_written(node: Node) -> Kind | None:
    """For an update of rows that data names: it looks at them itself where it can stop."""
    part = node.op.part
    if role_of(node) is not Role.UPDATE or part is None or part.kind is not PartKind.ROWS:
        return None
    number = next(n for n in range(1, len(node.inputs)) if n != part.data)
    depth = node.inputs[number].spec.dims[-1]
    assert isinstance(depth, int)
    return "row", number, node.inputs[0].spec.dims[:depth]


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
    wraps = node.op.refuses is not None and node.op.refuses.wraps
    low = -size if wraps else 0
    if isinstance(size, int) and _never(node.inputs[number], lambda i: (i < low) | (i >= size)):
        return None
    return "wrapping" if wraps else "outside", number, size


def _never(value: Value, bad: Callable[[Any], Any]) -> bool:
    """Whether a constant has no such element."""
    array = literal(value)
    return array is not None and not np.any(bad(array))


def _insert(region: Region, node: Node, kind: Kind, notes: bool) -> None:
    what, position, size = kind
    numbers = (position, position + 1) if what == "empty" else (position,)
    operands = [node.inputs[n] for n in numbers]
    attrs = {"kind": what, "size": size}
    bad = _new(region, node, BAD_ROW if what == "row" else BAD, operands, attrs)
    any_bad = _new(region, node, ANY, [bad], {}) if bad.spec.rank else bad
    good = _new(region, node, GOOD, [any_bad], {})
    if notes:
        if bad.spec.rank:
            first = _new(region, node, FIRST, [bad], {})
            operands = [first, _new(region, node, ELEMENT_AT, [*operands, first], {})]
        told = {"of": node, "numbers": numbers}
        region.append(Node(NOTE, [good, *operands], told, (), (), node.origin))
        return
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
