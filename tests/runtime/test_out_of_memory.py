"""Programs that get no memory end with an error that explains, lose nothing, and run again."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.runtime.shortage import shortage
from treadle.core.errors import ResourceExhaustedError
from treadle.core.switches import disabled
from treadle.runtime.cpu.kept_memory import kept_memory
from treadle.runtime.cpu.native import _free_workspaces

HERE = Path(__file__).name
MIB = 1 << 20


def pushed(x, n):
    found = []
    for i in td.range(n):
        found.append(x * td.cast(i, td.float32))
    return td.stack(found) if n > 0 else x[None]


def written(x, n):
    array = td.TensorArray(td.float32, 0, dynamic_size=True)
    for i in td.range(n):
        array = array.write(i, x + td.cast(i, td.float32))
    return array.stack()


def set_far(x, n):
    array = td.TensorArray(td.float32, 0, dynamic_size=True)
    return array.write(0, x).write(n, x).stack()


def unstacked(x, n):
    array = td.TensorArray(td.float32, n).unstack(td.cast(td.range(n), td.float32)[:, None] + x)
    i = td.constant(0)
    while i < n:
        array = array.write(i, array.read(n - 1 - i) * 2.0)
        i += 1
    return array.stack()


def forked(x, n):
    """Two arrays from one: the list is copied."""
    array = td.TensorArray(td.float32, 0, dynamic_size=True, clear_after_read=False)
    for i in td.range(n):
        array = array.write(i, x)
    other = array.write(0, x * 2.0)
    return array.stack() + other.stack()


def appended(x, n):
    y = x
    for _ in td.range(n):
        y = td.concat([y, x], 0)
    return y


def two_sizes(x, n):
    a, b = x, x[:2]
    for _ in td.range(n):
        a, b = td.concat([a, b], 0), td.concat([b, x], 0)
    return td.reduce_sum(a) + b


def squares(x, n):
    y = td.cast(td.range(n), td.float32)
    return td.sort(y[:, None] * y[None, :] + x[0], 1)


def branches(x, n):
    y = td.cast(td.range(n), td.float32)
    z = y[:, None] * y if n > 3 else td.concat([y, y], 0)[:, None]
    return td.reduce_sum(td.sort(z, 0))


def gradients(x, n):
    with td.GradientTape() as tape:
        tape.watch(x)
        y, i = x, td.constant(0)
        while i < n:
            y = td.sin(y) * x if td.reduce_sum(y) > -1e9 else y
            i += 1
        loss = td.reduce_sum(y)
    return tape.gradient(loss, x)


def rows(x, n):
    """All threads run this loop; its list has its memory before."""
    h, w = td.ones([64, 40]), td.ones([40, 40]) * 0.01
    array = td.TensorArray(td.float32, 20)
    for i in range(20):
        h = td.tanh(td.matmul(h, w))
        array = array.write(i, h)
    return array.stack() * x[0]


PROGRAMS = [
    pushed, written, set_far, unstacked, forked, appended, two_sizes, squares, branches, gradients,
]  # fmt: skip
X = td.constant(np.arange(50, dtype=np.float32))


def idle_memory_returned():
    _free_workspaces()
    kept_memory().release()


@pytest.mark.parametrize("program", [*PROGRAMS, rows], ids=lambda f: f.__name__)
def test_every_allocation_may_fail(program):
    """Each in turn: the error is clear, everything comes back, the next call is right."""
    f = td.function(program)
    wanted = f(X, td.constant(20)).numpy()
    f(X, td.constant(20))
    with shortage() as memory:
        for count in range(200):
            memory.left = count
            try:
                found = f(X, td.constant(20)).numpy()
                break
            except ResourceExhaustedError as error:
                text = str(error)
                assert isinstance(error, MemoryError)
                assert all(part in text for part in (program.__name__, HERE, "A call needs")), text
            finally:
                memory.left = None
            idle_memory_returned()
            assert not memory.live, f"after allocation {count}"
            np.testing.assert_array_equal(f(X, td.constant(20)).numpy(), wanted)
        assert memory.refused > 0
        np.testing.assert_array_equal(found, wanted)


def chain(x):
    return td.reduce_sum(td.sort(td.matmul(x, x), 0))


def test_no_memory_for_the_workspace():
    v = td.Variable(np.zeros(3, np.float32))

    @td.function
    def f(x):
        v.assign_add(td.ones([3]))
        return chain(x)

    x = td.ones([600, 600])
    f(x)
    wanted = f(x).numpy()
    with shortage() as memory:
        memory.limit = MIB
        for _ in range(3):
            with pytest.raises(ResourceExhaustedError, match="f: there is no memory for") as failed:
                f(x)
            text = str(failed.value)
            use = f.get_concrete_function(x).executable.memory
            assert f"{use.workspace:,} bytes of temporaries" in text
            assert f"needs {use.peak:,} bytes" in text
            assert "f32[600, 600]" in text
            assert f"{HERE}:" in text
            assert "in chain: return" in text
            assert "Nothing has been computed or assigned" in text
        assert v.numpy().tolist() == [2, 2, 2]
        assert not memory.live
        memory.limit = 1 << 62
        assert f(x).numpy() == wanted
        assert v.numpy().tolist() == [3, 3, 3]


@pytest.mark.parametrize("native", [True, False], ids=["native", "portable"])
def test_no_memory_for_results(native):
    v = td.Variable(np.zeros(3, np.float32))

    @td.function
    def f(x):
        v.assign_add(td.ones([3]))
        return x + 1.0, td.matmul(x, x)

    x = td.ones([600, 600])
    with disabled(*([] if native else ["native_calls"])):
        for _ in range(4):
            f(x)
        with shortage() as memory:
            memory.limit = MIB
            with pytest.raises(ResourceExhaustedError) as failed:
                f(x)
            assert "2,880,000 bytes of results, the largest 1,440,000" in str(failed.value)
            assert f"{HERE}:" in str(failed.value)
            assert v.numpy().tolist() == [4, 4, 4]
            memory.limit = 1 << 62
            assert f(x)[1].numpy()[5, 5] == 600


def test_symbolic_sizes():
    @td.function(reduce_retracing=True)
    def f(x):
        return td.reduce_sum(td.sort(x[:, None] - x, 0))

    for size in (5, 6, 7):
        f(td.ones([size]))
    assert f.experimental_get_tracing_count() <= 3
    with shortage() as memory:
        memory.limit = MIB
        with pytest.raises(ResourceExhaustedError, match="the largest 4,000,000 bytes"):
            f(td.ones([1000]))
        memory.limit = 1 << 62
        assert f(td.ones([1000])).numpy() == 0


def test_variables_keep_whole_values():
    """What was assigned before the failure stays, what comes after has not been touched."""
    a, b = (td.Variable(np.zeros(1000, np.float32)) for _ in range(2))

    @td.function
    def f(n):
        a.assign_add(td.ones([1000]))
        y = td.cast(td.range(n), td.float32)
        total = td.reduce_sum(td.sort(y[:, None] * y, 0))
        b.assign_add(td.ones([1000]) + 0.0 * total)
        return total

    f(td.constant(3))
    before = f(td.constant(3)).numpy()
    with shortage() as memory:
        memory.limit = MIB
        for _ in range(3):
            with pytest.raises(ResourceExhaustedError, match="Assignments made before that stay"):
                f(td.constant(1000))
        for variable in (a, b):
            values = set(variable.numpy().tolist())
            assert len(values) == 1
            assert 2 <= values.pop() <= 5
        assert b.numpy()[0] == 2
        assert f(td.constant(3)).numpy() == before


def test_sizes_beyond_64_bits():
    @td.function(reduce_retracing=False)
    def outer(x):
        return td.reduce_sum(td.sort(x[:, None, None, None] + x[:, None, None] + x[:, None] + x))

    concrete = outer.get_concrete_function(td.TensorSpec([None], td.int64))
    assert concrete(td.constant(np.arange(2))).numpy() == 32
    with pytest.raises(ResourceExhaustedError, match="there is no memory for"):
        concrete(td.constant(np.arange(1 << 16)))  # 2**67 bytes are 8 in 64 bits


def test_idle_memory_is_given_up_first():
    """Workspaces of other programs and what waits in lists go before a program fails."""
    large = td.function(lambda x: td.reduce_sum(td.sort(x @ x, 0)), autograph=False)
    x = td.ones([1000, 1000])
    large(x)
    grows = td.function(written)
    grows(X, td.constant(3))
    with shortage() as memory:
        large(x)
        held = sum(memory.live.values())
        assert held >= 4 * MIB
        memory.budget = held + MIB
        assert grows(X, td.constant(20_000)).shape == (20_000, 50)
        assert memory.refused > 0


def test_eager_operations():
    x = td.ones([1 << 20])
    calls = [
        lambda: x[:, None] - x, lambda: td.zeros([1 << 20, 1 << 20]), lambda: td.tile(x, [1 << 20]),
        lambda: td.one_hot(td.range(1 << 20), 1 << 20), lambda: td.Variable(td.ones([1 << 42])),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ResourceExhaustedError, match=rf"(?s)Unable to allocate.*{HERE}"):
            call()


def test_callbacks_and_the_interpreter():
    def f(n):
        spec = td.TensorSpec([None, None], td.float32)
        return td.reduce_sum(td.numpy_function(lambda k: np.zeros((k, k), "f"), [n], spec))

    eager_like = td.function(f)
    assert eager_like(td.constant(3)).numpy() == 0
    with pytest.raises(ResourceExhaustedError, match=rf"(?s)Unable to allocate.*{HERE}"):
        eager_like(td.constant(1 << 20))
    assert eager_like(td.constant(3)).numpy() == 0


LIMITED = """
    import resource, sys
    import numpy as np, treadle as td
    from treadle.runtime.cpu.jit import jit

    @td.function
    def grow(x, n):
        array = td.TensorArray(td.float32, 0, dynamic_size=True)
        for i in td.range(n):
            array = array.write(i, x)
        return array.stack()

    @td.function
    def pairs(x):
        return td.reduce_sum(td.sort(x[:, None] - x, 0))

    @td.function
    def results(x):
        return x[:, None] - x

    x, large = td.ones([1000]), td.ones([30_000])
    used = {int(line.split()[1]) << 10 for line in open("/proc/self/status") if "VmSize" in line}
    calls = [(grow, x, td.constant(1 << 17)), (pairs, large), (results, large)]
    for size in (10, 20, 30, 1000, 1000):  # what any size needs is compiled now
        grow(x, td.constant(2)), pairs(td.ones([size])), results(td.ones([size]))
    resource.setrlimit(resource.RLIMIT_AS, (used.pop() + (256 << 20), resource.RLIM_INFINITY))
    for _ in range(3):
        for function, *arguments in calls:
            try:
                function(*arguments)
            except td.errors.ResourceExhaustedError as error:
                print(str(error).split("\\n")[0], "|", str(error).count("limited.py"))
        assert grow(x, td.constant(2)).shape == (2, 1000)
        assert pairs(x).numpy() == 0 and results(x).shape == (1000, 1000)
    print(jit().counters.compiled, "llvmlite" in sys.modules)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts on Linux's limits")
def test_a_limited_process(tmp_path):
    """Also with programs from disk, which do not compile anything to explain it."""
    path = tmp_path / "limited.py"
    path.write_text(textwrap.dedent(LIMITED))
    outputs = []
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, str(path)], capture_output=True, text=True, check=False,
            env={**os.environ, "TREADLE_CACHE_DIR": str(tmp_path / "cache")},
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        outputs.append(ran.stdout.splitlines())
    kinds = [[re.sub(r"[\d,]+ bytes", "", line) for line in lines[:-1]] for lines in outputs]
    assert kinds[0] == kinds[1]
    assert len(outputs[0]) == 10
    assert all("no memory" in line and line.endswith("| 1") for line in outputs[0][:-1])
    assert outputs[1][-1] == "0 False"
