"""Large results live in kept memory; the memory goes back when the last holder lets go."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import treadle as td
from treadle.core.arrays import LARGE
from treadle.runtime.cpu.kept_arrays import empty, handler
from treadle.runtime.cpu.kept_memory import kept_memory

pytestmark = pytest.mark.skipif(handler() is None, reason="this NumPy takes no allocator")
handler_name = np._core.multiarray.get_handler_name


def test_only_large_arrays() -> None:
    small, large = empty((10,), np.dtype("f4")), empty((LARGE,), np.dtype("u1"))
    assert handler_name(small) != "treadle" == handler_name(large)
    assert handler_name(np.empty(LARGE)) != "treadle"
    assert large.flags.owndata and large.base is None
    large[:] = 3
    assert large.sum(dtype=np.int64) == 3 * LARGE


def test_arrays_may_be_resized_and_zeroed() -> None:
    set_handler, own = handler()
    before = set_handler(own)
    try:
        zeros = np.zeros((1000, 1000), np.float32)
        assert not zeros.any()
        zeros[:] = 5
        zeros.resize((2000, 1000), refcheck=False)
        assert (zeros[:1000] == 5).all()
        assert not zeros[1000:].any()
        zeros.resize((10, 10), refcheck=False)
        assert (zeros == 5).all()
    finally:
        set_handler(before)


@pytest.mark.parametrize("size", [1000, 500_000])
def test_results_of_programs(size: int) -> None:
    function = td.function(lambda x: (x + 1, x * 2), autograph=False)
    x = td.constant(np.arange(size, dtype=np.float32))
    for _ in range(6):
        plus, twice = function(x)
        assert plus.numpy()[-1] == size
        assert twice.numpy()[-1] == 2 * (size - 1)
        kind = "treadle" if 4 * size >= LARGE else "default_allocator"
        assert handler_name(plus._buffer) == handler_name(twice._buffer) == kind
    assert handler_name(np.empty(10)) == "default_allocator"


def test_results_whose_size_is_found_out() -> None:
    @td.function
    def f(n):
        return td.sort(td.cast(td.range(n), td.float32) * 2.0)

    for size in (100, 500_000):
        result = f(td.constant(size))
        assert result.numpy()[-1] == 2 * (size - 1)
        kind = "treadle" if 4 * size >= LARGE else "default_allocator"
        assert handler_name(result._buffer) == kind


def test_memory_waits_for_the_last_holder() -> None:
    """Told by addresses: other threads may use kept memory of other sizes meanwhile."""
    f, x = td.function(lambda x: x + 1), np.ones(9 << 20, np.float32)
    kept_memory().release()
    array = np.asarray(f(x))
    address, view = array.ctypes.data, array[5:]
    del array
    other = np.asarray(f(x * 2))
    assert other.ctypes.data != address
    assert (view == 2).all()
    del view
    again = np.asarray(f(x * 3))
    assert again.ctypes.data == address
    assert (again == 4).all()
    assert (other == 3).all()


def test_arrays_outlive_everything() -> None:
    """Results that are freed at the very end of the process."""
    code = """
        import builtins, numpy as np, treadle as td
        f = td.function(lambda x: x + 1, autograph=False)
        builtins.kept = [f(np.ones(1 << 20, np.float32)) for _ in range(5)]
        print(float(builtins.kept[0].numpy()[-1]))
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "2.0"), ran.stderr
