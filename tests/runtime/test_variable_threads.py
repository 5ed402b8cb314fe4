"""Variables between threads: what is read is whole, and stays; buffers live as long as needed."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import treadle as td

LARGE = 300_000  # elements: programs run without the GIL


@pytest.fixture(autouse=True)
def quick_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Storm:
    """Readers that count to a number, beside writers that go on as long as they do."""

    def __init__(self, readers, writers, reads):
        self.faults = []
        self.reading = len(readers)
        self.threads = [threading.Thread(target=self.read, args=(f, reads)) for f in readers]
        self.threads += [threading.Thread(target=self.write, args=(f,)) for f in writers]

    def read(self, function, reads):
        try:
            for _ in range(reads):
                function()
                if self.faults:
                    return
        except BaseException as error:
            self.faults.append(error)
        finally:
            self.reading -= 1

    def write(self, function):
        try:
            while self.reading > 0 and not self.faults:
                function()
        except BaseException as error:
            self.faults.append(error)

    def run(self):
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join()
        assert not self.faults


def whole(array):
    assert (array == array[0]).all()
    assert 0 <= array[0] < 1e7


@pytest.mark.parametrize(
    ("size", "reads"), [(4, 200), (60_000, 20), (LARGE, 6)], ids=["small", "medium", "large"]
)
@pytest.mark.parametrize("writers", ["eager", "compiled", "both"])
def test_values_are_whole(size, reads, writers):
    variable = td.Variable(np.zeros(size, np.float32))
    plain = td.function(lambda: variable + 0.0)
    step = td.function(lambda: variable.assign_add(td.ones_like(variable)))
    plain(), step(), plain(), step()

    def keep():
        tensor = variable.value()
        before = tensor.numpy().copy()
        whole(before)
        step()
        np.testing.assert_array_equal(tensor.numpy(), before)

    numbers = iter(range(10**7))

    def assign():
        variable.assign(np.full(size, float(next(numbers) % 1000), np.float32))

    chosen = {"eager": [assign, assign], "compiled": [step, step], "both": [assign, step]}[writers]
    readers = [lambda: whole(variable.numpy()), lambda: whole(plain().numpy()), keep]
    Storm(readers, chosen, reads).run()


def test_no_step_is_lost():
    variable = td.Variable(np.zeros(LARGE, np.float32))
    step = td.function(lambda: variable.assign_add(td.ones_like(variable)))
    step()
    step()

    def steps():
        for _ in range(60):
            step()

    threads = [threading.Thread(target=steps) for _ in range(3)]
    threads += [threading.Thread(target=lambda: [variable.numpy() for _ in range(20)])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(variable.numpy(), np.full(LARGE, 182.0, np.float32))


def test_threads_that_write_again_and_again_let_others_write():
    """What counts is how often they write while another thread's step waits for its turn."""
    variable = td.Variable(np.zeros(LARGE, np.float32))
    step = td.function(lambda: variable.assign_add(td.ones_like(variable)))
    step()
    step()
    beside, waited, steps = [], [], 30

    def write():
        tensor = variable.value()  # the step must copy the buffer, which takes a while
        before = tensor.numpy().copy()
        begin = len(beside)
        step()
        waited.append(len(beside) - begin)
        np.testing.assert_array_equal(tensor.numpy(), before)

    Storm([write], [lambda: beside.append(step())] * 2, steps).run()
    assert sum(waited) < 40 * steps, waited  # a few, where they let it; else up to thousands


def test_a_program_reads_the_buffer_that_it_began_with():
    """A loop reads the variable in every iteration while another thread assigns."""
    variable = td.Variable(np.zeros(64, np.float32))

    @td.function
    def sums(n):
        total = td.zeros([64])
        for _ in td.range(n):
            total = total + variable
        return total

    sums(td.constant(3))
    values = iter(range(10**7))

    def assign():
        variable.assign(np.full(64, float(next(values) % 7), np.float32))

    def read():
        total = sums(td.constant(20_000)).numpy()
        assert set(total.tolist()) <= {20_000.0 * k for k in range(7)}

    Storm([read, read], [assign], 20).run()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks with threads
def test_a_child_made_by_fork_does_not_wait_for_threads_that_are_gone():
    variable = td.Variable(np.zeros(4, np.float32))
    other = threading.get_ident() + 1
    variable.cell().writer = other  # as if such a thread were writing
    child = os.fork()
    if not child:
        signal.alarm(20)  # where it waited for ever
        os._exit(0 if variable.numpy().tolist() == [0.0] * 4 else 1)
    assert variable.cell().writer == other
    variable.cell().writer = 0
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_writer_is_waited_for_though_another_one_ended_meanwhile():
    """Whoever waits for one writer after the other does not take the second for the first."""
    variable = td.Variable(np.zeros(4, np.float32))
    done = threading.Event()
    first = threading.Thread(target=done.wait)
    second = threading.Thread(target=done.wait)
    read = []
    reader = threading.Thread(target=lambda: read.append(variable.numpy()))
    first.start()
    variable.cell().writer = first.ident
    second.start()
    reader.start()
    time.sleep(0.005)
    variable.cell().writer = second.ident
    done.set()
    first.join()
    second.join()
    time.sleep(0.005)
    assert variable.cell().writer == second.ident and not read
    variable.cell().writer = 0
    reader.join()
    assert read[0].tolist() == [0.0] * 4


def test_a_handler_sees_its_own_program_s_variable():
    """The program that writes is interrupted in this thread: there is nobody to wait for."""
    variable = td.Variable(np.zeros(4, np.float32))
    step = td.function(lambda: variable.assign_add(td.ones([4])))
    step()
    variable.cell().writer = threading.get_ident()
    try:
        assert variable.numpy().tolist() == [1.0] * 4
        with pytest.raises(td.errors.InternalError, match="interrupted in this thread"):
            step()
    finally:
        variable.cell().writer = 0
    step()
    assert variable.numpy().tolist() == [2.0] * 4
