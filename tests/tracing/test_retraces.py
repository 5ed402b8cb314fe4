"""Explaining, forbidding and reducing retraces."""

import warnings

import numpy as np
import pytest

import treadle as td


@pytest.fixture
def f():
    @td.function
    def f(x, scale=1, *, options=None):
        return x * td.cast(scale, x.dtype)

    return f


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (([1.0],), ([1.0, 2.0],), ["x: f32[1] -> f32[2]", "reduce_retracing=True"]),
        (([1.0],), ([1],), ["x: f32[1] -> i32[1]", "dtype"]),
        (([1.0],), ([[1.0]],), ["x: f32[1] -> f32[1, 1]", "rank"]),
        (([1.0], 1), ([1.0], 2), ["scale: 1 -> 2", "td.constant"]),
        (([1.0], 1), ([1.0], td.constant(1)), ["scale: 1 -> i32[]", "Python value"]),
    ],
)
def test_the_argument_with_both_values_is_named(f, first, second, words):
    for x, *rest in (first, second):
        f(td.constant(x), *rest)
    report = str(f.explain())
    assert "f was traced 2 times" in report and "nearest to trace 1" in report
    assert "test_retraces.py" in report
    (difference,) = td.explain_retraces(f).traces[1].differences
    for word in words:
        assert word in str(difference)


def test_the_nearest_trace_is_the_one_compared_with(f):
    x = td.constant([1.0])
    f(x, 1, options="a")
    f(td.constant([1.0, 2.0]), 2, options="b")
    f(td.constant([1.0, 2.0]), 3, options="b")
    last = f.explain().traces[-1]
    assert last.nearest == 2 and [d.argument for d in last.differences] == ["scale"]


def test_structures(f):
    @td.function
    def g(batch):
        return 0

    g({"a": td.constant(1)})
    g({"a": td.constant(1), "b": [td.constant(2.0)]})
    (difference,) = g.explain().traces[1].differences
    assert difference.argument == "batch['b'][0]" and difference.old == "(absent)"


def test_no_retrace(f):
    with td.no_retrace():
        f(td.constant([1.0]))  # a first trace is no retrace
        f(td.constant([2.0]))
        with pytest.raises(td.RetraceError, match=r"traced again[\s\S]*f32\[1\] -> f32\[2\]"):
            f(td.constant([1.0, 2.0]))
    assert f.experimental_get_tracing_count() == 1
    assert f(td.constant([1.0, 2.0])).shape == [2]
    with pytest.raises(TypeError, match="needs a td.function"):
        td.explain_retraces(len)


def test_one_warning_that_names_the_cause(f):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(20):
            f(td.constant([1.0]), step)
    (warning,) = [w for w in caught if issubclass(w.category, RuntimeWarning)]
    assert "because of scale" in str(warning.message) and "td.constant" in str(warning.message)


def test_no_warning_for_different_causes(f):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for x in ([1.0], [1], [[1.0]], [True]):
            for scale in (1, 2.0):
                if x != [True]:
                    f(td.constant(x), scale)


# -- reduce_retracing -------------------------------------------------------------------------


def test_dims_that_differ_become_open():
    shapes = []

    @td.function(reduce_retracing=True)
    def f(x, y):
        shapes.append((x.shape.as_list(), y.shape.as_list()))
        return td.reduce_sum(x, axis=0) + y

    for rows in (2, 3, 4, 0, 7):
        for _ in range(2):
            out = f(np.ones((rows, 3), np.float32), np.zeros(3, np.float32))
            np.testing.assert_array_equal(out.numpy(), [rows] * 3)
    assert shapes == [([2, 3], [3]), ([None, 3], [3])]


def test_other_ranks_and_dtypes_are_not_generalized():
    traces = []

    @td.function(reduce_retracing=True)
    def f(x):
        traces.append(x)
        return x + x

    for x in ([1.0], [[1.0]], [1], [[1]]):
        f(td.constant(x))
    assert len(traces) == 4


def test_a_trace_with_open_dims_serves_later_calls():
    @td.function
    def f(x):
        return x + 1.0

    concrete = f.get_concrete_function(td.TensorSpec([None]))
    np.testing.assert_array_equal(f(td.constant([1.0, 2.0])).numpy(), [2, 3])
    np.testing.assert_array_equal(f(td.constant([1.0])).numpy(), [2])
    assert f.experimental_get_tracing_count() == 1
    assert f.get_concrete_function(td.constant([5.0])) is concrete


def test_many_arguments_are_a_short_report():
    @td.function
    def total(xs, y):
        return td.add_n(xs) * y

    total([td.ones([2])] * 40, td.ones([2]))
    total([td.ones([2], td.float64)] * 40, td.ones([2], td.float64))
    text = str(total.explain())
    assert "xs[0] ... xs[39]: 40 times f32[2], y: f32[2]" in text
    assert "and 36 more" in text
    assert len(text) < 1500
