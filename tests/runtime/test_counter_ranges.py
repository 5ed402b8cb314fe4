"""Loops up to or from a position that was checked before: no polls, no checks of what they read."""

import numpy as np
import pytest

import treadle as td
from treadle.runtime.cpu.program_state import fixed

X = np.arange(1.0, 21.0)


def sum_before(x, p):
    x[p] = 2.0
    total = 0.0
    for k in range(p):
        total += x[k]
    return total


def first_equal(x, p):
    wanted = x[p]
    for k in range(p):
        if x[k] * 2.0 >= wanted:
            return k
    return -1


def odd_ones(x, p):
    total = x[p] * 0.0
    k = 1
    while k <= p:
        total += x[k]
        k += 2
    return total


def backwards(x, p):
    total = x[p] * 0.0
    while p >= 0 and x[p] > 3.0:
        total += x[p]
        p -= 1
    return total


def beyond(x, p):
    """Positions that the range of the counter does not prove."""
    total = x[p] * 0.0
    for k in range(p):
        total += x[k + 2]
    return total


def checked_later(x, p):
    """The check comes after the loop, or is made in some runs only."""
    total = 0.0
    for k in range(p):
        total += x[k % 3]
    if total > 5.0:
        total += x[p]
    return total


PROGRAMS = [sum_before, first_equal, odd_ones, backwards, beyond, checked_later]


def outcome(program, x, p):
    try:
        return np.float64(program(x, p)), x
    except (IndexError, td.errors.InvalidArgumentError):
        return np.array(np.nan), x


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_same_as_python(program, dtype):
    jitted = td.jit(program)
    for p in (-22, -21, -20, -19, -1, 0, 1, 2, 7, 18, 19, 20, 21, 1000):
        wanted, found = outcome(program, X.copy(), p), outcome(jitted, X.copy(), dtype(p))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, err_msg=f"{p}")


def llvm(program):
    kinds = td.TensorSpec([20], td.float64), td.TensorSpec([], td.int32)
    return td.function(program).get_concrete_function(*kinds).executable.stages["llvm"]


def polls(text):
    """Whether the program has a loop that polls, and how many positions it checks."""
    word = f"getelementptr ptr, ptr %state, i64 {fixed('poll')}\n"
    return word in text, text.count("\nbroken")


@pytest.mark.parametrize("program", [sum_before, first_equal, odd_ones, backwards])
def test_there_is_one_loop_without_polls(program):
    assert polls(llvm(program)) == (False, 1)


def test_a_check_that_does_not_come_before_proves_nothing():
    assert polls(llvm(checked_later))[0]


def test_positions_beyond_the_counter_are_checked():
    assert polls(llvm(beyond)) == (False, 2)


def test_sizes_of_the_run_prove_nothing():
    kinds = td.TensorSpec([None], td.float64), td.TensorSpec([], td.int32)
    program = td.function(sum_before).get_concrete_function(*kinds)
    assert polls(program.executable.stages["llvm"])[0]
    for p in (0, 5, 19):
        result = program(td.constant(X), td.constant(p, td.int32))
        np.testing.assert_allclose(result, sum_before(X.copy(), p))
