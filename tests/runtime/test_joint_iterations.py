"""Iterations that go through the loops inside them together: the same bits, and where they may."""

import numpy as np
import pytest

import treadle as td
from treadle.core.switches import disabled


def product(a, b):
    c = td.zeros([a.shape[0], b.shape[1]], a.dtype)
    for i in td.range(a.shape[0]):
        for j in td.range(b.shape[1]):
            s = 0.0 * a[0, 0]
            for k in td.range(a.shape[1]):
                s = s + a[i, k] * b[k, j]
            c[i, j] = s
    return c


def convolution(a, b):
    """Two loops inside, with a product before them that is added behind them."""
    n, m = a.shape[0] - b.shape[0] + 1, a.shape[1] - b.shape[1] + 1
    c = td.zeros([n, m], a.dtype)
    for i in td.range(n):
        for j in td.range(m):
            corner = a[i, j] * a[i, j]
            s = 0.0 * a[0, 0]
            for k in td.range(b.shape[0]):
                for q in td.range(b.shape[1]):
                    s = s + a[i + k, j + q] * b[k, q]
            c[i, j] = s + corner
    return c


def two_sums(a, b):
    """Two sums and the largest number of each row, which go to two arrays."""
    c = td.zeros([a.shape[0]], a.dtype)
    d = td.zeros([a.shape[0]], a.dtype)
    for i in td.range(a.shape[0]):
        s, t, most = 0.0 * a[0, 0], 1.0 + 0.0 * a[0, 0], a[i, 0]
        for k in td.range(a.shape[1]):
            s = s + a[i, k]
            t = t - a[i, k] * b[0, 0]
            most = td.maximum(most, a[i, k])
        c[i] = s * most
        d[i] = t
    return c, d


def in_place(a, b):
    """Each element of the result is read and written in every iteration of the loop inside."""
    c = td.zeros([a.shape[0], b.shape[1]], a.dtype)
    for i in td.range(a.shape[0]):
        for j in td.range(b.shape[1]):
            for k in td.range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def neighbours(a, b):
    """Elements that the iteration before has stored are read, too."""
    c = td.zeros([a.shape[0] + 1], a.dtype)
    for i in td.range(a.shape[0]):
        s = c[i + 1]
        for k in td.range(a.shape[1]):
            s = s + a[i, k] * c[i]
        c[i + 1] = s + 1.0
    return c


def own_and_first(a, b):
    """Elements of its own and one of another iteration."""
    c = td.ones([a.shape[0]], a.dtype)
    for i in td.range(a.shape[0]):
        s = c[i] + c[0]
        for k in td.range(a.shape[1]):
            s = s + a[i, k]
        c[i] = s
    return c


def triangle(a, b):
    """The loop inside ends elsewhere in each iteration."""
    c = td.zeros([a.shape[0]], a.dtype)
    for i in td.range(a.shape[0]):
        s = 0.0 * a[0, 0]
        for k in td.range(i):
            s = s + a[i, k]
        c[i] = s
    return c


def solution(a, b):
    """Each iteration reads what those before it have stored."""
    x = td.zeros([a.shape[0]], a.dtype)
    for i in td.range(a.shape[0]):
        s = 1.0 + 0.0 * a[0, 0]
        for k in td.range(a.shape[1]):
            s = s - a[i, k] * x[k]
        x[i] = s
    return x


def crossing(a, b):
    """Iterations store into each other's elements."""
    c = td.zeros([a.shape[0], a.shape[0]], a.dtype)
    for i in td.range(a.shape[0]):
        s = 0.0 * a[0, 0]
        for k in td.range(a.shape[1]):
            s = s + a[i, k]
        c[i, 1] = s
        c[2, i] = -s
    return c


def backwards(a, b):
    """Positions that are not the counter."""
    c = td.zeros([a.shape[0]], a.dtype)
    for i in td.range(a.shape[0]):
        s = 0.0 * a[0, 0]
        for k in td.range(a.shape[1]):
            s = s + a[i, k]
        c[a.shape[0] - 1 - i] = s
    return c


def arrays(n, m, p, dtype=np.float64):
    rng = np.random.default_rng(n)
    return rng.standard_normal((n, m)).astype(dtype), rng.standard_normal((m, p)).astype(dtype)


def both_ways(program, *args):
    """What a program gives with iterations together and with one after another, and whether some
    go together."""
    together = td.function(program)
    found = [np.asarray(v) for v in td.nest.flatten(together(*args))]
    with disabled("joint"):
        wanted = td.nest.flatten(td.function(program)(*args))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.view(np.uint8), np.asarray(other).view(np.uint8))
    return found, "ssub.sat" in td.inspect.stages(together, *args)["llvm"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 16, 27])
def test_sums_side_by_side_have_the_bits_of_sums_one_by_one(columns, dtype):
    a, b = arrays(3, 11, columns, dtype)
    (found,), together = both_ways(product, a, b)
    assert together == (columns >= 8)
    np.testing.assert_allclose(found, a @ b, rtol=1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("program", [convolution, two_sums])
def test_loops_in_loops_and_several_sums(program):
    a, b = arrays(19, 21, 3)
    _, together = both_ways(program, a, b[:4])
    assert together


@pytest.mark.parametrize(
    "program", [triangle, solution, crossing, backwards, neighbours, own_and_first]
)
def test_iterations_that_need_each_other_or_end_elsewhere_go_one_by_one(program):
    _, together = both_ways(program, *arrays(17, 17, 3))
    assert not together


def begun(a, b):
    """Sums that begin with what the array holds."""
    c = td.zeros([a.shape[0], b.shape[1]], a.dtype)
    for i in td.range(a.shape[0]):
        for j in td.range(b.shape[1]):
            s = c[i, j]
            for k in td.range(a.shape[1]):
                s = s + a[i, k] * b[k, j]
            c[i, j] = s
    return c


def sums_of_rows(a):
    """Of sizes that only a call knows."""
    c = td.zeros_like(a[:, 0])
    for i in td.range(td.shape(a)[0]):
        s = td.zeros([], a.dtype)
        for k in td.range(td.shape(a)[1]):
            s = s + a[i, k]
        c[i] = s
    return c


def test_sizes_that_only_a_call_knows():
    spec = td.TensorSpec([None, None], td.float64)
    program = td.function(sums_of_rows, input_signature=[spec])
    text = td.inspect.stages(program, spec)["llvm"]
    with disabled("joint"):
        other = td.function(sums_of_rows, input_signature=[spec])
        for sizes in ((2, 3), (4, 1), (8, 5), (16, 2), (33, 4), (0, 7)):
            (a, _) = arrays(*sizes, 1)
            np.testing.assert_array_equal(program(a), other(a))
    assert "ssub.sat" in text


def taken(a, places, steps):
    """Positions that have to be checked: those of the loop inside begin where an argument says, and
    go steps that another one says."""
    c = td.zeros([places.shape[0]], a.dtype)
    for i in td.range(places.shape[0]):
        s = 0.0 * a[0]
        for k in td.range(10):
            s = s + a[places[i] + k * steps]
        c[i] = s
    return c


def shared(a, place, steps):
    """The same for all iterations."""
    c = td.zeros([19], a.dtype)
    for i in td.range(19):
        s = c[i]
        for k in td.range(10):
            s = s + a[place + k * steps] * a[i]
        c[i] = s
    return c


@pytest.mark.parametrize(("place", "step"), [(0, 1), (39, -1), (3, 4), (-1, -1), (-10, 1), (0, 0)])
def test_positions_are_checked_before_the_loop_inside(place, step):
    a = np.random.default_rng(0).standard_normal(40)
    args = a, np.int32(place), np.int32(step)
    (found,), together = both_ways(shared, *args)
    assert together
    wanted = sum(a[place + k * step] for k in range(10)) * a[:19]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    places = (place + np.zeros(19)).astype(np.int32)
    (found,), _ = both_ways(taken, a, places, np.int32(step))
    np.testing.assert_allclose(found, wanted / a[:19], rtol=1e-12)


@pytest.mark.parametrize(("place", "step"), [(31, 1), (-41, 1), (3, 5), (5, -6)])
def test_a_position_outside_raises_as_one_by_one(place, step):
    args = np.arange(40.0), np.int32(place), np.int32(step)
    with pytest.raises(td.errors.InvalidArgumentError) as caught:
        td.function(shared)(*args)
    with disabled("joint"), pytest.raises(td.errors.InvalidArgumentError) as alone:
        td.function(shared)(*args)
    assert str(caught.value) == str(alone.value)
    places = np.zeros(19, np.int32)
    places[13] = place
    with pytest.raises(td.errors.InvalidArgumentError) as caught:
        td.function(taken)(args[0], places, args[2])
    with disabled("joint"), pytest.raises(td.errors.InvalidArgumentError) as alone:
        td.function(taken)(args[0], places, args[2])
    assert str(caught.value) == str(alone.value)


def any_product(a, b):
    """The sizes of both matrices are not known to be alike: positions are compared."""
    c = td.zeros_like(td.matmul(a, b))
    for i in td.range(td.shape(a)[0]):
        for j in td.range(td.shape(b)[1]):
            s = td.zeros([], a.dtype)
            for k in td.range(td.shape(a)[1]):
                s = s + a[i, k] * b[k, j]
            c[i, j] = s
    return c


def test_positions_of_sizes_that_only_a_call_knows():
    spec = td.TensorSpec([None, None], td.float64)
    program = td.function(any_product, input_signature=[spec, spec])
    assert "ssub.sat" in td.inspect.stages(program, spec, spec)["llvm"]
    with disabled("joint"):
        other = td.function(any_product, input_signature=[spec, spec])
        for sizes in ((2, 3, 5), (4, 0, 9), (1, 5, 8), (0, 2, 16), (3, 4, 33)):
            a, b = arrays(*sizes)
            np.testing.assert_array_equal(program(a, b), other(a, b))


@pytest.mark.parametrize("program", [in_place, begun])
def test_elements_that_an_iteration_reads_and_writes_itself(program):
    a, b = arrays(3, 7, 21)
    (found,), together = both_ways(program, a, b)
    assert together
    np.testing.assert_allclose(found, a @ b, rtol=1e-12)


def test_long_loops_inside_are_done_in_strips():
    a, b = arrays(9, 40_000, 1)
    _, together = both_ways(two_sums, a, b)
    assert together
