"""Sizes given as tensors: what TensorFlow takes as a tensor is known when the function runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.inspect import stages

X = np.arange(6, dtype=np.float32)
M = X.reshape(2, 3)

# name -> (function of the sizes, calls with different sizes for one trace)
CASES: dict[str, tuple[Any, list[Any]]] = {
    "tile": (lambda n: td.tile(X, [n]), [2, 0, 3]),
    "tile_rows": (lambda n: td.tile(M, n), [[1, 2], [3, 1], [0, 2]]),
    "repeat": (lambda n: td.repeat(X, n), [2, 0]),
    "repeat_axis": (lambda n: td.repeat(M, n, axis=1), [3, 1]),
    "repeat_each": (lambda n: td.repeat(M, n, axis=1), [[1, 0, 2], [0, 0, 0], [-1, 4, 1]]),
    "one_hot": (lambda n: td.one_hot([0, 2, 1], n), [3, 2, 0]),
    "one_hot_axis": (lambda n: td.one_hot([[0], [2]], n, axis=0), [3, 1]),
    "linspace": (lambda n: td.linspace(1.0, 2.0, n), [1, 2, 5]),
    "linspace_axis": (lambda n: td.linspace([0.0, 1.0], [1.0, 5.0], n, axis=1), [1, 4]),
    "top_k": (lambda n: td.math.top_k(M, n), [0, 1, 3]),
    "pad": (lambda n: td.pad(M, n), [[[1, 0], [0, 2]], [[0, 0], [3, 1]]]),
    "pad_pairs": (lambda n: td.pad(M, [[0, n], [n, 1]]), [0, 2]),
    "pad_reflect": (lambda n: td.pad(M, n, "REFLECT"), [[[1, 0], [0, 2]], [[0, 1], [2, 1]]]),
    "pad_symmetric": (lambda n: td.pad(M, n, "SYMMETRIC"), [[[2, 0], [0, 3]], [[0, 1], [2, 1]]]),
    "pad_value": (lambda n: td.pad(X, [[1, 2]], constant_values=td.cast(n, td.float32)), [7, 2]),
    "roll": (lambda n: td.roll(X, n, 0), [2, 0, -7]),
    "roll_axes": (lambda n: td.roll(M, n, [0, 1]), [[1, -1], [0, 4]]),
    "split": (lambda n: td.split(X, n), [[2, 4], [-1, 5], [6, 0]]),
    "split_rest": (lambda n: td.split(X, [n, -1]), [2, 6]),
    "eye": (lambda n: td.eye(n), [3, 0]),
    "eye_batch": (lambda n: td.eye(2, n, batch_shape=[n]), [3, 1]),
    "range": (lambda n: td.range(n), [3, 0]),
    "range_steps": (lambda n: td.range(n, 20, 3), [5, 20, 19]),
    "range_down": (lambda n: td.range(10, 2, n), [-1, -3]),
    "range_floats": (lambda n: td.range(0.0, td.cast(n, td.float32), 0.3), [1, 2]),
    "fill": (lambda n: td.fill([2, n], 5), [3, 0]),
    "zeros": (lambda n: td.zeros(n), [[2, 3], [0, 4]]),
    "segments": (lambda n: td.math.unsorted_segment_sum(X, [0, 1, 0, 2, 2, 1], n), [3, 5]),
    "scatter_nd": (lambda n: td.scatter_nd([[1], [2]], [1.0, 2.0], [n]), [3, 5]),
    "transpose": (lambda n: td.transpose(M[None], n), [[2, 0, 1], [0, 1, 2], [-1, 1, 0]]),
    "random": (lambda n: td.shape(td.random.uniform(n)), [[2, 3], [0, 1]]),
    "reshape": (lambda n: td.reshape(X, n), [[2, 3], [-1, 2], [6, 1], [3, -1]]),
    "reshape_part": (lambda n: td.reshape(X, [n, -1]), [2, 6, 1]),
    "broadcast_to": (lambda n: td.broadcast_to(M[:, :1], n), [[2, 4], [2, 1]]),
    "slice_begin": (lambda n: td.slice(M, [0, n], [2, 1]), [0, 2]),
    "slice": (lambda n: td.slice(X, n[:1], n[1:]), [[2, 3], [2, -1], [6, 0]]),
    "strided_slice": (lambda n: td.strided_slice(M, [0, n], [2, 3], [1, 2]), [0, 1, -2]),
    "strided_index": (lambda n: td.strided_slice(M, [n], [0], shrink_axis_mask=1), [0, 1, -1]),
    "np_zeros": (lambda n: np.ones_like(X, shape=()) * td.zeros(n), [[2, 3], [1, 1]]),
}


@pytest.mark.parametrize(("fn", "calls"), CASES.values(), ids=CASES)
def test_one_trace_for_all_sizes(fn: Any, calls: list[Any]) -> None:
    compiled = td.function(fn, input_signature=[td.TensorSpec(np.shape(calls[0]), td.int32)])
    for sizes in calls:
        given = td.constant(sizes, td.int32)
        wanted = td.nest.flatten(fn(given))
        found = td.nest.flatten(compiled(given))
        for a, b in zip(found, wanted, strict=True):
            assert a.dtype is b.dtype
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6, err_msg=str(sizes))
    assert compiled.experimental_get_tracing_count() == 1


NATIVE = [
    "tile", "repeat_each", "one_hot", "linspace", "pad", "roll", "split", "eye", "range",
    "fill", "segments", "scatter_nd", "transpose", "reshape", "broadcast_to", "slice",
]  # fmt: skip


@pytest.mark.parametrize("name", NATIVE)
def test_no_callback_is_needed(name: str) -> None:
    fn, calls = CASES[name]
    schedule = str(stages(td.function(fn), td.constant(calls[0], td.int32))["schedule"])
    assert "python" not in schedule, schedule


REFUSED: dict[str, tuple[Any, Any]] = {
    "negative": (lambda n: td.fill([n], 1.0), -1),
    "top_k": (lambda n: td.math.top_k(X, n), 7),
    "pad": (lambda n: td.pad(X, [[0, n]]), -1),
    "reflect": (lambda n: td.pad(X, [[0, n]], "REFLECT"), 6),
    "split": (lambda n: td.split(X, n), [2, 3]),
    "reshape": (lambda n: td.reshape(X, n)[::-1] + 1.0, [4, 2]),
    "two_open": (lambda n: td.reshape(X, n), [-1, -1]),
    "broadcast": (lambda n: td.broadcast_to(X, n) * 2.0, [2, 7]),
    "slice": (lambda n: td.slice(X, [n], [4]) + 1.0, 3),
    "slice_size": (lambda n: td.slice(X, [2], [n]) + 1.0, 5),
    "transpose": (lambda n: td.transpose(M, n), [1, 1]),
    "range": (lambda n: td.range(3, n), 1),
    "steps": (lambda n: td.range(3, 9, n), 0),
    "linspace": (lambda n: td.linspace(0.0, 1.0, n), 0),
    "repeat": (lambda n: td.repeat(X, n), [1, 2]),
}


@pytest.mark.parametrize(("fn", "sizes"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused(fn: Any, sizes: Any) -> None:
    given = td.constant(sizes, td.int32)
    with pytest.raises(td.errors.InvalidArgumentError) as found:
        td.function(fn)(given)
    assert "test_open_sizes.py" in str(found.value)
    with pytest.raises((td.errors.InvalidArgumentError, ValueError)):
        fn(given)


def test_the_number_of_results_is_static() -> None:
    with pytest.raises(ValueError, match="known while tracing"):
        td.function(lambda n: td.split(X, n))(td.constant(2))


@pytest.mark.parametrize("name", ["tile", "repeat_each", "pad", "roll", "split", "reshape"])
def test_gradients_pass_through(name: str) -> None:
    fns = {
        "tile": (lambda x, n: td.tile(x, n), [3]),
        "repeat_each": (lambda x, n: td.repeat(x, n), [1, 0, 2, 3, 1, 1]),
        "pad": (lambda x, n: td.pad(x, [n]), [1, 2]),
        "roll": (lambda x, n: td.roll(x, n, [0]), [2]),
        "split": (lambda x, n: td.split(x, n)[1], [2, 4]),
        "reshape": (lambda x, n: td.reshape(x, n)[1:], [3, 2]),
    }
    fn, sizes = fns[name]

    def gradient(x: Any, n: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(fn(x, n) ** 2)
        return tape.gradient(y, x)

    x, n = td.constant(X), td.constant(sizes)
    np.testing.assert_allclose(td.function(gradient)(x, n), gradient(x, n))


def test_sizes_may_change_from_iteration_to_iteration() -> None:
    @td.function
    def triangle(n: Any) -> Any:
        total = td.constant(0.0)
        for i in td.range(n):
            row = td.tile(td.constant([1.0, 2.0]), [i])
            total += td.reduce_sum(td.pad(row, [[i, 1]]) + td.cast(i, td.float32))
        return total

    def plain(n: int) -> float:
        return sum(3.0 * i + i * (2 * i + i + 1) for i in range(n))

    for n in (0, 1, 6):
        assert triangle(td.constant(n)).numpy() == plain(n)


def test_transpose_by_a_list_with_computed_numbers():
    swap = td.function(lambda x, n: td.transpose(x, [n, n - 1, 2]))
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(swap(td.constant(x), td.constant(1)), x.transpose(1, 0, 2))


@pytest.mark.parametrize("later", ["a number", "a number in an array", "positions"])
def test_kernels_are_not_joined_across_a_size_that_is_told_in_between(
    later: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The elements tell the size, and what they are added to needs it."""
    monkeypatch.setenv("TREADLE_STRICT", "1")

    def sums(a: Any) -> Any:
        wide = td.cast(a, td.int64)
        row = td.zeros([td.reduce_max(wide)])
        size = td.shape(row, td.int64)[0]
        match later:
            case "a number":
                return wide + size, row
            case "a number in an array":
                return wide + td.stack([size, -size, 0]), row
        return wide + td.range(2, dtype=td.int64)[:, None] * size, row

    a = td.constant([[1, 4, 2], [0, 1, 1]])
    found, row = td.function(sums)(a)
    np.testing.assert_array_equal(found, sums(a)[0])
    assert row.shape == [4]
