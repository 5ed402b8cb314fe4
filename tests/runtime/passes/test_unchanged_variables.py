"""Loops that hand a value on: the memory behind it may be overwritten meanwhile."""

import numpy as np

import treadle as td
from tests.runtime.harness import both, trace
from treadle.core.spec import TensorSpec
from treadle.graph.passes import disabled
from treadle.ops.control.control_flow import while_loop


def counted(times, *state):
    """The state after a loop that does nothing with it."""
    found = while_loop(lambda i, *_: i < times, lambda i, *s: (i + 1, *s), (td.constant(0), *state))
    return found[1:]


def test_a_value_read_before_a_variable_is_written():
    w = td.Variable([1.0, 2.0, 3.0])

    def f(y):
        before = w.value()
        while_loop(lambda i: i < 1, lambda i: (w.assign(y), i + 1)[1:], (td.constant(0),))
        return counted(3, before)[0], w.value()

    with disabled("all"):
        both(trace(f, TensorSpec((3,))), np.array([5.0, 6.0, 7.0], np.float32))


def test_through_nested_loops():
    w = td.Variable([1.0, 2.0, 3.0])

    def f(y):
        before = w.value()

        def body(i, x):
            return i + 1, counted(2, x)[0]

        kept = while_loop(lambda i, x: i < 2, body, (td.constant(0), before))[1]
        w.assign(y * 2.0)
        return kept + 0.0, kept, counted(1, kept)[0]

    with disabled("all"):
        both(trace(f, TensorSpec((3,))), np.array([5.0, 6.0, 7.0], np.float32))
