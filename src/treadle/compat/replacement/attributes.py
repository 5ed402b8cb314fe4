"""Attributes that libraries set on tensors and variables: TensorFlow's take any, treadle's have
slots. Private ones of TensorFlow's that libraries use are the public ones here, unless a class of
the library has these itself."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

from treadle.autodiff.tape import GradientTape
from treadle.compat.replacement.members import have_members
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.shaping.unknown_rank import set_shape
from treadle.ops.state import Variable
from treadle.tracing.function import Function

_set: dict[int, dict[str, Any]] = {}  # by the addresses of objects that are still there
_PUBLIC = {"_trainable": "trainable", "_values": "values"}


def _public_name(kind: type, name: str) -> str:
    """The public name of a private attribute, where objects of a class have treadle's."""
    public = _PUBLIC.get(name)
    if public is None:
        return name
    owner = next((c for c in kind.__mro__ if public in vars(c)), None)
    return public if owner is not None and owner.__module__.startswith("treadle.") else name


def _set_attribute(self: Any, name: str, value: Any) -> None:
    name = _public_name(type(self), name)
    try:
        object.__setattr__(self, name, value)
    except AttributeError:
        if hasattr(type(self), name):
            raise
        if id(self) not in _set:
            _set[id(self)] = {}
            weakref.finalize(self, _set.pop, id(self), None).atexit = False
        _set[id(self)][name] = value


def _attribute(self: Any, name: str) -> Any:
    public = _public_name(type(self), name)
    if public != name:
        return getattr(self, public)
    found = _set.get(id(self), {})
    if name in found:
        return found[name]
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _dense_value(
    self: Variable, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    found: Any = self.value  # that of a derived class: a property, or a method
    return convert_to_tensor(found() if callable(found) else found, dtype)


def _overload_all_operators(kind: type[Variable]) -> None:
    """Let the operators of a class of variables work on what its own `value()` gives."""
    for name in Tensor.OVERLOADABLE_OPERATORS - {"__eq__", "__ne__", "__getitem__"}:
        setattr(kind, name, _through_value(getattr(Tensor, name)))


def _through_value(method: Callable[..., Any]) -> Callable[..., Any]:
    def operator(self: Variable, *others: Any) -> Any:
        return method(self.value(), *others)

    operator.__name__ = operator.__qualname__ = method.__name__
    return operator


def _unique_id(self: Variable) -> str:
    """The variable's name and a number of its own, by which optimizers and strategies find it."""
    if not hasattr(self, "_own_number"):
        _set_attribute(self, "_own_number", next(_numbers))
    return f"{self.name.partition(':')[0]}_{self._own_number}"  # type: ignore[attr-defined]


_numbers = count()

# What classes that wrap a variable delegate to it, or call when they are defined.
_OF_VARIABLES = {
    "_OverloadAllOperators": classmethod(_overload_all_operators),
    "_dense_var_to_tensor": _dense_value,
    "_in_graph_mode": False,
    "_unique_id": property(_unique_id),
    "set_shape": set_shape,
    "_shared_name": property(lambda self: self.name.partition(":")[0]),
}


def _records(self: GradientTape) -> GradientTape | None:
    """What a tape asks for gradients: None where one that is not persistent was asked already."""
    return None if self._used and not self._persistent else self


def _ensure_recording(self: GradientTape) -> Any:
    """A block in which the tape records, whether its own block has ended or not."""
    return contextlib.nullcontext() if self.is_recording else self.resumed()


def _bound_functions(self: Function) -> Any:
    """The functions of the objects that have it as a method, which libraries forget."""
    return self._bound


def accept_attributes() -> None:
    """Let tensors and variables keep what is set on them, beside them, so that their size stays;
    give variables and tapes the names that libraries ask them for."""
    beside = {"__setattr__": _set_attribute, "__getattr__": _attribute}
    have_members({
        GradientTape: {"_tape": property(_records), "_ensure_recording": _ensure_recording},
        Function: {"_descriptor_cache": property(_bound_functions)},
        Tensor: beside | {"experimental_ref": Tensor.ref},
        Variable: beside | {"experimental_ref": Variable.ref} | _OF_VARIABLES,
    })  # fmt: skip
