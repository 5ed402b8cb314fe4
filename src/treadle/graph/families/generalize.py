"""From sample graphs to their pattern (anti-unification of graphs).

The graphs are read side by side. Where they have the same op on corresponding values, the pattern
gets a node; dims of arguments that differ become symbols, ints in attributes that differ become
expressions over them, and the shape rules of the ops tell the dims of results. A node that only
some graphs have, because it changes nothing for the others' sizes, is in the pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core import errors
from treadle.core.shapes import Dim, SymbolicDim, fresh_symbol, product
from treadle.core.spec import Spec, TensorSpec
from treadle.graph.families.attributes import common_attr, same_attr
from treadle.graph.families.constants import DimConstant, common_constant, emit
from treadle.graph.families.correspondence import Correspondence, live_nodes, same_capture
from treadle.graph.families.expressions import Different, Expressions
from treadle.graph.families.identities import guess_attr, is_meaningless
from treadle.graph.families.pattern import Pattern
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.ops.conversion import CONST
from treadle.ops.registry import infer_outputs


class NoPattern(Exception):
    """The graphs differ in more than dims, or in a way that is not understood."""


def generalize(graphs: Sequence[Graph]) -> Pattern:
    """The pattern of two or more graphs.

    Raises:
        NoPattern: there is none; the message says where the graphs differ.
    """
    return _Generalizer(graphs).run()


class _Generalizer:
    """
    Attributes:
        beside: for each sample graph its correspondence to the pattern.
        known_as: for each sample graph the pattern's values that one of its values stands for.
    """

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self.graphs = graphs
        self.inserted: dict[Node, DimConstant | None] = {}
        self.beside = [Correspondence(self.inserted) for _ in graphs]
        taken = {s for g in graphs for p in g.params for s in p.spec.symbols()}
        self.expressions = Expressions([b.dims for b in self.beside], taken)
        self.known_as: list[dict[Value, list[Value]]] = [{} for _ in graphs]

    def run(self) -> Pattern:
        first = self.graphs[0]
        for other in self.graphs[1:]:
            same = len(first.captures) == len(other.captures) and all(
                map(same_capture, first.captures, other.captures)
            )
            if not same or len(first.params) != len(other.params):
                raise NoPattern("the graphs capture other tensors or variables")
        graph = Graph(first.name, first.device)
        graph.captures = list(first.captures)
        try:
            self.region(graph, self.graphs, [self.argument_spec(c) for c in self.columns()])
        except Different as different:
            raise NoPattern(str(different)) from None
        return Pattern(graph, self.inserted)

    def columns(self) -> list[list[Value]]:
        return [list(c) for c in zip(*(g.params for g in self.graphs), strict=True)]

    def argument_spec(self, values: Sequence[Value]) -> Spec:
        """The spec of a parameter, with symbols where the sample graphs differ."""
        specs = [v.spec for v in values]
        _check_kinds(specs)
        dims = zip(*(s.dims for s in specs), strict=True)
        return specs[0].with_dims(map(self.expressions.symbol, dims))  # type: ignore[no-any-return]

    # -- regions -----------------------------------------------------------------------------

    def region(self, into: Region, regions: Sequence[Region], specs: Sequence[Spec]) -> None:
        """Fill a region of the pattern from the same region of each sample graph."""
        for column, spec in zip(zip(*(r.params for r in regions), strict=True), specs, strict=True):
            param = into.add_param(spec, column[0].name)
            self.bind(param, column, "the parameter")
        rows = [live_nodes(r) for r in regions]
        positions = [0] * len(rows)
        while any(p < len(row) for p, row in zip(positions, rows, strict=True)):
            heads = [
                row[p] if p < len(row) else None for p, row in zip(positions, rows, strict=True)
            ]
            for number in self.column(into, heads):
                positions[number] += 1
        if len({len(r.results) for r in regions}) != 1:
            raise NoPattern("the graphs have different numbers of results")
        into.results = [
            self.pattern_value(c) for c in zip(*(r.results for r in regions), strict=True)
        ]

    def column(self, into: Region, heads: Sequence[Node | None]) -> list[int]:
        """The pattern's node for the next nodes of the graphs; gives the graphs that have it."""
        if all(h is not None and h.op is heads[0].op for h in heads):  # type: ignore[union-attr]
            try:
                return self.node(into, heads)
            except (Different, NoPattern):
                if heads[0] is None or heads[0].op.same_elements is None:
                    raise
        reason = ""
        heads_kept = [h.op for h in heads if h is not None and h.op.same_elements is not None]
        for op in dict.fromkeys(heads_kept):
            for having in _subsets(heads, op):
                try:
                    return self.node(into, having)
                except (Different, NoPattern) as problem:
                    reason = f": {problem}"
        names = sorted({"the end" if h is None else h.op.name for h in heads})
        raise NoPattern(f"the graphs differ: {' and '.join(names)}{reason}")

    # -- nodes -------------------------------------------------------------------------------

    def node(self, into: Region, nodes: Sequence[Node | None]) -> list[int]:
        """Add the pattern's node; `nodes` holds None for graphs in which it is left out."""
        having = [i for i, n in enumerate(nodes) if n is not None]
        present = [n for n in nodes if n is not None]
        like = present[0]
        if like.op is CONST and not self.same_constant(present):
            self.constant(into, present)
            return having
        inputs = self.inputs(nodes)
        attrs = self.attrs(nodes, inputs)
        regions = self.inner_regions(present, inputs) if like.regions else []
        specs = _infer(like, inputs, attrs, regions)
        node = Node(like.op, inputs, attrs, specs, regions, like.origin)
        if len({len(n.outputs) for n in (node, *present)}) != 1:
            raise NoPattern(f"{like.op.name} has different numbers of outputs")
        self.place(node, nodes)
        into.append(node)
        return having

    def place(self, node: Node, nodes: Sequence[Node | None]) -> None:
        """Note which values of each graph the outputs of a new node of the pattern stand for."""
        for beside, known_as, own in zip(self.beside, self.known_as, nodes, strict=True):
            if own is None:
                if not beside.leave_out(node):
                    raise NoPattern(f"{node.op.name} is missing in one of the graphs")
                value = beside.values[node.outputs[0]][0]
                known_as[value].append(node.outputs[0])
            elif not beside.bind_all(node.outputs, own.outputs):
                raise NoPattern(f"the shape rule of {node.op.name} does not give {own.outputs}")
            else:
                known_as.update((v, [p]) for v, p in zip(own.outputs, node.outputs, strict=True))
        for value in node.outputs:
            self.expressions.note(value.spec.dims)

    def bind(self, param: Value, column: Sequence[Value], what: str) -> None:
        for beside, known_as, own in zip(self.beside, self.known_as, column, strict=True):
            if not beside.bind(param, own):
                raise NoPattern(f"{what} %{param.name} has different types")
            known_as[own] = [param]
        self.expressions.note(param.spec.dims)

    def inputs(self, nodes: Sequence[Node | None]) -> list[Value]:
        present = [n for n in nodes if n is not None]
        if len({len(n.inputs) for n in present}) != 1:
            raise NoPattern(f"{present[0].op.name} has different numbers of inputs")
        count = len(present[0].inputs)
        return [
            self.pattern_value([None if n is None else n.inputs[i] for n in nodes])
            for i in range(count)
        ]

    def pattern_value(self, column: Sequence[Value | None]) -> Value:
        """The pattern's value that stands for these values of the graphs, the newest if several
        do."""
        candidates: list[Value] | None = None
        for beside, known_as, own in zip(self.beside, self.known_as, column, strict=True):
            if own is not None:
                fitting = [p for p in known_as[own] if beside.values[p][1] == own.spec.dims]
                candidates = (
                    fitting if candidates is None else [p for p in candidates if p in fitting]
                )
        if not candidates:
            raise NoPattern("corresponding nodes read different values")
        return candidates[-1]

    def attrs(self, nodes: Sequence[Node | None], inputs: Sequence[Value]) -> dict[str, Any]:
        present = [n for n in nodes if n is not None]
        names = present[0].attrs.keys()
        if any(n.attrs.keys() != names for n in present):
            raise NoPattern(f"{present[0].op.name} has different attributes")
        near = _dims_nearby(inputs)
        found = {}
        for name in names:
            telling = next((n for n in present if not is_meaningless(n, name)), present[0])
            column = [
                self.left_out_attr(i, name, present, inputs)
                if n is None
                else (telling if is_meaningless(n, name) else n).attrs[name]
                for i, n in enumerate(nodes)
            ]
            try:
                found[name] = common_attr(column, self.expressions, near)
            except Different as different:
                text = f"the attribute {name} of {present[0].op.name} is {different}"
                raise NoPattern(text) from None
        return found

    def left_out_attr(
        self, number: int, name: str, present: Sequence[Node], inputs: Sequence[Value]
    ) -> Any:
        found = self.beside[number].values.get(inputs[0])
        if found is None:
            raise NoPattern(f"what {present[0].op.name} reads is left out of some graph")
        value, dims = found
        return guess_attr(name, [n.attrs[name] for n in present], value.spec.dims, dims)

    # -- constants and regions ---------------------------------------------------------------

    def same_constant(self, nodes: Sequence[Node]) -> bool:
        first = nodes[0].attrs["value"]
        return all(same_attr(first, n.attrs["value"], {}) for n in nodes[1:])

    def constant(self, into: Region, nodes: Sequence[Node]) -> None:
        constant = common_constant([n.attrs["value"] for n in nodes], self.expressions)
        *steps, last = emit(into, constant, nodes[0])
        self.inserted.update((step, None) for step in steps)
        self.inserted[last] = constant
        self.place(last, nodes)

    def inner_regions(self, nodes: Sequence[Node], inputs: Sequence[Value]) -> list[Region]:
        if len(nodes) != len(self.graphs) or len({len(n.regions) for n in nodes}) != 1:
            raise NoPattern(f"{nodes[0].op.name} has different regions")
        regions = []
        for column in zip(*(n.regions for n in nodes), strict=True):
            if len({len(r.params) for r in column}) != 1:
                raise NoPattern(f"the regions of {nodes[0].op.name} have different parameters")
            region = Region()
            offset = len(inputs) - len(column[0].params)  # `cond` does not pass its predicate
            specs = [
                self.inner_spec(values, inputs[offset + i].spec)
                for i, values in enumerate(zip(*(r.params for r in column), strict=True))
            ]
            self.region(region, column, specs)
            regions.append(region)
        return regions

    def inner_spec(self, values: Sequence[Value], operand: Spec) -> Spec:
        """The spec of a region's parameter: the operand's spec, or a more general one."""
        specs = [v.spec for v in values]
        _check_kinds(specs)
        dims = [
            self.inner_dim(column, own)
            for column, own in zip(zip(*(s.dims for s in specs), strict=True), operand.dims,
                                   strict=True)
        ]  # fmt: skip
        return specs[0].with_dims(dims)  # type: ignore[no-any-return]

    def inner_dim(self, sample: tuple[Dim, ...], operand: Dim) -> Dim:
        if self.expressions.values(operand) == sample:
            return operand
        found = self.expressions.find(sample)
        if found is not None:
            return found
        if all(isinstance(d, SymbolicDim) for d in sample):
            return fresh_symbol()  # learned when the parameter is bound
        raise NoPattern(f"a region's parameter has the dims {' and '.join(map(str, sample))}")


def _infer(
    like: Node, inputs: Sequence[Value], attrs: dict[str, Any], regions: Sequence[Region]
) -> tuple[Spec, ...]:
    specs = [v.spec for v in inputs]
    try:
        if not regions:
            return infer_outputs(like.op, specs, attrs)
        inferred = like.op.infer(*specs, regions=regions, **attrs)
    except (errors.OpError, TypeError, ValueError) as error:
        raise NoPattern(f"{like.op.name} does not take symbolic dims: {error}") from None
    return inferred if isinstance(inferred, tuple) else (inferred,)


def _check_kinds(specs: Sequence[Spec]) -> None:
    if len({(type(s), s.dtype.name, s.rank) for s in specs}) != 1:
        raise NoPattern(f"types differ in more than dims: {' and '.join(map(str, specs))}")


def _dims_nearby(inputs: Sequence[Value]) -> list[Dim]:
    """The dims that the attributes of a node are probably computed from."""
    specs = [v.spec for v in inputs if isinstance(v.spec, TensorSpec)]
    sizes = [d for s in specs for d in s.dims]
    return [*sizes, *(product(s.dims) for s in specs)]


def _subsets(heads: Sequence[Node | None], op: Any) -> list[list[Node | None]]:
    """Which graphs may have a node of `op` next: all that show one, or one of them alone."""
    having = [h if h is not None and h.op is op else None for h in heads]
    alone = [[h if i == j else None for j, h in enumerate(having)] for i in range(len(heads))]
    fewer = alone if sum(h is not None for h in having) > 1 else []
    return [s for s in (having, *fewer) if any(h is not None for h in s) and None in s]
