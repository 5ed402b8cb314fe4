"""Loops over tensors whose variables change shape, or get their first value inside."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td


def doubling(x, n):
    while td.size(x) < n:
        x = td.concat([x, x * x + 1.0], 0)
    return x


def collecting(xs):
    rows = td.zeros([0, 2])
    for x in xs:
        if x > 0:
            rows = td.concat([rows, td.stack([[x, 2.0 * x]])], 0)
    return rows


def two_at_once(x, n):
    y = x
    for i in td.range(n):
        x, y = td.concat([x, y], 0), td.concat([y, x[:1] * td.cast(i, td.float32)], 0)
    return x, y


def matrix(x, n):
    while n > 0:
        x = td.pad(x, [[0, 1], [1, 0]], constant_values=3.0) * 2.0
        n -= 1
    return x


def columns(x, n):
    while n > 0:
        x = td.concat([x, td.sin(x[:, :1])], 1) * x[0, 0]
        n -= 1
    return td.reduce_sum(x * x)


def nested(x, n):
    for i in td.range(n):
        while td.size(x) < 4 * (i + 1):
            x = td.concat([x, x * x], 0)
        x = x[1:] * x[0]
    return x


CASES = {
    "doubling": (doubling, [1.0, 2.0], 7),
    "no iteration": (doubling, [1.0, 2.0], 1),
    "collecting": (collecting, [1.0, -1.0, 2.0, 3.0]),
    "two at once": (two_at_once, [1.0, 2.0], 3),
    "two dims": (matrix, [[1.0, 2.0]], 2),
    "columns": (columns, [[1.5, 2.0], [0.5, 1.0]], 3),
    "nested": (nested, [1.1, 0.7], 3),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_plain_python(name):
    f, *arguments = CASES[name]
    arguments = [td.constant(a) for a in arguments]
    found = td.function(f)(*arguments)
    for a, b in zip(td.nest.flatten(found), td.nest.flatten(f(*arguments)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.filterwarnings("error")  # these are compiled
@pytest.mark.parametrize("where", ["inside", "outside"])
@pytest.mark.parametrize("name", ["doubling", "columns", "two dims", "nested"])
def test_gradients(name, where):
    f, start, n = CASES[name]
    x, n = td.constant(start), td.constant(n)

    def gradient(x, f):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(f(x, n))
        return tape.gradient(y, x)

    compiled = td.function(f)
    found = td.function(lambda x: gradient(x, f))(x) if where == "inside" else gradient(x, compiled)
    np.testing.assert_allclose(found, gradient(x, f), rtol=1e-5)


def test_dims_unknown_on_entry():
    @td.function(input_signature=[td.TensorSpec([None])])
    def f(x):
        for _ in td.range(3):
            x = td.concat([x, [0.0]], 0)
        return x, td.shape(x)[0]

    x, size = f(td.constant([1.0, 2.0]))
    assert x.shape == [5] and size.numpy() == 5
    assert f.get_concrete_function().structured_outputs[0].shape.as_list() == [None]


def test_an_unknown_dim_of_while_loop_may_change():
    @td.function(input_signature=[td.TensorSpec([None])])
    def f(x):
        return td.while_loop(lambda x: td.size(x) < 9, lambda x: (td.concat([x, x], 0),), (x,))[0]

    assert f(td.constant([1.0, 2.0])).shape == [16]


def test_while_loop_itself_needs_shape_invariants():
    @td.function
    def f(x):
        return td.while_loop(lambda x: td.size(x) < 9, lambda x: (td.concat([x, x], 0),), (x,))

    with pytest.raises(ValueError, match="shape_invariants"):
        f(td.constant([1.0]))


def test_dims_that_stay_are_known_after_the_loop():
    shapes = []

    @td.function
    def f(x, n):
        while td.shape(x)[0] < n:
            x = td.concat([x, x], 0)
        shapes.append(x.shape.as_list())
        return x

    f(td.ones([1, 3]), td.constant(4))
    assert shapes[0] == [None, 3]


def test_the_error_of_a_rank_names_variable_line_and_types():
    @td.function
    def f(x):
        while td.reduce_sum(x) < 9:
            x = td.stack([x, x])
        return x

    with pytest.raises(ValueError, match=r"'x'.*shape \(2,\).*shape \(2, 2\)") as error:
        f(td.constant([1.0, 2.0]))
    assert "test_loop_shapes.py" in str(error.value)
    assert "while td.reduce_sum(x) < 9" in str(error.value)


def test_the_error_of_a_broken_invariant():
    @td.function
    def f(x):
        while td.size(x) < 9:
            td.autograph.experimental.set_loop_options(
                shape_invariants=[(x, td.TensorShape([None, 2]))]
            )
            x = td.concat([x, x], 1)
        return x

    with pytest.raises(ValueError, match=r"'x'.*\(None, 2\).*\(None, 4\).*invariant needs None"):
        f(td.ones([1, 2]))


# -- first value inside the loop -------------------------------------------------------------------


def last(xs):
    for x in xs:
        y = x
    return y


def last_positive(xs):
    for x in xs:
        if x > 0:
            y = x, x + 1.0
    return y


def guarded(xs):
    for x in xs:
        if x > 0:
            y = x
    if xs[0] > 0:
        return y
    return td.constant(-1.0)


def skipping(xs):
    for x in xs:
        if x < 0:
            continue
        y = x
    return y


def inner(xs):
    for i in td.range(2):
        for x in xs:
            if x > 0:
                y = x + td.cast(i, td.float32)
    return y


@pytest.mark.parametrize("f", [last, last_positive, guarded, skipping, inner])
@pytest.mark.parametrize("xs", [[3.0, -1.0], [-2.0], []])
def test_first_value_inside(f, xs):
    """The value of plain Python, or an error where plain Python raises UnboundLocalError."""
    xs = td.constant(xs, td.float32, shape=[len(xs)])
    if f is guarded and not len(xs):
        return  # reads xs[0]
    staged = td.function(f, reduce_retracing=True)
    try:
        expected = f(xs)
    except UnboundLocalError:
        with pytest.raises(td.errors.InvalidArgumentError, match="before it has a value") as e:
            staged(xs)
        assert "'y'" in str(e.value)
        return
    for a, b in zip(td.nest.flatten(staged(xs)), td.nest.flatten(expected), strict=True):
        np.testing.assert_array_equal(a, b)


def test_gradient_of_a_first_value():
    x = td.constant([1.0, 2.0, -1.0])
    compiled = td.function(skipping)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = compiled(x) * 2.0
    np.testing.assert_array_equal(tape.gradient(y, x), [0.0, 2.0, 0.0])


def test_a_shape_that_only_the_loop_knows():
    @td.function
    def f(xs):
        for limit in xs:
            kept = td.boolean_mask(xs, xs > limit)
        return kept

    np.testing.assert_array_equal(f(td.constant([2.0, 3.0, 1.0])), [2.0, 3.0])
