"""Traces functions into graphs and compares compiled programs with the interpreter."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.core.context import recording, taping
from treadle.core.spec import TensorSpec
from treadle.graph.builder import GraphBuilder
from treadle.graph.ir import Graph
from treadle.runtime import Executable, Options, compile, interpreter


def trace(fn: Callable[..., Any], *specs: TensorSpec) -> Graph:
    """The graph of ``fn`` on symbolic tensors; None dims get symbols."""
    builder = GraphBuilder("test")
    params = [builder.parameter(s.with_fresh_symbols()) for s in specs]
    with recording(builder), taping(()):
        results = fn(*params)
        if not isinstance(results, list | tuple):
            results = [results]
        return builder.finish([td.convert_to_tensor(r) for r in results])


def trace_like(fn: Callable[..., Any], *arrays: Any) -> Graph:
    """The graph of ``fn`` for arguments of the arrays' shapes and dtypes."""
    return trace(fn, *(TensorSpec(np.shape(a), np.asarray(a).dtype) for a in arrays))


def captures(graph: Graph) -> list[Any]:
    return [c if isinstance(c, td.Variable) else c._buffer for c in graph.captures]


def native(graph: Graph, options: Options | None = None) -> Executable:
    """The compiled program; fails where the graph was not compiled."""
    executable = compile(graph, options)
    assert executable.mode == "native", executable.reason
    return executable


def both(
    graph: Graph,
    *arrays: Any,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    options: Options | None = None,
) -> Executable:
    """Run the program and the interpreter from the same state; results and variables agree."""
    values = [*(np.asarray(a) for a in arrays), *captures(graph)]
    variables = [v for v in values if isinstance(v, td.Variable)]
    start = [v.numpy().copy() for v in variables]
    wanted = interpreter.run(graph, values)
    wanted_state = [v.numpy().copy() for v in variables]
    for variable, array in zip(variables, start, strict=True):
        variable.assign(array)
    executable = native(graph, options)
    found = executable.run(values)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        same(one, other, rtol, atol)
    for variable, array in zip(variables, wanted_state, strict=True):
        same(np.asarray(variable.numpy()), array, rtol, atol)
    return executable


def same(found: Any, wanted: Any, rtol: float, atol: float) -> None:
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if wanted.dtype.kind in "fcV":
        wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(found.astype(wide), wanted.astype(wide), rtol, atol)
    else:
        np.testing.assert_array_equal(found, wanted)


def inputs(*shapes: Sequence[int], seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]
