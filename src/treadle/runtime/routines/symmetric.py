"""Eigenvalues and eigenvectors of small symmetric matrices: reflections make the matrix
tridiagonal, rotations (QL with implicit shifts) make that diagonal."""

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
from treadle.runtime.routines.rotations import clear, fill, power_of_two, size_of

MOST_TURNS = 30  # for each eigenvalue; LAPACK gives up then as well


def eigh(
    a: Apart[T], values: Apart[T], vectors: Apart[T], status: Apart[i32], n: i64,
    space: Apart[u8], first: i64, last: i64,
) -> None:  # fmt: skip
    """Eigenvalues in rising order and eigenvectors in columns, of symmetric matrices of which the
    lower triangle is read. status: 1 where the rotations find no end, or what is larger than a
    single number is not finite."""
    wide = padded(n)
    rows = view(space, T)  # [n, wide]: the matrix, then the reflections' vectors
    turned = at(rows, n * wide)  # [n, wide]: the eigenvectors as rows
    diagonal = at(turned, n * wide)
    beside = at(diagonal, wide)
    sums = at(beside, wide)
    scales = at(sums, wide)
    for number in range(first, last):
        source = at(a, number * n * n)
        clear(rows, n * wide)
        clear(beside, wide)
        largest = put_symmetric(source, rows, n, wide)
        if largest * T(0) != T(0):
            fill(at(values, number * n), n, source[0])
            fill(at(vectors, number * n * n), n * n, T(1))
            status[number] = i32(n > 1)
            continue
        scaled = T(1)
        if largest > 0:
            scaled = power_of_two(largest)
            for i in range(n * wide):
                rows[i] = rows[i] / scaled
        for k in range(n - 2):
            reduce_column(rows, beside, sums, scales, k, n, wide)
        for k in range(n):
            diagonal[k] = rows[k * wide + k]
        if n > 1:
            beside[n - 2] = rows[(n - 2) * wide + n - 1]
            beside[n - 1] = T(0)
        collect(rows, turned, sums, scales, n, wide)
        status[number] = i32(not make_diagonal(diagonal, beside, turned, n, wide))
        for i in range(n):
            rank = 0
            for j in range(n):
                other = diagonal[j]
                if other < diagonal[i] or (other == diagonal[i] and j < i):
                    rank += 1
            values[number * n + rank] = diagonal[i] * scaled
            for j in range(n):
                vectors[(number * n + j) * n + rank] = turned[i * wide + j]


def put_symmetric(source: Apart[T], rows: Apart[T], n: i64, wide: i64) -> T:
    """Copy the lower triangle to both sides; the largest absolute value, or NaN."""
    largest = T(0)
    for i in range(n):
        for j in range(i + 1):
            value = source[i * n + j]
            if not abs(value) <= largest:
                largest = abs(value) + largest * T(0)
            rows[i * wide + j] = value
            rows[j * wide + i] = value
    return largest


def reduce_column(
    rows: Apart[T], beside: Apart[T], sums: Apart[T], scales: Apart[T], k: i64, n: i64, wide: i64
) -> None:
    """Reflect from both sides so that row k ends behind its second element. Its place keeps the
    reflection's vector v, `scales` its scale; A becomes A - v w' - w v'."""
    v = at(rows, k * wide)
    for i in range(k + 1):
        sums[i] = T(0)
    top = v[k + 1]
    v[k + 1] = T(0)
    below = T(0)
    if n > k + 2:
        below = size_of(at(v, k + 2), n - k - 2)
    scales[k] = T(0)
    beside[k] = top
    v[k + 1] = top
    if below != 0:
        length = -copysign(size_of(at(v, k + 1), n - k - 1), top)
        beside[k] = length
        scale = (length - top) / length
        scales[k] = scale
        for i in range(k + 2, n):
            v[i] = v[i] / (top - length)
        v[k + 1] = T(1)
        begin = (k + 1) // PAD * PAD
        clear(sums, wide)
        for i in range(k + 1, n):
            subtract(sums, at(rows, i * wide), -scale * v[i], begin, wide)
        inner = T(0)
        for i in range(k + 1, n):
            inner += v[i] * sums[i]
        for i in range(k + 1, n):
            sums[i] -= T(0.5) * scale * inner * v[i]
        for i in range(k + 1, n):
            row = at(rows, i * wide)
            x, y = v[i], sums[i]
            for block in range(begin, wide, PAD):
                for j in lanes(PAD):
                    row[block + j] -= x * sums[block + j] + y * v[block + j]


def collect(
    rows: Apart[T], turned: Apart[T], sums: Apart[T], scales: Apart[T], n: i64, wide: i64
) -> None:
    """The product of the reflections, transposed: the last one meets the unit matrix first."""
    clear(turned, n * wide)
    for i in range(n):
        turned[i * wide + i] = T(1)
    for down in range(n - 2):
        k = n - 3 - down
        v = at(rows, k * wide)
        scale = scales[k]
        if scale != 0:
            clear(sums, wide)
            for i in range(k + 1, n):
                subtract(sums, at(turned, i * wide), -scale * v[i], 0, wide)
            for i in range(k + 1, n):
                subtract(at(turned, i * wide), sums, v[i], 0, wide)
    for i in range(n):
        for j in range(i):
            old = turned[i * wide + j]
            turned[i * wide + j] = turned[j * wide + i]
            turned[j * wide + i] = old


def make_diagonal(
    diagonal: Apart[T], beside: Apart[T], turned: Apart[T], n: i64, wide: i64
) -> bool:
    """Rotate until nothing is left beside the diagonal (EISPACK's tql2); whether that ended."""
    shift = T(0)
    largest = T(0)
    epsilon = T(1.0 / (1 << DIGITS))
    for k in range(n):
        largest = max(largest, abs(diagonal[k]) + abs(beside[k]))
        end = k
        while end < n - 1 and abs(beside[end]) > epsilon * largest:
            end += 1
        turns = 0
        while end > k and abs(beside[k]) > epsilon * largest:
            if turns == MOST_TURNS:
                return False
            turns += 1
            shift += turn(diagonal, beside, turned, k, end, n, wide)
        diagonal[k] += shift
        beside[k] = T(0)
    return True


def turn(
    diagonal: Apart[T], beside: Apart[T], turned: Apart[T], k: i64, end: i64, n: i64, wide: i64
) -> T:
    """One pass of rotations from `end` up to k; the shift that was taken off the diagonal."""
    before = diagonal[k]
    ratio = (diagonal[k + 1] - before) / (T(2) * beside[k])
    root = copysign(sqrt(ratio * ratio + T(1)), ratio)
    diagonal[k] = beside[k] / (ratio + root)
    diagonal[k + 1] = beside[k] * (ratio + root)
    next_one = diagonal[k + 1]
    shift = before - diagonal[k]
    for i in range(k + 2, n):
        diagonal[i] -= shift
    p = diagonal[end]
    c, c2, c3 = T(1), T(1), T(1)
    s, s2 = T(0), T(0)
    second = beside[k + 1]
    for down in range(end - k):
        i = end - 1 - down
        c3 = c2
        c2 = c
        s2 = s
        g, h = c * beside[i], c * p
        r = sqrt(p * p + beside[i] * beside[i])
        beside[i + 1] = s * r
        s = beside[i] / r
        c = p / r
        p = c * diagonal[i] - s * g
        diagonal[i + 1] = h + s * (c * g + s * diagonal[i])
        upper, lower = at(turned, i * wide), at(turned, (i + 1) * wide)
        for block in range(0, wide, PAD):
            for j in lanes(PAD):
                x, y = upper[block + j], lower[block + j]
                lower[block + j] = s * x + c * y
                upper[block + j] = c * x - s * y
    p = -s * s2 * c3 * second * beside[k] / next_one
    beside[k] = s * p
    diagonal[k] = c * p
    return shift
