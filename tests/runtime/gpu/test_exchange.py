"""Elements of tensors on a GPU are handed to other libraries, and theirs taken, where they lie."""

import gc

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu.recorder import Exported, recorded_gpu
from treadle.core.tensor import buffer_of

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def gpu():
    with recorded_gpu() as device:
        yield device


def on(device, array):
    with td.device(device.name):
        return td.identity(td.constant(array))


def copies(device):
    counts = device.storage.driver.counts
    return counts["uploads"] + counts["downloads"] + counts["copies"]


def test_the_library_of_the_device_reads_the_same_memory(gpu):
    x = on(gpu, X)
    before = copies(gpu)
    assert x.__dlpack_device__() == (2, 0)
    array = gpu.storage.exported(buffer_of(x, gpu))
    assert array.__array_interface__["data"][0] == buffer_of(x, gpu).address
    assert copies(gpu) == before
    del x
    gc.collect()
    np.testing.assert_array_equal(array, X)  # the array keeps the memory
    del array


def test_arrays_on_the_device_are_taken_without_a_copy(gpu):
    x = on(gpu, X)
    array = gpu.storage.exported(buffer_of(x, gpu))
    before = copies(gpu)
    y = td.experimental.dlpack.from_dlpack(array)
    assert y.device == x.device and buffer_of(y, gpu).address == buffer_of(x, gpu).address
    assert copies(gpu) == before
    del x, array
    gc.collect()
    np.testing.assert_array_equal((y + 1.0).numpy(), X + 1)


def test_what_lies_badly_is_copied_on_the_device(gpu):
    array = gpu.storage.exported(buffer_of(on(gpu, X), gpu))
    for part in (array[:, ::2], array[:, 1:], array.reshape(-1)[1:]):
        y = td.experimental.dlpack.from_dlpack(part)
        assert "GPU:0" in y.device and buffer_of(y, gpu).address % 16 == 0
        np.testing.assert_array_equal(y.numpy(), np.asarray(part))


def test_the_host_is_asked_for(gpu):
    x = on(gpu, X)
    found = np.from_dlpack(x, device="cpu") if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else X
    np.testing.assert_array_equal(found, X)


def test_errors(gpu):
    class Elsewhere(Exported):
        def __dlpack_device__(self):
            return 10, 3

    with pytest.raises(BufferError, match=r"\(10, 3\)"):
        td.experimental.dlpack.from_dlpack(np.zeros(3, np.float32).view(Elsewhere))
    assert not hasattr(td.constant(X), "__cuda_array_interface__")


def test_the_older_protocol_knows_no_bfloat16(gpu):
    x = on(gpu, X)
    assert not hasattr(td.cast(x, td.bfloat16), "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="no bfloat16: use DLPack"):
        td.cast(x, td.bfloat16).__cuda_array_interface__
    assert td.cast(x, td.bfloat16).__dlpack_device__() == (2, 0)
