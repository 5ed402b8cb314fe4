"""``td.CriticalSection``: parts of programs that one thread at a time runs.

Inside a program effects keep their order, so a section concerns other threads alone. A program that
has sections holds them while it runs, from its beginning to its end (`runtime.exclusive`): then an
error between cannot leave one locked. Eager calls hold one while the function of the section runs.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.ops.registry import Op, register, run

_numbers = itertools.count()


class Lock:
    """What threads hold, one at a time; a thread may hold it several times over.

    Attributes:
        number: locks that are held together are taken in the order of their numbers, so that no
            two threads wait for each other.
        entered: the thread whose eager section runs now.
    """

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.entered: int | None = None
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


_shared: WeakValueDictionary[str, Lock] = WeakValueDictionary()


class CriticalSection:
    """A section of code that one thread at a time runs.

        section = td.CriticalSection()
        total = section.execute(lambda: counter.assign_add(1.0))

    Args:
        name: for the texts of errors.
        shared_name: sections with the same one are one section.
        critical_section_def: a message that describes a section; it is refused.
        import_scope: goes with that.

    Raises:
        ValueError: there is a description.
    """

    def __init__(
        self, name: str | None = None, shared_name: str | None = None,
        critical_section_def: Any = None, import_scope: str | None = None,
    ) -> None:  # fmt: skip
        if critical_section_def is not None:
            raise ValueError(
                "CriticalSection: messages of sections are not read; make the section by its name"
                f"{at(user_origin())}"
            )
        self._name = name or "critical_section"
        self._lock = _shared.setdefault(shared_name, Lock()) if shared_name else Lock()

    @property
    def name(self) -> str:
        """The name that it was made with."""
        return self._name

    def execute(
        self, fn: Callable[[], Any], exclusive_resource_access: bool = True,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """What a function without parameters returns, which runs while no other thread runs
        anything in this section.

        Args:
            exclusive_resource_access: accepted: that no other section uses what the function uses
                is not checked.
            name: of the operation.

        Raises:
            ValueError: the section runs in itself.
        """
        if not callable(fn):
            raise TypeError(f"CriticalSection.execute: {fn!r} is no function{at(user_origin())}")
        me, lock = threading.get_ident(), self._lock
        if lock.entered == me:
            raise ValueError(
                f"Attempting to lock a CriticalSection ({self._name}) in which we are already "
                f"running. This would deadlock.{at(user_origin())}"
            )
        if context.recorder is not None:
            run(CRITICAL, lock=lock)
            return self._entered(fn)
        with lock:
            return self._entered(fn)

    def _entered(self, fn: Callable[[], Any]) -> Any:
        before, self._lock.entered = self._lock.entered, threading.get_ident()
        try:
            return fn()
        finally:
            self._lock.entered = before


CRITICAL = register(
    Op(
        "critical", lambda *specs, **attrs: (), eager=lambda **attrs: (), effect="io",
        tags=frozenset({"quiet"}), callback="a mark of programs that hold locks",
    )
)  # fmt: skip
