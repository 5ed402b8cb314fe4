"""Graphs as data: `Graph.as_graph_def` and `import_graph_def`, in TensorFlow's message GraphDef.

An operation of TensorFlow's types is read by `tensorflow_ops` and written with its own attributes.
Another call is a node with TensorFlow's type and the call as data in an attribute (`call_data`).
Functions of the graph's library are bodies of branches and loops, or are put in place of their
calls. Reading runs no code of the graph's author.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.graph_messages import message
from treadle.compat.graph_nodes import (
    in_order,
    node_attributes,
    output_names,
    plain_node,
    tensor_name,
)
from treadle.compat.tensorflow_state import OPERATIONS, VARIABLES, run_state
from treadle.compat.tensorflow_types import is_known, run_operation
from treadle.compat.v1.call_data import call_data, operation_of, recorded_again
from treadle.compat.v1.graph import Graph, get_default_graph
from treadle.compat.v1.recording import in_graphs
from treadle.compat.v1.shapes import plain
from treadle.compat.v1.tensorflow_forms import Places, written
from treadle.compat.v1.values import ANY_RANKS, Operation, Tensor, element
from treadle.compat.v1.variables import Variable, is_variable_initialized, note_write
from treadle.core.origin import at, user_origin
from treadle.core.shapes import UNKNOWN_RANK
from treadle.ops.strings.tensors import NUMBERS, packed

_CALL = "_treadle_call"  # the attribute of a call as data
_PRODUCER = 1882  # the version of graphs that TensorFlow 2.15 writes
_BRANCHES, _LOOPS = ("If", "StatelessIf"), ("While", "StatelessWhile")
_READING = ("ReadVariableOp", "VariableShape", "ResourceGather", "ResourceGatherNd")
_INITIALIZED = ("VarIsInitializedOp", "IsVariableInitialized")
_FIRST_VALUES = ("Assign", "AssignVariableOp")  # those that need no value before
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_OLD_CONTROL_FLOW = frozenset(
    f"{prefix}{name}"
    for name in ("Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond")
    for prefix in ("", "Ref")
)

in_graphs(run_operation, run_state)

# -- writing ---------------------------------------------------------------------------------------


def as_graph_def(graph: Graph) -> Any:
    """The operations of a graph as a message GraphDef."""
    made = message("GraphDef")()
    made.versions.producer = _PRODUCER
    places = Places({op.name for op in graph.get_operations()})
    for op in graph.get_operations():
        if op.region is graph._root:
            made.node.extend(_nodes(op, places))
    for function in graph.functions.values():
        made.library.function.add().CopyFrom(function)
    return made


def _nodes(op: Operation, places: Places) -> Sequence[Any]:
    """The nodes of an operation: the last one has its name."""
    control = [f"^{c.name}" for c in op.control_inputs]
    node = message("NodeDef")(name=op.name, op=op.type)
    nodes = [node]
    if op.function is None:
        _write_source(op, node, places)
    elif "node_def" in op.attributes:
        node.op = op.attributes["node_def"].op
        for key, value in op.attributes["node_def"].attr.items():
            node.attr[key].CopyFrom(value)
        node.input.extend(_name_in(t) for t in op.attributes["operands"])
    elif (constant := _constant(op)) is not None:
        constant_attrs(node, constant)
    elif (forms := _forms(op, places)) is not None:
        nodes = forms
    else:
        data = call_data(op)
        node.input.extend(n.removesuffix(":0") for n in data["inputs"])
        node.attr[_CALL].s = json.dumps(data, separators=(",", ":")).encode()
    for tensor in op.outputs:
        (reading, *others) = tensor.readings.values()
        if not others and isinstance(reading, td.Tensor):
            places.put(reading.value, _name_in(tensor))  # type: ignore[attr-defined]
    for made in nodes:
        made.device = op.device
        made.input.extend(control)
    return nodes


def _write_source(op: Operation, node: Any, places: Places) -> None:
    """A placeholder or variable."""
    (tensor,) = op.outputs
    node.attr["dtype"].type = NUMBERS[tensor.dtype]
    _write_shape(node.attr["shape"].shape, tensor.shape)
    if not isinstance(op.owner, Variable):
        return
    node.attr["_trainable"].b = bool(op.owner.trainable)
    storage = tensor.readings[ANY_RANKS]
    for captured, inner in op.graph._outline.captured.values():
        if captured is storage:
            places.put(inner.value, op.name)


def _forms(op: Operation, places: Places) -> list[Any] | None:
    """The nodes of TensorFlow's types that do what an operation does; None where there are none."""
    if not op.nodes or op.attributes or op.bodies:
        return None
    readings: list[Any] = [t.readings.get(ANY_RANKS) for t in op.outputs]
    if not all(isinstance(r, td.Tensor) for r in readings):
        return None
    return written(op.name, op.nodes, [r.value for r in readings], places)


def _constant(op: Operation) -> Any:
    """The elements of a constant; None for other operations."""
    if op.type != "Const" or op.inputs or len(op.outputs) != 1:
        return None
    (reading, *others) = op.outputs[0].readings.values()
    return None if others else td.get_static_value(reading)


def _name_in(tensor: Tensor) -> str:
    return tensor.name.removesuffix(":0")


def _write_shape(made: Any, shape: Any) -> None:
    if shape.rank is None:
        made.unknown_rank = True
        return
    for dim in plain(shape):
        made.dim.add(size=-1 if dim is None else dim)


# -- reading ---------------------------------------------------------------------------------------


def import_graph_def(
    graph_def: Any, input_map: Any = None, return_elements: Any = None, name: str | None = None,
    op_dict: Any = None, producer_op_list: Any = None,
) -> Any:  # fmt: skip
    """Add the operations of a `GraphDef`, of treadle's or of TensorFlow's, to the default graph.

    Args:
        input_map: tensors of the default graph by the names of those of `graph_def` that they stand
            for.
        return_elements: names of operations and tensors to give back.
        name: in front of all names; "import" where omitted, nothing where it is empty.

    Raises:
        TypeError: it is no GraphDef.
        ValueError: an operation calls a function that graphs do not have, or reads what is not
            there or comes from itself, or a name in `input_map` or `return_elements` is not there.
        UnimplementedError: it has operations of types that are not known; the text names them.
    """
    if not isinstance(graph_def, message("GraphDef")):
        raise TypeError(f"graph_def must be a GraphDef, not a {type(graph_def).__name__}")
    graph, prefix = get_default_graph(), "import" if name is None else name
    given = {
        (k.name if isinstance(k, Tensor) else k if ":" in k else f"{k}:0"): element(v)
        for k, v in (input_map or {}).items()
    }
    reading = _Reading(graph, graph_def.library, given)
    reading.check(graph_def.node)
    scope = graph._scope
    with graph.name_scope(prefix) if prefix else graph.control_dependencies([]):
        reading.add(graph_def.node)
    graph._scope = scope
    unused = set(given) - reading.used - {t for t in given if reading.has(t)}
    if unused:
        raise ValueError(
            "Attempted to map inputs that were not found in graph_def: "
            f"[{', '.join(sorted(unused))}]{at(user_origin())}"
        )
    if return_elements is None:
        return None
    return [_returned(n, reading.found, reading.operations) for n in return_elements]


def _returned(name: str, found: Mapping[str, Any], operations: Mapping[str, Operation]) -> Any:
    place = found if ":" in name else operations
    if name not in place:
        raise ValueError(f"Requested return_element {name!r} not found in graph_def.")
    return place[name]


class _Reading:
    """Nodes that become operations of a graph: those of a GraphDef, or of one of its functions.

    Attributes:
        found: tensors by their names, as ``name:0``; `operations`: by theirs.
        used: the names of tensors that nodes read.
    """

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
        unknown = {n.op: n.name for n in [*functions, *nodes] if not _is_known(n)}
        old = sorted(name for op, name in unknown.items() if op in _OLD_CONTROL_FLOW)
        if old:
            raise td.errors.UnimplementedError(
                None, None,
                "the graph has branches or loops of Switch, Merge, Enter, Exit and NextIteration, "
                f"such as {old[0]!r}: freeze it with functional ones (tf.compat.v1."
                "enable_control_flow_v2(), or convert_variables_to_constants_v2(function, "
                f"lower_control_flow=False)){at(user_origin())}",
            )  # fmt: skip
        if unknown:
            listed = ", ".join(f"{op} ({name!r})" for op, name in sorted(unknown.items()))
            raise td.errors.UnimplementedError(
                None, None, f"operations of these types are not read: {listed}{at(user_origin())}"
            )

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
        if _CALL in node.attr:
            return self._call(node, names, control)
        with self._graph.control_dependencies(control), self._graph.device(node.device or None):
            return self._of_tensorflow(node, inputs)

    def _call(self, node: Any, names: list[str], control: list[Operation]) -> Operation:
        """An operation that treadle wrote as data; its inputs may have been changed since."""
        try:
            data = json.loads(node.attr[_CALL].s)
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
        inner = _Reading(self._graph, self._messages, given, (*self._functions, name))
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


def _is_known(node: Any) -> bool:
    own = ("Placeholder", *VARIABLES, *_BRANCHES, *_LOOPS, *_CALLS)
    return _CALL in node.attr or node.op in own or node.op in OPERATIONS or is_known(node.op)


# -- graph_util ------------------------------------------------------------------------------------


def extract_sub_graph(graph_def: Any, dest_nodes: Sequence[str]) -> Any:
    """The operations that some need, with the functions of the library.

    Raises:
        TypeError: `dest_nodes` is a string. AssertionError: one is not there.
    """
    if isinstance(dest_nodes, str):
        raise TypeError("dest_nodes must be a list.")
    nodes = {n.name: n for n in graph_def.node}
    for name in dest_nodes:
        assert name in nodes, f"{name} is not in graph"
    wanted, waiting = set(), list(dest_nodes)
    while waiting:
        name = waiting.pop()
        if name in wanted or name not in nodes:
            continue
        wanted.add(name)
        waiting += [n.removeprefix("^").partition(":")[0] for n in nodes[name].input]
    made = message("GraphDef")()
    made.versions.CopyFrom(graph_def.versions)
    made.library.CopyFrom(graph_def.library)
    for node in graph_def.node:
        if node.name in wanted:
            made.node.add().CopyFrom(node)
    return made


def convert_variables_to_constants(
    sess: Any, input_graph_def: Any, output_node_names: Sequence[str],
    variable_names_whitelist: Any = None, variable_names_blacklist: Any = None,
) -> Any:  # fmt: skip
    """The operations that some need, with the values of variables in a session as constants."""
    made = extract_sub_graph(input_graph_def, output_node_names)
    chosen = [
        n for n in made.node
        if n.op in VARIABLES
        and (variable_names_whitelist is None or n.name in variable_names_whitelist)
        and n.name not in (variable_names_blacklist or ())
    ]  # fmt: skip
    values = sess.run({n.name: f"{n.name}:0" for n in chosen})
    for node in chosen:
        array = np.asarray(values[node.name])
        node.op = "Const"
        node.attr.clear()
        constant_attrs(node, array)
    return made


def constant_attrs(node: Any, array: Any) -> None:
    """Write the attributes of a constant."""
    dtype = td.as_dtype(td.string if array.dtype.hasobject else array.dtype)
    node.attr["dtype"].type = NUMBERS[dtype]
    node.attr["value"].tensor.MergeFromString(packed(array, dtype))


def remove_training_nodes(input_graph: Any, protected_nodes: Any = None) -> Any:
    """The graph: passes leave out what does nothing."""
    return input_graph


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """Whether an operation runs on the host."""
    return bool(pin_variables_on_cpu and node.op == "VariableV2")


def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> Any:
    """The static shape of a tensor by its name."""
    return graph.get_tensor_by_name(input_name if ":" in input_name else f"{input_name}:0").shape


Graph.written = as_graph_def
