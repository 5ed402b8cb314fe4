"""How `explain()` describes the traces of a jitted function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treadle.core import nest
from treadle.core.spec import TensorSpec
from treadle.jitted.arguments import ARRAY, NUMBER, SCALAR
from treadle.ops.state import Variable
from treadle.tracing.signature import Arguments, leaf_key, weakly

# Why a second trace is made for the same arguments.
CHANGED = "the trace before found which arrays are changed in place"

_NUMBERS = {"d": "a float", "l": "an int", "D": "a complex"}


def describe(arguments: Arguments) -> Iterator[tuple[str, str, Any]]:
    """(argument, text, key) for every leaf that the caller gave."""
    kinds = nest.flatten(arguments.args[0])
    names = list(arguments.kwargs)
    for kind, (name, leaf) in zip(kinds, arguments.kwargs.items(), strict=True):
        if kind.startswith(NUMBER):
            yield name, _NUMBERS[kind.removeprefix(NUMBER)], (kind, None)
        elif kind.startswith(ARRAY) and kind != ARRAY:
            yield name, f"the same array as {names[int(kind.removeprefix(ARRAY))]}", (kind, None)
        elif kind in (ARRAY, SCALAR):
            spec = TensorSpec(leaf.shape, leaf.dtype)
            changed = ", changed in place" if isinstance(leaf, Variable) else ""
            yield name, f"{spec}{changed}", (kind, spec)
        else:
            yield name, repr(weakly(leaf)), (kind, leaf_key(leaf, {}))


def advise(old: Any, new: Any) -> str:
    """Why two keys of one leaf need different traces."""
    if old is None or new is None:
        return "another structure of the arguments"
    (old_kind, before), (new_kind, after) = old, new
    if isinstance(before, TensorSpec) and isinstance(after, TensorSpec):
        if before.dtype is not after.dtype:
            return "another dtype"
        if before.rank != after.rank:
            return "another rank"
        if before != after:
            return "another shape"
    if new_kind == NUMBER + "l" and old_kind not in (NUMBER + "d", NUMBER + "D"):
        return "an int is a constant of the program until a second value comes"
    return "another kind of value" if old_kind != new_kind else "another Python value"
