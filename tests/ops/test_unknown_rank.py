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


ONE = [1, 1, 1, 1]
V = td.Variable(1.0)


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
    "print": lambda y: td.print(y, summarize=-1),
    "transpose": lambda y: td.transpose(y),
    "squeeze": lambda y: td.squeeze(y),
    "where": lambda y: td.where(y > 0.0, y, 1.0),
    "assign_variable": lambda y: V.assign(y).read_value(),
    "call of a function": lambda y: td.function(lambda z: z)(y),
    "stack": lambda y: td.stack([y, y]),
    "image": lambda y: td.image.convert_image_dtype(y, td.uint8),
    "both ways": lambda y: td.constant(2.0) - y * y + y[...],
    "one hot": lambda y: td.one_hot(td.cast(y, td.int32), 5),
    "reversed operands": lambda y: np.float32(3) / y,
    "named": lambda y: td.add(y, 1.0, name="sum"),
}


@pytest.mark.parametrize("name", USES)
def test_operations_give_what_they_give_eagerly(name: str, capfd: Any) -> None:
    def f(x: Any) -> Any:
        return USES[name](doubled(x))

    compiled = td.function(f)
    runs = 0
    for x in VALUES:
        try:
            expected = f(x)
        except (td.errors.InvalidArgumentError, TypeError, ValueError, IndexError):
            with pytest.raises((td.errors.InvalidArgumentError, ValueError)):
                compiled(x)
            continue
        runs += 1
        found = compiled(x)
        for mine, eager in zip(td.nest.flatten(found), td.nest.flatten(expected), strict=True):
            assert mine is eager is None or (mine.dtype, mine.shape) == (eager.dtype, eager.shape)
            if eager is not None:
                np.testing.assert_array_equal(mine, eager)
    assert runs
    printed = capfd.readouterr().err.splitlines()
    assert len(printed) == (2 * sum("[" in t or t == "6" for t in printed[::2]) if printed else 0)


@pytest.mark.parametrize(("name", "native"), [("cast", True), ("add", True), ("reduce", False)])
def test_what_computes_by_element_stays_in_the_program(name: str, native: bool) -> None:
    f = td.function(lambda x: USES[name](doubled(x)))
    f(X)
    nodes = [node.op.name for node in f.get_concrete_function(X).graph.walk()]
    assert ("late_call" not in nodes) is native


def test_ranks_that_are_known_by_the_operation() -> None:
    def f(x: Any, kernel: Any) -> Any:
        images = td.numpy_function(lambda a: a, [x], td.float32)
        same = td.nn.depthwise_conv2d(images, kernel, ONE, "SAME")  # takes four axes only
        if not td.executing_eagerly():
            assert same.shape.rank == 4 and td.shape(images).shape.rank == 1
            assert td.reduce_sum(images).shape.rank == 0 and (images * 2.0).shape.rank is None
        return same

    x, kernel = td.ones([2, 4, 4, 1]), td.ones([3, 3, 1, 2])
    compiled = td.function(f)
    np.testing.assert_allclose(compiled(x, kernel), f(x, kernel))
    with pytest.raises(td.errors.InvalidArgumentError, match="shape is"):
        compiled(td.ones([4, 4, 1]), kernel)


def test_gradients_of_calls_that_the_run_makes() -> None:
    def f(x: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.py_function(lambda t: t * t, [x], td.float32)
            z = td.reduce_sum(td.expand_dims(y, 0) * 3.0) + td.reduce_sum(y[..., :1] * 2.0)
        return tape.gradient(z, x)

    compiled = td.function(f)
    for x in (X, td.ones([2, 3]), td.ones([2, 1, 3])):
        np.testing.assert_allclose(compiled(x), f(x))
        assert np.asarray(compiled(x)).any()


def test_random_calls_that_the_run_makes_are_made_once() -> None:
    f = td.function(lambda x: td.random.shuffle(doubled(x)))
    x = td.range(50.0)
    first, second = f(x).numpy(), f(x).numpy()
    assert sorted(first) == sorted(second) == sorted(2 * x.numpy()) and (first != second).any()


def test_subscripts_with_tensors() -> None:
    def f(x: Any, n: Any) -> Any:
        y = doubled(x)
        return y[n:], y[..., td.newaxis], y[n], y[: td.shape(y)[0] - 1]

    for x in (X, td.ones([3, 2])):
        for mine, eager in zip(td.function(f)(x, 1), f(x, td.constant(1)), strict=True):
            np.testing.assert_array_equal(mine, eager)


def test_a_pipeline_of_python_functions() -> None:
    def load(n: Any) -> Any:
        return np.arange(6, dtype=np.uint8).reshape(2, 3) + n.astype(np.uint8)

    def prepared(n: Any) -> Any:
        image = td.cast(td.numpy_function(load, [n], td.uint8), td.float32) / 255.0
        image = td.expand_dims(image, -1)
        image.set_shape([2, 3, 1])
        return image

    rows = td.data.Dataset.range(4).map(prepared).batch(2)
    assert rows.element_spec.shape.as_list() == [None, 2, 3, 1]
    found = np.concatenate([b.numpy() for b in rows])
    expected = [(load(np.int64(n)) / np.float32(255))[..., None] for n in range(4)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_conditions_on_a_rank() -> None:
    @td.function
    def f(x: Any) -> Any:
        y = doubled(x)
        if td.rank(y) == 2:
            return td.reduce_sum(y)
        return td.reduce_max(y)

    assert float(f(X)) == 4.0 and float(f(td.ones([2, 3]))) == 12.0


def test_what_needs_the_rank_in_python_says_that_it_is_unknown() -> None:
    with pytest.raises(ValueError, match="the rank of a tensor is not known while 'f' is") as e:

        def f(x: Any) -> Any:
            return list(range(doubled(x).ndim))

        td.function(f)(X)
    text = str(e.value)
    assert "x.set_shape([...])" in text and "td.ensure_shape" in text and "td.reshape" in text
    assert text.count("test_unknown_rank.py") >= 2  # where it was made, and where it is used


def test_problems_that_no_rank_solves_are_told() -> None:
    f = td.function(lambda x: td.matmul(doubled(x), td.constant([[1]])))
    with pytest.raises(td.errors.InvalidArgumentError, match="matmul.*(dtype|i32)"):
        f(td.ones([1, 1]))


# -- vectors whose length decides a rank ----------------------------------------------------------

LENGTHS: dict[str, tuple[Callable[[Any], Any], list[list[Any]]]] = {
    "zeros": (lambda n: td.zeros(n), [[3, 2], [4], []]),
    "reshape": (lambda n: td.reshape(td.range(6.0), n), [[3, 2], [-1], [1, 2, 3]]),
    "broadcast_to": (lambda n: td.broadcast_to(td.range(3), n), [[3], [2, 3]]),
    "fill": (lambda n: td.fill(n, 2.0) + 1.0, [[2, 2], [3]]),
    "tile": (lambda n: td.tile(td.ones([2, 3]), n), [[2, 1]]),
    "roll": (lambda n: td.roll(td.reshape(td.range(6), [2, 3]), n, [0, 1]), [[1, 2]]),
    "slice": (lambda n: td.slice(td.reshape(td.range(6), [2, 3]), n, [1, 1]), [[1, 2]]),
    "transpose": (lambda n: td.transpose(td.reshape(td.range(6), [2, 3]), n), [[1, 0], [0, 1]]),
    "pad": (lambda n: td.pad(td.ones([2, 3]), td.stack([n, n], 1)), [[1, 2]]),
    "gather_nd": (lambda n: td.gather_nd(td.reshape(td.range(6), [2, 3]), n[None]), [[1], [1, 2]]),
    "scatter_nd": (lambda n: td.scatter_nd([[1]], [2.0], n), [[3]]),
    "unravel": (lambda n: td.image.resize(td.ones([1, 2, 2, 1]), n), [[3, 4]]),
}


def of_its_own_length(n: Any) -> Any:
    """A tensor of as many axes as the vector has elements, repeated along each."""
    return td.tile(td.reshape(td.ones([1]), td.ones_like(n)), n)


LENGTHS["longer than is tried"] = (lambda n: td.zeros(n), [[1] * 6, [1, 2] * 4])
LENGTHS["a rank and a length"] = (of_its_own_length, [[2], [1, 3], [1, 1, 1, 1, 1, 2]])


@pytest.mark.parametrize("name", LENGTHS)
def test_vectors_of_any_length(name: str) -> None:
    function, values = LENGTHS[name]
    for given in (  # by the signature, and of a length that only the run knows
        td.function(function, input_signature=[td.TensorSpec([None], td.int32)]),
        td.function(lambda n: function(td.boolean_mask(n, n > -9)), reduce_retracing=True),
    ):
        for value in values:
            n = td.constant(value, td.int32)
            found, expected = given(n), function(n)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(found, expected)


# -- axes that only a run knows -------------------------------------------------------------------

MATRIX = td.constant([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]])
AXES: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "reduce_sum": (lambda a: td.reduce_sum(MATRIX, a), [0, 1, -1, [0], [0, 1], [-1]]),
    "reduce_max": (lambda a: td.reduce_max(MATRIX, a, keepdims=True), [0, [1]]),
    "derived": (lambda a: td.reduce_mean(MATRIX, td.cast(a, td.int64) - 1), [0, 1]),
    "expand_dims": (lambda a: td.expand_dims(MATRIX, a), [0, 1, 2, -1]),
    "concat": (lambda a: td.concat([MATRIX, MATRIX], a), [0, 1]),
    "stack": (lambda a: td.stack([MATRIX, MATRIX], a), [0, 2]),
    "gather": (lambda a: td.gather(MATRIX, [1, 0], axis=a), [0, 1]),
    "reverse": (lambda a: td.reverse(MATRIX, a), [[0], [1], [0, 1]]),
    "argmax": (lambda a: td.argmax(MATRIX, a), [0, 1]),
    "cumsum": (lambda a: td.cumsum(MATRIX, a), [0, 1]),
    "split": (lambda a: td.split(MATRIX, [1, 1], axis=a), [0]),
    "l2_normalize": (lambda a: td.nn.l2_normalize(MATRIX, a), [0, 1]),
    "softmax": (lambda a: td.nn.softmax(MATRIX, a), [0, -1]),
    "log_softmax": (lambda a: td.nn.log_softmax(MATRIX, a), [0, 1]),
    "cross_entropy": (
        lambda a: td.nn.softmax_cross_entropy_with_logits(MATRIX, MATRIX, axis=a),
        [0, 1],
    ),
    "norm": (lambda a: td.norm(MATRIX, axis=a, keepdims=True), [0, 1]),
    "sort": (lambda a: td.sort(MATRIX, a), [0, 1]),
    "argsort": (lambda a: td.argsort(MATRIX, a), [0, 1]),
    "one_hot": (lambda a: td.one_hot([0, 2], 3, axis=a), [0, 1, -1]),
    "unstack": (lambda a: td.unstack(MATRIX[:, :2], axis=a), [0, 1]),
    "boolean_mask": (lambda a: td.boolean_mask(MATRIX[:, :2], [True, False], axis=a), [0, 1]),
    "moments": (lambda a: td.nn.moments(MATRIX, a), [[0], [0, 1]]),
    "roll": (lambda a: td.roll(MATRIX, a + 1, a), [0, 1, [0, 1], [1]]),
    "tensordot": (lambda a: td.tensordot(MATRIX, MATRIX, [a, a]), [[0], [1], [0, 1], []]),
    "tensordot of rows": (lambda a: td.tensordot(MATRIX, MATRIX, td.stack([a, a])), [[0], [0, 1]]),
    "tensordot of several": (lambda a: td.tensordot(MATRIX[:, :2], MATRIX, a), [0, 1]),
}


@pytest.mark.parametrize("name", AXES)
def test_axes(name: str) -> None:
    function, values = AXES[name]
    vector = td.function(function, input_signature=[td.TensorSpec([None], td.int32)])
    for value in values:
        compiled = vector if isinstance(value, list) else td.function(function)
        axis = td.constant(value, td.int32)
        found, expected = td.nest.flatten(compiled(axis)), td.nest.flatten(function(axis))
        for mine, eager in zip(found, expected, strict=True):
            assert (mine.dtype, mine.shape) == (eager.dtype, eager.shape)
            np.testing.assert_allclose(mine, eager, rtol=1e-6)


def test_axes_that_there_are_not() -> None:
    f = td.function(lambda a: td.reduce_sum(MATRIX, a))
    for axis in (2, -3):
        with pytest.raises(td.errors.InvalidArgumentError, match=f"axis {axis} is out of range"):
            f(td.constant(axis))


def test_gradients_of_operands_that_are_no_symbolic_tensors() -> None:
    variable = td.Variable(MATRIX)

    def f(axis: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(MATRIX)
            y = td.reduce_sum(td.reduce_sum(variable * MATRIX, axis) ** 2)
            y += td.reduce_sum(td.reduce_sum(MATRIX, axis) ** 2)
            y += td.reduce_sum(td.expand_dims(variable, axis) ** 3)
            y += td.reduce_sum(variable.sum(axis) ** 2)
        return tape.gradient(y, [variable, MATRIX])

    compiled = td.function(f)
    for axis in (0, 1):
        for mine, eager in zip(compiled(td.constant(axis)), f(td.constant(axis)), strict=True):
            np.testing.assert_allclose(mine, eager, rtol=1e-6)


def test_methods_of_variables_get_the_variable() -> None:
    variable = td.Variable([1.0, 2.0, 3.0])
    signature = [td.TensorSpec([None, None], td.int32), td.TensorSpec([None])]

    @td.function(input_signature=signature)
    def f(places: Any, values: Any) -> Any:
        before = variable + 0.0
        updated = variable.scatter_nd_add(places, values)
        td.compat.v1.scatter_nd_update(variable, places - 1, values)
        return before, updated + 1.0

    for n in (1, 2):
        assert f([[2]], [7.0])[0].numpy().tolist() == [[1.0, 2.0, 3.0], [1.0, 7.0, 10.0]][n - 1]
        assert variable.numpy().tolist() == [1.0, 7.0, 3.0 + 7.0 * n]


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


# -- loops ----------------------------------------------------------------------------------------


def grown(x: Any, n: Any) -> Any:
    shapes = [td.TensorShape([]), td.TensorShape(None)]
    _, y = td.while_loop(
        lambda i, _: i < n, lambda i, y: (i + 1, td.expand_dims(y * 2.0, 0)), [0, x], shapes
    )
    return y


def grown_by_a_statement(x: Any, n: Any) -> Any:
    for _ in td.range(n):
        td.autograph.experimental.set_loop_options(shape_invariants=[(x, td.TensorShape(None))])
        x = td.stack([x, x])
    return x + 1.0


def called_again(x: Any, n: Any) -> Any:
    y = td.numpy_function(lambda a: a[None], [x], td.float32)
    for i in td.range(n):
        y = td.numpy_function(lambda a: a[None] + np.float32(1), [y], td.float32)
        if i > 1:
            break
    return y, td.rank(y)


def first_assigned_inside(x: Any, n: Any) -> Any:
    for i in td.range(n + 1):
        y = doubled(x) + td.cast(i, td.float32)
    return y


def summed(x: Any, n: Any) -> Any:
    y, total = doubled(x), td.constant(0.0)
    for i in td.range(n):
        total += td.reduce_sum(y[..., None]) * td.cast(i, td.float32)
        y = y * 2.0
    return y, total


def by_rows(x: Any, n: Any) -> Any:
    total = 0.0
    for row in doubled(x[None]):
        total += td.reduce_max(row)
    while td.numpy_function(lambda t: t < 9, [total], td.bool):
        total += td.cast(n + 1, td.float32)
    return total


LOOPS = [grown, grown_by_a_statement, called_again, first_assigned_inside, summed, by_rows]


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_carry_them(loop: Callable[..., Any]) -> None:
    compiled = td.function(loop)
    for x in (X, td.constant([[1.0, 2.0], [3.0, 4.0]])):
        for n in (0, 1, 3):
            expected = loop(x, td.constant(n))
            found = compiled(x, td.constant(n))
            for a, b in zip(td.nest.flatten(found), td.nest.flatten(expected), strict=True):
                np.testing.assert_array_equal(a, b)
                assert np.shape(a) == np.shape(b)


@pytest.mark.parametrize("loop", [grown, grown_by_a_statement])
def test_gradients_of_such_loops(loop: Callable[..., Any]) -> None:
    def slope(x: Any, n: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(x)
            y = loop(x * x, n)
            z = td.reduce_sum(y * y)
        return tape.gradient(z, x)

    compiled = td.function(slope)
    for n in (0, 2):
        np.testing.assert_allclose(compiled(X, td.constant(n)), slope(X, td.constant(n)))


def test_a_rank_stays_where_the_body_keeps_it() -> None:
    seen = []

    @td.function
    def f(x: Any, n: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            seen.append(y.shape)
            return i + 1, td.concat([y, y], 0)

        shapes = [td.TensorShape([]), td.TensorShape(None)]
        return td.while_loop(lambda i, _: i < n, body, [0, x], shapes)[1]

    assert f(X, td.constant(2)).shape == [8] and seen[0].as_list() == [None]


def test_loops_that_may_not_change_a_rank() -> None:
    def python(i: Any, y: Any) -> Any:
        return i + 1, doubled(y)

    def expanded(i: Any, y: Any) -> Any:
        return i + 1, y[None]

    for body in (python, expanded):
        f = td.function(lambda x, n, body=body: td.while_loop(lambda i, _: i < n, body, [0, x]))
        with pytest.raises(ValueError, match="shape_invariants"):
            f(X, td.constant(1))
    known = [td.TensorShape([]), td.TensorShape([2])]
    f = td.function(lambda x: td.while_loop(lambda i, _: i < 1, python, [0, doubled(x)], known))
    with pytest.raises(ValueError, match="unknown rank, which its shape invariant"):
        f(X)


def test_a_result_of_unknown_rank_may_be_named() -> None:
    @td.function
    def doubled(x: Any) -> Any:
        return td.numpy_function(lambda v: v * 2, [x], td.int32, name="twice")

    np.testing.assert_array_equal(doubled(td.constant([1, 2])), [2, 4])
    made = doubled.get_concrete_function(td.TensorSpec([2], td.int32)).structured_outputs
    assert made.shape.rank is None
