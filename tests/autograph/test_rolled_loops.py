"""Loops over Python ranges: rolled and unrolled they give the same bits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
from treadle.autograph.errors import StagingTypeError
from treadle.autograph.operators import python_loops
from treadle.core.switches import disabled

N = 12


@pytest.fixture(autouse=True)
def roll_everything(monkeypatch):
    """Also what is too short to be worth it."""
    monkeypatch.setattr(python_loops, "FEWEST_OPERATIONS", 0)


def loops_of(function, *args):
    return function.get_concrete_function(*args).loops


def both_ways(function, *args):
    """The results rolled and unrolled, which must be the same; gives the rolled function."""
    rolled, unrolled = td.function(function), td.function(function)
    found = rolled(*args)
    with disabled("rolled_loops"):
        wanted = unrolled(*args)
    assert not loops_of(unrolled, *args)
    td.nest.assert_same_structure(found, wanted)
    for a, b in zip(td.nest.flatten(found), td.nest.flatten(wanted), strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        assert np.asarray(a).dtype == np.asarray(b).dtype
    return rolled


def vector(kind="f4"):
    return td.constant(np.random.default_rng(1).normal(size=N).astype(kind))


def matrix(kind="f8"):
    return td.constant(np.random.default_rng(2).normal(size=(N, N)).astype(kind) * 0.3)


# -- what is rolled ------------------------------------------------------------------------------


def decay(v, m):
    for i in range(N):
        v = v * 0.5 + math.sin(i)
    return v


def down_in_steps(v, m):
    for i in range(N - 1, 0, -2):
        v = v * 0.9 + v[i] * i
    return v


def stencil(v, m):
    for _ in range(N):
        m[1:-1, 1:-1] = 0.25 * (m[2:, 1:-1] + m[:-2, 1:-1] + m[1:-1, 2:] + m[1:-1, :-2])
    return m


def recurrence(v, m):
    u = td.zeros_like(v)
    for i in range(1, N - 1):
        u[i] = v[i - 1] + v[i + 1] * i + u[i - 1]
    return u


def factorisation(v, m):
    for i in range(N):
        for j in range(i):
            s = 0.0
            for k in range(j):
                s += m[i, k] * m[j, k]
            m[i, j] = (m[i, j] - s) * 0.5
        m[i, i] = td.sqrt(td.abs(m[i, i])) + 1.0
    return m


def windows(v, m):
    for i in range(2, N - 2):
        v[i] = td.reduce_max(v[i - 2 : i + 3]) - v[-i]
    return v


def carried_numbers(v, m):
    k, p, flag = 0, 1.0, False
    for i in range(N):
        p *= 0.9
        v = v * p + v[k % 7] * (2.0 if flag else 1.0)
        k += 3
        flag = not flag
    return v, k, p, flag, i


def swapped_numbers(v, m):
    a, b = 0, 1
    for _ in range(N):
        a, b = b, a + b
        v = v + a * 1e-3
    return v, a, b


def swapped_tensors(v, m):
    w = v * 2.0
    for i in range(N):
        v, w = w, v * 0.5 + i
    return v, w


def branches_on_the_counter(v, m):
    for i in range(N):
        if i % 3 == 0:
            v = v * 0.5
        elif i > N // 2 and i != 9:
            v = v + i
        else:
            v = td.maximum(v, i / 7)
    return v


def numbers_by_branches(v, m):
    for i in range(N):
        step = 2 if i > 3 else 5
        v = v + min(i, 4) * step - max(i - 6, 0) + abs(i - 5) / 3
    return v


def breaks_and_continues(v, m):
    s = 0.0
    for i in range(N):
        if i % 3 == 1:
            continue
        if i == 10:
            break
        s = s * 1.5 + v[i]
    else:
        s = s + 100.0
    return s, i


def ends_by_a_tensor(v, m):
    s = 0.0
    for i in range(N):
        s = s + v[i] * v[i]
        if s > 2.0:
            break
    else:
        s = s - 1.0
    return s, i


def returns_by_a_tensor(v, m):
    for i in range(N):
        v = v * 1.3
        if td.reduce_max(v) > 5.0:
            return v, i
    return v, -1


def tensor_conditions(v, m):
    best, where = v[0], 0
    for i in range(N):
        if v[i] > best:
            best, where = v[i], i
    return best, where


def helper(x, i):
    return x * i if i > 2 else x + i


def nested_functions(v, m):
    def twice(x):
        return helper(helper(x, 1), 3)

    for i in range(N):
        v = twice(v) * 0.1 + helper(v, i)
    return v


def short_loops_inside(v, m):
    for i in range(N):
        for j in range(3):
            v[i] = v[i] + m[i, j] if False else v[i] * (j + 1)
    return v


def first_iteration_differs(v, m):
    last = None
    for i in range(N):
        v = v + i if last is None else v + last * 0.5
        last = td.reduce_sum(v) * 0.01
    return v, last


def numpy_functions(v, m):
    for i in range(N):
        v = np.tanh(v) + np.sqrt(i) * np.sum(v) * 1e-3
    return v


def matrices(v, m):
    for i in range(N):
        m = m @ m * 0.1 + td.eye(N, dtype=td.float64) * i
    return m


def powers_of_the_counter(v, m):
    for i in range(3, N):
        v = v * 0.5**i + 2**i % 7 + (-1) ** i + divmod(i, 4)[1] + (i << 2 & 12)
    return v


def assigned_inside(v, m):
    for i in range(N):
        part = v * i
        half = i / 2
        v = v + part * 1e-2
    return part, half


def sums_of_sums(v, m):
    total = td.reduce_sum(v) * 0.0
    for i in range(N):
        total = total + td.reduce_sum(td.sin(v * i))
    return total


def sums_of_products(v, m):
    total = m * 0.0
    for i in range(N):
        row = m[i % 3 : i % 3 + 1] * i
        total = total + td.transpose(row) @ row
    return total


ROLLED = [
    decay, down_in_steps, stencil, recurrence, factorisation, windows, carried_numbers,
    swapped_numbers, swapped_tensors, branches_on_the_counter, numbers_by_branches,
    breaks_and_continues, ends_by_a_tensor, returns_by_a_tensor, tensor_conditions,
    nested_functions, short_loops_inside, first_iteration_differs, numpy_functions, matrices,
    powers_of_the_counter, assigned_inside, sums_of_sums, sums_of_products,
]  # fmt: skip


@pytest.mark.parametrize("function", ROLLED, ids=lambda f: f.__name__)
def test_rolled_loops_give_the_same_bits(function):
    args = vector(), matrix()
    rolled = both_ways(function, *args)
    assert any(n.rolled for n in loops_of(rolled, *args)), rolled.explain()
    assert len(list(rolled.get_concrete_function(*args).graph.walk())) < 150


@pytest.mark.parametrize("function", [decay, recurrence, factorisation, stencil, carried_numbers])
def test_gradients_of_rolled_loops(function):
    v, m = vector("f8"), matrix()

    def loss(v, m):
        with td.GradientTape() as tape:
            tape.watch([v, m])
            results = td.nest.flatten(function(td.identity(v), td.identity(m)))
            total = td.reduce_sum(results[0] * results[0])
        return tape.gradient(total, [v, m], unconnected_gradients="zero")

    found = td.function(loss)(v, m)
    with disabled("rolled_loops"):
        wanted = td.function(loss)(v, m)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-12)


def test_tapes_around_and_inside():
    w = td.Variable(np.ones(3, "f4"))

    @td.function
    def train(x):
        for _ in range(20):
            with td.GradientTape() as tape:
                loss = td.reduce_sum((w * x - 1.0) ** 2)
            w.assign_sub(0.01 * tape.gradient(loss, w))
        return loss

    x = td.constant([1.0, 2.0, 3.0])
    last = train(x)
    assert loops_of(train, x)[0].rolled
    value, lr = np.ones(3, "f4"), np.float32(0.01)
    for _ in range(20):
        wanted = np.sum((value * x.numpy() - 1) ** 2)
        value = value - lr * (2 * (value * x.numpy() - 1) * x.numpy())
    np.testing.assert_allclose(w.numpy(), value, rtol=1e-5)
    np.testing.assert_allclose(last.numpy(), wanted, rtol=1e-4)

    @td.function
    def power(x):
        for _ in range(10):
            x = x * x * 0.9
        return x

    with td.GradientTape() as tape:
        tape.watch(x)
        y = power(x * 0.5)
    slope = tape.gradient(y, x).numpy()
    eps = 1e-3
    near = (power((x + eps) * 0.5) - power((x - eps) * 0.5)).numpy() / (2 * eps)
    np.testing.assert_allclose(slope[:1], near[:1], rtol=1e-2, atol=1e-6)


def test_layers_in_the_body_are_built_by_the_first_iteration():
    dense = td.keras.layers.Dense(4)

    @td.function
    def f(x):
        for _ in range(8):
            x = td.tanh(dense(x))
        return x

    x = td.ones([2, 4])
    wanted = x
    result = f(x)
    for _ in range(8):
        wanted = td.tanh(dense(wanted))
    np.testing.assert_allclose(result.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-6)
    assert loops_of(f, x)[0].rolled


# -- what is not ---------------------------------------------------------------------------------


LOG: list[int] = []
TABLE = {0: 1.0}
COUNT = 0


class Counter:
    def __init__(self):
        self.count = 0

    def bump(self):
        self.count += 1


COUNTER = Counter()


def appends_to_a_global(v):
    for i in range(N):
        LOG.append(i)
        v = v + 1.0
    return v


def prints(v):
    for i in range(N):
        print("here")
        v = v + 1.0
    return v


def formats(v):
    for i in range(N):
        v = v + float(f"{i}")
    return v


def indexes_a_list(v):
    parts = [v * k for k in range(N)]
    for i in range(N):
        v = v + parts[i]
    return v


def looks_up(v):
    for i in range(N):
        v = v + TABLE.get(i, 0.5)
    return v


def counts_in_an_object(v):
    for i in range(N):
        COUNTER.count += 1
        v = v + COUNTER.count
    return v


def counts_by_a_method(v):
    for i in range(N):
        COUNTER.bump()
        v = v + COUNTER.count
    return v


def counts_in_a_global(v):
    global COUNT
    for i in range(N):
        COUNT += 1
        v = v + COUNT
    return v


def counts_in_a_closure(v):
    count = 0

    def bump():
        nonlocal count
        count += 1
        return count

    for i in range(N):
        v = v + bump()
    return v


def collects(v):
    out = []
    for i in range(N):
        out.append(v * i)
    return out


def fills_a_dict(v):
    found = {}
    for i in range(N):
        found[i] = v[i]
    return found[3]


def grows(v):
    w = v
    for i in range(N):
        w = td.concat([w, v], 0)
    return w


def reads_sizes(v):
    for i in range(1, N):
        part = v[:i]
        v = v + part.shape[0]
    return v


def changes_its_dtype(v):
    w = td.cast(v * 10.0, td.int32)
    for i in range(N):
        w = td.cast(w, td.float32) * 1.5 if i == 6 else w + 1
    return w


def catches(v):
    for i in range(N):
        try:
            v = v + [1.0, 2.0][i]
        except (IndexError, TypeError):
            v = v - 1.0
    return v


def draws(v):
    rng = np.random.default_rng(0)
    for i in range(N):
        v = v + rng.normal()
    return v


def takes_next(v):
    numbers = iter(range(100))
    for i in range(N):
        v = v + next(numbers)
    return v


def objects_by_iteration(v):
    kind = None
    for i in range(N):
        kind = "odd" if i % 2 else "even"
        v = v + len(kind)
    return v


def computes_in_python_only(v):
    total = 0
    for i in range(N):
        total += i * i
    return v * total, {1: total}[1]


def beyond_int64(v):
    k = 3
    for i in range(60):
        k = k * k % 1000003 if i < 3 else k + 2**62
        v = v + (k % 5)
    return v


def types_by_iteration(v):
    for i in range(N):
        k = i if i % 2 else i / 3
        v = v + isinstance(k, int) + k
    return v


UNROLLED = [
    appends_to_a_global, prints, formats, indexes_a_list, looks_up, counts_in_an_object,
    counts_by_a_method, counts_in_a_global, counts_in_a_closure, collects, fills_a_dict, grows,
    reads_sizes, changes_its_dtype, catches, draws, takes_next, objects_by_iteration,
    computes_in_python_only, types_by_iteration,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", UNROLLED, ids=lambda f: f.__name__)
def test_what_must_not_be_rolled_is_unrolled(function, capsys):
    """And Python's effects are those of the iterations one by one."""
    global COUNT
    results = []
    v = vector()
    for off in ((), ("rolled_loops",)):
        LOG.clear()
        COUNT = COUNTER.count = 0
        f = td.function(function)
        with disabled(*off):
            value = f(v)
        effects = [*LOG], COUNT, COUNTER.count, capsys.readouterr().out
        results.append((td.nest.flatten(value), effects))
        notes = loops_of(f, v)
        assert not any(n.rolled for n in notes)
        assert off or all(n.reason for n in notes)
    (a, effects), (b, others) = results
    assert effects == others
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_numbers_beyond_int64_keep_their_values():
    both_ways(beyond_int64, vector())


def test_errors_are_those_of_the_iteration():
    @td.function
    def outside(v):
        for i in range(2 * N):
            v = v + v[i]
        return v

    with pytest.raises(td.errors.InvalidArgumentError, match=f"index {N} is out of range"):
        outside(vector())

    @td.function
    def divides(v):
        for i in range(-3, N):
            v = v + 1 / i
        return v

    with pytest.raises(ZeroDivisionError):
        divides(vector())


def test_variables_are_made_once():
    made = []

    @td.function
    def f(x):
        for i in range(N):
            if not made:
                made.append(td.Variable(2.0))
            x = x * made[0]
        return x

    assert f(td.constant(1.0)).numpy() == 2.0**N
    assert len(made) == 1


# -- reports -------------------------------------------------------------------------------------


def test_reports_say_what_became_of_loops():
    @td.function
    def f(v):
        for i in range(N):
            v = v * 0.5 + i
        for i in range(N):
            v = v + float(f"{i}")
        return v

    v = vector()
    f(v)
    text = str(f.explain())
    assert "is rolled (12 iterations)" in text
    assert "is unrolled (12 iterations): " in text and "text" in text
    first, second = loops_of(f, v)
    assert second.origin.line == first.origin.line + 2
    assert "is rolled" in td.inspect.stages(f, v)["loops"]


def test_short_loops_stay_unrolled(monkeypatch):
    monkeypatch.undo()

    @td.function
    def f(v):
        for _ in range(8):
            v = v * 0.5
        return v

    v = vector()
    f(v)
    assert not loops_of(f, v)
    assert not any(n.op.name == "while" for n in f.get_concrete_function(v).graph.walk())


def test_the_graph_does_not_grow_with_the_number_of_iterations():
    sizes = set()
    for n in (50, 500):

        @td.function
        def f(v):
            s = 0.0
            for i in range(n):
                if i % 2:
                    v = v * 0.5 + i
                s += v[i % N]
            return v, s

        f(vector())
        sizes.add(len(list(f.get_concrete_function(vector()).graph.walk())))
    assert len(sizes) == 1


def shared_after_a_branch(v):
    u = v * 1.0
    for i in range(8):
        v[i] = 5.0 + i
        if v[(i + 1) % 8] > 0:
            u = v
        else:
            v = u
    return u, v


def shared_and_read_first(v):
    u, total = v * 1.0, 0.0
    for i in range(8):
        v[i] = 5.0 + i
        total = total + td.reduce_sum(u)
        u = v
    return u, v, total


@pytest.mark.parametrize("python", [shared_after_a_branch, shared_and_read_first])
def test_tensors_that_an_iteration_leaves_to_two_variables(python):
    """The next one assigns a part of one of them: NumPy would change both."""
    for off in ([], ["rolled_loops"]):
        with disabled(*off), pytest.raises(StagingTypeError, match="'u' shares"):
            td.function(python)(vector())


def test_a_shared_tensor_that_is_not_read_is_rolled():
    def f(v):
        u = v * 1.0
        for i in range(8):
            v[i] = 5.0 + i
            u = v
        return u, v

    rolled = td.function(f)
    for found in rolled(vector()):
        np.testing.assert_array_equal(found[:8], np.arange(8) + 5.0)
    assert any(n.rolled for n in loops_of(rolled, vector()))
