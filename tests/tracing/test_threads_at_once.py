"""Threads that trace, compile, differentiate and draw at once, and what they must not mix up."""

import gc
import itertools
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import treadle as td
from tests.tracing.together import together
from treadle.core.frames import callers

X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns after almost every instruction."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def left(x):
    return left_inner(x) + left_inner(x * 2.0)


def left_inner(x):
    return td.sin(x) - td.cos(x)


def right(x):
    return right_inner(x) * right_inner(x - 3.0)


def right_inner(x):
    return td.tanh(x) / td.exp(x)


def test_operations_keep_the_calls_that_led_to_them(switching: None) -> None:
    """The frames of the last operation are shared with the next one of the same function: not with
    those of another thread."""

    def trace(fn):
        found = set()
        for _ in range(40):
            graph = td.function(fn).get_concrete_function(td.TensorSpec([3])).graph
            for node in graph.nodes:
                calls = [place.function for place in callers(node.origin)]
                found.add((*calls, node.origin.function))
        return found

    for name, found in zip(
        ("left", "right"), together(lambda: trace(left), lambda: trace(right)), strict=True
    ):
        assert found == {(name,), (name, f"{name}_inner")}


def program(k: int):
    """Work with functions that are new each time, and what it must give."""
    c = np.float32(1.0 + k % 7)
    v = td.Variable(np.zeros(4, np.float32))

    @td.function
    def step(x, n):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in td.range(n):
                y = y * 0.5 + c
            loss = td.reduce_sum(y * x)
        v.assign_add(x[0])
        return loss, tape.gradient(loss, x)

    @td.jit
    def jitted(x):
        total = np.zeros_like(x[0])
        for row in x:
            total = total + row * c
        return total

    loss, gradient = step(td.constant(X), td.constant(3))
    y = X
    for _ in range(3):
        y = y * np.float32(0.5) + c
    np.testing.assert_allclose(loss, (y * X).sum(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradient, y + X / 8, rtol=1e-5)
    np.testing.assert_allclose(v, X[0])
    np.testing.assert_allclose(jitted(X), (X * c).sum(0), rtol=1e-5, atol=1e-6)
    drawn = td.random.stateless_uniform([3], [k, 1]).numpy()
    assert np.array_equal(td.function(lambda: td.random.stateless_uniform([3], [k, 1]))(), drawn)
    with td.name_scope(f"scope{k}"):
        assert td.Variable(1.0, name="own").name == f"scope{k}/own:0"


def test_threads_do_different_work_at_once(switching: None) -> None:
    together(*[lambda k=k: program(k) for k in range(2)], seconds=120)


@pytest.mark.thorough
def test_threads_do_different_work_for_long(switching: None) -> None:
    """Meanwhile another thread empties the caches and collects what is garbage."""
    running = [True] * 4

    def work(first: int) -> None:
        try:
            for k in range(first, first + 12):
                program(k)
        finally:
            running.pop()

    def clear() -> None:
        for turn in itertools.count():
            if not running:
                break
            (gc.collect if turn % 3 else td.clear_caches)()

    together(clear, *[lambda k=k: work(100 * k) for k in range(4)], seconds=600)


def test_finalizers_call_functions_while_others_are_traced() -> None:
    """Objects that die during a trace may have functions of their own traced and compiled."""
    calls = []

    class Dying:
        def __del__(self) -> None:
            with td.init_scope():
                calls.append(td.function(lambda x: x * 2.0)(td.ones([2])).numpy().tolist())

    @td.function
    def f(x):
        y = td.sin(x)
        Dying()  # dies at once
        cycle = [Dying()]
        cycle.append(cycle)
        del cycle
        gc.collect()
        return y + 1.0

    np.testing.assert_allclose(f(X), np.sin(X) + 1.0, rtol=1e-6)
    assert len(calls) >= 2 and all(call == [2.0, 2.0] for call in calls)
