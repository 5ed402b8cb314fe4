"""What NumPy programs iterate, and Python's objects that they use meanwhile."""

import itertools
import random
from functools import reduce

import numpy as np
import pytest

import treadle as td
from tests.jitted.test_jit import agree

X = np.array([3.0, 1.0, 2.0])
generator = np.random.Generator(np.random.SFC64(0))


def smaller(a, b):
    if a < b:
        return a
    return b


def smaller_pair(a, b):
    i, v = a
    j, w = b
    if v < w:
        return a
    return j, w


def reduced(x):
    return reduce(smaller, x, 100.0), reduce(smaller_pair, zip(range(len(x)), x), (-1, 100.0))


def repeated(x):
    s = 0.0
    for _ in itertools.repeat(None, 3000):
        s += x[0]
    return s


def products(x):
    s = 0.0
    for i, j, k in itertools.product(range(3), range(1, 40), x):
        s += x[i] * j * k
    for i, j in itertools.product(range(3), repeat=2):
        s += x[i] * x[j]
    for i, j in itertools.product([1, 2], x):
        s += i * j
    return s


def positions(x):
    m = np.outer(x, x)
    r = np.zeros_like(m)
    for pos in np.ndindex(m.shape):
        r[pos] = m[pos] + pos[0]
    for pos in np.ndindex(3, 3):
        r[pos] *= 2
    for (i, j), v in np.ndenumerate(m):
        r[i, j] += v * j
    return r


def found_positions(x):
    s = 0.0
    for i, j in zip(*np.where(np.outer(x, x) > 2.0)):
        s += x[i] * x[j]
    k = np.nonzero(x > 1.0)[0]
    for n, i in enumerate(k):
        s += x[i] * n
    for a, b in zip(k, x):
        s += a * b
    return s


def nested_comprehensions(x):
    table = np.array([[v * w for v in x] for w in x])
    flat = np.array([v for row in [x, x] for v in row])
    return table, flat, [(i, j) for i in range(1) for j in range(2) if i == 0]


def set_in_a_loop(x):
    seen = set()
    for _ in range(10):
        seen.add(len(seen) % 4)
    return x + len(seen)


def with_positions_of_parameters(x):
    return x.var(0, None, None, 1), np.std(x, 0, None, None, 1), x.sum(0, None, None)


@pytest.mark.parametrize(
    "program",
    [reduced, repeated, products, positions, found_positions, nested_comprehensions, set_in_a_loop,
     with_positions_of_parameters],
)  # fmt: skip
def test_programs(program):
    agree(program, X, calls=1)


def test_loops_over_products_are_loops_of_the_graph():
    td.jit(products)(X.copy())  # 117 iterations
    assert str(td.jit(products).get_concrete_function(X).graph).count("while") >= 1


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (lambda x: x + generator.random(), "Generator.random"),
        (lambda x: x + len(np.random.bytes(3)), "np.random.bytes"),  # noqa: NPY002
        (lambda x: x + random.betavariate(1.0, 1.0), "random.betavariate"),
    ],
)
def test_draws_are_refused(draw, name):
    with pytest.raises(TypeError, match=f"{name}.* draws its numbers when Python runs"):
        td.jit(draw)(X)


def test_a_list_of_a_length_that_only_the_run_knows():
    def f(x):
        return [v for v in x[x > 1.5]]

    found, wanted = td.jit(f)(X), f(X)
    assert found == wanted and {type(v) for v in found} == {type(v) for v in wanted}


class Recorder:
    def __init__(self):
        self.values, self.kinds, self.count = [], set(), 0

    def note(self, value):
        self.values.append(value)
        self.kinds.add(len(self.kinds))
        self.count += 1


def test_loops_that_change_objects_of_pythons_run_in_python():
    recorder, history = Recorder(), []

    def f(x):
        for i in range(40):
            recorder.note(i)
            history.append(i)
            x = x + 1.0
        return x

    np.testing.assert_array_equal(td.jit(f)(X), X + 40)
    assert recorder.values == history == list(range(40))
    assert (recorder.kinds, recorder.count) == (set(range(40)), 40)


def test_a_loop_of_unknown_length_that_changes_objects_of_pythons_is_refused():
    seen = set()

    def f(x):
        while x[0] < 100:
            seen.add(len(seen))
            x = x * 2
        return x

    with pytest.raises(TypeError, match="A loop changes a set of Python's"):
        td.jit(f)(X)
    assert not seen


def test_assigned_globals_are_refused():
    def f(x):
        global X
        X = x
        return x

    with pytest.raises(TypeError, match=r"assigns the global variable 'X'(.|\n)*test_iteration.py"):
        td.jit(f)(X)


def test_a_range_of_a_float_is_refused():
    @td.jit
    def added(n):
        total = 0
        for i in range(1, n):
            total += i
        return total

    assert [added(n) for n in (5, 7)] == [10, 21]
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        added(2.5)
