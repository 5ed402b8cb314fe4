"""Threads that trace: once per signature, together, and each other's functions."""

import os
import threading
import time

import pytest

import treadle as td
from tests.tracing.together import together
from treadle.tracing.locks import TraceLock


def test_different_signatures_at_once():
    traced = []

    @td.function
    def f(x, k):
        traced.append((x.shape.as_list()[0], k))
        time.sleep(0.01)
        return td.reduce_sum(x) * float(k)

    jobs = [lambda n=n, k=k: f(td.ones([n]), k).numpy() for n in (1, 2, 3) for k in (1, 2)] * 3
    assert together(*jobs) == [n * k for n in (1, 2, 3) for k in (1, 2)] * 3
    assert sorted(traced) == [(n, k) for n in (1, 2, 3) for k in (1, 2)]


def test_a_call_runs_while_another_thread_traces():
    tracing, finish = threading.Event(), threading.Event()

    @td.function
    def f(x):
        if x.shape[0] == 2:
            tracing.set()
            assert finish.wait(60)
        return x + 1.0

    f(td.ones([1]))

    def trace():
        return f(td.ones([2])).shape[0]

    def call():
        assert tracing.wait(60)
        found = f(td.ones([1])).numpy()[0]
        finish.set()
        return found

    assert together(trace, call) == [2, 2.0]


def test_functions_that_trace_each_other_in_two_threads():
    """Each thread holds what the other needs: no deadlock, right results."""
    met = threading.Barrier(2)

    def meet(k):
        if k == 2:
            met.wait(60)

    @td.function
    def f(x, k):
        meet(k)
        return x if k == 0 else g(x, k - 1) + 1.0

    @td.function
    def g(x, k):
        meet(k)
        return x if k == 0 else f(x, k - 1) * 2.0

    x = td.constant(1.0)
    a, b = together(lambda: f(x, 2).numpy(), lambda: g(x, 2).numpy())
    assert (a, b) == (3.0, 4.0)
    assert f(x, 2).numpy() == 3.0 and g(x, 2).numpy() == 4.0


def test_recursion_in_two_threads():
    @td.function
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    x = td.constant(2.0)
    found = together(*[lambda n=n: power(x, n).numpy() for n in (3, 4, 5, 6)])
    assert found == [8, 16, 32, 64]


def test_the_same_key_in_two_threads_is_no_recursion():
    """A thread that goes on without the lock may trace what another thread is tracing."""
    f = td.function(lambda x: x + 1.0)
    x = td.constant(1.0)
    key = (f._signature.bind((x,), {}).key, None)
    f._tracing.add((threading.get_ident() + 1, key))
    assert f(x).numpy() == 2


def test_a_lock_is_free_after_an_error_and_can_be_held_twice():
    lock = TraceLock()
    with pytest.raises(KeyError), lock.held():
        raise KeyError
    with lock.held(), lock.held():
        lock.is_owned()
        assert lock._owner == threading.get_ident()
    thread = threading.Thread(target=lambda: lock._lock.acquire(timeout=5) and lock._lock.release())
    thread.start()
    thread.join()
    assert not lock._lock._is_owned()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_while_another_thread_traces():
    tracing, finish = threading.Event(), threading.Event()

    @td.function
    def f(x):
        if x.shape[0] == 2:
            tracing.set()
            finish.wait(60)
        return x + 1.0

    thread = threading.Thread(target=lambda: f(td.ones([2])), daemon=True)
    thread.start()
    assert tracing.wait(60)
    child = os.fork()
    if not child:
        os._exit(0 if f(td.ones([3])).shape[0] == 3 else 1)
    deadline = time.monotonic() + 60
    status = (0, 0)
    while not status[0] and time.monotonic() < deadline:
        status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    finish.set()
    thread.join()
    if not status[0]:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert status[0] == child and os.waitstatus_to_exitcode(status[1]) == 0
