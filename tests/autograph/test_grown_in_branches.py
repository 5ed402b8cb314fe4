"""Tensor arrays and tensors that grow in a branch inside a loop, and their gradients."""

import numpy as np
import pytest

import treadle as td
from treadle.autodiff import check_gradients


def array(shape=None):
    return td.TensorArray(td.float64, size=0, dynamic_size=True, element_shape=shape)


def at_the_end(xs):
    found = array()
    for x in xs:
        if x > 0.0:
            found = found.write(found.size(), x * x)
    return found.stack()


def in_both_branches(xs):
    found = array()
    for x in xs:
        if x > 0.0:
            found = found.write(found.size(), x)
        else:
            found = found.write(found.size(), -x)
            found = found.write(found.size(), x * 2.0)
    return found.stack()


def in_two_arrays_of_an_inner_loop(xs):
    positive, others = array(), array([2])
    for i in td.range(3):
        for x in xs:
            if x > 0.0:
                positive = positive.write(positive.size(), x)
            else:
                others = others.write(others.size(), td.stack([x, x * td.cast(i, td.float64)]))
    return td.reduce_sum(positive.stack() ** 2) + td.reduce_sum(others.stack() ** 2)


def in_nested_branches(xs):
    found, n = array(), 0
    while n < 4:
        if xs[n] > 0.0:
            if xs[n] > 0.7:
                found = found.write(found.size(), xs[n])
        elif xs[n] > -1.0:
            found = found.write(found.size(), xs[n] * 10.0)
        n += 1
    return found.stack()


def with_break_and_continue(xs):
    found = array()
    for x in xs:
        if x <= 0.0:
            continue
        found = found.write(found.size(), x)
        if x > 2.0:
            break
    return found.stack()


def returned_by_a_function(xs):
    def keep(found, x):
        if x > 0.0:
            return found.write(found.size(), x)
        return found

    found = array()
    for x in xs:
        found = keep(found, x)
    return found.stack()


def at_a_counted_position(xs):
    state = {"found": array(), "count": 0}
    for x in xs:
        if x > 0.0:
            state["found"] = state["found"].write(state["count"], x * x)
            state["count"] += 1
    return state["found"].stack()


def joined(xs):
    found = array()
    for x in xs:
        if x > 0.0:
            found = found.write(found.size(), td.stack([x, -x]))
    return found.concat()


def made_in_the_loop(xs):
    for x in xs:
        found = array()
        if x > 0.0:
            found = found.write(found.size(), x)
        found = found.write(found.size(), x * x)
    return found.stack()


def tensor_that_grows(xs):
    found = td.zeros([0], td.float64)
    for x in xs:
        if x > 0.0:
            found = td.concat([found, [x * x]], 0)
    return found


def tensor_that_grows_and_shrinks(xs):
    found = td.zeros([0, 2], td.float64)
    for x in xs:
        if x > 0.0:
            found = td.concat([found, td.stack([[x, x * x]])], 0)
        elif x < -1.0:
            found = found[:-1]
    return found


def by_a_conditional_expression(xs):
    found = array()
    for x in xs:
        found = found.write(found.size(), x) if x > 0.0 else found
    return found.stack()


PROGRAMS = [
    at_the_end,
    in_both_branches,
    in_two_arrays_of_an_inner_loop,
    in_nested_branches,
    with_break_and_continue,
    returned_by_a_function,
    at_a_counted_position,
    joined,
    made_in_the_loop,
    tensor_that_grows,
    tensor_that_grows_and_shrinks,
    by_a_conditional_expression,
]
POINTS = [[1.0, -2.3, 3.0, 0.5], [-0.2, 0.9, -0.4, 2.5], [0.3, 0.8, 1.7, 2.2]]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_functions_give_what_python_gives(program, point, monkeypatch):
    monkeypatch.setenv("TREADLE_STRICT", "1")
    xs = td.constant(point, td.float64)
    open_size = [td.TensorSpec([None], td.float64)]
    for traced in (td.function(program), td.function(program, input_signature=open_size)):
        np.testing.assert_array_equal(traced(xs), program(xs))


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_are_finite_differences(program):
    for point in POINTS:
        check_gradients(td.function(program), np.array(point), wrap=td.function)


@pytest.mark.parametrize("program", [at_the_end, tensor_that_grows, joined])
def test_nothing_may_be_written(program):
    xs = td.constant([-0.5, -0.25], td.float64)
    traced = td.function(program)
    assert traced(xs).shape == [0]
    with td.GradientTape() as tape:
        tape.watch(xs)
        y = td.reduce_sum(traced(xs))
    np.testing.assert_array_equal(tape.gradient(y, xs), [0.0, 0.0])
