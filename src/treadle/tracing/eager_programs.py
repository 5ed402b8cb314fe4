"""Eager operations on devices whose memory NumPy does not see: programs of one operation.

Programs are kept by operation, attributes and the specs of operands. Those that differ in dims only
share one, as the traces of a function do.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from treadle.core import dtypes, locks
from treadle.core.devices import Device
from treadle.core.dtypes import DType
from treadle.core.shapes import SymbolicDim, TensorShape
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor, buffer_of, from_buffer
from treadle.graph.ir import Graph, Node
from treadle.ops.registry import Op, infer_outputs
from treadle.runtime.devices import backend
from treadle.runtime.executable import Executable
from treadle.tracing.programs import Programs

MOST_PROGRAMS = 4096  # that are kept: those used last
PLAIN = (bool, int, float, str, DType, TensorShape, SymbolicDim, type(None))

_programs = Programs()
_made: OrderedDict[Hashable, tuple[Graph, Executable]] = OrderedDict()
_lock = locks.reentrant_lock()


def run_on_device(
    op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any], device: Device
) -> tuple[Tensor, ...] | None:
    """The results of an op as a device computes them; None for an op whose NumPy form is to run:
    one that the device has no code for, with effects, or on strings or lists."""
    if op.effect is not None or not backend(device).runs_eagerly(op):
        return None
    key = _key(op, inputs, attrs, device)
    if key is None:
        return None
    with _lock:
        found = _made.get(key)
        if found is None:
            found = _made[key] = _program(op, inputs, attrs, device)
            if len(_made) > MOST_PROGRAMS:
                _made.popitem(last=False)
        else:
            _made.move_to_end(key)
    results = found[1].run([buffer_of(x, device) for x in inputs])
    device.storage.raise_failures()
    return tuple(from_buffer(result, device) for result in results)


def _key(
    op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any], device: Device
) -> Hashable | None:
    """What decides the program; None where an operand is no array of numbers, or an attribute is
    no plain value."""
    for x in inputs:
        if not isinstance(x, Tensor) or not isinstance(x.spec, TensorSpec):
            return None
        if x.spec.dtype is dtypes.string:
            return None
    if not all(map(is_plain, attrs.values())):
        return None
    values = tuple((name, typed(value)) for name, value in attrs.items())
    return op, device, tuple((x.spec.dtype, x.spec.dims) for x in inputs), values


def is_plain(value: Any) -> bool:
    """Whether an attribute of an operation says all about itself: it may be part of a key."""
    if isinstance(value, tuple | list):
        return all(map(is_plain, value))
    return isinstance(value, PLAIN)


def typed(value: Any) -> Hashable:
    """A value with its type: equal numbers of several types are several attributes, and so are the
    two zeros."""
    if isinstance(value, tuple | list):
        return (type(value), *map(typed, value))
    if isinstance(value, float) and value == 0:
        return type(value), str(value)
    return type(value), value


def _program(
    op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any], device: Device
) -> tuple[Graph, Executable]:
    """A graph of one operation, and its program."""
    graph = graph_of(op, [TensorSpec(x.spec.dims, x.spec.dtype) for x in inputs], attrs, device)
    names = tuple((name, type(value)) for name, value in attrs.items())
    return graph, _programs.compile(graph, (op, device, names))


def graph_of(
    op: Op,
    specs: Sequence[TensorSpec],
    attrs: Mapping[str, Any],
    device: Device,
    operands: int | None = None,
) -> Graph:
    """A graph of one node, without the line of a user.

    Args:
        operands: how many of the parameters are the op's, by default all; others have dims only.

    Raises:
        OpError: what the shape rule of the op says of the operands.
    """
    graph = Graph(op.name, device)
    params = [graph.add_param(spec, f"x{n}") for n, spec in enumerate(specs)][:operands]
    outputs = infer_outputs(op, specs[:operands], attrs)
    node = graph.append(Node(op, params, attrs, outputs, (), None))
    graph.results = list(node.outputs)
    return graph
