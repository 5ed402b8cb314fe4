"""Threads that do the parts of one piece of work, and meet on the way.

Programs of several devices that exchange values run like this: each has a thread, and they wait for
one another where they exchange something. Where one of them ends without coming, the others do not
wait for ever: they end with an error that names it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, TypeVar

from treadle.core import errors, locks
from treadle.core.safe_thread import SafeThread

_R = TypeVar("_R")
_Settle = Callable[[list[Any]], Any]


class Missed(errors.InternalError):
    """A part has ended, and another one waits for it."""


class _Round:
    """One meeting: what each part brings, and what comes of it."""

    def __init__(self) -> None:
        self.brought: dict[int, tuple[str, Any]] = {}
        self.is_over = False
        self.result: Any = None
        self.error: BaseException | None = None


class Meeting:
    """Where the parts of one piece of work meet.

    Args:
        names: of the parts, for errors.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._changed = threading.Condition()
        self._round = _Round()
        self._gone: set[int] = set()

    def meet(self, number: int, about: str, brought: Any, settle: _Settle) -> Any:
        """Wait until all parts have come; the last one calls ``settle`` with what they have
        brought, in their order, and all get what it returns, or its error.

        Args:
            number: of the part that calls.
            about: what is done; the parts must agree on it.

        Raises:
            Missed: a part ends, or has ended, without coming.
            FailedPreconditionError: the parts are about different things.
        """
        with self._changed:
            this = self._round
            this.brought[number] = about, brought
            if len(this.brought) == len(self.names):
                self._round = _Round()
                self._settle(this, settle)
                self._changed.notify_all()
            elif self._gone:
                self._miss(this)
            while not this.is_over:
                self._changed.wait()
        if this.error is not None:
            raise this.error
        return this.result

    def _settle(self, this: _Round, settle: _Settle) -> None:
        try:
            said = [this.brought[i][0] for i in range(len(self.names))]
            if len(set(said)) > 1:
                pairs = zip(self.names, said, strict=True)
                raise errors.FailedPreconditionError(
                    None, None,
                    "programs of several devices meet for different things: "
                    + "; ".join(f"{name}: {about}" for name, about in pairs),
                )  # fmt: skip
            this.result = settle([this.brought[i][1] for i in range(len(self.names))])
        except BaseException as error:
            this.error = error
        this.is_over = True

    def _miss(self, this: _Round) -> None:
        """Somebody waits for a part that has ended."""
        waiting = ", ".join(
            f"{self.names[i]} waits in {about}" for i, (about, _) in sorted(this.brought.items())
        )
        missing = " and ".join(self.names[i] for i in sorted(self._gone - set(this.brought)))
        this.error = Missed(None, None, f"{waiting}, and {missing} has ended without it")
        this.is_over = True
        self._changed.notify_all()

    def leave(self, number: int) -> None:
        """A part has ended."""
        with self._changed:
            self._gone.add(number)
            if self._round.brought and not self._round.is_over:
                self._miss(self._round)


class _Here(threading.local):
    place: tuple[Meeting, int] | None = None


_here = _Here()


def is_part() -> bool:
    """Whether this thread does a part of such work."""
    return _here.place is not None


def meet(about: str, brought: Any, settle: _Settle) -> Any:
    """See `Meeting.meet`, for the part that this thread does.

    Raises:
        FailedPreconditionError: it does none.
    """
    if _here.place is None:
        raise errors.FailedPreconditionError(
            None, None, f"{about}: this is a part of a program of several devices"
        )
    meeting, number = _here.place
    return meeting.meet(number, about, brought, settle)


class _Crew:
    """Threads that wait for work: one for each part but the first, which the caller does."""

    def __init__(self, count: int) -> None:
        self._work: list[SimpleQueue[Callable[[], None]]] = []
        for _ in range(count - 1):
            queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
            self._work.append(queue)
            SafeThread(target=_serve, args=(queue,), daemon=True, name="treadle replica").start()

    def run(self, works: Sequence[Callable[[], _R]], names: Sequence[str]) -> list[_R]:
        meeting, done = Meeting(names), threading.Semaphore(0)
        found: list[Any] = [None] * len(works)
        failed: list[BaseException | None] = [None] * len(works)

        def part(number: int) -> None:
            before, _here.place = _here.place, (meeting, number)
            try:
                found[number] = works[number]()
            except BaseException as error:
                failed[number] = error
            finally:
                _here.place = before
                meeting.leave(number)

        def other(number: int) -> None:
            part(number)
            done.release()

        for number, queue in enumerate(self._work, 1):
            queue.put(lambda number=number: other(number))  # type: ignore[misc]
        part(0)
        for _ in self._work:
            done.acquire()
        own = [e for e in failed if e is not None and not isinstance(e, Missed)]
        for error in [*own, *failed]:
            if error is not None:
                raise error
        return found


def _serve(queue: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        queue.get()()


_idle: dict[int, list[_Crew]] = {}
_one_at_a_time = locks.reentrant_lock()  # two works on the same devices would wait for each other
os.register_at_fork(after_in_child=_idle.clear)  # whose threads are the parent's


def run_parts(works: Sequence[Callable[[], _R]], names: Sequence[str]) -> list[_R]:
    """Do the parts of a piece of work, each in a thread: the first one in the caller's.

    Args:
        names: of the parts, for errors.

    Returns:
        What each part returns.

    Raises:
        what a part raises: of several errors that of the first part which did not merely wait for
            another one.
    """
    with _one_at_a_time:
        crews = _idle.setdefault(len(works), [])
        crew = crews.pop() if crews else _Crew(len(works))
        found = crew.run(works, names)
        crews.append(crew)  # one that was interrupted is not used again
        return found
