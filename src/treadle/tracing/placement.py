"""On which device a traced graph runs, and how eager operations run there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from treadle.core import errors
from treadle.core.context import home
from treadle.core.devices import HOST, Device
from treadle.core.origin import Origin, at
from treadle.core.spec import ResourceSpec, Spec, TensorSpec
from treadle.core.tensor import Tensor, is_drawn, moved
from treadle.graph.ir import Graph
from treadle.ops.random.state import Stream
from treadle.ops.registry import Op, large, set_device_execution
from treadle.ops.state import Variable
from treadle.tracing import settings
from treadle.tracing.mirrors import reachable

Asked = Mapping[Device | None, Origin | None]


def place_graph(graph: Graph, arguments: Sequence[Spec], asked: Asked, inside: bool) -> None:
    """Choose the device of a graph: the first that is not the host among those that scopes
    (`td.device`) around its operations name and, where an operation is in no scope, those of its
    arguments and captures, or else `home` where the graph has values that are drawn there. What it
    captures elsewhere is copied there: tensors, which never change, once; variables for each call
    (`treadle.tracing.mirrors`). Random streams have a state on each device.

    Args:
        arguments: the specs of the graph's arguments, with their devices.
        asked: see `GraphBuilder.asked`.
        inside: the graph is traced during another trace, whose tensors have the host's specs.

    Raises:
        InvalidArgumentError: scopes name several devices, and soft placement is off.
    """
    found: list[Device] = []
    for device in asked or (None,):
        found += _operands(graph, arguments, inside) if device is None else [device]
    if not asked or None in asked:
        found.append(_unplaced(graph, arguments))
    graph.device = next((device for device in found if device is not HOST), HOST)
    if graph.devices:
        graph.device = graph.devices[0]
    if not settings.soft_device_placement:
        _check_scopes(graph, asked)
    if not graph.devices:  # else programs of several devices take them, see `tracing.replicated`
        graph.captures = [_at(capture, graph.device) for capture in graph.captures]


def _operands(graph: Graph, arguments: Sequence[Spec], inside: bool) -> Iterator[Device]:
    """The devices of arguments and captures."""
    for spec in arguments:
        if not inside or spec.device is not HOST:
            yield spec.device
    for capture in graph.captures:
        if not isinstance(capture, Stream):
            yield capture.spec.device


def _unplaced(graph: Graph, arguments: Sequence[Spec]) -> Device:
    """The device of a graph that neither scopes nor operands place: the host where variables that
    would be drawn away are there, since somebody has placed them."""
    device = home()
    if device is HOST:
        return HOST
    given = [*arguments, *(c.spec for c in graph.captures if not isinstance(c, Stream))]
    if any(isinstance(s, ResourceSpec) and is_drawn(s.dtype) for s in given):
        return HOST
    values = [*graph.params, *(value for node in graph.walk() for value in node.outputs)]
    specs = [v.spec for v in values if isinstance(v.spec, TensorSpec)]
    return device if any(is_drawn(spec.dtype) for spec in specs) else HOST


def _check_scopes(graph: Graph, asked: Asked) -> None:
    """Refuse scopes that name other devices than the one on which the graph runs."""
    for device, origin in asked.items():
        if device not in (None, graph.device, *graph.devices):
            raise errors.InvalidArgumentError(
                None, None,
                f"{graph.name}: Could not satisfy device specification '{device}': a compiled "
                f"function runs on one device, this one on {graph.device}. "
                f"enable_soft_placement=0.{at(origin)}",
            )  # fmt: skip


def _at(capture: Any, device: Device) -> Any:
    """A capture as programs of the device use it."""
    if isinstance(capture, Stream):
        return capture.on(device)
    if isinstance(capture, Variable):
        return reachable(capture, device)
    return capture if capture.is_symbolic else moved(capture, device)


def _run_on_device(
    op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any], device: Device
) -> tuple[Tensor, ...] | None:
    """See `treadle.tracing.eager_programs`."""
    if device.storage is HOST.storage:
        return None  # NumPy works in its memory
    from treadle.tracing.eager_programs import run_on_device

    return run_on_device(op, inputs, attrs, device)


def _run_large(op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """See `treadle.tracing.large_operations`."""
    from treadle.tracing.large_operations import run_large

    large.run = run_large
    return run_large(op, arrays, attrs)


set_device_execution(_run_on_device)
large.run = _run_large
