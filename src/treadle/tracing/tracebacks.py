"""Tracebacks as plain Python would show them: the user's frames, none of treadle's."""

from __future__ import annotations

import sys
from typing import Any

from treadle.core.frames import filtered
from treadle.core.origin import FAILED_AT
from treadle.tracing import settings


def show_user_frames(error: BaseException) -> None:
    """Take treadle's frames out of the tracebacks of `error` and of the errors that led to it.

    To be called where `error` leaves treadle, before it is raised again. An error of a compiled
    program knows the place that failed (`failed_at`): its frames are added.
    `td.debugging.disable_traceback_filtering` and TREADLE_FULL_TRACEBACK=1 switch this off.
    """
    if not settings.filter_tracebacks:
        return
    failed = error.__dict__.pop(FAILED_AT, None)
    error.__traceback__ = filtered(error.__traceback__, failed)
    seen = {id(error)}
    earlier = error.__cause__ or error.__context__
    while earlier is not None and id(earlier) not in seen:
        seen.add(id(earlier))
        earlier.__traceback__ = filtered(earlier.__traceback__)
        if earlier.__traceback__ is None and error.__cause__ is earlier:  # all of it was treadle's
            error.__cause__, error.__suppress_context__ = earlier.__cause__, True
            earlier = error.__cause__
        else:
            error, earlier = earlier, earlier.__cause__ or earlier.__context__


def install_hook() -> None:
    """Show uncaught errors of eager operations, too, without treadle's frames. The traceback for
    debuggers (`sys.last_traceback`) keeps them all."""
    before = sys.excepthook
    if getattr(before, "is_treadles", False):
        return

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if settings.filter_tracebacks and trace is not None:
            shown = filtered(trace)
            if shown is not None:
                error.__traceback__ = trace = shown
        before(kind, error, trace)

    hook.is_treadles = True  # type: ignore[attr-defined]
    sys.excepthook = hook
