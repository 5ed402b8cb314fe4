"""Threads run to their end wherever their start is interrupted."""

import threading

import pytest

from tests.runtime.interrupts import inject
from treadle.core.safe_thread import SafeThread


def started(kind, ran):
    thread = kind(target=lambda: ran.append(threading.current_thread()), daemon=True)
    return thread, thread.start


def test_an_interrupted_start(monkeypatch):
    monkeypatch.setattr(inject, "_NEVER", ("/tests/",))  # the places of interest are threading's
    thread, start = started(SafeThread, [])
    places, _ = inject.count_places(start)
    thread.join(60)
    interrupted = 0
    for number in range(places):
        ran = []
        thread, start = started(SafeThread, ran)
        interrupted += bool(inject.at_place(start, number, delicate=False))
        if thread.ident is not None or ran:  # it was started
            thread.join(60)
            assert not thread.is_alive() and ran == [thread], f"interrupted at place {number}"
    assert interrupted > 3


def test_it_is_a_thread():
    ran = []
    thread, start = started(SafeThread, ran)
    start()
    thread.join(60)
    assert ran == [thread] and not thread.is_alive()
    with pytest.raises(RuntimeError, match="once"):
        start()
