"""`set_item` is NumPy's ``x[key] = value``: eager, compiled, with known and unknown dims."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.gradcheck import check_gradients
from treadle.ops.indexing.updates import set_item

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
FIRST, ENDS = np.array([True, False]), np.array([True, False, True])

CASES: dict[str, tuple[Any, Any]] = {
    "int": (0, 5.0),
    "negative": (-1, 5.0),
    "ints": ((1, 2), [1.0, 2, 3, 4]),
    "element": ((1, 2, 3), 9),
    "colon and int": ((slice(None), -1), 7),
    "ellipsis, step": ((Ellipsis, slice(None, None, 2)), -1),
    "newaxis": ((slice(0, 1), None, 1), 3),
    "reversed": ((slice(None), slice(None, None, -1)), np.arange(12).reshape(3, 4)),
    "steps": ((slice(None, None, -2), slice(1, 3)), 6),
    "empty slice": ((slice(5, 2),), 3),
    "everything": (Ellipsis, 2),
    "leading ones": (0, np.ones((1, 1, 3, 4))),
    "truncated": ((0, 0, slice(1, 3)), np.array([1.7, -2.7])),
    "mask": (A % 3 == 0, 0),
    "mask, elements": (A % 3 == 0, np.arange(8)),
    "mask, rows": (FIRST, np.arange(12).reshape(1, 3, 4)),
    "mask of a middle axis": ((slice(None), ENDS), 9),
    "mask of a middle axis, rows": ((slice(None), ENDS), np.arange(16).reshape(2, 2, 4)),
    "mask of two axes": (np.ones((2, 3), bool), [1, 2, 3, 4]),
    "false mask": (FIRST & False, 4),
    "false mask, no rows": (np.zeros(2, bool), np.zeros((0, 3, 4))),
    "positions": ([0, -1], 8),
    "pairs of positions": (([0, 1], [2, -3]), 4),
    "broadcast positions": (([[0], [1]], [2, 0]), np.arange(4)),
    "positions of a middle axis": ((slice(None), [0, 2]), np.arange(8).reshape(2, 4)),
    "positions of the last axis": ((Ellipsis, [0, 3]), [1.0, 2.0]),
    "int and positions": ((0, [0, 2]), 3.0),
    "a position twice": ([0, 0], np.stack([A[0], A[1]])),
}  # fmt: skip
every_case = pytest.mark.parametrize(("key", "value"), CASES.values(), ids=CASES)


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")


def assigned(key: Any, value: Any, array: Any = A) -> Any:
    result = array.copy()
    result[key] = value
    return result


@every_case
def test_eager_is_numpy(key: Any, value: Any) -> None:
    x = td.constant(A)
    np.testing.assert_array_equal(set_item(x, key, value).numpy(), assigned(key, value))
    np.testing.assert_array_equal(x.numpy(), A)


@every_case
@pytest.mark.parametrize("dims", [[2, 3, 4], [None, None, None]], ids=["static", "symbolic"])
def test_compiled_is_numpy(key: Any, value: Any, dims: list[Any]) -> None:
    @td.function(input_signature=[td.TensorSpec(dims)], autograph=False)
    def literal(x: Any) -> Any:
        return set_item(x, key, value)

    np.testing.assert_array_equal(literal(td.constant(A)).numpy(), assigned(key, value))


@every_case
def test_values_may_be_tensors(key: Any, value: Any) -> None:
    compiled = td.function(lambda x, v: set_item(x, key, v), autograph=False)
    result = compiled(td.constant(A), td.constant(value))
    np.testing.assert_array_equal(result.numpy(), assigned(key, value))


@pytest.mark.parametrize(
    ("key", "value"),
    [case for name, case in CASES.items() if name != "a position twice"],
    ids=[name for name in CASES if name != "a position twice"],
)
def test_gradients_reach_tensor_and_value(key: Any, value: Any) -> None:
    part = np.cos(np.arange(np.size(value))).reshape(np.shape(value))
    check_gradients(lambda x, v: set_item(x, key, v), A + 0.5, part, second=False)


def test_integers_are_assigned_truncated() -> None:
    x = td.constant([1, 2, 3])
    result = set_item(x, slice(1, None), np.array([2.9, -2.9]))
    assert result.dtype is td.int32
    assert result.numpy().tolist() == [1, 2, -2]
    with pytest.raises(TypeError, match="complex128 value cannot be assigned"):
        set_item(x, 0, 1j)


def test_tensors_as_positions_and_bounds() -> None:
    @td.function(autograph=False)
    def fill(x: Any, i: Any, j: Any) -> Any:
        x = set_item(x, i, 3.0)
        return set_item(x, (slice(i, j), slice(None), i), [1.0, 2.0, 3.0])

    for i, j in ((0, 1), (1, 2), (-1, 2), (0, 2), (1, 1)):
        expected = assigned(i, 3)
        expected[i:j, :, i] = [1, 2, 3]
        for fn in (fill, fill.python_function):
            result = fn(td.constant(A), td.constant(i), td.constant(j))
            np.testing.assert_array_equal(result.numpy(), expected)


def test_gradients_of_open_bounds() -> None:
    for bounds in ((0, 2), (1, 2), (-2, -1)):
        i, j = map(td.constant, bounds)
        part = np.ones(bounds[1] - bounds[0])
        check_gradients(lambda x, v, i=i, j=j: set_item(x, slice(i, j), v), np.ones(3), part)
        check_gradients(lambda x, v, i=i: set_item(x, i, v * v), np.ones(3), np.float64(2))


def test_a_mask_known_when_it_runs() -> None:
    @td.function(autograph=False)
    def relu(x: Any) -> Any:
        return set_item(x, x < 0, 0)

    @td.function(autograph=False)
    def doubled(x: Any) -> Any:
        return set_item(x, x > 2, x[x > 2] * 2)

    for array in (np.array([-1.0, 2, -3, 4, 5]), np.zeros(3), np.zeros(0)):
        x = td.constant(array.astype(np.float32))
        np.testing.assert_array_equal(relu(x).numpy(), np.maximum(array, 0))
        np.testing.assert_array_equal(doubled(x).numpy(), np.where(array > 2, array * 2, array))


@pytest.mark.parametrize("key", [2, -3, (0, 3), ([0, 2],), (slice(None), [-4])], ids=str)
@pytest.mark.parametrize("dims", [[2, 3, 4], [None, None, None]], ids=["static", "symbolic"])
def test_out_of_range(key: Any, dims: list[Any]) -> None:
    spec = td.TensorSpec(dims)
    compiled = td.function(lambda x: set_item(x, key, 1), input_signature=[spec], autograph=False)
    for fn in (compiled, compiled.python_function):
        with pytest.raises(td.errors.InvalidArgumentError, match="out of range") as e:
            fn(td.constant(A))
        assert "test_updates.py" in str(e.value)


@pytest.mark.parametrize(
    ("key", "value", "error", "message"),
    [
        (0, [1, 2, 3], ValueError, r"shape \(3,\) cannot be assigned to a part of shape \(3, 4\)"),
        (A > 3, [1, 2, 3], ValueError, "as many elements"),
        (np.ones((3, 2), bool), 1, ValueError, r"\(3, 2\) do not fit shape \(2, 3, 4\)"),
        ((0, 0, 0, 0), 1, ValueError, "too many indices"),
        ("a", 1, TypeError, "is not an index"),
        ([0.5], 1, TypeError, "not positions"),
        (([0], slice(0, 1), [1]), 1, TypeError, "neighbouring arrays"),
        ((A[0] > 3, 1), 1, ValueError, r"\(3, 4\) do not fit shape \(2, 3\)"),
        ((A[0, 0] > 3, [1]), 1, TypeError, "one mask"),
    ],
)
def test_errors(key: Any, value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as e:
        set_item(td.constant(A), key, value)
    assert "test_updates.py" in str(e.value)


def test_tensors_refuse_assignment() -> None:
    x = td.constant([1.0, 2.0])
    with pytest.raises(TypeError, match="does not support item assignment.*AutoGraph") as e:
        x[0] = 1  # type: ignore[index]
    assert "test_updates.py" in str(e.value)


@pytest.mark.parametrize("count", [0, 3])
def test_positions_without_numbers_are_that_of_the_whole_array(count):
    x = td.constant(np.arange(6.0).reshape(2, 3))
    positions = td.zeros([count, 5, 0], td.int32)
    updates = td.constant(np.random.default_rng(0).normal(size=(count, 5, 2, 3)))

    def f(x, positions, updates):
        with td.GradientTape() as tape:
            tape.watch(x)
            total = td.reduce_sum(td.gather_nd(x, positions) * updates)
        return (
            tape.gradient(total, x), td.scatter_nd(positions, updates, [2, 3]),
            td.tensor_scatter_nd_add(x, positions, updates),
            td.tensor_scatter_nd_update(x, positions, updates),
        )  # fmt: skip

    added = updates.numpy().sum((0, 1))
    last = updates.numpy()[-1, -1] if count else x.numpy()
    for function in (f, td.function(f)):
        found = function(x, positions, updates)
        for y, wanted in zip(found, (added, added, x.numpy() + added, last), strict=True):
            np.testing.assert_allclose(y, wanted, atol=1e-12)
