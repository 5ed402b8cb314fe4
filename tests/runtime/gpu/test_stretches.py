"""Stretches of programs that are recorded between calls of CuPy's functions and exchanges."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu.recorder import recorded_gpu
from tests.runtime.gpu.test_execution import program_of


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setenv("TREADLE_STRICT", "1")
    with recorded_gpu() as device:
        yield device


def on(gpu, array):
    with td.device(str(gpu)):
        return td.identity(td.constant(array))


A = np.random.RandomState(0).randn(4, 4).astype(np.float32)


def long(x):
    """Products and a sum of each row, several launches."""
    for _ in range(2):
        x = td.nn.softmax(td.matmul(x, x)) + td.reduce_sum(x, 0)
    return x


def between(x):
    return long(td.linalg.expm(long(x) * 0.1))


def test_what_is_between_functions_of_cupy_is_recorded(gpu):
    function, x = td.function(between), on(gpu, A)
    wanted = td.function(between)(td.constant(A)).numpy()
    counts = gpu.storage.driver.counts
    np.testing.assert_allclose(function(x).numpy(), wanted, rtol=1e-4)
    program = program_of(function, x)
    assert not program.is_recorded and program.stretches.size == 2
    each = []
    for _ in range(8):
        before = counts.copy()
        np.testing.assert_allclose(function(x).numpy(), wanted, rtol=1e-4)
        each.append(counts - before)
    assert max(c["launches"] + c["products"] for c in each) >= 8
    for made in each[4:]:  # by then results come at the same addresses
        assert made["submissions"] == 2 and made["launches"] == made["products"] == 0
    assert program.submitted == 3  # two recordings, and the function
    assert "2 stretches of them recorded" in td.inspect.stages(function, x)["launches"]


def test_other_addresses_and_variables(gpu):
    with td.device(str(gpu)):
        v = td.Variable(A)

    @td.function
    def step(x):
        v.assign(long(td.linalg.expm(td.tanh(long(v + x)))) * 0.1)
        return td.reduce_sum(v)

    with td.device("CPU:0"):
        w = td.Variable(A)

    @td.function
    def there(x):
        w.assign(long(td.linalg.expm(td.tanh(long(w + x)))) * 0.1)
        return td.reduce_sum(w)

    for number in range(6):
        array = np.float32(A * number)
        with td.device("CPU:0"):
            wanted = there(array).numpy()
        assert np.isfinite(wanted)
        np.testing.assert_allclose(step(on(gpu, array)).numpy(), wanted, rtol=1e-3)
    np.testing.assert_allclose(v.numpy(), w.numpy(), rtol=1e-3)


def test_sizes_that_only_a_run_tells_are_not_recorded(gpu):
    def found(x):
        y = long(x)
        values = td.unique(td.reshape(td.round(y * 2.0), [-1])).y
        return td.reduce_sum(td.tanh(values) * values), td.size(values)

    function, x = td.function(found), on(gpu, A)
    for scale in (1.0, 1.0, 1.0, 0.1, 0.1, 1.0):
        x = on(gpu, np.float32(A * scale))
        wanted, count = td.function(found)(td.constant(np.float32(A * scale)))
        total, size = function(x)
        np.testing.assert_allclose(total.numpy(), wanted.numpy(), rtol=1e-4)
        assert int(size) == int(count)
    assert program_of(function, x).stretches.size == 1


def test_errors_of_checks_in_a_stretch(gpu):
    @td.function
    def rows(x, i):
        y = long(x)
        return td.linalg.expm(td.gather(y, i) * 0.1)

    x = on(gpu, A)
    good, bad = (on(gpu, np.int64(i)) for i in ([0, 1, 2, 3], [0, 1, 2, 9]))
    for _ in range(4):
        rows(x, good).numpy()
    for _ in range(3):
        with pytest.raises(td.errors.InvalidArgumentError, match="gather"):
            rows(x, bad).numpy()
    rows(x, good).numpy()
