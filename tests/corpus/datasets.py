"""Iteration over datasets: a loop of the graph where the function is traced."""

from __future__ import annotations

import treadle as td
from tests.corpus.registry import case, smooth

N = 7


@case((N,), (0,))
def sum_of_range(n):
    s = 0
    for x in td.data.Dataset.range(n, output_type=td.int32):
        s += x
    return s


@case((N,))
def batches_with_a_smaller_last_one(n):
    s = 0
    for b in td.data.Dataset.range(n, output_type=td.int32).batch(3):
        s = s * 10 + td.reduce_sum(b) * td.size(b)
    return s


@case((N, 3), (N, 100))
def first_above(n, limit):
    for x in td.data.Dataset.range(n, output_type=td.int32):
        if x * x > limit:
            return x
    return -1


@case((20, 6))
def skip_and_stop(n, limit):
    s = 0
    for x in td.data.Dataset.range(n, output_type=td.int32):
        if x % 3 == 0:
            continue
        if x > limit:
            break
        s += x
    else:
        s = -1
    return s


@case((N,))
def numbered(n):
    s = 0
    for i, x in enumerate(td.data.Dataset.range(n, n + 4), 2):
        s += td.cast(i * x, td.int32)
    return s


@case((N,))
def side_by_side(n):
    a = td.data.Dataset.range(n, output_type=td.int32)
    s = 0
    for x, (y, z) in zip(a, td.data.Dataset.zip((a.skip(1), a.skip(2)))):
        s += x * y + z
    return s


@case((3, 2))
def epochs(n, repeats):
    s = 0
    for _ in range(repeats):
        for x in td.data.Dataset.range(n, output_type=td.int32):
            s = s * 3 + x
    return s


@case((N, 2))
def mapped_with_what_is_around(n, factor):
    s = 0
    dataset = td.data.Dataset.range(n, output_type=td.int32)
    for x in dataset.map(lambda x: x * factor).filter(lambda x: x > factor):
        s += x
    return s


@case((N,))
def pulled_by_next(n):
    iterator = iter(td.data.Dataset.range(n, output_type=td.int32))
    a = next(iterator)
    s = 0
    while s < 5:
        s += next(iterator)
    return a + s * 10


@case((N,))
def rest_after_break(n):
    iterator = iter(td.data.Dataset.range(n, output_type=td.int32))
    s = 0
    for x in iterator:
        if x > 2:
            break
        s += x
    for x in iterator:
        s = s * 10 + x
    return s


@case((N,))
def windows(n):
    s = 0
    for window in td.data.Dataset.range(n, output_type=td.int32).window(3, drop_remainder=True):
        product = 1
        for x in window:
            product *= x + 1
        s += product
    return s


@case((N, 2))
def reduced(n, factor):
    dataset = td.data.Dataset.range(n, output_type=td.int32)
    return dataset.reduce(0, lambda s, x: s + x * factor)


@case((N,))
def collected(n):
    return [x * 2 for x in td.data.Dataset.range(n, output_type=td.int32) if x % 2 == 1][1]


@case((N,))
def slices(n):
    rows = td.data.Dataset.from_tensor_slices({"a": [1, 2, 3], "b": [[1, 2], [3, 4], [5, 6]]})
    s = n
    for row in rows.repeat(2):
        s += row["a"] * td.reduce_sum(row["b"])
    return s


@case((N,))
def grown(n):
    found = td.zeros([0], td.int32)
    for b in td.data.Dataset.range(n, output_type=td.int32).batch(2):
        found = td.concat([found, b[::-1]], 0)
    return td.reduce_sum(found * td.range(td.size(found)))


@smooth((1.5,))
def loss_over_batches(w):
    loss = 0.0 * w
    rows = td.data.Dataset.from_tensor_slices(td.constant([0.5, 1.0, -2.0], td.float64))
    for x in rows.batch(2):
        loss += td.reduce_sum((x * w - 1.0) ** 2)
    return loss
