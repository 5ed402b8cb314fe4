"""What Keras 2 has for programs that mean graphs: the session of `keras.backend`, and functions and
gradients of models' tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td

_function_of_models = td.keras.backend.function
_gradients_of_functions = td.keras.backend.gradients


def get_session(op_input_list: Any = ()) -> Any:
    """The default session, or else the one that Keras has for the default graph."""
    older: Any = td.compat.v1
    found = older.get_default_session()
    if found is not None:
        return found
    graph = older.get_default_graph()
    if graph.session_of_keras is None:
        graph.session_of_keras = older.Session(graph=graph)
    return graph.session_of_keras


def set_session(session: Any) -> None:
    """Let Keras have a session for its graph. The values of weights belong to no session here."""
    session.graph.session_of_keras = session


def gradients(loss: Any, variables: Any) -> Any:
    """The gradients of the loss: in a function, or of tensors where graphs are meant."""
    older: Any = td.compat.v1
    if td.inside_function() or older.executing_eagerly():
        return _gradients_of_functions(loss, variables)
    return older.gradients(loss, variables)


def function(
    inputs: Any, outputs: Any, updates: Any = None, name: str | None = None
) -> Callable[[Any], Any]:
    """A function of arrays, as `keras.backend.function` says; of tensors of a graph a session runs
    it, and the updates with it."""
    older: Any = td.compat.v1
    leaves = td.nest.flatten([outputs, updates or []])
    if not any(older.values.element(leaf) is not None for leaf in leaves):
        return _function_of_models(inputs, outputs, updates, name)
    fed = td.nest.flatten(inputs)

    def call(values: Any) -> Any:
        given = dict(zip(fed, td.nest.flatten(values), strict=True))
        return get_session().run((outputs, list(updates or ())), given)[0]

    return call


def have_sessions() -> None:
    """Give `keras.backend` these functions."""
    for own in (get_session, set_session, gradients, function):
        vars(td.keras.backend)[own.__name__] = own
