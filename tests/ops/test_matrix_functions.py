"""Functions of matrices: complex gradients, matrices with too few eigenvectors, larger ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import treadle as td

RNG = np.random.default_rng(0)
STEP = 1e-6


@pytest.mark.parametrize("name", ["sqrtm", "expm", "logm", "pinv"])
def test_gradients_of_complex_matrices(name: str) -> None:
    """Of a real loss: the slopes along the real parts, and i times those along the imaginary."""
    fn = getattr(td.linalg, name)
    z = (RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))) / 3 + 2 * np.eye(3)
    weights = RNG.normal(size=(3, 3))

    def loss(a: Any) -> Any:
        return td.reduce_sum(td.abs(fn(a)) ** 2 * weights)

    x = td.constant(z)
    with td.GradientTape() as tape:
        tape.watch(x)
        value = loss(x)
    expected = np.zeros_like(z)
    for place in np.ndindex(3, 3):
        for direction in (1, 1j):
            moved = np.zeros_like(z)
            moved[place] = STEP * direction
            slope = float(loss(td.constant(z + moved))) - float(loss(td.constant(z - moved)))
            expected[place] += direction * slope / (2 * STEP)
    found = tape.gradient(value, x).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def jordan(n: int) -> Any:
    """One eigenvalue with one eigenvector, in a basis that hides it."""
    turn = np.linalg.qr(RNG.normal(size=(n, n)))[0]
    return turn @ (2 * np.eye(n) + np.eye(n, k=1)) @ turn.T


@pytest.mark.parametrize("n", [2, 3, 5])
def test_too_few_eigenvectors(n: int) -> None:
    a = jordan(n)
    root = td.linalg.sqrtm(a).numpy()
    np.testing.assert_allclose(root @ root, a, atol=1e-10)
    log = td.linalg.logm(a.astype(complex))
    np.testing.assert_allclose(td.linalg.expm(log), a, atol=1e-9)


@pytest.mark.parametrize("n", [17, 40])
def test_larger_matrices(n: int) -> None:
    a = RNG.normal(size=(n, n))
    positive = a @ a.T + np.eye(n)
    root = td.linalg.sqrtm(positive).numpy()
    np.testing.assert_allclose(root @ root, positive, rtol=1e-10, atol=1e-9)
    exponential = scipy.linalg.expm(a)
    error = np.abs(td.linalg.expm(a).numpy() - exponential).max()
    assert error <= 1e-11 * np.abs(exponential).max()
    log = td.linalg.logm(positive.astype(complex)).numpy()
    np.testing.assert_allclose(log, scipy.linalg.logm(positive), atol=1e-9)
    packed, order = td.linalg.lu(a)
    lower = np.tril(packed, -1) + np.eye(n)
    np.testing.assert_allclose(lower @ np.triu(packed), a[order.numpy()], atol=1e-11)


def test_what_has_no_finite_function() -> None:
    """NaN for that matrix alone."""
    pair = np.stack([np.eye(2), np.diag([np.inf, 1.0])])
    found = td.linalg.expm(pair).numpy()
    np.testing.assert_allclose(found[0], np.e * np.eye(2))
    assert np.isnan(found[1]).all()
    assert np.isnan(td.linalg.sqrtm(np.diag([1.0, -4.0]))).all()
    assert np.isnan(td.linalg.logm(np.zeros((2, 2), complex))).all()


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 4, 2), (0, 3), (3, 0)])
def test_complete_qr(shape: tuple[int, ...]) -> None:
    """Square orthonormal Q, natively and by callbacks."""
    a = RNG.normal(size=shape)
    fn = td.function(lambda x: td.linalg.qr(x, full_matrices=True))
    spec = td.TensorSpec([None] * a.ndim, a.dtype)
    opened = td.function(fn.python_function, input_signature=[spec])
    for run in (fn.python_function, fn, opened):
        q, r = (part.numpy() for part in run(td.constant(a)))
        m = shape[-2]
        assert q.shape == (*shape[:-2], m, m) and r.shape == shape
        np.testing.assert_allclose(q @ r, a, atol=1e-12)
        np.testing.assert_allclose(
            np.swapaxes(q, -1, -2) @ q, np.broadcast_to(np.eye(m), q.shape), atol=1e-12
        )
        np.testing.assert_allclose(r, np.triu(r), atol=1e-12)


def test_gradient_of_a_complete_qr() -> None:
    a = RNG.normal(size=(3, 3))

    def slope(full: bool) -> Any:
        x = td.constant(a)
        with td.GradientTape() as tape:
            tape.watch(x)
            loss = td.reduce_sum(td.linalg.qr(x, full_matrices=full).r ** 2 * a)
        return tape.gradient(loss, x).numpy()

    np.testing.assert_allclose(slope(True), slope(False))
    x = td.constant(RNG.normal(size=(4, 2)))
    with td.GradientTape() as tape:
        tape.watch(x)
        r = td.linalg.qr(x, full_matrices=True).r
    with pytest.raises(NotImplementedError, match="full_matrices=False"):
        tape.gradient(r, x)


@pytest.mark.parametrize("lower", [-1, 0, 2])
@pytest.mark.parametrize("upper", [-1, 0, 1])
def test_bands_of_numbers_that_a_run_knows(lower: int, upper: int) -> None:
    a = RNG.normal(size=(2, 3, 4))
    found = td.function(td.linalg.band_part)(a, td.constant(lower), td.constant(upper))
    np.testing.assert_array_equal(found.numpy(), td.linalg.band_part(a, lower, upper).numpy())


def test_equations_of_integers_are_refused() -> None:
    whole = np.eye(2, dtype=np.int32)
    for solve in (td.linalg.triangular_solve, td.linalg.cholesky_solve):
        with pytest.raises(TypeError):
            solve(whole, whole)
    with pytest.raises(ValueError, match="rows"):
        td.linalg.lu_solve(np.eye(2), [1, 0], np.ones((3, 1)))


def test_inverses_and_factors_of_float16_are_those_of_float32_rounded() -> None:
    a = td.constant([[4, 1], [1, 3]], td.float16)
    wide = td.cast(a, td.float32)
    weights = td.constant([[1, 2], [3, 5]], td.float16)
    with td.GradientTape(persistent=True) as tape:
        tape.watch([a, wide])
        found, expected = td.linalg.inv(a), td.linalg.inv(wide)
        loss = td.reduce_sum(found * weights)
        wide_loss = td.reduce_sum(expected * td.cast(weights, td.float32))
    assert found.dtype is td.float16
    np.testing.assert_array_equal(found, td.cast(expected, td.float16))
    slopes = tape.gradient(loss, a), tape.gradient(wide_loss, wide)
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=2e-3)
    q, r = td.function(td.linalg.qr)(a)
    assert q.dtype is td.float16 and r.dtype is td.float16
    np.testing.assert_allclose(td.matmul(q, r), a, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", [td.float16, td.bfloat16])
def test_pseudo_inverses_of_two_byte_floats_are_refused(dtype: td.DType) -> None:
    with pytest.raises(TypeError, match="matrices of floats"):
        td.linalg.pinv(td.eye(2, dtype=dtype))
