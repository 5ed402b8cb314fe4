"""``except`` blocks: while tracing, no exception can be caught that only some runs would raise."""

from __future__ import annotations

import sys
from typing import Any

from treadle.autograph.errors import StagingError
from treadle.core.origin import at, user_origin

_MARK = "__treadle_raised_under__"


class raised_under:
    """A block in which a branch or the body of a loop of the graph is traced: only the run knows
    whether it is reached. Exceptions that leave the block are marked with that."""

    def __init__(self, statement: str) -> None:
        self.statement = statement

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, Exception) and not hasattr(error, _MARK):
            error.__dict__[_MARK] = f"{self.statement}{at(user_origin())}"


def caught() -> None:
    """Called where an ``except`` block begins.

    Raises:
        StagingError: the exception left a branch or loop on a tensor inside the ``try`` block. The
            handler would run in every run, also where the condition does not hold.
    """
    error: Any = sys.exc_info()[1]
    under = getattr(error, _MARK, None)
    if under is not None:
        raise StagingError(
            f"{type(error).__name__} was raised in {under}\nAn `except` around that statement "
            "would catch it while the function is traced, for all values of the tensor. Put the "
            f"try statement inside, or choose the result by a condition{at(user_origin())}"
        ) from error
