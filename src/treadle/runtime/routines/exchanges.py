"""Sorting by exchanges: which elements are compared does not depend on what they are.

Batcher's merge exchange (Knuth, The Art of Computer Programming, volume 3, algorithm 5.2.2 M) on
``LANES`` rows side by side: key `i` of row `r` stands at ``i * LANES + r``, so that each exchange
is a minimum and a maximum of a cache line of keys.

Here the key of an element tells it: a zero with a minus comes before one without, and all NaNs are
one.
"""

from __future__ import annotations

from treadle.runtime.routines.language import (
    BITS,
    DESCENDING,
    FLOATING,
    LANES,
    QUIET,
    SIGNED,
    Apart,
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

# No machine changes these: they compare two ways of sorting, operation by operation.
FEW = 4  # so many rows are worth it, where another way is as good for one
ALONE = 64  # elements of a row that are worth it alone
# Elements of rows that are sorted so: must agree with `ops/statistics/sorting.py`.
MOST_EXCHANGED = 1024
MOST_ARRANGED = 128  # the same where positions are moved along, which fit into 8 bits
DIGIT = 256  # values of a byte


def total_key(x: T) -> K:
    """The key of an element, in the order that is wanted."""
    top = K(1) << (BITS - 1)
    key = bits(x, K)
    if FLOATING:
        mask = select((key & top) != 0, ~K(0), top)
        key = select(isnan(x), ~K(0), key ^ mask)
    if SIGNED:
        key = key ^ top
    if DESCENDING:
        return ~key
    return key


def element_of(given: K) -> T:
    """The element that has a key."""
    top = K(1) << (BITS - 1)
    key = given
    if DESCENDING:
        key = ~key
    if FLOATING:
        raw = select((key & top) != 0, key ^ top, ~key)
        key = select(key == ~K(0), K(QUIET), raw)
    if SIGNED:
        key = key ^ top
    return bits(key, T)


def sort(x: Array[T], found: Array[T], n: i64, space: Array[u8], first: i64, last: i64) -> None:
    """The elements of each row in order.

    space: ``16 * n`` bytes and a table of counts, and keys of the rows that are sorted together.
    """
    row = first
    while row < last:
        count = min(last - row, LANES)
        source, target = at(x, row * n), at(found, row * n)
        if n <= ALONE or (n <= MOST_EXCHANGED and count >= FEW):
            exchange_rows(source, target, n, count, view(space, K))
            row += count
        else:
            sort_long_row(source, target, n, space)
            row += 1


def exchange_rows(x: Array[T], found: Array[T], n: i64, count: i64, keys: Array[K]) -> None:
    """Sort up to `LANES` rows."""
    rows = view(found, K)
    keys_of(x, rows, n * count)
    for r in range(0, LANES, 4):
        a, b = at(rows, min(r, count - 1) * n), at(rows, min(r + 1, count - 1) * n)
        c, d = at(rows, min(r + 2, count - 1) * n), at(rows, min(r + 3, count - 1) * n)
        for i in singly(n):
            lane = at(keys, i * LANES + r)
            lane[0] = a[i]
            lane[1] = b[i]
            lane[2] = c[i]
            lane[3] = d[i]
    top = 1
    while top < n:
        top = top << 1
    p = top >> 1
    while p > 0:
        q = top >> 1
        begin = 0
        distance = p
        while True:
            for start in range(0, n - distance, 2):
                block = begin + start * p
                if block >= n - distance:
                    break
                for i in singly(block, min(block + p, n - distance)):
                    low = at(keys, i * LANES)
                    exchange(low, at(low, distance * LANES))
            if q == p:
                break
            distance = q - p
            q = q >> 1
            begin = p
        p = p >> 1
    for r in range(count):
        row = at(rows, r * n)
        for i in singly(n):
            row[i] = keys[i * LANES + r]
    elements_of(found, n * count)


def keys_of(x: Apart[T], keys: Apart[K], n: i64) -> None:
    """The keys of some elements."""
    for i in lanes(n):
        keys[i] = total_key(x[i])


def elements_of(x: Array[T], n: i64) -> None:
    """Keys become the elements that have them."""
    keys = view(x, K)
    for i in lanes(n):
        x[i] = element_of(keys[i])


def exchange(low: Apart[K], high: Apart[K]) -> None:
    """The smaller one of each pair to `low`, the other to `high`."""
    for i in lanes(LANES):
        a, b = low[i], high[i]
        low[i] = min(a, b)
        high[i] = max(a, b)


def arrange_rows(x: Array[T], found: Array[I], n: i64, count: i64, keys: Array[K]) -> None:
    """The positions that sort up to `LANES` rows; equal elements keep their order."""
    places, rows = at(keys, n * LANES), at(keys, 2 * n * LANES)
    equal_keys_of(x, rows, n * count)
    for r in range(LANES):
        row = at(rows, min(r, count - 1) * n)
        for i in singly(n):
            keys[i * LANES + r] = row[i]
    for i in range(n):
        for r in lanes(LANES):
            places[i * LANES + r] = K(i)
    p = 1
    while p < n:
        p = p << 1
    half = p >> 1
    p = half
    while p > 0:
        q = half
        begin = 0
        distance = p
        while True:
            for start in range(0, n - distance, 2):
                block = begin + start * p
                if block >= n - distance:
                    break
                for i in singly(block, min(block + p, n - distance)):
                    low, place = at(keys, i * LANES), at(places, i * LANES)
                    away = distance * LANES
                    exchange_both(low, at(low, away), place, at(place, away))
            if q == p:
                break
            distance = q - p
            q = q >> 1
            begin = p
        p = p >> 1
    for r in range(count):
        for i in singly(n):
            found[r * n + i] = I(places[i * LANES + r])


def equal_keys_of(x: Apart[T], keys: Apart[K], n: i64) -> None:
    """The same where zeros are equal."""
    for i in lanes(n):
        keys[i] = total_key(select(x[i] == 0, T(0), x[i]))


def exchange_both(low: Apart[K], high: Apart[K], place: Apart[K], other: Apart[K]) -> None:
    """The same with positions, which decide between equal keys."""
    for i in lanes(LANES):
        a, b, first, second = low[i], high[i], place[i], other[i]
        turned = (b < a) | ((b == a) & (second < first))
        low[i] = select(turned, b, a)
        high[i] = select(turned, a, b)
        place[i] = select(turned, second, first)
        other[i] = select(turned, first, second)


def sort_long_row(x: Array[T], found: Array[T], n: i64, space: Array[u8]) -> None:
    """Byte by byte, from the lowest."""
    keys = view(space, K)
    other = at(keys, n)
    counts = view(at(space, 16 * n), u32)
    for i in range(DIGIT * (BITS // 8)):
        counts[i] = u32(0)
    for i in range(n):
        key = total_key(x[i])
        keys[i] = key
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
                other[i64(count[byte])] = key
                count[byte] += 1
            keys, other = other, keys
    rows = view(found, K)
    for i in range(n):
        rows[i] = keys[i]
    elements_of(found, n)
