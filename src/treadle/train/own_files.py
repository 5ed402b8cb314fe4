"""treadle's own checkpoints: one file of safetensors with the graph of objects in its table.

Strings are kept as bytes with their lengths in front, complex numbers as pairs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.train import safetensors
from treadle.train.nodes import Node, Slot
from treadle.train.safetensors import SUFFIX, Array

_GRAPH = "treadle.graph"
_KINDS = "treadle.kinds"  # the shapes of strings, and the names of complex dtypes
_HALVES = {"complex64": np.float32, "complex128": np.float64}


def write(
    prefix: str, nodes: Sequence[Node], values: Mapping[str, Array], texts: Mapping[str, str]
) -> None:
    """Write a checkpoint; `atomic.write` says which errors there are.

    Args:
        values: by their names; arrays of objects hold bytes.
        texts: further texts to keep.
    """
    arrays, kinds = {}, {}
    for name, value in values.items():
        if value.dtype == object:
            arrays[name], kinds[name] = _packed(value), ["string", list(value.shape)]
        elif value.dtype.name in _HALVES:
            half = _HALVES[value.dtype.name]
            arrays[name] = np.stack([value.real, value.imag], -1).astype(half, copy=False)
            kinds[name] = [value.dtype.name, list(value.shape)]
        else:
            arrays[name] = value
    described = [
        {"children": n.children, "values": n.values, "name": n.name, "slots": n.slots}
        for n in nodes
    ]
    own = {_GRAPH: json.dumps(described), _KINDS: json.dumps(kinds)}
    safetensors.write(Path(prefix + SUFFIX), arrays, {**texts, **own}, "checkpoint")


def _packed(strings: Array) -> Array:
    """Strings as bytes: the length of each in eight bytes, then all of them."""
    flat = [bytes(s) if isinstance(s, bytes) else str(s).encode() for s in strings.reshape(-1)]
    lengths = b"".join(len(s).to_bytes(8, "little") for s in flat)
    return np.frombuffer(lengths + b"".join(flat), np.uint8)


class OwnReader:
    """A checkpoint of treadle, or any file of safetensors, which has no graph.

    Attributes:
        nodes: the graph of objects, or None.
        texts: what else is in the file.
    """

    def __init__(self, path: Path) -> None:
        self._file = safetensors.File(path)
        self.name = str(path)
        self.texts = self._file.texts
        try:
            self._kinds: dict[str, Any] = json.loads(self.texts.get(_KINDS, "{}"))
            graph = json.loads(self.texts.get(_GRAPH, "null"))
            self.nodes = None if graph is None else [_node(described) for described in graph]
        except (ValueError, KeyError, TypeError) as error:
            raise self._file.damage(f"its index cannot be understood ({error!r})") from None

    def entries(self) -> dict[str, tuple[tuple[int, ...], DType]]:
        """The shapes and dtypes of all values."""
        found = {}
        for name, entry in self._file.entries.items():
            kind, shape = self._kinds.get(name, (None, entry.shape))
            dtype = entry.dtype if kind is None else getattr(dtypes, kind)
            found[name] = tuple(shape), dtypes.as_dtype(dtype)
        return found

    def read(self, name: str) -> Array:
        """A value.

        Raises:
            DataLossError: it is damaged.
        """
        array = self._file.read(name)
        kind, shape = self._kinds.get(name, (None, None))
        if kind is None:
            return array
        if kind == "string":
            return self._unpacked(name, array, shape)
        whole: Array = array.view(kind).reshape(shape)
        return whole

    def _unpacked(self, name: str, array: Array, shape: Any) -> Array:
        count = int(np.prod(shape, dtype=np.int64))
        lengths = array[: 8 * count].view("<u8")
        if len(lengths) != count or int(lengths.sum()) != len(array) - 8 * count:
            raise errors.DataLossError(
                None, None, f"{self.name} is damaged: the lengths of the strings of {name!r}"
            )
        ends = np.cumsum(lengths) + 8 * count
        data = array.tobytes()
        strings = np.empty(count, object)
        for i, (end, length) in enumerate(zip(ends.tolist(), lengths.tolist(), strict=True)):
            strings[i] = data[end - length : end]
        return strings.reshape(shape)


def _node(described: Any) -> Node:
    slots = [Slot(int(of), str(name), int(value)) for of, name, value in described["slots"]]
    return Node(dict(described["children"]), dict(described["values"]), described["name"], slots)
