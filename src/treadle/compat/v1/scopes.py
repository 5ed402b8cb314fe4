"""Scopes of variables: `get_variable` makes a variable once and gives it again by its name."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import treadle as td
from treadle.compat.v1 import initializers
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.graph import Graph, get_default_graph
from treadle.compat.v1.recording import writes_into
from treadle.compat.v1.shapes import TensorShape, plain
from treadle.compat.v1.variables import Variable
from treadle.core.origin import at, user_origin


class _ReuseMode(enum.Enum):
    AUTO_REUSE = 1


AUTO_REUSE = _ReuseMode.AUTO_REUSE


class _Store:
    """The variables of a graph by their names, and the scope that is open.

    Attributes:
        counts: how often scopes were opened by names that are made unique.
        kept: the variables of the template that is called at once, by their names; None outside of
            templates, where no variable that is made at once is given again.
    """

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}
        self.kept: dict[str, Any] | None = None
        self.counts: dict[str, int] = {}
        self.scope = VariableScope(False)


_stores: WeakKeyDictionary[Graph, _Store] = WeakKeyDictionary()


def _store() -> _Store:
    graph = get_default_graph()
    found = _stores.get(graph)
    if found is None:
        found = _stores[graph] = _Store()
    return found


class VariableScope:
    """What `get_variable` does inside of a scope.

    Attributes:
        name: of the scope, in front of the names of its variables.
        reuse: True: variables must exist; False: they must not; AUTO_REUSE: they are made where
            they do not exist.
        initializer, regularizer, caching_device, dtype, constraint, custom_getter: what
            `get_variable` takes where it is given none.
        original_name_scope: the name scope that the scope was opened with.
    """

    def __init__(
        self, reuse: Any, name: str = "", initializer: Any = None, regularizer: Any = None,
        caching_device: Any = None, partitioner: Any = None, custom_getter: Any = None,
        name_scope: str = "", dtype: Any = td.float32, use_resource: Any = None,
        constraint: Any = None,
    ) -> None:  # fmt: skip
        self.reuse, self.name, self.initializer, self.regularizer = (
            reuse, name, initializer, regularizer,
        )  # fmt: skip
        self.caching_device, self.custom_getter = caching_device, custom_getter
        self.original_name_scope, self.dtype, self.constraint = name_scope, dtype, constraint
        self.use_resource = use_resource
        self._check(partitioner)
        self.partitioner = None

    @staticmethod
    def _check(partitioner: Any) -> None:
        if partitioner is not None:
            raise NotImplementedError(
                "Variables are not divided among devices: leave partitioner out"
                f"{at(user_origin())}"
            )

    def reuse_variables(self) -> None:
        """From now on variables must exist."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        self.initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        self.regularizer = regularizer

    def set_dtype(self, dtype: Any) -> None:
        self.dtype = dtype

    def set_custom_getter(self, custom_getter: Any) -> None:
        self.custom_getter = custom_getter

    def set_caching_device(self, caching_device: Any) -> None:
        self.caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        self._check(partitioner)

    def get_collection(self, name: Any) -> list[Any]:
        """The values of a collection that belong to the scope."""
        return get_default_graph().get_collection(name, self.name + "/" if self.name else "")

    def trainable_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def copied(self, **changes: Any) -> VariableScope:
        """A scope that differs in some attributes."""
        copy = object.__new__(VariableScope)
        copy.__dict__.update(self.__dict__)
        copy.__dict__.update(changes)
        return copy

    def get_variable(self, name: str, shape: Any = None, dtype: Any = None, initializer: Any = None,
                     regularizer: Any = None, reuse: Any = None, trainable: Any = None,
                     collections: Any = None, custom_getter: Any = None, constraint: Any = None,
                     **more: Any) -> Any:  # fmt: skip
        """See `get_variable`."""
        if writes_into() is None:
            reuse = AUTO_REUSE if reuse is None else reuse
        self._check(more.pop("partitioner", None))
        _check_dtype(initializer, dtype)
        given: dict[str, Any] = {
            "shape": shape,
            "dtype": self.dtype if dtype is None else dtype,
            "initializer": self.initializer if initializer is None else initializer,
            "regularizer": self.regularizer if regularizer is None else regularizer,
            "reuse": self.reuse if reuse is None else reuse,
            "trainable": trainable, "collections": collections,
            "constraint": self.constraint if constraint is None else constraint, **more,
        }  # fmt: skip
        whole = f"{self.name}/{name}" if self.name else name
        getter = custom_getter or self.custom_getter
        if getter is None:
            return _get(whole, **given)
        with get_default_graph().name_scope(None):
            return getter(getter=_get, name=whole, **given)


def get_variable_scope() -> VariableScope:
    """The scope of variables that is open."""
    return _store().scope


def in_scope(name: str) -> str:
    """The name of a variable in the scope that is open."""
    scope = get_variable_scope().name
    return f"{scope}/{name}" if scope else name


def get_variable(
    name: str, shape: Any = None, dtype: Any = None, initializer: Any = None,
    regularizer: Any = None, trainable: Any = None, collections: Any = None,
    caching_device: Any = None, partitioner: Any = None, validate_shape: bool = True,
    use_resource: Any = None, custom_getter: Any = None, constraint: Any = None,
    synchronization: Any = None, aggregation: Any = None,
) -> Any:  # fmt: skip
    """The variable of a name in the scope, made where the scope allows it.

    Where operations compute at once, as in programs of TensorFlow 2, each call makes a new one, as
    there: a program keeps its variables itself, or calls a `make_template`.

    Args:
        initializer: a function ``f(shape, dtype=...)``, or the initial value itself; Glorot's
            uniform numbers for floats, zeros for integers where omitted.
        regularizer: a function of the value, whose result is in REGULARIZATION_LOSSES.

    Raises:
        ValueError: the scope does not allow to make it, or to give it again; its shape or dtype is
            another one; its shape is not known.
        NotImplementedError: there is a partitioner.
    """
    return get_variable_scope().get_variable(
        name, shape, dtype, initializer, regularizer, None, trainable, collections, custom_getter,
        constraint, partitioner=partitioner, validate_shape=validate_shape,
        synchronization=synchronization or td.VariableSynchronization.AUTO,
        aggregation=aggregation or td.VariableAggregation.NONE,
    )  # fmt: skip


def _check_dtype(initializer: Any, dtype: Any) -> None:
    """A ValueError where an initial value is of another dtype than the one that is asked for."""
    if initializer is None or dtype is None or callable(initializer):
        return
    kind = getattr(initializer, "dtype", None) or td.convert_to_tensor(initializer).dtype
    if td.as_dtype(kind) != td.as_dtype(dtype):
        raise ValueError(
            f"Initializer type '{td.as_dtype(kind)}' and explicit dtype '{td.as_dtype(dtype)}' "
            f"don't match.{at(user_origin())}"
        )


def variables_of_scopes() -> dict[str, Any]:
    """The variables that `get_variable` made, by their names."""
    return _store().variables


def get_local_variable(name: str, *args: Any, **kwargs: Any) -> Any:
    """As `get_variable`, in the collection LOCAL_VARIABLES and not trained."""
    kwargs["collections"] = [*(kwargs.get("collections") or ()), GraphKeys.LOCAL_VARIABLES]
    return get_variable(name, *args, **{**kwargs, "trainable": False})


def _get(name: str, shape: Any = None, dtype: Any = td.float32, initializer: Any = None,
         regularizer: Any = None, reuse: Any = None, trainable: Any = None, collections: Any = None,
         constraint: Any = None, validate_shape: bool = True,
         synchronization: Any = td.VariableSynchronization.AUTO,
         aggregation: Any = td.VariableAggregation.NONE, **more: Any) -> Any:  # fmt: skip
    store = _store()
    dtype, sizes = td.as_dtype(dtype), plain(shape)
    sizes = [sizes] if isinstance(sizes, int) else sizes
    at_once = writes_into() is None and not td.inside_function()
    known = store.kept if at_once else store.variables
    found = None if known is None else known.get(name)
    if found is not None:
        return _again(found, name, sizes, dtype, reuse)
    if reuse is True and known is not None:
        raise ValueError(
            f"Variable {name} does not exist, or was not created with tf.get_variable(). Did you "
            f"mean to set reuse=tf.AUTO_REUSE in VarScope?{at(user_origin())}"
        )
    if initializer is None:
        initializer = initializers.default(dtype)
    if sizes is None and (callable(initializer) or isinstance(initializer, type)):
        raise ValueError(
            f"Variable {name} did not get an initializer, so its `shape` argument must be "
            f"specified.{at(user_origin())}"
        )
    if sizes is not None and not callable(initializer):
        raise ValueError(
            f"If initializer is a constant, do not specify shape.{at(user_origin())}"
        )
    graph = get_default_graph()
    if isinstance(initializer, type):
        initializer = initializer()
    value = initializer
    if callable(initializer):
        if not TensorShape(sizes).is_fully_defined():
            raise ValueError(
                f"Shape of a new variable ({name}) must be fully defined, but instead was "
                f"{TensorShape(sizes)}.{at(user_origin())}"
            )
        value = functools.partial(_initial, initializer, sizes, dtype)
    eager = writes_into() is None
    scope = graph._scope
    graph._scope = ""
    try:
        if eager:
            with td.name_scope(""):  # the name has the scope of variables in front
                variable: Any = td.Variable(
                    value, trainable, name=name, dtype=dtype if callable(initializer) else None,
                    constraint=constraint,
                    synchronization=synchronization, aggregation=aggregation,
                )  # fmt: skip
        else:
            variable = Variable(
                value, trainable, collections, validate_shape,
                name=name, dtype=dtype if callable(initializer) else None, constraint=constraint,
                synchronization=synchronization, aggregation=aggregation,
            )  # fmt: skip
    finally:
        graph._scope = scope
    if known is not None:
        known[name] = variable
    if regularizer is not None and not eager:
        with graph.at_root(), graph.name_scope(name + "/Regularizer/"):
            loss = regularizer(variable.read_value())
        if loss is not None:
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return variable


def _initial(initializer: Any, sizes: Any, dtype: td.DType) -> Any:
    try:
        parameters = inspect.signature(initializer).parameters
    except (TypeError, ValueError):
        return initializer(sizes, dtype)
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    if not parameters:
        return initializer()
    return initializer(
        sizes, dtype=dtype
    ) if "dtype" in parameters or takes_any else initializer(sizes)


def _again(found: Any, name: str, sizes: Any, dtype: td.DType, reuse: Any) -> Any:
    """A variable that exists."""
    if reuse is False or reuse is None:
        op = getattr(found, "op", None)
        where = f" Originally defined at:\n\n  {op.origin}" if op is not None else ""
        raise ValueError(
            f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or "
            f"reuse=tf.AUTO_REUSE in VarScope?{where}{at(user_origin())}"
        )
    if sizes is not None and not found.shape.is_compatible_with(sizes):
        raise ValueError(
            f"Trying to share variable {name}, but specified shape {TensorShape(sizes)} and found "
            f"shape {found.shape}.{at(user_origin())}"
        )
    if dtype is not found.dtype:
        raise ValueError(
            f"Trying to share variable {name}, but specified dtype {dtype.name} and found dtype "
            f"{found.dtype.name}_ref.{at(user_origin())}"
        )
    return found


class variable_scope:
    """A block whose variables of `get_variable` have a name in front, and may be given again.

    Args:
        name_or_scope: a name inside of the scope around, or a `VariableScope` to open again.
        default_name: a name that is made unique, where the first is None.
        reuse: True, None (as around) or AUTO_REUSE.
        initializer, regularizer, custom_getter, dtype, constraint: see `VariableScope`.
        auxiliary_name_scope: whether there is a name scope of operations, too.

    Raises:
        ValueError: neither name is given, or `reuse` is True with a default name.
    """

    def __init__(
        self, name_or_scope: Any, default_name: str | None = None, values: Any = None,
        initializer: Any = None, regularizer: Any = None, caching_device: Any = None,
        partitioner: Any = None, custom_getter: Any = None, reuse: Any = None, dtype: Any = None,
        use_resource: Any = None, constraint: Any = None, auxiliary_name_scope: bool = True,
    ) -> None:  # fmt: skip
        if name_or_scope is None and default_name is None:
            raise ValueError("If default_name is None then name_or_scope is required")
        VariableScope._check(partitioner)
        self._name, self._default, self._reuse = name_or_scope, default_name, reuse
        self._changes = {
            k: v
            for k, v in {
                "initializer": initializer, "regularizer": regularizer, "dtype": dtype,
                "caching_device": caching_device, "constraint": constraint,
            }.items()
            if v is not None
        }  # fmt: skip
        self._getter, self._has_names = custom_getter, auxiliary_name_scope
        self._open: list[Any] = []

    def __enter__(self) -> VariableScope:
        store, graph = _store(), get_default_graph()
        before, counts = store.scope, dict(store.counts)
        given = self._name
        if given is None:
            if self._reuse is True:
                raise ValueError("reuse=True cannot be used without a name_or_scope")
            given = _unique(store, before.name, self._default)
        if isinstance(given, VariableScope):
            label = given.name.rpartition("/")[2]
            scope = given.copied(**self._changes)
            reuse = given.reuse if self._reuse is None else self._reuse
            prefix, store.counts = given.name, dict(store.counts)
        elif isinstance(given, str):
            # The name scope makes a default name unique by itself: others may have it, too.
            label = given if self._name is not None else str(self._default)
            prefix = f"{before.name}/{given}" if before.name else given
            scope = before.copied(name=prefix, **self._changes)
            reuse = before.reuse or self._reuse or False
            store.counts[prefix] = store.counts.get(prefix, 0) + 1
        else:
            raise TypeError(
                f"VariableScope: name_or_scope must be a string or VariableScope, not {given!r}"
            )
        scope.reuse = reuse
        if self._getter is not None:
            outer = scope.custom_getter
            inner = self._getter
            scope.custom_getter = inner if outer is None else (
                lambda getter, *a, **k: inner(functools.partial(outer, getter), *a, **k)
            )
        names = None
        if self._has_names and label:
            # Where operations compute at once, or are traced, scopes of names are td's.
            names = td.name_scope(label) if writes_into() is None else graph.name_scope(label)
            opened = names.__enter__()
            if not isinstance(given, VariableScope):
                scope.original_name_scope = opened
        elif not self._has_names:
            scope.original_name_scope = before.original_name_scope
        self._open.append((store, before, counts, names, isinstance(given, VariableScope)))
        store.scope = scope
        return scope

    def __exit__(self, *error: Any) -> None:
        store, before, counts, names, again = self._open.pop()
        if again:
            store.counts = counts
        else:  # the next who opens it begins to count
            inner = f"{store.scope.name}/"
            store.counts = {k: v for k, v in store.counts.items() if not k.startswith(inner)}
        store.scope = before
        if names is not None:
            names.__exit__(*error)


def _unique(store: _Store, prefix: str, name: Any) -> str:
    """A scope's name that was not used inside of the scope around."""
    whole = f"{prefix}/{name}" if prefix else name
    if not store.counts.get(whole):
        return str(name)
    number = 1
    while store.counts.get(f"{whole}_{number}"):
        number += 1
    return f"{name}_{number}"


def variable_op_scope(
    values: Any, name_or_scope: Any, default_name: str | None = None, initializer: Any = None,
    regularizer: Any = None, caching_device: Any = None, partitioner: Any = None,
    custom_getter: Any = None, reuse: Any = None, dtype: Any = None, use_resource: Any = None,
    constraint: Any = None,
) -> variable_scope:  # fmt: skip
    """`variable_scope`, whose values come first."""
    return variable_scope(
        name_or_scope, default_name, values, initializer, regularizer, caching_device, partitioner,
        custom_getter, reuse, dtype, use_resource, constraint,
    )  # fmt: skip


class make_template:
    """A function that makes its variables of `get_variable` when it is called first, and uses them
    again in later calls.

    Args:
        name_: of the scope of its variables, made unique.
        func_: the function; further arguments are handed to it in each call.
        create_scope_now_: whether the scope's name is chosen now, and not by the first call.
        unique_name_: the scope's name, exactly.
    """

    def __init__(self, name_: str, func_: Callable[..., Any], create_scope_now_: bool = False,
                 unique_name_: str | None = None, custom_getter_: Any = None,
                 **kwargs: Any) -> None:
        self._name, self._unique, self._getter = name_, unique_name_, custom_getter_
        self._function = functools.partial(func_, **kwargs) if kwargs else func_
        self._scope: VariableScope | None = None
        self._was_called = False
        self._kept: dict[str, Any] = {}  # the variables that are made at once
        self.__name__ = getattr(func_, "__name__", name_)
        if create_scope_now_:
            self._open()

    def _open(self) -> VariableScope:
        """The scope of its variables, whose name is chosen now if it was not before."""
        if self._scope is None:
            with self._new_scope(auxiliary_name_scope=False) as scope:
                self._scope = scope
        return self._scope

    def _new_scope(self, **options: Any) -> variable_scope:
        return variable_scope(self._unique, self._name, custom_getter=self._getter, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        store = _store()
        first = AUTO_REUSE if writes_into() is None else None
        before, store.kept = store.kept, self._kept
        try:
            if self._scope is None:
                around = self._new_scope(reuse=first)
            else:
                around = variable_scope(self._scope, reuse=True if self._was_called else first)
            with around as scope:
                self._scope = self._scope or scope
                result = self._function(*args, **kwargs)
        finally:
            store.kept = before
        self._was_called = True
        return result

    @property
    def name(self) -> str:
        return self._name

    @property
    def variable_scope(self) -> VariableScope:
        return self._open()

    @property
    def variable_scope_name(self) -> str:
        name = self._open().name
        return name if not name or name.endswith("/") else f"{name}/"

    @property
    def variables(self) -> list[Any]:
        return [*self.global_variables, *self.local_variables]

    @property
    def global_variables(self) -> list[Any]:
        return [*self._kept.values()] or self._open().global_variables()

    @property
    def trainable_variables(self) -> list[Any]:
        kept = [v for v in self._kept.values() if v.trainable]
        return kept or self._open().trainable_variables()

    @property
    def non_trainable_variables(self) -> list[Any]:
        trained = {id(v) for v in self.trainable_variables}
        return [v for v in self.variables if id(v) not in trained]

    @property
    def local_variables(self) -> list[Any]:
        return self._open().local_variables()

    weights, trainable_weights = variables, trainable_variables
    non_trainable_weights, var_scope = non_trainable_variables, variable_scope


def no_regularizer(_: Any) -> None:
    """No regularization, where the scope has one."""


def variable_creator_scope(variable_creator: Callable[..., Any]) -> Any:
    """Variables of the block are made by a function: see `td.variable_creator_scope`."""
    return _Creating(variable_creator)


class _Creating:
    def __init__(self, creator: Callable[..., Any]) -> None:
        self._creator = creator

    def __enter__(self) -> None:
        graph = get_default_graph()
        self._before, self._graph = graph._creators, graph
        graph._creators = (*graph._creators, self._creator)

    def __exit__(self, *error: object) -> None:
        self._graph._creators = self._before
