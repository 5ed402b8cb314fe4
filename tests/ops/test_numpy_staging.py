"""NumPy's functions inside td.function give what NumPy gives: values, dtypes and shapes."""

from __future__ import annotations

import functools
import operator
import warnings
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.gradcheck import check_gradients
from tests.ops.numpy_cases import ALL as FIRST
from tests.ops.numpy_cases import Case, F
from tests.ops.numpy_cases_more import MORE
from treadle.numpy_staging import staging

ALL = FIRST | MORE
every_case = pytest.mark.parametrize("case", FIRST.values(), ids=FIRST)


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")


def numpy_result(case: Case) -> list[Any]:
    fn, arrays = case
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        result = fn(*arrays)
    return list(result) if isinstance(result, list | tuple) else [result]


def tensors(case: Case) -> list[Any]:
    return [
        a
        if isinstance(a, int | float | complex) and not isinstance(a, np.generic)
        else td.constant(a)
        for a in case[1]
    ]


def agree(results: Any, expected: list[Any]) -> None:
    found = list(results) if isinstance(results, list | tuple) else [results]
    assert len(found) == len(expected)
    for tensor, wanted in zip(found, expected, strict=True):
        array = np.asarray(tensor)
        assert (array.dtype, array.shape) == (np.asarray(wanted).dtype, np.shape(wanted))
        double = array.dtype.itemsize == (16 if array.dtype.kind == "c" else 8)
        tolerance = {"f": 1e-12 if double else 2e-6, "c": 2e-6}.get(array.dtype.kind, 0)
        tolerance = 2e-3 if array.dtype == np.float16 else tolerance
        np.testing.assert_allclose(array, wanted, rtol=tolerance, atol=tolerance)


@every_case
def test_staged_is_numpy(case: Case) -> None:
    fn = case[0]
    compiled = td.function(lambda *args: fn(*args), autograph=False)
    agree(compiled(*tensors(case)), numpy_result(case))


def test_every_function_is_in_the_table() -> None:
    seen: set[Any] = set()

    class Spy(dict[Any, Any]):
        def get(self, key: Any, default: Any = None) -> Any:
            seen.add(key)
            return super().get(key, default)

    original, staging.FUNCTIONS = staging.FUNCTIONS, Spy(staging.FUNCTIONS)
    try:
        for fn, arrays in ALL.values():
            case = (fn, arrays)
            td.function(lambda *args, f=fn: f(*args), autograph=False).get_concrete_function(
                *tensors(case)
            )
    finally:
        staging.FUNCTIONS = original
    missing = {f.__name__ for f in set(original) - seen}
    assert missing <= {"result_type"}


@pytest.mark.parametrize(
    "fn", [np.sum, np.multiply.reduce, np.concatenate, np.exp, np.where, np.linalg.norm]
)
def test_eager_tensors_give_arrays(fn: Any) -> None:
    x = td.constant(F)
    result = fn(x if fn is not np.where else x > 0)
    for array in result if isinstance(result, tuple) else [result]:
        assert isinstance(array, np.ndarray | np.generic)
    assert type(np.multiply(x, x)) is np.ndarray


def test_operators_with_arrays_stay_the_tensors() -> None:
    double, number = np.array([1.0, 2.0, 3.0]), np.float64(2)

    @td.function(autograph=False)
    def f(x: Any) -> Any:
        total = double.copy()
        total += x
        return [double * x, double - x, number / x, x * double, total, double**x, number + x]

    x = td.constant([1.0, 2.0, 4.0])
    for result, eager in zip(f(x), f.python_function(x), strict=True):
        assert result.dtype is td.float32
        np.testing.assert_allclose(result.numpy(), np.asarray(eager), rtol=1e-6)
    compare = td.function(lambda x: [double < x, double == x, double >= x], autograph=False)
    assert [r.numpy().tolist() for r in compare(x)] == [
        [False, False, True], [True, True, False], [True, True, False],
    ]  # fmt: skip


def test_calls_of_numpy_promote_as_numpy() -> None:
    compiled = td.function(lambda x: np.multiply(np.array([1.0, 2.0, 3.0]), x), autograph=False)
    assert compiled(td.constant([1.0, 2.0, 4.0])).dtype is td.float64


def test_sizes_may_be_unknown() -> None:
    @td.function(input_signature=[td.TensorSpec([None, None])], autograph=False)
    def standard(x: Any) -> Any:
        centred = x - np.mean(x, axis=0, keepdims=True)
        scaled = centred / (np.std(x, axis=0, ddof=1) + np.float32(1))
        return np.concatenate([scaled, np.ones_like(x)], axis=1), np.triu(x), np.size(x), x.T

    for rows in (2, 5):
        a = np.cos(np.arange(rows * 3)).astype(np.float32).reshape(rows, 3)
        scaled, upper, count, turned = standard(td.constant(a))
        expected = (a - a.mean(0)) / (a.std(0, ddof=1) + 1)
        np.testing.assert_allclose(scaled.numpy()[:, :3], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(upper.numpy(), np.triu(a))
        np.testing.assert_array_equal(turned.numpy(), a.T)
        assert int(count) == a.size
    assert standard.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("name", ["mean", "std", "logaddexp", "hypot", "linalg.norm", "diag"])
def test_gradients(name: str) -> None:
    cases: dict[str, Any] = {
        "mean": lambda x: np.mean(np.exp(x) * np.array([1.0, 2.0, 3.0]), axis=0),
        "std": lambda x: np.std(x, axis=1),
        "logaddexp": lambda x: np.logaddexp(x, 0.5),
        "hypot": lambda x: np.hypot(x, 1.5),
        "linalg.norm": lambda x: np.linalg.norm(x, axis=1),
        "diag": lambda x: np.diag(np.transpose(x)[:, :2], -1) * np.sum(x),
    }
    staged = td.function(lambda x: cases[name](x), autograph=False)
    check_gradients(staged, F.astype(np.float64), second=False)


UNSUPPORTED = [
    (np.i0, r"np.i0 cannot be staged.*td.numpy_function\(np.i0"),
    (np.linalg.eig, r"np.linalg.eig cannot be staged.*Near it are.*eigh"),
    (np.fft.hfft, r"np.fft.hfft cannot be staged"),
    (np.nextafter.reduce, "np.nextafter.reduce cannot be staged"),
    (lambda x: np.nextafter(x, x), "np.nextafter cannot be staged"),
    (lambda x: np.add(x, x, out=np.zeros(3)), "np.add: out= is not supported.*never changes"),
    (lambda x: np.add(x, x, where=np.zeros(3, bool)), "np.add: where= is not supported"),
    (lambda x: np.sum(x, where=[True, False, True]), "np.sum: where= is not supported"),
    (lambda x: np.max(x, initial=0), "np.max: initial= is not supported"),
    (lambda x: np.pad(x, 1, "mean"), "mode 'mean' cannot be staged"),
    (lambda x: np.quantile(x, 0.3, method="exact"), "method='exact' is not one of hazen"),
    (lambda x: np.linalg.inv(x), "inv needs matrices"),
    (lambda x: np.linalg.det(np.ones((2, 3)) * x), "det needs square matrices"),
    (lambda x: np.subtract(x > 0, x > 0), "np.subtract: .*boolean subtract"),
    (lambda x: np.einsum(x, [0]), "equation as a string"),
    (lambda x: np.add.at(np.zeros(3), 0, x), "np.add.at cannot be staged"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "message"), UNSUPPORTED)
def test_what_cannot_be_staged_is_named(use: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message) as e:
        td.function(lambda x: use(x), autograph=False)(td.constant([1.0, 2.0, 3.0]))
    assert "test_numpy_staging.py" in str(e.value)


def test_autograph_leaves_numpy_to_the_protocol() -> None:
    @td.function
    def f(x: Any) -> Any:
        total = np.zeros_like(x)
        for i in td.range(3):
            total = np.add(total, np.multiply(x, td.cast(i, td.float32)))
        if np.any(np.greater(total, 100)):
            total = np.negative(total)
        return total

    assert f(td.constant([1.0, 2.0])).numpy().tolist() == [3, 6]
    assert f(td.constant([1.0, 40.0])).numpy().tolist() == [-3, -120]


# -- variables -------------------------------------------------------------------------------------

ON_VARIABLES: dict[str, Any] = {
    "sum": np.sum,
    "exp": np.exp,
    "reduce": np.add.reduce,
    "concatenate": lambda v: np.concatenate([v, v]),
    "norm": np.linalg.norm,
    "matmul": lambda v: np.matmul(v, v),
    "where": lambda v: np.where(v > 1, v, 0.0),
    "two": lambda v: np.maximum(v, v * 2.0),
    "method": lambda v: v.sum(axis=0),
    "property": lambda v: v.T,
    "array on the left": lambda v: np.ones(3, np.float32) * 2 + v,
    "scalar on the left": lambda v: np.float32(3) * v - np.float64(1.0),
    "comparison": lambda v: np.array([1.0, 0.0, 9.0]) < v,
}


@pytest.mark.parametrize("name", ON_VARIABLES)
def test_variables(name: str) -> None:
    fn = ON_VARIABLES[name]
    v = td.Variable([1.0, 2.0, 4.0])
    staged = td.function(lambda: fn(v), autograph=False)
    for _ in range(2):
        found, expected = staged(), fn(v)
        assert isinstance(found, td.Tensor)
        np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-6)
        v.assign_add([1.0, -2.0, 0.5])  # the next call reads the new value


def test_operators_of_arrays_and_variables_give_tensors() -> None:
    v = td.Variable([1.0, 2.0])
    for result in (np.ones(2) + v, np.float64(2) * v, v / np.ones(2), np.ones(2) > v):
        assert isinstance(result, td.Tensor)
    assert type(np.add(v, v)) is np.ndarray


def test_gradients_of_numpy_on_variables() -> None:
    v = td.Variable([1.0, 2.0])

    @td.function
    def gradient() -> Any:
        with td.GradientTape() as tape:
            y = np.sum(np.square(v) * np.array([1.0, 3.0], np.float32))
        return tape.gradient(y, v)

    assert gradient().numpy().tolist() == [2.0, 12.0]


@pytest.mark.parametrize("autograph", [True, False])
def test_operators_that_python_applies_are_those_of_tensors(autograph: bool) -> None:
    numbers, number = np.arange(3.0), np.float64(2.0)

    def all_of_them(x: Any) -> list[Any]:
        return [
            number * x, operator.mul(number, x), operator.sub(numbers, x), sum([number, x]),
            functools.reduce(operator.mul, [numbers, x, x]),
        ]  # fmt: skip

    def numpys(x: Any) -> Any:
        return np.multiply(numbers, x)

    x = td.constant([1.0, 2.0, 3.0])
    of_tensors, at_once = td.function(all_of_them, autograph=autograph)(x), all_of_them(x)
    for traced, eager in zip(of_tensors, at_once, strict=True):
        assert traced.dtype == td.float32
        np.testing.assert_allclose(traced, eager, rtol=1e-6)
    assert td.function(numpys, autograph=autograph)(x).dtype == td.float64
