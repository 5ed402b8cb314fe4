"""Tensors and operations of graphs, what stands for them, and their values in a run."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import treadle as td
from treadle.compat.v1.shapes import TensorShape, plain
from treadle.core.context import context, recording, taping
from treadle.core.interrupts import is_mode
from treadle.core.origin import at, attributed_to, user_origin
from treadle.graph.builder import GraphBuilder
from treadle.iteration import drawing_from

if TYPE_CHECKING:
    from treadle.compat.v1.graph import Graph

# Ranks that placeholders (by their operations) are taken to have.
Ranks: TypeAlias = "frozenset[tuple[Operation, int]]"
ANY_RANKS: Ranks = frozenset()
POSSIBLE_RANKS = (1, 2, 0, 3, 4, 5)  # the ranks that are tried, the most likely first
_MOST_READINGS = 48


class _Thread(threading.local):
    """What this thread does.

    Attributes:
        graphs: the default graphs of the blocks around, the innermost last.
        region: the branch or body whose function of the user is called at the moment.
        ranks: the reading for which it is called.
        run: the values of the tensors, while a session runs operations again.
        sessions: the default sessions of the blocks around, the innermost last.
    """

    graphs: tuple[Graph, ...] = ()
    region: Region | None = None
    ranks: Ranks = ANY_RANKS
    run: Values | None = None
    sessions: tuple[Any, ...] = ()


thread = is_mode(_Thread())


class Mode:
    """Whether functions are called at once (`enable_eager_execution`).

    A program of TensorFlow 1 imports the module, ``import treadle.compat.v1 as tf``, and means
    graphs; one of TensorFlow 2 reaches its names as ``tf.compat.v1.div`` and means values.

    Attributes:
        eager: whether functions are called at once, outside of ``with graph.as_default()``.
        is_chosen: whether the program imported the module or said how its functions are called.
        is_imported: whether the program imported the module, and so has the names of both.
    """

    eager = False
    is_chosen = False
    is_imported = False

    @classmethod
    def choose(cls, eager: bool) -> None:
        cls.eager, cls.is_chosen = eager, True

    @classmethod
    def reached(cls, by_import: bool) -> None:
        """Note how a program got the module: `compat.v1` as an attribute, or by an import."""
        cls.is_imported |= by_import
        if by_import and not cls.is_chosen:
            cls.choose(False)
        elif not cls.is_chosen:
            cls.eager = True


class Literal:
    """An argument that is handed over as it is, such as a function of Python that programs call."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def seen_as(kind: type) -> Any:
    """The `__class__` of what graphs have for objects of `kind`: programs of TensorFlow 2 that use
    graphs, too, find with `isinstance` that it is one. treadle itself, which treats such objects in
    other ways, and programs that have the names of both modules, do not."""

    def seen(self: Any) -> type:
        asks = str(sys._getframe(1).f_globals.get("__name__"))
        return type(self) if Mode.is_imported or asks.startswith("treadle.") else kind

    return property(seen)


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
    __class__ = seen_as(td.Tensor)

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
        # An array of tensors has none.
        found = [td.TensorShape(getattr(r, "shape", None)) for r in self.readings.values()]
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

    def call_layer(self, layer: Any, args: Any, kwargs: Any) -> Any:
        """The results of a Keras layer or model, whose variables are in the graph's collections."""
        return self.graph.call_layer(layer, args, kwargs)

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
        graph_seed: the seed of random numbers that the graph had when it was made.
        number: how many operations were made before it.
    """

    _original_op: Operation | None = None  # TensorFlow's test cases ask an error's operation for it

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
        self.graph_seed, self.number = graph.seed, graph.version
        self.owner: Any = None  # the variable or placeholder whose operation it is
        self.attributes: dict[str, Any] = {}
        self.nodes: list[Any] | None = None  # of the outline, where it has one reading

    def call(self, value_of: Callable[[Any], Any]) -> Any:
        """The result for arguments whose tensors have these values."""
        assert self.function is not None
        args, kwargs = (map_leaves(given, value_of) for given in (self.args, self.kwargs))
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
    the operation is written down, once or more; the operations of its last call are run again.

    Attributes:
        is_traced_always: `td.cond` calls it even where the condition is known: it may be fed.
    """

    is_traced_always = True

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
        stand_ins = map_leaves((args, kwargs), lambda v: standing_for(owner, v, ranks))
        thread.region = region
        try:
            result = self.function(*stand_ins[0], **stand_ins[1])
        finally:
            thread.region = before
        self.region, self.params, self.result = region, list(leaves_of(stand_ins)), result
        return map_leaves(result, lambda v: reading(v, ranks))

    def _again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        outer = thread.run
        assert outer is not None and self.region is not None
        inner = Values(outer.session, outer)
        for param, value in zip(self.params, leaves_of((args, kwargs)), strict=True):
            inner.put(param, value)
        thread.run = inner
        try:
            for op in self.region.operations:
                inner.run(op)
            return map_leaves(self.result, inner.get)
        finally:
            thread.run = outer

    def outer_tensors(self) -> Iterator[Tensor]:
        """The tensors of the graph around that its operations and its result use."""
        if self.region is None:
            return
        results = [v for v in map(element, leaves_of(self.result)) if v is not None]
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
        with attributed_to(op.origin), drawing_from(self.session.streams_of(op)):
            if op.device:
                with td.device(_local(op.device)):
                    found = op.call(self.get)
            else:
                found = op.call(self.get)
        given = [v for v in leaves_of(found) if is_value(v)]
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


def the_tensor(value: Any) -> Tensor:
    """The tensor that a value of a graph is.

    Raises:
        TypeError: it is none.
    """
    found = element(value)
    if found is None:
        raise TypeError(f"{value!r} is no tensor of a graph{at(user_origin())}")
    return found


def standing_for(op: Operation, value: Any, ranks: Ranks) -> Any:
    """A new tensor of an operation for a value of the outline."""
    if not is_value(value):
        return value
    tensor = Tensor(op, len(op.outputs), {ranks: value})
    op.outputs.append(tensor)
    return _shells[type(value)](tensor) if type(value) in _shells else tensor


# Classes of treadle whose objects are one value -> the class of those that stand for them.
_shells: dict[type, Callable[[Tensor], Any]] = {}


def stands_for(kind: type, shell: Callable[[Tensor], Any]) -> None:
    """Let results of a class of treadle be objects ``shell(tensor)`` in graphs."""
    _shells[kind] = shell


def is_value(value: Any) -> bool:
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


def joined(tensors: Iterable[Tensor]) -> list[Ranks]:
    """The ranks of placeholders for which all of some tensors have a reading."""
    found = [ANY_RANKS]
    for readings in dict.fromkeys(tuple(t.readings) for t in tensors):
        if readings != (ANY_RANKS,):
            both = [a | b for a in found for b in readings if _agree(a, b)]
            found = list(dict.fromkeys(both))
            if len(found) > _MOST_READINGS:
                found = sorted(found, key=_unlikely)[:_MOST_READINGS]
    return found


def _unlikely(ranks: Ranks) -> int:
    """How far down the list of possible ranks those of placeholders stand, together."""
    return sum(POSSIBLE_RANKS.index(rank) for _, rank in ranks)


def map_leaves(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """A structure with its leaves replaced."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind([map_leaves(v, leaf) for v in value])
    if kind is slice:
        return slice(*(map_leaves(v, leaf) for v in (value.start, value.stop, value.step)))
    if isinstance(value, dict):
        pairs = [(k, map_leaves(v, leaf)) for k, v in value.items()]
        try:
            return kind(pairs)
        except TypeError:
            return dict(pairs)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*(map_leaves(v, leaf) for v in value))
    if isinstance(value, list | tuple):
        return [map_leaves(v, leaf) for v in value]
    several = _composites.get(kind)
    if several is not None:
        parts = [map_leaves(v, leaf) for v in several.parts_of(value)]
        if any(type.__instancecheck__(Tensor, p) for p in parts):
            return several.standing_for(parts)
        return several.of(*parts)
    return leaf(value)


class Composite:
    """What stands in graphs for an object of treadle that is several tensors.

    A subclass says which class of treadle that is. Arguments and results of calls are such an
    object where a call is made, and this where it is written down.

    Attributes:
        of: the class of treadle.
        fields: the attributes of both classes that are its tensors.
        value: makes what runs give and take for it, of the arrays of its parts.
        values: its elements, which all such classes have.
    """

    values: Any
    of: ClassVar[Any]
    fields: ClassVar[tuple[str, ...]]
    value: ClassVar[Callable[..., Any]]

    def __init_subclass__(cls, of: Any, fields: str, value: Callable[..., Any]) -> None:
        cls.of, cls.fields, cls.value = of, tuple(fields.split()), staticmethod(value)
        _composites[of] = _composites[cls] = cls

    @classmethod
    def parts_of(cls, value: Any) -> list[Any]:
        """The tensors of an object of either class."""
        return [getattr(value, name) for name in cls.fields]

    def fed_parts(self, value: Any) -> tuple[Any, ...]:
        """The tensors that a value is fed for."""
        return tuple(p for p in self.parts_of(self) if p is not None)

    @classmethod
    def standing_for(cls, parts: list[Any]) -> Any:
        """The object of graphs of these tensors."""
        found = object.__new__(cls)
        for name, part in zip(cls.fields, parts, strict=True):
            setattr(found, name, part)
        return found


# Classes of treadle, and those of graphs that stand for them -> the latter.
_composites: dict[type, type[Composite]] = {}


class IndexedSlicesValue(NamedTuple):
    """The value of `IndexedSlices`: arrays."""

    values: Any
    indices: Any
    dense_shape: Any = None


class IndexedSlices(
    Composite, of=td.IndexedSlices, fields="values indices dense_shape", value=IndexedSlicesValue
):
    """The rows of a tensor of a graph that are not zero: see `td.IndexedSlices`."""

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values, self.indices, self.dense_shape = values, indices, dense_shape

    dtype = property(lambda self: self.values.dtype)
    graph = property(lambda self: self.values.graph)
    op = property(lambda self: self.values.op)
    name = property(lambda self: self.values.name)

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self.indices}, values={self.values})"


def leaves_of(value: Any) -> Iterator[Any]:
    found: list[Any] = []

    def leaf(v: Any) -> Any:
        found.append(v)
        return v

    map_leaves(value, leaf)
    yield from found


def chosen_session(session: Any, graph: Graph, what: str) -> Any:
    """A session, or else the default one.

    Raises:
        ValueError: there is none, or it is of another graph.
    """
    if session is None:
        found = thread.sessions
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
