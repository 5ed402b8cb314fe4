"""Operands of sizes that only a run tells: they broadcast, where the trace took them for equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.inspect import stages

X = td.constant([1.0, 2.0, 3.0])
Y = td.constant([0.5, -1.0, 4.0])
SIZES = [(2, 2), (1, 3), (3, 1), (0, 1), (0, 0)]
SIGNATURE = [td.TensorSpec([None]), td.TensorSpec([None])] + [td.TensorSpec([], td.int32)] * 2


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")
    monkeypatch.setenv("TREADLE_VERIFY", "1")


def columns(a: Any) -> Any:
    return a[:, None, None] * td.ones([2, 2])


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "pow": lambda a, b: td.abs(a) ** b,
    "floor": lambda a, b: td.cast(a, td.int32) // td.cast(b * 2.0, td.int32),
    "maximum": lambda a, b: td.maximum(a, b) - td.minimum(b, a),
    "less": lambda a, b: a < b,
    "logical": lambda a, b: td.logical_or(a > 1.0, b > 1.0),
    "equal": lambda a, b: td.equal(a, b),
    "where": lambda a, b: td.where(a > 1.5, b, 7.0),
    "where of three": lambda a, b: td.where(a > 1.5, b, X[: td.size(b)]),
    "select rows": lambda a, b: td.where((b > 0.0)[:, None], a[:, None], td.zeros([1, 2])),
    "matmul": lambda a, b: td.matmul(columns(a), columns(b)),
    "chain": lambda a, b: td.exp((a + b) * a - b / 2.0) + (b - a),
    "both axes": lambda a, b: a[:, None] * b[None] + b[:, None] * a[None],
    "sum": lambda a, b: td.reduce_sum(a * b + a),
    "shape": lambda a, b: td.shape(a + b),
    "broadcast_to": lambda a, b: td.broadcast_to(a, td.shape(a * b)) + 1.0,
    "atan2": lambda a, b: td.atan2(a, b),
    "squared_difference": lambda a, b: td.math.squared_difference(a, b),
    "xlogy": lambda a, b: td.math.xlogy(a, td.abs(b) + 1.0),
    "complex": lambda a, b: td.abs(td.complex(a, a) * td.complex(b, -b)),
    "strings": lambda a, b: td.strings.length(td.as_string(a) + td.as_string(b)) > 0,
    "clip": lambda a, b: td.clip_by_value(a, b - 1.0, b + 1.0),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_given_eagerly(name: str) -> None:
    def f(x: Any, y: Any, n: Any, m: Any) -> Any:
        return CASES[name](x[:n], y[:m])

    compiled = td.function(f, input_signature=SIGNATURE)
    for sizes in SIZES:
        n, m = map(td.constant, sizes)
        expected, found = f(X, Y, n, m), compiled(X, Y, n, m)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), sizes
        np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=str(sizes))
    assert compiled.get_concrete_function().executable.mode == "native"
    for sizes in ((2, 3), (0, 2)):
        try:
            f(X, Y, *map(td.constant, sizes))
        except td.errors.InvalidArgumentError:
            with pytest.raises(td.errors.InvalidArgumentError, match="test_late_broadcasts.py"):
                compiled(X, Y, *sizes)


def test_gradients_have_the_shapes_of_the_operands() -> None:
    def f(x: Any, y: Any, n: Any, m: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch([x, y])
            a, b = x[:n], y[:m]
            z = td.reduce_sum(a * b * td.maximum(a, b) + td.where(a > 1.5, b, a) - a / b)
        return tape.gradient(z, [x, y])

    compiled = td.function(f, input_signature=SIGNATURE)
    for sizes in SIZES:
        n, m = map(td.constant, sizes)
        for mine, eager in zip(compiled(X, Y, n, m), f(X, Y, n, m), strict=True):
            np.testing.assert_allclose(mine, eager, rtol=1e-5, err_msg=str(sizes))


@pytest.mark.parametrize("late", [False, True])
def test_shapes_that_do_not_broadcast_are_not_equal(late: bool) -> None:
    def f(x: Any, y: Any, n: Any, m: Any) -> Any:
        a, b = (x[:n], y[:m]) if late else (x, y)
        return td.reduce_all(a == b), td.reduce_any(a != b), td.reduce_all(td.shape(a) == 2)

    compiled = td.function(f, input_signature=SIGNATURE)
    for n, m in [*SIZES, (2, 3), (3, 2), (0, 2), (2, 0)]:
        given = (X, X) if late else (X[:n], X[:m])
        expected = [np.size(n) and bool(v) for v in f(*given, td.constant(n), td.constant(m))]
        assert [bool(v) for v in compiled(*given, n, m)] == expected, (n, m)


def test_a_size_that_is_known() -> None:
    """Three elements beside as many as the run finds: one of these is a broadcast operand."""

    def f(x: Any, n: Any) -> Any:
        return x[:n] * td.constant([1.0, 10.0, 100.0]), td.reduce_all(x[:n] == X)

    compiled = td.function(f, input_signature=SIGNATURE[1:3])
    for n in (1, 3):
        for mine, eager in zip(compiled(X, n), f(X, td.constant(n)), strict=True):
            np.testing.assert_array_equal(mine, eager)
    with pytest.raises(td.errors.InvalidArgumentError, match="multiply"):
        compiled(X, 2)


def test_masks_in_one_program() -> None:
    def f(x: Any, first: Any, second: Any) -> Any:
        return td.boolean_mask(x, first) * td.boolean_mask(x, second)

    spec = td.TensorSpec([None], td.bool)
    compiled = td.function(f, input_signature=[td.TensorSpec([None]), spec, spec])
    for masks in (([1, 1, 0], [0, 1, 1]), ([1, 0, 0], [1, 1, 1]), ([0, 0, 0], [0, 0, 1])):
        first, second = (td.constant(m, td.bool) for m in np.array(masks, bool))
        np.testing.assert_array_equal(compiled(X, first, second), f(X, first, second))
    text = str(stages(compiled)["schedule"])
    assert "python" not in text and "check" in text


def test_what_was_changed_before_is_not_changed_twice() -> None:
    v = td.Variable(0.0)

    @td.function(input_signature=SIGNATURE)
    def before(x: Any, y: Any, n: Any, m: Any) -> Any:
        z = x[:n] * y[:m]
        v.assign_add(1.0)
        return z

    @td.function(input_signature=SIGNATURE)
    def after(x: Any, y: Any, n: Any, m: Any) -> Any:
        td.numpy_function(lambda: v.assign_add(1.0).numpy(), [], td.float32)
        return x[:n] * y[:m]

    np.testing.assert_array_equal(before(X, Y, 1, 3), Y)
    assert float(v) == 1.0
    assert after(X, Y, 2, 2).shape == [2] and float(v) == 2.0
    with pytest.raises(td.errors.InvalidArgumentError, match="not broadcast once it has assigned"):
        after(X, Y, 1, 3)
    assert float(v) == 3.0
    with pytest.raises(td.errors.InvalidArgumentError, match=r"sizes 3 and 2 of the operands.*\n"):
        after(X, Y, 2, 3)  # which no broadcast would make fit


def test_in_branches_and_loops() -> None:
    def f(x: Any, y: Any, n: Any, m: Any) -> Any:
        a, b = x[:n], y[:m]
        total = td.constant(0.0)
        for i in td.range(3):
            if td.reduce_sum(a) > 1.0:
                total += td.reduce_sum(a * b) * td.cast(i, td.float32)
            else:
                total -= td.reduce_sum(b - a)
        return total

    compiled = td.function(f, input_signature=SIGNATURE)
    for n, m in SIZES:
        expected = f(X, Y, td.constant(n), td.constant(m))
        np.testing.assert_allclose(compiled(X, Y, n, m), expected, rtol=1e-5)


def test_a_function_that_calls_another() -> None:
    inner = td.function(lambda a, b: a * b + b)
    outer = td.function(lambda x, y, n, m: inner(x[:n], y[:m]), input_signature=SIGNATURE)
    for n, m in SIZES:
        np.testing.assert_array_equal(outer(X, Y, n, m), X[:n] * Y[:m] + Y[:m])


def test_programs_on_disk(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        f = td.function(lambda x, y, n, m: x[:n] - y[:m], input_signature=SIGNATURE)
        np.testing.assert_array_equal(f(X, Y, 1, 3), X[:1] - Y)
        np.testing.assert_array_equal(f(X, Y, 2, 2), X[:2] - Y[:2])
        td.clear_caches()
