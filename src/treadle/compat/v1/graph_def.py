"""Graphs as data: `Graph.as_graph_def` and `import_graph_def`, in TensorFlow's message GraphDef.

An operation of TensorFlow's types is read by `tensorflow_ops` and written with its own attributes.
Another call is a node with TensorFlow's type and the call as data in an attribute (`call_data`).
Functions of the graph's library are bodies of branches and loops, or are put in place of their
calls. Reading runs no code of the graph's author.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.graph_messages import message
from treadle.compat.tensorflow_state import VARIABLES
from treadle.compat.v1.call_data import call_data
from treadle.compat.v1.graph import Graph, get_default_graph
from treadle.compat.v1.graph_reading import CALL, Reading
from treadle.compat.v1.old_control_flow import OldControlFlow, is_old
from treadle.compat.v1.shapes import plain
from treadle.compat.v1.tensorflow_forms import Places, written
from treadle.compat.v1.values import ANY_RANKS, Operation, Tensor, element
from treadle.compat.v1.variables import Variable
from treadle.core.origin import at, user_origin
from treadle.ops.strings.tensors import NUMBERS, packed

_PRODUCER = 1882  # the version of graphs that TensorFlow 2.15 writes

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
        node.attr[CALL].s = json.dumps(data, separators=(",", ":")).encode()
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
    made.SetInParent()  # a scalar's has no dims, and is there nevertheless
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
    kind = OldControlFlow if is_old(graph_def.node) else Reading
    reading = kind(graph, graph_def.library, given)
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
