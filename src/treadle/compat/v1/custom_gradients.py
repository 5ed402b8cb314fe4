"""Functions of the user with gradients of their own, in graphs."""

from __future__ import annotations

import functools
from typing import Any

import treadle as td
from treadle.compat.v1.recording import recorded
from treadle.compat.v1.registered_gradients import outside_of_bodies


def custom_gradient(f: Any = None) -> Any:
    """`td.custom_gradient`, whose functions may be called with tensors of graphs, too.

    ``f`` is called when a call is written down and when a session runs it, in a function that is
    traced: with its arguments, but not with other tensors of the graph.
    """
    if f is None:
        return custom_gradient

    @functools.wraps(f)
    def outside(*args: Any, **kwargs: Any) -> Any:
        with outside_of_bodies():
            result, gradient = f(*args, **kwargs)

        @functools.wraps(gradient)
        def back(*grads: Any, **variables: Any) -> Any:
            with outside_of_bodies():
                return gradient(*grads, **variables)

        return result, back

    return recorded(td.custom_gradient(outside), "IdentityN", "IdentityN")
