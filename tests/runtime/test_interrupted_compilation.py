"""Ctrl-C anywhere while functions are traced, compiled and differentiated leaves nothing behind.

`tests/runtime/interrupts` has what is interrupted and how; its `run.py` goes on for hours.
"""

import gc
import signal
import threading

import pytest

import treadle as td
from tests.runtime.interrupts.scenes import SCENES, check
from tests.runtime.interrupts.storm import Storm
from treadle.core.context import context, modes
from treadle.core.interrupts import during, is_mode, puts_modes_back

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers with signals"),
    # CPython tells of an interrupt in a callback of a weak reference, and goes on.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def storm():
    gc.enable()
    return Storm()


@pytest.mark.parametrize("seed", range(8))
def test_everything_works_after_interrupts(storm, seed):
    faults = storm.interrupt(100_000 + seed, times=8)
    assert not faults, "\n".join(f"{f.scene} at {f.where}: {f.what}" for f in faults)


@pytest.mark.parametrize("name", SCENES)
def test_scenes_compute_what_they_should(name):
    begin, wanted = SCENES[name](1.5)
    assert not check(begin(), wanted)


class Modes(threading.local):
    value = 0
    stack = ()


MODES = is_mode(Modes())


class Change:
    def __init__(self):
        self.undone = False

    def undo(self):
        self.undone = True


def test_modes_are_put_back_where_a_block_could_not():
    """An interrupt at the first instruction of `__exit__` does what this does."""
    change = Change()

    @puts_modes_back
    def work(error):
        during(MODES, "value", 1).__enter__()
        during(MODES, "stack", (change,)).__enter__()
        context.tapes = (object(),)
        raise error

    with pytest.raises(KeyboardInterrupt):
        work(KeyboardInterrupt())
    assert (MODES.value, MODES.stack, context.tapes, modes.value) == (0, (), (), 0)
    assert change.undone


def test_modes_of_the_caller_stay():
    @puts_modes_back
    def work():
        during(MODES, "value", 2).__enter__()
        raise KeyboardInterrupt

    with td.GradientTape() as tape, during(MODES, "value", 1):
        with pytest.raises(KeyboardInterrupt):
            work()
        assert MODES.value == 1 and context.tapes == (tape,)
    assert MODES.value == 0


def test_an_interrupt_of_a_user_who_keeps_the_exception():
    """The frames of what was interrupted live as long as the exception does."""
    kept = []

    @td.function
    def f(x):
        if not kept:
            kept.append(KeyboardInterrupt())
            raise kept[0]
        return x + 1.0

    with pytest.raises(KeyboardInterrupt):
        f(td.constant(1.0))
    assert f(td.constant(1.0)).numpy() == 2.0
    kept.clear()
    gc.collect()
    assert f(td.constant(2.0)).numpy() == 3.0
    assert context.recorder is None and modes.value == 0
