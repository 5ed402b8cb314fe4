"""Matrix products that read transposes, slices and splits of arrays where their elements are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import both, captures, native, trace, trace_like
from treadle.core.spec import TensorSpec
from treadle.passes import disabled
from treadle.runtime import Executable

RNG = np.random.default_rng(3)


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def check(
    fn: Callable[..., Any], *arrays: Any, kernels: int = 0, strided: bool = True
) -> Executable:
    """The program agrees with the interpreter, and bit by bit with one that makes copies."""
    graph = trace_like(fn, *arrays)
    executable = both(graph, *arrays, rtol=1e-4, atol=1e-4)
    assert ("strided" in executable.stages["schedule"]) is strided
    assert executable.counters["kernels"] == kernels
    with disabled("strided"):
        plain = native(graph)
    assert "strided" not in plain.stages["schedule"]
    values = [*arrays, *captures(graph)]
    expected = [np.array(r) for r in plain.run(values)]
    for a, b in zip(executable.run(values), expected, strict=True):
        np.testing.assert_array_equal(a, b)
    return executable


def heads(x: Any, count: int) -> Any:
    batch, steps, size = x.shape
    return td.transpose(td.reshape(x, (batch, steps, count, size // count)), (0, 2, 1, 3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attention(dtype: Any) -> None:
    def fn(x: Any) -> Any:
        q, k, v = (heads(part, 3) for part in td.split(x, 3, axis=-1))
        return td.matmul(td.matmul(q, k, transpose_b=True), v)

    check(fn, normal(4, 19, 9 * 7, dtype=dtype))


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize(
    "left, right",
    [
        (lambda a: a[3:, 2:], lambda b: b[:, ::1]),
        (lambda a: a[::2], lambda b: b[1::3]),
        (lambda a: td.transpose(a), lambda b: b[:20]),
        (lambda a: a[5:], lambda b: td.transpose(b)[4:30]),
        (lambda a: td.transpose(a)[3:], lambda b: td.transpose(b)),
    ],
)
def test_matrices(left: Any, right: Any, ta: bool, tb: bool) -> None:
    """Slices and transposes of matrices, cut to sizes that fit."""

    def fn(a: Any, b: Any) -> Any:
        x, y = left(a), right(b)
        x = td.transpose(x) if ta else x
        y = td.transpose(y) if tb else y
        k = min(x.shape[1], y.shape[0])
        x, y = x[:, :k], y[:k]
        x, y = td.transpose(x) if ta else x, td.transpose(y) if tb else y
        return td.matmul(x, y, transpose_a=ta, transpose_b=tb)

    check(fn, normal(61, 67), normal(71, 59))


def test_large_products_are_packed_from_strided_rows() -> None:
    check(lambda a, b: a[:, 100:1400] @ b[:, 7:], normal(300, 1500), normal(1300, 300))
    check(lambda a, b: td.matmul(a[:, :300], b[:, 5:405], transpose_a=True),
          normal(400, 310), normal(400, 410))  # fmt: skip
    check(lambda a, b: td.matmul(a[1:], b[:, 3:], transpose_b=True), normal(91, 300),
          normal(200, 303))  # fmt: skip


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, w: td.transpose(x, (2, 0, 1, 3)) @ w,
        lambda x, w: td.transpose(x, (1, 0, 2, 3)) @ w,
        lambda x, w: x[:, 1:, ::2] @ w,
        lambda x, w: x[1:3, 2] @ w,
        lambda x, w: td.transpose(x[:, 1:], (0, 2, 1, 3)) @ w,
    ],
)
def test_batches_of_rows_times_a_matrix(fn: Any) -> None:
    check(fn, normal(4, 5, 6, 7), normal(7, 8))


def test_few_rows_are_copied_where_products_share_a_large_matrix() -> None:
    """Time first: the products of a batch become one, which reads the matrix once."""
    turned = lambda x, w: td.transpose(x, (1, 0, 2)) @ w
    check(turned, normal(9, 5, 70), normal(70, 900), kernels=1, strided=False)
    check(turned, normal(9, 5, 70), normal(70, 17))  # which the first cache holds
    check(turned, normal(500, 5, 70), normal(70, 900))  # many rows read it


def test_what_has_no_strides_is_copied() -> None:
    check(lambda x, w: x[:, ::-1] @ w, normal(9, 8), normal(8, 7), kernels=1, strided=False)
    check(lambda x, w: x[:, ::2] @ w, normal(9, 16), normal(8, 7), kernels=1, strided=False)
    fn = lambda x, w: td.reshape(td.transpose(x, (1, 0, 2)), (6, 20)) @ w
    check(fn, normal(4, 6, 5), normal(20, 3), kernels=1, strided=False)
    fn = lambda x, w: td.transpose(x, (2, 1, 0, 3, 4)) @ w
    check(fn, normal(2, 3, 4, 5, 6), normal(6, 7), kernels=1, strided=False)


def test_one_operand_may_be_copied() -> None:
    fn = lambda x, w: x[:, ::2] @ w[:, 1:]
    check(fn, normal(9, 16), normal(8, 7), kernels=1)


def test_an_array_that_is_overwritten_later() -> None:
    weight = td.Variable(normal(12, 30))

    def fn(x: Any) -> Any:
        old = td.transpose(weight.read_value())[3:]
        weight.assign_add(td.ones((12, 30)))
        return old @ x, weight @ td.transpose(old[:, :12] @ td.ones((12, 30)))

    graph = trace_like(fn, normal(12, 5))
    assert "strided" in both(graph, normal(12, 5), rtol=1e-3, atol=1e-3).stages["schedule"]


def test_an_array_whose_part_is_overwritten_before() -> None:
    def fn(x: Any, w: Any) -> Any:
        y = x * 2.0
        turned = td.transpose(y)
        y = td.tensor_scatter_nd_update(y, [[1]], [td.ones(7)])
        return turned @ w, y

    x, w = normal(5, 7), normal(5, 3)
    graph = trace_like(fn, x, w)
    both(graph, x, w)


def test_gradients_of_attention() -> None:
    def fn(x: Any, w: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(w)
            q, k, v = (heads(part, 2) for part in td.split(x @ w, 3, axis=-1))
            weights = td.nn.softmax(td.matmul(q, k, transpose_b=True))
            mixed = td.reshape(td.transpose(weights @ v, (0, 2, 1, 3)), (3, 9, 8))
            loss = td.reduce_sum(mixed * mixed)
        return tape.gradient(loss, w)

    graph = trace_like(fn, normal(3, 9, 8), normal(8, 24))
    executable = both(graph, normal(3, 9, 8), normal(8, 24), rtol=1e-3, atol=1e-3)
    assert executable.stages["schedule"].count("strided") >= 6


def test_symbolic_sizes() -> None:
    def fn(x: Any, w: Any) -> Any:
        q, k = (td.transpose(part, (1, 0, 2)) for part in td.split(x, 2, axis=-1))
        return td.matmul(q, k, transpose_b=True) @ td.transpose(w)

    graph = trace(fn, TensorSpec((None, None, 16)), TensorSpec((5, None)))
    executable = native(graph)
    assert "strided" in executable.stages["schedule"]
    for a, b in [(1, 1), (7, 3), (40, 2), (0, 3), (33, 20)]:
        x, w = normal(a, b, 16), normal(5, a)
        q, k = (x[..., i : i + 8].transpose(1, 0, 2) for i in (0, 8))
        (found,) = executable.run([x, w])
        np.testing.assert_allclose(found, q @ k.swapaxes(1, 2) @ w.T, rtol=1e-3, atol=1e-3)
