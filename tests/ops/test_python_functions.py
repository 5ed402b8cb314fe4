"""numpy_function and py_function: values, shapes, gradients, effects, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.autodiff import python_functions

Spec = td.TensorSpec
X = td.constant([1.0, 2.0])


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")


def compiled(fn: Callable[..., Any]) -> Any:
    return td.function(fn, autograph=False)


def both(fn: Callable[..., Any], *args: Any) -> list[Any]:
    return [fn(*args), compiled(fn)(*args)]


def test_numpy_function_gets_arrays_of_its_own() -> None:
    kept = []

    def double(a: Any) -> Any:
        a *= 2
        kept.append(a)
        return a

    for y in both(lambda x: td.numpy_function(double, [x], Spec([2])) + x, X):
        np.testing.assert_array_equal(y.numpy(), [3, 6])
    assert X.numpy().tolist() == [1, 2]
    assert [a.tolist() for a in kept] == [[2, 4], [2, 4]]


def test_results_are_as_tout_says() -> None:
    def pair(a: Any) -> Any:
        return a + 1, 3

    for found in both(lambda x: td.numpy_function(pair, [x], [Spec([2]), Spec([], "int32")]), X):
        assert type(found) is list
        assert [(t.dtype, t.numpy().tolist()) for t in found] == [
            (td.float32, [2, 3]), (td.int32, 3),
        ]  # fmt: skip
    for y in both(lambda x: td.numpy_function(np.sum, x, td.float32, shape=[]), X):
        assert float(y) == 3
    assert td.numpy_function(np.sum, [X], td.float32).shape == ()
    assert td.py_function(lambda x: x * 2, [X], td.float32).numpy().tolist() == [2, 4]
    assert both(lambda x: td.py_function(lambda t: None, [x], []), X)[0] == []


@pytest.mark.parametrize("api", [td.numpy_function, td.py_function])
def test_sizes_that_a_run_tells(api: Any) -> None:
    @td.function(autograph=False)
    def f(x: Any) -> Any:
        y = api(lambda a: a[a > 1], [x], Spec([None]))
        return y * 2.0, td.shape(y)[0]

    for array in ([1.0, 2.0, 3.0], [0.0, 0.0, 9.0], [0.0, 0.0, 0.0]):
        y, size = f(td.constant(array))
        expected = [2 * a for a in array if a > 1]
        assert y.numpy().tolist() == expected
        assert int(size) == len(expected)
    assert f.experimental_get_tracing_count() == 1


def test_effects_are_neither_merged_nor_dropped() -> None:
    calls: list[Any] = []

    def note(a: Any) -> Any:
        calls.append(float(a[0]))
        return a

    @td.function(autograph=False)
    def f(x: Any) -> Any:
        td.numpy_function(note, [x], Spec([2]))
        td.numpy_function(note, [x], Spec([2]))
        td.numpy_function(note, [x * 5.0], Spec([2]), stateful=False)
        return td.py_function(note, [x + 1.0], Spec([2]))

    f(X)
    f(X)
    assert calls == [1, 1, 2] * 2


def test_variables_are_seen_in_program_order() -> None:
    v = td.Variable(1.0)

    @td.function(autograph=False)
    def f(x: Any) -> Any:
        v.assign(x)
        read = td.py_function(lambda: v * 10.0, [], Spec([]))
        td.py_function(lambda: v.assign(7.0), [], Spec([]))
        return read, v + 0.0

    assert [float(t) for t in f(td.constant(3.0))] == [30, 7]


def count_cube() -> tuple[Any, list[int]]:
    calls: list[int] = []

    def cube(x: Any) -> Any:
        assert td.executing_eagerly()
        assert not x.is_symbolic
        calls.append(1)
        return x * x * x

    return cube, calls


def first(fn: Any, x: Any) -> Any:
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.reduce_sum(fn(x))
    return tape.gradient(y, x)


def test_gradients_of_py_function() -> None:
    cube, calls = count_cube()

    def fn(x: Any) -> Any:
        return td.py_function(cube, [x * 2.0], Spec([2]))

    expected = 24 * X.numpy() ** 2
    ways = (
        lambda: first(fn, X),
        lambda: compiled(lambda x: first(fn, x))(X),
        lambda: first(compiled(fn), X),
    )
    for way in ways:
        np.testing.assert_allclose(way().numpy(), expected)
        assert len(calls) == 1
        calls.clear()
    assert not python_functions._records


def test_second_gradients() -> None:
    cube, _ = count_cube()

    def second(x: Any) -> Any:
        return first(lambda t: first(lambda s: td.py_function(cube, [s], Spec([2])), t), x)

    for gradient in both(second, X):
        np.testing.assert_allclose(gradient.numpy(), 6 * X.numpy())


def test_gradients_inside_a_loop() -> None:
    def loop(x: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            return i + 1, td.py_function(lambda v: v * v, [y], Spec([2]))

        return td.while_loop(lambda i, y: i < 3, body, (td.constant(0), x))[1]

    for gradient in both(lambda x: first(loop, x), X):
        np.testing.assert_allclose(gradient.numpy(), 8 * X.numpy() ** 7)


def test_several_inputs_and_outputs() -> None:
    def mixed(a: Any, n: Any, b: Any) -> Any:
        return [a * b, n + 1, b * b]

    def fn(a: Any, b: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch([a, b])
            out = [Spec([2]), Spec([], "int32"), Spec([2])]
            p, n, _ = td.py_function(mixed, [a, td.constant(4), b], out)
            loss = td.reduce_sum(p) * td.cast(n, td.float32)
        return tape.gradient(loss, [a, b])

    for da, db in both(fn, X, X * 3.0):
        assert da.numpy().tolist() == [15, 30]
        assert db.numpy().tolist() == [5, 10]


RAISED = [
    (ValueError, td.errors.InvalidArgumentError),
    (TypeError, td.errors.InvalidArgumentError),
    (StopIteration, td.errors.OutOfRangeError),
    (NotImplementedError, td.errors.UnimplementedError),
    (MemoryError, td.errors.ResourceExhaustedError),
    (KeyError, td.errors.UnknownError),
    (ZeroDivisionError, td.errors.UnknownError),
]


@pytest.mark.parametrize(("raised", "kind"), RAISED)
def test_exceptions_become_tensorflows(raised: type[Exception], kind: Any) -> None:
    def fail(x: Any) -> Any:
        raise raised("oops")

    def numpy(x: Any) -> Any:
        return td.numpy_function(fail, [x], Spec([2]))

    def python(x: Any) -> Any:
        return td.py_function(fail, [x], Spec([2]))

    with pytest.raises(raised, match="oops"):
        numpy(X)
    for fn in (python, compiled(python), compiled(numpy)):
        with pytest.raises(kind, match=rf"{raised.__name__}: .*oops.*test_python_functions.py"):
            fn(X)


@pytest.mark.parametrize("api", [td.numpy_function, td.py_function])
@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.ones(3, np.float32), r"has shape \(3,\), but Tout says f32\[2\]"),
        (td.ones([2], td.float64), "is float64, but Tout says float32"),
        ((np.ones(2, np.float32), 1, 2), "Cannot convert|inhomogeneous"),
    ],
    ids=["shape", "dtype", "count"],
)
def test_results_that_do_not_fit(api: Any, result: Any, message: str) -> None:
    with pytest.raises(td.errors.InvalidArgumentError, match=message):
        compiled(lambda x: api(lambda a: result, [x], Spec([2])))(X)


@pytest.mark.parametrize("call", [td.numpy_function, td.py_function])
def test_they_decorate_functions(call) -> None:
    @call(Tout=[td.float32, td.int32])
    def scaled(x, n):
        """Told by its own name and text."""
        return x * np.float32(2), np.int32(n) + 1

    assert scaled.__name__ == "scaled" and scaled.__doc__ == "Told by its own name and text."
    for twice, more in both(lambda x: scaled(x, 3), X):
        assert np.array_equal(twice, 2 * np.asarray(X)) and int(more) == 4
    for wrong in (
        lambda: call(Tout=None), lambda: call(inp=[X], Tout=td.float32),
        lambda: call(lambda x: x, Tout=td.float32), lambda: call(lambda x: x, [X]),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            wrong()


def test_none_reaches_the_function_outside_of_graphs():
    """As in TensorFlow, where libraries pass weights that there may be none of."""

    def total(values, weights):
        assert weights.dtype == object and weights.shape == ()
        return values.sum() if weights[()] is None else np.nan

    assert float(td.numpy_function(total, [td.constant([1.0, 2.0]), None], td.float32)) == 3.0
    with pytest.raises(TypeError, match="None"):
        td.function(lambda x: td.numpy_function(total, [x, None], td.float32))(td.constant([1.0]))
