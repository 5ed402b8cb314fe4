"""The options of a loop that becomes part of a graph."""

from __future__ import annotations

from typing import Any


def set_loop_options(
    parallel_iterations: int | None = None,
    swap_memory: bool | None = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
    checkpoint: bool = False,
) -> None:
    """Options of the loop around; must be the first statement of its body.

    They only concern loops that become part of a graph; Python's own ignore them.

    Args:
        maximum_iterations: an upper bound on the number of iterations.
        shape_invariants: a list of (variable, TensorSpec or TensorShape) for variables whose
            shape changes; the dims that change are None.
        parallel_iterations, swap_memory: accepted for TensorFlow programs.
        checkpoint: the gradient keeps the loop variables of about sqrt(2 n) of n iterations, and
            computes what it needs of the others again. Not in TensorFlow.
    """
