"""Warm calls take no fresh pages: results, workspace and lists are used again."""

import mmap
import threading

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import inputs
from treadle.examples.workloads import WORKLOADS

pytestmark = pytest.mark.thorough

resource = pytest.importorskip("resource")
WARM, CALLS, ROUNDS = 6, 20, 3


def faults(call) -> float:
    """Page faults of a call, on the average, once it is warm: the fewest of some rounds. They are
    counted for the whole process, in which other threads may end what earlier tests began; a call
    that takes fresh pages does so in every round."""
    for _ in range(WARM):
        call()
    fewest = float("inf")
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(CALLS):
            call()
        fewest = min(fewest, (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / CALLS)
        if fewest < 1:
            break
    return fewest


def function(python):
    return td.function(python, autograph=False)


def test_the_counting_notices_fresh_pages():
    """The pages are mapped here: malloc would take what earlier tests gave back to it."""
    kept = []

    def call():
        pages = mmap.mmap(-1, 4 << 20)
        pages.madvise(mmap.MADV_NOHUGEPAGE)
        for start in range(0, len(pages), mmap.PAGESIZE):
            pages[start] = 1
        kept.append(pages)

    assert faults(call) > (4 << 20) / mmap.PAGESIZE / 2


@pytest.mark.parametrize("name", WORKLOADS)
def test_training_steps_and_loops(name):
    python, arguments = WORKLOADS[name]()
    f = td.function(python)
    assert faults(lambda: f(*arguments)) < 3


@pytest.mark.parametrize("kilobytes", [4, 60, 100, 200, 300, 1000, 20_000])
def test_results_of_every_size(kilobytes):
    f = function(lambda x: (x * 2.0 + 1.0, td.transpose(x) + 3.0))
    x = td.ones([kilobytes, 250])
    assert faults(lambda: f(x)) < 3


def test_results_that_are_held_for_a_while():
    f, x, held = function(lambda x: x * 2.0), td.ones([500, 500]), []

    def call():
        held.append(f(x))
        del held[:-3]

    assert faults(call) < 3


def test_results_whose_size_is_found_out():
    @td.function
    def f(x, n):
        found = td.TensorArray(td.float32, 0, dynamic_size=True)
        for i in td.range(n):
            found = found.write(i, x * td.cast(i, td.float32))
        return found.stack()

    x, n = td.ones([100, 100]), td.constant(300)
    assert faults(lambda: f(x, n)) < 5


def test_a_large_workspace():
    x, w = inputs((600, 900), (900, 900))
    f = function(lambda x: td.reduce_sum(td.nn.softmax(td.matmul(td.nn.softmax(x @ w), w)), 0))
    assert faults(lambda: f(x)) < 3


def test_sizes_that_alternate():
    @function
    def f(x):
        return td.nn.softmax(td.matmul(td.nn.softmax(x), td.ones([300, 300])))

    arrays = [np.ones((n, 300), np.float32) for n in (900, 100, 700, 1200, 300)]
    for array in arrays:
        f(array)
    assert faults(lambda: [f(array) for array in arrays]) < 5


def test_gradients_of_loops_with_lists():
    w = td.Variable(inputs((200, 200))[0] / 30)

    @td.function
    def step(x, n):
        with td.GradientTape() as tape:
            h = td.zeros([100, 200])
            for t in td.range(n):
                h = td.tanh(td.matmul(h, w) + x[t])
            loss = td.reduce_sum(h * h)
        return tape.gradient(loss, w)

    x, n = inputs((20, 100, 200))[0], td.constant(20)
    assert faults(lambda: step(x, n)) < 5


def test_several_threads():
    """Each call that runs beside another needs a workspace of its own."""
    f = function(lambda x: td.reduce_sum(td.matmul(td.nn.softmax(td.matmul(x, x)), x), 0))
    x = td.ones([400, 400])

    def call():
        threads = [threading.Thread(target=f, args=(x,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert faults(call) < 60  # those of the threads' stacks, not the 160 of a matrix
