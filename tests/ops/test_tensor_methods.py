"""ndarray's methods on tensors, eager and in functions, give what ndarray's give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.numpy_cases import CUBE, SQUARE, F, I
from treadle.numpy_staging.tensor_methods import METHODS

CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    **{name: (lambda x, n=name: getattr(x, n)(), F) for name in (
        "sum", "prod", "mean", "std", "var", "max", "min", "any", "all", "argmax", "argmin",
        "cumsum", "cumprod", "argsort", "copy", "flatten", "ravel", "round", "transpose",
        "squeeze",
    )},
    **{f"{name} axis": (lambda x, n=name: getattr(x, n)(axis=1), CUBE) for name in (
        "sum", "mean", "std", "max", "any", "argmin", "cumsum", "argsort",
    )},
    "sum ints": (lambda x: x.sum(0), I),
    "mean ints": (lambda x: x.mean(), I),
    "sum dtype": (lambda x: x.sum(dtype=np.float64), F),
    "keepdims": (lambda x: x.max(axis=(0, 1), keepdims=True), F),
    "reshape": (lambda x: x.reshape(3, -1), CUBE),
    "reshape tuple": (lambda x: x.reshape((4, 6)), CUBE),
    "reshape flat": (lambda x: x.reshape(-1), CUBE),
    "transpose axes": (lambda x: x.transpose(2, 0, 1), CUBE),
    "transpose tuple": (lambda x: x.transpose((2, 0, 1)), CUBE),
    "T": (lambda x: x.T, CUBE),
    "swapaxes": (lambda x: x.swapaxes(0, 2), CUBE),
    "astype": (lambda x: x.astype("int64"), F),
    "astype type": (lambda x: x.astype(np.float64), I),
    "clip": (lambda x: x.clip(-1, 1), F),
    "clip names": (lambda x: x.clip(min=0), F),
    "dot": (lambda x: x.dot(x), SQUARE),
    "trace": (lambda x: x.trace(), SQUARE),
    "diagonal": (lambda x: x.diagonal(1), SQUARE),
    "take": (lambda x: x.take([0, -1], axis=1), F),
    "repeat": (lambda x: x.repeat(2, axis=0), F),
    "round digits": (lambda x: x.round(1), F),
    "size": (lambda x: x * x.size, F),
    "nbytes": (lambda x: x * x.nbytes + x.itemsize + x.ndim, F),
    "searchsorted": (lambda x: x.searchsorted([0.5, 2.0]), np.sort(F[0])),
    "nonzero": (lambda x: x.nonzero()[1], I),
}  # fmt: skip


@pytest.mark.parametrize(("fn", "array"), CASES.values(), ids=CASES)
def test_as_ndarray(fn: Any, array: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")
    expected = np.asarray(fn(array))
    for run in (fn, td.function(lambda x: fn(x), autograph=False)):
        result = run(td.constant(array))
        assert isinstance(result, td.Tensor)
        assert (result.dtype.np_dtype, result.numpy().shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


def test_every_method_is_tried() -> None:
    tried = {name.split()[0] for name in CASES} | {"itemsize"}
    refused = {name for name, method in METHODS.items() if _refuses(method)}
    assert set(METHODS) - tried - refused == {"ptp"}  # ndarray has none any more


def _refuses(method: Any) -> bool:
    """Whether a method only tells that a tensor cannot be changed in place."""
    try:
        method(td.constant([3.0, 1.0]), 1)
    except TypeError as error:
        return "in place" in str(error)
    except Exception:
        return False
    return False


def test_ptp() -> None:
    assert float(td.constant([3.0, -1.0]).ptp()) == 4


def test_item_and_tolist() -> None:
    x = td.constant([[1, 2]])
    assert x.tolist() == [[1, 2]]
    assert x[0, 1].item() == 2
    assert (x.size, x.itemsize, x.nbytes) == (2, 4, 8)
    for use in (lambda t: t.tolist(), lambda t: t[0, 0].item()):
        with pytest.raises(NotImplementedError, match="symbolic"):
            td.function(lambda t, use=use: use(t), autograph=False)(x)
