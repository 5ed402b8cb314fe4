"""Programs whose arguments or results are lists: tensors pass in and out of native code.

A list of elements of one shape passes as an array of all of them, other lists as `list_pack` gives
them. The list values that a caller has are made of these arrays, and taken apart, around the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.shapes import ANY
from treadle.core.spec import ListSpec, Spec, TensorSpec, has_element_shape
from treadle.graph.ir import Graph, Node, Value, clone_node
from treadle.graph.passes.element_shapes import infer_element_shapes
from treadle.graph.rewrite import clone_graph
from treadle.ops.collections.lists import LIST_STACK, LIST_UNSTACK
from treadle.ops.collections.ragged_lists import LIST_PACK, LIST_UNPACK
from treadle.ops.registry import Op, infer_outputs
from treadle.runtime.executable import AroundProgram, Executable


def _is_list(spec: Spec) -> bool:
    """Whether values of a spec are lists that pass as tensors: those whose rank is known."""
    return isinstance(spec, ListSpec) and has_element_shape(spec)


class ListExecutable(AroundProgram):
    """The program of a graph with lists as arguments or results.

    Args:
        compile: makes the program of the graph with tensors in their place.
    """

    def __init__(self, graph: Graph, compile: Callable[[Graph], Executable]) -> None:
        known = clone_graph(graph)
        infer_element_shapes(known)
        self._given = [p.spec for p in known.params]
        self._made = [v.spec for v in known.results]
        self._arguments = len(known.arguments)
        self._storage = known.device.storage
        super().__init__(graph, compile(_of_tensors(known)))

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        given: list[Any] = []
        for number, (value, spec) in enumerate(zip(arrays, self._given, strict=True)):
            if number < self._arguments and _is_list(spec):
                given += map(self._storage.from_host, _arrays_of(value, spec))
            else:
                given.append(value)
        found = iter(self.program.run(given))
        return [self._list_of(found, s) if _is_list(s) else next(found) for s in self._made]

    def _list_of(self, found: Any, spec: Spec) -> Any:
        """The list value of the next one or two of the program's results."""
        if _is_uniform(spec):
            return _form(LIST_UNSTACK)(self._storage.to_host(next(found)))
        values, shapes = (self._storage.to_host(next(found)) for _ in range(2))
        dims = tuple(d if isinstance(d, int) else ANY for d in spec.dims)
        return _form(LIST_UNPACK)(values, shapes, dims=dims)


def _arrays_of(value: Any, spec: Spec) -> Sequence[Any]:
    """The arrays that a list passes as."""
    if _is_uniform(spec):
        return [_form(LIST_STACK)(value, dims=spec.dims)]
    arrays: Sequence[Any] = _form(LIST_PACK)(value)
    return arrays


def _form(op: Op) -> Callable[..., Any]:
    """The NumPy form of an op."""
    assert op.eager is not None
    return op.eager


def _is_uniform(spec: Spec) -> bool:
    """Whether all elements have the shape that the spec tells."""
    return ANY not in spec.dims


def _of_tensors(graph: Graph) -> Graph:
    """The graph with tensors in place of the lists among its arguments and results."""
    made = Graph(graph.name, graph.device)
    made.captures = list(graph.captures)
    mapping: dict[Value, Value] = {}
    lists = []
    for number, param in enumerate(graph.params):
        if number < len(graph.arguments) and _is_list(param.spec):
            passed = [made.add_param(s, param.name + end) for s, end in _passed(param.spec)]
            lists.append((param, passed))
        else:
            mapping[param] = made.add_param(param.spec, param.name)
    for param, passed in lists:
        if _is_uniform(param.spec):
            (mapping[param],) = _append(made, LIST_UNSTACK, passed, {})
        else:
            (mapping[param],) = _append(made, LIST_UNPACK, passed, {"dims": param.spec.dims})
    for node in graph.nodes:
        clone_node(node, made, mapping)
    for value in graph.results:
        result, spec = mapping[value], value.spec
        if not _is_list(spec):
            made.results.append(result)
        elif _is_uniform(spec):
            attrs = {"dims": spec.dims, "count": None}
            made.results += _append(made, LIST_STACK, [result], attrs)
        else:
            made.results += _append(made, LIST_PACK, [result], {})
    return made


def _passed(spec: Spec) -> list[tuple[TensorSpec, str]]:
    """The specs of the tensors that a list argument passes as, and the ends of their names."""
    if _is_uniform(spec):
        return [(TensorSpec((None, *spec.dims), spec.dtype).with_fresh_symbols("n"), "")]
    values, shapes = infer_outputs(LIST_PACK, [spec], {})
    return [(values, ""), (shapes, "_shapes")]  # type: ignore[list-item]


def _append(graph: Graph, op: Op, inputs: Sequence[Value], attrs: dict[str, Any]) -> list[Value]:
    """A new node at the end of a graph, with the origin of the first input."""
    specs = infer_outputs(op, [v.spec for v in inputs], attrs)
    maker = inputs[0].node
    node = Node(op, inputs, attrs, specs, (), maker.origin if maker is not None else None)
    return graph.append(node).outputs
