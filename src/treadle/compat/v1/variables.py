"""Variables of graphs: each session has a value of its own for them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.graph import Graph, get_default_graph
from treadle.compat.v1.mirrored import claim
from treadle.compat.v1.recording import give_operators, in_graphs, recorded, writes_into
from treadle.compat.v1.session import Fed
from treadle.compat.v1.shapes import TensorShape, plain
from treadle.compat.v1.values import (
    ANY_RANKS,
    Body,
    Operation,
    Tensor,
    chosen_session,
    element,
    seen_as,
    thread,
)
from treadle.core.context import recording, taping
from treadle.core.origin import at, user_origin
from treadle.ops.conversion import register_converter

VariableSynchronization = td.VariableSynchronization
VariableAggregation = td.VariableAggregation


class _VariableKind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, td.Variable)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """A variable of the graph, or of treadle where calls are made at once."""
        if writes_into() is None:
            return _eager(*args, **kwargs)
        graph = get_default_graph()
        create: Callable[..., Any] = lambda next_creator=None, **given: type.__call__(cls, **given)
        if not graph._creators:
            return type.__call__(cls, *args, **kwargs)
        names = ("initial_value", "trainable", "collections", "validate_shape", "caching_device",
                 "name")  # fmt: skip
        for creator in graph._creators:
            create = _following(creator, create)
        return create(**dict(zip(names, args, strict=False)), **kwargs)


def _following(creator: Any, next_creator: Any) -> Any:
    return lambda **given: creator(next_creator, **given)


def _eager(initial_value: Any = None, trainable: Any = None, collections: Any = None,
           validate_shape: bool = True, caching_device: Any = None, name: Any = None,
           variable_def: Any = None, dtype: Any = None, **kwargs: Any) -> td.Variable:  # fmt: skip
    for unknown in ("expected_shape", "use_resource", "shape"):
        kwargs.pop(unknown, None)
    return td.Variable(initial_value, trainable, validate_shape, name=name, dtype=dtype, **kwargs)


class Variable(metaclass=_VariableKind):
    """A tensor that operations may assign. It has no value in a session before its initializer, or
    `global_variables_initializer`, was run there.

    Args:
        initial_value: a tensor of the graph, what converts to one, or a function that gives it.
        trainable: whether it is in the collection TRAINABLE_VARIABLES.
        collections: the collections it is in; GLOBAL_VARIABLES where omitted.
        validate_shape: False: values of other shapes may be assigned.
        name: of its operation, made unique.
        dtype: of the variable; that of the initial value where omitted.
        constraint: a function of the value that optimizers call after their updates.

    Raises:
        ValueError: there is no initial value.
    """

    __array_priority__ = 200
    __array_ufunc__ = None
    __class__ = seen_as(td.Variable)

    def __init__(
        self, initial_value: Any = None, trainable: bool | None = None, collections: Any = None,
        validate_shape: bool = True, caching_device: Any = None, name: str | None = None,
        variable_def: Any = None, dtype: Any = None, expected_shape: Any = None,
        import_scope: Any = None, constraint: Any = None, use_resource: Any = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE, shape: Any = None,
    ) -> None:  # fmt: skip
        if initial_value is None:
            raise ValueError(f"initial_value must be specified.{at(user_origin())}")
        graph = get_default_graph()
        self.synchronization, self.aggregation = synchronization, aggregation
        self.constraint = constraint
        self._save_slice_info: Any = None
        if constraint is not None and not callable(constraint):
            raise ValueError(f"The `constraint` argument must be a callable, not {constraint!r}")
        is_read = synchronization is VariableSynchronization.ON_READ
        self.trainable = not is_read if trainable is None else trainable
        if collections is None:
            collections = [GraphKeys.GLOBAL_VARIABLES]
        elif not isinstance(collections, list | tuple | set):
            raise ValueError(
                "collections argument to Variable constructor must be a list, tuple, or set. Got "
                f"the type {type(collections)}"
            )
        if self.trainable and GraphKeys.TRAINABLE_VARIABLES not in collections:
            collections = [*collections, GraphKeys.TRAINABLE_VARIABLES]
        with graph.at_root(), graph.control_dependencies(None):
            with graph.name_scope(name or "Variable") as scope:
                if callable(initial_value):
                    with graph.name_scope("Initializer"):
                        value = initial_value()
                else:
                    value = initial_value
                if isinstance(value, Variable) and type(value) is Variable:
                    value = value.initialized_value()
                self.initial_value: Any = _initial(graph, value, dtype)
            found = self.initial_value.shape if shape is None else TensorShape(shape)
            self._shape = TensorShape(plain(found) if validate_shape else None)
            self._dtype = self.initial_value.dtype
            readings = {ANY_RANKS: self.storage()}
            self.handle: Tensor = graph.source(
                "VariableV2", scope.rstrip("/"), readings, self, is_unique=True
            )
            with graph.name_scope(scope):
                self.initializer = _assigning(graph, self, self.initial_value, "Assign")
        self._snapshot: Any = None
        graph.add_to_collections(list(collections), self)

    @classmethod
    def imported(
        cls, graph: Graph, name: str, dtype: td.DType, shape: Any, trainable: bool
    ) -> Variable:
        """A variable that a graph was written with; its initializer is an operation of that."""
        made: Variable = object.__new__(cls)
        made.synchronization, made.aggregation = (
            VariableSynchronization.AUTO, VariableAggregation.NONE,
        )  # fmt: skip
        made.constraint, made.trainable, made._save_slice_info = None, trainable, None
        made._shape, made._dtype, made.initial_value = TensorShape(shape), dtype, None
        made.handle = graph.source("VariableV2", name, {ANY_RANKS: made.storage()}, made)
        made._snapshot = None
        made.initializer = None  # type: ignore[assignment]  # (`adopt_initializer` sets it)
        return made

    def adopt_initializer(self) -> None:
        """Take the operation of an imported graph that assigns to it only as the initializer."""
        for op in self.graph.get_operations():
            if op.attributes.get("assigns") is self.handle and op.name == f"{self.op.name}/Assign":
                self.initializer = op

    def begin_with(self, value: Any) -> None:
        """Let it have another initial value; its initializer is another operation, too."""
        graph = self.graph
        with graph.at_root(), graph.control_dependencies(None):
            self.initial_value = value
            with graph.name_scope(self.op.name + "/"):
                self.initializer = _assigning(graph, self, value, "Assign")

    # -- what it is --------------------------------------------------------------------------

    def storage(self) -> td.Variable:
        """What holds its value in a session."""
        rank_is_known = self._shape.rank is not None
        sizes = plain(self._shape) if rank_is_known else []
        zeros = np.zeros([d or 0 for d in sizes], self._dtype.np_dtype)
        if self._dtype is td.string:
            zeros = np.full(zeros.shape, b"", object)
        may_vary = not rank_is_known or None in sizes
        with recording(None), taping(()):
            return td.Variable(
                td.constant(zeros, self._dtype),
                trainable=self.trainable and self._dtype.is_floating,
                name=self.op.name if hasattr(self, "handle") else None, dtype=self._dtype,
                shape=td.TensorShape(sizes if rank_is_known else None) if may_vary else None,
            )  # fmt: skip

    @property
    def op(self) -> Operation:
        return self.handle.op

    @property
    def name(self) -> str:
        return self.handle.name

    @property
    def graph(self) -> Graph:
        return self.handle.graph

    @property
    def dtype(self) -> td.DType:
        dtype: td.DType = self._dtype
        return dtype

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def device(self) -> str:
        return self.handle.op.device

    def get_shape(self) -> TensorShape:
        return self._shape

    def set_shape(self, shape: Any) -> None:
        """Say what the shape is; ValueError where it is known to be another one."""
        self._shape = TensorShape(self._shape.merge_with(plain(shape)))

    def _as_graph_element(self) -> Tensor:
        return self.handle

    _as_tensor = _as_graph_element

    # -- reading -----------------------------------------------------------------------------

    def value(self) -> Any:
        """The value where this is run."""
        if self._snapshot is None:
            with self.graph.name_scope(self.op.name + "/"), self.graph.control_dependencies(None):
                self._snapshot = _read(self, name="read")
        return self._snapshot

    def read_value(self) -> Any:
        """The value when this is run: after the operations that it depends on."""
        return _read(self, name="read")

    def eval(self, session: Any = None) -> Any:
        """Its value in a session, the default one where none is given."""
        return chosen_session(session, self.graph, "evaluate tensor").run(self)

    def initialized_value(self) -> Any:
        """The value, or else the initial value."""
        return _value_or(self, self.initial_value)

    def is_initialized(self, name: str | None = None) -> Any:
        """Whether it has a value: a bool tensor."""
        return is_variable_initialized(self)

    def load(self, value: Any, session: Any = None) -> None:
        """Give it a value in a session, the default one where none is given."""
        chosen = chosen_session(session, self.graph, "execute operation")
        array = np.asarray(value, self.dtype.np_dtype)
        chosen.give_value(self, array)

    # -- assigning ---------------------------------------------------------------------------

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None,
               read_value: bool = True) -> Any:  # fmt: skip
        """An operation that assigns, and gives the new value."""
        return assign(self, value, name=name)

    def assign_add(self, delta: Any, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Any:  # fmt: skip
        """An operation that adds, and gives the new value."""
        return assign_add(self, delta, name=name)

    def assign_sub(self, delta: Any, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Any:  # fmt: skip
        """An operation that subtracts, and gives the new value."""
        return assign_sub(self, delta, name=name)

    def count_up_to(self, limit: int) -> Any:
        """An operation that adds 1 and gives the value before; OutOfRangeError at the limit."""
        return count_up_to(self, limit)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        return _scatters["scatter_sub"](self, sparse_delta.indices, sparse_delta.values, name=name)

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        return _scatters["scatter_add"](self, sparse_delta.indices, sparse_delta.values, name=name)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        given = sparse_delta
        return _scatters["scatter_update"](self, given.indices, given.values, name=name)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        return _scatters["scatter_nd_add"](self, indices, updates, name=name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        return _scatters["scatter_nd_sub"](self, indices, updates, name=name)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        return _scatters["scatter_nd_update"](self, indices, updates, name=name)

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        return recorded(td.gather)(self, indices)

    def ref(self) -> Any:
        return self

    experimental_ref = ref

    def __iter__(self) -> Any:
        raise TypeError("'Variable' object is not iterable.")

    def __bool__(self) -> bool:
        return bool(self.handle)

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    class SaveSliceInfo:
        """What TensorFlow keeps of partitioned variables, of which there are none."""


give_operators(Variable)
_item: Callable[[Variable, Any], Any] = getattr(Variable, "__getitem__")  # noqa: B009


def _part(variable: Variable, key: Any) -> Any:
    """``variable[key]``, to whose elements values may be assigned."""
    part = _item(variable, key)
    found = element(part)
    if found is not None:
        for name, call in _to_parts.items():
            setattr(found, name, functools.partial(call, variable, key))
    return part


setattr(Variable, "__getitem__", _part)  # noqa: B010


register_converter(Variable, claim)
td.Module._kinds_of_variables = (td.Variable, Variable)
RefVariable = VariableV1 = Variable


class SharedVariable(Variable):
    """A variable of treadle in a graph, as a Keras layer's: all sessions share its value, which
    is there from the beginning. Its initializer changes nothing.

    Args:
        listed: whether it is among the graph's variables.
    """

    def __init__(self, variable: td.Variable, listed: bool = True) -> None:
        graph = get_default_graph()
        self.shared = variable
        self.synchronization, self.aggregation = variable.synchronization, variable.aggregation
        self.constraint = getattr(variable, "constraint", None)
        self.trainable, self._save_slice_info = bool(variable.trainable), None
        self._shape, self._dtype = TensorShape(variable.shape), variable.dtype
        self.initial_value = None
        with graph.at_root(), graph.control_dependencies(None):
            name = graph.unique_name(variable.path or variable.name.removesuffix(":0"))
            self.handle = graph.source(
                "VarHandleOp", name, {ANY_RANKS: variable}, self, is_unique=True
            )
            self.initializer = grouped(graph, [], f"{name}/Assign")
        self._snapshot = None
        if listed:
            graph.add_to_collection(GraphKeys.GLOBAL_VARIABLES, self)
        if listed and self.trainable:
            graph.add_to_collection(GraphKeys.TRAINABLE_VARIABLES, self)

    def storage(self) -> td.Variable:
        """The variable itself."""
        return self.shared

    def initialized_value(self) -> Any:
        """The value."""
        return self.read_value()


def _shared(graph: Graph, variable: td.Variable, listed: bool = True) -> Variable:
    """What stands for a variable of treadle in a graph.

    Args:
        listed: whether it is among the graph's variables.
    """
    found = graph.shared.get(id(variable))
    if found is None:
        with graph.as_default():
            made: Any = type.__call__(SharedVariable, variable, listed)
        found = graph.shared[id(variable)] = made
    return found  # type: ignore[no-any-return]


Graph.sharing = _shared


def _initial(graph: Graph, value: Any, dtype: Any) -> Any:
    """The tensor of an initial value."""
    tensor = element(value)
    if tensor is None:
        return recorded(td.convert_to_tensor, "initial_value", "Const")(value, dtype)
    if dtype is not None and tensor.dtype is not td.as_dtype(dtype):
        return recorded(td.cast)(tensor, dtype)
    return tensor


def _assigning(graph: Graph, variable: Variable, value: Any, name: str) -> Operation:
    result = graph.record(_assign, (variable, value), {}, name)
    note_write(result.op, variable, reads=False)
    return result.op  # type: ignore[no-any-return]


def note_write(op: Operation, variable: Variable, reads: bool) -> None:
    """Say of an operation that it changes a variable, which has a value before if `reads`."""
    op.attributes["writes"] = (variable.handle,)
    op.type = {"_assign": "Assign", "_assign_add": "AssignAdd", "_assign_sub": "AssignSub"}.get(
        getattr(op.function, "__name__", ""), op.type
    )
    if not reads:
        op.attributes["assigns"] = variable.handle


def writing(function: Callable[..., Any], name: str, reads: bool = True) -> Callable[..., Any]:
    """`function` as graphs have it, which changes the variable that is its first argument.

    Args:
        reads: whether the variable must have a value before.
    """
    call = recorded(function, name)

    def write(ref: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(ref, td.Variable):
            kwargs.pop("name", None)
            return function(ref, *args, **kwargs)
        if not isinstance(ref, Variable):
            owner = getattr(getattr(element(ref), "op", None), "owner", None)
            if not isinstance(owner, Variable):
                raise TypeError(f"{name}: {ref!r} is no variable{at(user_origin())}")
            ref = owner
        result = call(ref, *args, **kwargs)
        op = result if isinstance(result, Operation) else getattr(result, "op", None)
        if isinstance(op, Operation):
            note_write(op, ref, reads)
        return result

    return write


@recorded
def _read(variable: Any) -> Any:
    """The value of a variable."""
    return td.identity(variable)


def _assign(variable: Any, value: Any) -> Any:
    variable.assign(value)
    return variable.read_value()


def _assign_add(variable: Any, value: Any) -> Any:
    variable.assign_add(value)
    return variable.read_value()


def _assign_sub(variable: Any, value: Any) -> Any:
    variable.assign_sub(value)
    return variable.read_value()


_set, _add, _sub = (
    writing(_assign, "Assign", reads=False), writing(_assign_add, "AssignAdd"),
    writing(_assign_sub, "AssignSub"),
)  # fmt: skip


def _is_part(ref: Any) -> bool:
    """Whether something is a part ``v[0]`` of a variable that operations change at once."""
    return isinstance(ref, td.Tensor) and hasattr(ref, "assign")


def assign(ref: Any, value: Any, validate_shape: Any = None, use_locking: Any = None,
           name: str | None = None) -> Any:  # fmt: skip
    """An operation that assigns `value` to a variable, or to a part of one, and gives the new
    value."""
    return ref.assign(value) if _is_part(ref) else _set(ref, value, name=name)


def assign_add(ref: Any, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
    """An operation that adds `value` to a variable, or to a part of one, and gives the new
    value."""
    return ref.assign_add(value) if _is_part(ref) else _add(ref, value, name=name)


def assign_sub(ref: Any, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
    """An operation that subtracts `value` from a variable, or from a part of one, and gives the new
    value."""
    return ref.assign_sub(value) if _is_part(ref) else _sub(ref, value, name=name)


def _part_writer(method: str) -> Callable[..., Any]:
    def change(variable: Any, key: Any, value: Any) -> Any:
        getattr(variable[key], method)(value)
        return variable.read_value()

    call = writing(change, "strided_slice/_assign")

    def write(variable: Any, key: Any, value: Any, name: str | None = None) -> Any:
        return call(variable, key, value, name=name)

    return write


_to_parts = {name: _part_writer(name) for name in ("assign", "assign_add", "assign_sub")}


def _count_up(variable: Any, limit: int) -> Any:
    before = variable.read_value()

    def check(value: Any) -> None:
        if value >= limit:
            raise td.errors.OutOfRangeError(None, None, f"Reached limit of {limit}")

    td.numpy_function(check, [before], [])
    variable.assign_add(td.ones_like(before))
    return before


count_up_to = writing(_count_up, "CountUpTo")


def _of_slices(method: str) -> Callable[..., Any]:
    def scatter(variable: Any, indices: Any, updates: Any) -> Any:
        updates = td.convert_to_tensor(updates, variable.dtype)
        getattr(variable, method)(td.IndexedSlices(updates, indices))
        return variable.read_value()

    scatter.__name__ = method
    return scatter


def _of_positions(method: str) -> Callable[..., Any]:
    def scatter(variable: Any, indices: Any, updates: Any) -> Any:
        getattr(variable, method)(indices, updates)
        return variable.read_value()

    scatter.__name__ = method
    return scatter


_scatters = {
    **{f"scatter_{n}": writing(_of_slices(f"scatter_{n}"), f"Scatter{n.capitalize()}")
       for n in ("add", "sub", "update", "mul", "div", "min", "max")},
    **{f"scatter_nd_{n}": writing(_of_positions(f"scatter_nd_{n}"), f"ScatterNd{n.capitalize()}")
       for n in ("add", "sub", "update")},
    "batch_scatter_update": writing(_of_slices("batch_scatter_update"), "ScatterNdUpdate"),
}  # fmt: skip


def _scatter(name: str) -> Callable[..., Any]:
    def scatter(ref: Any, indices: Any, updates: Any, use_locking: bool = False,
                name: str | None = None) -> Any:  # fmt: skip
        return _scatters[kind](ref, indices, updates, name=name)

    kind = scatter.__name__ = name
    scatter.__doc__ = f"An operation that is {name} on a variable, and gives the new value."
    return scatter


scatter_add, scatter_sub, scatter_update, scatter_mul, scatter_div, scatter_min, scatter_max = map(
    _scatter, [f"scatter_{n}" for n in ("add", "sub", "update", "mul", "div", "min", "max")]
)
scatter_nd_add, scatter_nd_sub, scatter_nd_update = map(
    _scatter, [f"scatter_nd_{n}" for n in ("add", "sub", "update")]
)
batch_scatter_update = _scatter("batch_scatter_update")


def _value_or(variable: Variable, initial: Any) -> Any:
    with variable.graph.as_default():
        found = recorded(td.cond, "initialized_value")(
            is_variable_initialized(variable), Body(variable.graph, lambda: _unchecked(variable)),
            Body(variable.graph, lambda: initial),
        )  # fmt: skip
    found.op.attributes["may_be_missing"] = True
    return found


def _unchecked(variable: Variable) -> Any:
    found = _read(variable)
    found.op.attributes["may_be_missing"] = True
    return found


def _fed(graph: Graph, name: str, spec: Any, value: Callable[[Any], Any]) -> Tensor:
    """A tensor whose value each run takes from its session."""
    with graph.at_root():
        return graph.source(
            name, name, {ANY_RANKS: graph.parameter(spec.dtype, spec.shape)}, Fed(value)
        )


def is_variable_initialized(variable: Any, name: str | None = None) -> Any:
    """Whether a variable has a value in the session: a bool tensor."""
    if isinstance(variable, td.Variable):
        return td.constant(True)
    return _fed(
        variable.graph, name or "IsVariableInitialized", td.TensorSpec([], td.bool),
        lambda session: np.bool_(session.has_value(variable)),
    )  # fmt: skip


def report_uninitialized_variables(
    var_list: Any = None, name: str = "report_uninitialized_variables"
) -> Any:
    """The names of the variables that have no value in the session: a vector of strings."""
    if var_list is None:
        var_list = global_variables() + local_variables()
    chosen = list(var_list)

    def names(session: Any) -> Any:
        missing = [v.op.name.encode() for v in chosen if not session.has_value(v)]
        return td.constant(np.array(missing, object), td.string)

    return _fed(get_default_graph(), name, td.TensorSpec([None], td.string), names)


def assert_variables_initialized(var_list: Any = None) -> Any:
    """An operation that reads the variables: FailedPreconditionError where one has no value."""
    chosen = global_variables() + local_variables() if var_list is None else var_list
    return group(*[_read(v) for v in chosen], name="assert_variables_initialized")


# -- collections ---------------------------------------------------------------------------------


def _collected(key: str) -> Callable[..., list[Any]]:
    def found(scope: str | None = None) -> list[Any]:
        return get_default_graph().get_collection(key, scope)

    found.__doc__ = f"The variables of the collection {key!r}, or those whose names begin so."
    return found


global_variables = _collected(GraphKeys.GLOBAL_VARIABLES)
local_variables = _collected(GraphKeys.LOCAL_VARIABLES)
model_variables = _collected(GraphKeys.MODEL_VARIABLES)
trainable_variables = _collected(GraphKeys.TRAINABLE_VARIABLES)
moving_average_variables = _collected(GraphKeys.MOVING_AVERAGE_VARIABLES)


def all_variables() -> list[Any]:
    """The variables of the collection GLOBAL_VARIABLES."""
    return global_variables()


def variables_initializer(var_list: Sequence[Any], name: str = "init") -> Operation:
    """An operation that initializes variables."""
    found: Operation = group(
        *[v.initializer for v in var_list if hasattr(v, "initializer")], name=name
    )
    return found


initialize_variables = variables_initializer


def global_variables_initializer() -> Operation:
    """An operation that initializes the variables of the collection GLOBAL_VARIABLES."""
    return variables_initializer(global_variables())


initialize_all_variables = global_variables_initializer


def local_variables_initializer() -> Operation:
    """An operation that initializes the variables of the collection LOCAL_VARIABLES."""
    return variables_initializer(local_variables())


initialize_local_variables = local_variables_initializer


def group(*inputs: Any, **kwargs: Any) -> Any:
    """An operation that is done when others are."""
    name = kwargs.pop("name", None)
    flat = [x for x in td.nest.flatten(inputs) if x is not None]
    graph = writes_into(flat)
    if graph is None:
        return td.group(*inputs)
    return grouped(graph, flat, name or "group_deps")


def grouped(graph: Graph, inputs: Sequence[Any], name: str, type_: str = "NoOp") -> Operation:
    """An operation of a graph that does nothing, after others."""
    graph.check_open()
    with graph.control_dependencies([x for x in inputs if x is not None]):
        op = Operation(graph, graph.unique_name(name), type_, _nothing)
        graph._add(op)
    return op


def _nothing() -> None:
    """What an operation does that does nothing."""


in_graphs(_nothing, _assign)


def no_op(name: str | None = None) -> Any:
    """An operation that does nothing."""
    graph = writes_into()
    return td.no_op() if graph is None else grouped(graph, [], name or "NoOp")


def after(results: Any, value: Any, name: str | None = None) -> Any:
    """`value`, when other operations are done."""
    with get_default_graph().control_dependencies(results):
        return recorded(td.identity)(value, name=name)


def inside_body() -> bool:
    """Whether a branch or the body of a loop is being made."""
    return thread.region is not None
