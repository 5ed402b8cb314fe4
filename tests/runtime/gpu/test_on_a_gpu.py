"""On a GPU, where there is one. TREADLE_TEST_GPU=1 says that there must be.

The programs are those that the other tests run through the shim: what they give is compared with
what a processor gives.
"""

import os
import threading

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu import test_cudnn
from tests.runtime.gpu.test_eager import MODELS, losses
from tests.runtime.gpu.test_matrices import BAD, CASES
from tests.runtime.gpu.test_programs import PROGRAMS, X
from tests.runtime.gpu.test_recorded_control import CONTROL, LARGE
from treadle.core import errors
from treadle.runtime.gpu import discovery

GPU = "GPU:0"
on_a_gpu = pytest.mark.skipif(
    not discovery.physical_gpus(), reason=f"{discovery.why_none()}; TREADLE_TEST_GPU=1 wants one"
)


def test_a_gpu_is_where_it_must_be():
    if os.environ.get("TREADLE_TEST_GPU") == "1":
        assert discovery.physical_gpus(), discovery.why_none()


def on(array):
    with td.device(GPU):
        return td.identity(td.constant(array))


def agree(function, arrays, tolerance):
    expected = td.nest.flatten(td.function(function)(*[td.constant(a) for a in arrays]))
    given, compiled = [on(a) for a in arrays], td.function(function)
    for _ in range(3):  # the work is recorded in the second call, and submitted again in the third
        found = td.nest.flatten(compiled(*given))
        eager = td.nest.flatten(function(*given))
        for one, other, wanted in zip(found, eager, expected, strict=True):
            if not isinstance(other, td.Tensor):  # Python counts where it runs the loop
                assert other == wanted.numpy()
                other = one
            for y in (one, other):
                assert y.device.endswith(GPU) and y.dtype == wanted.dtype
                np.testing.assert_allclose(y.numpy(), wanted.numpy(), tolerance, tolerance / 10)


@on_a_gpu
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    x = np.abs(X) + 0.1 if name == "loop" else X
    agree(PROGRAMS[name], [x], 1e-3 if name == "half" else 2e-5)


RNG = np.random.default_rng(8)
NUMBERS = np.concatenate([
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, 1.1754942e-38, 3.4e38, 1.0, -1.0],
    RNG.standard_normal(500), RNG.standard_normal(500) * 40, np.exp(RNG.uniform(-100, 88, 500)),
]).astype(np.float32)  # fmt: skip
FUNCTIONS = (
    td.abs, td.sign, td.floor, td.math.ceil, td.round, td.sqrt, td.math.rsqrt, td.exp,
    td.math.expm1, td.math.log, td.math.log1p, td.sin, td.cos, td.tan, td.sinh, td.cosh, td.tanh,
    td.math.asin, td.math.acos, td.math.atan, td.math.asinh, td.math.acosh, td.math.atanh,
    td.math.erf, td.math.erfc, td.sigmoid, td.math.softplus, td.math.is_nan, td.math.is_inf,
)  # fmt: skip


@on_a_gpu
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_functions_and_their_special_values(function):
    found, wanted = function(on(NUMBERS)).numpy(), function(td.constant(NUMBERS)).numpy()
    if found.dtype == bool:
        np.testing.assert_array_equal(found, wanted)
        return
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_allclose(found, wanted, 5e-7, 3e-45)


@on_a_gpu
def test_numbers_below_the_normal_ones_are_no_zeros():
    small = np.array([1e-45, -1e-45, 3e-45, 1e-40, -1e-40, 1.1754942e-38, 0, -0.0], np.float32)
    step = td.function(
        lambda x: (x * 0.5, x + x, x - 1e-40, x != 0, td.cast(x, td.bool), td.maximum(x, 0), x / 2)
    )
    for found, wanted in zip(step(on(small)), step(td.constant(small)), strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


@on_a_gpu
def test_a_new_thread_works_before_it_copies_anything():
    x, step, found = on(X), td.function(lambda x: td.nn.softmax(x * 3.0)), []
    step(x)
    thread = threading.Thread(target=lambda: found.append(step(x)))
    thread.start()
    thread.join()
    np.testing.assert_allclose(found[0].numpy(), step(td.constant(X)).numpy(), 1e-5)


@on_a_gpu
@pytest.mark.parametrize("scale", [1.0, 1.5, 2.5, 0.01])
@pytest.mark.parametrize("name", CONTROL)
def test_loops_and_branches_that_the_device_decides_about(name, scale):
    agree(CONTROL[name], [LARGE * np.float32(scale)], 1e-4)


@on_a_gpu
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", test_cudnn.CASES)
def test_convolutions(name, dtype):
    """By cuDNN where it is installed."""
    x, filters, attrs = test_cudnn.given(name, dtype)
    function = lambda x, f: test_cudnn.gradients(x, f, attrs)
    agree(function, [x, filters], 1e-4 if dtype == "float32" else 3e-2)


@on_a_gpu
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("name", CASES)
def test_matrices(name, dtype):
    function, make = CASES[name]
    agree(function, make(dtype), 1e-9 if dtype == "float64" else 1e-3)


@on_a_gpu
@pytest.mark.parametrize("name", BAD)
def test_matrices_that_are_refused(name):
    function, arrays = BAD[name]
    with pytest.raises(errors.InvalidArgumentError):
        td.nest.flatten(td.function(function)(*[on(a) for a in arrays]))[0].numpy()


@on_a_gpu
@pytest.mark.parametrize("name", MODELS)
def test_training_steps(name):
    wanted, here = losses("CPU:0", name), losses(GPU, name)
    np.testing.assert_allclose(here[0], wanted[0], 1e-4)


@on_a_gpu
def test_sums_have_the_same_bits_each_time():
    x = on(np.random.default_rng(0).standard_normal((300, 70_001)).astype(np.float32))
    sums = td.function(lambda x: [td.reduce_sum(x), td.reduce_sum(x, 0), td.reduce_sum(x, 1)])
    first = [y.numpy().tobytes() for y in sums(x)]
    for _ in range(100):
        assert [y.numpy().tobytes() for y in sums(x)] == first


@on_a_gpu
def test_many_calls_need_no_more_memory():
    x = on(np.ones((64, 64), np.float32))
    step = td.function(lambda x: td.nn.softmax(x @ x) * 2.0)
    for _ in range(10):
        step(x)
    step(x).numpy()
    before = x._spec.device.storage.driver.memory_use()["current"]
    for _ in range(100_000):
        y = step(x)
    del y
    assert step(x).numpy().shape == (64, 64)
    assert x._spec.device.storage.driver.memory_use()["current"] <= before


@on_a_gpu
def test_other_libraries_read_the_same_memory():
    import cupy

    x = on(X)
    array = cupy.from_dlpack(x)
    assert array.data.ptr == cupy.asarray(x).data.ptr
    np.testing.assert_array_equal(cupy.asnumpy(array), X)
    back = td.experimental.dlpack.from_dlpack(array * 2)
    assert back.device.endswith(GPU)
    np.testing.assert_array_equal(back.numpy(), X * 2)
