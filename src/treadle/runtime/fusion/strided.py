"""Strided views: values whose elements are a pattern of another array's, read where they are.

A transpose, a slice or a split of a dim needs no copy where its reader takes strides, as the
routine of matrix products does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.core.records import record
from treadle.core.shapes import Dim, row_major
from treadle.graph.ir import Value
from treadle.kernel.ir import Affine, Load
from treadle.runtime.fusion.expressions import Expressions
from treadle.runtime.fusion.space import axes_for, index_at
from treadle.runtime.roles import is_alias


@record(frozen=True)
class View:
    """The elements of a value in the memory of `base`: at offset + sum(position * stride)."""

    base: Value
    offset: Dim
    strides: tuple[Dim, ...]

    def is_plain(self, value: Value) -> bool:
        """Whether the elements of `value`, whose view it is, follow one another from the start."""
        dims = value.spec.dims
        steps = zip(dims, self.strides, row_major(dims), strict=True)
        return self.offset == 0 and all(d == 1 or s == t for d, s, t in steps)


def view_of(value: Value, is_view: Callable[[Value], bool]) -> View:
    """A value as a strided view of an array that has memory: at worst of itself.

    Args:
        is_view: whether a value only moves elements of others.
    """
    node = value.node
    found = None
    if node is not None and is_alias(node) and node.inputs[0].spec.rank:
        inner = view_of(node.inputs[0], is_view)
        strides = _reshaped(node.inputs[0].spec.dims, inner.strides, value.spec.dims)
        found = None if strides is None else View(inner.base, inner.offset, strides)
    elif node is not None and is_view(value):
        found = _moved(value, is_view)
    return found or View(value, 0, row_major(value.spec.dims))


def _moved(value: Value, is_view: Callable[[Value], bool]) -> View | None:
    """A view through the index that its rule reads the operand at."""
    build = Expressions(lambda v, _: v is value, lambda _: ())
    dims = value.spec.dims
    load = build.element(value, index_at(dims, range(len(dims))))
    if not isinstance(load, Load) or load.valid is not None:
        return None
    if not all(isinstance(i, Affine) for i in load.index):
        return None
    index: list[Affine] = [i for i in load.index if isinstance(i, Affine)]
    inner = view_of(build.buffers[load.buffer], is_view)
    steps = list(zip(index, inner.strides, strict=True))
    strides: list[Dim] = []
    for axis in axes_for(dims):
        factors = [i.coefficient(axis) for i in index]
        if any(isinstance(f, int) and f < 0 for f in factors):
            return None
        strides.append(sum((i.coefficient(axis) * s for i, s in steps), 0))
    offset = sum((i.offset * s for i, s in steps), inner.offset)
    return View(inner.base, offset, tuple(strides))


def _reshaped(
    dims: Sequence[Dim], strides: Sequence[Dim], out: Sequence[Dim]
) -> tuple[Dim, ...] | None:
    """The strides of the same elements in row-major order under other dims; None where no
    strides give them."""
    ins = [(d, s) for d, s in zip(dims, strides, strict=True) if d != 1]
    places = [p for p, d in enumerate(out) if d != 1]
    found: list[Dim] = [0] * len(out)
    while ins and places:
        taken, given = _matching([d for d, _ in ins], [out[p] for p in places])
        if not taken:
            return None
        group = ins[:taken]
        if any(s != d * t for (_, s), (d, t) in zip(group, group[1:], strict=False)):
            return None
        step = group[-1][1]
        for place in reversed(places[:given]):
            found[place], step = step, step * out[place]
        ins, places = ins[taken:], places[given:]
    return None if ins or places else tuple(found)


def _matching(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[int, int]:
    """The fewest leading dims of a and b with one product; (0, 0) where there are none."""
    i, j, left, right = 1, 1, a[0], b[0]
    while left != right:
        if not (isinstance(left, int) and isinstance(right, int)):
            return 0, 0
        if left < right and i < len(a):
            left, i = left * a[i], i + 1
        elif right < left and j < len(b):
            right, j = right * b[j], j + 1
        else:
            return 0, 0
    return i, j
