"""Equations, inverses and determinants of small matrices by Gaussian elimination.

A matrix and what stands beside it are copied into the workspace as rows that are padded to whole
blocks of PAD elements, so that a row is changed by vectors only. A row is changed from the block
of the pivot on: what lies left of the pivot is not read again.
"""

from __future__ import annotations

from treadle.runtime.routines.language import (
    LOWER,
    PAD,
    Apart,
    T,
    at,
    bits,
    f64,
    i32,
    i64,
    lanes,
    sqrt,
    u8,
    u64,
    view,
)  # fmt: skip


def padded(count: i64) -> i64:
    """Elements of a row of the workspace."""
    return (count + (PAD - 1)) // PAD * PAD


def put_matrix(a: Apart[T], rows: Apart[T], n: i64, wide: i64) -> None:
    """Copy a square matrix to the left of padded rows and clear what is beside it."""
    for i in range(n):
        row = at(rows, i * wide)
        for j in range(n):
            row[j] = a[i * n + j]
        for j in range(n, wide):
            row[j] = T(0)


def eliminate(rows: Apart[T], n: i64, wide: i64) -> i64:
    """Make the left matrix an upper triangle, with partial pivoting: how often rows were
    exchanged, or -1 where a pivot is 0."""
    exchanged = 0
    singular = False
    for k in range(n):
        begin = k // PAD * PAD
        best = k
        for i in range(k + 1, n):
            if abs(rows[i * wide + k]) > abs(rows[best * wide + k]):
                best = i
        top = at(rows, k * wide)
        if best != k:
            exchanged += 1
            exchange(top, at(rows, best * wide), begin, wide)
        pivot = top[k]
        if pivot == 0:
            singular = True
        else:
            for i in range(k + 1, n):
                row = at(rows, i * wide)
                subtract(row, top, row[k] / pivot, begin, wide)
    if singular:
        return -1
    return exchanged


def exchange(a: Apart[T], b: Apart[T], begin: i64, end: i64) -> None:
    """Exchange blocks of two rows."""
    for block in range(begin, end, PAD):
        for j in lanes(PAD):
            old = a[block + j]
            a[block + j] = b[block + j]
            b[block + j] = old


def subtract(row: Apart[T], other: Apart[T], factor: T, begin: i64, end: i64) -> None:
    """``row -= factor * other``, by blocks."""
    for block in range(begin, end, PAD):
        for j in lanes(PAD):
            row[block + j] -= factor * other[block + j]


def substitute_back(rows: Apart[T], n: i64, wide: i64) -> None:
    """Solve with the upper triangle on the left; solutions take the place of what is beside it."""
    begin = padded(n)
    for down in range(n):
        k = n - 1 - down
        top = at(rows, k * wide)
        pivot = top[k]
        for block in range(begin, wide, PAD):
            for j in lanes(PAD):
                top[block + j] = top[block + j] / pivot
        for i in range(k):
            row = at(rows, i * wide)
            subtract(row, top, row[k], begin, wide)


def solve(
    a: Apart[T], b: Apart[T], x: Apart[T], status: Apart[i32], n: i64, m: i64,
    step_a: i64, step_b: i64, space: Apart[u8], first: i64, last: i64,
) -> None:  # fmt: skip
    """``a @ x = b``, with `m` columns in b. status: 1 for a singular matrix.

    step_a, step_b: elements from one matrix to the next, 0 for one that serves all.
    """
    rows = view(space, T)
    beside = padded(n)
    wide = beside + padded(m)
    for number in range(first, last):
        put_matrix(at(a, number * step_a), rows, n, wide)
        right = at(b, number * step_b)
        for i in range(n):
            for j in range(m):
                rows[i * wide + beside + j] = right[i * m + j]
        status[number] = i32(eliminate(rows, n, wide) < 0)
        substitute_back(rows, n, wide)
        for i in range(n):
            for j in range(m):
                x[(number * n + i) * m + j] = rows[i * wide + beside + j]


def inverse(
    a: Apart[T], x: Apart[T], status: Apart[i32], n: i64,
    space: Apart[u8], first: i64, last: i64,
) -> None:  # fmt: skip
    """Inverse matrices. status: 1 for a singular one."""
    rows = view(space, T)
    beside = padded(n)
    wide = 2 * beside
    for number in range(first, last):
        put_matrix(at(a, number * n * n), rows, n, wide)
        for i in range(n):
            rows[i * wide + beside + i] = T(1)
        status[number] = i32(eliminate(rows, n, wide) < 0)
        substitute_back(rows, n, wide)
        for i in range(n):
            for j in range(n):
                x[(number * n + i) * n + j] = rows[i * wide + beside + j]


def determinant(
    a: Apart[T], found: Apart[T], n: i64, space: Apart[u8], first: i64, last: i64
) -> None:
    """The product of the pivots."""
    rows = view(space, T)
    wide = padded(n)
    for number in range(first, last):
        put_matrix(at(a, number * n * n), rows, n, wide)
        exchanged = eliminate(rows, n, wide)
        total = T(1)
        if exchanged > 0 and exchanged % 2 == 1:
            total = T(-1)
        for k in range(n):
            total *= rows[k * wide + k]
        if exchanged < 0 and total == total:
            total = T(0)
        found[number] = total


def log_determinant(
    a: Apart[T], sign: Apart[T], logarithm: Apart[T], n: i64,
    space: Apart[u8], first: i64, last: i64,
) -> None:  # fmt: skip
    """The sign, and the logarithm of the absolute value."""
    rows = view(space, T)
    wide = padded(n)
    for number in range(first, last):
        put_matrix(at(a, number * n * n), rows, n, wide)
        exchanged = eliminate(rows, n, wide)
        total = f64(0)
        positive = T(1)
        if exchanged > 0 and exchanged % 2 == 1:
            positive = T(-1)
        for k in range(n):
            pivot = rows[k * wide + k]
            if pivot < 0:
                positive = -positive
            total += log(abs(f64(pivot)))
        if exchanged < 0 and total < 0:
            positive = T(0)
        if total != total:
            positive = T(total)
        sign[number] = positive
        logarithm[number] = T(total)


def log(x: f64) -> f64:
    """The logarithm of a number that is not negative, to some units in the last place.

    x = m * 2**e with m from sqrt(1/2) on; log(m) is the series of atanh((m - 1) / (m + 1)).
    """
    infinity = f64(1) / f64(0)
    if x == 0:
        return -infinity
    if x != x or x == infinity:
        return x
    exponent = 0
    if x < 2.2250738585072014e-308:
        x = x * 18014398509481984.0
        exponent = -54
    raw = bits(x, u64)
    exponent += i64(raw >> 52) - 1023
    m = bits((raw & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000, f64)
    if m > 1.4142135623730951:
        m = m * 0.5
        exponent += 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = f64(0)
    for down in range(12):
        series = series * z + 1.0 / f64(2 * (12 - down) - 1)
    e = f64(exponent)
    result: f64 = e * 0.693147180369123816490 + (2.0 * s * series + e * 1.90821492927058770002e-10)
    return result


def triangular_solve(
    a: Apart[T], b: Apart[T], x: Apart[T], n: i64, m: i64, step_a: i64, step_b: i64,
    space: Apart[u8], first: i64, last: i64,
) -> None:  # fmt: skip
    """``a @ x = b`` where only a triangle of a is read."""
    rows = view(space, T)
    wide = padded(m)
    for number in range(first, last):
        left, right = at(a, number * step_a), at(b, number * step_b)
        for i in range(n):
            row = at(rows, i * wide)
            for j in range(m):
                row[j] = right[i * m + j]
            for j in range(m, wide):
                row[j] = T(0)
        for step in range(n):
            k = n - 1 - step
            if LOWER:
                k = step
            top = at(rows, k * wide)
            pivot = left[k * n + k]
            for block in range(0, wide, PAD):
                for j in lanes(PAD):
                    top[block + j] = top[block + j] / pivot
            begin = 0
            end = k
            if LOWER:
                begin = k + 1
                end = n
            for i in range(begin, end):
                subtract(at(rows, i * wide), top, left[i * n + k], 0, wide)
        for i in range(n):
            for j in range(m):
                x[(number * n + i) * m + j] = rows[i * wide + j]


def cholesky(
    a: Apart[T], factor: Apart[T], status: Apart[i32], n: i64,
    space: Apart[u8], first: i64, last: i64,
) -> None:  # fmt: skip
    """Lower triangles L with ``L @ L.T`` the matrices, of which the lower triangle is read.

    The rows of the workspace are the columns of L. status: 1 where a matrix is not positive.
    """
    rows = view(space, T)
    wide = padded(n)
    for number in range(first, last):
        source, target = at(a, number * n * n), at(factor, number * n * n)
        for i in range(n):
            for j in range(wide):
                rows[i * wide + j] = T(0)
        for i in range(n):
            for j in range(i + 1):
                rows[j * wide + i] = source[i * n + j]
        failed = False
        for k in range(n):
            top = at(rows, k * wide)
            begin = k // PAD * PAD
            if top[k] <= 0:
                failed = True
            root = sqrt(top[k])
            for block in range(begin, wide, PAD):
                for j in lanes(PAD):
                    top[block + j] = top[block + j] / root
            for i in range(k + 1, n):
                subtract(at(rows, i * wide), top, top[i], i // PAD * PAD, wide)
        status[number] = i32(failed)
        for i in range(n):
            for j in range(n):
                target[i * n + j] = T(0)
            for j in range(i + 1):
                target[i * n + j] = rows[j * wide + i]
