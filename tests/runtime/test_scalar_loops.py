"""Loops over single elements: values, memory, errors, gradients, what LLVM gets to see."""

import signal
import threading
import time

import numpy as np
import pytest

import treadle as td
from benchmarks import scalar_programs as programs
from benchmarks.workloads.scalar_loops import ARRAYS, WORKLOADS
from tests.runtime.harness import native, trace_like
from treadle.core import errors
from treadle.core.switches import disabled
from treadle.runtime.cpu.target import host
from treadle.runtime.memory.plan import MemoryPlan

SMALL = {"sieve": 300, "histogram": 300, "prefix sums": 300, "binary search": 300, "collatz": 60,
         "union find": 60, "kadane": 300, "queens": 5}  # fmt: skip


def span(*bounds):
    return range(*map(int, bounds))


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_a_program_gives_what_python_gives(workload):
    arguments = workload.arguments(SMALL.get(workload.name.removeprefix("elements: "), 12))
    copies = [a.copy() for a in arguments]
    want = workload.program(span, *ARRAYS)(*arguments)
    program = workload.program(
        td.range, td.identity, lambda shape: td.zeros(shape, td.int32), td.zeros_like
    )
    got = td.function(program)(*arguments)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    for a, b in zip(arguments, copies, strict=True):
        np.testing.assert_array_equal(a, b)


def schedule_of(fn, *args):
    graph = fn.get_concrete_function(*map(td.constant, args))
    return graph.executable.stages["schedule"].partition("workspace:")[0]


@pytest.mark.parametrize(
    "name", ["gauss_seidel", "edit_distance", "floyd_warshall", "elimination", "breadth_first"]
)
def test_no_row_and_no_array_is_copied_in_a_loop(name):
    workload = next(w for w in WORKLOADS if w.program is getattr(programs, name))
    program = workload.program(
        td.range, td.identity, lambda shape: td.zeros(shape, td.int32), td.zeros_like
    )
    text = schedule_of(td.function(program), *workload.arguments(12))
    _, _, inside = text.partition("loop")
    assert "kernel" not in inside and "python" not in inside
    assert not any(line.startswith(" ") and "copy" in line for line in inside.splitlines())


def test_a_loop_writes_into_the_result():
    @td.function
    def sums(x):
        for i in td.range(1, 50):
            x[i] = x[i] + x[i - 1]
        return x

    x = td.constant(np.arange(50.0))
    assert "in o0" in schedule_of(sums, x)
    np.testing.assert_array_equal(sums(x), np.cumsum(x))
    np.testing.assert_array_equal(x, np.arange(50.0))


# -- positions -----------------------------------------------------------------------------------


@td.function
def read(x, i, j):
    total = x[0, 0]
    for _ in td.range(3):
        total += x[i, j]
    return total


@td.function
def write(x, i, j):
    for k in td.range(3):
        x[i, j + k] = 1.0
    return x


X = np.arange(12.0).reshape(3, 4)


def test_negative_positions_count_from_the_end():
    assert float(read(X, np.int32(-1), np.int32(-4))) == 3 * X[-1, 0]
    want = X.copy()
    want[-3, -4:-1] = 1.0
    np.testing.assert_array_equal(write(td.constant(X), np.int32(-3), np.int32(-4)), want)
    assert float(read(X, np.uint8(2), np.int64(-1))) == 3 * X[2, -1]


@pytest.mark.parametrize("place", [(3, 0), (-4, 0), (0, 4), (0, -5), (2**31 - 1, 0), (0, -(2**31))])
def test_a_read_outside_is_an_error_with_the_line(place):
    i, j = map(np.int32, place)
    with pytest.raises(errors.InvalidArgumentError, match=r"test_scalar_loops\.py.*total \+= x"):
        read(X, i, j)


def test_a_write_outside_is_an_error_and_writes_nothing():
    with pytest.raises(errors.InvalidArgumentError, match="out of range for a dim of 4"):
        write(td.constant(X), np.int32(0), np.int32(2))
    with pytest.raises(errors.InvalidArgumentError, match=r"x\[i, j \+ k\] = 1\.0"):
        write(td.constant(X), np.int32(3), np.int32(0))


@pytest.mark.parametrize("switch", ["elements", "takeovers"])
def test_the_same_without_the_mechanisms(switch):
    def sweep(u):
        for i in td.range(1, 5):
            for j in td.range(1, 6):
                u[i, j] = 0.5 * (u[i - 1, j] + u[i, j - 1])
        return u

    u = td.constant(np.random.default_rng(0).random((6, 7)))
    with disabled(switch):
        want = td.function(sweep)(u).numpy()
    np.testing.assert_array_equal(td.function(sweep)(u), want)


def checks_of(fn, *args):
    text = schedule_of(fn, *args)
    return text.count("check ") + text.count(" inside ")


def test_positions_that_count_are_not_checked():
    @td.function
    def triangle(x):
        x = td.identity(x)
        n = x.shape[0]
        for k in td.range(n):
            for i in td.range(k + 1, n):
                for j in td.range(n - 1 - i):
                    x[i, j + 1] = x[i, j] + x[k, n - 1 - j]
        return x

    @td.function
    def down(x, n):
        x = td.identity(x)
        for i in td.range(1, 7):
            j = i - 1
            while j >= 0 and n > 0:
                x[j] = x[j] + x[j + 1]
                j = j - 1
        return x

    assert checks_of(triangle, np.ones((8, 8))) == 0
    assert checks_of(down, np.ones(7), np.int32(1)) == 0
    assert checks_of(write, td.constant(X), np.int32(0), np.int32(0)) == 2


def test_a_product_that_wraps_around_is_checked():
    """i * i * i is 2**31 and more from 1291 on; what it becomes then is less than the minimum."""

    @td.function
    def cubes(x, n):
        total = x[0]
        for i in td.range(n):
            total += x[td.minimum(i * i * i, 15)]
        return total

    @td.function
    def known(x):
        total = x[0]
        for i in td.range(2000):
            total += x[td.minimum(i * i * i, 15)]
        return total

    x = np.ones(16)
    assert float(cubes(x, 100)) == 101
    with pytest.raises(errors.InvalidArgumentError, match="out of range for a dim of 16"):
        cubes(x, 2000)
    with pytest.raises(errors.InvalidArgumentError, match="out of range for a dim of 16"):
        known(x)


def test_elements_at_known_places_beside_counted_ones():
    @td.function
    def table(n):
        t = td.zeros((5, 6, 2), td.int32)
        for i in td.range(n):
            t[i, 0, 1] = i + 1
            t[0, i, 0] = t[i, 0, 1] * 2
            t[-1, -1, -1] = t[-1, -1, -1] + 1
        return t

    want = np.zeros((5, 6, 2), np.int32)
    for i in range(4):
        want[i, 0, 1] = i + 1
        want[0, i, 0] = want[i, 0, 1] * 2
        want[-1, -1, -1] += 1
    np.testing.assert_array_equal(table(4), want)
    assert schedule_of(table, np.int32(4)).count("element_update in") == 3


def test_the_old_array_is_kept_where_it_is_needed():
    @td.function
    def both(x):
        y = td.identity(x)
        for i in td.range(3):
            y[i, i] = 7.0
        return x, y

    x, y = both(X)
    np.testing.assert_array_equal(x, X)
    want = X.copy()
    want[range(3), range(3)] = 7.0
    np.testing.assert_array_equal(y, want)


# -- strips --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 20_000, 70_000])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_loops_of_any_length(n, dtype):
    @td.function
    def count(n):
        total = td.cast(0, n.dtype)
        for i in td.range(n):
            total += i % 7
        return total

    @td.function
    def down(n):
        total = td.cast(0, n.dtype)
        while n > 0:
            total += n % 7
            n -= 2
        return total

    assert int(count(dtype(n))) == sum(i % 7 for i in range(n))
    assert int(down(dtype(n))) == sum(i % 7 for i in range(n, 0, -2))


def test_a_counter_near_the_largest_number():
    @td.function
    def count(first, last):
        trips = 0
        while first < last:
            first += 1
            trips += 1
        return trips, first

    last = 2**31 - 1
    trips, first = count(np.int32(last - 1000), np.int32(last))
    assert (int(trips), int(first)) == (1000, last)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs pthread_kill")
@pytest.mark.parametrize("counted", [True, False])
def test_ctrl_c_ends_a_strip(counted):
    @td.function
    def forever(n):
        total = 0.0
        if counted:
            for i in td.range(n):
                total = td.sin(total + td.cast(i, td.float32))
        else:
            while n > 0:
                total = td.sin(total + 1.0)
        return total

    forever(np.int64(1) if counted else np.int64(0))
    main = threading.main_thread().ident
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        forever(np.int64(2**40))
    assert time.perf_counter() - start < 30
    timer.join()
    assert float(forever(np.int64(0))) == 0.0


# -- gradients -----------------------------------------------------------------------------------


def test_gradients_of_a_sweep():
    def sweep(u):
        u = td.identity(u)
        for i in td.range(1, 4):
            for j in td.range(1, 4):
                u[i, j] = u[i - 1, j] * u[i, j - 1] + 0.5 * u[i, j]
        return td.reduce_sum(u * u)

    @td.function
    def gradient(u):
        with td.GradientTape() as tape:
            tape.watch(u)
            y = sweep(u)
        return tape.gradient(y, u)

    def value(u):
        u = u.copy()
        for i in range(1, 4):
            for j in range(1, 4):
                u[i, j] = u[i - 1, j] * u[i, j - 1] + 0.5 * u[i, j]
        return (u * u).sum()

    u = np.random.default_rng(1).random((4, 4))
    step, want = 1e-6, np.zeros_like(u)
    for place in np.ndindex(u.shape):
        more, less = u.copy(), u.copy()
        more[place] += step
        less[place] -= step
        want[place] = (value(more) - value(less)) / (2 * step)
    np.testing.assert_allclose(gradient(td.constant(u)), want, rtol=1e-6, atol=1e-8)


# -- scopes --------------------------------------------------------------------------------------


def test_memory_that_is_shared_has_one_scope():
    from treadle.core import dtypes
    from treadle.runtime.cpu.scopes import Scopes
    from treadle.runtime.schedule.steps import Place

    a, b, c, d = (Place("temporary", n, dtypes.float32, (16,)) for n in range(4))
    plan = MemoryPlan(offsets={a: 0, b: 0, c: 64, d: 128})
    scopes = Scopes(plan)
    pair = Place("pair", 2, dtypes.float32, (16,), (c, d))
    assert scopes.of(a) == scopes.of(b) != scopes.of(c)
    assert scopes.of(pair) not in (scopes.of(c), scopes.of(d))
    assert scopes.of(Place("late", 9, dtypes.float32, (16,))) == ""
    lines = dict(line.split(" = ") for line in scopes.lines())
    for text in map(scopes.of, (a, c, pair)):
        own, others = (lines["!" + t.rpartition("!")[2]] for t in text.split(",")[1:])
        assert not set(own[2:-1].split(", ")) & set(others[2:-1].split(", "))


def test_only_programs_with_loops_of_elements_go_through_llvms_passes():
    plain = native(trace_like(lambda x: x * 2.0 + 1.0, X))
    assert not plain.stages["llvm"].startswith(";")
    graph = read.get_concrete_function(td.constant(X), td.constant(0), td.constant(0))
    assert graph.executable.stages["llvm"].startswith("; optimize")


def test_short_loops_begin_with_half_a_cache_line():
    @td.function
    def insert(x):
        for i in td.range(1, 400):
            value = x[i]
            j = i - 1
            while j >= 0 and x[j] > value:
                x[j + 1] = x[j]
                j -= 1
            x[j + 1] = value
        return x

    stages = insert.get_concrete_function(td.constant(np.arange(400.0))).executable.stages
    half = host().tuning.line // 2
    assert f'"llvm.loop.align", i32 {half}' in stages["llvm"]
    if host().is_x86:
        assert f".p2align\t{half.bit_length() - 1}" in stages["assembly"].partition("\nrun:")[2]
