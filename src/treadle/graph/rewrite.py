"""Tools that passes are made of: replacing values, symbols and nodes while keeping SSA."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core.origin import Origin
from treadle.core.shapes import ANY, Dim, SymbolicDim, dim_symbols, substitute, symbol_name
from treadle.core.spec import Spec
from treadle.graph.ir import Graph, Node, Region, Value, clone_node
from treadle.graph.printer import has_automatic_name
from treadle.ops.conversion import CONST
from treadle.ops.indexing.index import INDEX
from treadle.ops.registry import Op, infer_outputs

# A rule's answer for a node: None, or values that replace the node's outputs.
Replacement = Sequence[Value] | None


def clone_graph(graph: Graph) -> Graph:
    """A deep copy that shares only ops, attributes and captures."""
    copy = Graph(graph.name, graph.device)
    copy.devices = graph.devices
    copy.captures = list(graph.captures)
    mapping = {p: copy.add_param(p.spec, p.name) for p in graph.params}
    for node in graph.nodes:
        clone_node(node, copy, mapping)
    copy.results = [mapping[v] for v in graph.results]
    return copy


class Rewriter:
    """Walks a graph forwards; ``visit(node)`` may give values that replace the node's outputs.

    A rule runs after the node's inputs were replaced and its regions rewritten. New nodes are
    put before the node being visited with `emit`, and inherit its origin. The replaced node
    stays where it is; dead code elimination removes it.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.changed = False
        self.symbols: dict[str, Dim] = {}  # learned: symbol -> its value
        self._nodes: list[Node] = []  # the rewritten part of the current region
        self._region: Region = graph
        self._origin: Origin | None = None
        self._erased = False

    def visit(self, node: Node) -> Replacement:
        raise NotImplementedError

    def enter(self, region: Region) -> None:
        """Called before a region's nodes are visited."""

    def leave(self, region: Region) -> None:
        """Called after a region's nodes were visited."""

    def finish(self) -> None:
        """Called after everything was visited, before learned symbols are replaced."""

    def run(self) -> bool:
        """Rewrite the whole graph; True when something changed."""
        self._rewrite(self.graph)
        self.finish()
        if self.symbols:
            substitute_symbols(self.graph, _closed(self.symbols))
        return self.changed

    def _rewrite(self, region: Region) -> None:
        outer = (self._region, self._nodes)
        self._region, self._nodes = region, []
        self.enter(region)
        replaced: dict[Value, Value] = {}
        for node in region.nodes:
            if replaced:
                node.inputs = [replaced.get(v, v) for v in node.inputs]
            for inner in node.regions:
                self._rewrite(inner)
            self._origin = node.origin
            self._erased = False
            found = self.visit(node)
            if not self._erased:
                self._nodes.append(node)
            if found is not None:
                self._replace(node, found, replaced)
        region.results = [replaced.get(v, v) for v in region.results]
        region.nodes = self._nodes
        self.leave(region)
        self._region, self._nodes = outer

    def _replace(self, node: Node, new: Sequence[Value], replaced: dict[Value, Value]) -> None:
        for old, value in zip(node.outputs, new, strict=True):
            if value is not old and self._same_type(node, old, value):
                replaced[old] = value
                self.changed = True
                if has_automatic_name(value):
                    value.name = old.name  # dumps stay readable

    def _same_type(self, node: Node, old: Value, new: Value) -> bool:
        """Whether `new` may stand for `old`: only symbols born at `node` may become other dims."""
        if old.spec is new.spec:
            return True
        if type(old.spec) is not type(new.spec) or old.spec.dtype is not new.spec.dtype:
            return False
        known = {s for v in node.inputs for s in v.spec.symbols()}
        learned: dict[str, Dim] = {}
        for before, b in zip(old.spec.dims, new.spec.dims, strict=True):
            a, b = substitute(before, self.symbols), substitute(b, self.symbols)
            name = symbol_name(a)
            if a != b and (name is None or name in known or learned.get(name, b) != b):
                return False
            if a != b and name is not None:
                learned[name] = b
        self.symbols.update(learned)
        return True

    def emit(self, op: Op, inputs: Sequence[Value], attrs: Mapping[str, Any]) -> Value:
        """A new node of one output before the node being visited."""
        specs = infer_outputs(op, [v.spec for v in inputs], attrs)
        node = Node(op, inputs, attrs, specs, (), self._origin)
        node.region = self._region
        self._nodes.append(node)
        self.changed = True
        return node.outputs[0]

    def constant(self, array: Any) -> Value:
        return self.emit(CONST, (), {"value": array})

    def place(self, node: Node) -> None:
        """Put an existing node, taken out of its region, before the node being visited."""
        node.region = self._region
        self._nodes.append(node)
        self.changed = True

    def inline(self, region: Region, operands: Sequence[Value]) -> list[Value]:
        """Put a region's nodes before the node being visited, with operands for its parameters;
        gives the region's results."""
        replaced = dict(zip(region.params, operands, strict=True))
        replace_reads(region, replaced)
        for node in list(region.nodes):
            self.place(node)
        return region.results

    def erase(self) -> None:
        """Remove the node being visited, effects included."""
        self._erased = True
        self.changed = True


def _closed(symbols: dict[str, Dim]) -> dict[str, Dim]:
    """The replacements with replaced symbols followed to the end."""
    for _ in symbols:
        symbols = {name: substitute(dim, symbols) for name, dim in symbols.items()}
    return symbols


def constant_of(value: Value) -> np.ndarray[Any, Any] | None:
    """The array of a constant, else None."""
    node = value.node
    return node.attrs["value"] if node is not None and node.op is CONST else None


def map_attr(attr: Any, fn: Callable[[Dim], Dim]) -> Any:
    """An attribute with `fn` applied to the symbolic dims in it, however deep."""
    if isinstance(attr, SymbolicDim):
        return fn(attr)
    if isinstance(attr, Spec):
        return attr.with_dims(fn(d) for d in attr.dims)
    if type(attr) in (tuple, list):
        return type(attr)([map_attr(a, fn) for a in attr])
    if isinstance(attr, dict):
        return {k: map_attr(v, fn) for k, v in attr.items()}
    return attr


def attr_symbols(attrs: Mapping[str, Any]) -> set[str]:
    """The symbols that attributes mention."""
    found: set[str] = set()
    for attr in attrs.values():
        _note_symbols(attr, found)
    return found


def _note_symbols(attr: Any, found: set[str]) -> None:
    if isinstance(attr, SymbolicDim | Spec):
        found |= attr.symbols()
    elif type(attr) in (tuple, list):
        for part in attr:
            _note_symbols(part, found)
    elif isinstance(attr, dict):
        for part in attr.values():
            _note_symbols(part, found)


def symbol_tellers(
    nodes: Iterable[Node], known: Iterable[str]
) -> tuple[frozenset[str], dict[Node, set[str]]]:
    """All symbols that are known after some nodes, and the nodes whose results tell new ones
    first: they are needed where others mention these, whoever reads the results.

    Args:
        known: the symbols that are known before.
    """
    found = set(known)
    tellers: dict[Node, set[str]] = {}
    for node in nodes:
        dims = (d for v in node.outputs for d in v.spec.dims)
        new = {name for d in dims if (name := symbol_name(d)) is not None} - found
        if new:
            tellers[node] = new
            found |= new
    return frozenset(found), tellers


def all_attr_symbols(node: Node) -> set[str]:
    """The symbols in the attributes of a node and of those in its regions."""
    found = attr_symbols(node.attrs)
    for region in node.regions:
        found.update(*(attr_symbols(inner.attrs) for inner in region.walk()))
    return found


def mentioned_symbols(node: Node) -> set[str]:
    """The symbols in a node's attributes and in the shapes of its inputs."""
    return attr_symbols(node.attrs).union(*(v.spec.symbols() for v in node.inputs))


def told_symbols(node: Node) -> set[str]:
    """The symbols of sizes that only the results of a node tell: it mentions none of them."""
    made: set[str] = set().union(*(v.spec.symbols() for v in node.outputs))
    return made - mentioned_symbols(node) - dim_symbols(ANY)


def substitute_symbols(region: Region, symbols: Mapping[str, Dim]) -> None:
    """Replace symbols by dims in all specs and attributes."""

    def replace(dim: Dim) -> Dim:
        return substitute(dim, symbols)

    def renew(value: Value) -> None:
        if value.spec.symbols() & symbols.keys():
            value.spec = value.spec.with_dims(replace(d) for d in value.spec.dims)

    for param in region.params:
        renew(param)
    for node in region.nodes:
        if attr_symbols(node.attrs) & symbols.keys():
            node.attrs = {k: map_attr(v, replace) for k, v in node.attrs.items()}
        for value in node.outputs:
            renew(value)
        for inner in node.regions:
            substitute_symbols(inner, symbols)


def add_carried(loop: Node, start: Value) -> Value:
    """Give a ``while`` one more loop variable and return its parameter in the body.

    Its output is the last one; the caller appends its new value to the body's results.
    """
    count = len(loop.regions[1].results)
    loop.inputs.insert(count, start)
    for region in loop.regions:
        region.params.insert(count, Value(start.spec, region, count))
        _renumbered(region.params)
    loop.outputs.append(Value(start.spec, loop, len(loop.outputs)))
    return loop.regions[1].params[count]


def pass_in(loop: Node, region: Region, value: Value) -> Value:
    """The region's parameter for one more loop-invariant operand of a ``while``."""
    loop.inputs.append(value)
    params = [r.add_param(value.spec, value.name) for r in loop.regions]
    return params[loop.regions.index(region)]


def replace_reads(region: Region, replaced: Mapping[Value, Value]) -> None:
    """Let a region's nodes and results read other values, which may be replaced themselves."""

    def final(value: Value) -> Value:
        while value in replaced:
            value = replaced[value]
        return value

    for node in region.nodes:
        node.inputs = [final(v) for v in node.inputs]
    region.results = [final(v) for v in region.results]


def read_slices(loop: Node, found: Mapping[Node, tuple[Value, Value]]) -> None:
    """Let nodes of a loop's body be slices of arrays along their first axis.

    Args:
        found: for each of these nodes the array before the loop, and the position in the body.
    """
    body, arrays, slices = loop.regions[1], dict[Value, Value](), dict[Value, Value]()
    for place, node in enumerate(body.nodes):
        if node in found:
            array, position = found[node]
            if array not in arrays:
                arrays[array] = pass_in(loop, body, array)
            inputs, specs = [arrays[array], position], [node.outputs[0].spec]
            body.nodes[place] = Node(INDEX, inputs, {"axis": 0}, specs, (), node.origin)
            body.nodes[place].region = body
            slices[node.outputs[0]] = body.nodes[place].outputs[0]
    replace_reads(body, slices)


def keep_outputs(node: Node, keep: Sequence[int]) -> None:
    """Drop all outputs of a node but those numbered in `keep`."""
    node.outputs = _renumbered([node.outputs[i] for i in keep])


def keep_params(region: Region, keep: Sequence[int]) -> None:
    """Drop all parameters of a region but those numbered in `keep`."""
    region.params = _renumbered([region.params[i] for i in keep])


def _renumbered(values: list[Value]) -> list[Value]:
    for index, value in enumerate(values):
        value.index = index
    return values
