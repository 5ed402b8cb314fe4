"""Which tensors are parts of variables: values may be assigned to those.

``v[1:3]`` is a tensor, and yet ``v[1:3].assign(x)`` changes the variable. What a tensor is a part
of is kept beside it, as long as it lives.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor

# id of a tensor -> (a reference to it, the variable, the key of the part)
_parts: dict[int, tuple[weakref.ref[Tensor], Any, Any]] = {}


def remember(part: Tensor, variable: Any, key: Any) -> None:
    """`part` was read as ``variable[key]``."""
    number = id(part)
    _parts[number] = weakref.ref(part, lambda _: _parts.pop(number, None)), variable, key


class _Method:
    """A method of tensors that are parts of variables. Others do not have it."""

    def __init__(self, name: str, change: Callable[[Any, Any, Any], Any]) -> None:
        self._name, self._change = name, change

    def __get__(self, part: Tensor | None, owner: type) -> Any:
        if part is None:
            return self
        found = _parts.get(id(part))
        if found is None:
            raise AttributeError(
                f"{type(part).__name__!r} object has no attribute {self._name!r}: only variables "
                "and their parts, as v[1:3] is, can be assigned to"
            )
        _, variable, key = found

        def method(value: Any, name: str | None = None) -> Any:
            return self._change(variable, key, value)

        method.__name__ = self._name
        return method


def _added(variable: Any, key: Any, sign: int, delta: Any) -> Any:
    part, more = variable[key], convert_to_tensor(delta, variable.dtype)
    return variable.assign_part(key, part + more if sign > 0 else part - more)


def install() -> None:
    """Give tensors that are parts of variables their methods."""
    for name, change in {
        "assign": lambda variable, key, value: variable.assign_part(key, value),
        "assign_add": lambda variable, key, delta: _added(variable, key, 1, delta),
        "assign_sub": lambda variable, key, delta: _added(variable, key, -1, delta),
    }.items():
        setattr(Tensor, name, _Method(name, change))
