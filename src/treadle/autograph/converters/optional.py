"""What is converted, before all else, in functions whose variables may be None in some runs: those
of `td.jit`, which may raise exceptions that they catch and change lists in place, too."""

from __future__ import annotations

import types
from typing import Any

import gast

from treadle.autograph.converters.bound_methods import call_by_owners
from treadle.autograph.converters.caught import stage_raises
from treadle.autograph.converters.comparisons import Comparisons
from treadle.autograph.converters.handlers import guard_handlers
from treadle.autograph.converters.in_place_calls import mark_changes
from treadle.autograph.converters.recursion import stack_calls
from treadle.autograph.converters.tail_calls import loop_tail_calls
from treadle.autograph.converters.tried import write_raises
from treadle.autograph.names import Names


def convert_optional(
    root: Any, function: types.FunctionType, names: Names, stacked: bool
) -> Any:
    """The tree of a function with its raises, handlers, calls and comparisons rewritten.

    Args:
        stacked: whether a function that calls itself becomes a loop with a stack.
    """
    if not isinstance(root, gast.Lambda):
        root.decorator_list = []
    call_by_owners(root)
    if stacked:
        stack_calls(root, function, names)
    loop_tail_calls(root, function)
    write_raises(root)
    stage_raises(root, names)
    mark_changes(root)
    guard_handlers(root)
    return Comparisons().visit(root)
