"""Stages with threads: prefetch, and map with parallel calls."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from treadle.config.threading import occupied
from treadle.data.elements import Leaves
from treadle.data.stages.failures import Failure, carried, released
from treadle.data.stages.functions import Map
from treadle.data.stages.places import Places
from treadle.data.stages.stage import (
    Stage,
    available_processors,
    debugging,
    integer,
    invalid,
    known,
)

AUTOTUNE = -1
_AUTO_BUFFER = 8
_TRIALS = 16
_WORTH_A_THREAD = 300e-6  # seconds a call; a hand-over between threads costs about 30 µs


class Prefetch(Stage):
    """The next elements are made in a thread while the consumer works."""

    def __init__(self, inner: Stage, size: Any) -> None:
        self.inner, self.spec = inner, inner.spec
        self.size = AUTOTUNE if size is None else integer(size, "prefetch: buffer_size")
        if known(self.size) and self.size < AUTOTUNE:
            raise invalid(f"prefetch: buffer_size must be >= 0 or AUTOTUNE, got {self.size}")

    def open(self) -> Iterator[Leaves]:
        size = int(self.size)
        if size == 0 or debugging.on:
            return self.inner.open()
        ahead = _AUTO_BUFFER if size < 0 else size
        return released(prefetched(self.inner.open, ahead), self)

    def resume(self, count: int) -> Iterator[Leaves]:
        size = int(self.size)
        if size == 0 or debugging.on:
            return self.inner.resume(count)
        ahead = _AUTO_BUFFER if size < 0 else size
        return released(prefetched(lambda: self.inner.resume(count), ahead), self)

    def cardinality(self) -> int:
        return self.inner.cardinality()


class _Buffer:
    """A bounded queue between the thread that fills it and the consumer."""

    def __init__(self, size: int) -> None:
        self.size, self.items = size, deque[Any]()
        self.changed = threading.Condition()
        self.stopped = False
        self.ended = False
        self.error: BaseException | None = None

    def fill(self, opener: Callable[[], Iterator[Any]]) -> None:
        """Runs in the thread."""
        source: Any = iter(())
        try:
            source = opener()
            for item in carried(source):
                if not self._put(item):
                    break
        except BaseException as error:  # goes to the consumer
            self.error = error
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()
            with self.changed:
                self.ended = True
                self.changed.notify_all()

    def _put(self, item: Any) -> bool:
        with self.changed:
            while len(self.items) >= self.size and not self.stopped:
                self.changed.wait()
            self.items.append(item)
            self.changed.notify_all()
            return not self.stopped

    def take(self) -> list[Any]:
        """All items that are ready, at least one; none at the end."""
        with self.changed:
            while not self.items and not self.ended:
                self.changed.wait()
            taken = [self.items.popleft()] if self.items else []
            self.changed.notify_all()
        if not taken and self.error is not None:
            error, self.error = self.error, None
            raise error
        return taken

    def stop(self) -> None:
        with self.changed:
            self.stopped = True
            self.items.clear()
            self.changed.notify_all()


def prefetched(opener: Callable[[], Iterator[Any]], size: int) -> Iterator[Any]:
    """The items of an iterator, made ahead in a thread; errors between them are failures."""
    buffer = _Buffer(size)
    thread = threading.Thread(
        target=buffer.fill, args=(opener,), name="treadle-prefetch", daemon=True
    )
    thread.start()
    try:
        while taken := buffer.take():
            yield from taken
    finally:
        buffer.stop()
        if thread is not threading.current_thread():
            thread.join(1.0)  # a source that blocks ends when it can


class ParallelMap(Map):
    """`map` with calls in threads.

    Where the function is random, each element has streams of its own: what it gives does not depend
    on the threads.

    Args:
        calls: how many at once; AUTOTUNE measures whether threads are worth it.
        ordered: results come in the order of the elements; otherwise as they are ready.
    """

    own_streams = True

    def __init__(self, inner: Stage, fn: Callable[..., Any], calls: Any, ordered: bool) -> None:
        super().__init__(inner, fn)
        self.calls, self.ordered = integer(calls, "map: num_parallel_calls"), ordered
        if known(self.calls) and self.calls < 1 and self.calls != AUTOTUNE:
            raise invalid(f"map: num_parallel_calls must be greater than zero, got {self.calls}")
        self.slow: deque[float] = deque(maxlen=1)  # seconds of a call that is worth a thread

    def resume(self, count: int) -> Iterator[Leaves]:
        return self.calls_from(count)

    def calls_from(self, skip: int, places: Places | None = None) -> Iterator[Any]:
        """The results for the elements after the first `skip`, in batches where there are `places`
        for them."""
        return self.in_parallel(*self.call_and_items(skip), places)

    def placed(self, skip: int, size: int) -> Iterator[Any]:
        if not self.ordered:
            return super().placed(skip, size)
        return self.calls_from(skip, Places(size))

    def in_parallel(
        self, call: Callable[[Any], Leaves], source: Iterator[Any], places: Places | None
    ) -> Iterator[Any]:
        calls = int(self.calls)
        if calls == 1 or debugging.on:
            return map(call, source)
        items = carried(source)
        if calls != AUTOTUNE:
            return released(in_threads(call, items, calls, self.ordered, places), self)
        return released(self._tuned(call, items, places), self)

    def _tuned(self, call: Any, source: Iterator[Any], places: Places | None) -> Iterator[Any]:
        """Calls one after another, or in threads once one proves slow: in this pass or before."""
        workers = available_processors()
        tries = 0 if self.slow else _TRIALS if workers > 1 else -1
        for number, item in enumerate(islice(source, tries) if tries >= 0 else source):
            started = time.perf_counter()
            result = _result(call, item)
            took = time.perf_counter() - started
            yield result
            if number and took > _WORTH_A_THREAD and workers > 1:  # the first call may compile
                self.slow.append(took)
                break
        if self.slow:
            yield from in_threads(call, source, workers, self.ordered, places)
        else:
            for item in source:
                yield _result(call, item)


def _result(call: Any, item: Any) -> Any:
    """The result of a call, or its failure, or that of the item."""
    if type(item) is Failure:
        return item
    try:
        return call(item)
    except Exception as error:
        return Failure(error)


class _Calls:
    """Calls in threads, which take the items from the source themselves: they go on while the
    consumer works, until `room` results wait for it.

    Args:
        call: of an item.
        source: of the items; one thread at a time takes from it.
        room: how many items may be taken whose results the consumer has not got.
        ordered: results come in the order of the items; otherwise as they are ready.
        places: where the threads put the arrays of results; None: they stay where they are.
    """

    def __init__(
        self, call: Callable[[Any], Any], source: Iterator[Any], room: int, ordered: bool,
        places: Places | None,
    ) -> None:  # fmt: skip
        self.call, self.source, self.ordered = call, source, ordered
        self.places = places
        self.room = threading.Semaphore(room)
        self.taking = threading.Lock()
        self.taken = 0
        self.changed = threading.Condition()
        self.results: dict[int, Any] = {}
        self.wanted = range(0)  # the numbers that the consumer waits for
        self.missing = 0  # how many of them are not there
        self.ended = self.stopped = False
        self.error: BaseException | None = None

    def work(self) -> None:
        """Runs in every thread."""
        try:
            while self._one():
                pass
        except BaseException as error:  # goes to the consumer
            with self.changed:
                self.error = self.error or error
                self.changed.notify()

    def _one(self) -> bool:
        """Take an item and make its result; False once there are no more."""
        self.room.acquire()
        with self.taking:
            if self.ended or self.stopped:
                self.room.release()  # for the next thread that waits
                return False
            try:
                item = next(self.source)
            except StopIteration:
                with self.changed:
                    self.ended = True
                    self.changed.notify()
                self.room.release()
                return False
            number = self.taken
            self.taken += 1
        with occupied:  # each of these threads keeps a processor busy
            result = _result(self.call, item)
            if self.places is not None:
                result = self.places.put(number, result)
        with self.changed:
            self.results[number] = result
            self.missing -= number in self.wanted
            if not self.missing or not self.ordered:
                self.changed.notify()
        return True

    def take(self, number: int, count: int) -> list[Any]:
        """The next results from this number on: at least one and at most `count`, or if the order
        does not matter one that is ready; none after the last. It waits for all `count`, so that it
        is woken once."""
        with self.changed:
            while True:
                if self.error is not None:
                    raise self.error
                if not self.ordered and self.results:
                    found = [self.results.pop(next(iter(self.results)))]
                    break
                last = number + count
                self.wanted = range(number, min(last, self.taken) if self.ended else last)
                self.missing = sum(n not in self.results for n in self.wanted)
                if not self.missing:
                    found = [self.results.pop(n) for n in self.wanted]
                    break
                self.changed.wait()
            self.wanted = range(0)
        if found:
            self.room.release(len(found))
        return found

    def stop(self) -> None:
        self.stopped = True
        self.room.release()


def in_threads(
    call: Callable[[Any], Any], source: Iterator[Any], count: int, ordered: bool,
    places: Places | None = None,
) -> Iterator[Any]:  # fmt: skip
    """``map(call, source)`` with up to `count` calls at once; errors are failures.

    Args:
        places: where the threads put the arrays of results; results come by as many then.
    """
    at_once = 1 if places is None else places.size
    calls = _Calls(call, source, at_once + count + max(count, _AUTO_BUFFER), ordered, places)
    threads = [
        threading.Thread(target=calls.work, name=f"treadle-map_{n}", daemon=True)
        for n in range(count)
    ]
    for thread in threads:
        thread.start()
    number = 0
    try:
        while found := calls.take(number, at_once):
            yield from found
            number += len(found)
    finally:
        calls.stop()
        for thread in threads:
            thread.join()
