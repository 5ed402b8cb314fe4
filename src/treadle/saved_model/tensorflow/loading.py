"""The objects of a SavedModel of TensorFlow.

``saved_model.pb`` has the graphs of the functions and the objects that refer to one another;
``variables/`` is a checkpoint of the same objects. A model of TensorFlow 1 has one graph instead,
whose variables are stored by their names: it gives its signatures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from treadle.compat.graph_messages import message
from treadle.compat.graph_nodes import dtype_of, node_attributes, shape_of
from treadle.compat.tensorflow_state import VARIABLES, Table
from treadle.core import errors
from treadle.core.file_errors import file_error
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.shaping.creation import zeros
from treadle.ops.state import Variable, VariableAggregation, VariableSynchronization
from treadle.saved_model import files
from treadle.saved_model.assets import Asset
from treadle.saved_model.loaded import LoadedCallable, LoadedObject
from treadle.saved_model.options import LoadOptions
from treadle.saved_model.signatures import Signature
from treadle.saved_model.tensorflow import structures
from treadle.saved_model.tensorflow.functions import (
    RestoredFunction,
    RestoredSignatures,
    Saved,
    alone,
)
from treadle.saved_model.tensorflow.graphs import Library
from treadle.train.nodes import VALUE
from treadle.train.reader import File, open_file

_MOST = 1 << 31  # bytes of a message
_KINDS = (
    "user_object", "asset", "function", "variable", "bare_concrete_function", "constant",
    "resource", "captured_tensor",
)  # fmt: skip
_CONTAINERS = {
    "trackable_list_wrapper": list, "trackable_dict_wrapper": dict,
    "trackable_tuple_wrapper": tuple,
}  # fmt: skip


def load(folder: Path, tags: set[str], options: LoadOptions) -> tuple[Any, dict[str, Any]]:
    """The object that TensorFlow saved, and its functions by aliases.

    Args:
        tags: those of one of the graphs; all tags of the first one where there are none.

    Raises:
        ImportError: the package protobuf is not installed.
        DataLossError: the files are damaged.
        NotFoundError: no graph has the tags.
    """
    graph = read_graph(folder, tags)
    if graph.HasField("object_graph_def"):
        loader = _Objects(folder, graph, options)
        return loader.root(), loader.functions_by_alias()
    return _OldGraph(folder, graph, options).root(), {}


def read_graph(folder: Path, tags: set[str]) -> Any:
    """The message ``MetaGraphDef`` that `load` takes the object from.

    Raises: as `load`.
    """
    return _chosen(folder, _read(folder / files.OF_TENSORFLOW).meta_graphs, tags)


def _read(path: Path) -> Any:
    made = message("SavedModel")()
    try:
        size = path.stat().st_size
        if size > _MOST:
            raise files.damaged(path.parent, f"{path.name} is too large")
        data = path.read_bytes()
    except OSError as error:
        raise file_error(error, f"Could not read {path}") from error
    try:
        made.ParseFromString(data)
    except Exception as error:  # protobuf has an error of its own for each of its implementations
        raise files.damaged(path.parent, f"{path.name}: {error}") from None
    if made.saved_model_schema_version > 1:
        raise errors.UnimplementedError(
            None, None,
            f"The SavedModel {path.parent} has version {made.saved_model_schema_version}, and this "
            "treadle reads version 1",
        )  # fmt: skip
    if not made.meta_graphs:
        raise files.damaged(path.parent, f"{path.name} has no graphs")
    return made


def _chosen(folder: Path, graphs: Sequence[Any], tags: set[str]) -> Any:
    if not tags:
        return graphs[0]
    for graph in graphs:
        if tags <= set(graph.meta_info_def.tags):
            return graph
    known = [sorted(graph.meta_info_def.tags) for graph in graphs]
    raise errors.NotFoundError(None, None, f"{folder} has no tags {sorted(tags)}; it has {known}")


def _variables(folder: Path) -> File | None:
    """The checkpoint of a model; None where it has no variables."""
    prefix = folder / files.VARIABLES
    return open_file(str(prefix)) if prefix.with_name(f"{prefix.name}.index").exists() else None


class _Objects:
    """The objects of a model of TensorFlow 2."""

    def __init__(self, folder: Path, graph: Any, options: LoadOptions) -> None:
        self._folder, self._graph, self._options = folder, graph, options
        self._messages = graph.object_graph_def.nodes
        self._functions = graph.object_graph_def.concrete_functions
        self._library = Library(graph.graph_def.library, self._gradient)
        self._constants = {n.name: n for n in graph.graph_def.node if n.op == "Const"}
        self._file = _variables(folder)
        self._objects: dict[int, Any] = {}
        self._waiting: set[int] = set()  # tuples whose elements are being made
        self._values = self._names_of_values()

    def root(self) -> Any:
        """The first object, with all that it refers to."""
        for number in range(len(self._messages)):
            self._object(number)
        for number, found in enumerate(self._messages):
            self._fill(self._objects[number], found)
        root = self._objects[0]
        if not isinstance(root, LoadedObject):
            raise ValueError("its first object is a value")
        children = self._children(self._messages[0])
        signatures = children.get("signatures")
        named = {} if signatures is None else self._children(self._messages[signatures])
        root.signatures = RestoredSignatures(
            {name: partial(self._alone, number) for name, number in named.items()}
        )
        return root

    def functions_by_alias(self) -> dict[str, Any]:
        """The functions by their aliases: those of which all traces have one."""
        known = self._graph.meta_info_def.function_aliases
        found = {}
        for number, one in enumerate(self._messages):
            names = list(one.function.concrete_functions)
            if names and all(name in known for name in names):
                found[known[names[0]]] = self._objects[number]
        return found

    def _children(self, found: Any) -> dict[str, int]:
        children = {child.local_name: child.node_id for child in found.children}
        for number in children.values():
            if not 0 <= number < len(self._messages):
                raise ValueError(f"it has no object {number}")
        return children

    def _names_of_values(self) -> dict[int, str]:
        """The names of variables in the checkpoint, which has the same objects: both are walked
        from the first one."""
        nodes = None if self._file is None else self._file.nodes
        if nodes is None:
            return {}
        found: dict[int, str] = {}
        seen, waiting = {0}, [(0, 0)]
        for number, stored in waiting:
            name = nodes[stored].values.get(VALUE)
            if name is not None:
                found[number] = name
            for label, child in self._children(self._messages[number]).items():
                there = nodes[stored].children.get(label)
                if there is not None and child not in seen:
                    seen.add(child)
                    waiting.append((child, there))
        return found

    # -- objects ---------------------------------------------------------------------------------

    def _object(self, number: int) -> Any:
        """An object. Objects and containers are filled when all of them are there."""
        if number not in self._objects:
            if not 0 <= number < len(self._messages):
                raise ValueError(f"it has no object {number}")
            if number in self._waiting:
                raise ValueError("a tuple contains itself")
            self._waiting.add(number)
            self._objects[number] = self._made(number, self._messages[number])
        return self._objects[number]

    def _made(self, number: int, found: Any) -> Any:
        kind = next((k for k in _KINDS if found.HasField(k)), "user_object")
        match kind:
            case "variable":
                return self._variable(number, found.variable)
            case "asset":
                return self._asset(found.asset.asset_file_def_index)
            case "constant":
                return self._constant(found.constant.operation)
            case "function":
                return self._function(found.function)
            case "bare_concrete_function" | "captured_tensor":
                return None  # signatures, and traces of functions, are made when they are asked for
            case "resource":
                return LoadedObject()
        container = _CONTAINERS.get(found.user_object.identifier)
        if container is tuple:
            return tuple(self._elements(found))
        if container is not None:
            return container()
        return LoadedCallable() if "__call__" in self._children(found) else LoadedObject()

    def _elements(self, found: Any) -> list[Any]:
        children = self._children(found)
        return [self._object(children[name]) for name in sorted(children, key=_place)]

    def _fill(self, value: Any, found: Any) -> None:
        """Give an object or a container what it refers to. What TensorFlow keeps beside the
        attributes of the Python object, and what objects have here already, is left out."""
        if isinstance(value, list):
            value += self._elements(found)
        if isinstance(value, list) or found.HasField("resource"):
            return
        children = self._children(found)
        for name, number in children.items():
            child = self._objects[number]
            if isinstance(value, dict):
                value[name] = child
            elif isinstance(value, LoadedObject) and child is not None and value.may_hold(name):
                value.hold(name, child)

    def _variable(self, number: int, found: Any) -> Variable:
        dtype, dims = dtype_of(found.dtype), shape_of(found.shape)
        name = self._values.get(number)
        if self._options.experimental_skip_checkpoint or self._file is None or name is None:
            if dims is None or None in dims:
                raise ValueError(f"variable {found.name!r} has no value")
            value: Any = zeros(dims, dtype)
        else:
            value = self._file.read(name)
        variable = Variable(
            convert_to_tensor(value, dtype), trainable=found.trainable, shape=dims,
            synchronization=VariableSynchronization(found.synchronization),
            aggregation=VariableAggregation(found.aggregation),
        )  # fmt: skip
        variable.name = f"{found.name}:0"
        return variable

    def _asset(self, index: int) -> Asset:
        found = self._graph.asset_file_def
        if not 0 <= index < len(found):
            raise ValueError(f"it has no asset {index}")
        return Asset(files.inside(self._folder, f"{files.ASSETS}/{found[index].filename}"))

    def _constant(self, operation: str) -> Tensor:
        node = self._constants.get(operation)
        if node is None:
            raise ValueError(f"it has no constant {operation!r}")
        return convert_to_tensor(node_attributes(node)["value"])

    # -- functions -------------------------------------------------------------------------------

    def _function(self, found: Any) -> RestoredFunction:
        spec = found.function_spec
        declared = None
        if spec.HasField("input_signature"):
            declared = structures.read(spec.input_signature)
        saved = [self._saved(name) for name in found.concrete_functions]
        name = _python_name(found.concrete_functions[0]) if saved else "function"
        return RestoredFunction(saved, name, structures.signature_of(spec), declared)

    def _saved(self, name: str) -> Saved:
        if name not in self._functions:
            raise ValueError(f"it has no function {name!r}")
        found = self._functions[name]
        arguments = structures.read(found.canonicalized_input_signature)
        if not isinstance(arguments, tuple) or len(arguments) != 2:
            raise ValueError(f"the arguments of {name!r} are damaged")
        results = partial(structures.read, found.output_signature)

        def run(tensors: Sequence[Any]) -> Sequence[Any]:
            return self._library.call(name, [*tensors, *map(self._captured, found.bound_inputs)])

        return Saved(arguments, results, run)

    def _gradient(self, name: str, upstream: Sequence[Any]) -> list[Any]:
        return list(structures.leaves(self._saved(name).call(upstream)))

    def _alone(self, number: int) -> Signature:
        found = self._messages[number].bare_concrete_function
        name = found.concrete_function_name
        return alone(self._saved(name), _python_name(name))

    def _captured(self, number: int) -> Any:
        """What stands for a capture."""
        found = self._object(number)
        if isinstance(found, Asset):
            return found.asset_path
        if self._messages[number].HasField("resource"):
            return self._resource(number)
        return found

    def _resource(self, number: int) -> Table:
        """What an operation names by a handle, made and filled by the object's own functions."""
        held = self._objects[number]
        if "_table" not in vars(held):
            children = self._children(self._messages[number])
            vars(held)["_table"] = self._called(children, "_create_resource")
            if "_initialize" in children:
                self._called(children, "_initialize")
        return vars(held)["_table"]  # type: ignore[no-any-return]

    def _called(self, children: Mapping[str, int], name: str) -> Any:
        if name not in children:
            raise errors.UnimplementedError(None, None, f"a resource without {name} is not read")
        (function,) = self._messages[children[name]].function.concrete_functions
        results = self._saved(function).run(())
        return results[0] if results else None


class _OldGraph:
    """A model of TensorFlow 1: a graph with variables, and signatures of its tensors."""

    def __init__(self, folder: Path, graph: Any, options: LoadOptions) -> None:
        self._nodes, self._definitions = graph.graph_def.node, graph.signature_def
        self._library = Library(graph.graph_def.library, lambda name, upstream: None)
        self._file, self._skip = _variables(folder), options.experimental_skip_checkpoint
        self._variables = {
            node.name: self._variable(node) for node in self._nodes if node.op in VARIABLES
        }
        self._assets = {
            found.tensor_info.name: Asset(
                files.inside(folder, f"{files.ASSETS}/{found.filename}")
            ).asset_path
            for found in graph.asset_file_def
        }

    def root(self) -> LoadedObject:
        """An object with the variables and signatures."""
        made = LoadedObject()
        made.hold("variables", list(self._variables.values()))
        made.signatures = RestoredSignatures(
            {name: partial(self._signature, name, found)
             for name, found in self._definitions.items() if name[:2] != "__"}
        )  # fmt: skip
        return made

    def _variable(self, node: Any) -> Variable:
        attrs = node_attributes(node)
        name = attrs.get("shared_name") or node.name
        stored = {} if self._file is None else self._file.entries()
        if self._file is None or self._skip or name not in stored:
            dims = attrs.get("shape")
            if dims is None or None in dims:
                raise ValueError(f"variable {name!r} has no value")
            value: Any = zeros(dims, attrs["dtype"])
        else:
            value = self._file.read(name)
        made = Variable(
            convert_to_tensor(value, attrs["dtype"]), trainable=bool(attrs.get("_trainable", True))
        )
        made.name = f"{name}:0"
        return made

    def _signature(self, name: str, found: Any) -> Signature:
        fed = {key: info.name for key, info in found.inputs.items()}
        fetched = {key: info.name for key, info in found.outputs.items()}
        specs = {
            key: TensorSpec(shape_of(info.tensor_shape), dtype_of(info.dtype), key)
            for key, info in found.inputs.items()
        }
        handles = {f"{label}:0": variable for label, variable in self._variables.items()}

        def run(tensors: Sequence[Any]) -> Sequence[Any]:
            names = (fed[key] for key in sorted(fed))
            given = handles | self._assets | dict(zip(names, tensors, strict=True))
            return self._library.run(self._nodes, given, [fetched[k] for k in sorted(fetched)])

        results = {
            key: TensorSpec(shape_of(info.tensor_shape), dtype_of(info.dtype))
            for key, info in found.outputs.items()
        }
        return alone(Saved(((), specs), lambda: results, run), name)


def _place(name: str) -> tuple[bool, int, str]:
    """The order of the elements of a list."""
    return (not name.isdigit(), int(name) if name.isdigit() else 0, name)


def _python_name(name: str) -> str:
    """What the Python function was called: ``__inference_scores_12`` is that of ``scores``."""
    name = name.removeprefix("__inference_")
    head, _, number = name.rpartition("_")
    return head if number.isdigit() and head else name
