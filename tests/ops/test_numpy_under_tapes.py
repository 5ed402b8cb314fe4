"""NumPy functions on eager tensors lose no gradient: tensors where a tape watches, else arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td

A = np.eye(3) * 2 + 0.1

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "cholesky": np.linalg.cholesky, "inv": np.linalg.inv, "det": np.linalg.det, "sin": np.sin,
    "sum": np.sum, "mean": np.mean, "median": np.median,
    "add": lambda x: np.add(x, 1.0), "array * x": lambda x: np.ones(3) * x,
    "number * x": lambda x: np.float64(2) * x, "where": lambda x: np.where(x > 1, x, 0.0),
    "concatenate": lambda x: np.concatenate([x, x]), "maximum": lambda x: np.maximum(x, 0.5),
    "einsum": lambda x: np.einsum("ij,jk->ik", x, x), "matmul": lambda x: np.matmul(x, A),
    "solve": lambda x: np.linalg.solve(x, np.ones((3, 1))), "sort": np.sort,
}  # fmt: skip


def gradient(fn: Callable[[Any], Any], x: Any) -> Any:
    with td.GradientTape() as tape:
        tape.watch(x)
        value = td.reduce_sum(td.convert_to_tensor(fn(x)))
    return tape.gradient(value, x)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_eager_gradients_are_those_of_functions(name: str) -> None:
    fn, x = FUNCTIONS[name], td.constant(A)
    found = gradient(fn, x)
    assert found is not None
    compiled = td.function(lambda x: td.convert_to_tensor(fn(x)))
    np.testing.assert_allclose(found, gradient(compiled, x), rtol=1e-12)
    assert not isinstance(FUNCTIONS["sin"](x), td.Tensor)  # nothing watches


def test_variables() -> None:
    v = td.Variable(A)
    with td.GradientTape() as tape:
        value = np.sum(np.sin(v))
    np.testing.assert_allclose(tape.gradient(value, v), np.cos(A))


def test_functions_without_a_gradient() -> None:
    x = td.constant(A)
    with td.GradientTape() as tape:
        tape.watch(x)
        assert np.allclose(x, x) and np.shape(x) == (3, 3)
        text = r"np\.sort_complex has no gradient here.*leave the tape"
        with pytest.raises(TypeError, match=text):
            np.sort_complex(x)
        with pytest.raises(TypeError, match="has no gradient here"):
            np.add.reduceat(x, [0, 1])
        with pytest.raises(TypeError, match="has no gradient here"):
            np.frexp(x)
        assert isinstance(np.sort_complex(np.asarray(x)), np.ndarray)
