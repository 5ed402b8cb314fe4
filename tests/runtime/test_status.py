"""Checks on a device with memory of its own: failures are noted, and raised at the end."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.apart import Apart, ApartExecutable
from treadle import runtime
from treadle.core import errors
from treadle.kernel import reference
from treadle.kernel.ir import Kernel
from treadle.runtime import interpreter
from treadle.runtime.devices import using
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.status import WORD, note_kernel
from treadle.runtime.schedule.steps import Check, Fetch, Note, Position, Update, Verdict

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
    assert len(program.builder.notes) == 2
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
    assert note.launch is None
    assert not program.builder.notes
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


def evaluate(kernel: Kernel, *given):
    inputs = dict(zip(kernel.buffers, map(np.asarray, given), strict=True))
    results = reference.evaluate(kernel, inputs)
    return [results[b].item() for b in kernel.outputs]


def test_the_kernel_of_a_note():
    kernel = note_kernel(3, [td.int64, td.int32])
    nothing = np.int64(0), np.int32(0), WORD.np_dtype.type(0)
    earlier = np.int64(8), np.int32(9), WORD.np_dtype.type(1)
    bad = np.int64(5), np.int32(-7)
    assert evaluate(kernel, True, *bad, *nothing) == [0, 0, 0]
    assert evaluate(kernel, False, *bad, *nothing) == [5, -7, 3]
    assert evaluate(kernel, False, *bad, *earlier) == [8, 9, 1]
