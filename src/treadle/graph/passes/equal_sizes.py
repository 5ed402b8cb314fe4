"""Sizes that loop variables share: those that start equal and change in step get one symbol.

    while(%k: f32[d0, 8], %v: f32[d1, 8])  both from 1 row on,        ->  %k: f32[d0, 8]
      both with a row more after each iteration                           %v: f32[d0, 8]

Keys and values that grow together then have products and kernels of one size, which nothing checks.
"""

from __future__ import annotations

from collections.abc import Mapping

from treadle.core.shapes import Dim, SymbolicDim, substitute, symbol_name
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Graph, Node
from treadle.graph.rewrite import substitute_symbols
from treadle.ops.control.control_flow import WHILE

# Symbol -> its values before the first iteration and after one.
Steps = Mapping[str, tuple[Dim, Dim]]


def unify_sizes(graph: Graph) -> bool:
    """Give sizes of loop variables that are always equal one symbol."""
    found: dict[str, Dim] = {}
    for node in graph.walk():
        if node.op is WHILE:
            found |= _equal(_changing(node))
    if found:
        substitute_symbols(graph, found)
    return bool(found)


def _changing(loop: Node) -> Steps:
    """The dims of loop variables that are symbols of their own."""
    body = loop.regions[1]
    outer = {s for v in loop.inputs for s in v.spec.symbols()}
    found: dict[str, tuple[Dim, Dim]] = {}
    twice: set[str] = set()
    for start, param, result in zip(loop.inputs, body.params, body.results, strict=False):
        if not isinstance(param.spec, TensorSpec) or result is param:
            continue
        for a, dim, b in zip(start.spec.dims, param.spec.dims, result.spec.dims, strict=True):
            name = symbol_name(dim)
            if name is None or name in outer:
                continue
            if found.setdefault(name, (a, b)) != (a, b):
                twice.add(name)
    return {name: dims for name, dims in found.items() if name not in twice}


def _equal(steps: Steps) -> dict[str, Dim]:
    """Symbols -> the first symbol that is always equal. All that start equal are taken to be
    equal, and told apart again until each iteration keeps them so."""
    groups: dict[str, int] = _numbered({name: (start,) for name, (start, _) in steps.items()})
    while True:
        first: dict[int, str] = {}
        for name, group in groups.items():
            first.setdefault(group, name)
        same = {name: SymbolicDim.symbol(first[group]) for name, group in groups.items()}
        after = {
            name: (groups[name], substitute(result, same)) for name, (_, result) in steps.items()
        }
        refined = _numbered(after)
        if len(set(refined.values())) == len(set(groups.values())):
            return {name: dim for name, dim in same.items() if symbol_name(dim) != name}
        groups = refined


def _numbered(keys: Mapping[str, object]) -> dict[str, int]:
    numbers: dict[object, int] = {}
    return {name: numbers.setdefault(key, len(numbers)) for name, key in keys.items()}
