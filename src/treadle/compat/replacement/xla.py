"""``tensorflow.xla``, by which libraries ask for a compiler: here it is that of all functions."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import treadle as td
from treadle.compat.replacement.decorators import nothing


def compile(computation: Callable[..., Any], inputs: Any = None) -> Any:
    """What a function gives for the inputs, compiled; a single value in a tuple."""
    found = td.function(computation)(*(inputs or ()))
    return found if found is None or td.nest.is_nested(found) else (found,)


XLA = SimpleNamespace(experimental=SimpleNamespace(compile=compile, jit_scope=nothing))
