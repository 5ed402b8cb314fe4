"""Nodes of a GraphDef as operations of a graph. Reading runs no code of the graph's author."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import treadle as td
from treadle.compat.graph_nodes import (
    in_order,
    node_attributes,
    output_names,
    plain_node,
    tensor_name,
)
from treadle.compat.tensorflow_state import OPERATIONS, VARIABLES, run_state
from treadle.compat.tensorflow_types import is_known, run_operation
from treadle.compat.v1.call_data import operation_of, recorded_again
from treadle.compat.v1.graph import Graph
from treadle.compat.v1.recording import in_graphs
from treadle.compat.v1.values import ANY_RANKS, Operation
from treadle.compat.v1.variables import Variable, is_variable_initialized, note_write
from treadle.core.origin import at, user_origin
from treadle.core.shapes import UNKNOWN_RANK

CALL = "_treadle_call"  # the attribute of a call as data
_BRANCHES, _LOOPS = ("If", "StatelessIf"), ("While", "StatelessWhile")
_READING = ("ReadVariableOp", "VariableShape", "ResourceGather", "ResourceGatherNd")
_INITIALIZED = ("VarIsInitializedOp", "IsVariableInitialized")
_FIRST_VALUES = ("Assign", "AssignVariableOp")  # those that need no value before
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")

in_graphs(run_operation, run_state, td.cond, td.while_loop)


class Reading:
    """Nodes that become operations of a graph: those of a GraphDef, or of one of its functions.

    Attributes:
        found: tensors by their names, as ``name:0``; `operations`: by theirs.
        used: the names of tensors that nodes read.
        more_types: the types of nodes that a subclass reads.
    """

    more_types: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self, graph: Graph, library: Any, found: Mapping[str, Any], functions: tuple[str, ...] = ()
    ) -> None:
        self._graph, self._library = graph, {f.signature.name: f for f in library.function}
        self._messages = library
        self._functions = functions  # those that are being read
        self.found: dict[str, Any] = dict(found)
        self._mapped = set(found)
        self.operations: dict[str, Operation] = {}
        self.used: set[str] = set()

    def has(self, tensor: str) -> bool:
        """Whether the nodes have a tensor."""
        op, _, index = tensor.rpartition(":")
        return op in self.operations and int(index) < len(self.operations[op].outputs)

    def check(self, nodes: Iterable[Any]) -> None:
        """UnimplementedError where nodes, or those of functions that they call, are not known."""
        functions = (n for f in self._library.values() for n in f.node_def)
        unknown = {n.op: n.name for n in [*functions, *nodes] if not self._knows(n)}
        if unknown:
            listed = ", ".join(f"{op} ({name!r})" for op, name in sorted(unknown.items()))
            raise td.errors.UnimplementedError(
                None, None, f"operations of these types are not read: {listed}{at(user_origin())}"
            )

    def _knows(self, node: Any) -> bool:
        own = ("Placeholder", *VARIABLES, *_BRANCHES, *_LOOPS, *_CALLS)
        known = CALL in node.attr or node.op in own or node.op in OPERATIONS or is_known(node.op)
        return known or node.op in self.more_types

    def add(self, nodes: Sequence[Any]) -> None:
        """Add nodes, each behind those that it reads."""
        for node in in_order(nodes, self._mapped):
            op = self._operation(node)
            self.operations[node.name] = op
            for index, tensor in enumerate(op.outputs):
                self.found.setdefault(f"{node.name}:{index}", tensor)

    def _operation(self, node: Any) -> Operation:
        names = [tensor_name(n) for n in node.input if not n.startswith("^")]
        self.used.update(names)
        missing = [n for n in names if n not in self.found]
        if missing:
            raise ValueError(
                f"operation {node.name!r} reads {missing[0]!r}, which is not in the graph"
                f"{at(user_origin())}"
            )
        inputs = [self.found[n] for n in names]
        control = [self.operations[n[1:]] for n in node.input if n.startswith("^")]
        if CALL in node.attr:
            return self._call(node, names, control)
        with self._graph.control_dependencies(control), self._graph.device(node.device or None):
            return self._of_tensorflow(node, inputs)

    def _call(self, node: Any, names: list[str], control: list[Operation]) -> Operation:
        """An operation that treadle wrote as data; its inputs may have been changed since."""
        try:
            data = json.loads(node.attr[CALL].s)
            before = data["inputs"]
            if not isinstance(before, list) or len(before) != len(names):
                raise ValueError("it has other inputs than it was written with")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                f"operation {node.name!r} is damaged: {error}{at(user_origin())}"
            ) from None
        data |= {"name": node.name, "op": node.op, "device": node.device, "inputs": names,
                 "control": [n[1:] for n in node.input if n.startswith("^")]}  # fmt: skip
        changed = {old: self.found[new] for old, new in zip(before, names, strict=True)}
        try:
            return recorded_again(self._graph, data, self.found | changed, self.operations)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"operation {node.name!r} is damaged: {error!r}{at(user_origin())}"
            ) from None

    def _of_tensorflow(self, node: Any, inputs: list[Any]) -> Operation:
        graph, label, attrs = self._graph, node.name, node_attributes(node)
        if node.op == "Placeholder":
            return _placeholder(graph, label, attrs)
        if node.op in VARIABLES:
            trainable = bool(attrs.get("_trainable", True))
            return Variable.imported(graph, label, attrs["dtype"], attrs["shape"], trainable).op
        if node.op in OPERATIONS:
            return self._of_variable(node, attrs, inputs)
        if node.op in _CALLS:
            found = self._called(attrs["f"], label, inputs)
            result = graph.record(run_operation, ("IdentityN", {}, *found), {}, label, "IdentityN")
            return operation_of(result, graph)
        if node.op in _BRANCHES:
            pred, *operands = inputs
            bodies = [self._body(attrs[k], label, operands) for k in ("then_branch", "else_branch")]
            result = graph.record(td.cond, (pred, *bodies), {}, label, node.op)
        elif node.op in _LOOPS:
            call = self._loop(attrs, label, inputs)
            result = graph.record(td.while_loop, call, {}, label, node.op)
        else:
            call = (node.op, attrs, *inputs)
            result = graph.record(run_operation, call, {}, label, node.op)
        op = operation_of(result, graph)
        if self._keeps_functions(attrs):
            op.attributes["node_def"], op.attributes["operands"] = node, inputs
        return op

    def _of_variable(self, node: Any, attrs: Mapping[str, Any], inputs: list[Any]) -> Operation:
        """An operation that reads or changes variables."""
        owners = [getattr(x.op, "owner", None) for x in inputs]
        values = [o if isinstance(o, Variable) else x for o, x in zip(owners, inputs, strict=True)]
        if node.op in _INITIALIZED:
            result = is_variable_initialized(values[0], name=node.name)
            return operation_of(result, self._graph)
        call = (node.op, attrs, *values)
        op = operation_of(self._graph.record(run_state, call, {}, node.name, node.op), self._graph)
        if node.op not in _READING:
            note_write(op, values[0], reads=node.op not in _FIRST_VALUES)
        return op

    def _keeps_functions(self, attrs: Mapping[str, Any]) -> bool:
        """Let the graph have all functions of the library, for an operation that names some;
        whether no other functions have their names."""
        if not any(value in self._library for value in attrs.values() if isinstance(value, str)):
            return True
        known = self._graph.functions
        if any(known.get(name, f) != f for name, f in self._library.items()):
            return False
        known.update(self._library)
        return True

    # -- functions of the library ----------------------------------------------------------------

    def _called(self, name: str, label: str, inputs: Sequence[Any]) -> list[Any]:
        """The results of a function, whose operations are added here."""
        function = self._library.get(name)
        if function is None:
            raise ValueError(f"operation {label!r} calls {name!r}, which is not in the library")
        if name in self._functions:
            raise ValueError(f"function {name!r} calls itself")
        arguments = [a.name for a in function.signature.input_arg]
        if len(arguments) != len(inputs):
            raise ValueError(f"operation {label!r} calls {name!r} with {len(inputs)} arguments")
        given = {f"{a}:0": x for a, x in zip(arguments, inputs, strict=True)}
        inner = Reading(self._graph, self._messages, given, (*self._functions, name))
        nodes = [plain_node(n, set(arguments), function.node_def) for n in function.node_def]
        with self._graph.name_scope(f"{self._graph._scope}{label}/{name}/"):
            inner.add(nodes)
        wanted = [function.ret[a.name] for a in function.signature.output_arg]
        names = output_names(wanted, set(arguments), function.node_def)
        return [inner.found[n] for n in names]

    def _body(self, name: str, label: str, operands: Sequence[Any]) -> Any:
        """A branch, as a function without arguments."""
        return lambda: self._called(name, label, operands)

    def _loop(self, attrs: Mapping[str, Any], label: str, inputs: list[Any]) -> tuple[Any, ...]:
        """The arguments of `td.while_loop`."""

        def test(*values: Any) -> Any:
            return self._called(attrs["cond"], label, values)[0]

        def body(*values: Any) -> Any:
            return tuple(self._called(attrs["body"], label, values))

        shapes = attrs.get("output_shapes") or []
        known = [_static(x) for x in inputs]
        if len(shapes) != len(inputs) or None in known or shapes == known:
            return test, body, tuple(inputs)
        return test, body, tuple(inputs), tuple(map(td.TensorShape, shapes))


def _static(value: Any) -> list[int | None] | None:
    """The dims of a tensor; None where the rank is not known, or for a list."""
    (reading, *others) = value.readings.values()
    if others or reading.spec.dims == UNKNOWN_RANK or not isinstance(reading.spec, td.TensorSpec):
        return None
    return [d if isinstance(d, int) else None for d in reading.spec.dims]


def _placeholder(graph: Graph, label: str, attrs: Mapping[str, Any]) -> Operation:
    dtype, shape = attrs["dtype"], attrs.get("shape")
    if shape is not None:
        readings = {ANY_RANKS: graph.parameter(dtype, shape)}
        return graph.source("Placeholder", label, readings).op
    tensor = graph.source("Placeholder", label, {})
    tensor.readings = graph.unranked(tensor.op, dtype)
    return tensor.op
