"""Attributes that libraries set on tensors: TensorFlow's take any, treadle's have slots."""

from __future__ import annotations

import weakref
from typing import Any

from treadle.core.tensor import Tensor

_set: dict[int, dict[str, Any]] = {}  # by the addresses of tensors that are still there


def _set_attribute(self: Any, name: str, value: Any) -> None:
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
    found = _set.get(id(self), {})
    if name in found:
        return found[name]
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def accept_attributes() -> None:
    """Let tensors keep what is set on them: beside them, so that their size stays."""
    Tensor.__setattr__ = _set_attribute  # type: ignore[method-assign]
    Tensor.__getattr__ = _attribute  # type: ignore[attr-defined]
