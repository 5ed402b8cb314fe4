"""Rows where a mask is true, and how often positions occur."""

from __future__ import annotations

from treadle.runtime.routines.language import Apart, I, K, i32, i64, u8


def spread_true(
    x: Apart[K], mask: Apart[u8], found: Apart[K], n: i64, inner: i64, given: i64, first: i64,
    last: i64,
) -> None:  # fmt: skip
    """The reverse of `select_true`: rows of zeros where the mask is false.

    given: the number of rows of x. True elements of the mask beyond as many get zeros, too: the
    program has compared the numbers, but nothing may be read behind x in any case.
    """
    for _ in range(first, last):
        place = 0
        for i in range(n):
            if (mask[i] != 0) & (place < given):
                for j in range(inner):
                    found[i * inner + j] = x[place * inner + j]
                place += 1
            else:
                for j in range(inner):
                    found[i * inner + j] = K(0)


def count_positions(
    ids: Apart[I], counts: Apart[i64], status: Apart[i32], n: i64, size: i64, first: i64, last: i64
) -> None:
    """How often each of the positions 0 to size - 1 occurs in a row. status: 1 for a position
    outside."""
    for row in range(first, last):
        wrong = 0
        for k in range(size):
            counts[row * size + k] = 0
        for i in range(n):
            place = i64(ids[row * n + i])
            if place >= 0 and place < size:
                counts[row * size + place] += 1
            else:
                wrong += 1
        status[row] = i32(wrong != 0)
