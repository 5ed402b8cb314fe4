"""The kernels of ops that select elements by a mask, which is counted and written in parts.

A part counts its true elements while it goes through the mask again, so it knows where each of them
goes. How many parts there are changes no result.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.records import record
from treadle.core.shapes import Dim
from treadle.kernel.ir import (
    Affine,
    Axis,
    Buffer,
    Expr,
    Kernel,
    Reduce,
    Scan,
    affine,
    apply,
    cast,
    const,
    load,
    store,
)
from treadle.ops.lowering import index_expr

PARTS = 64  # that threads share out, however many these are
FEW = 4096  # elements of a mask that are one part: fewer are not worth another thread


@record(frozen=True)
class Span:
    """Neighbouring parts of a mask, all of one size.

    Attributes:
        first: the element of the mask that they begin with.
        count, size: how many parts, and how many elements each has.
        number: the number of the first part.
    """

    first: Dim
    count: int
    size: Dim
    number: int

    def element(self, part: Axis, place: Axis) -> Affine:
        """The position in the mask of an element of a part."""
        return affine([(part, self.size), (place, 1)], self.first)

    def axes(self) -> tuple[Axis, Axis]:
        return Axis("part", self.count), Axis("place", self.size)


def spans_of(elements: Dim) -> list[Span]:
    """The parts of a mask: equal ones, and one for the elements that are left."""
    if isinstance(elements, int) and elements < FEW:
        return [Span(0, 1, elements, 0)]
    size = elements // PARTS
    return [Span(0, PARTS, size, 0), Span(size * PARTS, 1, elements - size * PARTS, PARTS)]


def counting(elements: Dim, span: Span, parts: int) -> Kernel:
    """From the mask to the count of each part of a span."""
    part, place = span.axes()
    mask = Buffer("mask", dtypes.bool, (elements,))
    counts = Buffer("counts", dtypes.int64, (parts,))
    true = Reduce("sum", (place,), cast(load(mask, span.element(part, place)), dtypes.int32))
    stored = store(counts, affine([(part, 1)], span.number), value=cast(true, dtypes.int64))
    return Kernel((part, place), (mask, counts), (stored,))


def adding(parts: int) -> Kernel:
    """From the counts to where the elements of each part end."""
    part = Axis("part", parts)
    counts, ends = (Buffer(name, dtypes.int64, (parts,)) for name in ("counts", "ends"))
    stored = store(ends, part, value=Scan("add", part, load(counts, part)))
    return Kernel((part,), (counts, ends), (stored,))


def totalling(parts: int) -> Kernel:
    """From the counts to their sum."""
    part = Axis("part", parts)
    counts, total = Buffer("counts", dtypes.int64, (parts,)), Buffer("total", dtypes.int64, ())
    stored = store(total, value=Reduce("sum", (part,), load(counts, part)))
    return Kernel((part,), (counts, total), (stored,))


def writing(
    elements: Dim, span: Span, parts: int, dtype: DType, row: Dim, found: Dim, positions: bool
) -> Kernel:
    """From mask, counts, ends and an array to the rows that the parts of a span select.

    Args:
        row: elements of a row.
        found: how many rows are selected in all.
        positions: their positions in the mask are written; there is no array.
    """
    part, place = span.axes()
    along = () if row == 1 else (Axis("along", row),)
    dims = tuple(a.extent for a in along)
    mask = Buffer("mask", dtypes.bool, (elements,))
    counts, ends = (Buffer(name, dtypes.int64, (parts,)) for name in ("counts", "ends"))
    source = Buffer("rows", dtype, (elements, *dims))
    target = Buffer("found", dtype, (found, *dims))
    at, number = span.element(part, place), affine([(part, 1)], span.number)
    true = load(mask, at)
    start = apply("sub", load(ends, number), load(counts, number))
    before = Scan("add", place, cast(true, dtypes.int64), exclusive=True)
    chosen = apply("select", true, apply("add", start, before), const(-1, dtypes.int64))
    value: Expr = index_expr(at) if positions else load(source, at, *along)
    stored = store(target, chosen, *along, value=value, unique=True)
    arrays = (target,) if positions else (source, target)
    return Kernel((part, place, *along), (mask, counts, ends, *arrays), (stored,))


def dividing(dims: Sequence[Dim], found: Dim) -> Kernel:
    """From positions in a mask as a vector to positions along its axes."""
    row = Axis("row", found)
    flat = Buffer("flat", dtypes.int64, (found,))
    target = Buffer("found", dtypes.int64, (found, len(dims)))
    rest: Expr = load(flat, row)
    columns: list[Expr] = []
    for dim in reversed(dims[1:]):
        size = index_expr(Affine((), dim))
        quotient = apply("floordiv", rest, size)
        columns.insert(0, apply("sub", rest, apply("mul", quotient, size)))
        rest = quotient
    stores = (store(target, row, k, value=value) for k, value in enumerate([rest, *columns]))
    return Kernel((row,), (flat, target), tuple(stores))
