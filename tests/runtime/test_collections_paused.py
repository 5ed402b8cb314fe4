"""Cycles are not looked for while a graph is compiled, and are afterwards."""

import gc
import os
import threading

import pytest

import treadle as td
from treadle.runtime import compiler
from treadle.runtime.collections_paused import collections_paused


@pytest.fixture(autouse=True)
def _on():
    gc.enable()
    yield
    gc.enable()


@pytest.mark.parametrize("was_on", [True, False])
def test_compiling_leaves_the_setting_as_it_was(was_on, monkeypatch):
    seen, compile_graph = [], compiler.compile_graph
    monkeypatch.setattr(
        compiler, "compile_graph", lambda *a: (seen.append(gc.isenabled()), compile_graph(*a))[1]
    )
    (gc.enable if was_on else gc.disable)()
    td.function(lambda x: td.sin(x) * 1.234567)(td.constant([1.0]))
    assert seen == [False]
    assert gc.isenabled() is was_on


def test_a_failure_resumes():
    with pytest.raises(ValueError, match="inside"), collections_paused:
        raise ValueError("inside")
    assert gc.isenabled()


def test_the_last_thread_resumes():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with collections_paused:
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=other)
    with collections_paused:
        thread.start()
        inside.wait(30)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_does_not_wait_for_threads_that_it_lacks():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with collections_paused:
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(30)
    child = os.fork()
    if not child:
        os._exit(0 if gc.isenabled() else 1)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
