"""Symbolic dims of a program: where each symbol's value comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from treadle.core.shapes import ANY, Dim, SymbolicDim, compound, dim_symbols, product
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Node, Region, Value
from treadle.ops.lowering import Rows


@dataclass(frozen=True)
class SymbolSource:
    """Symbol `name` is the size of argument `argument` along `axis`."""

    name: str
    argument: int
    axis: int


def plain_symbol(dim: Dim) -> str | None:
    """The name of a dim that is a symbol alone."""
    if isinstance(dim, SymbolicDim) and dim != ANY and len(dim.terms) == 1:
        mono, coefficient = dim.terms[0]
        if coefficient == 1 and len(mono) == 1 and isinstance(mono[0], str):
            return mono[0]
    return None


def symbol_sources(params: Sequence[Value]) -> list[SymbolSource]:
    """One source for every symbol that the arguments' shapes give."""
    found: dict[str, SymbolSource] = {}
    for number, param in enumerate(params):
        if isinstance(param.spec, TensorSpec):
            for axis, dim in enumerate(param.spec.dims):
                name = plain_symbol(dim)
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


def guarded_dims(node: Node) -> Iterator[tuple[Dim, Dim]]:
    """The pairs of `broadcast_guards` for one node."""
    rule = _SIZE_RULES.get(node.op.name)
    if not node.outputs and rule is None:
        return
    if isinstance(node.op.lower, Rows):
        call = node.op.lower.call(
            [v.spec for v in node.inputs], [v.spec for v in node.outputs], node.attrs
        )
        yield from (pair for pair in (call.equal if call else ()) if pair[0] != pair[1])
        return
    if rule is not None:
        yield from ((a, b) for a, b in rule(node) if a != b)
    elif _aligned(node):
        out = node.outputs[0].spec.dims
        for value in node.inputs:
            for a, b in zip(reversed(value.spec.dims), reversed(out), strict=False):
                if a != b and a != 1:
                    yield a, b


Pairs = Iterator[tuple[Dim, Dim]]


def _same_count(node: Node) -> Pairs:
    yield product(node.inputs[0].spec.dims), product(node.outputs[0].spec.dims)


def _same_dims(node: Node) -> Pairs:
    yield from zip(node.inputs[0].spec.dims, node.outputs[0].spec.dims, strict=True)


def _stacked(node: Node) -> Pairs:
    """The parts of a stack have its dims without the axis that is new."""
    axis, dims = node.attrs["axis"], node.outputs[0].spec.dims
    for value in node.inputs:
        yield from zip(value.spec.dims, (*dims[:axis], *dims[axis + 1 :]), strict=True)


def _joined(node: Node) -> Pairs:
    """The parts of a concat have its dims, but for the axis along which they are joined."""
    for value in node.inputs:
        pairs = zip(value.spec.dims, node.outputs[0].spec.dims, strict=True)
        yield from (pair for i, pair in enumerate(pairs) if i != node.attrs["axis"])


def _sliced(node: Node) -> Pairs:
    """A slice of a known size lies inside; ``a <= b`` is the pair ``max(a, b), b``."""
    begins, strides = node.attrs["begin"], node.attrs["strides"]
    sizes = zip(node.outputs[0].spec.dims, node.inputs[0].spec.dims, strict=True)
    for (size, dim), begin, step in zip(sizes, begins, strides, strict=True):
        if isinstance(size, int) and size > 0:
            last = begin + (size - 1) * step
            yield compound("max", last + 1, dim), dim
            yield compound("max", 0, begin if step > 0 else last), begin if step > 0 else last
        elif isinstance(size, SymbolicDim) and any(c < 0 for _, c in size.terms):
            yield compound("max", 0, size), size


def _labelled(node: Node) -> Pairs:
    """Labels have the dims of the logits: all of them, or all but the classes."""
    logits, labels = (v.spec.dims for v in node.inputs[:2])
    yield from zip(labels, logits, strict=False)


def _segmented(node: Node) -> Pairs:
    """Every row of the data has a segment."""
    data, ids = (v.spec.dims for v in node.inputs)
    yield from zip(ids, data, strict=False)


def _scattered(node: Node) -> Pairs:
    """There is an update for every position, of the dims of what is there."""
    *_, positions, updates = (v.spec.dims for v in node.inputs)
    target, depth = node.outputs[0].spec.dims, positions[-1]
    if isinstance(depth, int):
        yield from zip(updates, (*positions[:-1], *target[depth:]), strict=False)


def _gathered(node: Node) -> Pairs:
    """The batches of what is gathered from are those of the positions."""
    params, positions = (v.spec.dims for v in node.inputs)
    count = node.attrs["batch_dims"]
    yield from zip(params[:count], positions[:count], strict=True)


def _assigned(node: Node) -> Pairs:
    """A variable keeps its size, unless it may change it."""
    handle, value = (v.spec.dims for v in node.inputs)
    yield from (pair for pair in zip(value, handle, strict=False) if ANY not in pair)


# Which dims the lowering rules of these ops take to be equal.
_SIZE_RULES: dict[str, Callable[[Node], Pairs]] = {
    "reshape": _same_count,
    "ensure_shape": _same_dims,
    "stack": _stacked,
    "concat": _joined,
    "strided_slice": _sliced,
    "sparse_softmax_cross_entropy": _labelled,
    "sparse_softmax_cross_entropy_grad": _labelled,
    "softmax_cross_entropy": _labelled,
    "softmax_cross_entropy_grad": _labelled,
    "unsorted_segment_sum": _segmented,
    "tensor_scatter_nd_update": _scattered,
    "tensor_scatter_nd_add": _scattered,
    "scatter_nd": _scattered,
    "gather": _gathered,
    "assign_variable": _assigned,
}


def _aligned(node: Node) -> bool:
    """Whether the inputs are broadcast to the output."""
    from treadle.runtime.fusion.roles import Role, kind_of, role_of

    elementwise = kind_of(node) == "elementwise" or node.op.name == "broadcast_to"
    drawn = node.op.name.startswith("random_")
    return elementwise and not drawn and role_of(node) in (Role.ARRAY, Role.VIEW)
