"""Products of matrices, of operands that lie in any strided way: calls of the driver's product."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from treadle.core.dtypes import DType
from treadle.core.inequalities import is_at_least
from treadle.core.records import record
from treadle.core.shapes import Dim, product, row_major
from treadle.graph.ir import Node
from treadle.runtime.fusion.strided import View
from treadle.runtime.gpu.driver import Driver
from treadle.runtime.gpu.finish import Ends, Finish
from treadle.runtime.gpu.product import Factor, Product
from treadle.runtime.gpu.routines.routine import Routine, address_of, size_of
from treadle.runtime.precision import precision
from treadle.runtime.reach import Reach, whole


@record(frozen=True)
class Level:
    """Batch dims along which one step leads from matrix to matrix of each operand."""

    count: Dim
    a: Dim
    b: Dim


@record(frozen=True)
class Matrices:
    """How the matrices of an operand are stored.

    Attributes:
        turned: whether the operand is their transpose.
        lead: elements from one stored row to the next.
    """

    turned: bool
    lead: Dim


class MatrixProduct(Routine):
    """A matmul of floats or complex numbers.

    Attributes:
        levels: of the batch. The longest is one call of the driver, which is made for each position
            along the others.
        order: which operands the factors are.
        offsets: elements in front of the first matrix of each factor.
    """

    name = "product"

    def __init__(
        self, dtype: DType, m: Dim, n: Dim, k: Dim, a: Matrices, b: Matrices,
        levels: Sequence[Level], order: tuple[int, int] = (0, 1), offsets: Sequence[Dim] = (0, 0),
    ) -> None:  # fmt: skip
        self.order, self.offsets = order, offsets
        self.dtype, self.n, self.k, self.a, self.b = dtype, n, k, a, b
        levels = list(levels)
        if levels and not a.turned and levels[-1].b == 0 and levels[-1].a == m * a.lead:
            m = m * levels.pop().count  # the batch is more rows of A
        self.m, self.levels = m, levels
        sizes = [level.count for level in levels]
        self.batch = max(range(len(levels)), key=lambda i: _known(sizes[i]), default=None)
        self.launches = product(s for i, s in enumerate(sizes) if i != self.batch)
        rows_a, rows_b = ((k, m) if a.turned else (m, k)), ((n, k) if b.turned else (k, n))
        factors = (
            _reach(rows_a, a.lead, [(v.count, v.a) for v in levels]),
            _reach(rows_b, b.lead, [(v.count, v.b) for v in levels]),
        )
        self.reaches = (*(factors[order.index(i)] for i in (0, 1)), whole((*sizes, m, n)))

    def before_recording(
        self, driver: Driver, symbols: Mapping[str, int], finish: Finish | None
    ) -> None:
        driver.open_products()

    def __call__(
        self, driver: Driver, inputs: Sequence[Any], outputs: Sequence[Any], workspace: int,
        symbols: Mapping[str, int],
    ) -> None:  # fmt: skip
        out = address_of(outputs[0])
        if size_of(self.k, symbols) == 0:
            size = size_of(product((*(v.count for v in self.levels), self.m, self.n)), symbols)
            if size:
                driver.clear(out, size * self.dtype.size)
            return
        for each in self._products(inputs, out, symbols):
            driver.product(each)

    def takes(self, finish: Finish) -> bool:
        return self.dtype.is_floating and len(self.levels) < 2

    def finished(
        self, driver: Driver, inputs: Sequence[Any], ends: Ends, workspace: int,
        symbols: Mapping[str, int],
    ) -> bool:  # fmt: skip
        if size_of(self.k, symbols) == 0:
            return False
        asked = self._products(inputs, ends.out, symbols)
        return all(driver.finished_product(each, ends) for each in asked)

    def _products(
        self, inputs: Sequence[Any], out: int, symbols: Mapping[str, int]
    ) -> Iterator[Product]:
        """What the driver is asked for, one for each position along the batch dims that are not
        one call."""
        m, n, k = (size_of(d, symbols) for d in (self.m, self.n, self.k))
        counts, unit = [size_of(level.count, symbols) for level in self.levels], self.dtype.size
        if 0 in (m, n, *counts):
            return
        steps = [(size_of(v.a, symbols), size_of(v.b, symbols)) for v in self.levels]
        made = [math.prod(counts[i + 1 :]) * m * n for i in range(len(counts))]
        own = self.batch
        batch = 1 if own is None else counts[own]
        step_a, step_b = (0, 0) if own is None else steps[own]
        lead_a, lead_b = (size_of(x.lead, symbols) for x in (self.a, self.b))
        first, second = (
            address_of(inputs[place]) + unit * size_of(offset, symbols)
            for place, offset in zip(self.order, self.offsets, strict=True)
        )
        outer = [i for i in range(len(counts)) if i != own]
        for place in itertools.product(*(range(counts[i]) for i in outer)):
            at = list(zip(place, outer, strict=True))
            a, b = (first + unit * sum(p * steps[i][0] for p, i in at),
                    second + unit * sum(p * steps[i][1] for p, i in at))  # fmt: skip
            target = out + unit * sum(p * made[i] for p, i in at)
            yield Product(
                self.dtype, batch, m, n, k, Factor(a, self.a.turned, lead_a, step_a),
                Factor(b, self.b.turned, lead_b, step_b), target,
                m * n if own is None else made[own], precision.tensor_float,
            )  # fmt: skip


def product_routine(node: Node, views: Sequence[View]) -> Routine | None:
    """The routine for a matmul; None where neither the rows nor the columns of an operand's
    matrices are contiguous."""
    operands = []
    for number, (value, flag) in enumerate(zip(node.inputs, _FLAGS, strict=True)):
        dims = value.spec.dims
        strides = views[number].strides if views else row_major(dims)
        matrices = _matrices(dims, strides, bool(node.attrs[flag]))
        if matrices is None:
            return None
        operands.append((dims, strides, matrices))
    (a_dims, a_strides, a), (b_dims, b_strides, b) = operands
    out = node.outputs[0].spec
    levels = _levels(out.dims[:-2], (a_dims, a_strides), (b_dims, b_strides))
    m, n = out.dims[-2:]
    first = a_dims[-2] if node.attrs["transpose_a"] else a_dims[-1]
    k = first if isinstance(first, int) else b_dims[-1 if node.attrs["transpose_b"] else -2]
    offsets = [v.offset for v in views] or (0, 0)
    return MatrixProduct(out.dtype, m, n, k, a, b, levels, offsets=offsets)


_FLAGS = ("transpose_a", "transpose_b")


def _matrices(dims: Sequence[Dim], strides: Sequence[Dim], turned: bool) -> Matrices | None:
    """How matrices are stored; None where no rows of them are contiguous, or rows overlap.

    Args:
        turned: whether the operand is the transpose of what the strides tell.
    """
    (rows, columns), (row, column) = dims[-2:], strides[-2:]
    if column == 1 or columns == 1:
        lead = columns if rows == 1 else row
        return Matrices(turned, lead) if is_at_least(lead, columns) else None
    if row == 1 or rows == 1:
        lead = rows if columns == 1 else column
        return Matrices(not turned, lead) if is_at_least(lead, rows) else None
    return None


def _levels(batch: Sequence[Dim], *operands: tuple[Sequence[Dim], Sequence[Dim]]) -> list[Level]:
    """The batch dims, joined where one step serves both operands."""
    levels: list[Level] = []
    for place in range(-len(batch), 0):
        extent = batch[place]
        if extent == 1:
            continue
        x, y = (_step(place - 2, *operand) for operand in operands)
        last = levels[-1] if levels else None
        if last is not None and (last.a, last.b) == (x * extent, y * extent):
            levels[-1] = Level(last.count * extent, x, y)
        else:
            levels.append(Level(extent, x, y))
    return levels


def _step(place: int, dims: Sequence[Dim], strides: Sequence[Dim]) -> Dim:
    """The step along a batch dim; 0 for one that the operand repeats."""
    return 0 if -place > len(dims) or dims[place] == 1 else strides[place]


def _reach(matrix: Sequence[Dim], lead: Dim, batch: Sequence[tuple[Dim, Dim]]) -> Reach:
    return Reach((*batch, (matrix[0], lead), (matrix[1], 1)))


def _known(dim: Dim) -> int:
    """A dim for comparisons; one that is not known counts as large."""
    return dim if isinstance(dim, int) else 1 << 62
