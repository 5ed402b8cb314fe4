"""Calling programs: threads, signals, memory, the disk cache, the portable entry."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import inputs, native, trace, trace_like
from treadle.core import errors
from treadle.core.context import recording
from treadle.core.shapes import SymbolicDim
from treadle.core.spec import TensorSpec
from treadle.graph.builder import GraphBuilder
from treadle.ops.control.control_flow import while_loop
from treadle.ops.registry import Op, run


def python_op(fn):
    """A function of one tensor that runs `fn` on its array."""
    op = Op("in_python", lambda x: x, fn, effect="io")
    return lambda x: run(op, x)


def test_several_threads_run_one_program():
    def f(x, n):
        y = td.transpose(td.reverse(x, [0])) * 2.0
        return while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, td.reverse(y, [0]) + 1.0), (td.constant(0), y)
        )[1]

    executable = native(trace(f, TensorSpec((90, 80)), TensorSpec((), "int32")))
    n = np.asarray(np.int32(5))
    wrong = []

    def work(seed):
        x = inputs((90, 80), seed=seed)[0]
        y = (x[::-1].T * np.float32(2)).copy()
        for _ in range(5):
            y = y[::-1] + np.float32(1)
        for _ in range(20):
            if not np.array_equal(executable.run([x, n])[0], y):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_program_calls_itself_through_python():
    depth = []

    def f(x):
        y = td.transpose(x) + 1.0  # a value in the workspace that must survive the inner call
        return python_op(inner)(y) + td.transpose(y)

    def inner(y):
        depth.append(1)
        if len(depth) < 3:
            return executable.run([np.ascontiguousarray(y.T)])[0]
        return y

    executable = native(trace(f, TensorSpec((80, 80))))
    x = inputs((80, 80))[0]
    result = executable.run([x])[0]
    assert len(depth) == 3
    assert np.isfinite(result).all()


def test_exceptions_of_callbacks_arrive_unchanged():
    class Special(Exception):
        pass

    def fail(x):
        raise Special("as it was")

    executable = native(trace(python_op(fail), TensorSpec((3,))))
    for _ in range(2):
        with pytest.raises(Special, match="as it was"):
            executable.run([np.ones(3, np.float32)])


ENDLESS = """
    import signal
    import numpy as np
    import treadle as td
    from treadle.core.spec import TensorSpec
    from tests.runtime.harness import native, trace
    from treadle.ops.control.control_flow import while_loop

    def f(x):
        return while_loop(lambda x: x < 2.0, lambda x: (x * 0.5,), (x,))[0]

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job begins without
    executable = native(trace(f, TensorSpec(())))
    executable.run([np.asarray(np.float32(3))])
    print("ready", flush=True)
    try:
        executable.run([np.asarray(np.float32(1))])
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(executable.run([np.asarray(np.float32(3))])[0], flush=True)
"""


def run_python(source, **options):
    root = os.path.join(os.path.dirname(__file__), "..", "..")
    paths = [os.path.join(root, "src"), root]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(source)], env=environment | options.pop("env", {}),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_ends_a_native_loop():
    process = run_python(ENDLESS)
    try:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)  # the loop would take much longer
    finally:
        process.kill()  # a loop that does not end must not outlive the test
    assert out == "interrupted\n3.0\n", err


LONG = """
    import signal
    import numpy as np
    import treadle as td

    signal.signal(signal.SIGINT, signal.default_int_handler)

    def loop(x, n):
        for i in range(n) if isinstance(n, int) else td.range(n):
            x[1:] = x[:-1] * 0.5 + 1.0
        return x

    def kernel(x, n):
        return np.sqrt((x[:, None] - x[None, :]) ** 2 + 1.0).sum(1)

    def numbers(x, n):
        total = 0.0
        for i in range(n):
            for j in range(n):
                total += x[i % 4] * j
        return total

    jitted = {name: td.jit(f) for name, f in
              (("loop", loop), ("kernel", kernel), ("numbers", numbers))}
    small, few = np.arange(4.0), 3
    wanted = {name: f(small.copy(), few) for name, f in jitted.items()}
    much = {"loop": (small, 10**10), "kernel": (np.arange(2e5), 3), "numbers": (small, 10**6)}
    traced = td.function(lambda x: kernel(x, 0))
    traced(td.constant(small))
    functions = {**jitted, "function": lambda x, n: traced(x)}
    much["function"] = td.constant(np.arange(2e5)), 3
    for name, function in functions.items():
        print("ready", flush=True)
        try:
            function(*much[name])
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        if name in wanted:
            np.testing.assert_array_equal(jitted[name](np.arange(4.0), few), wanted[name])
"""


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_ends_long_loops_and_kernels():
    process = run_python(LONG)
    try:
        for _ in range(4):
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n", process.stderr.read()
        assert process.wait(60) == 0, process.stderr.read()
    finally:
        process.kill()


def test_memory_does_not_grow():
    resource = pytest.importorskip("resource")
    executable = native(
        trace_like(lambda x: td.transpose(td.transpose(x) * 2.0 + 1.0), *inputs((700, 600)))
    )
    x = inputs((700, 600))[0]
    for _ in range(5):
        executable.run([x])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100):
        executable.run([x])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KB


def test_scalars_and_subclasses_are_taken_too():
    executable = native(trace(lambda x: x * 2.0, TensorSpec(())))
    assert executable.run([np.float32(4)])[0] == 8.0


def test_the_portable_entry_gives_the_same(monkeypatch):
    import treadle.runtime.cpu.native as module

    graph = trace(lambda x: td.reduce_sum(td.exp(x), 0), TensorSpec((None, 3)))
    x = inputs((5, 3))[0]
    wanted = native(graph).run([x])[0]
    monkeypatch.setattr(module, "layout", lambda: None)
    np.testing.assert_array_equal(native(graph).run([x])[0], wanted)


SECOND = """
    import numpy as np
    import treadle as td
    from treadle.core.spec import TensorSpec
    from tests.runtime.harness import native, trace
    from treadle.runtime.cpu.jit import jit

    v = td.Variable(np.ones((50, 40), np.float32))

    def f(x):
        v.assign_sub(td.tanh(x) * 0.1)
        return td.nn.softmax(x) + td.reduce_sum(v, 0)

    print(native(trace(f, TensorSpec((50, 40)))).run([np.ones((50, 40), np.float32), v])[0].sum())
    print(jit().counters.compiled)
"""


def test_a_second_process_compiles_nothing(tmp_path):
    outputs = []
    for _ in range(2):
        process = run_python(SECOND, env={"TREADLE_CACHE_DIR": str(tmp_path / "cache")})
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        outputs.append(out.split())
    assert outputs[0][0] == outputs[1][0]
    assert int(outputs[0][1]) > 0
    assert int(outputs[1][1]) == 0


def test_a_symbol_in_two_arguments_is_checked():
    size = SymbolicDim.symbol("B")
    builder = GraphBuilder("f")
    x, y = (builder.parameter(TensorSpec((size * k,))) for k in (1, 2))
    with recording(builder):
        graph = builder.finish([td.concat([x, x], 0) + y])
    executable = native(graph)
    np.testing.assert_array_equal(
        executable.run([np.ones(2, np.float32), np.ones(4, np.float32)])[0], [2] * 4
    )
    with pytest.raises(errors.InvalidArgumentError):
        executable.run([np.ones(2, np.float32), np.ones(5, np.float32)])


def test_a_fault_of_the_compiler_is_told_and_the_graph_interpreted(monkeypatch):
    from treadle.runtime import compiler

    def fail(*arguments):
        raise AssertionError("broken")

    monkeypatch.delenv("TREADLE_STRICT", raising=False)
    monkeypatch.setattr(compiler, "plan_memory", fail)
    graph = trace(lambda x: x * 2.0, TensorSpec((3,)))
    with pytest.warns(RuntimeWarning, match="broken"):
        executable = compiler.compile_graph(graph)
    assert executable.mode == "interpreted"
    np.testing.assert_array_equal(executable.run([np.ones(3, np.float32)])[0], [2, 2, 2])
    monkeypatch.setenv("TREADLE_STRICT", "1")
    with pytest.raises(AssertionError, match="broken"):
        compiler.compile_graph(graph)
