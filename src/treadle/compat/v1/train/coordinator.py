"""Threads that stop together."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any

import treadle as td
from treadle.train import Coordinator


class LooperThread(threading.Thread):
    """A thread that calls a function again and again until its coordinator stops it.

    Args:
        timer_interval_secs: the time between two calls; None: none.
    """

    def __init__(self, coord: Coordinator, timer_interval_secs: float | None, target: Any = None,
                 args: Any = None, kwargs: Any = None) -> None:  # fmt: skip
        super().__init__(daemon=True)
        self._coord, self._interval = coord, timer_interval_secs
        self._call, self._given = target, (tuple(args or ()), dict(kwargs or {}))
        coord.register_thread(self)

    @staticmethod
    def loop(coord: Coordinator, timer_interval_secs: Any, target: Any, args: Any = None,
             kwargs: Any = None) -> LooperThread:  # fmt: skip
        """A thread that was started."""
        thread = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        thread.start()
        return thread

    def run(self) -> None:
        with self._coord.stop_on_exception():
            self.start_loop()
            while not self._coord.should_stop():
                self.run_loop()
                if self._interval and self._coord.wait_for_stop(self._interval):
                    break
            self.stop_loop()

    def start_loop(self) -> None:
        """Called when the thread begins."""

    def stop_loop(self) -> None:
        """Called when the thread stops."""

    def run_loop(self) -> None:
        """One call."""
        if self._call is not None:
            self._call(*self._given[0], **self._given[1])


class QueueRunner:
    """Threads that run operations which fill a queue, until these raise OutOfRangeError: then the
    queue is closed, so that who takes elements out gets the last ones and then the same error.

    Args:
        queue: what the operations fill; None where they fill none.
        enqueue_ops: the operations, a thread for each.
        close_op, cancel_op: close the queue, and end who waits for it; made where omitted.
        queue_closed_exception_types: errors by which operations say that there is no more.
    """

    def __init__(
        self, queue: Any = None, enqueue_ops: Any = None, close_op: Any = None,
        cancel_op: Any = None, queue_closed_exception_types: Any = None,
        queue_runner_def: Any = None, import_scope: str | None = None,
    ) -> None:  # fmt: skip
        self.queue, self.enqueue_ops = queue, list(enqueue_ops or ())
        self.name = getattr(queue, "name", "queue_runner")
        self.queue_closed_exception_types = tuple(
            queue_closed_exception_types or (td.errors.OutOfRangeError,)
        )
        self.close_op, self.cancel_op = close_op, cancel_op
        if hasattr(queue, "close"):
            self.close_op = close_op or queue.close()
            self.cancel_op = cancel_op or queue.close(cancel_pending_enqueues=True)
        self._lock = threading.Lock()
        self._running: dict[Any, int] = {}  # threads, by sessions

    def create_threads(self, sess: Any, coord: Any = None, daemon: bool = False,
                       start: bool = False) -> list[threading.Thread]:  # fmt: skip
        """A thread for each operation, and one that lets them end where the coordinator stops.
        There are none where those of an earlier call run in the session."""
        with self._lock:
            if self._running.get(sess):
                return []
            self._running[sess] = len(self.enqueue_ops)
        threads = [
            threading.Thread(target=self._run, args=(sess, op, coord), daemon=daemon)
            for op in self.enqueue_ops
        ]
        if coord is not None and self.cancel_op is not None:
            threads.append(
                threading.Thread(target=self._end_when_stopped, args=(sess, coord), daemon=daemon)
            )
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def _run(self, sess: Any, op: Any, coord: Any) -> None:
        ended = False
        try:
            while coord is None or not coord.should_stop():
                sess.run(op)
        except self.queue_closed_exception_types:
            ended = True
        except td.errors.CancelledError:
            pass  # the queue was closed while the operation waited for room
        except BaseException:
            if coord is None:
                raise
            coord.request_stop(sys.exc_info())
        finally:
            with self._lock:
                self._running[sess] -= 1
                is_last = not self._running[sess]
            if ended and is_last and self.close_op is not None:
                sess.run(self.close_op)

    def _end_when_stopped(self, sess: Any, coord: Any) -> None:
        coord.wait_for_stop()
        with contextlib.suppress(Exception):  # the session may be closed
            sess.run(self.cancel_op)
