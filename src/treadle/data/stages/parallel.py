"""Stages with threads: prefetch, and map with parallel calls."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import Any

from treadle.config.threading import occupied
from treadle.data.elements import Leaves
from treadle.data.seeds import seeds_for
from treadle.data.stages.failures import Failure, carried, released
from treadle.data.stages.functions import STATE, Map, Mapped, argument_specs
from treadle.data.stages.randomness import Randomness
from treadle.data.stages.stage import (
    Stage,
    available_processors,
    in_stage,
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
        if size == 0:
            return self.inner.open()
        ahead = _AUTO_BUFFER if size < 0 else size
        return released(prefetched(self.inner.open, ahead))

    def resume(self, count: int) -> Iterator[Leaves]:
        size = int(self.size)
        if size == 0:
            return self.inner.resume(count)
        ahead = _AUTO_BUFFER if size < 0 else size
        return released(prefetched(lambda: self.inner.resume(count), ahead))

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

    def __init__(self, inner: Stage, fn: Callable[..., Any], calls: Any, ordered: bool) -> None:
        super().__init__(inner, fn)
        self.calls, self.ordered = integer(calls, "map: num_parallel_calls"), ordered
        if known(self.calls) and self.calls < 1 and self.calls != AUTOTUNE:
            raise invalid(f"map: num_parallel_calls must be greater than zero, got {self.calls}")
        seeds = self.function.seeds
        if seeds:
            self.function = Mapped(fn, argument_specs(inner.spec), seeds)
            self.captures = self.function.captures
        self.randomness = [Randomness(seeds_for(seed), True) for seed in seeds]

    def open(self) -> Iterator[Leaves]:
        return self.calls_from(0)

    def resume(self, count: int) -> Iterator[Leaves]:
        return self.calls_from(count)

    def calls_from(self, skip: int) -> Iterator[Leaves]:
        """The results for the elements after the first `skip`."""
        source: Iterator[Any] = self.inner.resume(skip) if skip else self.inner.open()
        if not self.randomness:
            return self.in_parallel(self.call(), source)
        generators = [randomness.generator() for randomness in self.randomness]
        for generator in generators:
            generator.integers(0, 1 << 63, (skip, STATE))

        def with_states(leaves: Leaves) -> tuple[Any, Leaves]:
            return [g.integers(0, 1 << 63, STATE) for g in generators], leaves

        call = in_stage(self, self.function.with_states(self.captures))
        return self.in_parallel(call, map(with_states, source))

    def in_parallel(self, call: Callable[[Any], Leaves], source: Iterator[Any]) -> Iterator[Leaves]:
        calls = int(self.calls)
        if calls == 1:
            return map(call, source)
        items = carried(source)
        if calls == AUTOTUNE:
            return released(_tuned(call, items, self.ordered))
        return released(in_threads(call, items, calls, self.ordered))


def _tuned(call: Any, source: Iterator[Leaves], ordered: bool) -> Iterator[Leaves]:
    """Calls one after another, or in threads once they prove slow."""
    slowest = 0.0
    for leaves in islice(source, _TRIALS):
        started = time.perf_counter()
        result = _result(call, leaves)
        slowest = max(slowest, time.perf_counter() - started) if slowest else 1e-9
        yield result
    workers = available_processors()
    if workers > 1 and slowest > _WORTH_A_THREAD:
        yield from in_threads(call, source, workers, ordered)
    else:
        for leaves in source:
            yield _result(call, leaves)


def _beside_others(call: Any, item: Any) -> Any:
    """The result of a call in one of several threads, each of which keeps a processor busy."""
    with occupied:
        return _result(call, item)


def _result(call: Any, item: Any) -> Any:
    """The result of a call, or its failure, or that of the item."""
    if type(item) is Failure:
        return item
    try:
        return call(item)
    except Exception as error:
        return Failure(error)


def in_threads(
    call: Callable[[Any], Any], source: Iterator[Any], count: int, ordered: bool
) -> Iterator[Any]:
    """``map(call, source)`` with up to `count` calls at once; errors are failures."""
    waiting: deque[Future[Any]] = deque()
    pool = ThreadPoolExecutor(count, thread_name_prefix="treadle-map")
    try:
        for item in chain(source, [_END] * count):
            if item is not _END:
                waiting.append(pool.submit(_beside_others, call, item))
            if waiting and (item is _END or len(waiting) >= count):
                yield _next_of(waiting, ordered).result()
        while waiting:
            yield _next_of(waiting, ordered).result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_END: Any = object()


def _next_of(waiting: deque[Future[Any]], ordered: bool) -> Future[Any]:
    if not ordered:
        for i, future in enumerate(waiting):
            if future.done():
                del waiting[i]
                return future
    return waiting.popleft()
