"""``autograph.experimental``: names as in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.autograph.operators import lists
from treadle.autograph.operators.calls import MARK


def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """Mark a function to be run as it is, never converted. Usable as a decorator.

    Its Python conditions must then be Python's: a symbolic tensor in one is an error.
    """
    if func is None:
        return do_not_convert
    function = getattr(func, "__func__", func)
    code = getattr(function, "__code__", None)
    if code is not None:
        setattr(function, MARK, code)
    return func


def set_loop_options(
    parallel_iterations: int | None = None,
    swap_memory: bool | None = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:
    """Options of the loop around; must be the first statement of its body.

    They only concern loops that become part of a graph; Python's own ignore them.

    Args:
        maximum_iterations: an upper bound on the number of iterations.
        shape_invariants: a list of (variable, TensorSpec or TensorShape) for variables whose
            shape changes; the dims that change are None.
        parallel_iterations, swap_memory: accepted for TensorFlow programs.
    """


def set_element_type(list_: Any, dtype: Any, shape: Any = None) -> None:
    """Tell the type of the elements of an empty list that grows in a loop or branch of a graph.

    Only needed where an element is read before the first one is appended.

    Args:
        dtype, shape: of the elements; None for dims that differ.
    """
    lists.set_element_type(list_, dtype, shape)


__all__ = ["do_not_convert", "set_element_type", "set_loop_options"]
