"""Traps of running: debuggers, threads, recursion, interrupts, NaNs, passes that change numbers."""

import linecache
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import treadle as td
from treadle.graph.passes import PIPELINE
from treadle.graph.passes.bisect import find_culprit
from treadle.graph.pipeline import Pass
from treadle.ops.elementwise import arithmetic
from treadle.runtime import interpreter


def test_37_breakpoints_stop_in_the_users_file_or_in_readable_code():
    seen = []

    @td.function
    def f(x):
        if x > 0:
            seen.append(sys._getframe().f_code.co_filename)
        return x

    f(td.constant(1.0))
    (generated,) = set(seen)
    assert "ag__.if_stmt" in "".join(linecache.getlines(generated))
    td.config.run_functions_eagerly(True)
    try:
        f(td.constant(1.0))
    finally:
        td.config.run_functions_eagerly(False)
    assert seen[-1] == __file__


def test_42_the_number_of_threads_is_obeyed():
    code = "from treadle.runtime.cpu.threads import pool; print(pool().threads)"
    for count in ("1", "3"):
        environment = {**os.environ, "PYTHONPATH": "src", "TREADLE_NUM_THREADS": count}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout.strip() == count, done.stderr


def test_43_nested_and_concurrent_calls():
    @td.function
    def inner(x):
        return td.reduce_sum(x) * 2.0

    @td.function
    def outer(x):
        called = td.numpy_function(lambda a: inner(td.constant(a)).numpy(), [x], td.TensorSpec([]))
        return inner(x) + called

    x = td.ones([2000])
    results = []

    def work():
        results.extend(float(outer(x * float(k))) for k in range(5))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(results) == sorted([8000.0 * k for k in range(5)] * 6)
    assert outer.experimental_get_tracing_count() == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_43_fork():
    f = td.function(lambda x: td.reduce_sum(x * 2.0))
    x = td.ones([100_000])
    assert f(x).numpy() == 200_000
    child = os.fork()
    if not child:
        fresh = td.function(lambda x: td.reduce_sum(x * 3.0))
        os._exit(0 if f(x).numpy() == 200_000 and fresh(x).numpy() == 300_000 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_44_recursion_is_a_graph_or_an_error_at_once():
    @td.function
    def factorial(n):
        return td.constant(1) if n <= 1 else n * factorial(n - 1)

    assert factorial(5).numpy() == 120  # Python numbers: one trace for each
    started = time.perf_counter()
    with pytest.raises(RecursionError, match="while loop"):
        factorial(td.constant(5))
    assert time.perf_counter() - started < 10


def test_45_ctrl_c_ends_a_compiled_loop(tmp_path):
    code = """
import os, signal, threading, time
import treadle as td

@td.function
def f(n):
    i = td.constant(0)
    while i < n:
        i = i + 1
        if i > 2000000000:
            i = td.constant(0)
    return i

f(td.constant(3))
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    f(td.constant(2100000000))
except KeyboardInterrupt:
    print("stopped", f(td.constant(7)).numpy())
"""
    program = tmp_path / "program.py"
    program.write_text(code)
    environment = {**os.environ, "PYTHONPATH": os.path.abspath("src")}
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "stopped 7", done.stderr


def test_47_import_is_light():
    code = (
        "import sys, treadle\n"
        "print(*[m for m in ('llvmlite', 'gast', 'rich', 'cupy') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": "src"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stdout.strip() == ""


def test_49_where_a_nan_comes_from():
    @td.function
    def f(x):
        shifted = x - 1.0
        logs = td.math.log(shifted)  # trap 49
        return td.reduce_sum(logs * 2.0)

    x = td.constant([0.5, 3.0])
    assert np.isnan(f(x).numpy())
    td.debugging.enable_check_numerics()
    try:
        with pytest.raises(td.errors.InvalidArgumentError) as caught:
            f(x)
        assert np.isfinite(f(td.constant([2.0, 3.0])).numpy())
    finally:
        td.debugging.disable_check_numerics()
    text = str(caught.value)
    assert "log" in text and "NaN" in text and "logs = td.math.log(shifted)" in text
    assert np.isnan(f(x).numpy())


def test_50_which_pass_changed_the_numbers():
    @td.function
    def f(x):
        return td.reduce_sum(x * 2.0 + 1.0)

    x = np.arange(4, dtype=np.float32)
    graph = f.get_concrete_function(x).graph
    wanted = float(f(x))

    def is_good(graph):
        return float(interpreter.run(graph, [x])[0]) == wanted

    assert find_culprit(graph, is_good) is None

    def break_it(graph):
        """A faulty pass: multiplications become additions."""
        for node in graph.nodes:
            if node.op.name == "multiply":
                node.op = arithmetic.ADD
                return True
        return False

    faulty = Pass("faulty", break_it, "a test")
    culprit = find_culprit(graph, is_good, (*PIPELINE, faulty))
    assert culprit is not None and culprit.name == "faulty"
