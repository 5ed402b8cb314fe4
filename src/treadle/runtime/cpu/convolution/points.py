"""Winograd's short convolutions: matrices that trade multiplications for additions.

``F(m, r)``, m sums of r products each of ``m + r - 1`` neighbouring numbers d and r weights g, is
``A^T [(G g) * (B^T d)]`` with as many products as there are numbers (Winograd, Arithmetic
Complexity of Computations, 1980; Lavin and Gray, Fast Algorithms for Convolutional Neural Networks,
2015). The matrices follow from points at which polynomials are evaluated (Toom and Cook).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from fractions import Fraction
from math import prod

Matrix = tuple[tuple[Fraction, ...], ...]

# The points, beside infinity. All that pixels and sums are multiplied by are sums of few powers of
# 2. Among five points that allow that, these add the least rounding errors (Barabasz et al., Error
# Analysis and Improving the Accuracy of Winograd Convolution, 2020).
POINTS = (Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 2), Fraction(-2))
SIZE = len(POINTS) + 1  # numbers that a short convolution reads
PLANES = SIZE * SIZE  # points of a tile, which has two sides


def sums_of(window: int) -> int:
    """How many sums a short convolution with a window of so many weights gives."""
    return SIZE + 1 - window


@functools.cache
def of_pixels() -> Matrix:
    """``B^T``: it does not depend on the window."""
    rows = [_polynomial([q for q in POINTS if q != p]) for p in POINTS]
    return tuple(tuple(row) for row in (*rows, _polynomial(POINTS)))


@functools.cache
def of_weights(window: int) -> Matrix:
    """``G``: the weights' polynomial at the points."""
    scales = [1 / prod((p - q for q in POINTS if q != p), start=Fraction(1)) for p in POINTS]
    rows = [tuple(s * p**i for i in range(window)) for p, s in zip(POINTS, scales, strict=True)]
    return (*rows, tuple(Fraction(i == window - 1) for i in range(window)))


@functools.cache
def of_sums(count: int) -> Matrix:
    """``A^T``, for so many sums."""
    return tuple(
        (*(p**i for p in POINTS), Fraction(i == count - 1)) for i in range(count)
    )


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of the product of all ``x - root``, filled up to `SIZE`."""
    found = [Fraction(1)]
    for root in roots:
        shifted, scaled = [Fraction(0), *found], [*(-root * c for c in found), Fraction(0)]
        found = [a + b for a, b in zip(shifted, scaled, strict=True)]
    return [*found, *[Fraction(0)] * (SIZE - len(found))]
