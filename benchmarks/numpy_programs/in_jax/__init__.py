"""The programs written for JAX, as its users write them.

A text does the steps of the NumPy program, whole arrays at once where they do not depend on one
another, and leaves to no library routine what the program itself does. Arrays do not change in JAX:
a text gives what the program returns and, after it, the arrays that the program changes; it gives a
tuple where these are several. The modules import JAX and are imported only where it is wanted.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from benchmarks.numpy_programs.program import Program


def text(program: Program) -> Callable[..., Any] | None:
    """The program for JAX; None where it is not written.

    Raises:
        ImportError: JAX is not installed.
    """
    subject = program.function.__module__.rpartition(".")[2]
    module = importlib.import_module(f"{__name__}.{subject}")
    return getattr(module, program.name, None)
