"""Forks of a process whose pool is alive: os.fork, multiprocessing, a fork amid work."""

import multiprocessing
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from treadle.core import locks
from treadle.runtime.cpu.threads import pool

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of forks with threads
]

X = np.random.default_rng(0).standard_normal((400, 500)).astype(np.float32)
W = td.Variable(np.ones((500, 300), np.float32) * 0.01)


@td.function
def step(x, n):
    total = td.zeros([400, 300])
    for _ in td.range(n):
        total += td.tanh(td.matmul(x, W))
    W.assign_add(td.ones([500, 300]) * 1e-3)
    return td.reduce_sum(total, 1)


@pytest.fixture(autouse=True)
def three_threads():
    before = pool().threads
    pool().set_threads(3)
    W.assign(np.ones((500, 300), np.float32) * 0.01)
    yield
    pool().set_threads(before)


def bytes_of_step(_=None) -> bytes:
    """The step from the same start."""
    W.assign(np.ones((500, 300), np.float32) * 0.01)
    return bytes(step(X, 3).numpy().tobytes())


def compiled_in_the_child(number: int) -> float:
    fresh = td.function(lambda x: td.reduce_sum(x * float(number)))
    return float(fresh(td.ones([100_000])))


def in_child(work) -> int:
    """The exit status of a child that does the work: 0 where it gives True."""
    child = os.fork()
    if not child:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_multiprocessing_by_fork():
    wanted = bytes_of_step()
    with multiprocessing.get_context("fork").Pool(2) as children:
        found = children.map(bytes_of_step, range(6))
        sums = children.map(compiled_in_the_child, [2, 3, 4])
    assert found == [wanted] * 6
    assert sums == [200_000, 300_000, 400_000]
    assert bytes_of_step() == wanted


def test_forks_while_other_threads_compute():
    wanted = bytes_of_step()
    loop = td.function(lambda x, n: td.while_loop(
        lambda i, x: i < n, lambda i, x: (i + 1, td.sin(x) + x), (td.constant(0), x)
    )[1])  # fmt: skip
    loop(X, td.constant(3))
    stop = threading.Event()

    def work():
        while not stop.is_set():
            loop(X, td.constant(20))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            assert in_child(lambda: bytes_of_step() == wanted) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)
    assert not any(thread.is_alive() for thread in threads)


def test_forks_while_other_threads_compile():
    """The child compiles what another thread was compiling, and has all locks to itself."""
    stop, made = threading.Event(), []

    def compile_next():
        factor = len(made) + 0.123
        made.append(
            td.function(lambda x: td.tanh(x * factor) + td.reduce_sum(x, 0), autograph=False)
        )
        return float(made[-1](X)[0, 0])

    def work():
        while not stop.is_set():
            compile_next()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        for _ in range(12):
            last = made[-1] if made else td.function(lambda x: x + 1.0, autograph=False)
            assert in_child(lambda f=last: f(X).shape == (400, 500) and compile_next() != 0.0) == 0
    finally:
        stop.set()
        thread.join(20)


def test_forks_while_another_thread_makes_an_attribute():
    """That of functools has a lock for all objects of a class in Python 3.11."""
    begun, stop = threading.Event(), threading.Event()

    class Numbers:
        def __init__(self, waits):
            self.waits = waits

        @locks.cached_property
        def total(self):
            if self.waits:
                begun.set()
                stop.wait(60)
            return 3

    thread = threading.Thread(target=lambda: Numbers(True).total, daemon=True)
    thread.start()
    begun.wait(60)
    try:
        assert in_child(lambda: Numbers(False).total == 3) == 0
    finally:
        stop.set()
        thread.join(20)
    texts = [(p.name, p.read_text()) for p in Path(td.__file__).parent.rglob("*.py")]
    forms = "@functools.cached_property", "functools import cached_property"
    assert not [name for name, text in texts if any(form in text for form in forms)]


def test_a_fork_inside_a_program():
    """A callback of a running program forks; both processes go on with the program."""
    children = []

    def fork(a):
        children.append(os.fork())
        return a

    @td.function
    def f(x):
        y = td.numpy_function(fork, [td.sin(x)], td.TensorSpec([400, 500], td.float32))
        return td.reduce_sum(td.exp(y), 1)

    @td.function
    def whole(x):
        return td.reduce_sum(td.exp(td.sin(x)), 1)

    wanted = whole(X).numpy()
    good = bool(np.allclose(f(X).numpy(), wanted, rtol=1e-6))
    if not children[0]:
        os._exit(0 if good else 1)
    assert good
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0


def test_a_child_may_change_the_number_of_threads():
    def work():
        td.config.threading.set_intra_op_parallelism_threads(5)
        return bytes_of_step() == wanted and pool().threads == 5

    wanted = bytes_of_step()
    assert in_child(work) == 0
    assert pool().threads == 3


def test_a_child_of_a_process_that_never_computed():
    code = "td.function(lambda x: td.reduce_sum(x * 2.0))(td.ones([100_000])).numpy() == 200_000"
    program = (
        "import os, treadle as td\nchild = os.fork()\nif not child:\n"
        f"    os._exit(0 if {code} else 1)\n"
        f"print({code}, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.split() == ["True", "0"], done.stderr
