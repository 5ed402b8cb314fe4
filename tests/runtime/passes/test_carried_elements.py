"""Elements that loops read back are loop variables: values, and what is read from memory."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.cpu.machines import MACHINES
from treadle.core.switches import disabled
from treadle.graph.passes import optimize
from treadle.graph.rewrite import clone_graph
from treadle.ops.control.control_flow import WHILE
from treadle.runtime.cpu.facts import CpuFacts
from treadle.runtime.cpu.target import using
from treadle.runtime.passes.carried_elements import carry_elements

LETTERS = np.array([0, 1, 1, 2, 0, 2, 1, 0])


def fibonacci(x):
    for i in range(2, x.shape[0]):
        x[i] = x[i - 1] + 0.5 * x[i - 2]
    return x


def only_two_ago(x):
    for i in range(2, x.shape[0]):
        x[i] = 0.5 * x[i - 2] + 1.0
    return x


def backwards(x):
    for i in range(x.shape[0] - 2, -1, -1):
        x[i] += 0.25 * x[i + 1]
    return x


def in_steps(x):
    for i in range(3, x.shape[0], 3):
        x[i] += x[i - 3]
    return x


def relaxation(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


def spread(u):
    for i in range(u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            old = u[i, j]
            new = 1.0 if old > 0.5 else 0.0
            u[i, j] = new
            u[i, j + 1] += (old - new) * 0.5
            u[i + 1, j - 1] += (old - new) * 0.25
            u[i + 1, j] += (old - new) * 0.125
    return u


def alternating(x):
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1] * 0.5 + x[i]
        x[i - 1] = x[i] + x[i - 1]  # the next iteration reads what the first of the two wrote
    return x


def overwritten(x):
    for i in range(2, x.shape[0]):
        x[i] = x[i - 1] + 1.0
        x[2] = 7.0  # may be what x[i - 1] is
    return x


def from_the_end(x):
    for i in range(x.shape[0]):
        x[i] = x[i - 1] + 1.0  # begins with the last element
    return x


CARRIED = {fibonacci: 2, only_two_ago: 1, backwards: 1, in_steps: 1, relaxation: 1, spread: 2}
OTHERS = [alternating, overwritten, from_the_end]


def inner_loop(fn, argument):
    """The text of the innermost loop."""
    text = td.inspect.stages(fn, argument)["graph for the target"]
    return text.rpartition("body")[2].partition("return ")[0]


def outputs_of_loops(graph):
    return sum(len(node.outputs) for node in graph.walk() if node.op is WHILE)


def argument_of(program, size):
    two = program in (relaxation, spread)
    return np.random.default_rng(size).normal(size=(size, size + 1) if two else size)


@pytest.mark.parametrize("program", [*CARRIED, *OTHERS], ids=lambda p: p.__name__)
@pytest.mark.parametrize("size", [3, 5, 20])
def test_values_are_numpys(program, size):
    x = argument_of(program, size)
    want = program(x.copy())
    got = td.jit(program)(x.copy())
    np.testing.assert_allclose(got, want, rtol=1e-12)
    with disabled("carried_elements"):
        np.testing.assert_array_equal(td.jit(program)(x.copy()), got)


@pytest.mark.parametrize("program", CARRIED, ids=lambda p: p.__name__)
def test_elements_that_were_just_written_are_not_read_from_memory(program):
    fn, x = td.jit(program), argument_of(program, 40)
    with disabled("carried_elements"):
        before = inner_loop(td.jit(program), x)
    after = inner_loop(fn, x)

    def reads(text):
        return text.count("= index(") + text.count("= element(")

    assert reads(before) - reads(after) == CARRIED[program], after


def three_columns(x):
    for i in range(4, x.shape[0]):
        x[i, 0] = x[i - 4, 0] + x[i - 1, 0]
        x[i, 1] = x[i - 4, 1] + x[i - 1, 1]
        x[i, 2] = x[i - 4, 2] + x[i - 1, 2]
    return x


@pytest.mark.parametrize(("machine", "carried"), [("sse2", 8), ("avx2", 8), ("neon", 12)])
def test_half_of_the_registers_hold_elements(machine, carried):
    """Three columns, each read one and four iterations later, are twelve loop variables."""
    graph = clone_graph(td.jit(three_columns).get_concrete_function(np.ones((40, 3))).graph)
    optimize(graph)
    before = outputs_of_loops(graph)
    with using(MACHINES[machine], run=False):
        carry_elements(graph, CpuFacts())
    assert outputs_of_loops(graph) - before == carried


@pytest.mark.parametrize("trips", range(5))
def test_loops_that_end_before_they_read(trips):
    @td.function
    def fn(x, n):
        for i in td.range(2, n):
            x[i] = x[i - 1] + 10.0 * x[i - 2]
        return x

    x = np.arange(1.0, 7.0)
    want = x.copy()
    for i in range(2, 2 + trips):
        want[i] = want[i - 1] + 10.0 * want[i - 2]
    np.testing.assert_array_equal(fn(td.constant(x), td.constant(2 + trips)), want)


def test_a_position_outside_is_still_refused():
    @td.function
    def fn(x, n):
        for i in td.range(n):
            x[i + 1] = x[i] + 1.0
        return x

    x = td.constant(np.zeros(4))
    np.testing.assert_array_equal(fn(x, td.constant(3)), [0, 1, 2, 3])
    with pytest.raises(td.errors.InvalidArgumentError):
        fn(x, td.constant(4))


def test_longest_common_subsequence():
    @td.jit
    def fn(a, b):
        c = np.zeros((a.shape[0] + 1, b.shape[0] + 1), dtype=np.int64)
        for i in range(1, a.shape[0] + 1):
            for j in range(1, b.shape[0] + 1):
                same = 1 if a[i - 1] == b[j - 1] else 0
                c[i, j] = max(c[i - 1, j], c[i, j - 1], c[i - 1, j - 1] + same)
        return c

    other = LETTERS[::-1].copy()
    np.testing.assert_array_equal(fn(LETTERS, other), fn.python_function(LETTERS, other))
