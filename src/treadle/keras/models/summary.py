"""The table that ``model.summary()`` prints, by rich, as Keras draws it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from treadle.keras.layers.base import Layer, number_of_elements
from treadle.keras.models.network import Network

_NUMBER, _UNKNOWN, _CLASS = 34, 45, 33  # Keras's colors
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
_AROUND = 4  # columns of a terminal that a table leaves free


def _colored(text: Any, color: int = _NUMBER) -> str:
    return f"[color({color})]{text}[/]"


def _size(variables: Sequence[Any]) -> str:
    """The number of elements and their bytes."""
    size: float = sum(v.shape.num_elements() * v.dtype.size for v in variables)
    count = sum(v.shape.num_elements() for v in variables)
    for unit in _UNITS:
        if size < 1024 or unit is _UNITS[-1]:
            break
        size /= 1024
    return f"{_colored(f'{count:,}')} ({size:.2f} {unit})"


def _shape(shape: Any) -> str:
    """A shape, or a structure of shapes."""
    if shape is None:
        return "?"
    if isinstance(shape, dict):
        return "{" + ", ".join(f"{name}: {_shape(part)}" for name, part in shape.items()) + "}"
    if any(isinstance(part, list | tuple) for part in shape):
        inner = ", ".join(map(_shape, shape))
        return f"[{inner}]" if isinstance(shape, list) else f"({inner})"
    sizes = (_colored(d, _UNKNOWN if d is None else _NUMBER) for d in shape)
    return f"({', '.join(sizes)})"


def _is_chain(network: Network) -> bool:
    """Whether each call has only the results of the one before, and no layer is called twice."""
    before: Any = network.starts[id(network.sources[0])]
    for node in network.nodes:
        sources = node.sources
        if len(sources) != 1 or network.made_by(sources[0]) is not before:
            return False
        before = node
    layers = {id(node.layer) for node in network.nodes}
    return len(network.sources) == 1 and len(layers) == len(network.nodes)


def _connections(layer: Layer, network: Network) -> str:
    """Where the arguments of a layer's calls come from: layers, their calls and results."""
    found = []
    for tensor in (s for node in network.nodes if node.layer is layer for s in node.sources):
        node = network.made_by(tensor)
        assert node is not None
        call = node.layer._call_nodes.index(node)
        result = next(i for i, made in enumerate(node.results) if made is tensor)
        found.append(f"{escape(node.layer.name)}[{_colored(call)}][{_colored(result)}]")
    return ", ".join(found) or "-"


class _Rows:
    """The rows of a summary.

    Args:
        network: of a model whose layers are shown with their connections.
    """

    def __init__(self, network: Network | None, expand_nested: bool, show_trainable: bool) -> None:
        self.network, self.expand_nested = network, expand_nested
        self.show_trainable = show_trainable

    def of(self, layer: Layer, level: int = 0) -> Iterator[list[str]]:
        """The row of a layer, and those of the layers in it."""
        name = escape("   " * level + "└ " * bool(level) + layer.name)
        _, kind = getattr(layer, "_saved_as", None) or ("", type(layer).__name__)
        count = f"{_colored(f'{number_of_elements(layer):,}')}"
        row = [
            f"{name} ({_colored(escape(kind), _CLASS)})",
            _shape(layer.output_shape),
            count if layer.built else f"{_colored(0)} (unbuilt)",
        ]
        if self.network is not None:
            row.append(_connections(layer, self.network))
        if self.show_trainable:
            trained = ("Y", 34) if layer.trainable else ("N", 9)
            row.append(f"[bold]{_colored(*trained) if layer.weights else '-'}[/]")
        yield row
        for inner in getattr(layer, "layers", ()) if self.expand_nested else ():
            yield from self.of(inner, level + 1)


def _chosen(layers: Sequence[Layer], ends: Sequence[str] | None) -> Sequence[Layer]:
    """The layers between two that are named by regular expressions, with them.

    Raises:
        ValueError: `ends` is no pair of texts, or no layer has such a name.
    """
    if ends is None:
        return layers
    if len(ends) != 2 or not all(isinstance(end, str) for end in ends):
        raise ValueError(f"summary: layer_range is a pair of names of layers, got {ends!r}")
    first, last = (
        [n for n, layer in enumerate(layers) if re.match(end, layer.name)] for end in ends
    )
    if not first or not last:
        raise ValueError(
            f"Passed layer_names do not match the layer names in the model. Received: {ends}"
        )
    places = first[0], last[-1]
    return layers[min(places) : max(places) + 1]


def print_summary(
    model: Any, network: Network | None = None, line_length: int | None = None,
    positions: Sequence[float] | None = None, print_fn: Callable[[str], Any] | None = None,
    expand_nested: bool = False, show_trainable: bool = False,
    layer_range: Sequence[str] | None = None,
) -> None:  # fmt: skip
    """Print the layers of a model, their output shapes and numbers of weights.

    Args:
        network: the calls of a functional model, whose operations are shown as well.
        line_length: columns of the table; at most those of the terminal when omitted.
        positions: where the columns end, as parts of the line.
        print_fn: takes the text; it is printed when omitted.
        expand_nested: show the layers of inner models.
        show_trainable: show whether training changes layers.
        layer_range: names (regular expressions) of the first and of the last layer that are shown.

    Raises:
        ValueError: no layer has a name of `layer_range`, or the line is too short.
    """
    layers = model.layers if network is None else network.called
    shown = None if network is None or _is_chain(network) else network
    names = ["Layer (type)", "Output Shape", "Param #"]
    if shown is None:
        length, ends = 88, positions or [0.45, 0.80, 1.0]
    else:
        names.append("Connected to")
        length, ends = 108, positions or [0.3, 0.56, 0.74, 1.0]
    if show_trainable:
        names.append("Trainable")
        length, ends = length + 12, [*(end * 0.9 for end in ends), 1.0]
    length = line_length or min(length, shutil.get_terminal_size().columns - _AROUND)
    places = [0, *(int(end * length) for end in ends)]
    widths = [b - a for a, b in zip(places, places[1:], strict=False)]
    if min(widths) < 4:
        raise ValueError("Insufficient console width to print summary.")
    ways = {"Param #": "right", "Trainable": "center"}
    columns = [
        Column(name, justify=ways.get(name, "left"), width=width)  # type: ignore[arg-type]
        for name, width in zip(names, widths, strict=True)
    ]
    table = Table(*columns, width=length, show_lines=True)
    rows = _Rows(shown, expand_nested, show_trainable)
    for layer in _chosen(layers, layer_range):
        for row in rows.of(layer):
            table.add_row(*row)
    held = {"Trainable": model.trainable_weights, "Non-trainable": model.non_trainable_weights}
    if model.compiled and getattr(model.optimizer, "built", False):
        held["Optimizer"] = model.optimizer.variables
    console = Console(highlight=False) if print_fn is None else (
        Console(highlight=False, force_terminal=False, color_system=None)
    )  # fmt: skip
    if print_fn is not None:
        console.begin_capture()
    console.print(f'[bold]Model: "{escape(model.name)}"[/]')
    console.print(table)
    for title, variables in {"Total": sum(held.values(), []), **held}.items():
        console.print(f"[bold] {title} params: [/]{_size(variables)}")
    if print_fn is not None:
        print_fn(console.end_capture())
