"""Loops that count in steps, or that something else may end: strips without checks and countdown.

Each program runs with the mechanism and without it, and as Python: results, errors and what was
written before an error are the same.
"""

import signal
import threading
import time

import numpy as np
import pytest

import treadle as td
from treadle.core.switches import disabled
from treadle.graph.trip_count import pace
from treadle.ops.control.control_flow import WHILE

X = np.arange(1.0, 41.0)


def first_above(x, n, limit):
    j = 0
    while j < n and x[j] < limit:
        j += 1
    return j


def asked_first(x, n, limit):
    j = 0
    while x[j] < limit and j < n:
        j += 1
    return j


def until_found(x, n, limit):
    for k in range(n):
        if x[k] > limit:
            return k
    return -1


def marked(x, n, step):
    j = step + 1
    while j < n:
        x[j] = -1.0
        j = j + step
    return x


def marked_to(x, n, step):
    j = step
    while n >= j:
        x[j] = -1.0
        j = step + j
    return x


def downwards(x, n, step):
    total = 0.0
    while n > 2:
        total = total * 0.5 + x[n]
        n = n - step
    return total


def downwards_to(x, n, step):
    total = 0.0
    while n >= step and total < 100.0:
        total = total + x[n - step] - x[n]
        n -= 3
    return total


def two_apart(x, n, step):
    j = 0
    while j < n:
        x[j + step] = x[j] + 1.0
        j += 2
    return x


def rebound(x, n, step):
    """The step changes in the loop: it is no even one."""
    j = 0
    while j < n:
        x[j] = -1.0
        j += step
        step = step + 1
    return x


def moving_limit(x, n, step):
    j = 0
    while j < n:
        x[j] = -1.0
        j += step
        n = n - 1
    return x


PROGRAMS = [first_above, asked_first, until_found, marked, marked_to, downwards, downwards_to,
            two_apart, rebound, moving_limit]  # fmt: skip


def outcome(program, *arguments):
    """The result, or that there was an error, and the array as it was left."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    try:
        result = np.array(program(*copies))
    except (IndexError, td.errors.InvalidArgumentError) as error:
        assert "range" in str(error) or "bounds" in str(error)
        result = np.array(np.nan)
    return result, copies[0]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_as_python(program):
    jitted = td.jit(program)
    with disabled("paced"):
        checked = td.jit(program)
        checked(X.copy(), 3, 2)
    for n in (-3, 0, 1, 2, 7, 39, 40, 41, 45):
        for step in (1, 2, 3, 6, 7, 39, 2**21, 2**62):
            wanted, found = outcome(program, X, n, step), outcome(jitted, X, n, step)
            same(found, wanted, f"{n} {step}")
            for a, b in zip(found, outcome(checked, X, n, step), strict=True):
                np.testing.assert_array_equal(a, b)


def same(found, wanted, numbers=""):
    """The same results; where both are errors, arrays may have been left otherwise."""
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12, err_msg=numbers)
    if not np.isnan(wanted[0]).any():
        np.testing.assert_allclose(found[1], wanted[1], rtol=1e-12, err_msg=numbers)


def test_steps_in_the_other_direction():
    """The counter runs away from its limit, out of the array at the other end."""
    for program, n, step in ((marked_to, 30, -1), (downwards, 5, -1)):
        wanted = outcome(program, X, n, step)
        same(outcome(td.jit(program), X, n, step), wanted)
        assert np.isnan(wanted[0])


def test_errors_name_the_line():
    refused = td.errors.InvalidArgumentError
    with pytest.raises(refused, match=r"(?s)test_paced_loops\.py.*x\[j\] < limit"):
        td.jit(first_above)(X, 50, 1e9)
    with pytest.raises(refused, match=r"(?s)test_paced_loops\.py.*x\[k\] > limit"):
        td.jit(until_found)(X, 41, 1e9)


def test_a_loop_that_ends_before_it_leaves_the_array():
    """Not all positions of the strip are inside, but the loop comes to none of the others."""
    assert td.jit(first_above)(X, 10**9, 20.0) == first_above(X, 10**9, 20.0)
    assert td.jit(until_found)(X, 10**9, 20.0) == until_found(X, 10**9, 20.0)


# -- numbers at the ends of their types ----------------------------------------------------------


def test_a_counter_of_32_bits_that_wraps_around():
    """After the last position below the limit the counter wraps around, so the loop goes on."""

    @td.function
    def steps(first, last, step, most):
        trips = 0
        while first < last and trips < most:
            first += step
            trips += 1
        return first, trips

    top = 2**31 - 1
    for first, step, most in ((top - 5, 3, 4), (top - 6, 3, 9), (0, 2**20, 5000), (top - 1, 1, 7)):
        got = steps(np.int32(first), np.int32(top), np.int32(step), np.int32(most))
        with np.errstate(over="ignore"):
            at, trips = np.int32(first), 0
            while at < top and trips < most:
                at, trips = at + np.int32(step), trips + 1
        assert [int(v) for v in got] == [int(at), trips]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_limits_that_are_the_last_number(dtype):
    """``<=`` the largest number and ``>=`` the least one always hold: something else ends."""

    @td.function
    def upwards(x, first, last):
        total = x[0]
        while first <= last and total < 20.0:
            total += x[first % 40]
            first += td.cast(1, first.dtype)
        return total, first

    @td.function
    def downwards(x, first, last):
        total = x[0]
        while first >= last and total < 20.0:
            total += x[first % 40]
            first -= td.cast(1, first.dtype)
        return total, first

    limits = np.iinfo(dtype)
    for f, first, last, by in ((upwards, limits.max - 2, limits.max, 1),
                               (downwards, limits.min + 2, limits.min, -1)):  # fmt: skip
        total, at, trips = X[0], dtype(first), 0
        with np.errstate(over="ignore"):
            while total < 20.0:
                total, at, trips = total + X[int(at) % 40], at + dtype(by), trips + 1
        got = f(X, dtype(first), dtype(last))
        assert float(got[0]) == total and int(got[1]) == int(at)


def test_positions_of_32_bits_that_wrap_around():
    @td.function
    def f(x, j, n, shift):
        total = x[0]
        while j < n and total < 1e9:
            total += x[j + shift]
            j += 2
        return total

    with disabled("paced"):
        checked = td.function(f.python_function)
        for j, n, shift in ((0, 10, 5), (2**30, 2**30 + 6, -(2**30)), (-6, 0, -3), (-50, 0, 3)):
            arguments = [X, *map(np.int32, (j, n, shift))]
            try:
                want = float(checked(*arguments))
            except td.errors.InvalidArgumentError:
                with disabled(), pytest.raises(td.errors.InvalidArgumentError):
                    f(*arguments)
            else:
                assert float(f(*arguments)) == want
    with pytest.raises(td.errors.InvalidArgumentError):
        f(X, *map(np.int32, (2**30, 2**30 + 4, 2**30 + 2**29)))


# -- what the proofs look at ---------------------------------------------------------------------


def traced(program):
    """The program for an array of 40, where the third number is a step or a float."""
    last = td.int32 if "step" in program.__code__.co_varnames else td.float64
    kinds = td.TensorSpec([40], td.float64), td.TensorSpec([], td.int32), td.TensorSpec([], last)
    return td.function(program).get_concrete_function(*kinds)


def paces(program):
    """The even steps of the loops of a program, as (what is added, relation) in words."""
    found = [pace(node) for node in traced(program).executable.graph.walk() if node.op is WHILE]
    return [
        p and (p.step if isinstance(p.step, int) else "step", p.falls, p.relation.value)
        for p in found
    ]


def in_between(x, n, step):
    """The counter is moved in a branch."""
    j = 0
    while j < n:
        x[j] += 1.0
        if x[j] > 3.0:
            j += step
    return x


def twice(x, n, step):
    j = 1
    while j < n:
        x[j] = 0.0
        j = j * 2
    return x


def unequal(x, n, step):
    j = 0
    while j != n:
        x[j] = 0.0
        j += step
    return x


def away(x, n, step):
    j = 0
    while j < n:
        x[j] = 0.0
        j -= 1
    return x


def one_of_two(x, n, step):
    """The loop goes on where either test holds: neither tells where it ends."""
    j = 0
    while j < n or x[j] > 3.0:
        x[j] = 0.0
        j += 1
    return x


def by_another_counter(x, n, step):
    j = k = 0
    while j < n:
        x[j] = 0.0
        j += k
        k += 1
    return x


@pytest.mark.parametrize(
    "program, wanted",
    [
        (marked, ("step", False, "<")), (marked_to, ("step", False, "<=")),
        (downwards, ("step", True, ">")), (downwards_to, (-3, False, ">=")),
        (two_apart, (2, False, "<")), (first_above, (1, False, "<")),
        (until_found, (1, False, "<")), (rebound, None), (moving_limit, None),
        (in_between, None), (twice, None), (unequal, None), (away, None), (one_of_two, None),
        (by_another_counter, None),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)  # fmt: skip
def test_what_moves_evenly(program, wanted):
    assert paces(program) == [wanted]


def llvm_of(program):
    return traced(program).executable.stages["llvm"]


@pytest.mark.parametrize("program", [marked, downwards, two_apart, first_above, until_found])
def test_a_strip_has_neither_checks_nor_a_countdown(program):
    text = llvm_of(program)
    body = text[text.index(" nsw i32 %") :]  # the counter of the strip: it does not wrap around
    body = body[: body.index("\nway")]
    assert "broken" not in body and "sub i64 %left" not in body
    with disabled("paced"):
        assert " nsw i32 %" not in llvm_of(program)


def test_arrays_that_share_elements_are_checked_by_their_own_sizes():
    def copied_up(x, y, n):
        j = 0
        while j < n and y[j] < 1e9:
            x[j + 1] = y[j]
            j += 1
        return x

    for n in (3, 39, 40):
        own, other = X.copy(), X.copy()
        wanted = outcome(lambda x, n: copied_up(x, x[:30], n), own, n)
        same(outcome(lambda x, n: td.jit(copied_up)(x, x[:30], n), other, n), wanted)


def test_an_array_that_a_loop_replaces():
    @td.function
    def f(x, n):
        j = 0
        while j < n:
            x = td.concat([x[1:], x[:1]], 0)
            x[j] = x[j] * 2.0
            j += 2
        return x

    want = X.copy()
    for j in range(0, 9, 2):
        want = np.concatenate([want[1:], want[:1]])
        want[j] *= 2.0
    np.testing.assert_array_equal(f(X, td.constant(9)), want)
    with pytest.raises(td.errors.InvalidArgumentError):
        f(X, td.constant(50))


# -- strips --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [255, 256, 257, 20_000, 70_000])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_loops_of_any_length(n, dtype):
    @td.function
    def up(n, step, last):
        i = total = trips = td.cast(0, n.dtype)
        while i < n and total < last:
            total += i % td.cast(7, n.dtype)
            i += step
            trips += td.cast(1, n.dtype)
        return total, trips, i

    for step in (1, 3, 1000):
        for last in (10**8, n):
            total, trips, i = 0, 0, 0
            while i < n and total < last:
                total, trips, i = total + i % 7, trips + 1, i + step
            got = up(dtype(n), dtype(step), dtype(last))
            assert [int(v) for v in got] == [total, trips, i]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs pthread_kill")
@pytest.mark.parametrize("step", [1, 3, 0])
def test_ctrl_c_ends_a_strip(step):
    """A step of 0 never comes to the limit: that loop counts its strips down."""

    @td.function
    def forever(n, step):
        total, i = 0.0, td.cast(0, n.dtype)
        while i < n and total < 2.0:
            total = td.sin(total + 1.0)
            i += step
        return total

    forever(np.int64(0), np.int64(step))
    main = threading.main_thread().ident
    sent = []

    def interrupt():
        sent.append(time.perf_counter())
        signal.pthread_kill(main, signal.SIGINT)

    timer = threading.Timer(0.1, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        forever(np.int64(2**50), np.int64(step))
    assert time.perf_counter() - sent[0] < 5
    timer.join()
    assert float(forever(np.int64(0), np.int64(step))) == 0.0
