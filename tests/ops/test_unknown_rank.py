"""Tensors whose rank only a run knows: results of Python functions, of branches, variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td

X = td.constant([1.0, 2.0])
VALUES = (X, td.constant(3.0), td.constant([[1.0, 2.0], [3.0, 4.0]]), td.zeros([0, 2]))


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")


def doubled(x: Any) -> Any:
    """A tensor of unknown rank, in a function."""
    return td.numpy_function(lambda a: a * np.float32(2), [x], td.float32)


USES: dict[str, Callable[[Any], Any]] = {
    "add": lambda y: y + 1.0,
    "multiply": lambda y: 2.0 * y,
    "negative": lambda y: -y,
    "reduce": lambda y: td.reduce_sum(y),
    "getitem": lambda y: y[0],
    "matmul": lambda y: td.matmul(y, y),
    "shape": lambda y: td.shape(y),
    "rank": lambda y: td.rank(y),
    "concat": lambda y: td.concat([y, y], 0),
    "cast": lambda y: td.cast(y, td.int32),
    "sin": lambda y: np.sin(y),
    "print": lambda y: td.print(y),
    "transpose": lambda y: td.transpose(y),
    "squeeze": lambda y: td.squeeze(y),
    "where": lambda y: td.where(y > 0.0, y, 1.0),
    "assign_variable": lambda y: td.Variable(1.0, trainable=False).assign(y),
    "call of a function": lambda y: td.function(lambda z: z)(y),
    "stack": lambda y: td.stack([y, y]),
    "len": lambda y: len(y),
}


@pytest.mark.parametrize("name", USES)
def test_other_operations_say_that_the_rank_is_unknown(name: str) -> None:
    def f(x: Any) -> Any:
        return USES[name](doubled(x))

    with pytest.raises(ValueError, match="the rank of a tensor is not known while 'f' is") as e:
        td.function(f)(X)
    text = str(e.value)
    assert "x.set_shape([...])" in text and "td.ensure_shape" in text and "td.reshape" in text
    assert text.count("test_unknown_rank.py") >= 2  # where it was made, and where it is used


def test_the_message_names_the_operation() -> None:
    for name in ("add", "matmul", "shape", "concat", "cast", "sin"):
        with pytest.raises(ValueError, match=f"^{name}: the rank"):
            td.function(lambda x, use=USES[name]: use(doubled(x)), autograph=False)(X)


SETTLED: dict[str, Callable[[Any], Any]] = {
    "ensured": lambda y: td.ensure_shape(y, [None]) + 1.0,
    "reshaped": lambda y: td.reshape(y, [-1, 1]) * 3.0,
    "reshaped by a tensor": lambda y: td.reshape(y, td.constant([2])) - 1.0,
    "twice": lambda y: doubled(doubled(y)),
    "with a shape": lambda y: td.numpy_function(np.sum, [y], td.TensorSpec([], td.float32)) + 1.0,
    "returned in a structure": lambda y: {"a": [y, (y,)], "b": y},
}


@pytest.mark.parametrize("name", SETTLED)
@pytest.mark.parametrize("api", [td.numpy_function, td.py_function])
def test_what_settles_the_rank_gives_what_it_gives_eagerly(name: str, api: Any) -> None:
    def f(x: Any) -> Any:
        return SETTLED[name](api(lambda a: a * np.float32(2), [x], td.float32))

    compiled = td.function(f)
    for _ in range(3):
        for mine, eager in zip(td.nest.flatten(compiled(X)), td.nest.flatten(f(X)), strict=True):
            assert mine.shape == eager.shape and mine.dtype is eager.dtype
            np.testing.assert_array_equal(mine, eager)
    assert compiled.get_concrete_function(X).executable.mode == "native"


def test_one_trace_returns_results_of_every_rank() -> None:
    @td.function
    def f(n: Any) -> Any:
        return td.numpy_function(lambda k: np.full([2] * int(k), 7, np.int32), [n], td.int32)

    for n in (0, 1, 2, 3, 0):
        np.testing.assert_array_equal(f(td.constant(n)), np.full([2] * n, 7))
    (concrete,) = f.concrete_functions
    assert concrete.structured_outputs == td.TensorSpec(None, td.int32)
    assert concrete.output_shapes.rank is None


def test_a_shape_that_a_run_contradicts() -> None:
    @td.function
    def f(x: Any) -> Any:
        y = doubled(x)
        y.set_shape([None, 2])
        return y

    assert f(td.ones([3, 2])).shape == [3, 2]
    with pytest.raises(td.errors.InvalidArgumentError, match=r"shape is \(2,\), not \(None, 2\)"):
        f(X)


def test_a_shape_is_set_where_the_tensor_was_made() -> None:
    def f(x: Any) -> Any:
        y = doubled(x)
        if td.reduce_sum(x) > 0.0:
            y.set_shape([2])
        return y

    with pytest.raises(ValueError, match="made outside this branch or loop: set its shape there"):
        td.function(f)(X)


def test_branches_and_nested_functions_pass_them_on() -> None:
    @td.function
    def inner(x: Any) -> Any:
        if td.size(x) > 2:
            return doubled(x)
        return x[None]

    outer = td.function(lambda x: inner(x))
    for x in (X, td.ones([3]), td.ones([2, 2])):
        expected = 2 * x.numpy() if td.size(x) > 2 else x.numpy()[None]
        np.testing.assert_array_equal(inner(x), expected)
        np.testing.assert_array_equal(outer(x), expected)


@pytest.mark.parametrize("settle", ["set_shape", "ensure_shape", "reshape"])
def test_gradients_pass_through(settle: str) -> None:
    def settled(y: Any, rank: int) -> Any:
        if settle == "set_shape":
            y.set_shape([None] * rank)
            return y
        return (
            td.ensure_shape(y, [None] * rank) if settle == "ensure_shape" else td.reshape(y, [-1])
        )

    def f(x: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(x)
            y = settled(td.py_function(lambda t: t * t, [x], td.float32), len(x.shape))
            z = td.reduce_sum(y * y)
        return tape.gradient(z, x)

    for x in VALUES:
        np.testing.assert_allclose(td.function(f)(x), 4 * x.numpy() ** 3)
        np.testing.assert_allclose(f(x), 4 * x.numpy() ** 3)


def test_the_gradient_of_a_returned_tensor() -> None:
    f = td.function(lambda x: td.py_function(lambda t: t * t, [x], td.float32))
    for x in VALUES:
        with td.GradientTape() as tape:
            tape.watch(x)
            y = f(x) * 3.0
        np.testing.assert_allclose(tape.gradient(y, x), 6 * x.numpy())


def test_refining_a_known_rank() -> None:
    @td.function(input_signature=[td.TensorSpec([None, None])])
    def f(x: Any) -> Any:
        x.set_shape([None, 3])
        assert x.shape.as_list() == [None, 3]
        return x @ td.ones([3, 1])

    assert f(td.ones([2, 3])).shape == [2, 1]
    with pytest.raises(td.errors.InvalidArgumentError):
        f(td.ones([2, 4]))


# -- variables ----------------------------------------------------------------------------------


def test_programs_with_variables_of_any_shape_are_compiled() -> None:
    v = td.Variable(X, shape=td.TensorShape(None))
    f = td.function(lambda: td.reduce_sum(v * v))
    for value in VALUES:
        v.assign(value)
        for _ in range(2):
            assert float(f()) == np.sum(value.numpy() ** 2)
    assert f.experimental_get_tracing_count() == 3  # the ranks 0, 1 and 2
    assert all(c.executable.mode == "native" for c in f.concrete_functions)
    assert f.variables == (v,)


def test_a_variable_gets_another_rank_in_a_function() -> None:
    v = td.Variable(1.0, shape=td.TensorShape(None))

    def f(x: Any) -> Any:
        before = v + 0.0
        v.assign(x)
        v.assign(v[None] + 1.0)
        return before, v * 2.0

    values = [X, td.constant([[5.0]]), td.constant(2.0)]
    compiled, found = td.function(f), []
    for run in (compiled, f):
        v.assign(1.0)
        found.append([r.numpy().tolist() for x in values for r in (*run(x), v.value())])
    assert found[0] == found[1]


def test_a_branch_keeps_the_rank_of_a_variable() -> None:
    v = td.Variable(X, shape=td.TensorShape(None))

    @td.function
    def f(x: Any) -> None:
        if td.reduce_sum(x) > 0.0:
            v.assign(td.concat([v, x], 0))

    for size in (4, 6, 8):
        f(X)
        assert v.numpy().shape == (size,)

    @td.function
    def g(x: Any) -> None:
        if td.reduce_sum(x) > 0.0:
            v.assign(x[None])

    with pytest.raises(ValueError, match="branch or loop cannot assign one of rank 2: assign it"):
        g(X)


def test_a_rank_that_the_trace_could_not_know() -> None:
    v = td.Variable(X, shape=td.TensorShape(None))

    @td.function
    def f() -> Any:
        td.py_function(lambda: v.assign([[1.0]]), [], [])
        return v + 1.0

    with pytest.raises(td.errors.InvalidArgumentError, match=r"has shape \(1, 1\) now"):
        f()
    assert f().shape == [1, 1]


def test_a_variable_with_open_dims_grows_in_a_loop() -> None:
    v = td.Variable(td.zeros([0, 2]), shape=[None, 2])

    @td.function
    def f(n: Any) -> Any:
        for _ in td.range(n):
            v.assign(td.concat([v, td.ones([1, 2])], 0))
        return td.shape(v)

    assert f(td.constant(3)).numpy().tolist() == [3, 2]
    assert f(td.constant(2)).numpy().tolist() == [5, 2]
    assert f.concrete_functions[0].executable.mode == "native"
    with pytest.raises(ValueError, match="shape"):
        v.assign(td.ones([2, 3]))


def test_a_variable_whose_shape_is_not_validated() -> None:
    v = td.Variable([1.0], validate_shape=False)
    assert v.shape.rank is None
    assert v.assign([[1.0, 2.0]]).numpy().shape == (1, 2)
