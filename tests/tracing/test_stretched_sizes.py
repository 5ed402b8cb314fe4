"""Functions for open dims whose calls broadcast: a size of 1 against another one.

A trace takes open dims that meet in an elementwise op to be equal. A call for which NumPy would
stretch one of them runs a trace for its own sizes.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import treadle as td

OPEN = td.TensorSpec([None])
PAIRS = [((1,), (3,)), ((3,), (1,)), ((3,), (3,)), ((1,), (1,)), ((1,), (4,)), ((0,), (1,))]


def numbers(shape: tuple[int, ...], start: float = 0.5) -> td.Tensor:
    return td.constant(np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + start)


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-6)


def of_two(x: Any, y: Any) -> Any:
    return td.sin(x * y) - y, td.maximum(x, y), td.where(x > y, x, y)


@pytest.mark.parametrize("how", ["signature", "concrete", "relaxed", "saved"])
def test_any_sizes_that_broadcast(how: str, tmp_path: Any) -> None:
    function: Any = td.function(of_two, input_signature=[OPEN, OPEN])
    if how == "concrete":
        function = function.get_concrete_function()
    elif how == "relaxed":
        function = td.function(of_two, reduce_retracing=True)
        for size in (5, 6):
            function(numbers((size,)), numbers((size,)))
    elif how == "saved":
        module = td.Module()
        module.f = function
        td.saved_model.save(module, str(tmp_path))
        function = td.saved_model.load(str(tmp_path)).f
    for _ in range(3):  # also through the plans of later calls
        for a, b in PAIRS:
            x, y = numbers(a), numbers(b, 0.25)
            for found, expected in zip(function(x, y), of_two(x, y), strict=True):
                assert found.shape == expected.shape
                close(found, expected)


def test_sizes_that_do_not_broadcast_are_refused() -> None:
    function = td.function(of_two, input_signature=[OPEN, OPEN])
    with pytest.raises(td.errors.InvalidArgumentError, match="multiply"):
        function(numbers((3,)), numbers((2,)))


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_gradients_inside_and_outside(a: tuple[int], b: tuple[int]) -> None:
    def gradients(f: Any, x: Any, y: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch([x, y])
            z = td.reduce_sum(f(x, y)[0] * x)
        return tape.gradient(z, [x, y])

    inside = td.function(lambda x, y: gradients(of_two, x, y), input_signature=[OPEN, OPEN])
    inner = td.function(of_two, input_signature=[OPEN, OPEN])
    x, y = numbers(a), numbers(b, 0.25)
    for _ in range(2):
        for found in (inside(x, y), gradients(inner, x, y)):
            for mine, expected in zip(found, gradients(of_two, x, y), strict=True):
                assert mine.shape == expected.shape
                close(mine, expected)


def test_effects_happen_once() -> None:
    count = td.Variable(0.0)

    @td.function(input_signature=[OPEN, OPEN])
    def counted(x: Any, y: Any) -> Any:
        count.assign_add(1.0)
        return x + y + count

    for call in range(1, 5):
        close(counted(numbers((1,)), numbers((3,))), np.arange(3) + 1.0 + call)
        assert count.numpy() == call


def test_objects_among_the_arguments() -> None:
    class Scaled:
        factor = 2.0

        @td.function(input_signature=[OPEN, OPEN])
        def __call__(self, x: Any, y: Any) -> Any:
            return x - y * self.factor

    @td.function(reduce_retracing=True)
    def of_object(scaled: Any, x: Any, y: Any, power: int, names: list[str]) -> Any:
        return scaled.factor * x**power - y * len(names)

    scaled = Scaled()
    for a in (4, 5):
        of_object(scaled, numbers((a,)), numbers((a,)), 2, ["a", "b"])
    x, y = numbers((1,)), numbers((3,))
    close(scaled(x, y), x - y * 2)
    close(of_object(scaled, x, y, 2, ["a", "b"]), 2 * x**2 - y * 2)
    gone = weakref.ref(scaled)
    del scaled
    gc.collect()
    assert gone() is None


def test_elements_of_a_pipeline() -> None:
    sizes = [(1, 3), (3, 1), (2, 2)]
    data = td.data.Dataset.from_generator(
        lambda: ((np.ones(a, "f"), np.ones(b, "f")) for a, b in sizes),
        output_signature=(OPEN, OPEN),
    )
    shapes = [x.shape.as_list() for x in data.map(lambda a, b: a + b)]
    assert shapes == [[3], [3], [2]]


def test_a_model_whose_inputs_have_open_sizes() -> None:
    a, b = td.keras.Input((None,)), td.keras.Input((None,))
    model = td.keras.Model([a, b], td.keras.layers.Add()([a, b]))
    given = [np.ones((4, 1), "f"), np.ones((4, 3), "f")]
    close(model.predict(given, verbose=0), np.full((4, 3), 2.0))


def test_few_traces_serve_many_sizes() -> None:
    traces = []

    @td.function(input_signature=[OPEN, OPEN])
    def function(x: Any, y: Any) -> Any:
        traces.append((x.shape.as_list(), y.shape.as_list()))
        return x * y

    for size in range(2, 20):
        close(function(numbers((1,)), numbers((size,))), numbers((size,)) * 0.5)
        close(function(numbers((size,)), numbers((1,))), numbers((size,)) * 0.5)
    assert traces == [([None], [None]), ([1], [None]), ([None], [1])]
