"""Conditions on sizes that a shape rule cannot judge while they are symbols.

The record of an op (`Op.sizes`) gives pairs of dims that must be equal where the op runs, for its
kernels and routines read no further than those sizes allow. A compiled program compares the pairs
before it touches memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from treadle.core.inequalities import is_at_least
from treadle.core.shapes import Dim, compound, is_non_negative, product

Pair: TypeAlias = tuple[Dim, Dim]
Pairs: TypeAlias = Iterator[Pair]
# Of the specs of the inputs, the specs of the outputs, and the attributes.
Sizes: TypeAlias = "Callable[[Sequence[Any], Sequence[Any], Mapping[str, Any]], Pairs]"


def may_be(dim: Dim, other: Dim) -> bool:
    """Whether two dims can be equal, as far as they are known."""
    return dim == other or not (isinstance(dim, int) and isinstance(other, int))


def at_most(small: Dim, large: Dim) -> Pair:
    """The pair that is equal where ``small <= large``."""
    return compound("max", small, large), large


def at_least_one(dim: Dim) -> Pair:
    return compound("max", 1, dim), dim


def not_one(dim: Dim) -> Pair:
    """The pair that is equal where ``dim != 1``."""
    square = (dim - 1) * (dim - 1)
    return compound("max", 1, square), square


def slice_sizes(begin: Dim, size: Dim, stride: int, dim: Dim) -> Pairs:
    """A slice of `size` elements from `begin` lies inside an axis of `dim`.

    A slice without elements may begin anywhere.
    """
    if not is_non_negative(size):
        yield at_most(0, size)
    if size == 0 or (begin, size, stride) == (0, dim, 1):
        return
    last = begin + (size - 1) * stride
    low, high = (begin, last) if stride > 0 else (last, begin)
    some: Dim = 1 if isinstance(size, int) else compound("min", size, 1)
    if not is_at_least(dim, high + 1, [size - 1]):
        yield compound("max", high + 1 - dim, 0) * some, 0
    if not is_at_least(low, 0, [size - 1]):
        yield compound("max", -low, 0) * some, 0


def same_dims(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    yield from zip(specs[0].dims, outs[0].dims, strict=True)


def same_count(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    yield product(specs[0].dims), product(outs[0].dims)
