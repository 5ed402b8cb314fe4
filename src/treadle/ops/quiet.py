"""NumPy calls without floating-point warnings, cheaply."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.interrupts import is_mode


class _Quiet(threading.local):
    """A context per thread in which NumPy's floating-point warnings are off.

    Entering ``np.errstate`` costs more than a small ufunc call; running in a context that holds
    the setting does not.
    """

    def __init__(self) -> None:
        self.context = contextvars.Context()
        self.context.run(np.seterr, all="ignore")
        # For calls that cannot come back here, such as one ufunc.
        self.run: Callable[..., Any] = self.context.run
        self.busy = False

    def call(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """``fn(*args, **kwargs)`` without warnings, also from within another such call."""
        if self.busy:
            return fn(*args, **kwargs)
        self.busy = True
        try:
            return self.run(fn, *args, **kwargs)
        finally:
            self.busy = False


quiet = is_mode(_Quiet())
