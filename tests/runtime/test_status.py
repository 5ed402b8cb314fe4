"""Checks on a device with memory of its own: failures are noted, and raised at the end."""

import contextlib
import re

import numpy as np
import pytest

import treadle as td
from tests.runtime.apart import Apart, ApartExecutable
from treadle import runtime
from treadle.core import errors
from treadle.graph.ir import Value
from treadle.kernel import reference
from treadle.kernel.ir import Kernel
from treadle.ops.registry import run
from treadle.ops.statistics.histograms import COUNT_POSITIONS
from treadle.runtime import interpreter
from treadle.runtime.devices import using
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.status import WORD, noting
from treadle.runtime.schedule.steps import (
    Branch,
    Check,
    Fetch,
    Finding,
    Loop,
    Note,
    Operand,
    Place,
    Position,
    Update,
    Verdict,
)

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setenv("TREADLE_VERIFY", "1")
    with using(Apart()):
        yield


def graph_of(function, *arguments):
    return td.function(function).get_concrete_function(*arguments).graph


def program_of(function, *arguments) -> ApartExecutable:
    executable = runtime.compile(graph_of(function, *arguments))
    assert isinstance(executable, ApartExecutable), executable.reason
    return executable


def refused_alike(function, good, bad) -> ApartExecutable:
    """The program gives what the interpreter gives, errors included, and fetches nothing."""
    program = program_of(function, *good)
    assert not any(isinstance(s, Fetch | Check | Position) for s in all_steps(program.block))
    assert isinstance(program.block.steps[-1], Verdict)
    for one, other in zip(program.run(good), interpreter.run(program.graph, good), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(errors.InvalidArgumentError) as wanted:
        interpreter.run(program.graph, bad)
    with pytest.raises(errors.InvalidArgumentError) as found:
        program.run(bad)
    assert str(found.value) == str(wanted.value)
    assert "test_status.py" in str(found.value)
    return program


I = np.asarray([[2, 0], [1, 2]])


def wrong(*place):
    """Positions of which two are outside: the error names the first."""
    bad = I.copy()
    bad[place], bad[1, 1] = 7, 9
    return bad


CASES = {
    "gather": (lambda x, i: td.gather(x, i), (X, I), (X, wrong(0, 1))),
    "gather_nd": (lambda x, i: td.gather_nd(x, i), (X, I), (X, wrong(1, 0))),
    "element": (
        lambda x, i, j: x[i, j],
        (X, np.asarray(-3), np.asarray(1)), (X, np.asarray(1), np.asarray(4)),
    ),
    "row": (lambda x, i: x[i] * 2.0, (X, np.asarray(-1)), (X, np.asarray(-4))),
    "division": (lambda a, b: a // b, (I, I + 1), (I, I)),
    "remainder of numbers": (
        lambda a, b: a % b, (np.asarray(7), np.asarray(2)), (np.asarray(7), np.asarray(0)),
    ),
    "power": (lambda a, b: a**b, (I, I), (I, I - 1)),
    "labels": (
        lambda y, x: td.nn.sparse_softmax_cross_entropy_with_logits(y, x),
        (np.asarray([0, 3, 1]), X), (np.asarray([0, 4, -1]), X),
    ),
}  # fmt: skip

@pytest.mark.parametrize("name", CASES)
def test_errors_are_those_of_the_interpreter(name):
    refused_alike(*CASES[name])


def test_the_first_failure_is_raised():
    def f(x, i, j):
        return td.gather(x, i) + td.gather(x, j)

    i, j = np.asarray([0]), np.asarray([5])
    program = refused_alike(f, (X, i, i), (X, i, j))
    (note,) = (s for s in all_steps(program.block) if isinstance(s, Note))
    assert [check.number for check in note.findings] == [1, 2]
    assert program.launches == 2  # the checks, and what is gathered
    with pytest.raises(errors.InvalidArgumentError, match="index 6 "):
        program.run((X, j + 1, j))


def test_a_failure_in_a_loop_is_the_first_one():
    def f(x, rows):
        s = td.zeros([4])
        for row in rows:
            s += x[row]
        return s

    good, bad = np.asarray([0, 2, 1]), np.asarray([0, 8, -9])
    program = program_of(f, X, good)
    np.testing.assert_allclose(program.run([X, good])[0], X.sum(0), 1e-6)
    with pytest.raises(errors.InvalidArgumentError, match="index 8 "):
        program.run([X, bad])


def test_a_program_that_failed_runs_again():
    program = program_of(lambda x, i: td.gather(x, i), X, I)
    with pytest.raises(errors.InvalidArgumentError):
        program.run([X, wrong(0, 0)])
    np.testing.assert_array_equal(program.run([X, I])[0], X[I])


def test_the_host_checks_its_own_numbers_at_once():
    def f(x, n):
        i = td.constant(0, td.int64)
        while i < n:
            x = x + td.cast(12 // (i - 5), td.float32)
            i += 1
        return x

    program = program_of(f, X, np.asarray(2))
    (note,) = (s for s in all_steps(program.block) if isinstance(s, Note))
    assert note.launches == []
    assert not program.builder.status.findings
    with pytest.raises(errors.InvalidArgumentError, match="division by zero"):
        program.run([X, np.asarray(7)])


def test_sizes_that_the_program_finds_out_are_checked_at_once():
    def f(x, i):
        return td.gather(td.boolean_mask(x, x > 0.0), i)

    program = program_of(f, X, I)
    assert any(isinstance(s, Check) for s in all_steps(program.block))
    with pytest.raises(errors.InvalidArgumentError, match="index 9 "):
        program.run([X, wrong(1, 1)])


def test_writes_outside_are_left_out():
    x = td.Variable(X)

    def f(i):
        x.assign(td.tensor_scatter_nd_add(x, i, [[1.0] * 4, [2.0] * 4]))

    program = program_of(f, np.asarray([[0], [1]]))
    (update,) = (s for s in all_steps(program.block) if isinstance(s, Update))
    assert update.refuse is None
    with pytest.raises(errors.InvalidArgumentError, match="3"):
        program.run([np.asarray([[3], [1]]), x])
    np.testing.assert_allclose(x.numpy(), X + [[0], [2], [0]], 1e-6)


# -- assertions and verdicts ---------------------------------------------------------------------

LONG = np.arange(40, dtype=np.float32).reshape(2, 20)
GOOD = np.asarray([[4, 1], [1, 3]], np.float32)
BAD = np.asarray([[1, 2], [2, 1]], np.float32)
BATCH = np.stack([GOOD, GOOD + 1, GOOD])


def _asserted(x, limit):
    td.Assert(td.reduce_all(x < limit), ["too large:", x, limit], summarize=2)
    return x * 2.0


def _finite(x):
    return td.debugging.check_numerics(x, "x") * 2.0


def _compared(x, y):
    td.debugging.assert_less(x, y + 1.0, "x is not below y", summarize=1)
    return x + y


ASSERTIONS = {
    "Assert": (_asserted, (LONG, np.float32(50)), (LONG, np.float32(30))),
    "few elements": (_asserted, (X, np.float32(50)), (X, np.float32(1))),
    "numbers": (_asserted, (np.float32(1), np.float32(2)), (np.float32(3), np.float32(2))),
    "numerics": (_finite, (X,), (X * np.float32(np.inf),)),
    "comparison": (_compared, (LONG, LONG), (LONG, LONG - 1)),
    "not definite": (td.linalg.cholesky, (BATCH,), (np.stack([GOOD, BAD, BAD]),)),
    "singular": (td.linalg.inv, (GOOD,), (np.ones((2, 2), np.float32),)),
    "equations": (td.linalg.solve, (GOOD, GOOD), (np.zeros((2, 2), np.float32), GOOD)),
    "counts": (lambda i: run(COUNT_POSITIONS, i, size=4), (I,), (I - 2,)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ASSERTIONS)
def test_assertions_and_verdicts_wait_for_the_end(name):
    function, good, bad = ASSERTIONS[name]
    traced = td.function(function)

    def called(*arguments):
        return traced(*arguments)

    program = program_of(called, *good)
    assert not any(isinstance(s, Fetch | Check) for s in all_steps(program.block))
    assert isinstance(program.block.steps[-1], Verdict)
    for one, other in zip(program.run(good), interpreter.run(program.graph, good), strict=True):
        np.testing.assert_allclose(one, other, 1e-6)
    with pytest.raises(errors.InvalidArgumentError) as wanted:
        interpreter.run(program.graph, bad)
    with pytest.raises(errors.InvalidArgumentError) as found:
        program.run(bad)
    assert str(found.value) == str(wanted.value)
    assert "test_status.py" in str(found.value)
    np.testing.assert_allclose(program.run(good)[0], interpreter.run(program.graph, good)[0], 1e-6)


def test_checks_of_several_kinds_are_one_launch_and_the_first_is_raised():
    def f(x, i):
        td.debugging.assert_positive(x, "the first")
        y = td.linalg.cholesky(x)
        z = td.gather(y, i)
        td.debugging.assert_less(z, 100.0, "the last")
        return z

    program = program_of(f, GOOD, I[0] - 1)
    (note,) = (s for s in all_steps(program.block) if isinstance(s, Note))
    assert [c.node.op.name for c in note.findings] == ["assert", "cholesky", "gather", "assert"]
    assert len(note.launches) == 2  # the numbers, and the arrays that are shown

    def error(x, i):
        with pytest.raises(errors.InvalidArgumentError) as found:
            program.run([x, i])
        with pytest.raises(errors.InvalidArgumentError) as wanted:
            interpreter.run(program.graph, [x, i])
        assert str(found.value) == str(wanted.value)
        return str(found.value)

    one, many = I[0] - 1, 1000 * GOOD
    assert "the first" in error(-BAD, one + 9)
    assert "not positive definite" in error(BAD, one + 9)
    assert "index 9 " in error(GOOD, np.asarray([0, 9]))
    many[0, 0] = 1e9
    assert "the last" in error(many, np.asarray([0, 1]))


def test_the_arrays_of_the_first_failure_in_a_loop_are_shown():
    def f(x, n):
        for i in td.range(n):
            td.Assert(td.reduce_max(x) < 3.0, [x, i])
            x = x * 2.0
        return x

    good, bad = np.asarray(1, np.int32), np.asarray(4, np.int32)
    program = program_of(f, X, good)
    np.testing.assert_array_equal(program.run([X, good])[0], X * 2)
    with pytest.raises(errors.InvalidArgumentError) as found:
        program.run([X, bad])
    with pytest.raises(errors.InvalidArgumentError) as wanted:
        interpreter.run(program.graph, [X, bad])
    assert str(found.value) == str(wanted.value)


def test_a_loop_that_a_number_of_the_device_ends_stops_at_a_failure():
    def f(x):
        while td.reduce_sum(x) < 100.0:
            td.debugging.assert_positive(x, "no progress")
            x = x + x
        return x

    program = program_of(f, GOOD)
    assert program.run([GOOD])[0].sum() >= 100
    (condition,) = (s.condition for s in all_steps(program.block) if isinstance(s, Loop))
    (_, fetch) = condition.steps  # one kernel tells both
    assert isinstance(fetch, Fetch)
    with pytest.raises(errors.InvalidArgumentError, match="no progress"):
        program.run([-GOOD])  # this loop has no other end


def test_a_loop_that_only_an_assertion_ends_stops():
    def f(x, go):
        while go:
            td.debugging.assert_less(x, 100.0, "enough")
            x = x + x
        return x

    program = program_of(f, GOOD, np.asarray(False))
    np.testing.assert_array_equal(program.run([GOOD, np.asarray(False)])[0], GOOD)
    with pytest.raises(errors.InvalidArgumentError, match="enough"):
        program.run([GOOD, np.asarray(True)])


def test_an_assertion_about_numbers_of_the_host_stops_at_once():
    def f(x, n):
        i = td.constant(0, td.int64)
        while i < n:
            td.Assert(i < 3, [i, x])
            x = x + 1.0
            i += 1
        return x

    program = program_of(f, X, np.asarray(2))
    kinds = [type(s) for s in all_steps(program.block) if isinstance(s, Check | Note | Fetch)]
    assert kinds == [Fetch, Check]  # the limit of the loop is read before it
    with pytest.raises(errors.InvalidArgumentError) as found:
        program.run([X, np.asarray(9)])
    with pytest.raises(errors.InvalidArgumentError) as wanted:
        interpreter.run(program.graph, [X, np.asarray(9)])
    assert str(found.value) == str(wanted.value)


def test_a_failure_of_the_device_comes_before_a_later_one_of_the_host():
    def f(x, i, n):
        y = td.gather(x, i)
        td.Assert(n < 3, ["too many"])
        for _ in td.range(n):
            y = y + 1.0
        return y

    program = program_of(f, X, I, np.asarray(2))
    with pytest.raises(errors.InvalidArgumentError, match="index 7 "):
        program.run([X, wrong(0, 0), np.asarray(9)])
    with pytest.raises(errors.InvalidArgumentError, match="too many"):
        program.run([X, I, np.asarray(9)])


def test_checks_in_branches_come_after_those_before_them():
    def f(x, i, j):
        y = td.gather(x, i)
        if td.reduce_sum(x) > 100.0:
            y = td.gather(y, j)
        return y

    program = program_of(f, X, I[0], np.asarray([1, 0]))
    kinds = [type(s) for s in program.block.steps if isinstance(s, Note | Branch)]
    assert kinds == [Note, Branch]
    x, bad = X + 100, np.asarray([1, 9])
    with pytest.raises(errors.InvalidArgumentError, match="index 9 "):
        program.run([x, I[0], bad])
    with pytest.raises(errors.InvalidArgumentError, match="index 8 "):
        program.run([x, bad - 1, bad])


def test_what_a_check_found_is_noted_before_it_is_overwritten():
    v = td.Variable(np.float32(2.0))

    def f(x):
        td.Assert(td.reduce_max(x) < v, [v])
        v.assign(v * 10.0)
        td.Assert(td.reduce_max(x) < v, [v])
        return x * v

    program = program_of(f, X)
    for start in (3.0, -1.0, 0.15):
        v.assign(start)
        with pytest.raises(errors.InvalidArgumentError) if start < 3 else contextlib.nullcontext():
            interpreter.run(program.graph, [X, v])
        v.assign(start)
        found = contextlib.nullcontext()
        if start < 3:
            found = pytest.raises(errors.InvalidArgumentError, match=re.escape(f"{start:g}"))
        with found:
            program.run([X, v])


# -- the kernel ----------------------------------------------------------------------------------


def evaluate(kernel: Kernel, *given):
    inputs = dict(zip(kernel.buffers, map(np.asarray, given), strict=True))
    results = reference.evaluate(kernel, inputs)
    return [results[b].item() for b in kernel.outputs]


def test_the_kernel_of_checks():
    def operand(dtype, kind="temporary"):
        value = Value(td.TensorSpec([], dtype), graph, -1)
        return Operand(value, Place(kind, 0, dtype, ()))

    graph = graph_of(lambda x: x + 1, X)
    word, place, now = operand(WORD, "status"), operand(td.int64, "status"), operand(WORD)
    holds, bad = [operand(td.bool) for _ in range(2)], [operand(td.int64) for _ in range(2)]
    checks = [
        Finding(graph.nodes[0], (0,), h, [b], number, [place.place])
        for number, h, b in zip((3, 4), holds, bad, strict=True)
    ]
    kernel, operands = noting(checks, word, {place.place: place}, now)
    assert operands == [word, holds[0], place, bad[0], holds[1], bad[1], now]
    nothing, earlier = np.int32(0), np.int32(1)

    def noted(before, first, second):
        given = before, first, np.int64(8), np.int64(5), second, np.int64(6), nothing
        return evaluate(kernel, *given)

    assert noted(nothing, True, True) == [0, 8, 0]
    assert noted(nothing, False, True) == [3, 5, 3]
    assert noted(nothing, True, False) == [4, 6, 4]
    assert noted(nothing, False, False) == [3, 5, 3]
    assert noted(earlier, False, False) == [1, 8, 0]
