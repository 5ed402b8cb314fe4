"""Attributes that libraries set on tensors and variables: TensorFlow's take any, treadle's have
slots. Private ones of TensorFlow's that libraries use are the public ones here, unless a class of
the library has these itself."""

from __future__ import annotations

import weakref
from typing import Any

from treadle.core.tensor import Tensor
from treadle.ops.state import Variable

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


def accept_attributes() -> None:
    """Let tensors and variables keep what is set on them: beside them, so that their size stays."""
    for kind in (Tensor, Variable):
        kind.__setattr__ = _set_attribute  # type: ignore[method-assign]
        kind.__getattr__ = _attribute  # type: ignore[union-attr]
