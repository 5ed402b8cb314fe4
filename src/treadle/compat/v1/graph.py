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
import operator
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, TypeAlias

import numpy as np

import treadle as td
from treadle.compat.v1.shapes import Dimension, TensorShape, plain
from treadle.core.context import context, recording, taping
from treadle.core.origin import at, attributed_to, user_origin
from treadle.graph.builder import GraphBuilder
from treadle.ops.conversion import register_converter
from treadle.ops.tensorflow_names import operation_name, operation_type

# Ranks that placeholders (by their operations) are taken to have.
Ranks: TypeAlias = "frozenset[tuple[Operation, int]]"
ANY_RANKS: Ranks = frozenset()
POSSIBLE_RANKS = (1, 2, 0, 3, 4, 5)  # the ranks that are tried, the most likely first
_MOST_READINGS = 48
_SCOPE = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
_INNER_SCOPE = re.compile(r"[A-Za-z0-9_.\\/>-]*")


class _Thread(threading.local):
    """What this thread does.

    Attributes:
        graphs: the default graphs of the blocks around, the innermost last.
        region: the branch or body whose function of the user is called at the moment.
        ranks: the reading for which it is called.
        run: the values of the tensors, while a session runs operations again.
        lifted: tells that operations belong to the graph and no branch or body.
    """

    graphs: tuple[Graph, ...] = ()
    region: Region | None = None
    ranks: Ranks = ANY_RANKS
    run: Values | None = None


thread = _Thread()


class Mode:
    """Whether functions are called at once (`enable_eager_execution`)."""

    eager = False


class Literal:
    """An argument that is handed over as it is, such as a function of Python that programs call."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _TensorKind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, td.Tensor)


class Tensor(metaclass=_TensorKind):
    """A result of an operation of a graph.

    Attributes:
        op: the operation.
        value_index: which of its results it is.
        readings: what stands for it in the outline, for the ranks that are taken for granted.
    """

    __array_priority__ = 200
    __array_ufunc__ = None

    def __init__(self, op: Operation, value_index: int, readings: dict[Ranks, Any]) -> None:
        self.op, self.value_index, self.readings = op, value_index, readings
        self.is_sure = True  # whether the readings are all that there may be

    @property
    def graph(self) -> Graph:
        return self.op.graph

    @property
    def name(self) -> str:
        return f"{self.op.name}:{self.value_index}"

    @property
    def device(self) -> str:
        return self.op.device

    @property
    def dtype(self) -> td.DType:
        return self._any().dtype  # type: ignore[no-any-return]

    @property
    def shape(self) -> TensorShape:
        found = [td.TensorShape(r.shape) for r in self.readings.values()]
        first, *others = found
        if not self.is_sure:
            return TensorShape(None)
        for other in others:
            first = first.most_specific_compatible_shape(other)
        return TensorShape(first)

    def get_shape(self) -> TensorShape:
        """The shape, as far as it is known."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Say what the shape is, as far as it is known.

        Raises:
            ValueError: it is known to be another one.
        """
        kept = {}
        first: Exception | None = None
        for ranks, value in self.readings.items():
            try:
                with recording(value.recorder), taping(()):
                    value.set_shape(plain(shape))
                kept[ranks] = value
            except ValueError as error:
                first = first or error
        if not kept:
            assert first is not None
            raise first
        self.readings, self.is_sure = kept, True

    def consumers(self) -> list[Operation]:
        """The operations that take it."""
        return [op for op in self.graph.get_operations() if self in op.inputs]

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Its value in a session, the default one where none is given."""
        return chosen_session(session, self.graph, "evaluate tensor").run(self, feed_dict)

    def _as_tensor(self) -> Tensor:
        return self

    def _any(self) -> Any:
        return next(iter(self.readings.values()))

    @property
    def ndim(self) -> int | None:
        return self.shape.rank

    def ref(self) -> td.Tensor:
        return self  # type: ignore[return-value]

    experimental_ref = ref

    def __iter__(self) -> Iterator[Any]:
        raise td.errors.OperatorNotAllowedInGraphError(
            "Tensor objects are only iterable when eager execution is enabled. To iterate over "
            f"this tensor use tf.map_fn.{at(user_origin())}"
        )

    def __bool__(self) -> bool:
        raise td.errors.OperatorNotAllowedInGraphError(
            "Using a `tf.Tensor` as a Python `bool` is not allowed. Use `if t is not None:` "
            "instead of `if t:` to test if a tensor is defined, and use TensorFlow ops such as "
            "tf.cond to "
            f"execute subgraphs conditioned on the value of a tensor.{at(user_origin())}"
        )

    def __len__(self) -> int:
        raise TypeError(f"len is not well defined for a symbolic Tensor ({self.name}). Please call "
                        f"`x.shape` rather than `len(x)` for shape information.{at(user_origin())}")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise NotImplementedError(
            f"Cannot convert a symbolic tf.Tensor ({self.name}) to a numpy array. This error may "
            "indicate that you're trying to pass a Tensor to a NumPy call, which is not supported."
            f"{at(user_origin())}"
        )

    def _is_no_number(self) -> Any:
        raise TypeError(
            f"{self!r} has a value when a session runs it: it is no number of Python"
            f"{at(user_origin())}"
        )

    __int__ = __float__ = __index__ = _is_no_number

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        shape = f", shape={self.shape}" if self.shape.rank is not None else ""
        return f'Tensor("{self.name}"{shape}, dtype={self.dtype.name})'


class Operation:
    """A call that was written down.

    Attributes:
        name: unique in its graph; its results are ``name:0``, ``name:1``.
        type: TensorFlow's, as ``MatMul``.
        function: what is called, or None for placeholders and variables, which runs are given.
        args, kwargs: its arguments, with tensors and bodies (`Body`) of the graph.
        result: what it gives, with tensors of the graph.
        inputs, outputs: the tensors of both.
        control_inputs: operations that are run before.
    """

    def __init__(
        self, graph: Graph, name: str, type_: str, function: Callable[..., Any] | None,
        args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.graph, self.name, self.type, self.function = graph, name, type_, function
        self.args, self.kwargs = args, dict(kwargs or {})
        self.result: Any = None
        self.outputs: list[Tensor] = []
        self.control_inputs: list[Operation] = []
        self.inputs: list[Tensor] = []
        self.bodies: list[Body] = []
        self.device = graph.device_name
        self.origin = user_origin()
        self.region: Region | None = None
        self.owner: Any = None  # the variable or placeholder whose operation it is
        self.attributes: dict[str, Any] = {}

    def call(self, value_of: Callable[[Any], Any]) -> Any:
        """The result for arguments whose tensors have these values."""
        assert self.function is not None
        args, kwargs = (_walk(given, value_of) for given in (self.args, self.kwargs))
        return self.function(*args, **kwargs)

    def values(self) -> tuple[Tensor, ...]:
        return tuple(self.outputs)

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Run it in a session, the default one where none is given."""
        chosen_session(session, self.graph, "execute operation").run(self, feed_dict)

    @property
    def node_def(self) -> Any:
        return self

    def get_attr(self, name: str) -> Any:
        """An argument by its name; ValueError where there is none of that name."""
        found = {**self.kwargs, **self.attributes}
        if self.function is not None and name not in found:
            with suppress(TypeError, ValueError):
                found |= inspect.signature(self.function).bind(*self.args, **self.kwargs).arguments
        if name not in found:
            raise ValueError(f"Operation {self.name!r} has no attr named {name!r}.")
        return found[name]

    def _set_attr(self, name: str, value: Any) -> None:
        self.attributes[name] = value

    def _add_control_input(self, op: Any) -> None:
        self.control_inputs.append(op)

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"

    def __str__(self) -> str:
        lines = [f'name: "{self.name}"', f'op: "{self.type}"']
        lines += [f'input: "{t.name.removesuffix(":0")}"' for t in self.inputs]
        lines += [f'input: "^{op.name}"' for op in self.control_inputs]
        return "\n".join(lines) + "\n"


class Region:
    """The operations of a branch or body, or of a whole graph.

    Attributes:
        builder: records them in the outline.
    """

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self.operations: list[Operation] = []


class Body:
    """A function of the user that an operation calls, such as the body of a loop. It is called when
    the operation is written down, once or more; the operations of its last call are run again."""

    def __init__(self, graph: Graph, function: Callable[..., Any]) -> None:
        self.graph, self.function = graph, function
        self.region: Region | None = None
        self.params: list[Any] = []
        self.result: Any = None
        self.__name__ = getattr(function, "__name__", "body")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if thread.run is not None:
            return self._again(args, kwargs)
        recorder: Any = context.recorder
        before = thread.region
        region = Region(recorder)
        owner = Operation(self.graph, "", "Arg", None)
        owner.region = region
        ranks = thread.ranks
        stand_ins = _walk((args, kwargs), lambda v: _standing_for(owner, v, ranks))
        thread.region = region
        try:
            result = self.function(*stand_ins[0], **stand_ins[1])
        finally:
            thread.region = before
        self.region, self.params, self.result = region, list(_leaves(stand_ins)), result
        return _walk(result, lambda v: reading(v, ranks))

    def _again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        outer = thread.run
        assert outer is not None and self.region is not None
        inner = Values(outer.session, outer)
        for param, value in zip(self.params, _leaves((args, kwargs)), strict=True):
            inner.put(param, value)
        thread.run = inner
        try:
            for op in self.region.operations:
                inner.run(op)
            return _walk(self.result, inner.get)
        finally:
            thread.run = outer

    def outer_tensors(self) -> Iterator[Tensor]:
        """The tensors of the graph around that its operations and its result use."""
        if self.region is None:
            return
        results = [v for v in map(element, _leaves(self.result)) if v is not None]
        for tensor in (*(t for op in self.region.operations for t in op.inputs), *results):
            if tensor.op.region is not self.region:
                yield tensor


class Values:
    """The values of tensors while operations are run again, in a function that is being traced.

    Attributes:
        session: whose variables they use.
        outer: the values around a branch or body.
    """

    def __init__(self, session: Any, outer: Values | None = None) -> None:
        self.session, self._outer = session, outer
        self._found: dict[Tensor, Any] = {}

    def put(self, tensor: Any, value: Any) -> None:
        """Let a tensor have a value."""
        found = element(tensor)
        if found is not None:
            self._found[found] = value

    def has(self, tensor: Tensor) -> bool:
        """Whether a tensor has a value already."""
        return tensor in self._found or (self._outer is not None and self._outer.has(tensor))

    def get(self, value: Any) -> Any:
        """The value of a tensor or variable; other things are as they are."""
        if type(value) is Literal:
            return value.value
        tensor = element(value)
        return value if tensor is None else self._of(tensor)

    def _of(self, tensor: Tensor) -> Any:
        found = self._found.get(tensor)
        if found is None:
            if self._outer is None:
                raise td.errors.InternalError(None, tensor.op, f"{tensor!r} was not computed")
            return self._outer._of(tensor)
        return found

    def run(self, op: Operation) -> None:
        """Call an operation once more."""
        if op.function is None or (op.outputs and all(t in self._found for t in op.outputs)):
            return
        self.session.before(op, self)
        with attributed_to(op.origin):
            if op.device:
                with td.device(_local(op.device)):
                    found = op.call(self.get)
            else:
                found = op.call(self.get)
        given = [v for v in _leaves(found) if _is_value(v)]
        for tensor, value in zip(op.outputs, given, strict=True):
            self._found.setdefault(tensor, value)


def _local(device: str) -> str | None:
    """The name of a device of this machine; the processor where there is no such device."""
    try:
        with td.device(device):
            return device
    except (ValueError, RuntimeError):
        return "/cpu:0"


def element(value: Any) -> Tensor | None:
    """The tensor that a value of a graph is: a tensor, or what stands for one."""
    if type(value) is Tensor:
        return value
    convert = getattr(type(value), "_as_tensor", None)
    return None if convert is None else convert(value)


def _standing_for(op: Operation, value: Any, ranks: Ranks) -> Any:
    """A new tensor of an operation for a value of the outline."""
    if not _is_value(value):
        return value
    tensor = Tensor(op, len(op.outputs), {ranks: value})
    op.outputs.append(tensor)
    return _shells[type(value)](tensor) if type(value) in _shells else tensor


# Classes of treadle whose objects are one value -> the class of those that stand for them.
_shells: dict[type, Callable[[Tensor], Any]] = {}


def stands_for(kind: type, shell: Callable[[Tensor], Any]) -> None:
    """Let results of a class of treadle be objects ``shell(tensor)`` in graphs."""
    _shells[kind] = shell


def _is_value(value: Any) -> bool:
    return isinstance(value, td.Tensor) or type(value) in _shells


def reading(value: Any, ranks: Ranks) -> Any:
    """What stands for a value of a graph in the outline where placeholders have these ranks."""
    if type(value) is Literal:
        return value.value
    tensor = element(value)
    if tensor is None:
        return value
    for assumed, found in tensor.readings.items():
        if assumed <= ranks:
            return found
    for assumed, found in tensor.readings.items():
        if _agree(assumed, ranks):
            return found
    raise ValueError(f"{tensor!r} cannot have a shape that fits here{at(user_origin())}")


def _agree(a: Ranks, b: Ranks) -> bool:
    known = dict(a)
    return all(known.get(op, rank) == rank for op, rank in b)


def _joined(tensors: Iterable[Tensor]) -> list[Ranks]:
    """The ranks of placeholders for which all of some tensors have a reading."""
    found = [ANY_RANKS]
    for readings in dict.fromkeys(tuple(t.readings) for t in tensors):
        if readings != (ANY_RANKS,):
            both = [a | b for a in found for b in readings if _agree(a, b)]
            found = list(dict.fromkeys(both))[:_MOST_READINGS]
    return found


def _walk(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """A structure with its leaves replaced."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind([_walk(v, leaf) for v in value])
    if kind is slice:
        return slice(*(_walk(v, leaf) for v in (value.start, value.stop, value.step)))
    if isinstance(value, dict):
        pairs = [(k, _walk(v, leaf)) for k, v in value.items()]
        try:
            return kind(pairs)
        except TypeError:
            return dict(pairs)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*(_walk(v, leaf) for v in value))
    if isinstance(value, list | tuple):
        return [_walk(v, leaf) for v in value]
    if isinstance(value, td.IndexedSlices):
        parts = [_walk(v, leaf) for v in (value.values, value.indices, value.dense_shape)]
        if all(p is None or isinstance(p, td.Tensor) for p in parts) and not any(
            type.__instancecheck__(Tensor, p) for p in parts
        ):
            return td.IndexedSlices(*parts)
        return IndexedSlices(*parts)
    if kind is IndexedSlices:
        parts = [_walk(v, leaf) for v in (value.values, value.indices, value.dense_shape)]
        if any(type.__instancecheck__(Tensor, p) for p in parts):
            return IndexedSlices(*parts)
        return td.IndexedSlices(*parts)
    return leaf(value)


class IndexedSlices:
    """The rows of a tensor of a graph that are not zero: see `td.IndexedSlices`."""

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values, self.indices, self.dense_shape = values, indices, dense_shape

    dtype = property(lambda self: self.values.dtype)
    graph = property(lambda self: self.values.graph)
    op = property(lambda self: self.values.op)
    name = property(lambda self: self.values.name)

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self.indices}, values={self.values})"


def _leaves(value: Any) -> Iterator[Any]:
    found: list[Any] = []

    def leaf(v: Any) -> Any:
        found.append(v)
        return v

    _walk(value, leaf)
    yield from found


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
        self.finalized = False
        self.seed: int | None = None
        self.device_name = ""
        self.lock = threading.RLock()

    # -- operations --------------------------------------------------------------------------

    @property
    def version(self) -> int:
        return len(self._by_name)

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> Any:
        """The operations as data: a `GraphDef`."""
        return Graph.written(self)

    written: ClassVar[Callable[[Graph], Any]]  # set by `graph_def`

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
        for ranks in _joined((*op.inputs,)):
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
        op.inputs = list(
            dict.fromkeys([*op.inputs, *(t for b in op.bodies for t in b.outer_tensors())])
        )
        self._name(op, name, default, new, function)
        self._give(op, results)
        self._add(op)
        return op.result if op.outputs or op.result is not None else op

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
            if isinstance(v, Dimension | td.TensorShape):
                return plain(v) if isinstance(v, Dimension) else td.TensorShape(plain(v))
            if inspect.isroutine(v) or isinstance(v, functools.partial):
                return Body(self, v)
            return v

        return _walk(value, leaf)

    def _find_inputs(self, op: Operation) -> None:
        found: dict[Tensor, None] = {}
        for value in (*_leaves(op.args), *_leaves(op.kwargs)):
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

    def _give(self, op: Operation, results: dict[Ranks, Any]) -> None:
        """Make the tensors of the results."""
        (ranks, first), *others = results.items()
        op.result = _walk(first, lambda v: _standing_for(op, v, ranks))
        for other, found in others:
            values = [v for v in _leaves(found) if _is_value(v)]
            if len(values) == len(op.outputs):
                for tensor, value in zip(op.outputs, values, strict=True):
                    tensor.readings[other] = value
        for tensor in op.outputs:
            values = list(tensor.readings.values())
            same = all(v.dtype is values[0].dtype for v in values)
            tensor.is_sure = not (op.bodies and ranks) and same

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
            _override(op, override)

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
        """``name`` in the scope, with a number behind it where it is taken."""
        if name.endswith("/"):  # a scope: the operation has its name
            return name[:-1]
        name = self._scope + name
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
        if name:
            pattern = _INNER_SCOPE if self._scope else _SCOPE
            if not isinstance(name, str) or not pattern.fullmatch(name):
                raise ValueError(f"{name!r} is not a valid scope name{at(user_origin())}")
        before = self._scope
        if not name:
            self._scope = ""
        elif name.endswith("/"):
            self._scope = name
        else:
            self._scope = self.unique_name(name) + "/"
        try:
            yield self._scope
        finally:
            self._scope = before

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
        tensor = element(obj)
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

    def is_fetchable(self, obj: Any) -> bool:
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
                if isinstance(value, IndexedSlices):
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


def _nothing() -> None:
    """A variable may be made where calls are outlined."""


def _device_name(name: str) -> str:
    """TensorFlow's form of a device's name: ``/device:CPU:0``."""
    found = re.fullmatch(r"/?(?:device:)?(cpu|gpu):(\d+)", name, re.IGNORECASE)
    return f"/device:{found[1].upper()}:{found[2]}" if found else name


# -- gradients of the user -----------------------------------------------------------------------

_registered_gradients: dict[str, Any] = {}


class RegisterGradient:
    """Decorator: the function is the gradient of operations of a type, or of those that
    `Graph.gradient_override_map` gives this name.

    It is called as ``f(op, *grads)`` with the inputs and outputs of the operation, and gives the
    gradient of each input, or None.

    Raises:
        TypeError: the name is no string.
        KeyError: a gradient of that name was registered already.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        if self._op_type in _registered_gradients:
            raise KeyError(
                f"Registering two gradient with name '{self._op_type}'! (Previous registration was "
                f"in {getattr(_registered_gradients[self._op_type], '__name__', 'f')})"
            )
        _registered_gradients[self._op_type] = f
        return f


def NotDifferentiable(op_type: str) -> None:
    """Say that an operation type has no gradient."""
    RegisterGradient(op_type)(lambda op, *grads: None)


NoGradient = NotDifferentiable


class _Called:
    """An operation as a gradient of the user sees it.

    Attributes:
        inputs, outputs: tensors.
    """

    def __init__(self, op: Operation, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.name, self.type, self.device = op.name, op.type, op.device
        self.get_attr = op.get_attr


def _override(op: Operation, name: str) -> None:
    """Give an operation the gradient of the user that has a name."""
    gradient = _registered_gradients.get(name)
    if gradient is None:
        raise LookupError(f"gradient registry has no entry for: {name}")
    inner, tensors = op.function, list(op.inputs)
    assert inner is not None

    def call(*args: Any, **kwargs: Any) -> Any:
        """The operation, with the gradient registered for it."""
        given = [v for v in _leaves((args, kwargs)) if isinstance(v, td.Tensor)]

        @td.custom_gradient
        def with_gradient(*inputs: Any) -> Any:
            following = iter(inputs)
            again = _walk(
                (args, kwargs), lambda v: next(following) if isinstance(v, td.Tensor) else v
            )
            result = inner(*again[0], **again[1])
            outputs = [v for v in _leaves(result) if isinstance(v, td.Tensor)]

            def back(*grads: Any) -> Any:
                found = gradient(_Called(op, inputs, outputs), *grads)
                return found if isinstance(found, list | tuple) else [found]

            return result, back

        return with_gradient(*given)

    op.function = call
    # The outline has the operation with its own gradient: it is written there once more.
    if tensors:
        with recording(op.graph.region.builder), taping(()):
            for ranks in list(op.outputs[0].readings):
                found = op.call(functools.partial(_read_for, ranks))
                for tensor, value in zip(
                    op.outputs, filter(_is_value, _leaves(found)), strict=True
                ):
                    tensor.readings[ranks] = value


def _read_for(ranks: Ranks, value: Any) -> Any:
    return reading(value, ranks)


# -- where calls go ------------------------------------------------------------------------------

_default = [Graph()]
_sessions: dict[int, list[Any]] = {}


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


def has_default_graph() -> bool:
    """Whether a block makes a graph the default one."""
    return bool(thread.graphs)


def chosen_session(session: Any, graph: Graph, what: str) -> Any:
    """A session, or else the default one.

    Raises:
        ValueError: there is none, or it is of another graph.
    """
    if session is None:
        found = sessions()
        session = found[-1] if found else None
        if session is None:
            raise ValueError(
                f"Cannot {what} using `eval()`: No default session is registered. Use `with "
                "sess.as_default()` or pass an explicit session to `eval(session=sess)`"
                if what == "evaluate tensor"
                else "Cannot execute operation using `run()`: No default session is registered. "
                "Use `with sess.as_default():` or pass an explicit session to `run(session=sess)`"
            )
        if session.graph is not graph:
            raise ValueError(
                f"Cannot use the default session to {what}: the tensor's graph is different from "
                "the session's graph. Pass an explicit session to `eval(session=sess)`."
            )
    return session


def sessions() -> list[Any]:
    """The default sessions of this thread, the innermost last."""
    return _sessions.setdefault(threading.get_ident(), [])


def writes_into(*values: Any) -> Graph | None:
    """The graph that a call with these arguments is written into; None where it is called at once:
    in a function that is traced, and where eager execution is enabled."""
    recorder: Any = context.recorder
    if recorder is not None:
        region = thread.region
        if region is None or recorder is not region.builder or thread.run is not None:
            return None
    given = next((t for v in _leaves(values) if (t := element(v)) is not None), None)
    if given is not None:
        return given.graph
    return None if Mode.eager and not thread.graphs else get_default_graph()


@functools.cache
def _position_of_name(function: Any) -> int | None:
    """Where a function takes its name, if it may take it by position."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for index, parameter in enumerate(parameters):
        if parameter.name == "name" and parameter.kind in kinds:
            return index
    return None


def _takes_name(function: Any) -> bool:
    """Whether a function may be called with a name."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    more = (p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return "name" in parameters or any(more)


_names_of_recorded: dict[str, Any] = {}  # what exported graphs call functions
_recorded: dict[Any, Any] = {}


def recorded(
    function: Callable[..., Any], name: str | None = None, type_: str | None = None,
    path: str | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """`function` as a graph has it: calls are written down.

    Args:
        name: what operations are called that are given no name.
        path: what exported graphs call the function.
    """
    where, drops_name = _position_of_name(function), not _takes_name(function)
    known = path or f"{function.__module__}.{getattr(function, '__qualname__', '')}"
    _names_of_recorded.setdefault(known, function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        graph = writes_into(args, kwargs)
        if graph is None:
            if drops_name:
                kwargs.pop("name", None)
            return function(*args, **kwargs)
        given = kwargs.pop("name", None)
        if where is not None and len(args) > where:
            given, args = args[where], args[:where]
        with graph.lock:
            return graph.record(function, args, kwargs, given, type_, name)

    _recorded[call] = function
    return call


def in_graphs(*functions: Callable[..., Any]) -> None:
    """Let exported graphs name functions."""
    for function in functions:
        _names_of_recorded.setdefault(f"{function.__module__}.{function.__qualname__}", function)


def function_named(path: str) -> Callable[..., Any]:
    """The function that exported graphs call by a name; KeyError where there is none."""
    return _names_of_recorded[path]  # type: ignore[no-any-return]


def name_of_function(function: Any) -> str | None:
    """What exported graphs call a function."""
    return next((k for k, f in _names_of_recorded.items() if f is function), None)


# -- operators -----------------------------------------------------------------------------------

_BINARY = {
    "add": (operator.add, "add", "AddV2"), "sub": (operator.sub, "sub", "Sub"),
    "mul": (operator.mul, "mul", "Mul"), "truediv": (operator.truediv, "truediv", "RealDiv"),
    "floordiv": (operator.floordiv, "floordiv", "FloorDiv"),
    "mod": (operator.mod, "mod", "FloorMod"),
    "pow": (operator.pow, "pow", "Pow"), "matmul": (operator.matmul, "matmul", "MatMul"),
    "and": (operator.and_, "and", "LogicalAnd"), "or": (operator.or_, "or", "LogicalOr"),
    "xor": (operator.xor, "LogicalXor", "LogicalXor"), "lt": (operator.lt, "Less", "Less"),
    "le": (operator.le, "LessEqual", "LessEqual"), "gt": (operator.gt, "Greater", "Greater"),
    "ge": (operator.ge, "GreaterEqual", "GreaterEqual"),
}  # fmt: skip
_UNARY = {
    "neg": (operator.neg, "Neg", "Neg"), "abs": (operator.abs, "Abs", "Abs"),
    "invert": (operator.invert, "LogicalNot", "LogicalNot"),
}  # fmt: skip


def _reflected(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: call(other, self)


def _of_one(*about: Any) -> Callable[..., Any]:
    call = recorded(*about)
    return lambda self: call(self)


def give_operators(kind: type) -> None:
    """Let objects of a class of graphs have the operators of tensors."""
    for name, (function, default, type_) in _BINARY.items():
        call = recorded(function, default, type_, f"operator.{name}")
        setattr(kind, f"__{name}__", lambda self, other, call=call: call(self, other))
        if name not in ("lt", "le", "gt", "ge"):
            setattr(kind, f"__r{name}__", _reflected(call))
    for name, about in _UNARY.items():
        setattr(kind, f"__{name}__", _of_one(*about, f"operator.{name}"))
    item = recorded(operator.getitem, "strided_slice", "StridedSlice", "operator.getitem")
    setattr(kind, "__getitem__", lambda self, key: item(self, key))  # noqa: B010


give_operators(Tensor)


def _no_value(tensor: Tensor, dtype: Any) -> Any:
    raise TypeError(
        f"{tensor!r} is a tensor of a graph: td's functions take it by their names in "
        f"treadle.compat.v1{at(user_origin())}"
    )


register_converter(Tensor, _no_value)
