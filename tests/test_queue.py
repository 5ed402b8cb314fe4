"""Queues between threads, called at once. Values are those of TensorFlow 2.21."""

import sys
import threading
import time

import numpy as np
import pytest

import treadle as td


def fifo(capacity=3, dtypes=td.int32, shapes=((),), **kwargs):
    return td.queue.FIFOQueue(capacity, dtypes, list(shapes), **kwargs)


def test_elements_of_several_components():
    queue = td.queue.FIFOQueue(3, [td.float32, td.int32], shapes=[[2], []])
    queue.enqueue(([1, 2.0], 3))
    queue.enqueue_many(([[3, 4.0], [5, 6]], [4, 5]))
    assert queue.size().numpy() == 3 and queue.size().dtype == td.int32
    x, y = queue.dequeue()
    assert (x.numpy().tolist(), y.numpy()) == ([1, 2], 3) and x.dtype == td.float32
    x, y = queue.dequeue_many(2)
    assert (x.numpy().tolist(), y.numpy().tolist()) == ([[3, 4], [5, 6]], [4, 5])


def test_what_does_not_fit():
    queue = td.queue.FIFOQueue(3, [td.float32, td.int32], shapes=[[2], []])
    with pytest.raises(td.errors.InvalidArgumentError, match="component 0"):
        queue.enqueue(([1, 2.0, 3], 3))
    with pytest.raises(ValueError, match="2 components, and 1"):
        queue.enqueue(([1, 2.0],))
    with pytest.raises(ValueError, match="same size in the first dimension"):
        queue.enqueue_many(([[1, 2.0]], [1, 2]))
    assert queue.size().numpy() == 0


def test_closed():
    queue = fifo()
    queue.enqueue(1)
    queue.close()
    assert queue.is_closed().numpy()
    with pytest.raises(td.errors.CancelledError, match=r"FIFOQueue '_\d+_fifo_queue' is closed"):
        queue.enqueue(2)
    with pytest.raises(td.errors.OutOfRangeError, match="requested 2, current size 1"):
        queue.dequeue_many(2)
    assert queue.dequeue_up_to(5).numpy().tolist() == [1]  # it was given back
    for call in (queue.dequeue, lambda: queue.dequeue_up_to(2)):
        with pytest.raises(td.errors.OutOfRangeError, match="current size 0"):
            call()


def test_queues_without_shapes_join_nothing():
    queue = td.queue.FIFOQueue(3, td.int32)
    queue.enqueue([1, 2])
    with pytest.raises(td.errors.InvalidArgumentError, match="specified shapes"):
        queue.dequeue_many(1)
    assert queue.dequeue().numpy().tolist() == [1, 2]


def test_names():
    queue = td.queue.FIFOQueue(3, [td.int32, td.string], [[], []], names=["a", "b"])
    queue.enqueue({"a": 1, "b": "x"})
    assert {k: v.numpy() for k, v in queue.dequeue().items()} == {"a": 1, "b": b"x"}
    with pytest.raises(ValueError, match="do not match names"):
        queue.enqueue({"a": 1})
    with pytest.raises(ValueError, match="must enqueue a dictionary"):
        queue.enqueue([1, "x"])


def test_padded():
    queue = td.queue.PaddingFIFOQueue(5, [td.string, td.float32], [[None], [None, 2]])
    queue.enqueue([["a"], [[1, 2.0]]])
    queue.enqueue([["b", "cc"], np.zeros((0, 2), np.float32)])
    strings, rows = queue.dequeue_many(2)
    assert strings.numpy().tolist() == [[b"a", b""], [b"b", b"cc"]]
    assert rows.numpy().tolist() == [[[1, 2]], [[0, 0]]]
    with pytest.raises(ValueError, match="shapes"):
        td.queue.PaddingFIFOQueue(5, td.int32, None)


def test_priorities():
    queue = td.queue.PriorityQueue(5, [td.string], [[]])
    for priority, text in ((3, "c"), (1, "a"), (2, "b"), (1, "aa")):
        queue.enqueue([priority, text])
    assert [x.numpy() for x in queue.dequeue()] == [1, b"a"]
    priorities, texts = queue.dequeue_many(3)
    assert priorities.dtype == td.int64
    assert (priorities.numpy().tolist(), texts.numpy().tolist()) == ([1, 2, 3], [b"aa", b"b", b"c"])


def test_random_order():
    def order(seed):
        queue = td.queue.RandomShuffleQueue(100, 0, td.int32, [[]], seed=seed)
        queue.enqueue_many([np.arange(50)])
        return queue.dequeue_many(50).numpy().tolist()

    assert sorted(order(1)) == list(range(50)) and order(1) == order(1)
    assert order(1) not in (order(2), list(range(50)))


def test_elements_that_remain():
    queue = td.queue.RandomShuffleQueue(20, 2, td.int32, [[]], seed=3)
    queue.enqueue_many([np.arange(8)])
    taken = queue.dequeue_many(6).numpy().tolist()
    more = in_thread(queue.dequeue)
    assert more.is_waiting() and queue.size().numpy() == 2
    queue.close()
    rest = [int(more.result().numpy()), *queue.dequeue_up_to(9).numpy().tolist()]
    assert sorted(taken + rest) == list(range(8))


class in_thread:
    """A call in another thread."""

    def __init__(self, call):
        def run():
            try:
                self.found = call()
            except Exception as error:
                self.found = error

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def is_waiting(self):
        """Whether it has come to where it waits, and does so for a while."""
        until = time.monotonic() + 60
        while not self._waits() and self._thread.is_alive() and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(0.02)
        return self._waits()

    def _waits(self):
        frame = sys._current_frames().get(self._thread.ident)
        while frame is not None:
            if frame.f_code is threading.Condition.wait.__code__:
                return frame.f_back.f_globals["__name__"] == "treadle.queue"
            frame = frame.f_back
        return False

    def result(self):
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.found


def test_who_puts_in_waits_for_room():
    queue = fifo(capacity=2)
    waiting = in_thread(lambda: queue.enqueue_many([[1, 2, 3, 4]]))
    assert waiting.is_waiting() and queue.size().numpy() == 2
    assert queue.dequeue_many(4).numpy().tolist() == [1, 2, 3, 4]  # more than fit at once
    assert waiting.result() is None


def test_who_takes_out_waits_in_turn():
    queue = fifo(capacity=9)
    first = in_thread(lambda: queue.dequeue_many(3).numpy().tolist())
    assert first.is_waiting()
    second = in_thread(lambda: queue.dequeue().numpy())
    assert second.is_waiting()
    queue.enqueue(1)
    assert second.is_waiting()  # the first one asked before
    queue.enqueue_many([[2, 3, 4]])
    assert (first.result(), second.result()) == ([1, 2, 3], 4)


def test_closing_ends_who_waits():
    queue = fifo(capacity=1)
    taking = in_thread(queue.dequeue)
    assert taking.is_waiting()
    queue.close()
    assert isinstance(taking.result(), td.errors.OutOfRangeError)
    full = fifo(capacity=1)
    full.enqueue(1)
    putting = in_thread(lambda: full.enqueue(2))
    assert putting.is_waiting()
    full.close()
    assert putting.is_waiting()  # it may still come in
    full.close(cancel_pending_enqueues=True)
    assert isinstance(putting.result(), td.errors.CancelledError)
    assert full.dequeue().numpy() == 1


def test_many_threads_lose_nothing():
    queue, found = td.queue.FIFOQueue(5, td.int32, [[]]), []
    putters = [in_thread(lambda i=i: [queue.enqueue(100 * i + k) for k in range(50)] and None)
               for i in range(4)]  # fmt: skip

    def take():
        try:
            while True:
                found.append(int(queue.dequeue().numpy()))
        except td.errors.OutOfRangeError:
            return True

    takers = [in_thread(take) for _ in range(3)]
    assert all(p.result() is None for p in putters)
    queue.close()
    assert all(t.result() for t in takers)
    assert sorted(found) == [100 * i + k for i in range(4) for k in range(50)]


def test_one_of_several():
    queues = [fifo(), fifo()]
    assert td.queue.QueueBase.from_list(1, queues) is queues[1]
    with pytest.raises(TypeError, match="matching component dtypes"):
        td.queue.QueueBase.from_list(0, [fifo(), fifo(dtypes=td.float32)])
    with pytest.raises(TypeError, match="list of queues"):
        td.queue.QueueBase.from_list(0, [])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: fifo(shapes=[[], []]), "same length as dtypes"),
        (lambda: fifo(names=["a", "b"]), "names must have the same length"),
        (lambda: fifo(shapes=[[None]]), "fully defined"),
    ],
)
def test_what_cannot_be_made(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_programs_have_no_queues():
    queue = fifo()

    @td.function
    def step(x):
        queue.enqueue(x)
        return x

    with pytest.raises(td.errors.UnimplementedError, match=r"belongs to Python(.|\n)*test_queue"):
        step(td.constant(1))
