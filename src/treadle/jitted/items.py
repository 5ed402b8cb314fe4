"""Assignments to items, which change arrays in place."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.autograph import operators as python_operators
from treadle.autograph.operators import places
from treadle.autograph.operators.paths import Path
from treadle.core.origin import at, user_origin
from treadle.jitted.arrays import (
    Array,
    ConcreteValueError,
    Grouped,
    TracedSequence,
    direct,
    element_of,
    is_traced,
    wrapped,
)
from treadle.jitted.chosen_lists import ChosenItems
from treadle.jitted.list_positions import element_at, part_of, set_element
from treadle.jitted.optional_values import MaybeNone
from treadle.jitted.tables import table_for, with_entry
from treadle.ops.elementwise.selection import where as select


def attribute(owner: Any, name: str, items: bool = False) -> Any:
    """The place ``owner.name``; None for a field of records, whose arrays tell their changes."""
    return None if isinstance(owner, Grouped) else places.attribute(owner, name, items)


def get_item(target: Any, key: Any) -> Any:
    """``target[key]``; a list or tuple is read at a position that only the run knows."""
    if isinstance(target, ChosenItems) and not isinstance(key, slice):
        return target.item(key, get_item)
    target = direct(target)
    if isinstance(target, dict) and is_traced(key):
        return table_for(target, key)[key]
    if type(target) in (list, tuple) and is_traced(key):
        return part_of(target, key) if isinstance(key, slice) else element_at(target, key)
    return target[key]


def set_item(target: Any, key: Any, value: Any, owner: Any = None) -> Any:
    """``target[key] = value``; gives the target, which is the same object."""
    if isinstance(target, MaybeNone):
        set_item(target.get(), key, value)
        return target
    if isinstance(key, Path):
        holder = target
        for inner in key[:-1]:
            holder = holder[inner]
        set_item(holder, key[-1], value)
        return target
    if isinstance(target, ChosenItems):
        target.set(key, value, get_item, set_item)
        return target
    if isinstance(target, TracedSequence | Grouped):
        target[key] = value  # type: ignore[index]
        return target
    if isinstance(target, dict) and is_traced(key):
        return with_entry(target, key, value)
    if not isinstance(target, Array):
        _check_container(target, key, value)
        if type(target) is list and is_traced(key):
            set_element(target, key, value)
            return target
        return python_operators.set_item(target, key, value)
    target[key] = value
    return target


def _check_container(target: Any, key: Any, value: Any) -> None:
    if isinstance(target, np.ndarray) and is_traced([key, value]):
        raise TypeError(
            "This array was made by a function that td.jit does not know, and cannot take values "
            "that are only known when the program runs: make it with np.array(...)"
            f"{at(user_origin())}"
        )
    if is_traced(key) and not isinstance(target, list | TracedSequence):
        raise ConcreteValueError(
            f"a {type(target).__name__} takes only Python values as a key{at(user_origin())}"
        )


def update_item(target: Any, key: Any, symbol: str, value: Any, owner: Any = None) -> Any:
    """``target[key] += value`` or another assigning operator; gives the target."""
    if isinstance(target, MaybeNone):
        update_item(target.get(), key, symbol, value)
        return target
    holder, last = target, key
    if isinstance(key, Path):
        for inner in key[:-1]:
            holder = holder[inner]
        last = key[-1]
    is_number = not getattr(value, "ndim", 0)
    if isinstance(holder, Array) and _is_mask(last) and symbol in _MASKED and is_number:
        # Nothing needs to be brought together: elements that are false keep their value.
        old = holder.tensor
        new = element_of(_UPDATES[symbol](wrapped(old), value), old.dtype)
        mask = last.tensor[(..., *(None,) * (holder.ndim - last.ndim))]
        holder.write(select(mask, new, old))
        return target
    made = set_item(holder, last, _UPDATES[symbol](get_item(holder, last), value))
    return made if holder is target else target


def _is_mask(key: Any) -> bool:
    return isinstance(key, Array) and key.tensor.dtype.is_bool


# Operators that raise nothing for the elements that a mask leaves out.
_MASKED = frozenset({"+=", "-=", "*=", "&=", "|=", "^="})


def set_attribute_item(owner: Any, name: str, key: Any, value: Any) -> None:
    set_item(getattr(owner, name), key, value)


def update_attribute_item(owner: Any, name: str, key: Any, symbol: str, value: Any) -> None:
    update_item(getattr(owner, name), key, symbol, value)


_UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul,
    "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor, "<<=": operator.ilshift,
    ">>=": operator.irshift,
}  # fmt: skip
