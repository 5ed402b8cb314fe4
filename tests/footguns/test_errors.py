"""Traps of error messages: they name the user's line, the user's call and the way out."""

import linecache
import warnings

import numpy as np
import pytest

import treadle as td


def line_of(text):
    """The number of the first line in this file that ends with a text."""
    with open(__file__) as file:
        return min(n for n, line in enumerate(file, 1) if line.endswith(text + "\n"))


def test_11_a_function_without_a_file():
    """Shells and notebooks keep the text in linecache; exec alone gives one clear error."""
    source = "def f(x):\n    if x > 0:\n        return x\n    return -x\n"
    namespace = {}
    exec(compile(source, "<no text>", "exec"), namespace)
    with pytest.raises(td.autograph.SourceNotFoundError, match="Put the function into a file"):
        td.function(namespace["f"])(td.constant(-1.0))
    linecache.cache["<cell 1>"] = (len(source), None, source.splitlines(True), "<cell 1>")
    exec(compile(source, "<cell 1>", "exec"), namespace)
    assert td.function(namespace["f"])(td.constant(-1.0)).numpy() == 1


def test_12_errors_have_file_line_and_text():
    @td.function
    def f(x):
        y = td.reshape(x, [2, -1])
        return td.matmul(y, y)  # trap 12

    with pytest.raises(td.errors.InvalidArgumentError) as caught:
        f(td.ones([6]))
    text = str(caught.value)
    assert f"{__file__}:{line_of('# trap 12')}" in text and "td.matmul(y, y)" in text
    assert "[2, 3]" in text or "(2, 3)" in text


def test_13_tracebacks_have_the_frames_of_plain_python():
    def inner(x, i):
        return td.gather(x, i)

    def middle(x, i):
        if i > 100:
            i = i - 1
        return inner(x, i)

    @td.function
    def outer(x, i):
        return middle(x, i) + 1.0

    outer(td.ones([3]), td.constant(0))
    with pytest.raises(td.errors.InvalidArgumentError) as caught:
        outer(td.ones([3]), td.constant(7))
    frames = [entry.name for entry in caught.traceback if entry.path.name == "test_errors.py"]
    assert frames[-3:] == ["outer", "middle", "inner"]


def test_15_out_of_bounds_is_an_error():
    f = td.function(lambda x, i: x[i])
    x = td.constant([1.0, 2.0, 3.0])
    assert f(x, td.constant(-1)).numpy() == 3
    for bad in (3, -4, 1000):
        with pytest.raises(td.errors.InvalidArgumentError, match="3"):
            f(x, td.constant(bad))


def test_17_errors_name_the_users_call():
    @td.function
    def f(x):
        return x @ x  # trap 17

    with pytest.raises(td.errors.InvalidArgumentError) as caught:
        f(td.ones([2, 3]))
    assert "matmul" in str(caught.value) and "x @ x" in str(caught.value)


def test_31_a_leaked_tensor_names_its_line_and_function():
    leaked = []

    @td.function
    def leaky(x):
        leaked.append(x * 2.0)  # trap 31
        return x

    leaky(td.constant(1.0))
    uses = [
        lambda: leaked[0] + 1.0,
        lambda: leaked[0].numpy(),
        lambda: float(leaked[0]),
        lambda: td.function(lambda x: x + leaked[0])(td.constant(1.0)),
    ]
    for use in uses:
        with pytest.raises(Exception, match="'leaky'") as caught:
            use()
        assert f"{__file__}:{line_of('# trap 31')}" in str(caught.value)


def test_32_variables_on_later_calls():
    @td.function
    def every_time(x):
        return td.Variable(1.0) + x  # trap 32

    with pytest.raises(ValueError) as caught:
        every_time(td.constant(1.0))
    assert f"{__file__}:{line_of('# trap 32')}" in str(caught.value)
    assert "on a call that is not its first" in str(caught.value)

    @td.function
    def once(x):
        if once.v is None:
            once.v = td.Variable(10.0)
        return once.v.assign_add(x)

    once.v = None
    assert [once(td.constant(1.0)).numpy() for _ in range(3)] == [11, 12, 13]


def test_33_numpy_functions_are_staged_or_named():
    f = td.function(lambda x: np.tanh(x) + np.sum(x, axis=-1, keepdims=True))
    x = np.array([0.5, 1.5], np.float32)
    np.testing.assert_allclose(f(x).numpy(), np.tanh(x) + 2.0, rtol=1e-6)
    assert [n.op.name for n in f.get_concrete_function(x).graph.nodes]  # nodes, no callback
    assert not any("py" in n.op.name for n in f.get_concrete_function(x).graph.nodes)
    with pytest.raises(Exception, match="busday_count") as caught:
        td.function(lambda x: np.busday_count(x, x))(x)
    assert __file__ in str(caught.value) or "numpy" in str(caught.value)


def test_34_numpy_randomness_is_warned_about():
    @td.function
    def trap_34(x):
        return x + np.random.normal(size=2).astype(np.float32)  # noqa: NPY002

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = trap_34(td.zeros([2])).numpy()
        trap_34(td.zeros([2]))
        td.function(lambda x: x)(td.zeros([2]))
    assert len(caught) == 1 and "td.random.normal" in str(caught[0].message)
    np.testing.assert_array_equal(trap_34(td.zeros([2])).numpy(), first)  # as TensorFlow does


def test_38_everything_is_one_graph_that_can_be_shown():
    @td.function
    def f(x):
        while td.reduce_sum(x) < 10.0:
            x = x * 2.0
        return x

    shown = td.inspect.stages(f, td.ones([2]))
    for stage in ("source", "autograph", "graph", "graph after passes", "schedule", "llvm"):
        assert shown[stage].strip()
    concrete = f.get_concrete_function(td.ones([2]))
    assert concrete.executable.mode == "native" and concrete.executable.counters["callbacks"] == 0
    assert "while" in shown["graph"]


def test_46_a_concrete_function_says_what_it_takes():
    f = td.function(lambda x, flip: -x if flip else x)
    concrete = f.get_concrete_function(td.TensorSpec([None, 2]), True)
    x = td.ones([3, 2])
    assert concrete(x).numpy().sum() == concrete(x, True).numpy().sum() == -6
    with pytest.raises(TypeError, match="traced for the Python value True and cannot take False"):
        concrete(x, False)
    with pytest.raises(TypeError, match=r"expected the tensor arguments \(x: f32\[d\d+, 2\]\)"):
        concrete(x, x, x)
    with pytest.raises(td.errors.InvalidArgumentError, match=r"'x' is f32\[3, 5\]"):
        concrete(td.ones([3, 5]))
