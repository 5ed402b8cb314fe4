"""Replay: a graph's nodes run again, one by one, as calls of ops in the current trace.

Tapes see every op, shapes are inferred anew, and symbolic dims of the graph become the dims that
the given inputs have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from treadle.core.frames import called_from
from treadle.core.origin import Origin, attributed_to
from treadle.core.shapes import (
    OPEN_SYMBOLS,
    Dim,
    SymbolicDim,
    fresh_symbol,
    substitute,
    symbol_name,
)
from treadle.core.spec import Spec
from treadle.core.strategies import tracing_for
from treadle.core.tensor import Tensor
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.ops.dims import resolve
from treadle.ops.registry import run, run_with_regions

Dims = dict[str, Dim]


def replay(region: Region, inputs: Sequence[Any], caller: Origin | None = None) -> list[Tensor]:
    """The results of `region` for the given parameters, computed in the current trace.

    Args:
        region: a graph, or a branch or body.
        inputs: a tensor for each parameter, and a Variable or a handle for each resource.
        caller: the place in the user's program that calls the graph, if any does.
    """
    values: dict[Value, Any] = {}
    dims: Dims = {}  # symbol of the region -> the dim that replaces it
    known: set[str] = set()  # the symbols that stand outside inner regions
    devices = region.devices if isinstance(region, Graph) else ()
    for param, given in zip(region.params, inputs, strict=True):
        values[param] = given
        learn_dims(param.spec, given.spec, dims)
        known |= param.spec.symbols()
    for node in region.nodes:
        operands = [values[v] for v in node.inputs]
        origin = called_from(caller, node.origin)
        with attributed_to(origin), tracing_for(node.replica, devices):
            outputs = _run_again(node, operands, dims, known, caller)
            if "gives_dim" in node.op.tags:
                _learn_known_dim(node, operands[0], dims)
        for value, tensor in zip(node.outputs, outputs, strict=True):
            values[value] = tensor
            learn_dims(value.spec, tensor.spec, dims)
            known |= value.spec.symbols()
    return [values[v] for v in region.results]


def _run_again(
    node: Node, operands: list[Any], dims: Dims, known: set[str], caller: Origin | None
) -> Sequence[Tensor]:
    if node.regions:
        # A loop's results show its inner symbols outside: two replays must not share them.
        renamed = dims | {s: fresh_symbol() for s in inner_symbols(node.regions) - known}
        regions = [copy_region(r, renamed, caller=caller) for r in node.regions]
        return run_with_regions(node.op, operands, regions, **node.attrs)
    attrs = {name: substitute_dims(value, dims) for name, value in node.attrs.items()}
    outputs = run(node.op, *operands, **attrs)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _learn_known_dim(node: Node, number: Tensor, dims: Dims) -> None:
    """Note the dim that a number gives, where the call's arguments tell it: `run` sees their specs
    only."""
    found, name = resolve(number), symbol_name(node.outputs[0].spec.dims[0])
    dim = None if found is None else found.item()
    if name is None or dim is None:
        return
    least, most = node.attrs["least"], substitute_dims(node.attrs["most"], dims)
    if isinstance(dim, int):
        fits = dim >= least and (most is None or (isinstance(most, int) and dim <= most))
    else:
        fits = least == 0 and most is None
    if fits:
        dims.setdefault(name, dim)


def inner_symbols(regions: Iterable[Region]) -> set[str]:
    """The symbols in the specs of all values inside the regions, but for open dims."""
    found: set[str] = set()
    for region in regions:
        found.update(*(p.spec.symbols() for p in region.params))
        for node in region.nodes:
            found.update(*(v.spec.symbols() for v in node.outputs))
            found |= inner_symbols(node.regions)
    return found - OPEN_SYMBOLS


def learn_dims(old: Spec, new: Spec, dims: Dims) -> None:
    """Note the dims that replace symbols of `old` in a value whose spec is now `new`."""
    for before, after in zip(old.dims, new.dims, strict=False):
        name = symbol_name(before)
        if name is not None and before != after:
            dims.setdefault(name, after)


def substitute_dims(attr: Any, dims: Mapping[str, Dim]) -> Any:
    """An attribute with the symbols of `dims` replaced, inside tuples, lists, dicts and specs."""
    if not dims:
        return attr
    if isinstance(attr, SymbolicDim):
        return substitute(attr, dims)
    if isinstance(attr, tuple | list):
        return type(attr)(substitute_dims(a, dims) for a in attr)
    if isinstance(attr, dict):
        return {k: substitute_dims(v, dims) for k, v in attr.items()}
    if isinstance(attr, Spec):
        return substitute_spec(attr, dims)
    return attr


def substitute_spec(spec: Spec, dims: Mapping[str, Dim]) -> Spec:
    """`spec` with the symbols of `dims` replaced."""
    if not dims or not spec.symbols():
        return spec
    return spec.with_dims(substitute(d, dims) for d in spec.dims)  # type: ignore[no-any-return]


def copy_region(
    region: Region,
    dims: Mapping[str, Dim],
    mapping: dict[Value, Value] | None = None,
    caller: Origin | None = None,
) -> Region:
    """A deep copy of a region with symbols replaced; regions use no outer values."""
    mapping = {} if mapping is None else mapping
    copy = Region()
    for param in region.params:
        mapping[param] = copy.add_param(substitute_spec(param.spec, dims), param.name)
    copy_nodes(region.nodes, copy, mapping, dims, caller)
    copy.results = [mapping[v] for v in region.results]
    return copy


def copy_nodes(
    nodes: Iterable[Node],
    into: Region,
    mapping: dict[Value, Value],
    dims: Mapping[str, Dim] | None = None,
    caller: Origin | None = None,
) -> None:
    """Append copies of `nodes`, which read mapped values, to `into`."""
    dims = dims or {}
    for node in nodes:
        copy = Node(
            node.op,
            [mapping[v] for v in node.inputs],
            {name: substitute_dims(value, dims) for name, value in node.attrs.items()},
            [substitute_spec(v.spec, dims) for v in node.outputs],
            [copy_region(r, dims, caller=caller) for r in node.regions],
            called_from(caller, node.origin),
            node.replica,
        )
        mapping.update(zip(node.outputs, copy.outputs, strict=True))
        into.append(copy)
