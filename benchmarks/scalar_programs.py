"""Programs that read and write single elements of arrays, in loops over their positions.

Each is written once and runs in treadle and in Numba: a function that takes what differs gives it.

    span(n), span(first, last): the loop, td.range or range
    copy(x): an array that the program may change
    zeros(shape), zeros_like(x): a new array of int32, one like x
"""

# ruff: noqa: SIM102


def gauss_seidel(span, copy, zeros, zeros_like):
    """Sweeps of the five-point stencil, each reading what it has just written."""

    def run(u, sweeps):
        u = copy(u)
        n, m = u.shape
        for _ in span(sweeps):
            for i in span(1, n - 1):
                for j in span(1, m - 1):
                    u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        return u

    return run


def lcs(span, copy, zeros, zeros_like):
    """The table of longest common subsequences."""

    def run(a, b):
        n = a.shape[0]
        m = b.shape[0]
        t = zeros((n + 1, m + 1))
        for i in span(1, n + 1):
            for j in span(1, m + 1):
                if a[i - 1] == b[j - 1]:
                    t[i, j] = t[i - 1, j - 1] + 1
                else:
                    t[i, j] = max(t[i - 1, j], t[i, j - 1])
        return t

    return run


def edit_distance(span, copy, zeros, zeros_like):
    """The table of edit distances."""

    def run(a, b):
        n = a.shape[0]
        m = b.shape[0]
        t = zeros((n + 1, m + 1))
        for i in span(n + 1):
            t[i, 0] = i
        for j in span(m + 1):
            t[0, j] = j
        for i in span(1, n + 1):
            for j in span(1, m + 1):
                best = t[i - 1, j - 1]
                if a[i - 1] != b[j - 1]:
                    best = best + 1
                best = min(best, t[i - 1, j] + 1)
                best = min(best, t[i, j - 1] + 1)
                t[i, j] = best
        return t

    return run


def floyd_warshall(span, copy, zeros, zeros_like):
    """Shortest paths between all pairs."""

    def run(d):
        d = copy(d)
        n = d.shape[0]
        for k in span(n):
            for i in span(n):
                for j in span(n):
                    through = d[i, k] + d[k, j]
                    if through < d[i, j]:
                        d[i, j] = through
        return d

    return run


def mandelbrot(span, copy, zeros, zeros_like):
    """Escape times, point by point."""

    def run(xs, ys, most):
        n = ys.shape[0]
        m = xs.shape[0]
        t = zeros((n, m))
        for i in span(n):
            for j in span(m):
                x = xs[j]
                y = ys[i]
                a = x
                b = y
                k = 0
                while k < most and a * a + b * b <= 4.0:
                    c = a * a - b * b + x
                    b = 2.0 * a * b + y
                    a = c
                    k = k + 1
                t[i, j] = k
        return t

    return run


def histogram(span, copy, zeros, zeros_like):
    """How many numbers in [0, 1) fall into each of 64 bins."""

    def run(x, bins):
        h = zeros(64)
        for i in span(x.shape[0]):
            k = int(x[i] * bins)
            h[k] = h[k] + 1
        return h

    return run


def sparse_product(span, copy, zeros, zeros_like):
    """A matrix in compressed rows by a vector."""

    def run(data, columns, starts, x):
        n = starts.shape[0] - 1
        y = zeros_like(x)
        for i in span(n):
            s = 0.0 * data[0]
            for k in span(starts[i], starts[i + 1]):
                s = s + data[k] * x[columns[k]]
            y[i] = s
        return y

    return run


def prefix_sums(span, copy, zeros, zeros_like):
    """Running sums, in place."""

    def run(x):
        x = copy(x)
        for i in span(1, x.shape[0]):
            x[i] = x[i] + x[i - 1]
        return x

    return run


def game_of_life(span, copy, zeros, zeros_like):
    """Steps of the game of life."""

    def run(g, steps):
        g = copy(g)
        n, m = g.shape
        for _ in span(steps):
            new = zeros_like(g)
            for i in span(1, n - 1):
                for j in span(1, m - 1):
                    s = (
                        g[i - 1, j - 1]
                        + g[i - 1, j]
                        + g[i - 1, j + 1]
                        + g[i, j - 1]
                        + g[i, j + 1]
                        + g[i + 1, j - 1]
                        + g[i + 1, j]
                        + g[i + 1, j + 1]
                    )
                    if s == 3 or (s == 2 and g[i, j] == 1):
                        new[i, j] = 1
            g = new
        return g

    return run


def union_find(span, copy, zeros, zeros_like):
    """How many components are left after joining pairs."""

    def run(a, b, n):
        parent = zeros(20000)
        for i in span(n):
            parent[i] = i
        count = n
        for e in span(a.shape[0]):
            x = a[e]
            while parent[x] != x:
                parent[x] = parent[parent[x]]
                x = parent[x]
            y = b[e]
            while parent[y] != y:
                parent[y] = parent[parent[y]]
                y = parent[y]
            if x != y:
                parent[y] = x
                count = count - 1
        return count

    return run


def sieve(span, copy, zeros, zeros_like):
    """Marks of the composite numbers."""

    def run(marks, n):
        marks = copy(marks)
        i = 2
        while i * i < n:
            if marks[i] == 0:
                j = i * i
                while j < n:
                    marks[j] = 1
                    j = j + i
            i = i + 1
        return marks

    return run


def bubble_sort(span, copy, zeros, zeros_like):
    """Sorting by exchanges of neighbours."""

    def run(x):
        x = copy(x)
        n = x.shape[0]
        for i in span(n):
            for j in span(n - 1 - i):
                if x[j] > x[j + 1]:
                    t = x[j]
                    x[j] = x[j + 1]
                    x[j + 1] = t
        return x

    return run


def matrix_chain(span, copy, zeros, zeros_like):
    """The least costs of products of matrices."""

    def run(p):
        n = p.shape[0] - 1
        m = zeros((n, n))
        for length in span(2, n + 1):
            for i in span(n - length + 1):
                j = i + length - 1
                best = m[i + 1, j] + p[i] * p[i + 1] * p[j + 1]
                for k in span(i + 1, j):
                    cost = m[i, k] + m[k + 1, j] + p[i] * p[k + 1] * p[j + 1]
                    if cost < best:
                        best = cost
                m[i, j] = best
        return m

    return run


def matmul(span, copy, zeros, zeros_like):
    """The product of two square matrices."""

    def run(a, b):
        n, k = a.shape
        m = b.shape[1]
        c = zeros_like(a)
        for i in span(n):
            for j in span(m):
                s = 0.0 * a[0, 0]
                for p in span(k):
                    s = s + a[i, p] * b[p, j]
                c[i, j] = s
        return c

    return run


def knapsack(span, copy, zeros, zeros_like):
    """The best values for every capacity."""

    def run(weights, values, capacity):
        best = zeros(5001)
        for i in span(weights.shape[0]):
            w = weights[i]
            v = values[i]
            c = capacity
            while c >= w:
                best[c] = max(best[c], best[c - w] + v)
                c = c - 1
        return best

    return run


def queens(span, copy, zeros, zeros_like):
    """How many ways n queens have that leave each other alone."""

    def run(n):
        place = zeros(16)
        found = 0
        row = 0
        place[0] = -1
        while row >= 0:
            place[row] = place[row] + 1
            if place[row] >= n:
                row = row - 1
            else:
                good = True
                for k in span(row):
                    d = place[row] - place[k]
                    if d == 0 or d == row - k or d == k - row:
                        good = False
                        break
                if good:
                    if row == n - 1:
                        found = found + 1
                    else:
                        row = row + 1
                        place[row] = -1
        return found

    return run


def elimination(span, copy, zeros, zeros_like):
    """LU factors without pivoting, in place."""

    def run(a):
        a = copy(a)
        n = a.shape[0]
        for k in span(n):
            for i in span(k + 1, n):
                f = a[i, k] / a[k, k]
                a[i, k] = f
                for j in span(k + 1, n):
                    a[i, j] = a[i, j] - f * a[k, j]
        return a

    return run


def thomas(span, copy, zeros, zeros_like):
    """A tridiagonal system."""

    def run(a, b, c, d):
        n = b.shape[0]
        b = copy(b)
        d = copy(d)
        x = zeros_like(d)
        for i in span(1, n):
            w = a[i - 1] / b[i - 1]
            b[i] = b[i] - w * c[i - 1]
            d[i] = d[i] - w * d[i - 1]
        x[n - 1] = d[n - 1] / b[n - 1]
        for k in span(2, n + 1):
            i = n - k
            x[i] = (d[i] - c[i] * x[i + 1]) / b[i]
        return x

    return run


def breadth_first(span, copy, zeros, zeros_like):
    """Distances from one cell of a grid with walls, through a queue."""

    def run(walls, start):
        walls = copy(walls)
        n, m = walls.shape
        queue = zeros(300 * 300)
        distance = zeros((300, 300))
        queue[0] = start
        first = 0
        last = 1
        walls[start // m, start % m] = 1
        while first < last:
            at = queue[first]
            first = first + 1
            i = at // m
            j = at % m
            for k in span(4):
                y = i
                x = j
                if k == 0:
                    y = i - 1
                elif k == 1:
                    y = i + 1
                elif k == 2:
                    x = j - 1
                else:
                    x = j + 1
                if y >= 0 and y < n and x >= 0 and x < m:
                    if walls[y, x] == 0:
                        walls[y, x] = 1
                        distance[y, x] = distance[i, j] + 1
                        queue[last] = y * m + x
                        last = last + 1
        return distance

    return run


def dijkstra(span, copy, zeros, zeros_like):
    """Distances from one node of a dense graph."""

    def run(w, far):
        n = w.shape[0]
        d = copy(w[0])
        done = zeros(300)
        d[0] = 0.0
        for _ in span(n):
            best = far
            u = 0
            for i in span(n):
                if done[i] == 0 and d[i] < best:
                    best = d[i]
                    u = i
            done[u] = 1
            for i in span(n):
                if d[u] + w[u, i] < d[i]:
                    d[i] = d[u] + w[u, i]
        return d

    return run


def collatz(span, copy, zeros, zeros_like):
    """The start below n of the longest Collatz sequence."""

    def run(n):
        best = 0
        where = 0
        for i in span(1, n):
            k = i
            length = 0
            while k != 1:
                if k % 2 == 0:
                    k = k // 2
                else:
                    k = 3 * k + 1
                length = length + 1
            if length > best:
                best = length
                where = i
        return where

    return run


def insertion_sort(span, copy, zeros, zeros_like):
    """Sorting by insertion."""

    def run(x):
        x = copy(x)
        for i in span(1, x.shape[0]):
            v = x[i]
            j = i - 1
            while j >= 0 and x[j] > v:
                x[j + 1] = x[j]
                j = j - 1
            x[j + 1] = v
        return x

    return run


def kadane(span, copy, zeros, zeros_like):
    """The largest sum of neighbouring elements."""

    def run(x):
        best = x[0]
        here = x[0]
        for i in span(1, x.shape[0]):
            here = max(here + x[i], x[i])
            best = max(best, here)
        return best

    return run


def binary_search(span, copy, zeros, zeros_like):
    """The sum of the positions at which numbers belong in a sorted table."""

    def run(table, wanted):
        total = 0
        for q in span(wanted.shape[0]):
            v = wanted[q]
            low = 0
            high = table.shape[0]
            while low < high:
                middle = (low + high) // 2
                if table[middle] < v:
                    low = middle + 1
                else:
                    high = middle
            total = total + low
        return total

    return run
