"""Reading a list tells the size of an element: sizes are told before others are computed of them.

    %1: f32[min(1, d)] = list_get(%a, %i)        %2: f32[d] = list_get(%b, %i)
    %2: f32[d] = list_get(%b, %i)           ->   %1: f32[min(1, d)] = list_get(%a, %i)

Backward loops read what a forward loop stored, in the order in which it was computed; nothing else
tells them how large the arrays of that iteration were.
"""

from __future__ import annotations

from collections.abc import Iterator

from treadle.core.shapes import ANY, dim_symbols, symbol_name
from treadle.graph.ir import Graph, Node, Region
from treadle.ops.collections.lists import LIST_GET
from treadle.runtime.schedule.facts import Facts


def tell_sizes_first(graph: Graph, facts: Facts) -> bool:
    """Read an element that tells a size before the elements whose sizes are computed of it."""
    changed = False
    for region in list(_regions(graph)):
        changed |= _order(region)
    return changed


def _regions(region: Region) -> Iterator[Region]:
    yield region
    for node in region.nodes:
        for inner in node.regions:
            yield from _regions(inner)


def _order(region: Region) -> bool:
    reads = [node for node in region.nodes if node.op is LIST_GET]
    tells: dict[str, Node] = {}
    for node in reads:
        for dim in node.outputs[0].spec.dims:
            name = symbol_name(dim)
            if name is not None:
                tells.setdefault(name, node)
    wanted = {node: told for node in reads if (told := _computed_of(node) & tells.keys())}
    if not wanted:
        return False
    nodes: dict[Node, None] = {}
    for node in region.nodes:
        if node in wanted:
            for name in sorted(wanted[node]):
                inputs = (v.node for v in tells[name].inputs)
                if all(maker is None or maker.region is not region or maker in nodes
                       for maker in inputs):  # fmt: skip
                    nodes.setdefault(tells[name])
            node.attrs["dims"] = node.outputs[0].spec.dims  # so it mentions the sizes
        nodes.setdefault(node)
    region.nodes = list(nodes)
    return True


def _computed_of(node: Node) -> set[str]:
    """The symbols that the result's sizes are computed of."""
    dims = [d for d in node.outputs[0].spec.dims if symbol_name(d) is None and d != ANY]
    return set().union(*map(dim_symbols, dims))
