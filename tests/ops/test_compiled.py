"""The op tables under `td.function`: compiled programs give what eager execution gives."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.cases import TOLERANCE, Case
from tests.ops.test_cases import ALL
from treadle.core.tensor import from_array
from treadle.ops.registry import OPS


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that cannot be compiled fails here instead of being interpreted."""
    monkeypatch.setenv("TREADLE_STRICT", "1")


def test_programs_are_native() -> None:
    compiled = td.function(lambda x: td.exp(x) + 1.0, autograph=False)
    concrete = compiled.get_concrete_function(td.constant([1.0, 2.0]))
    assert type(concrete.executable).__name__ == "NativeExecutable"


# The dtypes that take different ways through the compiler.
KINDS = ("float32", "bfloat16", "int32", "bool", "complex64")


@pytest.mark.parametrize("case", ALL, ids=str)
def test_compiled_is_eager(case: Case) -> None:
    shapes = case.shapes[-1]
    for dtype in [d for d in KINDS if d in case.dtypes] or case.dtypes[:1]:
        arrays = case.arrays(shapes, dtype)
        expected = case.fn(*map(from_array, arrays))._buffer
        compiled = td.function(lambda *args: case.fn(*args), autograph=False)
        result = np.asarray(compiled(*map(from_array, arrays)))
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        compare(result, expected, dtype)
        if dtype.startswith("complex"):
            (concrete,) = compiled.concrete_functions
            called = re.findall(r"python (\w+)\(", concrete.executable.stages["schedule"])
            assert all(OPS[name].why_called for name in called), called


def compare(result: Any, expected: Any, dtype: str) -> None:
    if result.dtype.kind in "iub":
        np.testing.assert_array_equal(result, expected)
        return
    wide = np.complex128 if result.dtype.kind == "c" else np.float64
    tolerance = TOLERANCE.get(dtype, 3e-6)
    np.testing.assert_allclose(
        result.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance
    )


DIFFERENTIABLE = [c for c in ALL if c.differentiable and "float32" in c.dtypes]


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_compiled_gradients_are_the_eager_ones(case: Case) -> None:
    arrays = case.arrays(case.shapes[0], "float32")

    def grads(*args: Any) -> Any:
        with td.GradientTape() as tape:
            for arg in args:
                tape.watch(arg)
            loss = td.reduce_sum(case.fn(*args))
        return tape.gradient(loss, list(args), unconnected_gradients="zero")

    expected = grads(*map(from_array, arrays))
    found = td.function(grads, autograph=False)(*map(from_array, arrays))
    for grad, wanted in zip(found, expected, strict=True):
        dense = td.convert_to_tensor(grad), td.convert_to_tensor(wanted)  # rows are IndexedSlices
        np.testing.assert_allclose(*dense, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
def test_one_program_serves_every_size(symbolic: bool) -> None:
    """A mix of ops with an unknown dim, called with sizes 0, 1, 2 and 7: one trace."""

    def mix(x: Any) -> Any:
        n = td.shape(x)[0]
        y = td.reshape(td.concat([x, x * 2], 1), [n * 4, 1])
        z = td.transpose(y[1:]) - td.reduce_mean(x)
        return td.pad(z, [[0, 1], [1, 0]]), td.cast(n, td.float32) + td.reduce_sum(x, 0)

    signature = [td.TensorSpec([None, 2], td.float32)] if symbolic else None
    compiled = td.function(mix, input_signature=signature, autograph=False)
    for size in (0, 1, 2, 7):
        x = td.constant(np.arange(size * 2, dtype=np.float32).reshape(size, 2))
        for found, expected in zip(compiled(x), mix(x), strict=True):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)
    assert compiled.experimental_get_tracing_count() == (1 if symbolic else 4)


BAD_POSITIONS = {
    "gather": lambda x, i: td.gather(x, i),
    "gather_nd": lambda x, i: td.gather_nd(x, td.expand_dims(i, -1)),
    "index": lambda x, i: x[i[0]],
}


@pytest.mark.parametrize("fn", BAD_POSITIONS.values(), ids=BAD_POSITIONS)
def test_positions_are_checked_when_the_program_runs(fn: Any) -> None:
    compiled = td.function(lambda x, i: fn(x, i), autograph=False)
    x = td.constant([10.0, 20.0, 30.0])
    np.testing.assert_array_equal(compiled(x, td.constant([2])).numpy().reshape(-1), [30.0])
    for position in (3, -4, 1000):
        with pytest.raises(td.errors.InvalidArgumentError, match=rf"{position} is out of") as e:
            compiled(x, td.constant([position]))
        assert "test_compiled.py" in str(e.value)
    np.testing.assert_array_equal(compiled(x, td.constant([0])).numpy().reshape(-1), [10.0])
