"""Loops over parts of arrays whose bounds the loops decide, with arguments of size n."""

from collections.abc import Callable
from typing import Any, NamedTuple

import treadle as td
from benchmarks.part_arguments import ARGUMENTS


class Program(NamedTuple):
    function: Callable[..., Any]
    arguments: Callable[[int, Any], tuple[Any, ...]]
    differentiable: bool = True


def cholesky(a):
    n = a.shape[0]
    lower = td.zeros_like(a)
    for j in td.range(n):
        row = td.identity(lower[j, :j])
        d = td.sqrt(a[j, j] - td.tensordot(row, row, 1))
        lower[j, j] = d
        lower[j + 1 :, j] = (a[j + 1 :, j] - td.linalg.matvec(lower[j + 1 :, :j], row)) / d
    return lower


def cholesky_by_elements(a):
    n = a.shape[0]
    lower = td.zeros_like(a)
    for i in td.range(n):
        for j in td.range(i):
            s = td.tensordot(lower[i, :j], lower[j, :j], 1)
            lower[i, j] = (a[i, j] - s) / lower[j, j]
        lower[i, i] = td.sqrt(a[i, i] - td.reduce_sum(lower[i, :i] ** 2))
    return lower


def gauss(a):
    """LU factors in one array, without pivots."""
    n = a.shape[0]
    for k in td.range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k][:, None] * a[k, k + 1 :][None, :]
    return a


def lu_with_pivots(a):
    n = a.shape[0]
    order = td.range(n)
    for k in td.range(n):
        p = k + td.argmax(td.abs(a[k:, k]), output_type=td.int32)
        row = td.identity(a[p])
        a[p] = a[k]
        a[k] = row
        first = td.identity(order[p])
        order[p] = order[k]
        order[k] = first
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k][:, None] * a[k, k + 1 :][None, :]
    return a, order


def forward_solve(a, b):
    n = a.shape[0]
    x = td.zeros_like(b)
    for i in td.range(n):
        x[i] = (b[i] - td.tensordot(a[i, :i], x[:i], 1)) / a[i, i]
    return x


def backward_solve(a, b):
    n = a.shape[0]
    x = td.zeros_like(b)
    for i in td.range(n - 1, -1, -1):
        x[i] = (b[i] - td.tensordot(a[i, i + 1 :], x[i + 1 :], 1)) / a[i, i]
    return x


def solve_by_columns(a, b):
    """b changes its tail: an axpy for each column."""
    n = a.shape[0]
    for j in td.range(n):
        b[j] = b[j] / a[j, j]
        b[j + 1 :] -= a[j + 1 :, j] * b[j]
    return b


def levinson(r, y):
    """Solve a symmetric Toeplitz system."""
    n = y.shape[0]
    f = td.zeros_like(y)
    x = td.zeros_like(y)
    f[0] = 1.0 / r[0]
    x[0] = y[0] / r[0]
    for i in td.range(1, n):
        e = td.reduce_sum(r[i:0:-1] * f[:i])
        g = td.concat([f[:i], td.zeros([1], y.dtype)], 0)
        h = (g - e * g[::-1]) / (1.0 - e * e)
        f[: i + 1] = h
        s = td.reduce_sum(r[i:0:-1] * x[:i])
        x[: i + 1] += (y[i] - s) * h[::-1]
    return x


def durbin(r):
    n = r.shape[0]
    y = td.zeros_like(r)
    y[0] = -r[0]
    beta = td.ones([], r.dtype)
    alpha = -r[0]
    for k in td.range(1, n):
        beta = (1.0 - alpha * alpha) * beta
        alpha = -(r[k] + td.reduce_sum(r[:k][::-1] * y[:k])) / beta
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha
    return y


def gram_schmidt(a):
    """Q and R, column by column, against all columns before at once."""
    n = a.shape[1]
    q = td.zeros_like(a)
    r = td.zeros([n, n], a.dtype)
    for k in td.range(n):
        v = a[:, k]
        c = td.linalg.matvec(q[:, :k], v, transpose_a=True)
        v -= td.linalg.matvec(q[:, :k], c)
        norm = td.sqrt(td.reduce_sum(v * v))
        r[:k, k] = c
        r[k, k] = norm
        q[:, k] = v / norm
    return q, r


def modified_gram_schmidt(a):
    n = a.shape[1]
    r = td.zeros([n, n], a.dtype)
    for k in td.range(n):
        r[k, k] = td.sqrt(td.reduce_sum(a[:, k] ** 2))
        a[:, k] = a[:, k] / r[k, k]
        r[k, k + 1 :] = td.linalg.matvec(a[:, k + 1 :], a[:, k], transpose_a=True)
        a[:, k + 1 :] -= a[:, k][:, None] * r[k, k + 1 :][None, :]
    return a, r


def householder(a):
    """R of a QR factorisation."""
    n = a.shape[1]
    for k in td.range(n):
        x = a[k:, k]
        s = td.sqrt(td.reduce_sum(x * x)) * td.where(x[0] < 0.0, -td.ones_like(x[0]), 1.0)
        v = x / (x[0] + s)
        v[0] = 1.0
        t = (x[0] + s) / s
        w = t * td.linalg.matvec(a[k:, k:], v, transpose_a=True)
        a[k:, k:] -= v[:, None] * w[None, :]
    return a


def floyd_warshall(d):
    n = d.shape[0]
    for k in td.range(n):
        for i in td.range(n):
            d[i, :] = td.minimum(d[i, :], d[i, k] + d[k, :])
    return d


def csr_product(values, columns, starts, x):
    n = starts.shape[0] - 1
    y = td.zeros([n], x.dtype)
    for i in td.range(n):
        a, b = starts[i], starts[i + 1]
        y[i] = td.reduce_sum(values[a:b] * td.gather(x, columns[a:b]))
    return y


def toeplitz_product(c, x):
    n = x.shape[0]
    y = td.zeros_like(x)
    for i in td.range(n):
        y[i] = td.tensordot(c[: i + 1][::-1], x[: i + 1], 1)
    return y


def growing_blocks(a, b):
    """Products of leading blocks, of matrices and vectors."""
    n = a.shape[0]
    total = td.zeros_like(b)
    for k in td.range(1, n + 1):
        c = td.matmul(a[:k, :k], a[:k, :k]) / td.cast(k, a.dtype)
        total[:k] += td.linalg.matvec(c, b[:k])
    return total


def batches(a):
    """Batched products of parts."""
    n = a.shape[1]
    total = td.zeros([a.shape[0], n, n], a.dtype)
    for k in td.range(1, n + 1):
        total[:, :k, :k] += td.matmul(a[:, :k, :], a[:, :k, :], transpose_b=True)
    return total


def windows(x):
    n = x.shape[0]
    y = td.zeros_like(x)
    for i in td.range(n):
        part = x[td.maximum(i - 3, 0) : i + 2]
        y[i] = td.reduce_max(part) - td.reduce_mean(part)
    return y


def columns_of_a_grid(p, v):
    """Borders and columns of a grid, as stencils set them."""
    n = p.shape[1]
    for j in td.range(n):
        p[1:-1, j] = v[1:-1] * td.cast(j, v.dtype)
        p[:, j] += v
    return p


def smith_waterman(score):
    """By diagonals: the best local score that ends at every place of two words."""
    n = score.shape[0]
    before = td.zeros([n + 1], score.dtype)
    last = td.zeros([n + 1], score.dtype)
    best = td.zeros([], score.dtype)
    for d in td.range(1, n + 1):
        gap = td.maximum(last[:d], last[1 : d + 1]) - 1.0
        here = td.maximum(td.maximum(before[:d] + score[d - 1, :d], gap), 0.0)
        before = td.identity(last)
        last[:d] = here
        best = td.maximum(best, td.reduce_max(here))
    return best, last


def attention(q, keys, values):
    """Step by step over keys and values that grow."""
    n = q.shape[0]
    k = keys[:1]
    v = values[:1]
    out = td.zeros_like(values)
    for i in td.range(n):
        weights = td.nn.softmax(td.linalg.matvec(k, q[i]))
        out[i] = td.linalg.matvec(v, weights, transpose_a=True)
        k = td.concat([k, keys[i : i + 1]], 0)
        v = td.concat([v, values[i : i + 1]], 0)
    return out


def running_softmax(x):
    """A reduction and what follows it over a part."""
    n = x.shape[0]
    y = td.zeros([n, n], x.dtype)
    for i in td.range(n):
        y[i, : i + 1] = td.nn.softmax(x[: i + 1])
    return y


PROGRAMS = [
    Program(cholesky, ARGUMENTS["cholesky"]),
    Program(cholesky_by_elements, ARGUMENTS["cholesky_by_elements"]),
    Program(gauss, ARGUMENTS["gauss"]),
    Program(lu_with_pivots, ARGUMENTS["lu_with_pivots"], False),
    Program(forward_solve, ARGUMENTS["forward_solve"]),
    Program(backward_solve, ARGUMENTS["backward_solve"]),
    Program(solve_by_columns, ARGUMENTS["solve_by_columns"]),
    Program(levinson, ARGUMENTS["levinson"]),
    Program(durbin, ARGUMENTS["durbin"]),
    Program(gram_schmidt, ARGUMENTS["gram_schmidt"]),
    Program(modified_gram_schmidt, ARGUMENTS["modified_gram_schmidt"]),
    Program(householder, ARGUMENTS["householder"]),
    Program(floyd_warshall, ARGUMENTS["floyd_warshall"]),
    Program(csr_product, ARGUMENTS["csr_product"]),
    Program(toeplitz_product, ARGUMENTS["toeplitz_product"]),
    Program(growing_blocks, ARGUMENTS["growing_blocks"]),
    Program(batches, ARGUMENTS["batches"]),
    Program(windows, ARGUMENTS["windows"]),
    Program(columns_of_a_grid, ARGUMENTS["columns_of_a_grid"]),
    Program(smith_waterman, ARGUMENTS["smith_waterman"]),
    Program(attention, ARGUMENTS["attention"]),
    Program(running_softmax, ARGUMENTS["running_softmax"]),
]
