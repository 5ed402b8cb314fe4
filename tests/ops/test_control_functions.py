"""case, switch_case, map_fn, scan, foldl, foldr, gradients and hessians, beside recorded facts."""

import numpy as np
import pytest

import treadle as td
from treadle.autodiff import check_gradients

X = np.array([[0.3, -0.7, 1.1], [0.9, 0.2, -0.4]])
W = np.array([0.5, 1.5, -0.8])


def mapped(x, w):
    return td.map_fn(lambda row: (td.tanh(row * w), td.reduce_sum(row)), x, (td.float64,) * 2)


def scanned(x, w):
    return td.scan(lambda h, row: td.tanh(h * w + row), x, initializer=w)


def scanned_back(x, w):
    return td.scan(lambda h, row: td.sin(h + row) * w, x, reverse=True)


def folded(x, w):
    return td.foldl(lambda h, row: h * row + w, x), td.foldr(lambda h, row: h * row + w, x, w)


def switched(x, w):
    fns = [lambda k=k: td.reduce_sum(x * w**k) for k in range(5)]
    return td.map_fn(lambda i: td.switch_case(i, fns), td.range(6), td.float64)


def in_cases(x, w):
    def choose(row):
        pairs = [(row[0] > 0.5, lambda: row * w), (row[0] > 0.0, lambda: row * row)]
        return td.case(pairs, default=lambda: -row)

    return td.map_fn(choose, x)


PROGRAMS = [mapped, scanned, scanned_back, folded, switched, in_cases]


@pytest.mark.parametrize("program", PROGRAMS)
def test_functions_give_what_eager_code_gives(program):
    expected = td.nest.flatten(program(td.constant(X), td.constant(W)))
    open_rows = [td.TensorSpec([None, 3], td.float64), td.TensorSpec([None], td.float64)]
    for traced in (td.function(program), td.function(program, input_signature=open_rows)):
        for want, found in zip(expected, td.nest.flatten(traced(X, W)), strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-14)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("wrap", [None, td.function])
def test_gradients_are_finite_differences(program, wrap):
    check_gradients(program, X, W, order=2, wrap=wrap)


@pytest.mark.parametrize("program", PROGRAMS)
def test_forward_mode_is_reverse_mode(program):
    x, w = td.constant(X), td.constant(W)
    tangents = [td.constant(np.cos(X)), td.constant(np.sin(W))]

    def forward(x, w):
        with td.autodiff.ForwardAccumulator([x, w], tangents) as accumulator:
            y = td.add_n([td.reduce_sum(v * v) for v in td.nest.flatten(program(x, w))])
        return accumulator.jvp(y)

    with td.GradientTape() as tape:
        tape.watch([x, w])
        y = td.add_n([td.reduce_sum(v * v) for v in td.nest.flatten(program(x, w))])
    pairs = zip(tape.gradient(y, [x, w]), tangents, strict=True)
    expected = sum(float(td.reduce_sum(g * t)) for g, t in pairs)
    np.testing.assert_allclose(forward(x, w), expected, rtol=1e-12)
    np.testing.assert_allclose(td.function(forward)(x, w), expected, rtol=1e-12)


def test_loops_over_rows_that_do_not_match_are_refused_when_they_run():
    @td.function(input_signature=[td.TensorSpec([None]), td.TensorSpec([None])])
    def f(x, y):
        return td.map_fn(lambda v: v[0] + v[1], (x, y), fn_output_signature=td.float32)

    np.testing.assert_array_equal(f(td.ones(3), td.ones(3)), [2, 2, 2])
    with pytest.raises(td.errors.InvalidArgumentError, match="different numbers of elements"):
        f(td.ones(3), td.ones(2))


def absolute(v):
    if v > 0.0:
        return v
    return -v


def test_functions_from_elsewhere_are_converted():
    @td.function
    def f(x):
        return td.map_fn(absolute, x), td.scan(lambda a, v: a + absolute(v), x)

    values, sums = f(td.constant([1.0, -2.0, 3.0]))
    np.testing.assert_array_equal(values, [1, 2, 3])
    np.testing.assert_array_equal(sums, [1, 3, 6])


def test_case_is_exclusive_where_it_must_be():
    @td.function
    def f(x):
        pairs = [(x > 0.0, lambda: x), (x > 1.0, lambda: x * 2.0)]
        return td.case(pairs, default=lambda: -x, exclusive=True)

    assert f(td.constant(0.5)) == 0.5
    with pytest.raises(td.errors.InvalidArgumentError, match="more than one condition"):
        f(td.constant(2.0))


def test_hessians_are_second_differences():
    def value(x):
        return np.sum(np.sin(x) * x[::-1] ** 2)

    @td.function(input_signature=[td.TensorSpec([None], td.float64)])
    def f(x):
        return td.hessians(td.reduce_sum(td.sin(x) * td.reverse(x, [0]) ** 2), x)

    for x in (W, np.linspace(-1.0, 1.0, 11)):
        step, eye = 1e-4, np.eye(len(x)) * 1e-4

        def difference(a, b, x=x):
            return value(x + a + b) - value(x + a - b) - value(x - a + b) + value(x - a - b)

        want = np.array([[difference(a, b) for b in eye] for a in eye])
        np.testing.assert_allclose(f(x)[0], want / (4 * step * step), atol=1e-6)


def test_gradients_reach_what_lies_outside_of_a_branch():
    @td.function
    def f(x):
        y = td.sin(x) * x
        if x > 0.0:
            z = td.gradients(y * y, [x, y])
        else:
            z = [x, y]
        return z

    x = 1.3
    y = np.sin(x) * x
    want = [2 * y * (np.cos(x) * x + np.sin(x)), 2 * y]
    np.testing.assert_allclose(f(td.constant(x)), want, 1e-5)
