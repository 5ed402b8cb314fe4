"""assert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.autograph.operators.values import is_staged
from treadle.ops.control.io import Assert


def assert_stmt(test: Any, message: Callable[[], Any] | None = None) -> None:
    """``assert test, message()``; a symbolic `test` is checked when the graph runs."""
    if is_staged(test):
        text = message() if message is not None else "assertion failed"
        Assert(test, [text])
    elif not test:
        raise AssertionError(*([] if message is None else [message()]))
