"""Orthogonal factors of small matrices: QR by reflections, singular vectors by Jacobi's rotations.

Rows of the workspace are padded to whole blocks, as in `elimination.py`.
"""

from __future__ import annotations

from treadle.runtime.routines.elimination import padded, subtract
from treadle.runtime.routines.language import (
    DIGITS,
    PAD,
    Apart,
    T,
    at,
    copysign,
    i32,
    i64,
    lanes,
    sqrt,
    u8,
    view,
)  # fmt: skip

MOST_SWEEPS = 40  # each about squares what is left; LAPACK gives up as well


def dot(a: Apart[T], b: Apart[T], wide: i64, sums: Apart[T]) -> T:
    """The sum of products of two padded rows; `sums` is workspace of PAD elements."""
    for j in lanes(PAD):
        sums[j] = T(0)
    for block in range(0, wide, PAD):
        for j in lanes(PAD):
            sums[j] += a[block + j] * b[block + j]
    return total(sums)


def total(sums: Apart[T]) -> T:
    """The sum of PAD elements, in pairs."""
    half = PAD // 2
    while half > 0:
        for j in range(half):
            sums[j] += sums[j + half]
        half = half // 2
    return sums[0]


def size_of(row: Apart[T], count: i64) -> T:
    """The Euclidean length of a row, without overflow."""
    largest = T(0)
    for i in range(count):
        largest = max(largest, abs(row[i]))
        if row[i] != row[i]:
            return row[i]
    if largest == 0 or largest * T(0) != T(0):
        return largest
    total = T(0)
    for i in range(count):
        part = row[i] / largest
        total += part * part
    return largest * sqrt(total)


def qr(
    a: Apart[T], q: Apart[T], r: Apart[T], m: i64, n: i64, k: i64,
    space: Apart[u8], first: i64, last: i64,
) -> None:  # fmt: skip
    """``q @ r = a``, by reflections I - scale v v', with LAPACK's signs: a is [m, n], k the
    smaller of both, q [m, k] with orthonormal columns, r [k, n] an upper triangle."""
    wide = padded(n)
    rows = view(space, T)  # [m, wide]: a, then r
    vectors = at(rows, m * wide)  # [k, m]
    scales = at(vectors, k * m)  # [k]
    sums = at(scales, padded(k))  # [wide], or of q's width
    thin = padded(k)
    left = at(sums, wide)  # [m, thin]: q
    for number in range(first, last):
        put(at(a, number * m * n), rows, m, n, wide)
        for step in range(k):
            vector = at(vectors, step * m)
            reflect_column(rows, vector, scales, step, m, wide)
            scale = scales[step]
            if scale != 0:
                apply_reflection(rows, vector, scale, sums, step, m, step // PAD * PAD, wide)
        for i in range(m):
            for j in range(thin):
                left[i * thin + j] = T(0)
        for i in range(k):
            left[i * thin + i] = T(1)
        for down in range(k):
            step = k - 1 - down
            scale = scales[step]
            if scale != 0:
                apply_reflection(left, at(vectors, step * m), scale, sums, step, m, 0, thin)
        for i in range(m):
            for j in range(k):
                q[(number * m + i) * k + j] = left[i * thin + j]
        for i in range(k):
            for j in range(n):
                value = T(0)
                if j >= i:
                    value = rows[i * wide + j]
                r[(number * k + i) * n + j] = value


def put(a: Apart[T], rows: Apart[T], m: i64, n: i64, wide: i64) -> None:
    """Copy a matrix into padded rows."""
    for i in range(m):
        for j in range(n):
            rows[i * wide + j] = a[i * n + j]
        for j in range(n, wide):
            rows[i * wide + j] = T(0)


def reflect_column(
    rows: Apart[T], vector: Apart[T], scales: Apart[T], step: i64, m: i64, wide: i64
) -> None:
    """The reflection that clears a column below the diagonal."""
    for i in range(m):
        vector[i] = T(0)
    for i in range(step + 1, m):
        vector[i] = rows[i * wide + step]
    below = size_of(vector, m)
    top = rows[step * wide + step]
    scales[step] = T(0)
    if below != 0:
        vector[step] = top
        length = -copysign(size_of(vector, m), top)
        scales[step] = (length - top) / length
        for i in range(step + 1, m):
            vector[i] = vector[i] / (top - length)
        vector[step] = T(1)


def apply_reflection(
    rows: Apart[T], vector: Apart[T], scale: T, sums: Apart[T], step: i64, m: i64,
    begin: i64, wide: i64,
) -> None:  # fmt: skip
    """Reflect the columns from block `begin` on."""
    for j in range(begin, wide):
        sums[j] = T(0)
    for i in range(step, m):
        subtract(sums, at(rows, i * wide), -scale * vector[i], begin, wide)
    for i in range(step, m):
        subtract(at(rows, i * wide), sums, vector[i], begin, wide)


def rotate(a: Apart[T], b: Apart[T], t: T, wide: i64) -> None:
    """Rotate two rows by the angle of tangent `t`, by blocks. What is small beside an element is
    added up before it meets the element (Rutishauser), so that lengths do not grow."""
    cosine = T(1) / sqrt(T(1) + t * t)
    sine = t * cosine
    half = sine / (T(1) + cosine)
    for block in range(0, wide, PAD):
        for j in lanes(PAD):
            x, y = a[block + j], b[block + j]
            a[block + j] = x - sine * (y + half * x)
            b[block + j] = y + sine * (x - half * y)


def tangent(difference: T, twice: T) -> T:
    """The tangent of the smaller angle that makes `twice / 2` zero between numbers that differ
    by `difference`."""
    ratio = difference / twice
    if abs(ratio) * T(1.0 / (1 << DIGITS)) > T(1):  # its square may overflow, and outweighs 1
        return T(0.5) / ratio
    return copysign(T(1) / (abs(ratio) + sqrt(T(1) + ratio * ratio)), ratio)


def fill(x: Apart[T], count: i64, value: T) -> None:
    for i in range(count):
        x[i] = value


def clear(x: Apart[T], count: i64) -> None:
    """Make elements 0."""
    for i in range(count):
        x[i] = T(0)


def power_of_two(x: T) -> T:
    """A power of two near a positive number, so that division by it is exact."""
    power = T(1)
    while power < x:
        power = power * T(2)
    while power > x:
        power = power * T(0.5)
    return power


def svd(
    a: Apart[T], u: Apart[T], s: Apart[T], v: Apart[T], status: Apart[i32], m: i64, n: i64,
    k: i64, space: Apart[u8], first: i64, last: i64,
) -> None:  # fmt: skip
    """``(u * s) @ v = a`` with falling s: the columns of the higher of a and its transpose are
    rotated until all are orthogonal. Matrices that are not finite give NaN. status: 1 where the
    rotations find no end."""
    high = max(m, n)
    wide, thin = padded(high), padded(k)
    rows = view(space, T)  # [k, wide]: its columns as rows
    turned = at(rows, k * wide)  # [k, thin]
    sizes = at(turned, k * thin)  # [k]
    sums = at(sizes, thin)  # [3, PAD]
    for number in range(first, last):
        source = at(a, number * m * n)
        largest = T(0)
        for i in range(k):
            for j in range(wide):
                rows[i * wide + j] = T(0)
            for j in range(high):
                place = i * n + j
                if m >= n:
                    place = j * n + i
                value = source[place]
                if not abs(value) <= largest:
                    largest = abs(value) + largest * T(0)
                rows[i * wide + j] = value
            for j in range(thin):
                turned[i * thin + j] = T(0)
            turned[i * thin + i] = T(1)
        if largest * T(0) != T(0):
            fill(at(u, number * m * k), m * k, largest * T(0))
            fill(at(s, number * k), k, largest * T(0))
            fill(at(v, number * k * n), k * n, largest * T(0))
            status[number] = i32(0)
            continue
        scaled = T(1)
        if largest > 0:
            scaled = power_of_two(largest)
            for i in range(k * wide):
                rows[i] = rows[i] / scaled
        sweeps = 0
        going = True
        while going and sweeps < MOST_SWEEPS:
            going = sweep_columns(rows, turned, sums, k, wide, thin)
            sweeps += 1
        status[number] = i32(going)
        for i in range(k):
            sizes[i] = size_of(at(rows, i * wide), high)
        normalize(rows, sizes, sums, k, high, wide)
        for i in range(k):
            rank = 0
            for j in range(k):
                if sizes[j] > sizes[i] or (sizes[j] == sizes[i] and j < i):
                    rank += 1
            s[number * k + rank] = sizes[i] * scaled
            for j in range(high):
                value = rows[i * wide + j]
                if m >= n:
                    u[(number * m + j) * k + rank] = value
                else:
                    v[(number * k + rank) * n + j] = value
            for j in range(k):
                value = turned[i * thin + j]
                if m >= n:
                    v[(number * k + rank) * n + j] = value
                else:
                    u[(number * m + j) * k + rank] = value


def sweep_columns(
    rows: Apart[T], turned: Apart[T], sums: Apart[T], k: i64, wide: i64, thin: i64
) -> bool:
    """Rotate every pair of rows once so that they are orthogonal; whether any was not."""
    changed = False
    for p in range(k - 1):
        for q in range(p + 1, k):
            one, other = at(rows, p * wide), at(rows, q * wide)
            for j in range(3 * PAD):
                sums[j] = T(0)
            for block in range(0, wide, PAD):
                for j in lanes(PAD):
                    here, there = one[block + j], other[block + j]
                    sums[j] += here * here
                    sums[PAD + j] += there * there
                    sums[2 * PAD + j] += here * there
            x, y, both = total(sums), total(at(sums, PAD)), total(at(sums, 2 * PAD))
            epsilon = T(1.0 / (1 << DIGITS))
            limit = T(4) * epsilon * sqrt(x) * sqrt(y)
            if abs(both) > max(limit, epsilon * epsilon * epsilon):
                changed = True
                t = tangent(y - x, T(2) * both)
                rotate(one, other, t, wide)
                rotate(at(turned, p * thin), at(turned, q * thin), t, thin)
    return changed


def normalize(
    rows: Apart[T], sizes: Apart[T], sums: Apart[T], k: i64, high: i64, wide: i64
) -> None:
    """Make the rows units. Those whose sizes are errors of rounding become units orthogonal to all
    others."""
    largest = T(0)
    for i in range(k):
        largest = max(largest, sizes[i])
    tiny = largest * T(high) * T(1.0 / (1 << DIGITS))
    for i in range(k):
        size = sizes[i]
        if size > tiny:
            for j in range(high):
                rows[i * wide + j] = rows[i * wide + j] / size
    for i in range(k):
        if sizes[i] <= tiny:
            complete(rows, sizes, sums, tiny, i, k, high, wide)


def complete(
    rows: Apart[T], sizes: Apart[T], sums: Apart[T], tiny: T, i: i64, k: i64, high: i64, wide: i64
) -> None:
    """Make a row a unit that is orthogonal to those before it and to all that are not tiny: the
    unit of an axis, less what the others have of it, for the first axis that leaves enough."""
    mine = at(rows, i * wide)
    axis = 0
    found = False
    while axis < high and not found:
        for j in range(wide):
            mine[j] = T(0)
        mine[axis] = T(1)
        for _ in range(2):
            for other in range(k):
                if other < i or (sizes[other] > tiny and other != i):
                    row = at(rows, other * wide)
                    part = dot(mine, row, wide, sums)
                    subtract(mine, row, part, 0, wide)
        size = size_of(mine, high)
        if size * size * T(2) * T(high) > T(1):
            found = True
            for j in range(high):
                mine[j] = mine[j] / size
        axis += 1
