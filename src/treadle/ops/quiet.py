"""NumPy calls without floating-point warnings, cheaply."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np


class _Quiet(threading.local):
    """A context per thread in which NumPy's floating-point warnings are off.

    Entering ``np.errstate`` costs more than a small ufunc call; running in a context that holds
    the setting does not.
    """

    def __init__(self) -> None:
        self.context = contextvars.Context()
        self.context.run(np.seterr, all="ignore")
        self.run: Callable[..., Any] = self.context.run


quiet = _Quiet()
