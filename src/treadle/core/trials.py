"""Trials: traces made to find out whether they can stand for something else, such as all iterations
of a loop. While one is made, operations are refused that could not be undone."""

from __future__ import annotations

import threading

from treadle.core.interrupts import during, is_mode


class RefusedError(Exception):
    """A trial must not go on: its trace would not have the meaning of the program."""


class Trial:
    """One trial.

    Attributes:
        refusal: why it must not be used, also where the program caught the error.
    """

    refusal: str | None = None


class _Stack(threading.local):
    trials: tuple[Trial, ...] = ()


_stack = is_mode(_Stack())


def trial() -> during:
    """A `Trial` inside the block."""
    made = Trial()
    return during(_stack, "trials", (*_stack.trials, made), gives=made)


def current_trial() -> Trial | None:
    """The innermost trial that is made in this thread."""
    return _stack.trials[-1] if _stack.trials else None


def refuse(reason: str) -> None:
    """Call before something that a trial must not do.

    Raises:
        RefusedError: a trial is made.
    """
    if _stack.trials:
        _stack.trials[-1].refusal = _stack.trials[-1].refusal or reason
        raise RefusedError(reason)
