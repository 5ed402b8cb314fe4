"""Traces a function of tensors and runs the graph: by the interpreter, and by lowering rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core import nest
from treadle.core.context import recording
from treadle.core.dtypes import from_numpy
from treadle.core.shapes import substitute
from treadle.core.spec import TensorSpec
from treadle.graph.builder import GraphBuilder
from treadle.graph.ir import Graph, Node
from treadle.kernel.ir import Axis, Buffer, Kernel, as_index, load, store
from treadle.kernel.reference import evaluate
from treadle.kernel.verifier import verify
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.lowering import Compute
from treadle.runtime.interpreter import run
from treadle.runtime.scope import Scope


def trace(fn: Callable[..., Any], arrays: Sequence[Any], symbolic: bool = False) -> Graph:
    """The graph of ``fn(*tensors)``; with `symbolic`, no dim of the arguments is known.

    Dims of 1 stay known: a symbolic dim never broadcasts.
    """
    builder = GraphBuilder("f")
    params = []
    for array in arrays:
        dims = [None if symbolic and d != 1 else d for d in array.shape]
        spec = TensorSpec(dims, from_numpy(array.dtype))
        params.append(builder.parameter(spec.with_fresh_symbols("s")))
    with recording(builder):
        results = [convert_to_tensor(r) for r in nest.flatten(fn(*params))]
    return builder.finish(results)


def run_traced(fn: Callable[..., Any], arrays: Sequence[Any], symbolic: bool = False) -> list[Any]:
    """The results of the traced function under the interpreter."""
    graph = trace(fn, arrays, symbolic)
    captured = [c._buffer if hasattr(c, "_buffer") else c for c in graph.captures]
    return run(graph, [*arrays, *captured])


def check_lowering(
    fn: Callable[..., Any], arrays: Sequence[Any], symbolic: bool, tolerance: float
) -> int:
    """Every node that has a lowering rule computes by it what its NumPy code does.

    Returns the number of kernels that were compared.
    """
    graph = trace(fn, arrays, symbolic)
    captured = [c._buffer for c in graph.captures]
    values, scope, count = {}, Scope(), 0
    for param, array in zip(graph.params, [*arrays, *captured], strict=True):
        values[param] = array
        scope.bind(param.spec, array.shape)
    for node in graph.nodes:
        inputs = [values[v] for v in node.inputs]
        results = _eager(node, inputs, scope)
        for number, (value, result) in enumerate(zip(node.outputs, results, strict=True)):
            scope.bind(value.spec, result.shape)
            values[value] = result
            if isinstance(node.op.lower, Compute) and not _complex(node):
                lowered = _by_kernel(node, inputs, number, scope)
                assert lowered.dtype == result.dtype, node
                np.testing.assert_allclose(
                    lowered.astype(_wide(lowered)), result.astype(_wide(result)),
                    rtol=tolerance, atol=tolerance, err_msg=repr(node),
                )  # fmt: skip
                count += 1
    return count


def _complex(node: Node) -> bool:
    return any(v.spec.dtype.is_complex for v in (*node.inputs, *node.outputs))


def _wide(array: Any) -> Any:
    return (
        np.float64 if array.dtype.kind not in "iubfc" or array.dtype.itemsize == 2 else array.dtype
    )


def _eager(node: Node, inputs: list[Any], scope: Scope) -> list[Any]:
    attrs = {k: scope.resolve(v) for k, v in node.attrs.items()}
    with np.errstate(all="ignore"):
        result = node.op.eager(*inputs, **attrs)
    results = result if isinstance(result, tuple) else (result,)
    for array, value in zip(results, node.outputs, strict=True):
        array = np.asarray(array)
        shape = tuple(substitute(d, scope.values) for d in value.spec.dims)
        assert array.dtype == value.spec.dtype.np_dtype, f"{node} gave {array.dtype}"
        if all(isinstance(d, int) for d in shape):
            assert array.shape == shape, f"{node} gave shape {array.shape}"
    return [np.asarray(r) for r in results]


class _Call:
    """What a lowering rule sees: inputs read from buffers."""

    def __init__(self, node: Node, number: int) -> None:
        self.specs = [v.spec for v in node.inputs]
        self.out, self.which, self.attrs = node.outputs[number].spec, number, node.attrs
        self.buffers = [Buffer(f"in{k}", s.dtype, s.dims) for k, s in enumerate(self.specs)]
        self.inputs = [self._access(b) for b in self.buffers]
        self.reduced: list[Axis] = []

    @staticmethod
    def _access(buffer: Buffer) -> Any:
        return lambda index, valid=None, fill=0: load(buffer, *index, valid=valid, fill=fill)

    def axis(self, extent: Any) -> Axis:
        self.reduced.append(Axis(f"r{len(self.reduced)}", extent))
        return self.reduced[-1]


def _by_kernel(node: Node, inputs: list[Any], number: int, scope: Scope) -> Any:
    call = _Call(node, number)
    axes = [Axis(f"o{i}", d) for i, d in enumerate(call.out.dims)]
    value = node.op.lower.rule(call, [as_index(a) for a in axes])
    assert value.dtype is call.out.dtype, f"{node} is lowered to {value.dtype}"
    target = Buffer("out", call.out.dtype, call.out.dims)
    kernel = Kernel(
        (*axes, *call.reduced), (*call.buffers, target), (store(target, *axes, value=value),)
    )
    verify(kernel)
    return evaluate(kernel, dict(zip(call.buffers, inputs, strict=True)), scope.values)[target]
