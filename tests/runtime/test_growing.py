"""Loop variables that change their size, branches of different sizes, sizes found on the way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from tests.runtime.harness import both, native, trace, trace_like
from treadle.core.spec import TensorSpec
from treadle.ops.control.control_flow import cond, while_loop
from treadle.ops.indexing.updates import set_item

X = np.array([0.5, -1.0, 2.0, 3.0, -0.25, 4.0], np.float32)
MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)


def repeat(count, body, *state):
    """``state = body(i, *state)``, first dims may change."""
    shapes = [td.TensorShape([])]
    for value in state:
        rank = td.convert_to_tensor(value).ndim
        shapes.append(td.TensorShape([None] * rank))
    return while_loop(
        lambda i, *s: i < count,
        lambda i, *s: (i + 1, *body(i, *s)),
        (td.constant(0), *state),
        shape_invariants=tuple(shapes),
    )[1:]


def appended(x):
    return repeat(5, lambda i, a: (td.concat([a, x[i : i + 1]], 0),), x[:1])


def appended_rows(x):
    return repeat(4, lambda i, a: (td.concat([a, x[i][None] * 2.0], 0),), x[:0])


def halved(x):
    return while_loop(
        lambda a: td.shape(a)[0] > 1,
        lambda a: (a[::2] + 1.0,),
        (x,),
        shape_invariants=(td.TensorShape([None]),),
    )


def two_sizes(x):
    def body(i, a, b):
        return td.concat([a, b], 0), td.concat([b, a[:1]], 0)

    return repeat(4, body, x[:2], x[2:3])


def swapped_sizes(x):
    return repeat(3, lambda i, a, b: (b, td.concat([a, b[:1]], 0)), x[:2], x[1:])


def read_while_growing(x):
    def body(i, a, total):
        a = td.concat([a, td.reshape(td.reduce_sum(a), (1,))], 0)
        return a, total + td.reduce_max(a)

    shapes = (td.TensorShape([]), td.TensorShape([None]), td.TensorShape([]))
    return while_loop(
        lambda i, a, t: i < 4,
        lambda i, a, t: (i + 1, *body(i, a, t)),
        (td.constant(0), x, td.constant(0.0)),
        shape_invariants=shapes,
    )[1:]


def matrix_both_ways(x):
    def body(i, a):
        a = td.concat([a, a[:1]], 0)
        return (td.concat([a, a[:, :1]], 1),)

    return repeat(3, body, x)


def nested(x):
    def body(i, a):
        (b,) = repeat(i, lambda j, b: (td.concat([b, a[:1]], 0),), a)
        return (td.concat([b, x[:1]], 0),)

    return repeat(4, body, x[:2])


def kept_for_later(x):
    (a,) = repeat(3, lambda i, a: (td.concat([a, x], 0),), x)
    (b,) = repeat(2, lambda i, b: (b[1:],), a)
    return a, b, td.shape(a)[0], td.reduce_sum(a) * 2.0


def only_the_size(x):
    return td.shape(repeat(4, lambda i, a: (td.concat([a, x], 0),), x)[0])[0]


def updated_and_grown(x):
    def body(i, a):
        a = set_item(a, i, 9.0)
        return (td.concat([a, a[:1]], 0),)

    return repeat(4, body, x)


def filtered_in_a_loop(x):
    return repeat(2, lambda i, a: (td.boolean_mask(a, a > td.cast(i, td.float32)),), x)


def branch_in_a_loop(x):
    def body(i, a):
        return (cond(td.shape(a)[0] > 4, lambda: a[1:], lambda: td.concat([a, a], 0)),)

    return repeat(5, body, x[:3])


def appended_twice(x):
    def body(i, a, total):
        longer = td.concat([a, x[:2], a[:1] * 2.0], 0)
        updated = set_item(longer, i, -1.0)
        return td.concat([updated, updated[1:3]], 0), total + longer[i] + a[0]

    return repeat(4, body, x[:3], td.constant([0.0]))


def old_one_needed(x):
    def body(i, a, b):
        return td.concat([a, x[:1]], 0), td.concat([a, b], 0)

    return repeat(4, body, x[:3], x[:1])


def grown_in_a_loop_in_a_loop(x):
    def body(i, a):
        (b,) = repeat(3, lambda j, b: (td.concat([b, a[:1]], 0),), x[:1])
        return (td.concat([a, b], 0),)

    return repeat(3, body, x[:2])


def no_iteration(x):
    return repeat(0, lambda i, a: (td.concat([a, x], 0),), x[:2])


LOOPS = [
    appended, halved, two_sizes, swapped_sizes, read_while_growing, nested, kept_for_later,
    only_the_size, updated_and_grown, filtered_in_a_loop, branch_in_a_loop, no_iteration,
    appended_twice, old_one_needed, grown_in_a_loop_in_a_loop,
]  # fmt: skip


def is_all_native(executable):
    schedule = executable.stages["schedule"]
    return "python while" not in schedule and "python cond" not in schedule


@pytest.mark.parametrize("fn", LOOPS)
def test_vectors(fn):
    given = X.copy()
    executable = both(trace_like(fn, X), given)
    assert is_all_native(executable), executable.stages["schedule"]
    np.testing.assert_array_equal(given, X)


@pytest.mark.parametrize("fn", [appended_rows, matrix_both_ways])
def test_matrices(fn):
    assert is_all_native(both(trace_like(fn, MATRIX), MATRIX))


@pytest.mark.parametrize("size", [1, 3, 6])
@pytest.mark.parametrize("fn", [halved, two_sizes, nested, kept_for_later, branch_in_a_loop])
def test_symbolic_sizes(fn, size):
    graph = trace(fn, TensorSpec((None,), td.float32))
    both(graph, np.resize(X, size))


@pytest.mark.parametrize("fn", [appended, appended_rows, appended_twice, grown_in_a_loop_in_a_loop])
def test_rows_are_appended_in_place(fn):
    schedule = native(trace_like(fn, MATRIX if fn is appended_rows else X)).stages["schedule"]
    assert "append" in schedule
    assert not any("@b" in s for s in schedule.splitlines() if s.strip().startswith("copy"))


def different_parts(x):
    return cond(x[0] > 0.0, lambda: x[:2] * 2.0, lambda: td.concat([x, x], 0))


def argument_itself(x):
    return cond(x[0] > 0.0, lambda: x, lambda: x[1:]), x + 1.0


def two_results(x):
    a, b = cond(x[0] > 0.0, lambda: (x[:2], x[0]), lambda: (x[1:], x[1]))
    return td.reduce_sum(a) + b, a, td.shape(a)[0]


def nested_branches(x):
    def outer():
        return cond(x[1] > 0.0, lambda: x[:1], lambda: x[:3]) + 1.0

    return cond(x[0] > 0.0, outer, lambda: x)


def updated_afterwards(x):
    y = cond(x[0] > 0.0, lambda: x, lambda: x[1:])
    z = set_item(y, td.cast(x[2], td.int32), 5.0)
    return z, y


def same_value_twice(x):
    def short():
        part = x[:2] + 1.0
        return part, part

    return cond(x[0] > 0.0, short, lambda: (x, x[1:]))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    "fn",
    [different_parts, argument_itself, two_results, nested_branches, updated_afterwards,
     same_value_twice],
)  # fmt: skip
def test_branches(fn, sign):
    executable = both(trace_like(fn, X), X * sign if fn is not updated_afterwards else X)
    assert is_all_native(executable), executable.stages["schedule"]


def test_results_outlive_the_next_call():
    executable = native(trace_like(appended, X))
    (a,) = executable.run([X])
    kept = a.copy()
    (b,) = executable.run([X * 3.0])
    np.testing.assert_array_equal(a, kept)
    assert not np.shares_memory(a, b) and not np.shares_memory(a, X)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.parametrize("fn", [appended, branch_in_a_loop, filtered_in_a_loop, nested])
def test_memory_is_flat(fn):
    x = np.resize(X, 2000)
    executable = native(trace_like(fn, x))

    def calls(count):
        for _ in range(count):
            executable.run([x])

    calls(50)
    before = resident()
    calls(1000)
    assert resident() - before < 2 << 20


def test_a_long_loop_frees_what_its_iterations_made():
    def fn(x):
        def body(i, a, total):
            part = td.boolean_mask(x, x > td.cast(i % 3, td.float32))
            return td.concat([part, a[:1]], 0), total + td.reduce_sum(part)

        return while_loop(
            lambda i, a, t: i < 20000,
            lambda i, a, t: (i + 1, *body(i, a, t)),
            (td.constant(0), x, td.constant(0.0)),
            shape_invariants=(td.TensorShape([]), td.TensorShape([None]), td.TensorShape([])),
        )[1:]

    x = np.resize(X, 1000)
    executable = native(trace_like(fn, x))
    executable.run([x])
    before = resident()
    executable.run([x])
    assert resident() - before < 4 << 20


step = st.sampled_from(["append", "cut", "double", "branch", "add", "update", "reverse"])


@settings(max_examples=20, deadline=None)
@given(steps=st.lists(step, min_size=1, max_size=4), count=st.integers(0, 4))
def test_random_loops(steps, count):
    def fn(x):
        def body(i, a, b):
            for name in steps:
                match name:
                    case "append":
                        a = td.concat([a, b[:1], x[:2]], 0)
                    case "cut":
                        a, b = b[:3], a
                    case "double":
                        b = td.concat([b[:2], b], 0) * 0.5
                    case "branch":
                        a = cond(td.reduce_sum(a) > 0.0, lambda a=a: a[1:], lambda b=b: b)
                    case "add":
                        a = a + td.reduce_sum(b)
                    case "update":
                        a = td.concat([set_item(a, slice(0, 1), b[:1] * 2.0), x[:1]], 0)
                    case "reverse":
                        b = td.reverse(b, [0]) - 1.0
            return td.concat([a, x[:2]], 0), td.concat([b, x[:2]], 0)

        return repeat(count, body, x[:4], x[2:])

    both(trace_like(fn, X), X)
