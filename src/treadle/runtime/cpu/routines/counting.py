"""Masks and counts: what a mask selects, how often positions occur, sums over groups of rows."""

from __future__ import annotations

from treadle.runtime.cpu.routines.language import Apart, I, K, at, i32, i64, local, u8

BLOCK = 256  # elements that are looked at before those found are written


def count_true(
    mask: Apart[u8], counts: Apart[i64], n: i64, part: i64, first: i64, last: i64
) -> None:
    """How many elements are true in each part of `part` elements."""
    for number in range(first, last):
        total = 0
        for i in range(min(number * part, n), min((number + 1) * part, n)):
            total += i64(mask[i] != 0)
        counts[number] = total


def select_true(
    x: Apart[K], mask: Apart[u8], found: Apart[K], starts: Apart[i64], n: i64, inner: i64,
    part: i64, first: i64, last: i64,
) -> None:  # fmt: skip
    """The rows of `inner` elements where the mask is true; starts: where those of a part go.

    Single elements are collected without a branch: each is written, and the place moves on where
    the mask is true.
    """
    kept = local(K, BLOCK + 1)
    for number in range(first, last):
        place = starts[number]
        end = min((number + 1) * part, n)
        if inner == 1:
            for begin in range(min(number * part, n), end, BLOCK):
                count = 0
                for i in range(begin, min(begin + BLOCK, end)):
                    kept[count] = x[i]
                    count += i64(mask[i] != 0)
                for i in range(count):
                    found[place + i] = kept[i]
                place += count
        else:
            for i in range(min(number * part, n), end):
                if mask[i] != 0:
                    for j in range(inner):
                        found[place * inner + j] = x[i * inner + j]
                    place += 1


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


def positions_true(
    mask: Apart[u8], found: Apart[i64], starts: Apart[i64], n: i64, rank: i64, size1: i64,
    size2: i64, size3: i64, part: i64, first: i64, last: i64,
) -> None:  # fmt: skip
    """The positions where a mask of up to 4 axes is true, a row of `rank` numbers each.

    size1, size2, size3: the dims of the last axes but one, ... of the mask; 1 where it has none.
    """
    kept = local(i64, BLOCK + 1)
    for number in range(first, last):
        place = starts[number]
        end = min((number + 1) * part, n)
        for begin in range(min(number * part, n), end, BLOCK):
            count = 0
            for i in range(begin, min(begin + BLOCK, end)):
                kept[count] = i
                count += i64(mask[i] != 0)
            if rank == 1:
                for i in range(count):
                    found[place + i] = kept[i]
                place += count
                continue
            for i in range(count):
                row = at(found, (place + i) * rank)
                rest = kept[i]
                if rank > 3:
                    row[rank - 1] = rest % size3
                    rest = rest // size3
                if rank > 2:
                    row[min(rank, 3) - 1] = rest % size2
                    rest = rest // size2
                if rank > 1:
                    row[1] = rest % size1
                    rest = rest // size1
                row[0] = rest
            place += count


def count_positions(
    ids: Apart[I], counts: Apart[i64], status: Apart[i32], n: i64, size: i64, first: i64, last: i64
) -> None:
    """How often each of the positions 0 to size - 1 occurs. status: 1 for a position outside."""
    wrong = 0
    for _ in range(first, last):
        for k in range(size):
            counts[k] = 0
        for i in range(n):
            place = i64(ids[i])
            if place >= 0 and place < size:
                counts[place] += 1
            else:
                wrong += 1
        status[0] = i32(wrong != 0)
