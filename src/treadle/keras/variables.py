"""``td.keras.Variable``: variables made as Keras makes them."""

from __future__ import annotations

import copy
from typing import Any

import treadle as td
from treadle.keras import constraints, initializers, naming
from treadle.keras.promotion import standardize_dtype
from treadle.modes import generation
from treadle.modes import naming as scopes


class _OfKeras(type(td.Variable)):  # type: ignore[misc]
    """Weights of layers and the like are variables of Keras, too."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, td.Variable) and value.path is not None


def owned(path: str, value: Any, **kwargs: Any) -> td.Variable:
    """The variable of a layer, an optimizer or another object.

    Args:
        path: its name, after those of its owners.
        value, kwargs: as `td.Variable` takes them.
    """
    return with_path(td.Variable(value, name=path, **kwargs), path)


def with_path(variable: td.Variable, path: str) -> td.Variable:
    """Give a variable the path and name by which programs of Keras know it; in Keras 2 the name is
    TensorFlow's, ``model/dense/kernel:0``. Variables of TensorFlow 1's graphs keep the names that
    these have."""
    if isinstance(variable, td.Variable) and generation.is_2:
        variable.path, variable.name = path, f"{scopes.scope}{path.rpartition('/')[2]}:0"
    elif isinstance(variable, td.Variable):
        for known in (variable, *getattr(variable, "values", ())):  # and those of replicas
            known.path, known.name = path, path.rpartition("/")[2]
    return variable


def copied(value: Any, memo: Any) -> Any:
    """A copy of an object and all that its attributes hold, for `copy.deepcopy` of classes that are
    pickled in another way."""
    made = memo[id(value)] = object.__new__(type(value))
    vars(made).update(copy.deepcopy(vars(value), memo))
    return made


def replication(synchronization: Any, aggregation: Any) -> dict[str, Any]:
    """How replicas see and change a variable, for `td.Variable`.

    Args:
        synchronization, aggregation: members of the enums, or their names; None is "none".
    """
    given = {"synchronization": synchronization, "aggregation": aggregation}
    kinds = (td.VariableSynchronization, td.VariableAggregation)
    return {
        name: kind[(value or "none").upper()] if value is None or isinstance(value, str) else value
        for (name, value), kind in zip(given.items(), kinds, strict=True)
    }


def path_of(variable: td.Variable) -> str:
    """The path of a variable, or its name where it has none."""
    return getattr(variable, "path", None) or variable.name.removesuffix(":0")


class Variable(td.Variable, metaclass=_OfKeras):
    """A variable.

    Args:
        initializer: the first value, or the name or function of an initializer.
        shape: for an initializer.
        dtype: of the elements; that of the first value when omitted, `floatx` for Python's floats.
        trainable: whether training changes it.
        autocast: accepted for Keras programs.
        aggregation, synchronization: as for `Layer.add_weight`.
        name: of the variable.
        layout: where other backends of Keras keep the parts of a variable; has no effect.
        constraint: what optimizers apply to the updated value.

    Raises:
        ValueError: an initializer without a shape, or a value with another one.
    """

    __slots__ = ()
    _is_plain = True

    def __init__(
        self, initializer: Any, shape: Any = None, dtype: Any = None, trainable: bool = True,
        autocast: bool = True, aggregation: Any = "none", synchronization: Any = "auto",
        name: str | None = None, layout: Any = None, constraint: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        given = getattr(initializer, "dtype", None) if dtype is None else dtype
        kind = standardize_dtype(given)
        named = isinstance(initializer, str)
        if named or (callable(initializer) and not isinstance(initializer, td.Tensor)):
            if shape is None:
                raise ValueError(
                    "When creating a Variable from an initializer, the `shape` argument should be "
                    f"specified. Received: initializer={initializer} and shape={shape}"
                )
            make = initializers.get(initializer)
            dims = tuple(int(d) for d in shape)
            value: Any = lambda: td.cast(make(dims, dtype=td.as_dtype(kind)), kind)
        else:
            value = td.convert_to_tensor(initializer)
            if given is not None or value.dtype.is_floating:  # Python's ints stay such
                value = td.cast(value, kind)
            if shape is not None and tuple(shape) != tuple(value.shape):
                raise ValueError(f"The value has shape {value.shape}, not shape={tuple(shape)}")
        path = naming.path_of([*naming.scopes.owners, naming.Named(name or _unnamed())])
        super().__init__(
            value, trainable=trainable, name=path, constraint=constraints.get(constraint),
            **replication(synchronization, aggregation), **kwargs,
        )  # fmt: skip
        with_path(self, path)

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)


class OverwrittenVariable(td.Variable):
    """A weight that optimizers replace by its gradient: states whose new values are computed where
    gradients are (`keras.float8`)."""

    __slots__ = ()
    _is_layer = True

    overwrite_with_gradient = True


def is_overwritten(variable: Any) -> bool:
    """Whether optimizers put the gradient of a variable in its place."""
    return bool(getattr(variable.identity(), "overwrite_with_gradient", False))


def _unnamed() -> str:
    return naming.unique_name("Variable")


class name_scope:
    """``with keras.name_scope("block"):`` names of operations and paths of variables begin with it.

    Args:
        name: without slashes.
        caller: the object that opens the scope.
        deduplicate: whether a caller that opens its own scope within itself has one of it.
        override_parent: a path that stands for all scopes around this one.

    Raises:
        ValueError: the name is no string, or has a slash in it.
    """

    def __init__(
        self, name: str, caller: Any = None, deduplicate: bool = True,
        override_parent: str | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(name, str) or "/" in name:
            raise ValueError(
                "Argument `name` must be a string and cannot contain character `/`. Received: "
                f"name={name}"
            )
        self.name = name
        if override_parent is None and deduplicate:
            override_parent = getattr(caller, "_parent_path", None)
        self._own = naming.Named(name, caller if deduplicate else None, override_parent)
        self._begun: list[tuple[Any, ...]] = []  # its blocks: it may be entered again

    def __enter__(self) -> name_scope:
        last = naming.scopes.owners[-1:]
        again = self._own.caller is not None and any(
            getattr(other, "caller", None) is self._own.caller and other.name == self.name
            for other in last
        )
        scopes = () if again else (naming.within(self._own), td.name_scope(self.name))
        for scope in scopes:
            scope.__enter__()
        self._begun.append(scopes)
        return self

    def __exit__(self, *exception: object) -> None:
        for scope in reversed(self._begun.pop()):
            scope.__exit__(*exception)
