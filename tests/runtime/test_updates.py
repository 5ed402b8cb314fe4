"""Updates of a part of an array: in place in loops, functional for everybody who looks."""

import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from tests.runtime.harness import both, native, trace_like
from treadle.core import errors
from treadle.ops.control.control_flow import cond, while_loop
from treadle.ops.indexing.updates import set_item
from treadle.runtime import interpreter


def repeat(count, body, *state):
    """``state = body(i, *state)`` for i in range(count)."""
    return while_loop(
        lambda i, *s: i < count, lambda i, *s: (i + 1, *body(i, *s)), (td.constant(0), *state)
    )[1:]


def from_left(x):
    return repeat(5, lambda i, x: (set_item(x, i + 1, x[i] + 1.0),), x)


def rows(x):
    return repeat(5, lambda i, x: (set_item(x, i + 1, x[i] * 0.5 + 1.0),), x)


def columns(x):
    return repeat(3, lambda i, x: (set_item(x, (slice(None), i), x[:, i + 1] * 2.0),), x)


def shifted(x):
    return repeat(3, lambda i, x: (set_item(x, slice(1, None), x[:-1]),), x)


def shifted_back(x):
    return repeat(3, lambda i, x: (set_item(x, slice(None, -1), x[1:] + 1.0),), x)


def reversed_part(x):
    return repeat(3, lambda i, x: (set_item(x, slice(None, None, -2), x[::2]),), x)


def old_is_kept(x):
    def body(i, x, old, total):
        new = set_item(x, i, -1.0)
        return new, x, total + td.reduce_sum(x * new)

    return repeat(4, body, x, x, td.constant(0.0))


def read_after(x):
    """The sum of the old array does not need the new one: it goes first."""

    def body(i, x, total):
        new = set_item(x, i, 7.0)
        return new, total + td.reduce_sum(td.exp(x))

    return repeat(4, body, x, td.constant(0.0))


def depends_on_both(x):
    def body(i, x, total):
        new = set_item(x, i, 7.0)
        return new, total + x[i] * td.reduce_sum(new)

    return repeat(4, body, x, td.constant(0.0))


def view_of_the_old(x):
    def body(i, x, total):
        old = x[1:]
        new = set_item(x, i, 3.0)
        return new, total + new[:-1] * old

    return repeat(4, body, x, td.zeros_like(x[1:]))


def swapped(x):
    return repeat(3, lambda i, a, b: (b, set_item(a, i, b[i] + 1.0)), x, x * 2.0)


def branches(x):
    def body(i, x):
        positive = x[i] > 0.0
        return (cond(positive, lambda: set_item(x, i, 0.0), lambda: x),)

    return repeat(6, body, x)


def branches_both(x):
    def body(i, x):
        kept = cond(x[i] > 0.0, lambda: set_item(x, i, 0.0), lambda: set_item(x, 0, x[i]))
        return (set_item(kept, i, kept[i] + 1.0),)

    return repeat(6, body, x)


def branch_gives_old_and_new(x):
    def body(i, a, b):
        return cond(a[i] > 0.0, lambda: (set_item(b, 0, b[0] + 1.0), b), lambda: (b, b))

    return repeat(4, body, x, x * 2.0)


def branch_gives_two_updates(x):
    def body(i, a, b):
        def both_from(old):
            return set_item(old, i, -1.0), set_item(old, i + 1, -2.0)

        return cond(a[i] > 0.0, lambda: both_from(a), lambda: both_from(b))

    return repeat(4, body, x, x * 2.0)


def branch_exchanges_memory(x):
    def body(i, a, b):
        def then():
            turned = set_item(b, slice(None, None, -1), b)
            return turned, set_item(b, i, turned[0] * 0.5)

        return cond(b[0] > 0.0, then, lambda: (b, set_item(b, 0, b[0] + 1.0)))

    return repeat(3, body, x, x * 2.0)


def first_of_two_is_kept(x):
    def body(i, a, b):
        once = set_item(a, 0, a[0] + 1.0)
        return set_item(once, 0, once[0] + 1.0), once

    return repeat(3, body, x, x)


def branch_reads_more(x):
    def body(i, x):
        return (
            cond(
                x[i] > 0.0,
                lambda: set_item(x * 2.0, i, td.reduce_sum(x)),
                lambda: set_item(x, i, td.reduce_max(x)),
            ),
        )

    return repeat(6, body, x)


def nested(x):
    def body(i, x):
        (x,) = repeat(i + 1, lambda j, x: (set_item(x, j, x[j] + x[i]),), x)
        return (set_item(x, i, 0.5),)

    return repeat(5, body, x)


def nested_and_kept(x):
    def body(i, x, total):
        (y,) = repeat(3, lambda j, x: (set_item(x, j, x[j + 1]),), x)
        return set_item(y, i, total[0]), total + x

    return repeat(4, body, x, x)


def chain(x):
    for k in range(4):
        x = set_item(x, k, x[k + 1] * 2.0)
    return x


def chain_with_results(x):
    a = set_item(x, 0, 1.0)
    b = set_item(a, 1, 2.0)
    c = set_item(b, td.constant(2), 3.0)
    return a, c, td.reduce_sum(b)


def whole_and_part(x):
    def body(i, x):
        x = x * 0.5
        x = set_item(x, i, 1.0)
        return (td.reverse(x, [0]),)

    return repeat(4, body, x)


def one_array_twice(x):
    y = x + 0.0
    return repeat(3, lambda i, a, b: (set_item(a, i, b[i + 1]), set_item(b, i, a[i])), y, y)


def given_to_two_loops(x):
    y = x * 2.0
    (a,) = repeat(3, lambda i, a: (set_item(a, i, 1.0),), y)
    (b,) = repeat(3, lambda i, b: (set_item(b, i, 2.0),), y)
    return a, b, y


def through_reshape(x):
    def body(i, x):
        flat = td.reshape(x, (-1,))
        return (td.reshape(set_item(flat, i + 1, flat[i]), x.shape),)

    return repeat(4, body, x)


def open_slice(x):
    def body(i, x):
        return (set_item(x, slice(i, i + 2), 1.0),)

    return repeat(4, body, x)


def gathered(x):
    index = td.constant([[1], [3], [1]])

    def body(i, x):
        parts = td.gather_nd(x, index) + 1.0
        x = td.tensor_scatter_nd_update(x, index, parts)
        return (td.tensor_scatter_nd_add(x, index + i - i, parts * 0.5),)

    return repeat(4, body, x)


VECTORS = [
    from_left, shifted, shifted_back, reversed_part, old_is_kept, read_after, depends_on_both,
    view_of_the_old, swapped, branches, branches_both, branch_gives_old_and_new,
    branch_gives_two_updates,    branch_reads_more, nested, nested_and_kept,
    chain, chain_with_results, whole_and_part, one_array_twice, given_to_two_loops, through_reshape,
    open_slice, gathered,
    first_of_two_is_kept,
    branch_exchanges_memory,
]  # fmt: skip
X = np.array([0.5, -1.0, 2.0, 3.0, -0.25, 4.0], np.float32)
MATRIX = np.arange(24, dtype=np.float32).reshape(6, 4)


@pytest.mark.parametrize("fn", VECTORS)
def test_vectors(fn):
    graph, given = trace_like(fn, X), X.copy()
    both(graph, given, rtol=1e-6)
    np.testing.assert_array_equal(given, X)


@pytest.mark.parametrize("fn", [rows, columns, shifted, reversed_part, open_slice, gathered])
def test_matrices(fn):
    both(trace_like(fn, MATRIX), MATRIX)


@pytest.mark.parametrize("dtype", ["int32", "bool", "float16", "bfloat16", "float64", "uint8"])
def test_dtypes(dtype):
    x = td.cast(td.constant([3, 0, 1, 1, 0, 2]), dtype).numpy()
    both(trace_like(lambda x: repeat(5, lambda i, x: (set_item(x, i, x[i + 1]),), x), x), x)


def in_loop(executable):
    """The steps inside loops."""
    lines = executable.stages["schedule"].splitlines()
    return [line.strip() for line in lines if line.startswith("  ")]


def copies(steps):
    """Copies of arrays; rank-0 values are stored."""
    return [s for s in steps if s.startswith("copy") and "@" in s]


@pytest.mark.parametrize(
    "fn",
    [from_left, rows, columns, read_after, branches, branches_both, nested, through_reshape,
     shifted, open_slice],
)  # fmt: skip
def test_loops_copy_nothing(fn):
    x = MATRIX if fn in (rows, columns) else X
    steps = in_loop(native(trace_like(fn, x)))
    assert any(s.startswith("kernel") or f" in {memory}" in s for s in steps for memory in "tpo"), (
        steps
    )
    assert not copies(steps), steps


def test_gradient_of_reads_adds_in_place():
    def fn(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            (total,) = repeat(
                5, lambda i, s: (s + x[i] * td.sin(x[i + 1]) * x[i],), td.constant(0.0)
            )
        return tape.gradient(total, x)

    steps = in_loop(both(trace_like(fn, X), X))
    assert sum("index_add" in s for s in steps) == 2
    assert not any(s.startswith(("copy", "kernel")) for s in steps), steps


def test_gradient_of_reads_of_rows_and_slices():
    def fn(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            (total,) = repeat(
                4,
                lambda i, s: (s + td.reduce_sum(x[i] * x[i + 1] + td.gather(x, [1, 1])[0] * x[2]),),
                td.constant(0.0),
            )
        return tape.gradient(total, x)

    both(trace_like(fn, MATRIX), MATRIX)


def test_gradient_of_writes_is_in_place():
    def fn(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            (y,) = from_left(x)
            total = td.reduce_sum(y * y)
        return tape.gradient(total, x)

    executable = both(trace_like(fn, X), X)
    assert not copies(in_loop(executable))


def test_an_accumulator_read_beside_the_sum():
    def fn(x):
        def body(i, acc, seen):
            grown = set_item(acc, i, acc[i] + x[i])
            return grown, seen + td.reduce_sum(acc) * x[i]

        return repeat(5, body, td.zeros_like(x), td.constant(0.0))

    both(trace_like(fn, X), X)


def test_out_of_range_is_refused_with_the_eager_error():
    def fn(x, n):
        return repeat(n, lambda i, x: (set_item(x, i, 1.0),), x)

    executable = native(trace_like(fn, X, np.int32(0)))
    with pytest.raises(errors.InvalidArgumentError, match="index 6 is out of range"):
        executable.run([X, np.int32(9)])
    (found,) = executable.run([X, np.int32(6)])
    np.testing.assert_array_equal(found, np.ones(6, np.float32))


def test_scatter_out_of_range_is_refused():
    def fn(x, at):
        return td.tensor_scatter_nd_update(x + 0.0, at, td.constant([1.0, 2.0]))

    at = np.array([[0], [6]], np.int64)
    executable = native(trace_like(fn, X, at))
    with pytest.raises(errors.InvalidArgumentError, match="index 6 is out of range for a dim of 6"):
        executable.run([X, at])
    found = executable.run([X, at // 2])[0]
    np.testing.assert_array_equal(found[[0, 3]], [1.0, 2.0])


def test_results_do_not_alias_arguments_or_each_other():
    executable = native(trace_like(from_left, X))
    given = X.copy()
    (a,) = executable.run([given])
    (b,) = executable.run([given])
    np.testing.assert_array_equal(a, b)
    assert not np.shares_memory(a, given) and not np.shares_memory(a, b)
    np.testing.assert_array_equal(given, X)


def test_one_array_for_two_arguments():
    def fn(x, y):
        return repeat(4, lambda i, x, y: (set_item(x, i, y[i + 1]), set_item(y, i, x[i])), x, y)

    executable, given = native(trace_like(fn, X, X)), X.copy()
    wanted = executable.run([X.copy(), X.copy()])
    for found, right in zip(executable.run([given, given]), wanted, strict=True):
        np.testing.assert_array_equal(found, right)
    np.testing.assert_array_equal(given, X)


def test_a_variable_keeps_its_value():
    variable = td.Variable(X)

    def fn(x):
        start = variable.read_value() if x is None else variable + 0.0
        (y,) = repeat(3, lambda i, y: (set_item(y, i, x[i] * 9.0),), start)
        z = set_item(variable.read_value(), 0, 5.0)
        return y, set_item(z, 1, 6.0)

    both(trace_like(fn, X), X)
    np.testing.assert_array_equal(variable.numpy(), X)


def test_a_variable_assigned_in_between():
    variable = td.Variable(X)

    def fn(x):
        y = x * 2.0
        variable.assign(y)
        return set_item(set_item(y, 0, 1.0), td.cast(x[3], td.int32), 2.0)

    both(trace_like(fn, X), X)
    np.testing.assert_array_equal(variable.numpy(), X * 2)


def scattered(variable, x):
    index = td.constant([[1], [4], [1]])
    variable.assign(td.tensor_scatter_nd_add(variable.read_value(), index, x[:3]))


def items_assigned(variable, x):
    variable.assign(set_item(variable.read_value(), td.cast(x[3], td.int32), 5.0))


def read_before(variable, x):
    old = variable.read_value()
    variable.assign(set_item(old, 2, x[0]))
    return td.reduce_sum(old * x)


def old_is_returned(variable, x):
    old = variable.read_value()
    variable.assign(set_item(old, 2, x[0]))
    return old


def assigned_in_a_loop(variable, x):
    def body(i):
        variable.assign(set_item(variable.read_value(), i, variable.read_value()[i + 1] + x[i]))
        return (i + 1,)

    while_loop(lambda i: i < 5, body, (td.constant(0),))


def assigned_and_changed(variable, x):
    new = set_item(variable.read_value(), 1, x[0])
    variable.assign(new)
    variable.assign(set_item(variable.read_value(), 2, x[1]))
    return new, set_item(new, 3, x[2])


@pytest.mark.parametrize(
    "fn",
    [scattered, items_assigned, read_before, old_is_returned, assigned_in_a_loop,
     assigned_and_changed],
)  # fmt: skip
def test_parts_of_variables(fn):
    variable = td.Variable(X * 10.0)
    before = variable.read_value()

    def traced(x):
        found = fn(variable, x)
        return variable.read_value() if found is None else found

    executable = both(trace_like(traced, X), X)
    np.testing.assert_array_equal(before.numpy(), X * 10.0)
    copies = [s for s in executable.stages["schedule"].splitlines() if "-> v" in s]
    if fn in (scattered, items_assigned, read_before, assigned_in_a_loop):
        assert not copies, executable.stages["schedule"]


def test_a_failed_call_changes_nothing():
    variable = td.Variable(X)

    def fn(x, n):
        grown = variable.read_value()
        (grown,) = repeat(n, lambda i, x: (set_item(x, i, 1.0),), grown + x)
        variable.assign(set_item(variable.read_value(), n, grown[0]))
        return grown

    executable = native(trace_like(fn, X, np.int32(0)))
    given, before = X.copy(), variable.read_value()
    with pytest.raises(errors.InvalidArgumentError, match="index 6 is out of range"):
        executable.run([given, np.int32(8), variable])
    with pytest.raises(errors.InvalidArgumentError, match="index -7 is out of range"):
        executable.run([given, np.int32(-7), variable])
    np.testing.assert_array_equal(given, X)
    np.testing.assert_array_equal(before.numpy(), variable.numpy())


def test_an_interrupted_loop_changes_nothing():
    """A signal stops a loop of updates; arguments are as before, and later calls are right."""

    def fn(x, n):
        return while_loop(
            lambda i, x: i < n,
            lambda i, x: (i + 1, set_item(x, i % 6, x[(i + 1) % 6] + 1.0)),
            (td.constant(0, td.int64), x),
        )[1]

    executable = native(trace_like(fn, X, np.int64(0)))
    given = X.copy()
    old = signal.signal(signal.SIGALRM, _interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            executable.run([given, np.int64(1 << 60)])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    np.testing.assert_array_equal(given, X)
    (found,) = executable.run([given, np.int64(6)])
    (wanted,) = interpreter.run(executable.graph, [X, np.int64(6)])
    np.testing.assert_array_equal(found, wanted)


def _interrupt(number, frame):
    raise KeyboardInterrupt


def test_any_number_of_threads_gives_the_same_sums():
    from treadle.runtime.cpu.threads import pool

    table = np.random.default_rng(0).standard_normal((50, 33)).astype(np.float32)
    ids = np.random.default_rng(1).integers(0, 50, 4000)

    def fn(table, ids):
        with td.GradientTape() as tape:
            tape.watch(table)
            loss = td.reduce_sum(td.sin(td.gather(table, ids)))
        return tape.gradient(loss, table), td.cumsum(table)

    executable, before = native(trace_like(fn, table, ids)), pool().threads
    try:
        results = []
        for threads in (1, 2, 3):
            pool().set_threads(threads)
            results.append([r.tobytes() for r in executable.run([table, ids])])
    finally:
        pool().set_threads(before)
    assert results[0] == results[1] == results[2]


# -- random programs -----------------------------------------------------------------------------

SIZE = 5
place = st.integers(0, SIZE - 1)
name = st.sampled_from("abc")
statement = st.deferred(
    lambda: st.one_of(
        st.tuples(st.just("item"), name, place, name, place),
        st.tuples(st.just("at i"), name, name, place),
        st.tuples(st.just("slice"), name, st.integers(0, 2), name, st.integers(0, 2)),
        st.tuples(st.just("reverse"), name, name),
        st.tuples(st.just("same"), name, name),
        st.tuples(st.just("sum"), name, name),
        st.tuples(st.just("if"), name, block, block),
        st.tuples(st.just("loop"), block),
    )
)
block = st.lists(statement, min_size=1, max_size=3)


def execute(statements, state, i):
    """Run statements on the arrays a, b, c."""
    for kind, *rest in statements:
        state = dict(state)
        match kind:
            case "item":
                x, k, y, m = rest
                state[x] = set_item(state[x], k, state[y][m] + 1.0)
            case "at i":
                x, y, m = rest
                state[x] = set_item(state[x], i, state[y][m] * 0.5)
            case "slice":
                x, k, y, m = rest
                part = state[y][m : m + 3]
                state[x] = set_item(state[x], slice(k, k + 3), part)
            case "reverse":
                x, y = rest
                state[x] = set_item(state[x], slice(None, None, -1), state[y])
            case "same":
                state[rest[0]] = state[rest[1]]
            case "sum":
                x, y = rest
                state[x] = state[x] * 0.5 + td.reduce_max(state[y]) * 0.25
            case "if":
                x, then, otherwise = rest
                states = [
                    lambda s=s: list(execute(s, state, i).values()) for s in (then, otherwise)
                ]
                values = cond(td.reduce_sum(state[x]) > state[x][0], *states)
                state = dict(zip("abc", values, strict=True))
            case "loop":
                values = repeat(
                    2,
                    lambda j, *v: list(
                        execute(rest[0], dict(zip("abc", v, strict=True)), j).values()
                    ),
                    *state.values(),
                )
                state = dict(zip("abc", values, strict=True))
    return state


def values_after(statements, values, i):
    return list(execute(statements, dict(zip("abc", values, strict=True)), i).values())


@settings(max_examples=30, deadline=None)
@given(statements=st.lists(statement, min_size=1, max_size=5))
def test_random_programs(statements):
    def fn(x):
        state = {"a": x, "b": x * 2.0, "c": td.reverse(x, [0])}
        return repeat(
            3,
            lambda i, *v: values_after(statements, v, i),
            *state.values(),
        )

    x = np.array([0.5, -1.0, 2.0, 3.0, -0.25], np.float32)
    both(trace_like(fn, x), x)
