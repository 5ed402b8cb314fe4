"""Fourier transforms: NumPy's values and accuracy, natively for powers of two, with gradients."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.ops.linalg.fourier import tables
from treadle.ops.registry import OPS, run

COMPLEX = {np.float32: np.complex64, np.float64: np.complex128}


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    """What cannot be compiled fails here."""
    monkeypatch.setenv("TREADLE_STRICT", "1")


def numbers(dtype, *shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def complexes(dtype, *shape, seed=0):
    parts = numbers(dtype, *shape, seed=seed), numbers(dtype, *shape, seed=seed + 50)
    return (parts[0] + 1j * parts[1]).astype(COMPLEX[dtype])


def check(fn, x, native=True):
    """Compiled `fn`, beside NumPy in float64 and eager `fn`."""
    function = td.function(fn)
    found = function(td.constant(x)).numpy()
    eager = np.asarray(fn(td.constant(x)))
    wanted = fn(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))
    assert (found.dtype, found.shape) == (eager.dtype, wanted.shape)
    scale = np.abs(wanted).max(initial=1e-300) * np.finfo(x.dtype).eps
    assert np.abs(found - wanted).max(initial=0) <= 8 * scale
    assert np.abs(eager - wanted).max(initial=0) <= 8 * scale
    schedule = function.concrete_functions[0].executable.stages["schedule"]
    assert ("python" in schedule) is not native


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 4, 8, 16, 32, 128, 1024, 8192])
def test_powers_of_two(n, dtype):
    check(lambda x: np.fft.fft(x), complexes(dtype, 3, n))
    check(lambda x: np.fft.ifft(x), complexes(dtype, n))
    if n > 1:
        check(lambda x: np.fft.rfft(x), numbers(dtype, 3, n))
        check(lambda x: np.fft.irfft(x), complexes(dtype, 2, n // 2 + 1))


@pytest.mark.parametrize("n", [3, 6, 12, 100])
def test_other_sizes_are_left_to_numpy(n):
    check(lambda x: np.fft.fft(x), complexes(np.float64, 2, n), native=False)
    check(lambda x: np.fft.ifft(x), complexes(np.float32, n), native=False)
    check(lambda x: np.fft.rfft(x), numbers(np.float64, 2, n), native=False)
    check(lambda x: np.fft.irfft(x, n), complexes(np.float64, 2, n // 2 + 1), native=False)


@pytest.mark.parametrize("axis", [0, 1, 2, -2])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_axes_and_norms(axis, norm):
    x = complexes(np.float64, 4, 8, 16)
    check(lambda x: np.fft.fft(x, axis=axis, norm=norm), x)
    check(lambda x: np.fft.ifft(x, axis=axis, norm=norm), x)
    check(lambda x: np.fft.rfft(x, axis=axis, norm=norm), x.real.copy())
    check(lambda x: np.fft.irfft(x, 2 * (x.shape[axis] // 2), axis, norm), x[:, :5][:3])


def test_lengths_that_are_asked_for():
    x = complexes(np.float64, 3, 12)
    check(lambda x: np.fft.fft(x, 16), x)
    check(lambda x: np.fft.fft(x, 8), x)
    check(lambda x: np.fft.rfft(x, 32), x.real.copy())
    check(lambda x: np.fft.irfft(x, 8), x)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "fftn", "ifftn", "rfft2", "rfftn"])
def test_several_axes(name):
    x = complexes(np.float64, 2, 8, 16)
    check(lambda x: getattr(np.fft, name)(x, axes=(1, 2)), x.real.copy() if "r" in name else x)


def test_open_batches_and_results_in_order():
    """Each transform of a round trip reads what the one before it wrote."""

    @td.function(input_signature=[td.TensorSpec([None, 64], td.complex64)])
    def f(x):
        y = np.fft.fft(x)
        return y, np.fft.ifft(y), np.fft.irfft(np.fft.rfft(td.math.real(x)))

    for count in (1, 2, 7):
        x = complexes(np.float32, count, 64)
        y, back, real = f(td.constant(x))
        np.testing.assert_allclose(y, np.fft.fft(x), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(back, x, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(real, x.real, rtol=1e-5, atol=1e-5)
    assert "python" not in f.concrete_functions[0].executable.stages["schedule"]


REAL = td.TensorSpec([None, None], td.float64)


def both_ways(x, n):
    """Transforms of an open length, with sizes that only a run knows, and a gradient of them."""
    with td.GradientTape() as tape:
        tape.watch(x)
        half = td.signal.rfft(x)
        found = [
            half, td.signal.rfft(x, [n]), td.signal.irfft(half), td.signal.irfft(half, [n]),
            td.signal.irfft(half, td.stack([n])), td.signal.irfft2d(td.signal.rfft2d(x), [2, n]),
            td.signal.irfftnd(half, [n], [1]),
        ]  # fmt: skip
        total = td.add_n([td.reduce_sum(td.abs(y) ** 2) for y in found])
    return found, tape.gradient(total, x)


@pytest.mark.parametrize(("length", "n"), [(5, 4), (4, 7), (8, 8), (6, 5), (3, 1)])
def test_open_lengths(length, n):
    compiled = td.function(both_ways, input_signature=[REAL, td.TensorSpec([], td.int32)])
    x = numbers(np.float64, 2, length)
    found, slope = compiled(td.constant(x), n)
    half = np.fft.rfft(x)
    wanted = [
        half, np.fft.rfft(x, n), np.fft.irfft(half), *[np.fft.irfft(half, n)] * 2,
        np.fft.irfft2(np.fft.rfft2(x), [2, n]), np.fft.irfft(half, n),
    ]  # fmt: skip
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    theory, numeric = td.test.compute_gradient(
        lambda x: td.add_n([td.reduce_sum(td.abs(y) ** 2) for y in both_ways(x, n)[0]]),
        [td.constant(x)], 1e-5,
    )  # fmt: skip
    np.testing.assert_allclose(slope, theory[0].reshape(x.shape), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(theory[0], numeric[0], rtol=1e-5, atol=1e-6)


def test_open_lengths_that_are_refused():
    compiled = td.function(both_ways, input_signature=[REAL, td.TensorSpec([], td.int32)])
    for x, n in ((np.ones((2, 5)), 0), (np.ones((2, 1)), 4)):
        with pytest.raises(td.errors.InvalidArgumentError):
            compiled(x, n)
    with pytest.raises(td.errors.InvalidArgumentError, match="positive ints"):
        td.function(lambda x, n: td.signal.rfft(x, n), input_signature=[
            REAL, td.TensorSpec([None], td.int32)])(np.ones((2, 5)), [3])


@pytest.mark.parametrize("n", [4, 6, 8, 5])
def test_gradients(n):
    z, x = complexes(np.float64, n), numbers(np.float64, 2, n)
    for fn, value in (
        (lambda z: np.fft.fft(z), z),
        (lambda z: np.fft.ifft(z, norm="ortho"), z),
        (lambda x: np.fft.rfft(x), x),
        (lambda x: np.fft.rfft(x, axis=0), x),
        (lambda z: np.fft.irfft(z, 2 * n - 2), z),
        (lambda z: np.fft.irfft(z, 2 * n - 1), z),
        (lambda x: np.fft.irfft(np.fft.rfft(x) * 2.0, n) * x, x),
    ):
        theory, numeric = td.test.compute_gradient(td.function(fn), [td.constant(value)], 1e-4)
        np.testing.assert_allclose(theory[0], numeric[0], rtol=1e-6, atol=1e-7)


def test_ops_on_parts_are_what_numpy_computes():
    """The interpreter's meaning of the native transforms."""
    z, (real, imag) = complexes(np.float64, 2, 8), tables(8, "float64")
    parts = OPS["fourier_on_parts"].eager(z.real.copy(), z.imag.copy(), real, imag)
    np.testing.assert_array_equal(parts[0] + 1j * parts[1], np.fft.fft(z))


def test_what_is_refused():
    with pytest.raises(TypeError, match="complex"):
        run(OPS["fourier"], td.constant([1.0, 2.0]), inverse=False, axis=0)
    with pytest.raises((ValueError, td.errors.InvalidArgumentError), match="coefficients"):
        td.function(lambda x: run(OPS["fourier_to_real"], x, size=8, axis=0))(
            td.constant([1j, 2.0])
        )


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("n", [0, -2])
def test_sizes_below_one_are_refused_as_numpy_does(name, n):
    def transform(x):
        return getattr(np.fft, name)(x, n)

    for f in (transform, td.function(transform), td.jit(transform)):
        with pytest.raises(ValueError, match=f"{n}"):
            f(np.ones(5))
