"""Comprehensions and generator expressions in jitted functions, and lists at computed positions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td

RANDOM = np.random.default_rng(7)
LONG = RANDOM.random(40)
SHORT = RANDOM.random(5)
TABLE = RANDOM.random((30, 3))


def wave(x, y):
    return math.sin(x) * y


def nested(a, b):
    return np.array([[wave(x, y) for x in a] for y in b])


def doubled(a, b):
    return [v * 2 for v in a]


def of_positions(a, b):
    n = len(a)
    values = [a[i] * 2 for i in range(n)]
    total = 0.0
    for i in range(n):
        total += values[i] * values[n - 1 - i]
    return total, len(values), np.sum(values), values[-1], values[3:9], values[5] in values


def reduced(a, b):
    return (
        sum(x * x for x in a), max(x * x for x in a), min(abs(x - 0.5) for x in a),
        any(x > 0.9 for x in a), all(x > -1 for x in a), sum((x for x in a), 1.5),
    )  # fmt: skip


def filtered(a, b):
    large = [x * 2 for x in a if x > 0.5]
    return large, len(large), np.array(large).sum(), [x for x in a if x > 2]


def reduced_with_conditions(a, b):
    total = sum(x for x in a if x > 0.5)
    return total, max(x for x in a if x < 0.5), min([x for x in a if x > 0.2 if x < 0.9])


def pairs(a, b):
    return [(i, a[i]) for i in range(len(a))], np.array([[i, a[i] * 2] for i in range(len(a))])


def two_loops(a, b):
    return [x * y for x in a for y in b], np.array([x + i for i in range(20) for x in b])


def python_stays_python(a, b):
    sizes = [2 for _ in range(20)]
    kept = [i for i in range(5) if i != sizes[0]]
    return np.zeros(sizes[:2]), sum(range(100)), sizes, kept, [0] * 40, max(i for i in range(30))


def changed_later(a, b):
    values = [v + 1 for v in a]
    values[1] = values[2]
    values.append(values[0])
    values.reverse()
    return values, sum(values)


def iterated(a, b):
    values = [v + 1 for v in a]
    total = 0.0
    for v in values:
        total += v
    for i, v in enumerate(values):
        total += i * v
    for v, w in zip(values, a, strict=True):
        total += v * w
    return total, values + values, [1.0 * total] + values, sorted(values)


def rows(a, b):
    made = [TABLE[i] * a[i] for i in range(30)]
    made[3][1] = 5
    return made, np.stack(made), np.stack(made, 1), np.concatenate(made), np.vstack(made)


def joined_rows(a, b):
    made = [TABLE[i : i + 2] * a[i] for i in range(20)]
    flat = [a[:4] * x for x in a]
    return (
        np.concatenate(made), np.concatenate(made, axis=1), np.hstack(made), np.vstack(made),
        np.column_stack(flat), np.hstack(flat), np.mean(flat, axis=0),
    )  # fmt: skip


def of_unlike_elements(a, b):
    return [a[:i].sum() if i else 0 for i in range(len(a))], [b[:i] for i in range(3)]


def parts_of_an_argument(a, b):
    halves = [a[2 * i : 2 * i + 2] for i in range(20)]
    halves[3][0] = -1.0
    return halves[3], a


def conditional_lengths(a, b):
    positive = [i for i in range(len(a)) if a[i] > 0.5]
    return a[positive].sum(), np.array(positive)


ALL = [
    nested, doubled, of_positions, reduced, filtered, reduced_with_conditions, pairs, two_loops,
    python_stays_python, changed_later, iterated, rows, joined_rows, of_unlike_elements,
    parts_of_an_argument, conditional_lengths,
]  # fmt: skip


def assert_alike(found, wanted):
    assert type(found) is type(wanted)
    if isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for x, y in zip(found, wanted, strict=True):
            assert_alike(x, y)
        return
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_results_and_types_are_those_of_python(function):
    jitted = td.jit(function)
    for _ in range(2):
        mine, theirs = (LONG.copy(), SHORT.copy()), (LONG.copy(), SHORT.copy())
        assert_alike(jitted(*mine), function(*theirs))
        assert_alike(mine, theirs)


@pytest.mark.parametrize("function", [nested, doubled, filtered, reduced, two_loops])
def test_long_ones_are_loops_of_the_graph(function):
    def size(n):
        graph = td.jit(function).get_concrete_function(np.ones(n), np.ones(30)).graph
        return len(list(graph.walk()))

    assert size(1000) == size(100)


def scaled(n, a):
    values = [a[i % 5] * i for i in range(n)]
    return np.array(values), len(values), sum(values), [values[i] for i in range(n) if i % 2]


def test_lengths_that_only_the_run_knows():
    jitted = td.jit(scaled)
    for n in (40, 20, 33, 0, 1):
        found, wanted = jitted(n, SHORT), scaled(n, SHORT)
        np.testing.assert_allclose(found[0], wanted[0])
        assert found[1] == wanted[1]
        np.testing.assert_allclose(found[2], wanted[2])
        np.testing.assert_allclose(found[3], wanted[3])
    assert jitted.experimental_get_tracing_count() == 2


def test_largest_of_none_is_an_error():
    jitted = td.jit(lambda a: max(x for x in a if x > 2))
    with pytest.raises(ValueError, match="iterable argument is empty"):
        jitted(LONG)


def test_a_list_of_parts_may_not_be_read_after_a_change():
    def changes(a):
        parts = [a[i] for i in range(len(a))]
        a[0, 0] = 1.0
        return parts[0]

    with pytest.raises(TypeError, match=r"copy\(\)"):
        td.jit(changes)(np.zeros((200, 2)))


# -- lists at positions that only the run knows ---------------------------------------------------


def table_of_numbers(a):
    weights, total = [1, 2.5, 4, 8], 0.0
    for i in range(len(a)):
        total += weights[i % 4] * a[i] + (3, 5)[i % 2]
    return total


def counts(a):
    found = [0] * 5
    for i in range(len(a)):
        found[int(a[i] * 5)] += 1
    return found


def one_of_several_arrays(a):
    arrays = [a[:10], a[10:20], a[20:30]]
    for i in range(30):
        chosen = arrays[i % 3]
        chosen[i % 10] += i
    return arrays[-1].sum()


def table_of_pairs(a):
    steps, place, total = [(0, 1), (1, 0), (-1, 2)], 0, 0.0
    for i in range(len(a)):
        back, forth = steps[i % 3]
        place = (place + back * forth + 1) % len(a)
        total += a[place]
    return total, place


@pytest.mark.parametrize(
    "function", [table_of_numbers, counts, one_of_several_arrays, table_of_pairs]
)
def test_lists_at_computed_positions(function):
    mine, theirs = LONG.copy(), LONG.copy()
    assert_alike(td.jit(function)(mine), function(theirs))
    np.testing.assert_allclose(mine, theirs)


def test_positions_outside_of_a_list():
    def reads(a):
        weights = [1.0, 2.0]
        return weights[int(a[0])]

    def writes(a):
        weights = [1.0, 2.0]
        for x in a:
            weights[int(x)] = 5.0
        return weights

    for function in (reads, writes):
        jitted = td.jit(function)
        assert jitted(np.array([-1.0])) == function(np.array([-1.0]))
        with pytest.raises((IndexError, td.errors.InvalidArgumentError)):
            jitted(np.array([2.0]))


def test_unlike_elements_at_a_computed_position():
    def mixed(a):
        values = [a, 1.0]
        return values[int(a[0])]

    with pytest.raises(TypeError, match="read at a position that only the run knows"):
        td.jit(mixed)(np.zeros(2))


def test_conditions_in_comprehensions_of_two_loops():
    def both(a, n):
        return [(i, j) for i in range(len(a)) for j in range(3) if a[i] > 0.1 * j + n]

    def outer_too(table, n):
        return [2 * v for row in table if row[0] > n for v in row if v > 0.5]

    def known(a, n):
        return [(i, j) for i in range(n) for j in range(i) if (i + j) % 2]

    def unlike(table, n):
        return sum([x for i in range(3) for x in table[i, : i + 1] if x > n])

    for function, array, number in (
        (both, LONG, 0.25), (both, LONG, 9.0), (outer_too, TABLE, 0.5), (known, SHORT, 5),
    ):  # fmt: skip
        assert td.jit(function)(array, number) == function(array, number)
    with pytest.raises(TypeError, match="the inner loops differ in their length"):
        td.jit(unlike)(TABLE, 0.5)
