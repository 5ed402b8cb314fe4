"""llvmlite's lock is free after an interrupt at any place of a call of LLVM."""

import contextlib
import sys
import threading

import pytest

from treadle.runtime.cpu.llvm_lock import make_safe
from treadle.runtime.cpu.target import llvm_binding


def is_free(lock) -> bool:
    """Whether another thread can take the lock."""
    taken = []

    def take():
        taken.append(lock._lock.acquire(blocking=False))
        if taken[0]:
            lock._lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return taken[0]


def interrupted(call, place: int) -> bool:
    """Raise KeyboardInterrupt at place number `place` of a call where CPython looks for signals, in
    llvmlite (see tests.runtime.interrupts.inject); whether there are so many."""
    left = place

    def profile(frame, event, arg):
        nonlocal left
        if frame.f_code.co_filename.endswith("ffi.py") and event in ("call", "c_return"):
            left -= 1
            if left < 0:
                raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        try:
            sys.setprofile(profile)
            call()
        finally:
            sys.setprofile(None)
    return left < 0


def test_an_interrupt_leaves_the_lock_free():
    llvm = llvm_binding()
    places = 0
    while interrupted(llvm.ffi.lib.LLVMPY_GetVersionInfo, places):
        assert is_free(llvm.ffi.lib._lock), f"taken after an interrupt at place {places}"
        places += 1
    assert places > 1


def test_functions_that_somebody_registered_are_called():
    llvm = llvm_binding()
    events = []
    taken, released = (lambda: events.append("taken")), (lambda: events.append("released"))
    llvm.ffi.register_lock_callback(taken, released)
    try:
        llvm.get_process_triple()
    finally:
        llvm.ffi.unregister_lock_callback(taken, released)
    llvm.get_process_triple()
    assert events and events == ["taken", "released"] * (len(events) // 2)


@pytest.mark.parametrize("library", [object(), type("Library", (), {"_lock": None})()])
def test_another_llvmlite_keeps_its_lock(library):
    make_safe(library)
