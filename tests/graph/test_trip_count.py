import pytest

import treadle as td
from treadle.graph.trip_count import ending_flags, most_iterations


def bound(start, cond, step):
    """What is found for ``while cond(i): i = step(i)``."""
    found = []

    def fn(x, n):
        td.while_loop(
            lambda i, y: cond(i, y, n), lambda i, y: (step(i), y * 2.0), (td.constant(start), x)
        )
        return x

    graph = (
        td.function(fn, autograph=False)
        .get_concrete_function(td.constant(1.0), td.constant(5))
        .graph
    )
    found = [n for n in graph.walk() if n.op.name == "while"]
    return most_iterations(found[0])


@pytest.mark.parametrize(
    ("start", "cond", "step", "expected"),
    [
        (0, lambda i, y, n: i < 10, lambda i: i + 1, 10),
        (0, lambda i, y, n: i < 10, lambda i: i + 3, 4),
        (0, lambda i, y, n: i <= 9, lambda i: 3 + i, 4),
        (10, lambda i, y, n: i > 0, lambda i: i - 2, 5),
        (10, lambda i, y, n: i >= 0, lambda i: i - 2, 6),
        (0, lambda i, y, n: 10 > i, lambda i: i + 1, 10),
        (0, lambda i, y, n: i != 6, lambda i: i + 2, 3),
        (5, lambda i, y, n: i < 3, lambda i: i + 1, 0),
        (0, lambda i, y, n: td.logical_and(i < 7, y < 100.0), lambda i: i + 1, 7),
        (0, lambda i, y, n: td.logical_and(y < 9.0, td.logical_and(i < 7, i < 4)),
         lambda i: i + 1, 4),
        (0, lambda i, y, n: i != 5, lambda i: i + 2, None),
        (0, lambda i, y, n: i < 10, lambda i: i - 1, None),
        (0, lambda i, y, n: i < n, lambda i: i + 1, None),
        (0, lambda i, y, n: i < 10, lambda i: i * 2, None),
        (0, lambda i, y, n: y < 10.0, lambda i: i + 1, None),
        (0, lambda i, y, n: td.logical_or(i < 7, y < 100.0), lambda i: i + 1, None),
    ],
)  # fmt: skip
def test_bounds(start, cond, step, expected):
    assert bound(start, cond, step) == expected


def test_bound_is_exact_by_running():
    for start, limit, step in [(0, 10, 3), (-4, 5, 2), (3, 3, 1), (7, 8, 10)]:
        count, i = 0, start
        while i < limit:
            i, count = i + step, count + 1
        assert bound(start, lambda i, y, n: i < limit, lambda i: i + step) == count


def flags(condition):
    """The variables that end ``while condition(a, b, i)``."""

    def fn(x):
        a, b = td.constant(False), td.constant(False)
        td.while_loop(condition, lambda a, b, i: (x > 3.0, x > 4.0, i + 1), (a, b, td.constant(0)))
        return x

    graph = td.function(fn, autograph=False).get_concrete_function(td.constant(1.0)).graph
    (loop,) = [n for n in graph.walk() if n.op.name == "while"]
    return ending_flags(loop)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (lambda a, b, i: td.logical_not(a), [0]),
        (lambda a, b, i: td.logical_and(td.logical_not(b), i < 9), [1]),
        (lambda a, b, i: td.where(td.logical_not(a), td.logical_not(b), False), [0, 1]),
        (lambda a, b, i: td.logical_and(i < 9, td.logical_not(td.logical_or(b, a))), [1, 0]),
        (lambda a, b, i: td.logical_not(td.where(a, True, b)), [0, 1]),
        (lambda a, b, i: td.logical_not(td.cond(a, lambda: td.constant(True), lambda: b)), [0]),
        (lambda a, b, i: td.logical_or(td.logical_not(a), i < 9), []),
        (lambda a, b, i: td.logical_not(td.logical_and(a, b)), []),
        (lambda a, b, i: i < 9, []),
    ],
)
def test_flags_that_end_a_loop(condition, expected):
    assert flags(condition) == expected
