"""How arguments that are not tensors count in a signature: by value, or by identity.

Neither way keeps the user's objects alive: values of user classes are referenced weakly.
"""

from __future__ import annotations

import collections
import copy
import enum
import sys
import types
import weakref
from collections.abc import Callable, Hashable
from typing import Any

from treadle.core.dtypes import DType
from treadle.core.shapes import TensorShape

BY_VALUE = (
    bool,
    int,
    str,
    bytes,
    type(None),
    type(Ellipsis),
    DType,
    TensorShape,
    enum.Enum,
    slice,
)
_MUTABLE = (set, bytearray, collections.deque)


class Unhashable(TypeError):
    """A mutable object that cannot be compared with its state at an earlier call."""


class ObjectKey:
    """Stands for an object in a signature, without keeping it alive where it can die.

    Objects count by identity; those whose class defines ``==`` and a hash count by these, unless
    `by_identity`.
    """

    __slots__ = ("_by_identity", "_hash", "_ref", "_type")

    def __init__(self, obj: Any, by_identity: bool = False) -> None:
        self._type = type(obj)
        self._by_identity = by_identity or not has_equality(obj)
        self._hash = id(obj) if self._by_identity else hash(obj)
        self._ref = reference_to(obj)

    @property
    def target(self) -> Any:
        """The object, or None once it has died."""
        return self._ref()

    @property
    def is_dead(self) -> bool:
        """Whether no call can match any more."""
        return self._ref() is None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, ObjectKey) or self._hash != other._hash:
            return False
        mine, theirs = self.target, other.target
        if mine is None or theirs is None or self._type is not other._type:
            return False
        return mine is theirs or (not self._by_identity and bool(mine == theirs))

    def __repr__(self) -> str:
        target = self.target
        if target is None:
            return f"<a dead {self._type.__name__} object>"
        if _is_small(target):
            return repr(target)
        name = getattr(target, "__qualname__", None)
        return f"<{self._type.__name__} {name}>" if name else f"<{self._type.__name__} object>"


class Snapshot:
    """A copy of a mutable value, compared by content."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = copy.copy(value)
        self._key = _contents(value)

    @property
    def target(self) -> Any:
        """The value as it was."""
        return copy.copy(self.value)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and self._key == other._key

    def __repr__(self) -> str:
        return repr(self.value)


def has_equality(obj: Any) -> bool:
    """Whether the object's class defines equality and a hash of its own."""
    kind: Any = type(obj)
    return kind.__eq__ is not object.__eq__ and kind.__hash__ is not None


def is_mutable_value(obj: Any) -> bool:
    """Whether the object is of a built-in mutable type that is compared by content."""
    return type(obj) in _MUTABLE


def reference_to(obj: Any) -> Callable[[], Any]:
    """A function that gives the object: weak where it can be, strong for small library values."""
    try:
        if isinstance(obj, types.MethodType):  # a new object at every access
            return weakref.WeakMethod(obj)
        if not _is_small(obj):
            return weakref.ref(obj)
    except TypeError:
        pass
    return lambda: obj


def _is_small(obj: Any) -> bool:
    """Values of the standard library, such as paths, dates and fractions."""
    root = type(obj).__module__.partition(".")[0]
    return has_equality(obj) and root in sys.stdlib_module_names


def static_key(value: Any) -> Hashable:
    """The key of an argument that is neither a tensor nor a variable.

    Raises:
        Unhashable: it is mutable and of a type that treadle cannot compare by value.
    """
    if isinstance(value, float | complex):
        return type(value), repr(value)  # NaN equals itself here and -0.0 is not 0.0
    if isinstance(value, slice):
        return slice, value.start, value.stop, value.step
    if isinstance(value, BY_VALUE):
        return type(value), value
    return described(value)  # type: ignore[no-any-return]


def described(value: Any) -> Any:
    """The value itself if it counts by value, else a key that does not keep it alive.

    Raises:
        Unhashable: it is mutable and of a type that treadle cannot compare by value.
    """
    if isinstance(value, (float, complex, *BY_VALUE)):
        return value
    try:
        return Snapshot(value) if is_mutable_value(value) else _object_key(value)
    except TypeError as error:
        raise Unhashable(
            f"a {type(value).__name__} object that is not hashable ({error}): a call could not "
            "tell whether it has changed since the function was traced. Pass its values as "
            "tensors, or give its class __hash__ and __eq__, or make it a frozen dataclass"
        ) from None


def _object_key(value: Any) -> ObjectKey:
    if type(value).__hash__ is None:
        raise TypeError("its class defines __eq__ and no __hash__")
    return ObjectKey(value)


def _contents(value: Any) -> Hashable:
    kind = type(value)
    if kind is set:
        return kind, frozenset(static_key(v) for v in value)
    if kind is bytearray:
        return kind, bytes(value)
    return kind, value.maxlen, tuple(static_key(v) for v in value)
