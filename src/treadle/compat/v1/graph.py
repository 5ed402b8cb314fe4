"""Graphs of TensorFlow 1: calls that are written down, and run again when a session asks for them.

A call of a function with tensors of a graph, or in no function at all, becomes an `Operation` of
the default graph: the function, its arguments and the tensors that stand for its results. The
*outline*, a graph of treadle that never runs, tells their dtypes and shapes: the call is recorded
there as it is made. A session calls the functions once more, in a `td.function`.

Values of an outline have known ranks. A placeholder of unknown rank stands in it for several
values, one for each rank that it may have, and so does what is computed with it: a tensor has
*readings*, each for ranks that are taken for granted.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

import treadle as td
from treadle.compat.v1.keras_tensors import is_of_keras, tensor_in
from treadle.compat.v1.registered_gradients import override_gradient
from treadle.compat.v1.shapes import plain
from treadle.compat.v1.values import (
    ANY_RANKS,
    POSSIBLE_RANKS,
    Body,
    Composite,
    Literal,
    Operation,
    Ranks,
    Region,
    Tensor,
    element,
    is_value,
    joined,
    leaves_of,
    map_leaves,
    reading,
    standing_for,
    thread,
)
from treadle.core import locks
from treadle.core.context import recording, taping
from treadle.core.dimension import Dimension
from treadle.core.origin import at, attributed_to, user_origin
from treadle.graph.builder import GraphBuilder
from treadle.ops.tensorflow_names import operation_name, operation_type

_SCOPE = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
_INNER_SCOPE = re.compile(r"[A-Za-z0-9_.\\/>-]*")


class Graph:
    """A graph of calls, which sessions run. `as_default` makes it the one that calls are written
    into.

    Attributes:
        seed: of random numbers, or None.
        version: grows with each operation.
    """

    def __init__(self) -> None:
        self._outline = GraphBuilder("session")
        self._outline.on_variable = _nothing
        self._root = Region(self._outline)
        self._by_name: dict[str, Operation] = {}
        self._used: dict[str, int] = {}
        self._scope = ""
        self._control: tuple[Operation, ...] = ()
        self._collections: dict[Any, list[Any]] = {}
        self._gradients: dict[str, str] = {}
        self._creators: tuple[Any, ...] = ()
        self.shared: dict[int, Any] = {}  # what stands for variables of treadle, by their ids
        self.of_keras: dict[int, Any] = {}  # what stands for tensors of models, by their ids
        self.kept_of_keras: list[Any] = []  # the calls of layers that made those
        self.session_of_keras: Any = None  # what `keras.backend` runs the graph by
        self.finalized = False
        self.seed: int | None = None
        self.device_name = ""
        self.lock = locks.reentrant_lock()
        self.functions: dict[str, Any] = {}  # of graphs that were read, by name: FunctionDefs

    # -- operations --------------------------------------------------------------------------

    @property
    def version(self) -> int:
        return len(self._by_name)

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> Any:
        """The operations as data: a `GraphDef`."""
        return Graph.written(self)

    written: ClassVar[Callable[[Graph], Any]]  # set by `graph_def`
    sharing: ClassVar[Callable[..., Any]]  # set by `variables`
    entered: ClassVar[Callable[[], None]]  # set by `user_calls`

    @property
    def building_function(self) -> bool:
        return False

    @property
    def region(self) -> Region:
        """Where operations are written down now."""
        inside = thread.region
        return self._root if inside is None else inside

    def record(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any],
        name: str | None = None, type_: str | None = None, default: str | None = None,
    ) -> Any:  # fmt: skip
        """Write a call down and give the tensors that stand for its results.

        Args:
            name: of the operation; else it is `default`, or is called as the op of treadle is.

        Raises:
            RuntimeError: the graph is finalized.
            ValueError: an argument is a tensor of another graph. What the function raises, too.
        """
        self.check_open()
        args, kwargs = self._kept(args), self._kept(dict(kwargs))
        op = Operation(self, "", type_ or "", function, args, kwargs)
        self._find_inputs(op)
        region = self.region
        builder, nodes = region.builder, region.builder.region.nodes
        before, first, results = len(nodes), None, {}
        possible = joined((*op.inputs,))
        for ranks in possible:
            outer, thread.ranks = thread.ranks, ranks | thread.ranks
            region_before = thread.region
            try:
                with recording(builder), taping(()), attributed_to(op.origin):
                    found = op.call(lambda v: reading(v, thread.ranks))
            except (TypeError, ValueError, NotImplementedError, td.errors.OpError) as error:
                first = first or error
                continue
            finally:
                thread.ranks, thread.region = outer, region_before
            results[ranks] = found
            if op.bodies:
                break
        if not results:
            raise first if first is not None else ValueError(
                f"the arguments of {name or function} cannot have ranks that fit{at(op.origin)}"
            )
        new = [node.op.name for node in nodes[before:]]
        if region is self._root and list(results) == [ANY_RANKS]:
            op.nodes = nodes[before:]
        op.inputs = list(
            dict.fromkeys([*op.inputs, *(t for b in op.bodies for t in b.outer_tensors())])
        )
        self._name(op, name, default, new, function)
        self._give(op, results, len(results) == len(possible))
        self._add(op)
        return op.result if op.outputs or op.result is not None else op

    def call_layer(self, layer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Write down a call of a Keras layer, or model. Its variables are shared by all sessions.

        Raises:
            ValueError: the rank of an argument is unknown, and the layer has no weights yet.
        """
        given = [t for v in leaves_of((args, kwargs)) if (t := element(v)) is not None]
        if not layer.built and any(t.shape.rank is None for t in given):
            raise ValueError(
                f"{layer.name}: the weights depend on the shape of {given[0]!r}: give the "
                f"placeholder one{at(user_origin())}"
            )
        with self.lock:
            found = self.record(
                _called, (Literal(layer), *args), kwargs, None, type(layer).__name__, layer.name
            )
            listed = {id(weight) for weight in layer.weights}
            for variable in layer.variables:  # the states of seeds, too, which nobody lists
                Graph.sharing(self, variable, id(variable) in listed)
        return found

    def source(
        self, type_: str, name: str, readings: dict[Ranks, Any], owner: Any = None,
        is_unique: bool = False,
    ) -> Tensor:  # fmt: skip
        """A tensor whose value runs are given: a placeholder or variable.

        Args:
            is_unique: the name is the whole one already.
        """
        self.check_open()
        op = Operation(self, name if is_unique else self.unique_name(name), type_, None)
        op.owner = owner
        op.outputs = [Tensor(op, 0, readings)]
        op.result = op.outputs[0]
        self._add(op)
        return op.outputs[0]

    def unranked(self, op: Operation, dtype: td.DType) -> dict[Ranks, Any]:
        """The readings of a result of an operation whose rank a run tells."""
        return {
            frozenset({(op, rank)}): self.parameter(dtype, [None] * rank) for rank in POSSIBLE_RANKS
        }

    def parameter(self, dtype: td.DType, shape: Any) -> Any:
        """A value of the outline, of a shape whose sizes may be unknown."""
        spec = td.TensorSpec(shape, dtype).with_fresh_symbols()
        with recording(self._outline), taping(()):
            return self._outline.parameter(td.TensorSpec(spec.shape, dtype))

    def _kept(self, value: Any) -> Any:
        """Arguments as they are kept: arrays are copied, functions are bodies."""

        def leaf(v: Any) -> Any:
            if isinstance(v, np.ndarray) and v.flags.writeable:
                return v.copy()
            if isinstance(v, td.Variable):
                return Graph.sharing(self, v)
            if is_of_keras(v):
                return tensor_in(self, v)
            if isinstance(v, Dimension | td.TensorShape):
                return plain(v) if isinstance(v, Dimension) else td.TensorShape(plain(v))
            if inspect.isroutine(v) or isinstance(v, functools.partial):
                return Body(self, v)
            return v

        return map_leaves(value, leaf)

    def _find_inputs(self, op: Operation) -> None:
        found: dict[Tensor, None] = {}
        for value in (*leaves_of(op.args), *leaves_of(op.kwargs)):
            if isinstance(value, Body):
                op.bodies.append(value)
            tensor = element(value)
            if tensor is not None:
                if tensor.graph is not self:
                    other = next(iter(found), None)
                    raise ValueError(
                        f"{tensor} must be from the same graph as {other} (graphs are "
                        f"{tensor.graph} and {self}).{at(op.origin)}"
                    )
                found[tensor] = None
        op.inputs = list(found)

    def _name(
        self, op: Operation, name: str | None, default: str | None, new: list[str], function: Any
    ) -> None:
        primitive = new[-1] if new else None
        plain_name = getattr(function, "__name__", "call").strip("_<>")
        if len([n for n in new if n != "const"]) > 1 and default is None:
            default = plain_name
        if not op.type:
            op.type = operation_type(primitive) if primitive else plain_name.capitalize()
        if default is None:
            default = operation_name(primitive) if primitive else plain_name.capitalize()
        op.name = self.unique_name(name or default)

    def _give(self, op: Operation, results: dict[Ranks, Any], is_whole: bool) -> None:
        """Make the tensors of the results.

        Args:
            is_whole: there is a result for all ranks that the arguments may have.
        """
        (ranks, first), *others = results.items()
        op.result = map_leaves(first, lambda v: standing_for(op, v, ranks))
        for other, found in others:
            values = [v for v in leaves_of(found) if is_value(v)]
            if len(values) == len(op.outputs):
                for tensor, value in zip(op.outputs, values, strict=True):
                    tensor.readings[other] = value
        for tensor in op.outputs:
            values = list(tensor.readings.values())
            same = all(v.dtype is values[0].dtype for v in values)
            tensor.is_sure = not (op.bodies and ranks) and same
            if is_whole and len(values) > 1 and _are_alike(values):
                tensor.readings = {ANY_RANKS: values[0]}  # it has no more to do with the ranks

    def _add(self, op: Operation) -> None:
        op.region = self.region
        op.control_inputs = [
            c for c in self._control if c.region is op.region or c.region is self._root
        ]
        self._by_name[op.name] = op
        op.region.operations.append(op)
        override = self._gradients.get(op.type)
        if override is not None:
            op.attributes["_gradient_op_type"] = override
            override_gradient(op, override)

    def move_behind(self, op: Operation, other: Operation) -> None:
        """Let an operation, and all that depend on it, run behind another one.

        Raises:
            ValueError: that one depends on it.
        """
        moved = {op}
        for later in self.get_operations():
            if moved & {*(t.op for t in later.inputs), *later.control_inputs}:
                moved.add(later)
        if other in moved:
            raise ValueError(f"{other.name} depends on {op.name}{at(user_origin())}")
        first = {n: o for n, o in self._by_name.items() if o not in moved}
        self._by_name = first | {n: o for n, o in self._by_name.items() if o in moved}
        self._root.operations = [o for o in self._by_name.values() if o.region is self._root]

    def check_open(self) -> None:
        """RuntimeError where the graph is finalized."""
        if self.finalized:
            raise RuntimeError(f"Graph is finalized and cannot be modified.{at(user_origin())}")

    def finalize(self) -> None:
        """From now on no operation can be added."""
        self.finalized = True

    def _unsafe_unfinalize(self) -> None:
        self.finalized = False

    @contextmanager
    def at_root(self) -> Iterator[None]:
        """Operations of the block belong to the graph, also within a branch or body."""
        before, ranks = thread.region, thread.ranks
        thread.region, thread.ranks = None, ANY_RANKS
        try:
            with recording(None), taping(()):
                yield
        finally:
            thread.region, thread.ranks = before, ranks

    # -- names -------------------------------------------------------------------------------

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """``name`` in the scope, with a number behind it where it is taken.

        Raises:
            ValueError: it has characters that names may not have.
        """
        if name.endswith("/"):  # a scope: the operation has its name
            return name[:-1]
        name = self._scope + name
        if not _SCOPE.fullmatch(name):
            raise ValueError(f"{name!r} is not a valid node name{at(user_origin())}")
        key = name.lower()
        count = self._used.get(key, 0)
        if mark_as_used:
            self._used[key] = count + 1
        if not count:
            return name
        while f"{key}_{count}" in self._used:
            count += 1
        if mark_as_used:
            self._used[f"{key}_{count}"] = 1
        return f"{name}_{count}"

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Names of operations begin with ``name/``, made unique; a name that ends with ``/`` is the
        scope itself, and none at all leaves all scopes.

        Raises:
            ValueError: it is no valid name.
        """
        before, self._scope = self._scope, self.scope_named(name)
        try:
            yield self._scope
        finally:
            self._scope = before

    def scope_named(self, name: str | None) -> str:
        """The scope that a block named so has here: see `name_scope`."""
        if not name:
            return ""
        pattern = _INNER_SCOPE if self._scope else _SCOPE
        if not isinstance(name, str) or not pattern.fullmatch(name):
            raise ValueError(f"{name!r} is not a valid scope name{at(user_origin())}")
        return name if name.endswith("/") else self.unique_name(name) + "/"

    def get_name_scope(self) -> str:
        """The name scope of this place, without the ``/`` at its end."""
        return self._scope.rstrip("/")

    def get_operations(self) -> list[Operation]:
        """All operations, in the order in which they were made."""
        return list(self._by_name.values())

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of a name.

        Raises:
            KeyError: there is none.
            ValueError: it is the name of a tensor.
            TypeError: it is no string.
        """
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        return self.as_graph_element(name, allow_tensor=False)  # type: ignore[no-any-return]

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor of a name, as ``MatMul:0``.

        Raises:
            KeyError: there is none.
            ValueError: it is not the name of a tensor.
            TypeError: it is no string.
        """
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        return self.as_graph_element(name, allow_operation=False)  # type: ignore[no-any-return]

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """The operation or tensor that `obj` is, or has as its name.

        Raises:
            KeyError: there is none of this name.
            ValueError: it is of another graph, or may not be one of this kind.
            TypeError: it is neither an operation, a tensor nor a string.
        """
        if isinstance(obj, str):
            return self._named(obj, allow_tensor, allow_operation)
        tensor = tensor_in(self, obj) if is_of_keras(obj) else element(obj)
        found: Any = tensor if tensor is not None else obj
        kinds = "Tensor" * allow_tensor + " or " * (allow_tensor and allow_operation)
        kinds += "Operation" * allow_operation
        if tensor is None and not isinstance(obj, Operation):
            raise TypeError(f"Can not convert a {type(obj).__name__} into a {kinds}.")
        if (tensor is not None and not allow_tensor) or (tensor is None and not allow_operation):
            raise TypeError(f"Can not convert a {type(obj).__name__} into a {kinds}.")
        if found.graph is not self:
            what = "Tensor" if tensor is not None else "Operation"
            raise ValueError(f"{what} {found} is not an element of this graph.")
        return found

    def _named(self, name: str, allow_tensor: bool, allow_operation: bool) -> Any:
        form = 'Tensor names must be of the form "<op_name>:<output_index>".'
        if ":" in name and allow_tensor:
            op_name, _, index = name.partition(":")
            if not index.isdigit():
                raise ValueError(
                    f"The name {name!r} looks a like a Tensor name, but is not a valid one. {form}"
                )
            text = f"The name {name!r} refers to a Tensor which does not exist. The operation, "
            op = self._by_name.get(op_name)
            if op is None:
                raise KeyError(f"{text}{op_name!r}, does not exist in the graph.")
            if int(index) >= len(op.outputs):
                count = len(op.outputs)
                raise KeyError(f"{text}{op_name!r}, exists but only has {count} outputs.")
            return op.outputs[int(index)]
        if ":" in name:
            raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a Operation.")
        if not allow_operation:
            if name in self._by_name:
                raise ValueError(
                    f"The name {name!r} refers to an Operation, not a Tensor. {form}"
                )
            raise ValueError(
                f"The name {name!r} looks like an (invalid) Operation name, not a Tensor. {form}"
            )
        if name not in self._by_name:
            raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
        return self._by_name[name]

    def is_feedable(self, tensor: Any) -> bool:
        """Whether a run may be given its value."""
        found = self.as_graph_element(tensor)
        return not getattr(found, "not_feedable", False)

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        """Whether a run may give its value."""
        return True

    def prevent_feeding(self, tensor: Any) -> None:
        """From now on no run may be given its value."""
        self.as_graph_element(tensor).not_feedable = True

    # -- blocks ------------------------------------------------------------------------------

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """In the block calls are written into this graph."""
        before = thread.graphs
        Graph.entered()
        thread.graphs = (*before, self)
        try:
            yield self
        finally:
            thread.graphs = before

    @contextmanager
    def control_dependencies(self, control_inputs: Any) -> Iterator[None]:
        """Operations that the block makes run after others. None: after no others."""
        before = self._control
        if control_inputs is None:
            self._control = ()
        else:
            found = []
            for value in control_inputs:
                if isinstance(value, Composite):
                    value = value.values
                if not isinstance(value, Operation):
                    tensor = element(value)
                    if tensor is None and isinstance(value, td.Tensor):
                        continue
                    value = self.as_graph_element(value)
                    value = value if isinstance(value, Operation) else value.op
                found.append(value)
            self._control = (*before, *found)
        try:
            yield
        finally:
            self._control = before

    @contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Operations of the block run on a device, where there is one of that name."""
        before, given = self.device_name, device_name_or_function
        if callable(given) and not isinstance(given, str):
            given = None
        if given is None:
            self.device_name = ""
        else:
            name = given if isinstance(given, str) else given.to_string()
            self.device_name = _device_name(name)
        try:
            yield
        finally:
            self.device_name = before

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Accepted: there is one device at work."""
        yield

    @contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        """Accepted: variables belong to sessions."""
        yield container_name

    @contextmanager
    def gradient_override_map(self, op_type_map: Mapping[str, str]) -> Iterator[None]:
        """Operations that the block makes have the gradients registered under these names.

        Raises:
            TypeError: a type or name is no string.
        """
        if not isinstance(op_type_map, Mapping) or not all(
            isinstance(x, str) for pair in op_type_map.items() for x in pair
        ):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        before = self._gradients
        self._gradients = {**before, **op_type_map}
        try:
            yield
        finally:
            self._gradients = before

    # -- collections -------------------------------------------------------------------------

    @property
    def collections(self) -> list[Any]:
        return self.get_all_collection_keys()

    def add_to_collection(self, name: Any, value: Any) -> None:
        self.check_open()
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        self.check_open()
        for name in dict.fromkeys((names,) if isinstance(names, str) else names):
            self.add_to_collection(name, value)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """The values of a collection; with `scope` those whose names begin with this pattern."""
        found = list(self._collections.get(name, ()))
        if scope is None:
            return found
        pattern = re.compile(scope)
        return [v for v in found if hasattr(v, "name") and pattern.match(v.name)]

    def get_collection_ref(self, name: Any) -> list[Any]:
        """The list itself, to be changed."""
        return self._collections.setdefault(name, [])

    def clear_collection(self, name: Any) -> None:
        self.check_open()
        self._collections.pop(name, None)

    def get_all_collection_keys(self) -> list[Any]:
        """The names of all collections."""
        return [k for k in self._collections if isinstance(k, str)]


def _called(layer: Any, *args: Any, **kwargs: Any) -> Any:
    return layer(*args, **kwargs)


def _nothing() -> None:
    """A variable may be made where calls are outlined."""


def _device_name(name: str) -> str:
    """TensorFlow's form of a device's name: ``/device:CPU:0``."""
    found = re.fullmatch(r"/?(?:device:)?(cpu|gpu):(\d+)", name, re.IGNORECASE)
    return f"/device:{found[1].upper()}:{found[2]}" if found else name


_default = [Graph()]


def get_default_graph() -> Graph:
    """The graph that calls are written into."""
    return thread.graphs[-1] if thread.graphs else _default[0]


def reset_default_graph() -> None:
    """Begin with an empty default graph.

    Raises:
        AssertionError: it is called inside of ``with graph.as_default()``.
    """
    if thread.graphs:
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared "
            "graph, exit the nesting and create a new graph."
        )
    _default[0] = Graph()


def _are_alike(values: list[Any]) -> bool:
    """Whether as much is known of all of these values: their specs, and numbers such as the length
    of a shape, which differs from rank to rank."""
    first = values[0]
    if any(v.spec != first.spec for v in values):
        return False
    known = [td.get_static_value(v, partial=True) for v in values]
    return all(np.array_equal(k, known[0]) for k in known)
