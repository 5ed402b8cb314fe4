"""Jobs on other threads: order, takeover, threads that end, forks."""

import os
import sys
import threading

import pytest

from tests.runtime.interrupts.inject import at_place, count_places
from treadle.runtime.cpu.background import Background
from treadle.runtime.cpu.jit import jit
from treadle.runtime.cpu.target import host, process_host, this_machine, using


def blocked(background):
    """A job that runs until the event it gives is set."""
    started, go = threading.Event(), threading.Event()

    def job():
        started.set()
        go.wait(60)

    background.submit("blocked", job)
    assert started.wait(60)
    return go


def test_jobs_run_in_order_on_another_thread():
    background, ran = Background(lambda: 1), []
    go = blocked(background)
    for n in range(5):
        background.submit(f"j{n}", lambda n=n: ran.append((n, threading.current_thread())))
    go.set()
    last = threading.Event()
    background.submit("last", last.set)
    assert last.wait(60)
    assert [n for n, _ in ran] == list(range(5))
    assert threading.current_thread() not in {thread for _, thread in ran}


def test_a_job_that_has_not_begun_can_be_taken():
    background, ran = Background(lambda: 1), []
    go = blocked(background)
    background.submit("a", lambda: ran.append("a"))
    background.submit("b", lambda: ran.append("b"))
    background.submit("b", lambda: ran.append("the same key again"))
    assert background.take("c") is None
    background.take("b")()
    background.take()()
    assert background.take() is None and ran == ["b", "a"]
    go.set()


def test_without_threads_nothing_is_kept():
    background = Background(lambda: 0)
    background.submit("a", lambda: None)
    assert background.take("a") is None


def test_threads_end_and_the_switch_interval_comes_back():
    jit()._background.drain()  # what tests before this one left to do
    for thread in threading.enumerate():
        if thread.name == "treadle-compiler":
            thread.join()  # of their own backgrounds
    before = sys.getswitchinterval()
    background = Background(lambda: 3)
    for n in range(20):
        background.submit(f"j{n}", lambda: None)
    background.drain()
    assert sys.getswitchinterval() == before
    assert not [t for t in threading.enumerate() if t.name == "treadle-compiler"]


def test_jobs_wait_for_their_taker_where_no_thread_can_start(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    background, ran = Background(lambda: 1), []
    background.submit("a", lambda: ran.append("a"))
    job = background.take("a")
    assert job is not None
    job()
    assert ran == ["a"]


def test_draining_waits_for_what_runs_and_drops_the_rest():
    background, ran = Background(lambda: 1), []
    go = blocked(background)
    background.submit("late", lambda: ran.append("late"))
    threading.Timer(0.05, go.set).start()
    background.drain()
    assert go.is_set() and not ran


def test_a_forked_child_runs_jobs():
    background = Background(lambda: 2)
    background.submit("a", lambda: None)
    child = os.fork()
    if child == 0:
        done = threading.Event()
        background.submit("b", done.set)
        os._exit(0 if done.wait(60) else 1)
    assert os.waitpid(child, 0)[1] == 0


OTHER = this_machine().without("avx512f")


def looks_twice(background, seen):
    """Submit a job that looks at the machine when it begins and again a while later."""
    started, go = threading.Event(), threading.Event()

    def job():
        seen.append(host())
        started.set()
        go.wait(60)
        seen.append(host())

    background.submit("job", job)
    assert started.wait(60)
    threading.Timer(0.1, go.set).start()


def test_another_machine_is_used_when_jobs_have_ended():
    background, seen = Background(lambda: 1), []
    looks_twice(background, seen)
    with using(OTHER):
        assert seen == [process_host(), process_host()]


def test_a_machine_is_used_until_its_jobs_have_ended():
    background, seen = Background(lambda: 1), []
    with using(OTHER):
        looks_twice(background, seen)
    assert seen == [OTHER, OTHER]


def test_jobs_are_done_after_an_interrupt_anywhere_in_submitting_one():
    def submits():
        background = Background(lambda: 1)
        return background, lambda: background.submit("first", lambda: None)

    places, _ = count_places(submits()[1])
    assert places > 5
    for number in range(places):
        background, submit = submits()
        assert at_place(submit, number, delicate=False)
        done = threading.Event()
        background.submit("second", done.set)
        assert done.wait(60), number
        background.drain()
        assert not background.is_working


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_job_that_ends_its_thread_does_not_keep_others_from_being_done():
    background = Background(lambda: 1)
    background.submit("leaves", sys.exit)
    background.drain()
    done = threading.Event()
    background.submit("other", done.set)
    assert done.wait(60)
