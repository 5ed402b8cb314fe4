"""Symbolic dims of a program: where each symbol's value comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from treadle.core.records import record
from treadle.core.shapes import ANY, Dim, SymbolicDim, dim_symbols, symbol_name
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Node, Region, Value
from treadle.ops.broadcasting import BROADCAST_TO, OF_SIZE, ONE_SIZE, SUM_TO
from treadle.ops.lowering import Rows
from treadle.runtime.roles import Role, kind_of, role_of


@record(frozen=True)
class SymbolSource:
    """Symbol `name` is the size of argument `argument` along `axis`."""

    name: str
    argument: int
    axis: int


def told_symbol(dim: Dim, known: AbstractSet[str]) -> tuple[str, Dim] | None:
    """The symbol that the value of a dim tells, and what to take from that value: ``("n", m + 1)``
    for ``n + m + 1`` where `m` is known. None where it tells no symbol, or more than one."""
    unknown = [] if dim == ANY else sorted(dim_symbols(dim) - known)
    if len(unknown) != 1:
        return None
    rest = dim - SymbolicDim.symbol(unknown[0])
    return (unknown[0], rest) if dim_symbols(rest) <= known else None


def symbol_sources(params: Sequence[Value]) -> list[SymbolSource]:
    """One source for every symbol that the arguments' shapes give."""
    found: dict[str, SymbolSource] = {}
    for number, param in enumerate(params):
        if isinstance(param.spec, TensorSpec):
            for axis, dim in enumerate(param.spec.dims):
                name = symbol_name(dim)
                if name is not None:
                    found.setdefault(name, SymbolSource(name, number, axis))
    return list(found.values())


def unknown_symbols(values: Sequence[Value], known: set[str]) -> set[str]:
    """Symbols in the values' specs that are not `known`; ``?`` for an unnamed dim."""
    missing: set[str] = set()
    for value in values:
        for dim in value.spec.dims:
            missing |= {"?"} if dim == ANY else set(dim_symbols(dim)) - known
    return missing


def broadcast_guards(region: Region) -> Iterator[tuple[Dim, Dim]]:
    """Pairs of dims that some op takes to be equal because its shape rule could not tell: the
    program must check them. NumPy stretches a dim of 1 or refuses; a kernel would read outside."""
    return iter(dict.fromkeys(pair for node in region.walk() for pair in guarded_dims(node)))


def checked_on_entry(region: Region, known: AbstractSet[str]) -> list[tuple[Dim, Dim]]:
    """The pairs of `broadcast_guards` that a program compares before it does anything."""
    return [p for p in broadcast_guards(region) if all(dim_symbols(d) <= known for d in p)]


def guarded_dims(node: Node) -> Iterator[tuple[Dim, Dim]]:
    """The pairs of `broadcast_guards` for one node."""
    if isinstance(node.op.lower, Rows):
        call = node.op.lower.call(
            [v.spec for v in node.inputs], [v.spec for v in node.outputs], node.attrs
        )
        yield from (pair for pair in (call.equal if call else ()) if pair[0] != pair[1])
    rule = node.op.sizes
    if rule is not None:
        specs, outs = [v.spec for v in node.inputs], [v.spec for v in node.outputs]
        yield from ((a, b) for a, b in rule(specs, outs, node.attrs) if a != b)
    elif node.outputs and _aligned(node):
        out = node.outputs[0].spec.dims
        for value in node.inputs:
            for a, b in zip(reversed(value.spec.dims), reversed(out), strict=False):
                if a != b and a != 1:
                    yield a, b


def may_broadcast(node: Node) -> bool:
    """Whether sizes of a node that differ may be right, as one of them is 1."""
    broadcasts = node.op in (BROADCAST_TO, OF_SIZE, ONE_SIZE, SUM_TO)
    return broadcasts or node.op.is_elementwise or isinstance(node.op.lower, Rows)


def _aligned(node: Node) -> bool:
    """Whether the inputs are broadcast to the output."""
    elementwise = kind_of(node) == "elementwise" or node.op is BROADCAST_TO
    return elementwise and role_of(node) in (Role.ARRAY, Role.VIEW)
