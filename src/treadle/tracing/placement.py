"""On which device a traced graph runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from treadle.core import errors
from treadle.core.devices import HOST, Device
from treadle.core.origin import Origin, at, user_origin
from treadle.core.spec import ResourceSpec, Spec
from treadle.core.tensor import moved
from treadle.graph.ir import Graph
from treadle.ops.state import Variable
from treadle.tracing import settings

Asked = Mapping[Device | None, Origin | None]


def place_graph(graph: Graph, arguments: Sequence[Spec], asked: Asked, inside: bool) -> None:
    """Choose the device of a graph: the first that is not the host among those that scopes
    (`td.device`) around its operations name and, where an operation is in no scope, those of its
    arguments and captures. Tensors from elsewhere are copied there: captured ones, which never
    change, once.

    Variables stay where they are. Where the device's programs cannot use their memory the graph
    runs where they are, as TensorFlow's soft placement has it.

    Args:
        arguments: the specs of the graph's arguments, with their devices.
        asked: see `GraphBuilder.asked`.
        inside: the graph is traced during another trace, whose tensors have the host's specs.

    Raises:
        InvalidArgumentError: variables are in the memories of several devices; or, without soft
            placement, scopes name several devices, or another one than that of the variables.
    """
    found: list[Device] = []
    for device in asked or (None,):
        found += _operands(graph, arguments, inside) if device is None else [device]
    graph.device = next((device for device in found if device is not HOST), HOST)
    homes = dict(_variables(graph, arguments))
    if any(home.storage is not graph.device.storage for home in homes):
        graph.device = _home(graph, homes)
    if not settings.soft_device_placement:
        _check_scopes(graph, asked, homes)
    graph.captures = [_at(capture, graph.device) for capture in graph.captures]


def _operands(graph: Graph, arguments: Sequence[Spec], inside: bool) -> Iterator[Device]:
    """The devices of arguments and captures."""
    for spec in arguments:
        if not inside or spec.device is not HOST:
            yield spec.device
    for capture in graph.captures:
        yield capture.spec.device


def _variables(graph: Graph, arguments: Sequence[Spec]) -> Iterator[tuple[Device, str]]:
    """The devices of variables, each with the name of one."""
    for param, spec in zip(graph.arguments, arguments, strict=True):
        if isinstance(spec, ResourceSpec):
            yield spec.device, f"argument {param.name!r}"
    for capture in graph.captures:
        if isinstance(capture, Variable):
            yield capture.spec.device, f"variable {capture.name!r}"


def _home(graph: Graph, homes: Mapping[Device, str]) -> Device:
    """The device where all variables are."""
    home, *others = homes
    for other in others:
        if other.storage is not home.storage:
            raise errors.InvalidArgumentError(
                None, None,
                f"{graph.name}: {homes[home]} is on {home}, and {homes[other]} on {other}: a "
                "compiled function works on the variables of one device; make them within one "
                f"td.device scope{at(user_origin())}",
            )  # fmt: skip
    return home


def _check_scopes(graph: Graph, asked: Asked, homes: Mapping[Device, str]) -> None:
    """Refuse scopes that name other devices than the one on which the graph runs."""
    for device, origin in asked.items():
        if device not in (None, graph.device):
            why = f" and {next(iter(homes.values()))} is there" if homes else ""
            raise errors.InvalidArgumentError(
                None, None,
                f"{graph.name}: Could not satisfy device specification '{device}': a compiled "
                f"function runs on one device, this one on {graph.device}{why}. "
                f"enable_soft_placement=0.{at(origin)}",
            )  # fmt: skip


def _at(capture: Any, device: Device) -> Any:
    fixed = isinstance(capture, Variable) or capture.is_symbolic
    return capture if fixed else moved(capture, device)
