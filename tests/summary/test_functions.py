"""Summaries in compiled functions: callbacks in program order, branches, loops, shapes."""

import numpy as np
import pytest

import treadle as td
from tests.summary.reading import entries


@pytest.fixture
def writer(tmp_path):
    made = td.summary.create_file_writer(tmp_path)
    yield made
    made.close()


def values(folder, tag):
    return [(e.step, float(e.value)) for e in entries(folder) if e.tag == tag]


def test_functions_that_write_are_native(tmp_path, writer):
    @td.function
    def step(x):
        td.summary.scalar("sum", td.reduce_sum(x), step=0)
        return td.reduce_sum(x * 2.0)

    with writer.as_default():
        assert float(step(td.ones([3]))) == 6.0
    (concrete,) = step.concrete_functions
    assert concrete.executable.mode == "native"
    assert "write_summary" in str(concrete.graph)
    assert values(tmp_path, "sum") == [(0, 3.0)]


def test_without_a_writer_nothing_is_left_in_the_program():
    @td.function
    def step(x):
        td.summary.scalar("sum", td.reduce_sum(x), step=0)
        td.summary.histogram("h", x, step=0)
        return x * 2.0

    step(td.ones([3]))
    assert "write_summary" not in str(step.concrete_functions[0].graph)


def test_order_among_other_effects(tmp_path, writer):
    """Each summary has the value of the variable at its place in the program."""
    variable = td.Variable(0.0)
    log = []

    @td.function
    def step(x):
        td.summary.scalar("before", variable, step=0)
        variable.assign_add(x)
        td.py_function(lambda v: log.append(float(v)), [variable], [])
        td.summary.scalar("after", variable, step=0)
        variable.assign_add(x)
        td.summary.scalar("end", variable, step=0)

    with writer.as_default():
        step(td.constant(2.0))
    assert [values(tmp_path, tag) for tag in ("before", "after", "end")] == [
        [(0, 0.0)], [(0, 2.0)], [(0, 4.0)],
    ]  # fmt: skip
    assert [e.tag for e in entries(tmp_path)] == ["before", "after", "end"]
    assert log == [2.0]


def test_loops_and_branches(tmp_path, writer):
    @td.function
    def run(x, n):
        total = x
        for i in td.range(n):
            total = total * 2.0
            if total > 5.0:
                td.summary.scalar("large", total, step=i)
            else:
                td.summary.scalar("small", total, step=i)
        while total > 1.0:
            total = total / 4.0
            td.summary.histogram("shrinking", td.fill([3], total), step=n)
        return total

    with writer.as_default():
        run(td.constant(1.0), td.constant(4))
    assert values(tmp_path, "small") == [(0, 2.0), (1, 4.0)]
    assert values(tmp_path, "large") == [(2, 8.0), (3, 16.0)]
    assert sum(e.tag == "shrinking" for e in entries(tmp_path)) == 2


@pytest.mark.parametrize("compiled", [False, True])
def test_conditions_that_only_a_run_tells(tmp_path, writer, compiled):
    step = td.Variable(0, dtype=td.int64)
    computed = []

    def image():
        td.py_function(lambda: computed.append(1), [], [])
        return td.ones([1, 2, 2, 1])

    def run():
        with td.summary.record_if(lambda: step % 2 == 0):
            td.summary.scalar("a", 1.0, step=step)
            td.summary.write("lazy", image, step=step)
        step.assign_add(1)

    call = td.function(run) if compiled else run
    with writer.as_default():
        for _ in range(5):
            call()
    assert [e.step for e in entries(tmp_path) if e.tag == "a"] == [0, 2, 4]
    assert [e.step for e in entries(tmp_path) if e.tag == "lazy"] == [0, 2, 4]
    assert len(computed) == 3


def test_all_kinds_are_the_same_eagerly_and_in_functions(tmp_path):
    numbers = np.random.default_rng(0)
    x = td.constant(numbers.normal(size=(2, 6, 5, 3)).astype("f4"))

    def write(x):
        # (the mean's last bit follows the order of its sum, which is NumPy's own eagerly)
        td.summary.scalar("scalar", td.reduce_max(x), step=1)
        td.summary.histogram("histogram", x, step=1, buckets=7)
        td.summary.image("image", x, step=1, max_outputs=1)
        td.summary.audio("audio", td.reshape(x, [2, -1, 3]), 8000, step=1)
        td.summary.text("text", td.strings.as_string(td.shape(x)), step=1)
        td.summary.write("tensor", x[0, 0], step=1)

    found = []
    functions = [write, td.function(write), td.function(write, reduce_retracing=True)]
    functions.append(td.function(write, input_signature=[td.TensorSpec([None] * 4, td.float32)]))
    for number, call in enumerate(functions):
        folder = tmp_path / str(number)
        with td.summary.create_file_writer(folder).as_default():
            call(x)
        found.append(entries(folder))
    for other in found[1:]:
        assert [e[:4] for e in other] == [e[:4] for e in found[0]]
        for mine, expected in zip(other, found[0], strict=True):
            np.testing.assert_array_equal(mine.value, expected.value)


def test_traces_of_several_shapes_share_a_program(tmp_path, writer):
    @td.function
    def step(x):
        td.summary.histogram("h", x, step=0)
        return td.reduce_sum(x * 2.0)

    with writer.as_default():
        for size in (2, 5, 9):
            step(td.ones([size]))
    assert [e.value[-1, 2] for e in entries(tmp_path)] == [2, 5, 9]
    assert "shares" in str(step.explain()) or "symbolic" in str(step.explain())


def test_gradients_pass_by(tmp_path, writer):
    @td.function
    def step(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            td.summary.scalar("y", y, step=0)
        return tape.gradient(y, x)

    with writer.as_default():
        assert float(step(td.constant(3.0))) == 6.0
        with td.GradientTape() as tape:
            x = td.constant(2.0)
            tape.watch(x)
            y = step(x) * x
        assert float(tape.gradient(y, x)) == 8.0
    assert values(tmp_path, "y") == [(0, 9.0), (0, 4.0)]


def test_errors_name_the_line_of_the_user(writer):
    @td.function
    def step(x):
        return td.summary.scalar("a", x)  # the line

    with writer.as_default(), pytest.raises(ValueError, match="No step set") as raised:
        step(td.constant(1.0))
    assert "test_functions.py" in str(raised.value)


def test_a_dataset_writes_too(tmp_path, writer):
    with writer.as_default():
        data = td.data.Dataset.range(3).map(
            lambda i: td.cond(td.summary.scalar("i", i, step=i), lambda: i, lambda: -i)
        )
        assert [int(i) for i in data] == [0, 1, 2]
    assert values(tmp_path, "i") == [(0, 0.0), (1, 1.0), (2, 2.0)]


def test_histograms_as_tensorboard_makes_them(tmp_path, writer):
    from tensorboard.plugins.histogram.summary_v2 import histogram_pb
    from tensorboard.util import tensor_util

    numbers = np.random.default_rng(1)
    arrays = {
        "normal": numbers.normal(size=10_000).astype("f4"),
        "ints": numbers.integers(-9, 9, 500), "one": np.array([2.5]), "none": np.zeros([0]),
        "many": numbers.uniform(size=(40, 50)),
    }  # fmt: skip
    with writer.as_default(step=0):
        for name, array in arrays.items():
            td.summary.histogram(name, array)
    for entry in entries(tmp_path):
        expected = histogram_pb(entry.tag, arrays[entry.tag]).value[0]
        np.testing.assert_array_equal(entry.value, tensor_util.make_ndarray(expected.tensor))
        assert entry.kind == expected.metadata.plugin_data.plugin_name
