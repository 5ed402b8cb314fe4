"""Functions that ask which variable an argument is, as optimizers with slots do."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import treadle as td

X, Y = td.constant([-1.0]), td.constant([2.0])


def step(w: Any, optimizer: Any) -> None:
    with td.GradientTape() as tape:
        loss = td.reduce_sum(td.square(w * X - Y))
    optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w], strict=True))


def adam() -> Any:
    return td.keras.optimizers.Adam(0.1)


def expected(start: float, steps: int) -> float:
    w, optimizer = td.Variable(start), adam()
    for _ in range(steps):
        step(w, optimizer)
    return float(w)


def test_an_optimizer_of_a_variable_that_is_an_argument() -> None:
    w, optimizer, function = td.Variable(2.0), adam(), td.function(step)
    for _ in range(4):
        function(w, optimizer)
    np.testing.assert_allclose(float(w), expected(2.0, 4), rtol=1e-6)
    assert function.experimental_get_tracing_count() == 2  # as TensorFlow
    assert len(optimizer.variables) == 4


def test_each_variable_has_slots_of_its_own() -> None:
    """TensorFlow's function goes on with the slots of the first variable."""
    first, second, optimizer = td.Variable(2.0), td.Variable(5.0), adam()
    optimizer.build([first, second])
    function = td.function(step)
    for _ in range(3):
        function(first, optimizer)
    np.testing.assert_allclose(float(first), expected(2.0, 3), rtol=1e-6)
    before = float(first)
    function(second, optimizer)
    assert float(first) == before and float(second) != 5.0
    assert len(optimizer.variables) == 6


def test_a_variable_that_the_optimizer_does_not_know_is_refused_later() -> None:
    first, second, optimizer = td.Variable(2.0), td.Variable(5.0), adam()
    function = td.function(step)
    function(first, optimizer)
    with pytest.raises(ValueError, match="not its first"):
        function(second, optimizer)


class Step(td.Module):
    def __init__(self) -> None:
        self.optimizer = adam()

    @td.function
    def __call__(self, w: Any) -> None:
        step(w, self.optimizer)


def test_methods_and_functions_have_first_calls_of_their_own() -> None:
    w = td.Variable(2.0)
    for part in (Step(), Step()):
        part(w)
    functions = [(td.function(step), adam()) for _ in range(2)]
    for _ in range(3):
        for function, optimizer in functions:
            function(w, optimizer)
    assert all(len(optimizer.variables) == 4 for _, optimizer in functions)


def test_references_tell_variables_apart() -> None:
    names = {}
    a, b = td.Variable(1.0), td.Variable(2.0)
    names[a.ref()], names[b.ref()] = 10.0, 20.0
    function = td.function(lambda v: v * names[v.ref()])
    assert [float(function(v)) for v in (a, b, a)] == [10.0, 40.0, 10.0]


def test_variables_are_not_kept() -> None:
    function = td.function(lambda w: w * (2.0 if w.ref() else 1.0))
    w = td.Variable(2.0)
    assert float(function(w)) == 4.0
    gone = weakref.ref(w)
    del w
    gc.collect()
    assert gone() is None
