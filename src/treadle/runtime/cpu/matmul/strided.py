"""Products of strided operands: leading dims, steps between matrices, and which way they lie."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.shapes import Dim
from treadle.graph.ir import Node
from treadle.runtime.cpu.library_text import ELEMENT_BYTES
from treadle.runtime.cpu.matmul.tiling import Product
from treadle.runtime.cpu.target import host
from treadle.runtime.fusion.strided import View

Level = tuple[Dim, Dim, Dim]  # how many matrices, and the steps of A and B


def strided_product(node: Node, element: str, views: Sequence[View]) -> Product | None:
    """The product of a matmul whose operands are views; None where the routine cannot read them:
    neither their rows nor their columns are contiguous, or the batch has too many strides; or where
    it is better to copy A."""
    (a, ta), (b, tb) = (
        (v.spec.dims, int(node.attrs[flag]))
        for v, flag in zip(node.inputs, ("transpose_a", "transpose_b"), strict=True)
    )
    out = node.outputs[0].spec.dims
    left, right = _matrix(a, views[0].strides, ta), _matrix(b, views[1].strides, tb)
    if left is None or right is None:
        return None
    m, n = out[-2:]
    levels: list[Level] = _levels(out[:-2], (a, views[0].strides), (b, views[1].strides))
    if levels and left[0] == 0 and levels[-1][2] == 0 and levels[-1][1] == m * left[1]:
        m = m * levels.pop()[0]  # the batch is more rows of A
    if len(levels) > 2 or (levels and left[0] == 0 and _copies(m, n, b, element, levels)):
        return None
    outer, inner = ([(1, 0, 0)] * 2 + levels)[-2:]
    return Product(
        element, outer[0] * inner[0], m, n, inner_dim(node), left[0], right[0], inner[1], inner[2],
        lda=left[1], ldb=right[1], inner=inner[0], outer_a=outer[1], outer_b=outer[2],
    )  # fmt: skip


def _copies(m: Dim, n: Dim, b: Sequence[Dim], element: str, levels: Sequence[Level]) -> bool:
    """Whether a copy of A pays that makes one product of a batch whose products share B: what each
    of them does with B beside multiplying, which is to copy it or to read it from the second cache,
    is more than the copy of its few rows of A. An element of either is moved as often."""
    size = b[-2] * b[-1] * ELEMENT_BYTES[element]
    if not (isinstance(m, int) and isinstance(n, int) and isinstance(size, int)):
        return False
    shared = all(step == 0 for _, _, step in levels)
    return shared and 2 * m <= n and size > host().tuning.l1.size


def inner_dim(node: Node) -> Dim:
    """The size of the axis that a matmul adds over. The operands tell it both: a program compares
    the two where they are not known to be equal."""
    a, b = (v.spec.dims for v in node.inputs)
    first = a[-2] if node.attrs["transpose_a"] else a[-1]
    return first if isinstance(first, int) else b[-1 if node.attrs["transpose_b"] else -2]


def _matrix(dims: Sequence[Dim], strides: Sequence[Dim], turned: int) -> tuple[int, Dim] | None:
    """Whether the matrix is stored transposed, and the elements from one stored row to the next;
    `turned`: whether its transpose is the operand."""
    (rows, columns), (row, column) = dims[-2:], strides[-2:]
    if column == 1 or columns == 1:
        return turned, row
    return (1 - turned, column) if row == 1 or rows == 1 else None


def _levels(batch: Sequence[Dim], *operands: tuple[Sequence[Dim], Sequence[Dim]]) -> list[Level]:
    """The batch dims, joined where one step serves both."""
    levels: list[Level] = []
    for place in range(-len(batch), 0):
        extent = batch[place]
        if extent == 1:
            continue
        x, y = (_step(place - 2, *operand) for operand in operands)
        if levels and levels[-1][1:] == (x * extent, y * extent):
            levels[-1] = (levels[-1][0] * extent, x, y)
        else:
            levels.append((extent, x, y))
    return levels


def _step(place: int, dims: Sequence[Dim], strides: Sequence[Dim]) -> Dim:
    """The step along a batch dim; 0 for one that the operand repeats."""
    return 0 if -place > len(dims) or dims[place] == 1 else strides[place]
