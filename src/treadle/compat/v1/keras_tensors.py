"""Tensors of Keras's models in graphs: what `keras.Input` gave is a placeholder there, and what
layers made of it is what they give for placeholders.

Layers, losses and callbacks of the user that Keras calls compute with values, and so does what
makes layers: Keras has graphs of its own, which it makes of `keras.Input` by tracing, and a model
is trained there as it is elsewhere.

A program that builds a model where graphs are meant computes with these tensors in both ways: what
it makes of them with public functions are steps of models, and sessions are given and asked for
them, gradients are taken with respect to them.
"""

from __future__ import annotations

import sys
from typing import Any

from treadle.compat.v1.values import ANY_RANKS, leaves_of, map_leaves


def is_of_keras(value: Any) -> bool:
    """Whether a value is a tensor of a model. Nobody has one before their module is imported."""
    symbolic: Any = sys.modules.get("treadle.keras.layers.symbolic")
    return symbolic is not None and isinstance(value, symbolic.KerasTensor)


def has_of_keras(arguments: Any) -> bool:
    """Whether one is among arguments."""
    if "treadle.keras.layers.symbolic" not in sys.modules:
        return False
    return any(map(is_of_keras, leaves_of(arguments)))


def is_called_by_keras(frame: Any) -> bool:
    """Whether the code of a frame is that of a layer, a loss or the like that Keras calls, or makes
    a layer."""
    base: Any = sys.modules.get("treadle.keras.layers.base")
    while base is not None and frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("treadle.keras."):
            return True
        code = frame.f_code
        if code.co_name == "__init__" and isinstance(_first_argument(frame), base.Layer):
            return True
        frame = frame.f_back
    return False


def _first_argument(frame: Any) -> Any:
    return frame.f_locals.get((*frame.f_code.co_varnames, "")[0])


def tensor_in(graph: Any, tensor: Any) -> Any:
    """The tensor of a graph for one of a model, made when it is first asked for."""
    known: dict[int, Any] = graph.of_keras
    if id(tensor) not in known:
        with graph.as_default(), graph.at_root():
            for node in _calls_before(tensor, known):
                _write_down(graph, node)
    return known[id(tensor)]


def _calls_before(tensor: Any, known: dict[int, Any]) -> list[Any]:
    """The calls of layers that a tensor is made by, each after those that it needs."""
    found: dict[int, Any] = {}
    waiting = [(tensor, False)]
    while waiting:
        one, is_ready = waiting.pop()
        if id(one) in known or id(one.node) in found:
            continue
        if is_ready:
            found[id(one.node)] = one.node
            continue
        waiting.append((one, True))
        waiting.extend((source, False) for source in one.node.sources)
    return list(found.values())


def _write_down(graph: Any, node: Any) -> None:
    """Let a graph have the results of a call of a layer."""
    graph.kept_of_keras.append(node)  # and so its tensors, whose identities are known
    if node.sources:
        node.run(graph.of_keras)
        return
    for result in node.results:
        readings = {ANY_RANKS: graph.parameter(result.dtype, list(result.shape))}
        graph.of_keras[id(result)] = graph.source("Placeholder", result.name, readings)


def in_graph(graph: Any, arguments: Any) -> Any:
    """Arguments with the tensors of a graph in the places of those of models."""
    return map_leaves(arguments, lambda v: tensor_in(graph, v) if is_of_keras(v) else v)
