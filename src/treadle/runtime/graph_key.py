"""A name for what a graph computes, the same in every process: the key of stored programs.

Everything that the compiler may look at is part of it; names of values and the user's lines are
not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core.digests import Digest, digest
from treadle.core.dtypes import DType
from treadle.core.shapes import SymbolicDim, TensorShape
from treadle.core.spec import Spec
from treadle.graph.ir import Graph, Region, Value


class NoKey(Exception):
    """The graph holds an object that exists in this process only."""


def graph_key(graph: Graph) -> str | None:
    """The key of a graph; None where it has none, as it calls a Python function, for example."""
    writer = _Writer()
    try:
        writer.graph(graph)
    except NoKey:
        return None
    return writer.digest.text


class _Writer:
    def __init__(self) -> None:
        self.digest = Digest()
        self.numbers: dict[Value, int] = {}
        self.specs: dict[Spec, str] = {}

    def graph(self, graph: Graph) -> None:
        kinds = [type(capture).__name__ for capture in graph.captures]
        self.write(f"captures {kinds} on {graph.device}")
        self.region(graph)

    def write(self, text: str) -> None:
        self.digest.update(f"{text}\n")

    def region(self, region: Region) -> None:
        self.write(f"region {self.define(region.params)}")
        for node in region.nodes:
            inputs = [self.numbers[v] for v in node.inputs]
            attrs = ",".join(f"{k}={self.literal(node.attrs[k])}" for k in sorted(node.attrs))
            self.write(f"{node.op.name} {inputs} {self.define(node.outputs)} {attrs}")
            for inner in node.regions:
                self.region(inner)
        self.write(f"results {[self.numbers[v] for v in region.results]}")

    def define(self, values: Sequence[Value]) -> str:
        specs = []
        for value in values:
            self.numbers[value] = len(self.numbers)
            specs.append(self.spec(value.spec))
        return ";".join(specs)

    def spec(self, spec: Spec) -> str:
        text = self.specs.get(spec)
        if text is None:
            dims = ",".join(map(str, spec.dims))
            text = self.specs[spec] = f"{type(spec).__name__} {spec.dtype.name}[{dims}]"
        return text

    def literal(self, value: Any) -> str:
        """An attribute's value; equal texts mean the same (1, 1.0 and True differ)."""
        match value:
            case None | bool() | int() | float() | complex() | str() | bytes():
                return f"{type(value).__name__}:{value!r}"
            case DType():
                return f"dtype:{value.name}"
            case np.ndarray() | np.generic():
                return self._array(np.asarray(value))
            case tuple() | list():
                return f"{type(value).__name__}({','.join(map(self.literal, value))})"
            case dict():
                pairs = (f"{self.literal(k)}:{self.literal(v)}" for k, v in value.items())
                return f"dict({','.join(pairs)})"
            case Spec():
                return self.spec(value)
            case SymbolicDim() | TensorShape():
                return f"{type(value).__name__}:{value}"
        raise NoKey(type(value).__name__)

    def _array(self, array: np.ndarray[Any, Any]) -> str:
        if array.dtype.hasobject:
            raise NoKey("objects")
        return f"array:{array.dtype.str}:{array.dtype.name}{array.shape}#{digest(array.tobytes())}"
