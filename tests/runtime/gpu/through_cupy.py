"""What goes through all of CuPy to the made-up CUDA (`made_up_cuda.py`, by which
`test_through_cupy.py` runs it): copies, memory, recordings, streams and other libraries' arrays.

Kernels of CuPy itself cannot run here, so nothing computes with its arrays.
"""

import gc
import threading
from typing import Any

import cupy
import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu.made_up_cuda import library
from tests.runtime.gpu.test_recorded_control import WEIGHTS
from treadle.core.devices import find_device
from treadle.core.tensor import buffer_of
from treadle.runtime.gpu import discovery
from treadle.runtime.gpu.kernels import OPTIONS

X = np.random.default_rng(4).standard_normal((60, 100)).astype(np.float32)


def on(array: Any, place: str = "GPU:0") -> Any:
    with td.device(place):
        return td.constant(array)


def use(place: str = "GPU:0") -> dict[str, int]:
    return td.config.experimental.get_memory_info(place)


def test_the_devices() -> None:
    assert [g.name for g in discovery.physical_gpus()] == ["made-up H200"] * 2
    assert discovery.cuda_version().split(".")[0] in ("12", "13")
    gpu = find_device("GPU:0").storage.driver.gpu
    assert (gpu.architecture, gpu.multiprocessors, gpu.shared) == ("sm_90", 132, 232448)
    assert gpu.decides and gpu.all_shared == 233472 and gpu.most_blocks == 32
    identities = {find_device(f"GPU:{n}").storage.driver.identity for n in (0, 1)}
    assert identities == {"0000:01:00.0", "0000:02:00.0"}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int64", "bool"])
def test_arrays_go_there_and_back(dtype: str) -> None:
    x = td.cast(td.constant(np.arange(12).reshape(3, 4)), dtype).numpy()
    found = on(x)
    assert found.device.endswith("GPU:0") and found.dtype.name == dtype
    np.testing.assert_array_equal(found.numpy(), x)
    np.testing.assert_array_equal(td.identity(found).cpu().numpy(), x)


def test_an_array_may_change_at_once() -> None:
    x = X.copy()
    found = on(x)
    x[:] = 0
    np.testing.assert_array_equal(found.numpy(), X)


def test_registers_and_shared_memory_are_told() -> None:
    text = td.inspect.stages(td.function(lambda x: td.nn.softmax(x)), on(X))["launches"]
    assert "40 registers" in text, text


def test_the_compiler_is_told_what_it_is_told_in_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    nvrtc = cupy.cuda.compiler.nvrtc
    compiled, told = nvrtc.compileProgram, []

    def listening(program: Any, options: tuple[str, ...]) -> Any:
        told.append(options)
        return compiled(program, options)

    monkeypatch.setattr(nvrtc, "compileProgram", listening)
    td.function(lambda x: td.exp(x) * 1.5 + 0.25)(on(X)).numpy()
    assert told and all(set(OPTIONS) | {"-arch=sm_90"} <= set(each) for each in told)
    assert not any("ftz" in option or "fast" in option for each in told for option in each)


def test_a_function_is_recorded_and_submitted() -> None:
    step = td.function(lambda x: td.nn.softmax(x @ WEIGHTS) * 2.0)
    x, wanted = on(X), td.nn.softmax(X @ WEIGHTS).numpy() * 2.0
    for _ in range(4):
        np.testing.assert_allclose(step(x).numpy(), wanted, 1e-5)
    program = step.get_concrete_function(x).executable
    assert program.is_recorded and any(r is not None for r in program.recordings.values())


@pytest.mark.parametrize("first", [0.5, 1.0])
def test_a_branch_that_no_call_has_taken_is_recorded(first: float) -> None:
    """Its product would be the first one of the library."""

    @td.function
    def choose(x: Any) -> Any:
        if td.reduce_mean(x) > 0.7:
            x = td.nn.relu(x @ WEIGHTS) @ WEIGHTS
        return x

    plain = td.function(choose.python_function)
    for scale in (first, first, first, 1.0, 0.5, 1.0):
        x = np.full((60, 100), scale, np.float32)
        found = choose(on(x))
        np.testing.assert_allclose(found.numpy(), plain(td.constant(x)).numpy(), 1e-4, 1e-5)


def test_memory_is_counted_kept_and_given_back() -> None:
    td.clear_caches()
    gc.collect()
    before, taken = use()["current"], library().made_taken()
    x = on(np.zeros(1 << 20, np.float32))
    assert use()["current"] == before + (4 << 20) and library().made_taken() >= taken + (4 << 20)
    del x
    gc.collect()
    assert use()["current"] == before and use()["kept"] >= 4 << 20
    td.clear_caches()
    assert use()["kept"] < 4 << 20 and library().made_taken() <= taken


def test_no_memory_is_one_error_after_which_all_goes_on() -> None:
    large = td.function(lambda x: td.zeros([512, 1024, 1024]) + x)
    with pytest.raises(td.errors.ResourceExhaustedError, match=r"512.*1024"):
        large(on(1.0))
    with pytest.raises(td.errors.ResourceExhaustedError):
        on(np.zeros(1 << 28, np.int64))
    np.testing.assert_allclose(td.reduce_sum(on(X)).numpy(), X.sum(), 1e-4)


def test_batches_come_ahead_from_pinned_memory() -> None:
    data = td.data.Dataset.from_tensor_slices(X).repeat(5).batch(10)
    data = data.apply(td.data.experimental.prefetch_to_device("GPU:0", 2))
    step = td.function(lambda x: td.reduce_sum(x * 2.0))
    total = sum(float(step(x)) for x in data)
    np.testing.assert_allclose(total, 10 * X.sum(dtype=np.float64), 1e-3)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "bool", "complex64"])
def test_cupy_reads_the_same_memory_by_dlpack(dtype: str) -> None:
    x = on(td.cast(td.constant(np.arange(12).reshape(3, 4)), dtype).numpy())
    array = cupy.from_dlpack(x)
    address = buffer_of(x, find_device("GPU:0")).address
    assert array.data.ptr == address and array.shape == (3, 4)
    np.testing.assert_array_equal(cupy.asnumpy(array), x.numpy())
    back = td.experimental.dlpack.from_dlpack(array)
    assert back.dtype == x.dtype and buffer_of(back, find_device("GPU:0")).address == address
    wanted = x.numpy()
    del x, back
    gc.collect()
    np.testing.assert_array_equal(cupy.asnumpy(array), wanted)  # the array keeps the memory


def test_cupy_reads_the_same_memory_by_the_older_protocol() -> None:
    x = on(X)
    array = cupy.asarray(x)
    assert array.data.ptr == buffer_of(x, find_device("GPU:0")).address
    np.testing.assert_array_equal(cupy.asnumpy(array), X)


def test_arrays_of_cupy_are_taken() -> None:
    array = cupy.empty((3, 4), np.float32)
    array.set(X[:3, :4])
    x = td.experimental.dlpack.from_dlpack(array)
    assert x.device.endswith("GPU:0")
    assert buffer_of(x, find_device("GPU:0")).address == array.data.ptr
    np.testing.assert_allclose((x + 1.0).numpy(), X[:3, :4] + 1, 1e-6)


def test_another_gpu() -> None:
    x = on(X)
    with td.device("GPU:1"):
        y = td.identity(x)
        z = td.function(lambda y: y * 2.0)(y)
    assert y.device.endswith("GPU:1") and z.device.endswith("GPU:1")
    np.testing.assert_allclose(z.numpy(), 2 * X, 1e-6)
    np.testing.assert_array_equal(y.gpu(0).numpy(), X)


def test_threads_work_at_the_same_time() -> None:
    step = td.function(lambda x: td.nn.softmax(x * 3.0))
    wanted, wrong = td.nn.softmax(X * 3.0).numpy(), []

    def work(place: str) -> None:
        x = on(X, place)
        for _ in range(10):
            with td.device(place):
                if not np.allclose(step(x).numpy(), wanted, 1e-5):
                    wrong.append(place)

    threads = [threading.Thread(target=work, args=(f"GPU:{n % 2}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_errors_name_the_line_when_the_host_waits() -> None:
    rows = td.function(lambda x, i: td.gather(x, i) * 2.0)
    given = on(X), on(np.array([1, 99], np.int64))
    for _ in range(3):
        with pytest.raises(td.errors.InvalidArgumentError, match="99"):
            rows(*given).numpy()
    np.testing.assert_allclose(rows(given[0], on(np.array([1, 2]))).numpy(), 2 * X[1:3], 1e-6)
