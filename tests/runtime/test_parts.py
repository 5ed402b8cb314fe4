"""Loops over parts of arrays: native, right, and with the gradients of the interpreter."""

import numpy as np
import pytest

import treadle as td
from benchmarks.part_programs import PROGRAMS, Program, cholesky, forward_solve, lu_with_pivots
from treadle.core.switches import disabled
from treadle.inspect import stages
from treadle.runtime import interpreter

ids = [p.function.__name__ for p in PROGRAMS]


def interpreted(concrete, arguments):
    captures = [c._buffer for c in concrete.graph.captures]
    return interpreter.run(concrete.graph, [*arguments, *captures])


def agree(function, arguments, tolerance=1e-9):
    tensors = [td.constant(a) for a in arguments]
    found = [x.numpy() for x in td.nest.flatten(function(*tensors))]
    wanted = interpreted(function.get_concrete_function(*tensors), arguments)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, tolerance, tolerance)


@pytest.mark.parametrize("program", PROGRAMS, ids=ids)
def test_nothing_calls_python_or_allocates(program: Program) -> None:
    arguments = map(td.constant, program.arguments(7, np.float64))
    with disabled("independent_iterations"):  # else there may be no loop
        schedule = stages(program.function, *arguments)["schedule"]
    assert "loop" in schedule
    assert "python" not in schedule, schedule
    assert "@l" not in schedule, schedule


@pytest.mark.parametrize("program", PROGRAMS, ids=ids)
def test_results_are_those_of_the_interpreter(program: Program) -> None:
    function = td.function(program.function)
    for n in (9, 2, 1):
        agree(function, program.arguments(n, np.float64))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # elements of several sizes are saved
@pytest.mark.parametrize(
    "program", [p for p in PROGRAMS if p.differentiable], ids=lambda p: p.function.__name__
)
def test_gradients_are_those_of_the_interpreter(program: Program) -> None:
    def gradients(*arguments):
        floats = [x for x in arguments if x.dtype.is_floating]
        with td.GradientTape() as tape:
            for x in floats:
                tape.watch(x)
            results = program.function(*(td.identity(x) for x in arguments))
            total = sum(td.reduce_sum(td.sin(x)) for x in td.nest.flatten(results))
        return tape.gradient(total, floats)

    function = td.function(gradients)
    arguments = program.arguments(5, np.float64)
    agree(function, arguments, 1e-7)
    check_slope(program, function, arguments)


def check_slope(program, function, arguments):
    """The gradients against the difference of two runs, in one direction."""
    rng = np.random.default_rng(1)
    steps = [1e-6 * rng.standard_normal(a.shape) if a.dtype.kind == "f" else 0 for a in arguments]

    @td.function
    def total(*arguments):
        results = program.function(*(td.identity(x) for x in arguments))
        return sum(td.reduce_sum(td.sin(x)) for x in td.nest.flatten(results))

    ahead, behind = (
        float(total(*(a + sign * s for a, s in zip(arguments, steps, strict=True))).numpy())
        for sign in (1, -1)
    )
    gradients = iter(function(*arguments))
    slope = sum(
        float((next(gradients).numpy() * s).sum())
        for a, s in zip(arguments, steps, strict=True)
        if a.dtype.kind == "f"
    )
    np.testing.assert_allclose(slope * 2, ahead - behind, 1e-4, 1e-12)


def test_factors_are_those_of_numpy() -> None:
    ((a,), (b, rhs)) = (p.arguments(20, np.float64) for p in (PROGRAMS[0], PROGRAMS[4]))
    np.testing.assert_allclose(td.function(cholesky)(a), np.linalg.cholesky(a), 1e-12, 1e-12)
    solved = td.function(forward_solve)(b, rhs)
    np.testing.assert_allclose(b @ solved.numpy(), rhs, 1e-10, 1e-10)
    m = PROGRAMS[3].arguments(20, np.float64)[0]
    factors, order = (x.numpy() for x in td.function(lu_with_pivots)(td.constant(m)))
    lower, upper = np.tril(factors, -1) + np.eye(20), np.triu(factors)
    np.testing.assert_allclose(lower @ upper, m[order], 1e-10, 1e-10)
    assert np.abs(lower).max() <= 1


def test_bounds_clamp_as_python_does() -> None:
    def parts(x, starts, stops):
        total = td.zeros_like(x)
        for k in td.range(starts.shape[0]):
            i, j = starts[k], stops[k]
            total[i:j] += x[i:j] * 2.0
            total[: j - i] += 1.0
            total[i::-1] += 3.0
        return total

    bounds = [(-9, 2), (1, 9), (-2, -1), (3, 1), (0, 0), (5, 5), (4, -5), (-1, 3)]
    starts, stops = np.array(bounds, np.int32).T.copy()
    x = np.arange(1.0, 6.0)
    wanted = np.zeros(5)
    for i, j in bounds:
        wanted[i:j] += x[i:j] * 2
        wanted[: j - i] += 1
        wanted[i::-1] += 3
    found = td.function(parts)(x, starts, stops)
    np.testing.assert_array_equal(found, wanted)


def test_sizes_that_differ_are_refused() -> None:
    @td.function
    def wrong(x, y, n):
        total = td.zeros([], x.dtype)
        for i in td.range(n):
            total += td.reduce_sum(x[i:] * y)
        return total

    x = np.ones(4)
    assert wrong(x, x, td.constant(1)).numpy() == 4
    with pytest.raises(td.errors.InvalidArgumentError):
        wrong(x, x, td.constant(3))


def test_positions_outside_are_refused() -> None:
    @td.function
    def row(x, i, n):
        total = td.zeros([], x.dtype)
        for k in td.range(n):
            total += td.reduce_sum(x[i + k, :k])
        return total

    x = np.ones((4, 4))
    assert row(x, td.constant(-1), td.constant(3)).numpy() == 3
    with pytest.raises(td.errors.InvalidArgumentError, match="index 4 is out of range"):
        row(x, td.constant(1), td.constant(4))


def test_overlapping_parts_of_one_array_are_read_first() -> None:
    @td.function
    def shifted(x):
        for k in td.range(1, x.shape[0]):
            x[k:] += x[:-k]
            x[:k] = x[-k:] * 0.5
        return x

    x = np.arange(1.0, 8.0)
    wanted = x.copy()
    for k in range(1, 7):
        wanted[k:] = wanted[k:] + wanted[:-k]
        wanted[:k] = wanted[-k:].copy() * 0.5
    np.testing.assert_allclose(shifted(td.constant(x)), wanted)
