"""Checks that a graph is well formed. Run after every pass in tests, and with TREADLE_VERIFY=1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

from treadle.core import dtypes, errors
from treadle.core.origin import at
from treadle.core.shapes import Dim, SymbolicDim, dim_symbols, substitute
from treadle.core.spec import ListSpec, Spec, TensorSpec, spec_text
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.printer import kept_regions, print_node
from treadle.ops.control.control_flow import COND, WHILE


class GraphError(errors.InternalError):
    """A graph breaks a rule of the IR: a bug of a pass or builder, not of the user."""


def verify(graph: Graph, where: str = "") -> None:
    """Check `graph`; `where` names the pass that has just run.

    Raises:
        GraphError: names the rule, the node and the user's line the node comes from.
    """
    try:
        if len(graph.captures) > len(graph.params):
            _fail(f"{len(graph.captures)} captures but {len(graph.params)} parameters")
        _verify_region(graph, set())
    except GraphError as error:
        after = f" after {where}" if where else ""
        raise GraphError(None, None, f"graph {graph.name}{after}: {error.message}") from None


def _fail(message: str, node: Node | None = None) -> NoReturn:
    place = f"\n  in {print_node(node)}{at(node.origin)}" if node is not None else ""
    raise GraphError(None, node.op if node else None, message + place)


def _verify_region(region: Region, seen: set[int]) -> None:
    """Definitions before uses, owners and positions consistent, each object in one place."""
    if id(region) in seen:
        _fail("a region belongs to two nodes")
    seen.add(id(region))
    defined: set[Value] = set()
    _check_definitions(region.params, region, "parameter", None)
    defined.update(region.params)
    for node in region.nodes:
        if id(node) in seen:
            _fail("a node stands in two places", node)
        seen.add(id(node))
        if node.region is not region:
            _fail("the node's region is not the one that holds it", node)
        _check_defined(node.inputs, defined, "input", node)
        _check_definitions(node.outputs, node, "output", node)
        for inner in node.regions:
            _verify_region(inner, seen)
        for _, kept in kept_regions(node.attrs):
            _verify_region(kept, set())  # which several nodes may have
        _verify_node(node)
        defined.update(node.outputs)
    _check_defined(region.results, defined, "result", None)


def _check_definitions(
    values: Sequence[Value], owner: Node | Region, what: str, node: Node | None
) -> None:
    for index, value in enumerate(values):
        if value.producer is not owner or value.index != index:
            _fail(f"{what} {index} (%{value.name}) does not point back to its producer", node)


def _check_defined(
    values: Iterable[Value], defined: set[Value], what: str, node: Node | None
) -> None:
    for index, value in enumerate(values):
        if value not in defined:
            other = value.node
            place = f"; it is made by {print_node(other)}{at(other.origin)}" if other else ""
            _fail(
                f"{what} {index} (%{value.name}) is not defined before it in its region{place}",
                node,
            )


def _verify_node(node: Node) -> None:
    if node.op is COND:
        _verify_cond(node)
    elif node.op is WHILE:
        _verify_while(node)
    elif node.regions:
        _fail(f"{node.op.name} owns no regions but has {len(node.regions)}", node)
    else:
        _verify_outputs(node)


def _verify_outputs(node: Node) -> None:
    """The outputs have the specs that the op's shape rule gives."""
    extra = {"regions": node.regions} if node.regions else {}
    try:
        inferred = node.op.infer(*(v.spec for v in node.inputs), **extra, **node.attrs)
    except Exception as error:
        _fail(f"the shape rule refuses the inputs: {error}", node)
    specs = inferred if isinstance(inferred, tuple) else (inferred,)
    declared = [v.spec for v in node.outputs]
    if not same_specs(specs, declared, _known_symbols(node)):
        wanted = ", ".join(spec_text(s) for s in specs)
        _fail(f"the shape rule gives ({wanted})", node)


def _known_symbols(node: Node) -> set[str]:
    """The symbols of the node's operands; others in its shape rule's answer are fresh."""
    values = [*node.inputs]
    for region in node.regions:
        values += [*region.params, *region.results]
    return {s for v in values for s in v.spec.symbols()}


def same_specs(inferred: Sequence[Spec], declared: Sequence[Spec], known: set[str]) -> bool:
    """Whether the specs are equal up to the names of symbols that are not `known`."""
    renamed: dict[str, Dim] = {}
    if len(inferred) != len(declared):
        return False
    for a, b in zip(inferred, declared, strict=True):
        if type(a) is not type(b) or a.dtype is not b.dtype or a.rank != b.rank:
            return False
        if not all(_same_dim(x, y, renamed, known) for x, y in zip(a.dims, b.dims, strict=True)):
            return False
    return True


def _same_dim(inferred: Dim, declared: Dim, renamed: dict[str, Dim], known: set[str]) -> bool:
    if inferred == declared:
        return True
    fresh = dim_symbols(inferred) - known
    for name in fresh - renamed.keys():
        if inferred == SymbolicDim.symbol(name):
            renamed[name] = declared
    return bool(fresh) and substitute(inferred, renamed) == declared


def _verify_cond(node: Node) -> None:
    if len(node.regions) != 2 or not node.inputs:
        _fail("cond needs a predicate and two regions", node)
    if node.inputs[0].spec is not TensorSpec((), dtypes.bool):
        _fail("the predicate must be a bool scalar", node)
    for region in node.regions:
        _check_params(node, region, node.inputs[1:])
        if len(region.results) != len(node.outputs):
            _fail(
                f"a branch has {len(region.results)} results for {len(node.outputs)} outputs", node
            )
    _verify_outputs(node)


def _check_params(node: Node, region: Region, operands: Sequence[Value]) -> None:
    if len(region.params) != len(operands):
        _fail(f"a region takes {len(region.params)} values, the node gives {len(operands)}", node)
    for param, operand in zip(region.params, operands, strict=True):
        if not _fits(operand.spec, param.spec):
            _fail(
                f"parameter %{param.name}: {spec_text(param.spec)} is given "
                f"{spec_text(operand.spec)}",
                node,
            )


def _fits(given: Spec, wanted: Spec) -> bool:
    """A value of spec `given` may be passed where `wanted` stands: fixed dims are equal."""
    if given is wanted:
        return True
    if type(given) is not type(wanted) or given.dtype is not wanted.dtype:
        return False
    if isinstance(given, ListSpec):
        return True  # an element shape may be learned inside a loop
    return given.rank == wanted.rank and all(
        a == b or not isinstance(b, int) for a, b in zip(given.dims, wanted.dims, strict=True)
    )


def _verify_while(node: Node) -> None:
    if len(node.regions) != 2:
        _fail("while needs two regions", node)
    condition, body = node.regions
    for region in node.regions:
        _check_params(node, region, node.inputs)
    if [v.spec for v in condition.results] != [TensorSpec((), dtypes.bool)]:
        _fail("the condition must give one bool scalar", node)
    carried = len(body.results)
    if carried > len(node.inputs) or carried != len(node.outputs):
        _fail(
            f"{carried} carried values for {len(node.inputs)} operands and "
            f"{len(node.outputs)} outputs",
            node,
        )
    for result, param in zip(body.results, body.params, strict=False):
        if not _fits(result.spec, param.spec):
            _fail(
                f"%{param.name}: {spec_text(param.spec)} is carried as {spec_text(result.spec)}",
                node,
            )
    _verify_outputs(node)
