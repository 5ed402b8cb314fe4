"""Proofs that kernels stay inside their buffers.

The position along an axis is a symbol between 0 and the axis's extent. An affine index is then a
polynomial, which is compared with the extent of the buffer's axis exactly; pairs of sizes that the
program has compared and the comparisons in a load's mask narrow it. Computed
indices are clamped by the code of a kernel and only need an element to be there.

An access that is not proved becomes a condition on sizes, which the program compares before it runs
the kernel; under a mask, where positions matter that no size tells, the index is clamped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from treadle.core import dtypes
from treadle.core.inequalities import implied_facts, is_at_least
from treadle.core.ranges import Ranges
from treadle.core.records import record
from treadle.core.shapes import (
    Dim,
    SymbolicDim,
    compound,
    dim_symbols,
    product,
    substitute,
    symbol_name,
)  # fmt: skip
from treadle.kernel.ir import (
    Affine,
    Apply,
    Axis,
    Buffer,
    Const,
    Expr,
    Extent,
    Index,
    Iota,
    Kernel,
    Load,
    Store,
    apply,
    const,
    postorder,
)  # fmt: skip
from treadle.kernel.rewrite import rebuilt
from treadle.ops.lowering import dim_expr, index_expr


class BoundsError(Exception):
    """An access that is neither proved to stay inside its buffer nor can be checked."""


@record
class Sizes:
    """The pairs of dims that a program has found equal at some point."""

    pairs: list[tuple[Dim, Dim]] = field(default_factory=list)
    _equal: dict[str, Dim] = field(default_factory=dict)
    _facts: dict[Dim, None] = field(default_factory=dict)
    _ranges: Ranges = field(default_factory=Ranges)

    def add(self, pairs: Iterable[tuple[Dim, Dim]]) -> None:
        for pair in pairs:
            if pair not in self.pairs:
                self.pairs.append(pair)
                self._add(*pair)

    def at_least(self, dim: Dim, least: Dim) -> None:
        """Note that a dim is not less than another."""
        self._facts[dim - least] = None

    def add_ranges(self, ranges: Ranges) -> None:
        """Note the limits of symbols that get their value while the program runs."""
        self._ranges = ranges
        for name, (least, most) in ranges.of.items():
            symbol = SymbolicDim.symbol(name)
            self.at_least(symbol, least)
            if most is not None:
                self.at_least(most, symbol)

    def copy(self) -> Sizes:
        return Sizes(list(self.pairs), dict(self._equal), dict(self._facts), self._ranges)

    def _add(self, a: Dim, b: Dim) -> None:
        a, b = self.canonical(a), self.canonical(b)
        for one, other in ((a, b), (b, a)):
            name = symbol_name(one)
            if name is not None and name not in dim_symbols(other):
                new = {name: other}
                self._equal = {k: substitute(d, new) for k, d in self._equal.items()} | new
                return

    def canonical(self, dim: Dim) -> Dim:
        """A dim with one name for sizes that are equal."""
        return substitute(dim, self._equal) if self._equal else dim

    def is_zero(self, excess: Dim) -> bool:
        """Whether the program has found that an excess (`Unproved`) is 0, or limits say so."""
        known = excess == 0 or (excess, 0) in self.pairs
        return known or self._ranges.are_equal(excess, 0)

    def facts(self, dims: Sequence[Dim], some: Sequence[Dim]) -> list[Dim]:
        """Dims that are at least 0, of those that say something of the symbols of `dims`.

        some: dims that are at least 1.
        """
        names = frozenset().union(*(dim_symbols(d) for d in dims))
        pairs = [(self.canonical(a), self.canonical(b)) for a, b in self.pairs]
        limits = [self.canonical(f) for f in self._facts]
        names = _related(names, limits)
        found = [*limits, *implied_facts(pairs, some)]
        return [f for f in dict.fromkeys(found) if dim_symbols(f) & names]


def _related(names: frozenset[str], limits: Sequence[Dim]) -> frozenset[str]:
    """Symbols and those that limit them: j < i and i < n bound j."""
    while True:
        more = names.union(*(f for f in map(dim_symbols, limits) if f & names))
        if more == names:
            return names
        names = more


@record(frozen=True)
class Unproved:
    """An access to a buffer: `excess`, which is 0 where it stays inside, over sizes alone."""

    buffer: str
    excess: Dim


def unproved(kernel: Kernel, sizes: Sizes) -> tuple[list[Unproved], list[Load]]:
    """The accesses of a kernel that are not proved: as conditions on sizes, and as masked loads.

    Raises:
        BoundsError: something can be neither proved nor written as a condition on sizes.
    """
    found: list[Unproved] = []
    masked: list[Load] = []
    everywhere = frozenset.intersection(*(s.axes for s in kernel.stores))
    exprs = kernel.exprs
    accesses: list[Load | Store] = [e for e in exprs if isinstance(e, Load)]
    for access in [*accesses, *kernel.stores]:
        open_axes = list(_open_axes(access, sizes, everywhere))
        if open_axes and isinstance(access, Load) and access.valid is not None:
            masked.append(access)
            continue
        axes = access.axes | everywhere
        found += (_condition(access, number, axes) for number in open_axes)
    return list(dict.fromkeys(found)), masked


def outside(expr: Expr, sizes: Sizes, checked: Collection[Buffer] = ()) -> list[Unproved]:
    """The conditions on sizes for the elements that a rank-0 expression reads.

    checked: the buffers whose computed positions are not clamped: a step before has found that they
        are inside, or loops count them.
    """
    found: list[Unproved] = []
    for e in postorder([expr]):
        if isinstance(e, Load):
            open_axes = _open_axes(e, sizes, frozenset())
            if e.buffer in checked:
                open_axes = (n for n in open_axes if isinstance(e.index[n], Affine))
            found += (_condition(e, number, frozenset()) for number in open_axes)
    return found


def stored_outside(store: Store, sizes: Sizes) -> list[Unproved]:
    """The conditions on sizes for a store alone."""
    open_axes = _open_axes(store, sizes, frozenset())
    return [_condition(store, number, store.axes) for number in open_axes]


def clamped(kernel: Kernel, loads: Sequence[Load]) -> Kernel:
    """The kernel with the indices of some loads computed, which its code keeps inside."""
    new: dict[Expr, Expr] = {}
    for expr in kernel.exprs:
        new[expr] = _rebuilt(expr, new, expr in loads)

    def place(index: Index) -> Index:
        return new[index] if isinstance(index, Expr) else index

    stores = (
        replace(s, index=tuple(map(place, s.index)), value=new[s.value]) for s in kernel.stores
    )
    return replace(kernel, stores=tuple(stores))


def _rebuilt(expr: Expr, new: Mapping[Expr, Expr], clamp: bool) -> Expr:
    made = rebuilt(expr, new.__getitem__)
    if not clamp or not isinstance(made, Load):
        return made
    valid = made.valid
    assert valid is not None
    for dim in made.buffer.shape:
        if not is_at_least(dim, 1):  # there must be an element to clamp to
            some = apply("gt", dim_expr(dim), const(0, dtypes.int64))
            valid = apply("and", valid, some)
    return replace(made, index=tuple(map(index_expr, made.index)), valid=valid)


# -- one access ------------------------------------------------------------------------------------


def _open_axes(access: Load | Store, sizes: Sizes, everywhere: frozenset[Axis]) -> Iterator[int]:
    """The axes of the buffer along which an access is not proved to stay inside."""
    shape = [sizes.canonical(d) for d in access.buffer.shape]
    axes = access.axes | everywhere
    mask = access.valid if isinstance(access, Load) else None
    if mask is not None and any(isinstance(f, int) and f < 0 for f in _mask_facts(mask)):
        return  # nothing is read
    for number, (index, dim) in enumerate(zip(access.index, shape, strict=True)):
        if isinstance(access, Store) and isinstance(index, Expr):
            continue  # nothing is stored outside
        if not _is_whole_axis(index, dim, sizes) and not _is_inside(
            access, index, dim, axes, sizes
        ):
            yield number


def _is_whole_axis(index: Index, dim: Dim, sizes: Sizes) -> bool:
    """Whether an index is an axis of the extent of the buffer's: nearly all are."""
    if not isinstance(index, Affine) or index.offset != 0 or len(index.terms) != 1:
        return False
    axis, coefficient = index.terms[0]
    return coefficient == 1 and sizes.canonical(axis.extent) == dim


def _is_inside(
    access: Load | Store, index: Index, dim: Dim, axes: frozenset[Axis], sizes: Sizes
) -> bool:
    extents = [sizes.canonical(a.extent) for a in _in_order(axes)]
    if isinstance(index, Expr):  # it is clamped: an element must be there
        if is_at_least(dim, 1, [e - 1 for e in extents]):
            return True
        masks: list[Dim] = []
        if isinstance(access, Load) and access.valid is not None:
            masks = [sizes.canonical(f) for f in _mask_facts(access.valid)]
        known = sizes.facts([dim], extents)
        return is_at_least(dim, 1, [m for m in masks if dim_symbols(m) & dim_symbols(dim)]) or (
            is_at_least(dim, 1, [*(e - 1 for e in extents), *known])
        )
    position = sizes.canonical(_polynomial(index))
    claims = [position, dim - 1 - position]
    for facts in _more_and_more(access, index, dim, axes, sizes):
        claims = [c for c in claims if not is_at_least(c, 0, facts)]
        if not claims:
            return True
    return False


def _more_and_more(
    access: Load | Store, index: Affine, dim: Dim, axes: frozenset[Axis], sizes: Sizes
) -> Iterator[list[Dim]]:
    """Axes and dims that a proof that an index is inside may need, the simplest set first."""
    extents = {a: sizes.canonical(a.extent) for a in _in_order(axes)}
    own = [a for a, _ in index.terms]
    if isinstance(access, Load) and access.valid is not None:
        masks = [sizes.canonical(f) for f in _mask_facts(access.valid)]
        names = {s for a in own for s in dim_symbols(_position(a))} | dim_symbols(dim)
        masks = [m for m in masks if dim_symbols(m) & names]
        yield masks
    else:
        masks = []
    facts = [extents[a] - 1 - _position(a) for a in own]
    facts += [extents[a] - 1 for a in own if not isinstance(extents[a], int)]
    yield facts
    if masks:
        yield [*facts, *masks]
    named = [dim, index.offset, *(extents[a] for a in own)]
    known = sizes.facts([sizes.canonical(d) for d in named], list(extents.values()))
    if known:
        yield [*facts, *known]
        yield [*facts, *masks, *known]


def _in_order(axes: frozenset[Axis]) -> list[Axis]:
    """Axes in an order that is the same in every process: proofs go by it."""
    return sorted(axes, key=lambda axis: axis.name)


def _position(axis: Axis) -> Dim:
    """The position along an axis as a symbol, which no dim has."""
    return SymbolicDim.symbol(f"\0{axis.name}")


def _polynomial(index: Affine) -> Dim:
    total = index.offset
    for axis, coefficient in index.terms:
        total = total + coefficient * _position(axis)
    return total


def _condition(access: Load | Store, number: int, axes: frozenset[Axis]) -> Unproved:
    """By how much an access leaves its buffer, 0 where one of its axes is empty.

    The least and the greatest value of an affine index are attained: where this is not 0 the kernel
    would leave the buffer.
    """
    index, dim = access.index[number], access.buffer.shape[number]
    some: Dim = 1
    for extent in dict.fromkeys(a.extent for a in _in_order(axes)):
        if not isinstance(extent, int):
            some = some * compound("min", extent, 1)
    if any(a.extent == 0 for a in axes):
        some = 0
    if isinstance(index, Expr):
        return _unproved(access, compound("max", 1 - dim, 0) * some)
    low = high = index.offset
    for axis, coefficient in index.terms:
        most = coefficient * (axis.extent - 1)
        if is_at_least(coefficient, 0):
            high = high + most
        elif is_at_least(0, coefficient):
            low = low + most
        else:  # only the running program knows in which direction
            low, high = low + compound("min", most, 0), high + compound("max", most, 0)
    beyond = compound("max", high + 1 - dim, 0) + compound("max", -low, 0)
    return _unproved(access, beyond * some)


def _unproved(access: Load | Store, excess: Dim) -> Unproved:
    if any(s.startswith("\0") or s == "?" for s in dim_symbols(excess)):
        raise BoundsError(f"no condition on sizes tells whether {access} stays in its buffer")
    return Unproved(access.buffer.name, excess)


# -- masks -----------------------------------------------------------------------------------------


def _mask_facts(valid: Expr) -> Iterator[Dim]:
    """Dims that are at least 0 where a mask is true: its comparisons of positions and sizes."""
    if not isinstance(valid, Apply):
        return
    if valid.fn == "and":
        for part in valid.args:
            yield from _mask_facts(part)
        return
    if valid.fn not in ("ge", "gt", "le", "lt", "eq"):
        return
    a, b = (_dim_of(e) for e in valid.args)
    if a is None or b is None:
        return
    if valid.fn in ("ge", "gt", "eq"):
        yield a - b - (valid.fn == "gt")
    if valid.fn in ("le", "lt", "eq"):
        yield b - a - (valid.fn == "lt")


def _dim_of(expr: Expr) -> Dim | None:
    """An integer expression of positions and sizes as a dim; None for one of data."""
    match expr:
        case Const() if expr.dtype.is_integer:
            return int(expr.value)
        case Iota():
            return _position(expr.axis)
        case Extent():
            return expr.dim
        case Apply() if expr.fn in _ARITHMETIC and expr.dtype.is_integer:
            parts = [_dim_of(a) for a in expr.args]
            if any(p is None for p in parts) or not all(a.dtype.is_integer for a in expr.args):
                return None
            return _arithmetic(expr.fn, [p for p in parts if p is not None])
    return None


_ARITHMETIC = frozenset({"add", "sub", "mul", "neg", "min", "max", "floordiv", "mod", "cast"})


def _arithmetic(fn: str, parts: Sequence[Dim]) -> Dim:
    match fn, parts:
        case "add", [a, b]:
            return a + b
        case "sub", [a, b]:
            return a - b
        case "mul", [a, b]:
            return a * b
        case "neg", [a]:
            return -a
        case "cast", [a]:
            return a
    return compound(fn, *parts)


def covers(dims: Sequence[Dim], elements: Dim, sizes: Sizes) -> bool:
    """Whether an array of `dims` has so many elements."""
    given, wanted = sizes.canonical(product(dims)), sizes.canonical(elements)
    return is_at_least(given, wanted) or is_at_least(
        given, wanted, sizes.facts([given, wanted], ())
    )
