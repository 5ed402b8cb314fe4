"""``td.debugging``: what errors show."""

from __future__ import annotations

from treadle.tracing import settings


def disable_traceback_filtering() -> None:
    """Show treadle's own frames in tracebacks too; TREADLE_FULL_TRACEBACK=1 does so from the start.

    By default errors of a `function` show the frames that plain Python would.
    """
    settings.filter_tracebacks = False


def enable_traceback_filtering() -> None:
    """Show only the user's frames in tracebacks, which is the default."""
    settings.filter_tracebacks = True


def is_traceback_filtering_enabled() -> bool:
    """Whether treadle's own frames are left out of tracebacks."""
    return settings.filter_tracebacks
