"""On which device a traced graph runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from treadle.core import errors
from treadle.core.devices import HOST, Device
from treadle.core.origin import at, user_origin
from treadle.core.spec import Spec
from treadle.core.tensor import moved
from treadle.graph.ir import Graph
from treadle.ops.state import Variable


def place_graph(graph: Graph, arguments: Sequence[Spec], inside: bool) -> None:
    """Let a graph run where its arguments and the variables are that it captures, else where the
    first captured tensor is that is not on the host. Captured tensors, which never change, are
    copied there once.

    Args:
        arguments: the specs of the graph's arguments, with their devices.
        inside: the graph is traced during another trace, whose tensors have the host's specs.

    Raises:
        InvalidArgumentError: arguments and variables are on several devices.
    """
    fixed = dict(_fixed(graph, arguments, inside))
    if len(fixed) > 1:
        (here, first), (there, second) = list(fixed.items())[:2]
        raise errors.InvalidArgumentError(
            None, None,
            f"{graph.name}: {first} is on {here}, and {second} on {there}: a compiled function "
            f"works on the tensors and variables of one device{at(user_origin())}",
        )  # fmt: skip
    away = [c.spec.device for c in graph.captures if c.spec.device is not HOST]
    graph.device = next(iter([*fixed, *away]), HOST)
    graph.captures = [_at(capture, graph.device) for capture in graph.captures]


def _fixed(graph: Graph, arguments: Sequence[Spec], inside: bool) -> Iterator[tuple[Device, str]]:
    """The devices that cannot be chosen, and what is there."""
    for param, spec in zip(graph.arguments, arguments, strict=True):
        if not inside or spec.device is not HOST:
            yield spec.device, f"argument {param.name!r}"
    for capture in graph.captures:
        if isinstance(capture, Variable):
            yield capture.spec.device, f"variable {capture.name!r}"


def _at(capture: Any, device: Device) -> Any:
    fixed = isinstance(capture, Variable) or capture.is_symbolic
    return capture if fixed else moved(capture, device)
