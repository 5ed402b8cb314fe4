"""``td.Module``: an object whose variables and submodules are found through its attributes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

from treadle.autograph import tf_convert
from treadle.core import nest
from treadle.core.context import context, naming
from treadle.core.interrupts import during
from treadle.ops.control.ordering import name_scope
from treadle.ops.state import Variable
from treadle.ops.state import substituting as substituting
from treadle.tracing.background_functions import BackgroundFunction as BackgroundFunction

F = TypeVar("F", bound=Callable[..., Any])


def snake_case(name: str) -> str:
    """``MyDense2D`` as ``my_dense2_d``, which is TensorFlow's way."""
    return re.sub(r"((?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z]))", r"_\1", name).lower()


class operation_scope(during):
    """Names of the operations that the block records begin with ``name/`` as in a name scope, but
    not those of variables. Nothing where no function is traced."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        layers = naming.layers
        if context.recorder is not None:
            layers = f"{context.recorder.operation_scope()}{name}/", naming.scope
        super().__init__(naming, "layers", layers)


class Module:
    """Base of objects that hold variables.

    Variables and modules are found in attributes, also inside lists, tuples and dicts: first the
    module's own in the order of attribute names, then those of its submodules.

    Args:
        name: a Python identifier; the class name in snake case when omitted.
    """

    # Attributes that hold what should not be searched: the name that classes written for
    # TensorFlow add theirs to.
    _TF_MODULE_IGNORED_PROPERTIES: ClassVar[frozenset[str]] = frozenset()

    _kinds_of_variables: ClassVar[tuple[type, ...]] = (Variable,)  # and those of graphs
    _restorations: tuple[Any, ...]
    _scope: str | None = None  # asked for by name, for the reason that `__setattr__` tells

    def __init__(self, name: str | None = None) -> None:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"The name of a module is a string, not {name!r}")
        if name is not None and not name.isidentifier():
            raise ValueError(f"{name!r} is not a valid module name: it must be a Python identifier")
        # Not by `__setattr__`, with which a library's class may take attributes of its own only.
        object.__setattr__(self, "_name", name or snake_case(type(self).__name__))
        object.__setattr__(self, "_scope", naming.scope)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        own = object.__getattribute__(self, "__dict__")  # which a library's may change
        if "_restorations" in own:  # of td.train.Checkpoint, which wait for variables
            for restoration in self._restorations:
                restoration.attribute_set(self, name, own.get(name, value))

    def _trackable_children(self) -> dict[str, Any]:
        """What checkpoints look for variables in, by name."""
        return {k: v for k, v in vars(self).items() if k not in self._TF_MODULE_IGNORED_PROPERTIES}

    @staticmethod
    def _no_dependency(value: Any) -> Any:
        """TensorFlow's mark of an attribute that checkpoints leave out, which libraries give what
        is no variable; here such attributes are left out by themselves."""
        return value

    @property
    def name(self) -> str:
        """The module's name."""
        return getattr(self, "_name", None) or snake_case(type(self).__name__)

    @property
    def name_scope(self) -> Any:
        """A context manager: names of variables that its block makes begin with the module's name,
        inside the scope in which the module was made."""
        return name_scope(self._scope_name)

    @property
    def _scope_name(self) -> str:
        """The scope that `name_scope` opens. Libraries written for TensorFlow ask for it, to learn
        whether the constructor of this class has run; before that there is none."""
        if self._scope is None:
            raise AttributeError("_scope_name")
        return f"{self._scope}{self.name}/"

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables of the module and its submodules."""
        return tuple(_unique(_leaves(self, self._kinds_of_variables)))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The variables that optimizers update."""
        return tuple(v for v in _unique(_leaves(self, self._kinds_of_variables)) if v.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        """The variables that optimizers leave alone."""
        return tuple(v for v in _unique(_leaves(self, self._kinds_of_variables)) if not v.trainable)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """All modules below this one."""
        return tuple(m for m in _unique(_leaves(self, Module)) if m is not self)

    @classmethod
    def with_name_scope(cls, method: F) -> F:
        """Decorator: a call of the method is inside the module's `name_scope`."""

        @functools.wraps(method)
        def scoped(self: Module, *args: Any, **kwargs: Any) -> Any:
            body = method if context.recorder is None else tf_convert(method)
            with self.name_scope:
                return body(self, *args, **kwargs)

        return scoped  # type: ignore[return-value]

    def _flatten(
        self, recursive: bool = True, predicate: Callable[[Any], bool] | None = None,
        attribute_traversal_key: Any = None, with_path: bool = False,
        expand_composites: bool = False,
    ) -> Iterator[Any]:  # fmt: skip
        """The objects below this module, each once, by which libraries find those of their own
        classes: an order of their own is not followed.

        Args:
            recursive: those of submodules, too.
            predicate: which of them.
            with_path: pairs of the attributes and keys that lead to an object, and the object.
        """
        seen: set[int] = set()
        for path, leaf in _reached(self, predicate or (lambda leaf: True), recursive):
            if id(leaf) not in seen:
                seen.add(id(leaf))
                yield (path, leaf) if with_path else leaf

    def _attribute_items(self) -> list[tuple[str, Any]]:
        """The attributes that are searched, in order."""
        ignored = self._TF_MODULE_IGNORED_PROPERTIES
        return sorted((key, value) for key, value in vars(self).items() if key not in ignored)


def _leaves(root: Module, kind: type | tuple[type, ...]) -> Iterator[Any]:
    """Objects of `kind` reachable through attributes; a module's own before its submodules'."""
    return (leaf for _, leaf in _reached(root, lambda leaf: isinstance(leaf, kind)))


def _reached(
    root: Module, wanted: Callable[[Any], bool], recursive: bool = True
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The objects that `wanted` names, with the attributes and keys that lead to them."""
    seen: set[int] = set()

    def visit(module: Module, way: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
        if id(module) in seen:
            return
        seen.add(id(module))
        below = []
        for name, value in module._attribute_items():
            for path, leaf in _parts(value, (*way, name)):
                if wanted(leaf):
                    yield path, leaf
                if recursive and isinstance(leaf, Module):
                    below.append((leaf, path))
        for child, path in below:
            yield from visit(child, path)

    return visit(root, ())


def _parts(value: Any, way: tuple[Any, ...]) -> list[tuple[tuple[Any, ...], Any]]:
    """The leaves of a structure, of which a module is one, also where functions take it apart."""
    parts = None if isinstance(value, Module) else nest.children(value)
    if parts is None:
        return [(way, value)]
    return [found for key, part in parts for found in _parts(part, (*way, key))]


def _unique(items: Iterator[Any]) -> Iterator[Any]:
    seen: set[int] = set()
    for item in items:
        if id(item) not in seen:
            seen.add(id(item))
            yield item
