"""Small matrices in compiled programs: without Python, in LAPACK's class of accuracy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.gradcheck import check_gradients
from tests.ops.natively import natively, same_for_any_number_of_threads
from treadle.ops.linalg import decompositions

SIZES = (0, 1, 3, 17, 64)


def matrices(dtype: str, *shape: int) -> Any:
    return np.random.default_rng(shape[-1]).standard_normal(shape).astype(dtype)


def positive(dtype: str, *shape: int) -> Any:
    x = matrices(dtype, *shape)
    return x @ x.swapaxes(-1, -2) + np.eye(shape[-1], dtype=dtype)


def compiled(fn: Callable[..., Any], *args: Any) -> list[Any]:
    """The results of a function that ran without Python."""
    function = td.function(fn)
    found = function(*args)
    executable = function.get_concrete_function(*args).executable
    assert executable.mode == "native" and executable.counters["callbacks"] == 0
    found = found if isinstance(found, tuple) else (found,)
    return [t.numpy() for t in found]


def close(a: Any, b: Any, scale: float, dtype: str) -> None:
    """Equal to some units of rounding of numbers of a size."""
    assert a.dtype == b.dtype and a.shape == b.shape
    assert np.abs(a - b).max(initial=0) <= 32 * scale * np.finfo(dtype).eps


def largest(x: Any) -> float:
    return float(np.abs(x).max(initial=1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [(), (2, 2)])
def test_equations_and_inverses(dtype: str, batch: tuple[int, ...]) -> None:
    for n in SIZES:
        a, b = matrices(dtype, *batch, n, n), matrices(dtype, *batch, n, 3)
        x, inverse = compiled(lambda a, b: (td.linalg.solve(a, b), td.linalg.inv(a)), a, b)
        close(a @ x, b, n * largest(a) * largest(x), dtype)
        unit = np.broadcast_to(np.eye(n, dtype=dtype), a.shape)
        close(a @ inverse, unit, n * largest(a) * largest(inverse), dtype)
        for lower in (True, False):
            t = (np.tril if lower else np.triu)(a) + n * np.eye(n, dtype=dtype)
            unread = (np.triu if lower else np.tril)(np.ones((n, n)), 1 if lower else -1) > 0
            garbage = np.where(unread, np.array(np.nan, dtype), t)
            (x,) = compiled(lambda a, b: td.linalg.triangular_solve(a, b, lower), garbage, b)
            close(t @ x, b, n * largest(t) * largest(x), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_determinants(dtype: str) -> None:
    for n in SIZES:
        a = matrices(dtype, 4, n, n) / max(n, 1) ** 0.5
        if n > 1:
            a[0, 0] = a[0, 1] = 0  # singular
        if n:
            a[1, 0, 0] = np.nan
        det, sign, logarithm = compiled(lambda a: (td.linalg.det(a), *td.linalg.slogdet(a)), a)
        wide = a.astype(np.float64)
        tolerance = 2000 * np.finfo(dtype).eps
        np.testing.assert_allclose(det, np.linalg.det(wide), tolerance, tolerance)
        wanted = np.linalg.slogdet(wide)
        eager_sign, _ = td.linalg.slogdet(a)
        np.testing.assert_array_equal(sign, np.where(np.isnan(wanted[1]), np.nan, wanted[0]))
        np.testing.assert_array_equal(sign, eager_sign)
        np.testing.assert_allclose(logarithm, wanted[1], tolerance, tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [(3,), (0,)])
def test_factors(dtype: str, batch: tuple[int, ...]) -> None:
    for n in SIZES:
        p = positive(dtype, *batch, n, n)
        (factor,) = compiled(td.linalg.cholesky, p)
        close(factor @ factor.swapaxes(-1, -2), p, n * largest(p), dtype)
        assert not np.triu(factor, 1).any()
        h = p - 2 * np.eye(n, dtype=dtype)
        values, vectors = compiled(td.linalg.eigh, h)
        size = max(n, 1) * largest(values)
        close((vectors * values[..., None, :]) @ vectors.swapaxes(-1, -2), h, size, dtype)
        orthonormal(vectors, dtype)
        assert (np.diff(values) >= 0).all()
        close(values, np.linalg.eigvalsh(h), size, dtype)
        for m in {max(n - 2, 1), min(n + 3, 64)} if n else ():
            a = matrices(dtype, *batch, m, n)
            q, r = compiled(td.linalg.qr, a)
            orthonormal(q, dtype)
            close(q @ r, a, n * largest(a), dtype)
            assert not np.tril(r, -1).any()
            assert (np.sign(r) == np.sign(np.linalg.qr(a)[1]))[np.abs(r) > 1e-3].all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_singular_values(dtype: str) -> None:
    for m, n in ((1, 1), (5, 5), (16, 9), (7, 16)):
        a = matrices(dtype, 3, m, n)
        a[1] = a[1, :, :1] * a[1, :1]  # of rank 1
        a[2] = 0
        u, s, vh = compiled(lambda a: decompositions.svd(a), a)
        orthonormal(u, dtype)
        orthonormal(vh.swapaxes(-1, -2), dtype)
        size = max(m, n) * largest(s)
        close((u * s[..., None, :]) @ vh, a, size, dtype)
        close(s, np.linalg.svd(a)[1], size, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_singular_values_of_equal_columns(dtype: str) -> None:
    """All columns but one become so short that the square of a quotient of lengths overflows."""
    for m, n in ((3, 3), (4, 3), (3, 4), (12, 7)):
        for scale in (1e-20, 1.0, 1e20):
            a = np.full((m, n), scale, dtype)
            u, s, vh = compiled(lambda a: decompositions.svd(a), a)
            orthonormal(u, dtype)
            orthonormal(vh.swapaxes(-1, -2), dtype)
            unit = np.dtype(dtype).type(scale)
            close((u * s) @ vh / unit, a / unit, n, dtype)


def orthonormal(x: Any, dtype: str) -> None:
    unit = np.broadcast_to(np.eye(x.shape[-1], dtype=dtype), (*x.shape[:-2], *[x.shape[-1]] * 2))
    close(x.swapaxes(-1, -2) @ x, unit, max(x.shape[-2], 1), dtype)


def test_extreme_sizes_of_elements() -> None:
    a = matrices("float64", 5, 5)
    for scale in (1e-150, 1e150):
        h = (a + a.T) * scale
        values, vectors = compiled(td.linalg.eigh, h)
        close((vectors * (values / scale)) @ vectors.T, h / scale, 40, "float64")
        u, s, vh = compiled(lambda a: decompositions.svd(a), a * scale)
        close((u * (s / scale)) @ vh, a, 40, "float64")
        q, r = compiled(td.linalg.qr, a * scale)
        close(q @ (r / scale), a, 40, "float64")


@pytest.mark.parametrize("in_function", [False, True])
def test_what_has_no_result_is_refused(in_function: bool) -> None:
    def run(fn: Callable[..., Any], *args: Any) -> Any:
        return (td.function(fn) if in_function else fn)(*map(td.constant, args))

    singular, error = np.zeros((2, 3, 3)), td.errors.InvalidArgumentError
    singular[0] = np.eye(3)
    with pytest.raises(error, match="Singular"):
        run(td.linalg.inv, singular)
    with pytest.raises(error, match="Singular"):
        run(td.linalg.solve, singular, np.ones((2, 3, 1)))
    with pytest.raises(error, match="not positive definite"):
        run(td.linalg.cholesky, -singular)
    with pytest.raises(error, match="finite"):
        run(td.linalg.eigh, np.full((2, 2), np.nan))
    with pytest.raises(error, match="rows"):
        run(td.linalg.solve, np.eye(3), np.ones((4, 1)))


def test_the_error_names_the_line() -> None:
    @td.function
    def invert(x: Any) -> Any:
        return td.linalg.inv(x)  # the line

    with pytest.raises(td.errors.InvalidArgumentError, match="# the line"):
        invert(np.zeros((2, 2)))


def test_sizes_known_when_the_program_runs() -> None:
    signature = [td.TensorSpec([None, None], td.float64)] * 2

    @td.function(input_signature=signature)
    def run(a: Any, b: Any) -> Any:
        square = td.matmul(a, a, transpose_b=True) + td.linalg.eye(td.shape(a)[0], dtype=a.dtype)
        return td.linalg.solve(square, b), td.linalg.cholesky(square), td.linalg.qr(a)[1]

    for n in (1, 5, 70):
        a, b = matrices("float64", n, n), matrices("float64", n, 2)
        x, factor, r = (t.numpy() for t in run(a, b))
        square = a @ a.T + np.eye(n)
        close(square @ x, b, n * largest(square), "float64")
        close(factor @ factor.T, square, n * largest(square), "float64")
        close(np.abs(r), np.abs(np.linalg.qr(a)[1]), n * largest(r), "float64")
    with pytest.raises(td.errors.InvalidArgumentError):
        run(np.eye(3), np.ones((2, 2)))


def test_one_matrix_for_a_batch_and_the_reverse() -> None:
    a, b = positive("float64", 4, 4), matrices("float64", 5, 4, 2)
    (x,) = compiled(td.linalg.solve, a, b)
    close(a @ x, b, 4 * largest(a) * largest(x), "float64")
    many, one = positive("float64", 5, 4, 4), matrices("float64", 4, 2)
    (x,) = compiled(td.linalg.solve, many, one)
    close(many @ x, np.broadcast_to(one, x.shape), 4 * largest(many) * largest(x), "float64")


def test_in_loops() -> None:
    def run(a: Any) -> Any:
        total = td.zeros([6], td.float64)
        for i in td.range(1, 20):
            b = a + td.cast(i, td.float64) * td.linalg.eye(6, dtype=td.float64)
            total += td.linalg.solve(b, td.ones([6, 1], td.float64))[:, 0] * td.linalg.det(b)
        return total

    a = td.constant(positive("float64", 6, 6))
    natively(run, a, rtol=1e-9)


@pytest.mark.parametrize(
    "fn",
    [
        lambda a: td.linalg.solve(a, a[:, :2] * 2.0), td.linalg.inv, td.linalg.det,
        lambda a: td.linalg.slogdet(a)[1],
        lambda a: td.linalg.logdet(a + td.linalg.matrix_transpose(a)),
        lambda a: td.linalg.cholesky(a + td.linalg.matrix_transpose(a)),
        lambda a: td.linalg.triangular_solve(a, a[:, :2]),
        lambda a: td.linalg.triangular_solve(a, a[:, :2], lower=False, adjoint=True),
        lambda a: td.linalg.eigh(a + td.linalg.matrix_transpose(a))[0],
        lambda a: td.linalg.qr(a)[1], lambda a: td.linalg.svd(a)[0],
        lambda a: td.linalg.lstsq(a[:, :2], a[:, 2:]),
        lambda a: td.linalg.lstsq(a[:, :2], a[:, 2:], fast=False),
        lambda a: td.linalg.cholesky_solve(
            td.linalg.cholesky(td.matmul(a, a, transpose_b=True)), a[:, :2]
        ),
    ],
)  # fmt: skip
def test_gradients(fn: Callable[..., Any]) -> None:
    check_gradients(fn, positive("float64", 4, 4))
    check_gradients(td.function(fn), positive("float64", 4, 4))


def test_any_number_of_threads() -> None:
    a = td.constant(positive("float32", 300, 9, 9))
    same_for_any_number_of_threads(
        lambda a: (td.linalg.inv(a), td.linalg.cholesky(a), *td.linalg.eigh(a)), a
    )
