"""The programs of `part_programs` for Numba: slices where it has a routine, else loops."""

import numpy as np


def cholesky(a):
    n = a.shape[0]
    lower = np.zeros_like(a)
    for j in range(n):
        d = np.sqrt(a[j, j] - np.dot(lower[j, :j], lower[j, :j]))
        lower[j, j] = d
        for i in range(j + 1, n):
            lower[i, j] = (a[i, j] - np.dot(lower[i, :j], lower[j, :j])) / d
    return lower


def cholesky_by_elements(a):
    n = a.shape[0]
    lower = np.zeros_like(a)
    for i in range(n):
        for j in range(i):
            s = a[i, j]
            for k in range(j):
                s -= lower[i, k] * lower[j, k]
            lower[i, j] = s / lower[j, j]
        s = a[i, i]
        for k in range(i):
            s -= lower[i, k] * lower[i, k]
        lower[i, i] = np.sqrt(s)
    return lower


def gauss(a):
    a = a.copy()
    n = a.shape[0]
    for k in range(n - 1):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            f = a[i, k]
            for j in range(k + 1, n):
                a[i, j] -= f * a[k, j]
    return a


def lu_with_pivots(a):
    a = a.copy()
    n = a.shape[0]
    order = np.arange(n).astype(np.int32)
    for k in range(n):
        p = k + np.argmax(np.abs(a[k:, k]))
        for j in range(n):
            t = a[p, j]
            a[p, j] = a[k, j]
            a[k, j] = t
        first = order[p]
        order[p] = order[k]
        order[k] = first
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            f = a[i, k]
            for j in range(k + 1, n):
                a[i, j] -= f * a[k, j]
    return a, order


def forward_solve(a, b):
    n = a.shape[0]
    x = np.zeros_like(b)
    for i in range(n):
        x[i] = (b[i] - np.dot(a[i, :i], x[:i])) / a[i, i]
    return x


def backward_solve(a, b):
    n = a.shape[0]
    x = np.zeros_like(b)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - np.dot(a[i, i + 1 :], x[i + 1 :])) / a[i, i]
    return x


def solve_by_columns(a, b):
    b = b.copy()
    n = a.shape[0]
    for j in range(n):
        b[j] /= a[j, j]
        b[j + 1 :] -= a[j + 1 :, j] * b[j]
    return b


def levinson(r, y):
    n = y.shape[0]
    f = np.zeros(n)
    x = np.zeros(n)
    g = np.zeros(n + 1)
    f[0] = 1 / r[0]
    x[0] = y[0] / r[0]
    for i in range(1, n):
        e = 0.0
        s = 0.0
        for k in range(i):
            e += r[i - k] * f[k]
            s += r[i - k] * x[k]
        for k in range(i):
            g[k] = f[k]
        g[i] = 0.0
        for k in range(i + 1):
            f[k] = (g[k] - e * g[i - k]) / (1 - e * e)
        for k in range(i + 1):
            x[k] += (y[i] - s) * f[i - k]
    return x


def durbin(r):
    n = r.shape[0]
    y = np.zeros_like(r)
    y[0] = -r[0]
    beta = 1.0
    alpha = -r[0]
    for k in range(1, n):
        beta *= 1 - alpha * alpha
        s = r[k]
        for i in range(k):
            s += r[k - 1 - i] * y[i]
        alpha = -s / beta
        y[:k] += alpha * y[:k][::-1].copy()
        y[k] = alpha
    return y


def modified_gram_schmidt(a):
    a = a.copy()
    m, n = a.shape
    r = np.zeros((n, n))
    for k in range(n):
        s = 0.0
        for i in range(m):
            s += a[i, k] * a[i, k]
        r[k, k] = np.sqrt(s)
        a[:, k] /= r[k, k]
        for i in range(m):
            f = a[i, k]
            for j in range(k + 1, n):
                r[k, j] += f * a[i, j]
        for i in range(m):
            f = a[i, k]
            for j in range(k + 1, n):
                a[i, j] -= f * r[k, j]
    return a, r


def householder(a):
    a = a.copy()
    m, n = a.shape
    for k in range(n):
        x = a[k:, k].copy()
        s = np.sqrt(np.sum(x * x))
        if x[0] < 0:
            s = -s
        t = (x[0] + s) / s
        v = x / (x[0] + s)
        v[0] = 1.0
        w = np.zeros(n - k)
        for i in range(m - k):
            f = v[i]
            for j in range(n - k):
                w[j] += f * a[k + i, k + j]
        w *= t
        for i in range(m - k):
            f = v[i]
            for j in range(n - k):
                a[k + i, k + j] -= f * w[j]
    return a


def floyd_warshall(d):
    d = d.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            x = d[i, k]
            for j in range(n):
                d[i, j] = min(d[i, j], x + d[k, j])
    return d


def csr_product(values, columns, starts, x):
    n = starts.shape[0] - 1
    y = np.zeros(n)
    for i in range(n):
        s = 0.0
        for p in range(starts[i], starts[i + 1]):
            s += values[p] * x[columns[p]]
        y[i] = s
    return y


def toeplitz_product(c, x):
    n = x.shape[0]
    y = np.zeros_like(x)
    for i in range(n):
        s = 0.0
        for k in range(i + 1):
            s += c[i - k] * x[k]
        y[i] = s
    return y


def windows(x):
    n = x.shape[0]
    y = np.zeros_like(x)
    for i in range(n):
        a = max(i - 3, 0)
        b = min(i + 2, n)
        m = x[a]
        s = 0.0
        for k in range(a, b):
            s += x[k]
            m = max(m, x[k])
        y[i] = m - s / (b - a)
    return y


def smith_waterman(score):
    n = score.shape[0]
    before = np.zeros(n + 1)
    last = np.zeros(n + 1)
    best = 0.0
    for d in range(1, n + 1):
        here = np.empty(d)
        for i in range(d):
            gap = max(last[i], last[i + 1]) - 1.0
            here[i] = max(max(before[i] + score[d - 1, i], gap), 0.0)
            best = max(best, here[i])
        before = last.copy()
        last[:d] = here
    return best, last
