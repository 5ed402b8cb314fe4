"""Programs on disk: equal results, nothing compiled, nothing stale."""

import os
import subprocess
import sys

import numpy as np
import pytest

import treadle as td
from treadle import runtime
from treadle.core import object_cache
from treadle.passes import disabled
from treadle.runtime import stored
from treadle.runtime.cpu import backend
from treadle.runtime.cpu.stored_program import StoredExecutable
from treadle.runtime.options import Options

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TREADLE_STORE_PROGRAMS", "1")
    monkeypatch.setattr(stored, "default_cache", lambda: cache)
    from treadle.runtime.cpu.jit import jit

    td.clear_caches()  # code in memory is in another folder
    cache = object_cache.ObjectCache(tmp_path / "cache")
    monkeypatch.setattr(jit(), "cache", cache)
    return tmp_path / "cache"


def graph_of(function, *arguments):
    return td.function(function).get_concrete_function(*arguments).graph


def twice(graph):
    """The program as it is compiled, and as it is found."""
    made, found = runtime.compile(graph), runtime.compile(graph)
    assert not isinstance(made, StoredExecutable) and isinstance(found, StoredExecutable)
    assert found.counters == made.counters | {"stored": 1}
    return made, found


def values(executable, *arrays):
    return [np.array(a) for a in executable.run([*arrays, *executable.graph.captures])]


def check(function, *arrays):
    graph = graph_of(function, *arrays)
    made, found = twice(graph)
    for a, b in zip(values(made, *arrays), values(found, *arrays), strict=True):
        np.testing.assert_array_equal(a, b)
    return made, found


TABLE = td.constant(np.arange(40, dtype=np.float32).reshape(10, 4))
LARGE = np.arange(3 * 4, dtype=np.float32).reshape(3, 4)

PROGRAMS = {
    "kernel": lambda x: td.nn.softmax(td.tanh(x) * 2.0),
    "segments": lambda x: (x + 1.0, td.reduce_sum(x), td.reduce_max(x, 0)),
    "library": lambda x: td.matmul(x, x, transpose_b=True) @ x,
    "constants": lambda x: x * LARGE + td.cast(LARGE[0], td.float32),
    "captured tensor": lambda x: td.gather(TABLE, [1, 5]) + x[:2],
    "loop": lambda x: td.while_loop(
        lambda i, a: i < 10, lambda i, a: (i + 1, td.sin(a) + x), [td.constant(0), x]
    )[1],
    "branch": lambda x: td.cond(td.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: -x),
    "scalar": lambda x: td.reduce_sum(x) * 2.0,
    "size that only the optimized graph knows": lambda x: td.while_loop(
        lambda i, a: i < 3,
        lambda i, a: (i + 1, a.write(i, x[i] * 2.0)),
        [td.constant(0), td.TensorArray(td.float32, size=td.shape(x)[0])],
    )[1].stack(),
}


@pytest.mark.parametrize("function", PROGRAMS.values(), ids=PROGRAMS)
def test_the_same_results(function):
    check(function, X)


def test_variables_are_those_of_the_graph_at_hand():
    def step(v):
        return lambda x: v.assign_add(x * 2.0)

    one, two = td.Variable(np.zeros((3, 4), np.float32)), td.Variable(X)
    made = runtime.compile(graph_of(step(one), X))
    found = runtime.compile(graph_of(step(two), X))
    assert isinstance(found, StoredExecutable)
    made.run([X, one])
    found.run([X, two])
    np.testing.assert_array_equal(one.numpy(), X * 2)
    np.testing.assert_array_equal(two.numpy(), X * 3)


def test_stages_and_the_optimized_graph():
    made, found = check(PROGRAMS["kernel"], X)
    assert found.stages.keys() == made.stages.keys()
    assert found.stages["llvm"] == made.stages["llvm"]
    assert str(found.graph) == str(made.graph)


def test_checks_fail_with_the_lines_of_this_graph():
    def look_up(x, i):
        return td.gather(x, i)

    graph = graph_of(look_up, td.TensorSpec([3, 4]), td.TensorSpec([2], td.int32))
    made, found = twice(graph)
    good, bad = np.array([0, 2], np.int32), np.array([0, 7], np.int32)
    np.testing.assert_array_equal(values(found, X, good)[0], X[[0, 2]])
    messages = []
    for executable in (made, found):
        with pytest.raises(td.errors.InvalidArgumentError) as caught:
            executable.run([X, bad])
        messages.append(str(caught.value))
    assert messages[0] == messages[1] and "test_stored.py" in messages[0]
    np.testing.assert_array_equal(values(found, X, good)[0], X[[0, 2]])


def test_symbolic_sizes():
    graph = graph_of(lambda x: td.tanh(x) * 2.0, td.TensorSpec([None, 4]))
    made, found = twice(graph)
    for rows in (1, 2, 7):
        x = np.ones((rows, 4), np.float32)
        np.testing.assert_array_equal(values(made, x)[0], values(found, x)[0])


def test_sizes_that_must_be_equal():
    graph = graph_of(lambda x, y: x + y, td.TensorSpec([None, 4]), td.TensorSpec([None, 4]))
    made, found = twice(graph)
    assert found.guards == made.guards and len(made.guards) == 1


def test_shared_programs_are_found_without_compiling(monkeypatch):
    def calls():
        f = td.function(lambda x: td.tanh(x) * 3.25)
        return [f(td.constant(X[:n])).numpy() for n in (3, 2, 1)]

    first = calls()
    asked = []
    monkeypatch.setattr(runtime, "_compile_again", asked.append)
    for a, b in zip(first, calls(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not asked


def test_what_runs_python_is_compiled_each_time():
    graph = graph_of(
        lambda x: td.numpy_function(lambda a: a + 1, [x], td.TensorSpec([3, 4])) * 2.0, X
    )
    assert stored.program_key(graph, Options()) is None
    graph = graph_of(lambda x: np.linalg.inv(x), np.eye(100, dtype=np.float32))
    executables = [runtime.compile(graph) for _ in range(2)]
    assert executables[0].counters["callbacks"] == 1
    assert not any(isinstance(e, StoredExecutable) for e in executables)


def test_switches_are_part_of_the_key(monkeypatch):
    graph = graph_of(PROGRAMS["kernel"], X)
    keys = {stored.program_key(graph, Options())}
    with disabled("algebra"):
        keys.add(stored.program_key(graph, Options()))
    monkeypatch.setenv("TREADLE_SOMETHING", "1")
    keys.add(stored.program_key(graph, Options()))
    monkeypatch.setattr(backend, "planned_workers", lambda: 99)
    keys.add(stored.program_key(graph, Options()))
    assert len(keys) == 4 and None not in keys
    assert stored.program_key(graph, Options(interpret=True)) is None


def test_without_its_code_a_program_is_compiled(folder):
    from treadle.runtime.cpu.jit import jit

    graph = graph_of(lambda x: td.tanh(x) * 1.2345 + 0.54321, X)
    executable = runtime.compile(graph)
    code = executable.program.code
    del executable
    td.clear_caches()
    (folder / f"{code}.o").unlink()
    compiled = jit().counters.compiled
    assert not isinstance(runtime.compile(graph), StoredExecutable)
    assert jit().counters.compiled == compiled + 1


def test_large_constants_are_not_stored(monkeypatch):
    monkeypatch.setattr(backend, "MOST_CONSTANT_BYTES", 100)
    graph = graph_of(lambda x: x + np.arange(400, dtype=np.float32).reshape(100, 4)[:3], X)
    large = graph_of(lambda x: td.reduce_sum(x) + np.arange(400, dtype=np.float32), X)
    for g in (graph, large):
        runtime.compile(g)
    assert isinstance(runtime.compile(graph), StoredExecutable)
    assert not isinstance(runtime.compile(large), StoredExecutable)


TRAINING = """
import sys
import numpy as np, treadle as td
from treadle.runtime.cpu.jit import jit

w = td.Variable(np.full((8, 3), 0.1, np.float32))
x = td.constant(np.linspace(-1, 1, 40, dtype=np.float32).reshape(5, 8))
y = td.constant([0, 1, 2, 1, 0])

@td.function(autograph=False)
def step():
    with td.GradientTape() as tape:
        logits = td.tanh(x @ w)
        loss = td.reduce_mean(td.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
    w.assign_sub(tape.gradient(loss, w) * 0.5)
    return loss

losses = [float(step()) for _ in range(3)]
executable = step.get_concrete_function().executable
print(executable.counters.get("stored", 0), jit().counters.compiled, losses)
print("llvmlite" in sys.modules, "treadle.runtime.fusion.fuse" in sys.modules)
"""


def test_a_second_process_neither_fuses_nor_compiles(tmp_path):
    def process(seed):
        done = subprocess.run(
            [sys.executable, "-c", TRAINING], capture_output=True, text=True, timeout=60,
            env={**os.environ, "PYTHONPATH": "src", "TREADLE_CACHE_DIR": str(tmp_path / "own"),
                 "PYTHONHASHSEED": seed, "TREADLE_STRICT": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.split(maxsplit=2)

    first, second = process("1"), process("2")
    assert first[0] == "0" and int(first[1]) > 0
    assert second[:2] == ["1", "0"]
    assert first[2].splitlines()[0] == second[2].splitlines()[0]
    assert second[2].splitlines()[1] == "False False"


def test_errors_of_parts_whose_bounds_a_loop_decides(folder):
    def sums(x, columns, starts):
        y = td.zeros([3], x.dtype)
        for i in td.range(3):
            y[i] = td.reduce_sum(td.gather(x, columns[starts[i] : starts[i + 1]]))
        return y

    starts = np.array([0, 2, 2, 5], np.int32)
    columns = np.array([1, 0, 3, 2, 1], np.int32)
    arrays = np.arange(4.0), columns, starts
    _, found = check(sums, *arrays)
    columns[3] = 40
    with pytest.raises(td.errors.InvalidArgumentError, match="40"):
        found.run([*arrays, *found.graph.captures])
