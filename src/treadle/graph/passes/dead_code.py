"""Dead code elimination: nodes, results, operands and loop variables that nothing needs.

%0 = tanh(%x)                      (unused: removed)
%1, %2 = cond(%p, %x, %y) ...      (%2 unused: its result and the nodes for it are removed)
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.shapes import symbol_name
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.rewrite import all_attr_symbols, keep_outputs, keep_params, symbol_tellers
from treadle.ops.control.control_flow import COND, WHILE


def eliminate_dead_code(graph: Graph) -> bool:
    """Remove nodes without effect whose results are not used. The graph's parameters stay."""
    return _clean(graph)


def _clean(region: Region, outer: frozenset[str] = frozenset()) -> bool:
    """Clean a region; `outer` are the symbols that are known where it stands."""
    live: set[Value] = set(region.results)
    kept: list[Node] = []
    changed = False
    known, tellers = _tellers(region, outer)
    needed: set[str] = set()  # symbols that the kept nodes mention
    for node in reversed(region.nodes):
        told = tellers.get(node, set()) & needed
        live.update(v for v in node.outputs if any(symbol_name(d) in told for d in v.spec.dims))
        if not node.has_effect and not any(v in live for v in node.outputs):
            changed = True
            continue
        if node.regions:
            changed |= _clean_structured(node, live, known)
        live.update(node.inputs)
        needed |= all_attr_symbols(node)
        kept.append(node)
    region.nodes = kept[::-1]
    return changed


def _tellers(region: Region, outer: frozenset[str]) -> tuple[frozenset[str], dict[Node, set[str]]]:
    """`symbol_tellers` of a region; `outer` are the symbols that are known where it stands."""
    return symbol_tellers(region.nodes, outer.union(*(p.spec.symbols() for p in region.params)))


def _clean_structured(node: Node, live: set[Value], known: frozenset[str]) -> bool:
    changed = False
    if node.op is COND:
        changed |= _trim_cond_results(node, live)
    elif node.op is WHILE:
        changed |= _trim_loop_variables(node, live, known)
    for region in node.regions:
        changed |= _clean(region, known)
    if "control_flow" in node.op.tags:
        changed |= _trim_operands(node)
    return changed


def _trim_cond_results(node: Node, live: set[Value]) -> bool:
    keep = [i for i, v in enumerate(node.outputs) if v in live]
    if len(keep) == len(node.outputs):
        return False
    keep_outputs(node, keep)
    for region in node.regions:
        region.results = [region.results[i] for i in keep]
    return True


def _trim_loop_variables(node: Node, live: set[Value], known: frozenset[str]) -> bool:
    """Drop loop variables that neither the outputs, the condition nor an effect needs."""
    condition, body = node.regions
    count = len(body.results)
    needed = {i for i, v in enumerate(node.outputs) if v in live}
    needed |= _needed_params(condition, condition.results, known)
    while True:
        wanted = [body.results[i] for i in sorted(needed) if i < count]
        more = needed | _needed_params(body, wanted, known)
        if more == needed:
            break
        needed = more
    carried = [i for i in range(count) if i in needed]
    if len(carried) == count:
        return False
    keep = carried + list(range(count, len(node.inputs)))
    node.inputs = [node.inputs[i] for i in keep]
    keep_outputs(node, carried)
    body.results = [body.results[i] for i in carried]
    _drop_nodes_of_lost_params(node.regions, keep, known)
    return True


def _drop_nodes_of_lost_params(
    regions: Sequence[Region], keep: Sequence[int], known: frozenset[str]
) -> None:
    """Remove the parameters not in `keep`, and first the dead nodes that read them."""
    for region in regions:
        _clean(region, known)
        keep_params(region, keep)


def _needed_params(region: Region, wanted: Sequence[Value], outer: frozenset[str]) -> set[int]:
    """The parameters that the wanted values and the region's effects depend on, also by the sizes
    and positions that attributes mention."""
    live = set(wanted)
    _, tellers = _tellers(region, outer)
    mentioned: set[str] = set()
    for node in reversed(region.nodes):
        used = node.has_effect or any(v in live for v in node.outputs)
        if used or (node in tellers and tellers[node] & mentioned):
            live.update(node.inputs)
            mentioned |= all_attr_symbols(node)
    return {p.index for p in region.params if p in live}


def _trim_operands(node: Node) -> bool:
    """Drop operands whose parameters no region uses: all of cond's, the invariant ones of while."""
    if node.op is COND:
        first, fixed = 1, 0
    else:
        first, fixed = 0, len(node.regions[1].results)
    used = set(range(fixed))
    for region in node.regions:
        live = set(region.results).union(*(n.inputs for n in region.nodes))
        used |= {p.index for p in region.params if p in live}
    keep = sorted(used)
    if len(keep) == len(node.inputs) - first:
        return False
    node.inputs = [*node.inputs[:first], *(node.inputs[first + i] for i in keep)]
    for region in node.regions:
        keep_params(region, keep)
    return True
