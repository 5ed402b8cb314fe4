"""``tensorflow.xla``, by which libraries ask for a compiler: here it is that of all functions. And
the operations of that compiler that libraries reach in TensorFlow's private modules."""

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


def dynamic_slice(x: Any, starts: Any, sizes: Any) -> Any:
    """The part of `x` of those sizes that begins at `starts`, further ahead where it would reach
    over the end."""
    last = td.shape(x) - td.cast(sizes, td.int32)
    return td.slice(x, td.clip_by_value(td.cast(starts, td.int32), 0, last), sizes)


def dynamic_update_slice(x: Any, updates: Any, starts: Any) -> Any:
    """`x` with `updates` in place of the part that begins at `starts`, further ahead where it would
    reach over the end."""
    return td.keras.ops.slice_update(x, td.unstack(starts), updates)


XLA = SimpleNamespace(experimental=SimpleNamespace(compile=compile, jit_scope=nothing))
