"""Nodes of TensorFlow's graphs as data: their order, the names of what they read, attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from treadle.compat.graph_messages import message
from treadle.compat.tensorflow_ops import RESULTS
from treadle.core import errors, wire
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.ops.strings.tensors import NUMBERS, unpacked

_MOST = 1 << 31  # bytes of a constant
_DTYPES = {number: dtype for dtype, number in NUMBERS.items()}


def tensor_name(name: str) -> str:
    """The name of a tensor: that of an operation means its first result."""
    return name if ":" in name else f"{name}:0"


def in_order(nodes: Sequence[Any], given: set[str]) -> Iterator[Any]:
    """Nodes behind those that they read, else as they are.

    Raises:
        ValueError: two have one name, or a node comes from itself.
    """
    by_name = {n.name: n for n in nodes}
    if len(by_name) != len(nodes):
        raise ValueError(f"two operations have one name{at(user_origin())}")
    done: dict[str, bool] = {}  # False: what it reads is being looked at
    for first in nodes:
        waiting = [first.name]
        while waiting:
            node = by_name[waiting[-1]]
            if done.get(node.name):
                waiting.pop()
                continue
            before = [
                n.removeprefix("^").partition(":")[0]
                for n in node.input
                if n.startswith("^") or tensor_name(n) not in given
            ]
            before = [n for n in before if n in by_name and not done.get(n)]
            if done.get(node.name) is False and before:
                text = f"operation {node.name!r} comes from its own result"
                raise ValueError(f"{text}{at(user_origin())}")
            done[node.name] = not before
            if before:
                waiting += before
            else:
                waiting.pop()
                yield node


# -- nodes of functions ----------------------------------------------------------------------------


def plain_node(node: Any, arguments: set[str], nodes: Sequence[Any]) -> Any:
    """A node of a function, with names of tensors as in graphs: there ``op:output:number``, where
    the number counts within that output, is ``op:number``."""
    made = message("NodeDef")()
    made.CopyFrom(node)
    del made.input[:]
    control = [n for n in node.input if n.startswith("^") and n[1:] not in arguments]
    inputs = [n for n in node.input if not n.startswith("^")]
    made.input.extend([*output_names(inputs, arguments, nodes), *control])
    return made


def output_names(names: Iterable[str], arguments: set[str], nodes: Sequence[Any]) -> list[str]:
    """The names of tensors of a function as in graphs."""
    types = {n.name: n.op for n in nodes}
    found = []
    for name in names:
        op, *rest = name.split(":")
        if op in arguments or not rest:
            found.append(f"{op}:0")
            continue
        outputs = RESULTS.get(types.get(op, ""), ())
        first = outputs.index(rest[0]) if rest[0] in outputs else 0
        found.append(f"{op}:{first + int(rest[-1])}")
    return found


# -- attributes ------------------------------------------------------------------------------------


def node_attributes(node: Any) -> dict[str, Any]:
    """The attributes of a node as values of Python.

    Raises:
        ValueError: a constant is damaged, or has a dtype that is not known.
    """
    try:
        return {
            key: _value(value) for key, value in node.attr.items()
            if key[:1] != "_" or key == "_trainable"
        }  # fmt: skip
    except (wire.WireError, ValueError, KeyError) as error:
        raise ValueError(
            f"operation {node.name!r} is damaged: {error}{at(user_origin())}"
        ) from None


def _value(attr: Any) -> Any:
    kind = attr.WhichOneof("value")
    if kind is None:
        return None
    value = getattr(attr, kind)
    if kind == "list":
        fields = [(f.name, v) for f, v in value.ListFields()]
        return [_single(name, v) for name, vs in fields for v in vs]
    return _single(kind, value)


def _single(kind: str, value: Any) -> Any:
    match kind:
        case "s":
            return value.decode("utf-8", "surrogateescape")
        case "type":
            return _DTYPES.get(value % 100, value)
        case "shape":
            return shape_of(value)
        case "tensor":
            return array_of(value)
        case "func":
            return value.name
    return value


def dtype_of(number: int) -> DType:
    """The dtype that TensorFlow gives a number.

    Raises:
        UnimplementedError: treadle does not have it.
    """
    if number not in _DTYPES:
        raise errors.UnimplementedError(
            None, None, f"values of TensorFlow's dtype {number} are not read{at(user_origin())}"
        )
    return _DTYPES[number]


def shape_of(shape: Any) -> list[int | None] | None:
    """The dims of a message; None where the rank is not known."""
    if shape.unknown_rank:
        return None
    return [None if d.size < 0 else d.size for d in shape.dim]


def array_of(tensor: Any) -> Any:
    """The elements of a constant, of which one may stand for many."""
    count = 1
    for dim in tensor.tensor_shape.dim:
        count *= max(dim.size, 0)
    dtype = _DTYPES.get(tensor.dtype)
    if dtype is None:
        raise ValueError(f"a constant of the unknown dtype {tensor.dtype}")
    if count * max(dtype.size, 1) > _MOST:
        raise ValueError(f"a constant of {count} elements")
    return unpacked(tensor.SerializeToString())[0]
