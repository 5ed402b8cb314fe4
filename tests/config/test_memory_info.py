"""Memory in use and its peak, against arithmetic."""

import gc
import subprocess
import sys

import numpy as np
import pytest

import treadle as td
from treadle.runtime.cpu.kept_memory import kept_memory
from treadle.runtime.cpu.native import _free_workspaces

MIB = 1 << 20
info = td.config.experimental.get_memory_info


def test_results_and_temporaries():
    f = td.function(lambda x: td.sort(td.matmul(x, x), 0), autograph=False)
    x = td.ones([1024, 1024])
    f(x)
    gc.collect()
    _free_workspaces()
    td.config.experimental.reset_memory_stats("CPU:0")
    start = info("CPU:0")
    assert start["peak"] == start["current"]
    results = [f(x) for _ in range(3)]
    use = f.get_concrete_function(x).executable.memory
    now = info("CPU:0")
    assert 8 * MIB < use.workspace <= 16 * MIB
    assert now["current"] - start["current"] == (12 + 16) * MIB
    assert now["peak"] == now["current"]
    results.clear()
    gc.collect()
    _free_workspaces()
    after = info("CPU:0")
    assert after["current"] == start["current"]
    assert after["peak"] == now["peak"]
    assert after["kept"] == kept_memory().kept >= 4 * MIB
    td.config.experimental.reset_memory_stats("CPU:0")
    assert info("CPU:0")["peak"] == after["current"]


def test_the_peak_of_a_growing_list():
    @td.function
    def f(x, n):
        array = td.TensorArray(td.float32, 0, dynamic_size=True)
        for i in td.range(n):
            array = array.write(i, x)
        return td.reduce_sum(array.stack())

    x = td.constant(np.ones(1000, np.float32))
    f(x, td.constant(3))
    gc.collect()
    td.config.experimental.reset_memory_stats("CPU:0")
    start = info("CPU:0")["current"]
    f(x, td.constant(4000))
    found = info("CPU:0")
    assert 16_000_000 <= found["peak"] - start < 64 * MIB
    assert found["current"] - start < MIB


@pytest.mark.parametrize("device", ["GPU:7", "CPU:9", "", None, 0])
def test_other_devices(device):
    text = "No matching devices found" if device else "Failed parsing device name: .* like .GPU:0"
    for function in (info, td.config.experimental.reset_memory_stats):
        with pytest.raises(ValueError, match=text):
            function(device)


def test_nothing_is_loaded_for_the_question():
    code = (
        "import sys, treadle as td\n"
        "td.config.experimental.reset_memory_stats('CPU:0')\n"
        "print(td.config.experimental.get_memory_info('CPU:0'), 'llvmlite' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "{'current': 0, 'peak': 0, 'kept': 0} False"
