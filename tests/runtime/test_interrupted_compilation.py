"""Ctrl-C anywhere while functions are traced, compiled and differentiated leaves nothing behind.

`tests/runtime/interrupts` has what is interrupted and how; its `run.py` goes on for hours.
"""

import contextlib
import gc
import signal
import sys
import threading

import numpy as np
import pytest

import treadle as td
from tests.runtime.interrupts.inject import at_place
from tests.runtime.interrupts.scenes import SCENES, check
from tests.runtime.interrupts.storm import Storm
from treadle.core.context import context, modes
from treadle.core.interrupts import Undone, during, is_mode, puts_modes_back

pytestmark = [
    pytest.mark.thorough,
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


class Change(Undone):
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


def interrupted(place, block):
    """Run a block and interrupt it where a function of that name begins."""
    with pytest.raises(KeyboardInterrupt):
        interrupted_at(place, block)


def interrupted_at(place, block):
    """As `interrupted`, of which the interrupt comes out, if there is such a function."""

    def profile(frame, event, arg):
        if event == "call" and frame.f_code.co_name == place:
            sys.setprofile(None)
            raise KeyboardInterrupt

    try:
        sys.setprofile(profile)
        block()
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("raises", [False, True])
def test_a_tape_whose_exit_is_interrupted_at_its_first_instruction(raises):
    x, tapes = td.Variable(3.0), []

    def block():
        with td.GradientTape() as tape:
            tapes.append(tape)
            x * x
            if raises:
                raise ValueError

    jitted = td.jit(lambda a: a + 1.0)
    interrupted("_leave", block)
    (tape,), recorded = tapes, len(tapes[0]._entries)
    x * x
    assert context.tapes == () and modes.value == 0 and len(tape._entries) == recorded > 0
    interrupted("_leave", block)
    assert type(jitted(np.ones(2))) is np.ndarray
    assert context.tapes == () and modes.value == 0
    interrupted("_leave", block)
    f = td.function(lambda: x * x)
    assert f().numpy() == 9.0 and context.tapes == () and modes.value == 0
    with tapes[-1]:  # it may be used again
        y = x * x * x
    assert tapes[-1].gradient(y, x).numpy() == 27.0
    assert context.tapes == () and modes.value == 0


def test_a_tape_interrupted_at_any_place_is_let_go_by_the_next_call():
    f = td.function(lambda x: td.reduce_sum(x * x))
    x = td.constant([3.0])
    f(x)

    def block():
        with td.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    block()
    number = 0
    while at_place(block, number, delicate=False):
        assert f(x).numpy() == 9.0
        assert context.tapes == () and modes.value == 0, number
        assert block().numpy() == 6.0
        number += 1
    assert number > 50


def test_a_jitted_function_interrupted_after_its_trace():
    for place in ("_add_plan", "add", "_evict", "check_writable", "_new_plan", "operations"):
        jitted = td.jit(lambda a: a * 2.0 + 1.0)
        with contextlib.suppress(KeyboardInterrupt):
            interrupted_at(place, lambda f=jitted: f(np.ones(3)))
        np.testing.assert_array_equal(jitted(np.ones(3)), np.full(3, 3.0))


def test_a_tape_in_other_blocks_than_with_statements():
    x = td.Variable(3.0)
    with contextlib.ExitStack() as stack:
        tape = stack.enter_context(td.GradientTape(persistent=True))
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0
    for _ in range(2):
        tape.__enter__()
        y = x * x
        tape.__exit__(None, None, None)
        assert tape.gradient(y, x).numpy() == 6.0
    assert context.tapes == () and modes.value == 0


def test_numpy_s_errors_after_an_interrupted_callback():
    """Where Python runs for a program or an eager op, no interrupt leaves NumPy with other settings
    for errors than the user's, were it at the first instruction of `errstate.__exit__`."""

    def profile(frame, event, arg):
        if event == "call" and frame.f_code.co_filename.endswith("_ufunc_config.py"):
            raise KeyboardInterrupt

    def stop(a):
        raise KeyboardInterrupt

    def eager(g, x):
        return td.numpy_function(g, [x], td.TensorSpec([2]))

    calls = [td.function(lambda x, g=g: eager(g, x), autograph=False) for g in (np.sin, stop)]
    calls += [lambda x, g=g: eager(g, x) for g in (np.sin, stop)]
    with np.errstate(over="raise", divide="print"):
        before = np.geterr()
        for f in calls:
            for seen in (None, profile, profile):
                try:
                    sys.setprofile(seen)
                    with contextlib.suppress(KeyboardInterrupt):
                        f(td.constant([1.0, 2.0]))
                finally:
                    sys.setprofile(None)
                assert np.geterr() == before


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
