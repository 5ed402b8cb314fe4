"""From a group and the values that it stores to a kernel of the loop-nest IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from treadle.core.records import record
from treadle.core.shapes import Dim, SymbolicDim, product
from treadle.graph.ir import Value
from treadle.kernel.ir import (
    Affine,
    Axis,
    Buffer,
    Expr,
    Index,
    Iota,
    Kernel,
    Load,
    Reduce,
    Scan,
    Store,
    apply,
    postorder,
)  # fmt: skip
from treadle.kernel.rewrite import Rewrite
from treadle.runtime.bounds import Sizes, Unproved, clamped, unproved
from treadle.runtime.fusion.collapse import collapse
from treadle.runtime.fusion.group import Group


@record(frozen=True)
class BuiltKernel:
    """A kernel and the values that its buffers stand for.

    operands: for every buffer the value it is, and for stored ones which of the copies.
    """

    kernel: Kernel
    operands: tuple[tuple[Value, int], ...]
    extent: Dim | None = None  # the value of the symbol `n` of a flat kernel
    conditions: tuple[Unproved, ...] = ()  # under which it stays inside its buffers


@record(frozen=True)
class Part:
    """The part of an array that a value is stored into.

    adds: the value is added to the elements that are there.
    """

    array: Value
    index: tuple[Affine, ...]
    adds: bool


def build_kernel(
    group: Group,
    stores: Sequence[Value],
    copies: Mapping[Value, int],
    in_place: Mapping[Value, Value],
    blocked: bool = False,
    parts: Mapping[Value, Part] | None = None,
) -> BuiltKernel:
    """The kernel that computes `stores`.

    Args:
        copies: how many buffers each stored value is written to (1 where missing).
        in_place: stored value -> the loaded value whose memory it overwrites.
        blocked: make a blocked kernel.
        parts: the values that are stored into parts of arrays.
    """
    operands: dict[Buffer, tuple[Value, int]] = {}
    roots = [group.values[v] for v in (*(parts or ()), *stores)]
    order = postorder(roots)
    for expr in order:
        if isinstance(expr, Load):
            operands.setdefault(expr.buffer, (group.build.buffers[expr.buffer], 0))
    written: list[Store] = []
    for value, part in (parts or {}).items():
        buffer = group.build.buffer(part.array)
        operands.setdefault(buffer, (part.array, 0))
        new = group.values[value]
        if part.adds:
            new = apply("add", Load(buffer, part.index), new)
        written.append(Store(buffer, part.index, new))
    for value in stores:
        for copy in range(copies.get(value, 1)):
            buffer = _target(group, value, copy, in_place)
            operands.setdefault(buffer, (value, copy))
            written.append(Store(buffer, _affine(group.index[value]), group.values[value]))
    axes = _axes(group, written, order)
    kernel = Kernel(axes, tuple(operands), tuple(written), blocked=blocked)
    if blocked:
        return BuiltKernel(collapse(kernel, kept=1)[0], tuple(operands.values()))
    return _collapsed(kernel, tuple(operands.values()), group.limits.streamed)


def bounded(built: BuiltKernel, sizes: Sizes) -> BuiltKernel:
    """The kernel with the sizes that must be compared before it runs; indices under masks that are
    not proved to be inside are clamped."""
    conditions, masked = unproved(built.kernel, sizes)
    if masked:
        built = replace(built, kernel=clamped(built.kernel, masked))
        conditions, _ = unproved(built.kernel, sizes)
    return replace(built, conditions=tuple(conditions))


def _target(group: Group, value: Value, copy: int, in_place: Mapping[Value, Value]) -> Buffer:
    if copy == 0 and value in in_place:
        return group.build.buffer(in_place[value])
    name = group.build.names(value) + "'" * copy
    return Buffer(name, value.spec.dtype, value.spec.dims)


def _affine(index: Sequence[Index]) -> tuple[Affine, ...]:
    assert all(isinstance(i, Affine) for i in index)
    return tuple(index)  # type: ignore[arg-type]


def _axes(group: Group, stores: Sequence[Store], order: Sequence[Expr]) -> tuple[Axis, ...]:
    """The axes in use: the axes of the space in order, then the axes of inner reductions."""
    used: dict[Axis, None] = {}
    for s in stores:
        used.update(dict.fromkeys(sorted(s.axes, key=lambda a: a.name)))
    for expr in order:
        if isinstance(expr, Reduce):
            used.update(dict.fromkeys(expr.over))
    canonical = [a for a in group.axes if a in used]
    return (*canonical, *(a for a in used if a not in group.axes))


def _collapsed(
    kernel: Kernel, operands: tuple[tuple[Value, int], ...], streamed: int
) -> BuiltKernel:
    """The kernel with neighbouring axes joined; a flat one is given a symbolic extent, so that
    one compiled kernel serves every size.

    streamed: bytes that no cache holds.
    """
    kernel, _ = collapse(kernel)
    kernel = replace(kernel, streaming=_streams(kernel, streamed))
    if not _is_flat(kernel):
        return BuiltKernel(kernel, operands)
    (axis,) = kernel.axes
    if axis.extent == N:
        return BuiltKernel(kernel, operands)
    return BuiltKernel(with_extent(kernel, N), operands, axis.extent)


def _streams(kernel: Kernel, streamed: int) -> bool:
    """Whether the kernel moves more than caches hold, a good part of it into new memory."""
    new = [b for b in kernel.outputs if b not in kernel.inputs]
    total, written = (sum(map(_bytes, buffers)) for buffers in (kernel.buffers, new))
    return total >= streamed and 8 * written >= total


def _bytes(buffer: Buffer) -> int:
    size = product(buffer.shape)
    return size * buffer.dtype.size if isinstance(size, int) else 0


N = SymbolicDim.symbol("n")


def _is_flat(kernel: Kernel) -> bool:
    """One axis, along which every array lies, and nothing else that depends on sizes."""
    if len(kernel.axes) != 1:
        return False
    (axis,) = kernel.axes
    exprs = kernel.exprs
    if any(isinstance(e, Reduce | Scan | Iota) for e in exprs):
        return False
    if any(s.combine != "set" for s in kernel.stores):
        return False
    plain = ((Affine(((axis, 1),)),), ())
    places = [e.index for e in exprs if isinstance(e, Load)] + [s.index for s in kernel.stores]
    shapes = {b.shape for b in kernel.buffers}
    return shapes <= {(axis.extent,), ()} and all(p in plain for p in places)


def with_extent(kernel: Kernel, extent: Dim) -> Kernel:
    """A flat kernel for arrays of another size."""
    (axis,) = kernel.axes
    renamed = Axis(axis.name, extent)
    buffers = {b: Buffer(b.name, b.dtype, (extent,) if b.shape else ()) for b in kernel.buffers}
    index = {(Affine(((axis, 1),)),): (Affine(((renamed, 1),)),), (): ()}
    rewrite = Rewrite(lambda buffer, place: (buffers[buffer], index[place]))
    stores = tuple(map(rewrite.store, kernel.stores))
    return replace(
        kernel,
        axes=(renamed,),
        buffers=tuple(buffers[b] for b in kernel.buffers),
        stores=stores,
    )
