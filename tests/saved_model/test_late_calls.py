"""Saved functions with calls that only a run can make, as it knows a rank, a length or an axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.graph.tokens import GraphSyntaxError
from treadle.saved_model.functions import literal, read_literal
from treadle.tracing.late_calls import LateCall

MATRIX = td.constant([[1.0, 2.0], [3.0, 4.0]])
ANY_MATRIX = td.TensorSpec([None, None])


class Model(td.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = td.Variable([1.0, 2.0])

    @td.function(input_signature=[ANY_MATRIX, td.TensorSpec([None], td.int32)])
    def reduced(self, x: Any, axes: Any) -> Any:
        return td.reduce_sum(x * self.scale, axes), td.reduce_max(x, axis=axes, keepdims=True)

    @td.function(input_signature=[ANY_MATRIX, td.TensorSpec([], td.int32)])
    def of_two_ranks(self, x: Any, n: Any) -> Any:
        y = td.cond(n > 0, lambda: x, lambda: td.reduce_sum(x, 0))
        return y[..., None][0], y[: n + 1], td.rank(y), td.math.top_k(y, 1), 2.0 - y * y

    @td.function(input_signature=[ANY_MATRIX, td.TensorSpec([], td.int32)])
    def joined(self, x: Any, axis: Any) -> Any:
        return {"a": td.concat([x, [[5.0, 6.0], [7.0, 8.0]]], axis), "b": td.stack([x, x], axis)}

    @td.function(input_signature=[ANY_MATRIX, td.TensorSpec([], td.int32)])
    def slope(self, x: Any, axis: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(td.reduce_sum(x * x, axis) ** 2)
        return tape.gradient(y, x)

    @td.function(input_signature=[ANY_MATRIX, td.TensorSpec([], td.int32)])
    def grown(self, x: Any, n: Any) -> Any:
        for _ in td.range(n):
            td.autograph.experimental.set_loop_options(
                shape_invariants=[(x, td.TensorShape(None))]
            )
            x = td.expand_dims(x, 0)
        return x


CALLS = [
    ("reduced", [[0]]), ("reduced", [[0, 1], [1]]), ("of_two_ranks", [0, 1]), ("joined", [0, 1]),
    ("slope", [0, 1]), ("grown", [0, 2]),
]  # fmt: skip


def test_what_they_gave_before(tmp_path: Any) -> None:
    model = Model()
    td.saved_model.save(model, str(tmp_path))
    loaded = td.saved_model.load(str(tmp_path))
    for name, arguments in CALLS:
        for argument in arguments:
            given = getattr(loaded, name)(MATRIX, argument)
            expected = getattr(model, name)(MATRIX, argument)
            pairs = zip(td.nest.flatten(given), td.nest.flatten(expected), strict=True)
            for mine, before in pairs:
                assert (mine.dtype, mine.shape) == (before.dtype, before.shape)
                np.testing.assert_array_equal(mine, before)


def test_functions_of_the_users_are_not_saved(tmp_path: Any, caplog: Any) -> None:
    class Called(td.Module):
        @td.function(input_signature=[ANY_MATRIX])
        def f(self, x: Any) -> Any:
            return td.numpy_function(lambda a: a, [x], td.float32)[0]

    td.saved_model.save(Called(), str(tmp_path))
    assert "leaves out f" in caplog.text and "numpy_function holds the Python object" in caplog.text


def test_a_call_as_text() -> None:
    call = LateCall(td.math.reduce_sum, (([1.0, 2.0],), {"axis": 0, "keepdims": True}))
    text = literal(call)
    name = f"'{td.math.reduce_sum.__module__}:reduce_sum'"  # of the module that was imported first
    assert name in text and name.startswith("'treadle") and "keepdims" in text
    (found,) = read_literal(text)()
    assert found.numpy().tolist() == [3.0]


@pytest.mark.parametrize(
    "name",
    [
        "os:remove", "treadle.io.gfile:remove", "treadle.core.tensor:from_array",
        "treadle.tracing.late_calls:_public", "treadle.math:nothing", "treadle.saved_model:load",
    ],
)  # fmt: skip
def test_only_functions_of_tensors_are_called(name: str) -> None:
    text = f"typed 'late call' {{'function': {name!r}, 'arguments': [[], {{}}]}}"
    with pytest.raises((ValueError, AttributeError, GraphSyntaxError)):
        read_literal(text)
