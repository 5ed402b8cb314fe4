"""Assignments to items, which change arrays in place."""

from __future__ import annotations

import collections
import functools
import operator
from collections.abc import Callable, Sequence
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
from treadle.jitted.chosen_texts import ChosenText
from treadle.jitted.handed_out import is_copy
from treadle.jitted.left import leaving
from treadle.jitted.list_positions import element_at, part_of, set_element
from treadle.jitted.opened import is_outermost
from treadle.jitted.optional_values import MaybeNone
from treadle.jitted.pools import NeedsPool, Row, is_ragged, needs_pool
from treadle.jitted.rows import NeedsRows, check_rows
from treadle.jitted.run_texts import RunChar, among
from treadle.jitted.statements import if_exp
from treadle.jitted.storage import scopes
from treadle.jitted.tables import (
    NeedsTable,
    Table,
    default_of,
    old_value,
    table_for,
    with_entry,
)
from treadle.ops.elementwise.selection import where as select


def attribute(owner: Any, name: str, items: bool = False) -> Any:
    """The place ``owner.name``; None for a field of records, whose arrays tell their changes."""
    return None if isinstance(owner, Grouped) else places.attribute(owner, name, items)


def get_item(target: Any, key: Any) -> Any:
    """``target[key]``; a list or tuple is read at a position that only the run knows."""
    if isinstance(target, ChosenItems) and not isinstance(key, slice):
        return target.item(key, get_item)
    target = direct(target)
    if isinstance(target, dict) and is_traced(key) and _has_lists(target):
        target = _became(NeedsTable(target, key, _list_in(target)))
    if isinstance(target, Table) and type(target.default) is list:
        return _row_of(target, key)
    if isinstance(target, dict) and isinstance(key, RunChar) and _has_texts(target):
        key = among(key, [k for k in target if type(k) is str and len(k) == 1])
    if isinstance(target, dict) and isinstance(key, ChosenText):
        return element_at([target[option] for option in key.options], key.number)
    if isinstance(target, dict) and is_traced(key):
        if isinstance(target, collections.Counter):
            return old_value(target, key)
        return table_for(target, key)[key]
    if type(target) in (list, tuple) and is_traced(key):
        if not (type(target) is list and is_ragged(target)):
            check_rows(target)
        elif needs_pool(target):
            return get_item(_became(NeedsPool(target)), key)
        return part_of(target, key) if isinstance(key, slice) else element_at(target, key)
    return target[key]


def _has_texts(target: dict[Any, Any]) -> bool:
    return bool(target) and all(type(key) is str for key in target)


def _became(problem: NeedsTable | NeedsPool) -> Any:
    """What a list or dict is now that has to be one of the graph.

    Raises:
        BecomesOther: it has to be that before the branch or loop around.
    """
    owner = problem.owner
    if not is_outermost(owner):
        raise problem
    made = problem.made()
    if scopes.open:  # found by name, to be read
        template = made.values_.template if isinstance(made, Table) else made.template
        if template.pool is not None:
            template.pool.is_read_only = True
        return made
    with leaving(owner, made):
        return made


def _has_lists(target: dict[Any, Any]) -> bool:
    """Whether the lists of a dict are to be rows of a pool (`pools`)."""
    return default_of(target) == [] or any(type(v) is list for v in target.values())


def _list_in(target: dict[Any, Any]) -> Any:
    values = list(target.values())
    return [] if not values or is_ragged(values) else values[0]


def _row_of(table: Table, key: Any) -> Any:
    """The list of a key of a ``defaultdict(list)``, which has one from now on."""
    pool = table.values_.template.pool
    found = table.get(key, Row(pool, -1))
    number = if_exp(found.number < 0, lambda: pool.new().number, lambda: found.number)
    row = Row(pool, number)
    if table.scope is scopes.innermost:
        table[key] = row
    else:
        table.note_missed()
    return row


def set_item(target: Any, key: Any, value: Any, owner: Any = None) -> Any:
    """``target[key] = value``; gives the target, which is the same object."""
    if isinstance(target, MaybeNone):
        set_item(target.get(), key, value)
        return target
    if isinstance(key, Path):
        try:
            _set_inner(target, key, value)
        except NeedsRows as problem:
            raise problem.wants(value) from None
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
            try:
                check_rows(target)
            except NeedsRows as problem:
                raise problem.wants(value) from None
            set_element(target, key, value)
            return target
        return python_operators.set_item(target, key, value)
    target[key] = value
    return target


def _set_inner(target: Any, path: Sequence[Any], value: Any) -> None:
    """``target[i][j] = value``; a copy of an element of a list of the graph is put back."""
    holders = [target]
    for key in path[:-1]:
        holders.append(get_item(holders[-1], key))
    for holder, key in zip(reversed(holders), reversed(path), strict=True):
        if not is_copy(holder):
            set_item(holder, key, value)
            return
        changed = holder.copy()
        set_item(changed, key, value)
        value = changed


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
        try:
            holder = functools.reduce(get_item, key[:-1], target)
        except NeedsRows as problem:
            number = _first(problem.owner)
            raise problem.wants(_UPDATES[symbol](number, value)) from None
        last = key[-1]
    inner = is_copy(holder)
    is_number = not getattr(value, "ndim", 0)
    if isinstance(holder, Array) and _is_mask(last) and symbol in _MASKED and is_number:
        # Nothing needs to be brought together: elements that are false keep their value.
        old = holder.tensor
        new = element_of(_UPDATES[symbol](wrapped(old), value), old.dtype)
        mask = last.tensor[(..., *(None,) * (holder.ndim - last.ndim))]
        holder.write(select(mask, new, old))
        return target
    try:
        keyed = isinstance(holder, Table) or (isinstance(holder, dict) and is_traced(last))
        old = old_value(holder, last) if keyed else get_item(holder, last)
    except NeedsRows as problem:
        raise problem.wants(_UPDATES[symbol](_first(problem.owner), value)) from None
    if inner:
        return set_item(target, key, _UPDATES[symbol](old, value))
    made = set_item(holder, last, _UPDATES[symbol](old, value))
    return made if holder is target else target


def _first(values: Any) -> Any:
    while type(values) is list:
        values = values[0]
    return values


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
