"""Discrete Fourier transforms of rows whose length is a power of two, by Stockham's algorithm.

Real and imaginary parts lie in arrays of their own. Each stage takes four elements of the row that
are a quarter of it apart, and writes what it makes of them in the order that the next one wants,
so that nothing is put in order at the end; a row goes back and forth between the result and the
workspace. `ops.linalg.fourier.tables` makes the roots of unity, stage by stage.
"""

from __future__ import annotations

from treadle.runtime.routines.language import Apart, Array, T, at, i64, u8, view


def transform(
    xr: Array[T], xi: Array[T], wr: Array[T], wi: Array[T], yr: Array[T], yi: Array[T],
    n: i64, space: Array[u8], first: i64, last: i64,
) -> None:  # fmt: skip
    """Each row of `n` complex numbers transformed, without scaling.

    space: two rows.
    """
    tr = view(space, T)
    ti = at(tr, n)
    for row in range(first, last):
        k = row * n
        in_stages(at(xr, k), at(xi, k), wr, wi, at(yr, k), at(yi, k), tr, ti, n)


def real_transform(
    x: Array[T], wr: Array[T], wi: Array[T], ur: Array[T], ui: Array[T], yr: Array[T],
    yi: Array[T], n: i64, space: Array[u8], first: i64, last: i64,
) -> None:  # fmt: skip
    """The first ``n / 2 + 1`` numbers of the transform of each row of `n` real ones: even and odd
    ones are the parts of a row of half the length, whose transform is taken apart again.

    ur, ui: the first ``n / 2 + 1`` powers of the n-th root of unity. space: six half rows.
    """
    h = n // 2
    tr = view(space, T)
    ti, zr, zi = at(tr, h), at(tr, 2 * h), at(tr, 3 * h)
    fr, fi = at(tr, 4 * h), at(tr, 5 * h)
    for row in range(first, last):
        divide(at(x, row * n), zr, zi, h)
        in_stages(zr, zi, wr, wi, fr, fi, tr, ti, h)
        k = row * (h + 1)
        take_apart(fr, fi, ur, ui, at(yr, k), at(yi, k), h)


def to_real(
    xr: Array[T], xi: Array[T], wr: Array[T], wi: Array[T], ur: Array[T], ui: Array[T],
    y: Array[T], n: i64, space: Array[u8], first: i64, last: i64,
) -> None:  # fmt: skip
    """The inverse of `real_transform`, without scaling."""
    h = n // 2
    tr = view(space, T)
    ti, zr, zi = at(tr, h), at(tr, 2 * h), at(tr, 3 * h)
    fr, fi = at(tr, 4 * h), at(tr, 5 * h)
    for row in range(first, last):
        k = row * (h + 1)
        put_together(at(xr, k), at(xi, k), ur, ui, zr, zi, h)
        # With the parts exchanged the transform is the inverse one.
        in_stages(zi, zr, wr, wi, fi, fr, ti, tr, h)
        join(fr, fi, at(y, row * n), h)


def in_stages(
    xr: Array[T], xi: Array[T], wr: Array[T], wi: Array[T], yr: Array[T], yi: Array[T],
    tr: Array[T], ti: Array[T], n: i64,
) -> None:  # fmt: skip
    """One row from `x` to `y`, by way of `t`."""
    stages = 0
    length = n
    while length > 1:
        length = length // 4
        stages += 1
    if n == 1:
        yr[0] = xr[0]
        yi[0] = xi[0]
    to_result = stages % 2
    length = n
    stride, place = 1, 0
    sr, si = xr, xi
    while length > 1:
        dr, di = tr, ti
        if to_result == 1:
            dr, di = yr, yi
        m = length // 4
        if length == 2:
            halves(sr, si, dr, di, stride)
        else:
            ar, ai = at(wr, place), at(wi, place)
            if stride == 1:
                first_quarters(sr, si, ar, ai, dr, di, m)
            else:
                if stride == 4:
                    second_quarters(sr, si, ar, ai, dr, di, m)
                else:
                    if stride == 16:
                        third_quarters(sr, si, ar, ai, dr, di, m)
                    else:
                        quarters(sr, si, ar, ai, dr, di, m, stride)
        place += 3 * m
        length = m
        stride = stride * 4
        sr, si = dr, di
        to_result = 1 - to_result


def halves(sr: Apart[T], si: Apart[T], dr: Apart[T], di: Apart[T], s: i64) -> None:
    """The last stage where the number of halvings is odd."""
    for q in range(s):
        ar, ai, br, bi = sr[q], si[q], sr[q + s], si[q + s]
        dr[q] = ar + br
        di[q] = ai + bi
        dr[q + s] = ar - br
        di[q + s] = ai - bi


def first_quarters(
    sr: Apart[T], si: Apart[T], wr: Apart[T], wi: Apart[T], dr: Apart[T], di: Apart[T], m: i64
) -> None:
    """The first stage, whose results stand side by side."""
    for p in range(m):
        ar, ai, br, bi = sr[p], si[p], sr[p + m], si[p + m]
        cr, ci, er, ei = sr[p + 2 * m], si[p + 2 * m], sr[p + 3 * m], si[p + 3 * m]
        pr, pi, mr, mi = ar + cr, ai + ci, ar - cr, ai - ci
        qr, qi, jr, ji = br + er, bi + ei, ei - bi, br - er  # j: i times the difference
        dr[4 * p] = pr + qr
        di[4 * p] = pi + qi
        ur, ui = mr - jr, mi - ji
        dr[4 * p + 1] = ur * wr[p] - ui * wi[p]
        di[4 * p + 1] = ur * wi[p] + ui * wr[p]
        vr, vi = pr - qr, pi - qi
        dr[4 * p + 2] = vr * wr[p + m] - vi * wi[p + m]
        di[4 * p + 2] = vr * wi[p + m] + vi * wr[p + m]
        zr, zi = mr + jr, mi + ji
        dr[4 * p + 3] = zr * wr[p + 2 * m] - zi * wi[p + 2 * m]
        di[4 * p + 3] = zr * wi[p + 2 * m] + zi * wr[p + 2 * m]


def second_quarters(
    sr: Apart[T], si: Apart[T], wr: Apart[T], wi: Apart[T], dr: Apart[T], di: Apart[T], m: i64
) -> None:
    """The second stage: four neighbours share their roots."""
    for p in range(m):
        four(sr, si, wr, wi, dr, di, m, p, 4)


def third_quarters(
    sr: Apart[T], si: Apart[T], wr: Apart[T], wi: Apart[T], dr: Apart[T], di: Apart[T], m: i64
) -> None:
    """The third stage: sixteen neighbours share their roots."""
    for p in range(m):
        four(sr, si, wr, wi, dr, di, m, p, 16)


def quarters(
    sr: Apart[T], si: Apart[T], wr: Apart[T], wi: Apart[T], dr: Apart[T], di: Apart[T], m: i64,
    s: i64,
) -> None:  # fmt: skip
    """A later stage: `s` neighbours share their roots."""
    for p in range(m):
        four(sr, si, wr, wi, dr, di, m, p, s)


def four(
    sr: Apart[T], si: Apart[T], wr: Apart[T], wi: Apart[T], dr: Apart[T], di: Apart[T], m: i64,
    p: i64, s: i64,
) -> None:  # fmt: skip
    """The elements that are a quarter apart, from ``p * s`` on."""
    w1r, w1i, w2r, w2i = wr[p], wi[p], wr[p + m], wi[p + m]
    w3r, w3i = wr[p + 2 * m], wi[p + 2 * m]
    x, step, y = p * s, m * s, 4 * p * s
    for q in range(s):
        k = x + q
        ar, ai, br, bi = sr[k], si[k], sr[k + step], si[k + step]
        cr, ci, er, ei = sr[k + 2 * step], si[k + 2 * step], sr[k + 3 * step], si[k + 3 * step]
        pr, pi, mr, mi = ar + cr, ai + ci, ar - cr, ai - ci
        qr, qi, jr, ji = br + er, bi + ei, ei - bi, br - er
        dr[y + q] = pr + qr
        di[y + q] = pi + qi
        ur, ui = mr - jr, mi - ji
        dr[y + q + s] = ur * w1r - ui * w1i
        di[y + q + s] = ur * w1i + ui * w1r
        vr, vi = pr - qr, pi - qi
        dr[y + q + 2 * s] = vr * w2r - vi * w2i
        di[y + q + 2 * s] = vr * w2i + vi * w2r
        zr, zi = mr + jr, mi + ji
        dr[y + q + 3 * s] = zr * w3r - zi * w3i
        di[y + q + 3 * s] = zr * w3i + zi * w3r


def divide(x: Apart[T], zr: Apart[T], zi: Apart[T], h: i64) -> None:
    """Elements with even and with odd numbers."""
    for k in range(h):
        zr[k] = x[2 * k]
        zi[k] = x[2 * k + 1]


def join(zr: Apart[T], zi: Apart[T], x: Apart[T], h: i64) -> None:
    """The inverse of `divide`."""
    for k in range(h):
        x[2 * k] = zr[k]
        x[2 * k + 1] = zi[k]


def take_apart(
    fr: Apart[T], fi: Apart[T], ur: Apart[T], ui: Apart[T], yr: Apart[T], yi: Apart[T], h: i64
) -> None:
    """The transform of a real row from that of its even and odd elements as one."""
    yr[0] = fr[0] + fi[0]
    yi[0] = 0.0
    yr[h] = fr[0] - fi[0]
    yi[h] = 0.0
    for k in range(1, h):
        ar, ai, br, bi = fr[k], fi[k], fr[h - k], fi[h - k]
        er, ei, dr, di = ar + br, ai - bi, ai + bi, br - ar  # twice the even and the odd ones
        yr[k] = (er + (dr * ur[k] - di * ui[k])) * 0.5
        yi[k] = (ei + (dr * ui[k] + di * ur[k])) * 0.5


def put_together(
    xr: Apart[T], xi: Apart[T], ur: Apart[T], ui: Apart[T], zr: Apart[T], zi: Apart[T], h: i64
) -> None:
    """The inverse of `take_apart`, times two; imaginary parts at the ends do not count."""
    zr[0] = xr[0] + xr[h]
    zi[0] = xr[0] - xr[h]
    for k in range(1, h):
        ar, ai, br, bi = xr[k], xi[k], xr[h - k], xi[h - k]
        er, ei, dr, di = ar + br, ai - bi, ar - br, ai + bi
        zr[k] = er - (di * ur[k] - dr * ui[k])
        zi[k] = ei + (dr * ur[k] + di * ui[k])
