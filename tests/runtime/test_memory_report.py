"""What a run needs, as inspect tells it, against arithmetic and against what the process takes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from treadle.core.shapes import SymbolicDim


def of(function, *args):
    return function.get_concrete_function(*args).executable.memory


def test_every_part_of_it():
    v = td.Variable(np.zeros((30, 20), np.float32))
    captured = td.constant(np.ones((20, 7)))

    @td.function
    def f(x, y):
        v.assign_add(x)
        h = td.matmul(td.cast(v, td.float64), captured)
        return td.reduce_sum(h + y, 0), td.cast(h, td.int32)

    found = of(f, td.TensorSpec([30, 20]), td.TensorSpec([7], td.float64))
    assert found.arguments == 30 * 20 * 4 + 7 * 8
    assert found.variables == 30 * 20 * 4
    assert found.constants >= 20 * 7 * 8
    assert found.outputs == 7 * 8 + 30 * 7 * 4
    assert found.workspace >= 30 * 20 * 8
    assert found.peak == (
        found.arguments + found.variables + found.constants + found.outputs + found.workspace
    )
    assert not found.grows


def test_temporaries_share_the_workspace():
    def chain(x, w):
        for _ in range(6):
            x = td.nn.softmax(td.matmul(x, w))
        return x

    # So few rows that no machine copies the other matrix, which would take workspace, too.
    found = of(td.function(chain), td.TensorSpec([16, 256]), td.TensorSpec([256, 256]))
    one = 16 * 256 * 4
    assert found.temporaries >= 6 * one
    assert 2 * one <= found.workspace < 3.5 * one


def test_symbolic_sizes_and_what_they_are_in_a_trace():
    @td.function(reduce_retracing=False)
    def f(x, w):
        return td.nn.softmax(td.matmul(td.nn.softmax(td.matmul(x, w)), w))

    w = np.ones((40, 40), np.float32)
    open_dims = of(f, td.TensorSpec([None, 40]), w)
    assert isinstance(open_dims.peak, SymbolicDim)
    (name,) = open_dims.arguments.symbols()
    assert open_dims.at({name: 10}).arguments == 10 * 40 * 4 + 40 * 40 * 4
    g = td.function(f.python_function)
    for size in (30, 50, 70):
        g(np.ones((size, 40), np.float32), w)
    (last,) = [c for c in g.concrete_functions if c.inputs[0].dims[0] == 70]
    assert last.executable.memory.outputs == 70 * 40 * 4
    assert last.executable.memory.arguments == 70 * 40 * 4 + 40 * 40 * 4
    assert "outputs: 11,200" in last.executable.stages["memory"]


def test_what_grows_is_said():
    @td.function
    def f(x, n):
        found = []
        for i in td.range(n):
            found.append(x * td.cast(i, td.float32))
        return td.stack(found)

    found = of(f, td.TensorSpec([4]), td.TensorSpec([], td.int32))
    assert found.grows
    assert "found out while it runs" in str(found)
    assert not of(td.function(lambda x: x + 1.0), td.TensorSpec([4])).grows


def test_inspect_shows_it():
    stages = td.inspect.stages(lambda x: td.nn.softmax(x @ x), td.TensorSpec([50, 50]))
    assert stages.memory.outputs == 10_000
    assert stages["memory"].startswith(f"peak: {stages.memory.peak:,} bytes\n")
    assert list(stages).index("memory") == list(stages).index("schedule") + 1


def test_interpreted_functions_have_no_plan():
    f = td.function(swaps_lists)
    with pytest.warns(RuntimeWarning, match="interpreted"):
        assert of(f, td.TensorSpec([2])) is None
    assert td.inspect.stages(f, td.TensorSpec([2])).memory is None


def swaps_lists(x):
    """No program is made for lists that change places."""
    a = td.TensorArray(td.float32, 1, element_shape=[2]).write(0, x)
    b = td.TensorArray(td.float32, 1, element_shape=[2]).write(0, -x)
    for _ in td.range(3):
        a, b = b, a
    return a.stack()


def chain(x):
    y = td.matmul(x, x)
    z = td.matmul(y, y, transpose_b=True)
    return td.reduce_sum(td.matmul(z, y), 0)


MEASURED = """
import treadle as td
from tests.runtime.test_memory_report import chain, of

def resident(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))

f = td.function(chain)
x = td.ones([{size}, {size}])
f(td.ones([8, 8]))
planned = of(f, x)
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
before = resident("VmRSS")
f(x)
print(planned.workspace + planned.outputs, resident("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells the peak")
@pytest.mark.parametrize("size", [1500, 3000])
def test_the_process_takes_as_much_as_planned(size):
    code = MEASURED.format(size=size)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    planned, taken = map(int, done.stdout.split())
    assert planned >= 2 * size * size * 4
    assert 0.9 * planned < taken < 1.1 * planned + (4 << 20)
