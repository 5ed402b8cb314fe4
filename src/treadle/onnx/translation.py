"""From a graph to blocks of nodes of ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core.errors import UnimplementedError
from treadle.core.origin import at
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.names import OperationNames
from treadle.ops.onnx.call import Block, Constants, NoForm, OnnxCall
from treadle.ops.onnx.forms import give_forms
from treadle.ops.state import Variable


def translate(graph: Graph, results: Sequence[str]) -> Block:
    """A graph as nodes of ONNX; the parameters of the block are the graph's arguments.

    Args:
        results: what the results of the graph shall be called.

    Raises:
        UnimplementedError: an operation has no counterpart in ONNX.
    """
    give_forms()
    return _Translation(graph, results).block


class _Translation:
    def __init__(self, graph: Graph, results: Sequence[str]) -> None:
        self.block = Block(Constants())
        self._names = graph.names or OperationNames()
        for name in results:  # no value inside may take them
            self.block.constants.unique(name)
        values = [self.block.param(self._names.of(graph, p), p.spec) for p in graph.arguments]
        captures = zip(graph.params[len(values) :], graph.captures, strict=True)
        values += [self._captured(graph, param, captured) for param, captured in captures]
        found = self._region(graph, values, self.block, "")
        self.block.finish(found, [v.spec for v in graph.results], results, exactly=True)

    def _captured(self, graph: Graph, param: Value, captured: Any) -> str:
        """Tensors and variables that a function uses are constants of the model."""
        if isinstance(captured, Variable):  # those of Keras share short names
            name = captured.path or captured.name
        else:
            name = self._names.of(graph, param)
        array = np.asarray(captured.numpy())
        return self.block.constants.constant(array, name.removesuffix(":0"), merged=False)

    def _region(self, region: Region, inputs: Sequence[str], block: Block, scope: str) -> list[str]:
        values = dict(zip(region.params, inputs, strict=True))
        for param, name in values.items():
            block.learn(name, param.spec)
        for node in _needed(region):
            name = self._names.of(region, node)
            given = [values[v] for v in node.inputs]
            results = self._node(node, given, block, f"{scope}/{name}" if scope else name)
            for value, found in zip(node.outputs, results, strict=True):
                values[value] = found
                block.learn(found, value.spec)
        return [values[v] for v in region.results]

    def _node(self, node: Node, inputs: list[str], block: Block, name: str) -> Sequence[str]:
        if "gradient_mark" in node.op.tags:
            return inputs[: node.attrs["count"]]
        specs, outs = ([v.spec for v in values] for values in (node.inputs, node.outputs))
        origin = str(node.origin or "")
        call = OnnxCall(
            node.op, inputs, specs, outs, node.attrs, node.regions, block, name, origin,
            self._region,
        )  # fmt: skip
        before = len(block.nodes)
        try:
            if node.op.onnx is None:
                raise NoForm("ONNX has no counterpart")
            if any(spec.dtype.is_complex for spec in (*specs, *outs)):
                raise NoForm("ONNX computes no complex numbers")
            found = node.op.onnx(call)
        except NoForm as problem:
            text = f"{node.op.name} cannot be written in ONNX: {problem}{at(node.origin)}"
            raise UnimplementedError(None, node.op, text) from None
        results = [found] if isinstance(found, str) else list(found)
        if len(block.nodes) > before and results == block.nodes[-1].outputs:
            return block.rename_last(name)
        return results


def _needed(region: Region) -> list[Node]:
    """The nodes that the results need, that have effects, or that may tell a size."""
    wanted, found = set(region.results), []
    for node in reversed(region.nodes):
        tells = "dynamic" in node.op.tags
        if tells or node.has_effect or not wanted.isdisjoint(node.outputs):
            wanted.update(node.inputs)
            found.append(node)
    return found[::-1]
