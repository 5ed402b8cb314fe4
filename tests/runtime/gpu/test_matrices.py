"""Large and complex matrices on a GPU: equations and decompositions by its library."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu.recorder import recorded_gpu
from treadle.core import errors

RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def gpu():
    with recorded_gpu() as device:
        yield device


def on(device, array):
    with td.device(device.name):
        return td.identity(td.constant(array))


def square(n, dtype, batch=()):
    x = RNG.standard_normal((*batch, n, n)) + 1j * RNG.standard_normal((*batch, n, n))
    x = (x if np.dtype(dtype).kind == "c" else x.real) + n * np.eye(n)
    return x.astype(dtype)


def positive(n, dtype, batch=()):
    x = square(n, dtype, batch) / n
    return x @ x.conj().swapaxes(-1, -2) + np.eye(n, dtype=dtype)


CASES = {
    "inverse": (td.linalg.inv, lambda d: [square(70, d, (2,))]),
    "determinant": (td.linalg.det, lambda d: [square(70, d) / 70]),
    "log determinant": (td.linalg.slogdet, lambda d: [square(70, d, (3,))]),
    "solve": (td.linalg.solve, lambda d: [square(70, d), square(70, d, (2,))[..., :5]]),
    "lower triangle": (
        lambda a, b: td.linalg.triangular_solve(a, b, lower=True),
        lambda d: [square(101, d, (2, 1)), square(101, d, (2, 3))[..., :4]],
    ),
    "upper triangle": (
        lambda a, b: td.linalg.triangular_solve(a, b, lower=False),
        lambda d: [square(101, d), square(101, d)[:, :4]],
    ),
    "cholesky": (td.linalg.cholesky, lambda d: [positive(70, d, (2,))]),
    "qr": (
        lambda x: [abs(y) for y in td.linalg.qr(x)],  # rows of R have any phase
        lambda d: [square(70, d, (2,))[..., :40]],
    ),
    "singular values": (
        lambda x: td.linalg.svd(x, compute_uv=False),
        lambda d: [square(70, d, (2,))[..., :40]],
    ),
    "singular vectors": (
        lambda x: (lambda s, u, v: u * td.cast(s, u.dtype)[..., None, :] @ td.linalg.adjoint(v))(
            *td.linalg.svd(x)
        ),
        lambda d: [square(70, d, (2,))[..., :40]],
    ),
    "eigenvalues": (lambda x: td.linalg.eigh(x)[0], lambda d: [positive(70, d, (2,))]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("name", CASES)
def test_matrices_stay_on_the_device(name, dtype, gpu):
    function, make = CASES[name]
    arrays = make(dtype)
    expected = td.nest.flatten(function(*[td.constant(a) for a in arrays]))
    given, compiled = [on(gpu, a) for a in arrays], td.function(function)
    counts = gpu.storage.driver.counts
    results = td.nest.flatten(compiled(*given))
    gpu.storage.driver.synchronize()
    before = counts["downloads"]
    results = td.nest.flatten(compiled(*given))
    assert counts["downloads"] - before <= 1  # the status of the call before
    digits = 1e-10 if dtype == "float64" else 2e-4
    for one, other in zip(results, expected, strict=True):
        assert "GPU:0" in one.device and one.dtype == other.dtype
        np.testing.assert_allclose(one.numpy(), other.numpy(), digits, digits)


BAD = {
    "inverse": (td.linalg.inv, [np.ones((70, 70), np.float32)]),
    "cholesky": (td.linalg.cholesky, [-np.eye(70, dtype=np.float32)]),
    "solve": (td.linalg.solve, [np.zeros((70, 70)), np.ones((70, 2))]),
    "eigenvalues": (td.linalg.eigh, [np.full((70, 70), np.nan)]),
    "complex": (td.linalg.inv, [np.zeros((3, 3), np.complex64)]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused_is_the_processors_error(name, gpu):
    function, arrays = BAD[name]
    with pytest.raises(errors.InvalidArgumentError) as wanted:
        function(*[td.constant(a) for a in arrays])
    given = [on(gpu, a) for a in arrays]
    with pytest.raises(errors.InvalidArgumentError) as found:
        td.nest.flatten(td.function(function)(*given))[0].numpy()
    kind, _, text = str(wanted.value).split("\n")[0].partition(": ")
    assert text.split(": ")[-1] in str(found.value), (kind, str(found.value))


def test_nothing_and_what_is_not_finite(gpu):
    empty = on(gpu, np.zeros((0, 70, 70), np.float32))
    assert td.function(td.linalg.inv)(empty).numpy().shape == (0, 70, 70)
    x = RNG.standard_normal((2, 40, 30))
    x[1, 3, 4] = np.inf
    values = td.function(lambda x: td.linalg.svd(x, compute_uv=False))(on(gpu, x)).numpy()
    assert np.isfinite(values[0]).all() and np.isnan(values[1]).all()
