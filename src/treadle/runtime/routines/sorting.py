"""Sorting rows: positions in order, the largest elements, places in sorted rows.

Elements are compared as unsigned integers, their *keys*, that rise as the elements do: NaN is the
largest, and zeros are equal whatever their signs. Equal elements keep their order.

Several rows are sorted side by side, a row to each lane of the vectors, by exchanges that do not
depend on what is in them (`exchanges.py`). A single short row is sorted by counting, for each
element, those that come before it. Long rows are sorted byte by byte from the lowest (radix sort),
whose time does not depend on what is in them either.
"""

from __future__ import annotations

from treadle.runtime.routines.exchanges import (
    MOST_ARRANGED,
    arrange_rows,
)
from treadle.runtime.routines.language import (
    BITS,
    DESCENDING,
    FLOATING,
    LANES,
    RIGHT,
    SIGNED,
    Array,
    I,
    K,
    T,
    at,
    bits,
    i64,
    isnan,
    lanes,
    select,
    singly,
    u8,
    u32,
    view,
)  # fmt: skip

# No machine changes these: they compare ways of sorting, operation by operation.
COUNTED = 64  # rows of up to so many elements are sorted by counting
TOGETHER = 16  # keys that are compared at a time: LLVM divides them into the machine's vectors
DIGIT = 256  # values of a byte


def key_of(x: T) -> K:
    """The key of an element, in rising order."""
    top = K(1) << (BITS - 1)
    if FLOATING:
        raw = bits(x, K)
        raw = select(x == 0, K(0), raw)
        mask = select((raw & top) != 0, ~K(0), top)
        return select(isnan(x), ~K(0), raw ^ mask)
    if SIGNED:
        return bits(x, K) ^ top
    return bits(x, K)


def ordered_key(x: T) -> K:
    """The key of an element, in the order that is wanted."""
    if DESCENDING:
        return ~key_of(x)
    return key_of(x)


def argsort(x: Array[T], found: Array[I], n: i64, space: Array[u8], first: i64, last: i64) -> None:
    """The positions that sort each row of `n` elements.

    space: ``24 * n`` bytes and a table of counts.
    """
    row = first
    while row < last:
        source, target = at(x, row * n), at(found, row * n)
        count = min(last - row, LANES)
        if n <= MOST_ARRANGED and count > 2:
            arrange_rows(source, target, n, count, view(space, K))
            row += count
            continue
        if n <= COUNTED:
            sort_by_counting(source, target, n, n, space)
        else:
            order = sort_by_digits(source, n, space)
            for i in range(n):
                target[i] = I(order[i])
        row += 1


def sort_by_counting(x: Array[T], found: Array[I], n: i64, k: i64, space: Array[u8]) -> None:
    """The positions of the first `k` elements in order: each stands where the number of those
    before it says. Some are counted at a time; behind the last there may be whatever there is."""
    keys = view(space, K)
    before = view(at(space, 8 * COUNTED), K)
    for i in range(n):
        keys[i] = ordered_key(x[i])
    for begin in range(0, n, TOGETHER):
        for i in lanes(TOGETHER):
            before[begin + i] = K(0)
        for j in range(n):
            key = keys[j]
            for i in lanes(TOGETHER):
                other = keys[begin + i]
                earlier = K(j) < K(begin + i)
                before[begin + i] += K((key < other) | ((key == other) & earlier))
    for i in range(n):
        place = i64(before[i])
        if place < k:
            found[place] = I(i)


def sort_by_digits(x: Array[T], n: i64, space: Array[u8]) -> Array[u32]:
    """The positions that sort a row, in the workspace."""
    keys = view(space, K)
    other = at(keys, n)
    order: Array[u32] = view(at(space, 16 * n), u32)
    moved = at(order, n)
    counts = view(at(space, 24 * n), u32)
    for i in range(DIGIT * (BITS // 8)):
        counts[i] = u32(0)
    for i in range(n):
        key = ordered_key(x[i])
        keys[i] = key
        order[i] = u32(i)
        for digit in range(BITS // 8):
            counts[digit * DIGIT + i64(key >> K(8 * digit) & 255)] += 1
    for digit in range(BITS // 8):
        count = at(counts, digit * DIGIT)
        shift = K(8 * digit)
        if count[i64(keys[0] >> shift & 255)] != u32(n):
            total = u32(0)
            for value in range(DIGIT):
                here = count[value]
                count[value] = total
                total += here
            for i in range(n):
                key = keys[i]
                byte = i64(key >> shift & 255)
                place = i64(count[byte])
                count[byte] += 1
                other[place] = key
                moved[place] = order[i]
            keys, other = other, keys
            order, moved = moved, order
    return order


def top_k(
    x: Array[T], values: Array[T], found: Array[I], n: i64, k: i64,
    space: Array[u8], first: i64, last: i64,
) -> None:  # fmt: skip
    """The `k` largest elements of each row and their positions, the largest first."""
    for row in range(first, last):
        source = at(x, row * n)
        target, places = at(values, row * k), at(found, row * k)
        if n <= COUNTED:
            sort_by_counting(source, places, n, k, space)
        elif k <= MOST_SELECTED:
            select_smallest(source, places, n, k, view(space, K))
        else:
            order = sort_by_digits(source, n, space)
            for i in range(k):
                places[i] = I(order[i])
        for i in range(k):
            target[i] = source[i64(places[i])]


MOST_SELECTED = 32  # elements that are wanted: for more, rows are sorted
# Elements of a row whose keys a search keeps: must agree with `ops/statistics/sorting.py`.
MOST_KEPT = 1 << 16
BLOCK = 64  # elements that are looked at together: one of them may be wanted, or none


def select_smallest(x: Array[T], found: Array[I], n: i64, k: i64, kept: Array[K]) -> None:
    """The positions of the `k` first elements in order: blocks that have none of them are left
    out after a look at their smallest key."""
    if k == 0:
        return
    for i in range(k):
        kept[i] = ~K(0)
        found[i] = I(0)
    count = 0
    begin = 0
    while begin < n:
        end = min(begin + BLOCK, n)
        limit = kept[k - 1]
        smallest = ~K(0)
        for i in range(begin, end):
            smallest = min(smallest, ordered_key(x[i]))
        if smallest < limit or count < k:
            for i in range(begin, end):
                key = ordered_key(x[i])
                if key < kept[k - 1] or count < k:
                    place = min(count, k - 1)
                    while place > 0 and kept[max(place - 1, 0)] > key:
                        kept[place] = kept[place - 1]
                        found[place] = found[place - 1]
                        place -= 1
                    kept[place] = key
                    found[place] = I(i)
                    count = min(count + 1, k)
        begin = end


def searchsorted(
    rows: Array[T], values: Array[T], found: Array[I], n: i64, m: i64,
    space: Array[u8], first: i64, last: i64,
) -> None:  # fmt: skip
    """Where each value would be inserted in its sorted row: `m` values for each row of `n`.

    The searches for some values go on together, as all take the same number of steps. Where there
    are enough values for it, the keys of a row are computed once.
    space: ``16 * TOGETHER`` bytes, and 8 for each element of a row of up to `MOST_KEPT`.
    """
    keys = view(space, K)
    begins = view(at(space, 8 * TOGETHER), i64)
    kept = view(at(space, 16 * TOGETHER), K)
    keeps = n <= MOST_KEPT and 8 * m >= n
    kept_row = -1
    value = first
    while value < last:
        row = value // m
        source = at(rows, row * n)
        count = min(min(last, (row + 1) * m) - value, TOGETHER)
        for i in lanes(TOGETHER):
            begins[i] = 0
            keys[i] = key_of(values[value + min(i, count - 1)])
        if keeps and row != kept_row:
            for i in lanes(n):
                kept[i] = key_of(source[i])
            kept_row = row
        size = n
        while keeps and size > 0:
            half = (size + 1) >> 1
            for i in singly(TOGETHER):
                begin = begins[i]
                middle = kept[begin + half - 1]
                if RIGHT:
                    begins[i] = select(middle <= keys[i], begin + half, begin)
                else:
                    begins[i] = select(middle < keys[i], begin + half, begin)
            size -= half
        while size > 0:
            half = (size + 1) >> 1
            for i in lanes(TOGETHER):
                begin = begins[i]
                middle = key_of(source[begin + half - 1])
                if RIGHT:
                    begins[i] = select(middle <= keys[i], begin + half, begin)
                else:
                    begins[i] = select(middle < keys[i], begin + half, begin)
            size -= half
        for i in range(count):
            found[value + i] = I(begins[i])
        value += count
