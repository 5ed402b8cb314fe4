"""Index maps of reshaped arrays."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.shapes import Dim, SymbolicDim, product
from treadle.kernel.ir import Affine, Index
from treadle.ops.lowering import divide_index, scale_index, sum_index


def reshape_index(
    source: Sequence[Dim], target: Sequence[Dim], index: Sequence[Index]
) -> list[Index]:
    """The position in an array of `source` dims of an element at `index` in `target` dims.

    Runs of dims with equal products are mapped on their own, so that untouched dims keep their
    affine indices.
    """
    result: list[Index] = []
    for (s0, s1), (t0, t1) in _groups(source, target):
        flat = flatten_index(target[t0:t1], index[t0:t1])
        result += unflatten_index(source[s0:s1], flat)
    return result


def flatten_index(dims: Sequence[Dim], index: Sequence[Index]) -> Index:
    """The row-major position of `index`."""
    flat: Index = Affine((), 0)
    for dim, i in zip(dims, index, strict=True):
        flat = sum_index(scale_index(flat, dim), i)
    return flat


def unflatten_index(dims: Sequence[Dim], flat: Index) -> list[Index]:
    """The index at a row-major position."""
    result: list[Index] = [Affine((), 0)] * len(dims)
    long = [p for p, d in enumerate(dims) if d != 1]
    for position in reversed(long[1:]):
        flat, result[position] = divide_index(flat, dims[position])
    if long:
        result[long[0]] = flat
    return result


Span = tuple[int, int]


def _groups(source: Sequence[Dim], target: Sequence[Dim]) -> list[tuple[Span, Span]]:
    """Consecutive runs of dims of both shapes with equal products."""
    groups: list[tuple[Span, Span]] = []
    s = t = 0
    while s < len(source) or t < len(target):
        s1, t1 = min(s + 1, len(source)), min(t + 1, len(target))
        while (a := product(source[s:s1])) != (b := product(target[t:t1])):
            grow_source = _smaller(a, b) if t1 < len(target) else True
            if grow_source and s1 < len(source):
                s1 += 1
            elif t1 < len(target):
                t1 += 1
            else:
                break  # no common split is provable: the rest is one group
        groups.append(((s, s1), (t, t1)))
        s, t = s1, t1
    return groups


def _smaller(a: Dim, b: Dim) -> bool:
    """Whether a * something may be b."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int)
    return not isinstance(b % a, SymbolicDim)
