"""Loops whose iterations leave one another's elements alone are done at once."""

import tracemalloc

import numpy as np
import pytest

import treadle as td
from tests.graph.passes.random_row_loops import difference
from treadle.autograph.operators import python_loops
from treadle.core.switches import disabled


def loops_in(function, *args):
    """The loops that are left in the graph of a function."""
    return td.inspect.stages(function, *args)["graph after passes"].count("= while(")


# -- done at once --------------------------------------------------------------------------------


def orthogonalise(a, q):
    n = a.shape[1]
    for k in range(n):
        q[:, k] = a[:, k] / np.sqrt(np.sum(a[:, k] * a[:, k]))
        for j in range(k + 1, n):
            a[:, j] -= q[:, k] * np.sum(q[:, k] * a[:, j])


def orthogonalise_in_place(a, q):
    n = a.shape[1]
    for k in range(n):
        a[:, k] = a[:, k] / np.sqrt(np.sum(a[:, k] * a[:, k]))
        for j in range(k + 1, n):
            q[k, j] = np.sum(a[:, k] * a[:, j])
            a[:, j] -= a[:, k] * q[k, j]


def symmetric(a, q):
    n = a.shape[1]
    for i in range(n - 1):
        for j in range(i + 1, n):
            a[i, j] = np.sum(q[:, i] * q[:, j])
            a[j, i] = a[i, j]


def factorise(a, q):
    n = a.shape[0]
    for k in range(n - 1):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]


def functions_of_the_counter(a, q):
    for i in range(a.shape[0]):
        near = np.exp(-0.1 * (i - 3) ** 2)
        a[i] += near * (q[2] - a[i])


def exchanged_rows(a, q):
    for i in range(a.shape[0]):
        t = a[i] * 2.0
        a[i] = q[i] - 1.0
        q[i] = t + a[i] * i


def every_second(a, q):
    for i in range(1, a.shape[0] - 1, 2):
        a[i] = np.where(q[i] > 0, q[i - 1], q[i + 1]) / (i + 1)


def downwards(a, q):
    for i in range(a.shape[0] - 1, 0, -1):
        a[i] = np.sqrt(np.abs(q[i - 1])) - i * a[0]


def the_same_for_all(a, q):
    for i in range(a.shape[1]):
        a[1:, i] = q[0, 0]


def rows_of_columns(a, q):
    for i in range(a.shape[0]):
        a[i] = q[:, 2] * i + a[i, 1]


def softmax(a, q):
    for i in range(a.shape[0]):
        row = np.exp(q[i] - np.max(q[i]))
        a[i] = row / np.sum(row)


def means(a, q):
    for i in range(a.shape[0]):
        a[i, 0] = np.sum(q[i] * q[1])


def nested(a, q):
    for i in range(a.shape[0]):
        for j in range(a.shape[1] - 1):
            a[i, j] = np.exp(q[i, j + 1] * j)


def images(a, q):
    x, y = a.reshape(2, 4, 8), q.reshape(2, 4, 8)
    for i in range(4):
        x[:, i, 1:-1] = y[:, i, 2:] - y[:, 3, :-2] * i


AT_ONCE = [
    functions_of_the_counter, exchanged_rows, every_second, downwards, the_same_for_all,
    rows_of_columns, softmax, means, nested, images,
]  # fmt: skip


@pytest.mark.parametrize("function", AT_ONCE, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", ["f8", "f4"])
def test_loops_are_done_at_once(function, kind):
    found = check(function, kind)
    assert loops_in(td.jit(function), *found) == 0


@pytest.mark.parametrize("function", [orthogonalise, orthogonalise_in_place, symmetric, factorise])
def test_inner_loops_are_done_at_once(function):
    found = check(function, "f8")
    assert loops_in(td.jit(function), *found) == 1


def arrays(kind):
    numbers = np.random.default_rng(3)
    return [numbers.normal(size=(8, 8)).astype(kind) for _ in range(2)]


def check(function, kind, given=None):
    """NumPy's values, and the bits of iterations one after the other."""
    given = arrays(kind) if given is None else given
    expected, single, found = ([x.copy() for x in given] for _ in range(3))
    with np.errstate(all="ignore"):
        function(*expected)
    td.jit(function)(*found)
    with disabled("independent_iterations"):
        td.jit(lambda a, q: function(a, q))(*single)
    rtol = 1e-12 if kind == "f8" else 2e-5
    for a, b, c in zip(found, single, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, c, rtol, rtol)
    return given


def test_special_values_are_those_of_iterations():
    a, q = arrays("f8")
    a[2, 3], a[3, 0], q[1, 1], q[5, :] = np.nan, np.inf, -0.0, -np.inf
    for function in (functions_of_the_counter, softmax, every_second, downwards):
        check(function, "f8", [a, q])


# -- one after the other -------------------------------------------------------------------------


def from_the_last(a, q):
    for i in range(1, a.shape[0]):
        a[i] = a[i - 1] * 0.5 + q[i]


def from_the_next(a, q):
    for i in range(a.shape[0] - 1):
        a[i] = a[i + 1] * 0.5 + q[i]


def a_fixed_row_that_is_written(a, q):
    for i in range(a.shape[0]):
        a[i] = a[3] + q[i]


def two_rows(a, q):
    for i in range(a.shape[0] - 1):
        a[i] = q[i] * 2.0
        a[i + 1] = q[i] - 1.0


def the_same_row(a, q):
    for i in range(a.shape[0]):
        a[0] = q[i] * 2.0


def overlapping_parts(a, q):
    for i in range(a.shape[0] - 2):
        a[i : i + 2] = q[i : i + 2] * i


def rows_and_columns_that_cross(a, q):
    for i in range(a.shape[0]):
        a[2, i] = np.sum(q[:, i])
        a[i, 3] = a[2, i]


def diagonals(a, q):
    for i in range(a.shape[0]):
        a[i, i] = np.exp(q[i, i])


def a_sum(a, q):
    s = 0.0
    for i in range(a.shape[0]):
        a[i] = q[i] * s
        s += q[i, 0]


def an_early_end(a, q):
    for i in range(a.shape[0]):
        if q[i, 0] > 0.5:
            break
        a[i] = q[i] + 1.0


def as_long_as_data_say(a, q):
    i = 0
    while i < a.shape[0] and q[i, 0] < 0.5:
        a[i] = q[i] + 1.0
        i += 1


def crossed_rows(a, q):
    for i in range(a.shape[0]):
        a[i] = a[:, i] * 2.0


def whole_arrays(a, q):
    for i in range(a.shape[0]):
        a[i] = np.sum(a) * q[i]


def cheap_numbers(a, q):
    for i in range(a.shape[0]):
        a[i, 0] = q[i, 1] * 2.0


ONE_BY_ONE = [
    from_the_last, from_the_next, a_fixed_row_that_is_written, two_rows, the_same_row,
    overlapping_parts, rows_and_columns_that_cross, diagonals, a_sum, an_early_end,
    as_long_as_data_say, crossed_rows, whole_arrays, cheap_numbers,
]  # fmt: skip


@pytest.mark.parametrize("function", ONE_BY_ONE, ids=lambda f: f.__name__)
def test_what_depends_on_other_iterations_stays_a_loop(function):
    found = check(function, "f8")
    assert loops_in(td.jit(function), *found) == 1


@pytest.mark.parametrize("seed", range(24))
def test_random_loops_over_rows_and_columns(seed):
    assert difference(seed) is None


def test_large_products_of_rows_are_not_kept():
    def distances(x, out):
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                d = x[i] - x[j]
                out[i, j] = np.sum(d * d) + d[0]

    x, out = np.random.default_rng(0).normal(size=(20, 50)), np.zeros((20, 20))
    assert loops_in(td.jit(distances), x, out) == 1  # one array of 20 x 20 x 50 would be made
    td.jit(distances)(x, out)
    d = x[:, None] - x[None]
    np.testing.assert_allclose(out, np.sum(d * d, -1) + d[..., 0], 1e-12, 1e-12)


def test_sums_of_rolled_loops_keep_their_order(monkeypatch):
    monkeypatch.setattr(python_loops, "FEWEST_OPERATIONS", 0)

    def sums(x):
        y = x * 1.0
        for i in range(12):
            y[i] = x[i] * td.reduce_sum(x[i] * x[i])
        return y

    def largest(x):
        y = x * 1
        for i in range(12):
            y[i] = x[i] * td.reduce_max(x[i])
        return y

    x = td.constant(np.random.default_rng(0).normal(size=(12, 100)))
    assert loops_in(td.function(sums), x) == 1
    n = td.constant(np.arange(1200).reshape(12, 100))
    assert loops_in(td.function(largest), n) == 0
    for function, given in ((sums, x), (largest, n)):
        found = td.function(function)(given)
        with disabled("rolled_loops"):
            expected = td.function(lambda x, f=function: f(x))(given)
        np.testing.assert_array_equal(found, expected)


# -- how often ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 70])
def test_any_number_of_iterations(rows):
    numbers = np.random.default_rng(rows)
    given = [numbers.normal(size=(rows, rows)) for _ in range(2)]
    for function in (orthogonalise, softmax) if rows else (orthogonalise,):
        expected, found = ([x.copy() for x in given] for _ in range(2))
        function(*expected)
        td.jit(function)(*found)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, 1e-9, 1e-9)


def test_open_sizes():
    @td.function(input_signature=[td.TensorSpec([None, 3], td.float64)])
    def scaled(x):
        for i in td.range(td.shape(x)[0]):
            x[i] = x[i] * td.cast(i, td.float64)
        return x

    @td.function(input_signature=[td.TensorSpec([None, 3], td.float64)] * 2)
    def scaled_rows_of(x, y):
        for i in td.range(td.shape(x)[0]):
            x[i] = y[i] * td.cast(i, td.float64)
        return x

    assert loops_in(scaled) == 0
    assert loops_in(scaled_rows_of) == 1  # y may have fewer rows, which is asked in each iteration
    for rows in (0, 1, 5):
        y = np.random.default_rng(rows).normal(size=(rows, 3))
        expected = y * np.arange(rows)[:, None]
        np.testing.assert_array_equal(scaled(y), expected)
        np.testing.assert_array_equal(scaled_rows_of(np.zeros((rows, 3)), y), expected)
    with pytest.raises(td.errors.InvalidArgumentError, match="out of range"):
        scaled_rows_of(np.zeros((3, 3)), np.zeros((2, 3)))
    scaled_rows_of(np.zeros((0, 3)), np.zeros((0, 3)))


def test_many_iterations_take_no_more_memory_than_they_fill():
    def decays(x):
        for i in range(x.shape[0]):
            x[i] += np.exp(-1e-6 * i) * np.sin(i)
        return x

    n = 1_000_000
    run, x = td.jit(decays), np.zeros(n)
    run(x)
    i = np.arange(n)
    np.testing.assert_allclose(x, np.exp(-1e-6 * i) * np.sin(i), 1e-12, 1e-13)
    memory = td.inspect.stages(run, x).memory
    assert memory.workspace <= 8 * n
    tracemalloc.start()
    run(x)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_counters_after_the_loop():
    def last(x, n):
        i = 0
        while i < n:
            x[i] = x[i] * 2.0 + i
            i += 1
        return i

    x = np.ones((6, 4))
    assert td.jit(last)(x, 5) == 5
    np.testing.assert_array_equal(x[:, 0], [2, 3, 4, 5, 6, 1])
