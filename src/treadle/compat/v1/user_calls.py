"""treadle's own names where a program of TensorFlow 2 means graphs.

Such a program reaches TensorFlow 1's names as ``tf.compat.v1``, and means graphs inside of
``with tf.Graph().as_default()`` and after ``tf.compat.v1.disable_eager_execution()``. There, as in
TensorFlow, ``tf.constant`` and ``tf.Variable`` belong to the graph, too: what the user calls is
written down. What treadle itself calls gives values as everywhere, and so does what Keras
calls (`keras_tensors`).

A program that imports `treadle.compat.v1` has the names of both modules side by side: those of
treadle give values there, unless an argument belongs to a graph.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

import treadle as td
from treadle.compat.v1.graph import Graph, get_default_graph
from treadle.compat.v1.keras_tensors import has_of_keras, in_graph, is_called_by_keras
from treadle.compat.v1.mirrored import is_at_once, written_down
from treadle.compat.v1.values import Mode, thread
from treadle.compat.v1.variables import Variable
from treadle.core.context import GraphMode, context, naming
from treadle.core.refusals import Target, hand_over

# Where the functions are defined that are operations of a graph.
_OPERATIONS = ("treadle.ops.", "treadle.image.", "treadle.signal.", "treadle.autodiff.graph_")
# What stands between a call and the user's line.
_BETWEEN = {
    __name__, "treadle.core.context", "treadle.core.refusals", "treadle.ops.control.ordering",
    "treadle.ops.variable_creation",
}  # fmt: skip


@functools.cache
def _hand_over() -> None:
    """From now on public functions look whether a graph is meant."""
    hand_over(_target)
    GraphMode.is_on = staticmethod(_is_meant)
    GraphMode.scope = staticmethod(_scope)


def begin() -> None:
    """In this thread graphs are meant from now on, where no operation runs at once. Outside of
    them a program that has reached `td.Graph` only means values."""
    Mode.reached(by_import=False)
    if Mode.is_imported:
        return
    _hand_over()
    if _create not in naming.creators:
        naming.creators = (_create, *naming.creators)


def _target(call: Any) -> Target | None:
    """What calls of a public function are handed to; None for one that is no operation."""
    if not inspect.unwrap(call).__module__.startswith(_OPERATIONS) or is_at_once(call):
        return None
    # Models compute with their tensors; the gradients of these are the graph's.
    is_gradients = inspect.unwrap(call) is inspect.unwrap(td.gradients)

    def target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not _is_meant():
            return None
        if is_gradients:
            args, kwargs = in_graph(get_default_graph(), (args, kwargs))
        elif has_of_keras((args, kwargs)):
            return None
        return functools.partial(written_down, call, args, kwargs)

    return target


def _create(next_creator: Any, **given: Any) -> Any:
    """A creator of variables: those that the user makes belong to the graph."""
    if not _is_meant():
        return next_creator(**given)
    known = inspect.signature(Variable.__init__).parameters
    return Variable(**{k: v for k, v in given.items() if k in known and v is not None})


def _scope(name: str) -> tuple[Graph, str] | None:
    """The graph that a user's name scope belongs to, and the scope there."""
    if not _is_meant():
        return None
    graph = get_default_graph()
    return graph, graph.scope_named(name)


def _is_meant() -> bool:
    """Whether the user has called, and the call belongs to a graph."""
    if not thread.graphs and Mode.eager or thread.run is not None:
        return False
    recorder: Any = context.recorder
    if recorder is not None and (thread.region is None or recorder is not thread.region.builder):
        return False
    frame: Any = sys._getframe(1)
    while frame.f_globals.get("__name__") in _BETWEEN:
        frame = frame.f_back
    if str(frame.f_globals.get("__name__")).startswith("treadle."):
        return False
    return not is_called_by_keras(frame)


def _is_in_block() -> bool:
    return bool(thread.graphs)


Graph.entered = staticmethod(begin)
GraphMode.is_on = staticmethod(_is_in_block)
