"""Where rank-0 values reside, and what the host fetches from a device with memory of its own."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.apart import Apart, ApartExecutable, ApartFacts
from tests.runtime.harness import captures
from treadle import runtime
from treadle.graph.ir import Graph
from treadle.runtime import interpreter
from treadle.runtime.cpu.backend import cpu
from treadle.runtime.devices import using
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import Block, Branch, Fetch, Launch, Loop, Operand
from treadle.runtime.verify_residence import ResidenceError, verify_residence

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def graph_of(function, *arguments):
    return td.function(function).get_concrete_function(*arguments).graph


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setenv("TREADLE_VERIFY", "1")
    with using(Apart()):
        yield


def run(graph: Graph, *arrays) -> ApartExecutable:
    """The program for the device, which gives what the interpreter gives."""
    executable = runtime.compile(graph)
    assert isinstance(executable, ApartExecutable), executable.reason
    values = [*map(np.asarray, arrays), *captures(graph)]
    variables = [v for v in values if isinstance(v, td.Variable)]
    start = [v.numpy().copy() for v in variables]
    wanted = interpreter.run(graph, values)
    state = [v.numpy().copy() for v in variables]
    for variable, array in zip(variables, start, strict=True):
        variable.assign(array)
    found = executable.run(values)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, 1e-5, 1e-6)
    for variable, array in zip(variables, state, strict=True):
        np.testing.assert_allclose(variable.numpy(), array, 1e-5, 1e-6)
    return executable


def fetched(executable: ApartExecutable) -> list[int]:
    """How often each number was fetched."""
    return sorted(executable.fetches.values())


def in_loops(block: Block) -> list[Fetch]:
    loops = [s for s in all_steps(block) if isinstance(s, Loop)]
    inner = [s for loop in loops for b in (loop.condition, loop.body) for s in all_steps(b)]
    return [s for s in inner if isinstance(s, Fetch)]


def test_a_training_step_fetches_nothing():
    w = td.Variable(np.ones((4, 2), np.float32))
    rate, steps = td.Variable(0.1), td.Variable(0, dtype=td.int64)

    def step(x):
        with td.GradientTape() as tape:
            loss = td.reduce_mean((x @ w) ** 2)
        steps.assign_add(1)
        factor = rate / td.sqrt(td.cast(steps, td.float32) + 1.0)
        w.assign_sub(factor * tape.gradient(loss, w))
        return loss, factor

    program = run(graph_of(step, X), X)
    assert fetched(program) == []
    assert not program.builder.residence.host


def test_optimizers_fetch_nothing():
    model = td.keras.Sequential([td.keras.layers.Dense(5, "relu"), td.keras.layers.Dense(2)])
    model(X)
    optimizer = td.keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)

    def step(x):
        with td.GradientTape() as tape:
            loss = td.reduce_mean(model(x) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        return loss

    assert fetched(run(graph_of(step, X), X)) == []


def test_a_loop_that_a_loss_ends_fetches_its_condition_once_an_iteration():
    def descend(x):
        count, loss = td.constant(0), td.constant(100.0)
        while loss > 1.0:
            x = x * 0.5
            loss = td.reduce_sum(x * x)
            count += 1
        return x, loss, count

    program = run(graph_of(descend, X), X)
    (number,) = {
        v for s in all_steps(program.block) if isinstance(s, Fetch) for v in s.values
    }
    assert number.spec.dtype is td.bool
    assert number in program.builder.residence.read
    assert not program.builder.residence.host  # the count, too, is the device's
    (_, _, count) = interpreter.run(program.graph, [X])
    assert fetched(program) == [int(count) + 1]


def test_a_loop_that_counts_fetches_its_limit_before_it():
    def total(x, n):
        s = td.constant(0.0)
        for i in td.range(n):
            s += td.reduce_sum(x) * td.cast(i, td.float32)
        return s

    n = np.asarray(5, np.int32)
    program = run(graph_of(total, X, n), X, n)
    assert fetched(program) == [1]
    assert not in_loops(program.block)
    (loop,) = (s for s in all_steps(program.block) if isinstance(s, Loop))
    host = {c.param for c in loop.carried} & program.builder.residence.host
    assert [v.spec.dtype.is_integer for v in host] == [True] * len(host)
    (total,) = (c for c in loop.carried if c.param.spec.dtype is td.float32)
    assert total.place is not None


def test_a_loop_over_a_computed_limit_fetches_that():
    def total(x):
        s = td.constant(0.0)
        for _ in td.range(td.cast(td.reduce_max(x), td.int32) + 1):
            s += 1.0
        return s

    program = run(graph_of(total, X), X)
    assert fetched(program) == [1]
    assert not in_loops(program.block)


def selected(x):
    a = td.boolean_mask(x, x > 0.0)
    total = td.cumsum(a * a)
    b = td.where(x < 1.0)
    c = td.boolean_mask(x * 2.0, x < -1.0)
    return total, td.cumsum(b), td.boolean_mask(c, c < -3.0), a


def test_sizes_that_masks_tell_are_read_at_once():
    program = run(graph_of(selected, X), X)
    assert fetched(program) == [1, 1, 1, 1]
    assert [len(s.values) for s in all_steps(program.block) if isinstance(s, Fetch)] == [3, 1]
    assert program.waits == 2
    (line, _) = (t for t in program.text.split("\n") if "fetch" in t)
    assert line.count(",") == 4


def test_sizes_in_a_loop_are_read_at_once():
    def f(x):
        s = td.constant(0.0)
        for i in td.range(3):
            k = td.cast(i, td.float32)
            s += td.reduce_max(td.cumsum(td.boolean_mask(x, x > k - 2.0)))
            s += td.reduce_max(td.cumsum(td.boolean_mask(x, x < k)))
        return s

    program = run(graph_of(f, X), X)
    assert program.waits == 3


def test_an_array_is_selected_from_before_it_is_overwritten():
    v = td.Variable(X)

    def f(x):
        a = td.boolean_mask(v, x > 0.0)
        v.assign(v * 2.0)
        b = td.boolean_mask(v, x < 0.0)
        v.scatter_update(td.IndexedSlices(td.ones([1, 4]), td.constant([1])))
        return a, b

    run(graph_of(f, X), X)


def test_bounds_of_parts_are_on_the_host():
    def part(x, i, j):
        return td.reduce_sum(x[i:j] * 2.0, 0)

    i, j = np.asarray(1, np.int32), np.asarray(3, np.int32)
    program = run(graph_of(part, X, i, j), X, i, j)
    assert fetched(program) == [1, 1]


def test_a_callback_reads_its_numbers_on_the_host():
    seen = []

    def note(a, b):
        seen.append((float(a), float(b)))
        return a + b

    def f(x, y):
        return x * td.py_function(note, [td.reduce_sum(x), y], td.TensorSpec([]))

    y = np.asarray(2.5, np.float32)
    program = run(graph_of(f, X, y), X, y)
    assert fetched(program) == [1, 1]
    assert seen[0] == seen[1]


def test_what_a_branch_prints_is_fetched_in_the_branch(capsys):
    def f(x, flag):
        loss = td.reduce_sum(x)
        if flag:
            td.print("loss", loss)
        return loss * 2.0

    for flag, count in ((np.asarray(True), 2), (np.asarray(False), 1)):
        program = run(graph_of(f, X, flag), X, flag)
        assert sum(program.fetches.values()) == count


def test_numbers_of_branches_stay_on_the_device():
    rate, steps = td.Variable(0.5), td.Variable(3, dtype=td.int64)

    def f(x):
        if steps % 2 == 1:
            factor = rate * 0.5
        else:
            factor = rate + 1.0
        rate.assign(factor)
        return x * factor

    program = run(graph_of(f, X), X)
    (number,) = program.fetches
    assert number.spec.dtype is td.bool
    assert not program.builder.residence.host


def test_the_host_counts_what_it_reads_and_hands_it_to_kernels():
    def f(x, n):
        i = td.constant(1)
        while i * i < n:
            x = x + td.cast(i, td.float32)
            i += 2
        return x, i

    n = np.asarray(30, np.int32)
    program = run(graph_of(f, X, n), X, n)
    assert fetched(program) == [1]
    assert "host %" in program.text


def without(block: Block, kind: type) -> Block:
    """A block without steps of a kind."""
    block.steps = [s for s in block.steps if not isinstance(s, kind)]
    return block


def test_reads_of_the_device_without_a_fetch_are_found():
    def f(x):
        return x * 2.0 if td.reduce_sum(x) > 0.0 else x

    program = run(graph_of(f, X), X)
    with pytest.raises(ResidenceError, match="nothing wrote the register"):
        verify_residence(program.builder, without(program.block, Fetch))
    (branch,) = (s for s in program.block.steps if isinstance(s, Branch))
    value = branch.predicate.value
    branch.predicate = Operand(value, program.builder.places[value])
    with pytest.raises(ResidenceError, match="the host reads"):
        verify_residence(program.builder, program.block)


def test_results_of_kernels_in_registers_of_the_host_are_found():
    program = run(graph_of(lambda x: td.reduce_sum(x) * 2.0, X), X)
    launches = [s for s in program.block.steps if isinstance(s, Launch)]
    launches[-1].operands[-1].place = None
    with pytest.raises(ResidenceError, match="leaves"):
        verify_residence(program.builder, program.block)


def test_the_processor_fetches_nothing(monkeypatch):
    program = run(graph_of(lambda x: x if td.reduce_sum(x) > 0.0 else -x, X), X)
    monkeypatch.setattr(ApartFacts, "unified", True)
    with pytest.raises(ResidenceError, match="no step for this device"):
        verify_residence(program.builder, program.block)


def test_the_processor_marks_numbers_of_the_host():
    def f(x, n):
        for i in td.range(n):
            x = x * td.reduce_sum(x) + td.cast(i, td.float32)
        return x

    with using(cpu):
        text = runtime.compile(graph_of(f, X, np.asarray(3))).stages["schedule"]
    assert "loop host %" in text
    assert "fetch" not in text
