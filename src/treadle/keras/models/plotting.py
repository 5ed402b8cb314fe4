"""Models as pictures, drawn by Graphviz through pydot."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from treadle.keras.layers.wrappers import Wrapper


def _pydot() -> Any:
    """The module pydot.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import pydot
    except ImportError:
        raise ImportError(
            "Models are drawn by pydot and Graphviz: pip install pydot, and install Graphviz "
            "(https://graphviz.org/download). model.summary() needs neither"
        ) from None
    return pydot


def _cell(text: str, colspan: int = 1) -> str:
    return f'<td bgcolor="white" colspan="{colspan}"><font point-size="14">{text}</font></td>'


def _shape(structure: Any) -> str:
    if isinstance(structure, dict):
        return ", ".join(f"{key}: {_shape(value)}" for key, value in structure.items())
    if isinstance(structure, list | tuple):
        return ", ".join(map(_shape, structure))
    return str(tuple(structure.shape)) if hasattr(structure, "shape") else "?"


def _label(layer: Any, shown: dict[str, bool]) -> str:
    """The table of a layer, in Graphviz's HTML."""
    kind = type(layer).__name__
    cells = []
    if shown["shapes"]:
        node = layer._call_nodes[0] if layer._call_nodes else None
        if node is not None and node.sources:
            cells.append(f"Input shape: <b>{_shape(node.sources)}</b>")
        cells.append(f"Output shape: <b>{_shape(node.outputs) if node else '?'}</b>")
    if shown["dtype"]:
        cells.append(f"Output dtype: <b>{layer.compute_dtype}</b>")
    if shown["trainable"] and layer.weights:
        cells.append(f"Trainable: <b>{layer.trainable}</b>")
    width = max(1, len(cells))
    title = f"<b>{layer.name}</b> ({kind})" if shown["names"] else f"<b>{kind}</b>"
    rows = [
        f'<tr><td colspan="{width}" bgcolor="black"><font point-size="16" color="white">{title}'
        "</font></td></tr>"
    ]
    activation = getattr(layer, "activation", None)
    if shown["activations"] and activation is not None:
        name = getattr(activation, "__name__", str(activation))
        rows.append(f"<tr>{_cell(f'Activation: <b>{name}</b>', width)}</tr>")
    if cells:
        rows.append(f"<tr>{''.join(map(_cell, cells))}</tr>")
    table = '<table border="0" cellborder="1" bgcolor="black" cellpadding="10">'
    return f"<{table}{''.join(rows)}</table>>"


def _edges(model: Any) -> list[tuple[Any, Any]]:
    """Which layer's results which layer is called on."""
    network = getattr(model, "_layer_network", None)
    if network is None:
        return list(zip(model.layers, model.layers[1:], strict=False))
    return [
        (before.layer, node.layer)
        for node in network.nodes for source in node.sources
        if (before := network.made_by(source)) is not None
    ]  # fmt: skip


def model_to_dot(
    model: Any, show_shapes: bool = False, show_dtype: bool = False, show_layer_names: bool = True,
    rankdir: str = "TB", expand_nested: bool = False, dpi: int | None = 200,
    subgraph: bool = False, show_layer_activations: bool = False, show_trainable: bool = False,
    splines: str = "ortho", **kwargs: Any,
) -> Any:  # fmt: skip
    """A picture of a model as a graph of pydot.

    Args:
        splines: how edges are drawn, as graphviz calls it.
        show_shapes, show_dtype, show_layer_names, show_layer_activations, show_trainable: what is
            said of layers.
        rankdir: "TB" from top to bottom, "LR" from left to right.
        expand_nested: show the layers of inner models.
        dpi: dots of an inch.
        subgraph: as a cluster of another graph.

    Raises:
        ImportError: pydot is not installed.
        ValueError: the model is not built.
    """
    pydot = _pydot()
    if not model.built:
        raise ValueError(
            "This model has not yet been built. Build the model first by calling `build()` or by "
            "calling the model on a batch of data."
        )
    shown = {
        "shapes": show_shapes, "dtype": show_dtype, "names": show_layer_names,
        "activations": show_layer_activations, "trainable": show_trainable,
    }  # fmt: skip
    dot = pydot.Cluster(graph_name=model.name) if subgraph else pydot.Dot()
    if subgraph:
        dot.set("label", model.name)
    else:
        dot.set("rankdir", rankdir)
        dot.set("concentrate", True)
        dot.set("dpi", dpi)
        dot.set("splines", splines)
        dot.set_node_defaults(shape="record")
    network = getattr(model, "_layer_network", None)
    ends: dict[int, tuple[int, int]] = {}  # what edges to and from a layer lead to
    for layer in model.layers if network is None else network.called:
        inner = layer.layer if isinstance(layer, Wrapper) else layer
        if expand_nested and hasattr(inner, "layers") and inner.layers:
            dot.add_subgraph(model_to_dot(
                inner, show_shapes, show_dtype, show_layer_names, rankdir, expand_nested, dpi,
                True, show_layer_activations, show_trainable,
            ))  # fmt: skip
            ends[id(layer)] = id(inner.layers[0]), id(inner.layers[-1])
        else:
            dot.add_node(pydot.Node(str(id(layer)), label=_label(layer, shown)))
            ends[id(layer)] = id(layer), id(layer)
    for source, target in dict.fromkeys(_edges(model)):
        start, end = str(ends[id(source)][1]), str(ends[id(target)][0])
        edge = pydot.Edge(start, end)
        edge.set("penwidth", "2")
        dot.add_edge(edge)
    return dot


def plot_model(
    model: Any, to_file: Any = "model.png", show_shapes: bool = False, show_dtype: bool = False,
    show_layer_names: bool = False, rankdir: str = "TB", expand_nested: bool = False,
    dpi: int | None = 200, show_layer_activations: bool = False, show_trainable: bool = False,
    splines: str = "ortho", **kwargs: Any,
) -> None:  # fmt: skip
    """Draw a model into a file; the other arguments are those of `model_to_dot`.

    Args:
        to_file: its ending says the format: png, svg, pdf, dot.

    Raises:
        ImportError: pydot or Graphviz is not installed.
        ValueError: the model is not built.
    """
    dot = model_to_dot(
        model, show_shapes, show_dtype, show_layer_names, rankdir, expand_nested, dpi,
        show_layer_activations=show_layer_activations, show_trainable=show_trainable,
        splines=splines,
    )  # fmt: skip
    path = Path(os.fspath(to_file))
    try:
        dot.write(str(path), format=path.suffix[1:] or "png")
    except OSError as error:
        raise ImportError(
            "Graphviz is not installed: it draws models (https://graphviz.org/download)"
        ) from error
