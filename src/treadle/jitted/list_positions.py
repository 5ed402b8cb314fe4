"""Python's lists and tuples at positions that only the run knows."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import nest
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import (
    Array,
    ChosenStorage,
    ConcreteValueError,
    CopiedStorage,
    is_traced,
    unwrapped_bound,
)
from treadle.jitted.branches import chosen_item, raise_in_branch
from treadle.jitted.chosen_lists import KINDS, ChosenItems, FrozenItems, Option, keys_of
from treadle.jitted.errors import NoForm
from treadle.jitted.forms import ARRAY, Form, form_of, joined
from treadle.jitted.grown_lists import GrownList, Template
from treadle.jitted.statements import and_, not_, truth
from treadle.jitted.storage import Storage, scopes
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.comparison import equal
from treadle.ops.elementwise.logic import logical_or
from treadle.ops.elementwise.selection import where as select
from treadle.ops.shaping.joining import stack

_MOST_CHOSEN = 16  # arrays among which a read one is found again, to be changed
_MOST_WRITTEN = 64  # elements, each of which may be the assigned one


def element_at(values: Sequence[Any], index: Any) -> Any:
    """``values[index]``.

    Raises:
        ConcreteValueError: the elements are unlike each other.
        IndexError: there is no such element, when the program runs.
    """
    first = values[0] if len(values) else None
    if not len(values) and scopes.open:  # where the program may never come
        raise_in_branch(convert_to_tensor(np.True_), _fail)
        return 0
    if first is None:
        raise IndexError(f"list index out of range: the list is empty{at(user_origin())}")
    if type(first) in KINDS:
        if any(v is not first for v in values):
            return _one_of(values, index)
        _check_position(index, len(values), "list index out of range")
        return first  # itself: what is changed through it shows in all its places
    for value in values:
        try:
            nest.assert_same_structure(first, value)
        except (TypeError, ValueError):
            raise _unlike("they differ in their structure") from None
    columns = zip(*map(nest.flatten, values), strict=True)
    return nest.pack(first, [_leaf_at(column, index) for column in columns])


def _fail() -> None:
    raise IndexError("list index out of range")


def _one_of(values: Sequence[Any], index: Any) -> Any:
    """One of several lists or dicts, which others may have under another name."""
    first, size = values[0], len(values)
    if any(type(v) is not type(first) or keys_of(v) != keys_of(first) for v in values):
        raise _unlike("they differ in their structure")
    _check_position(index, size, "list index out of range")
    if size <= _MOST_CHOSEN:
        position = convert_to_tensor(unwrapped_bound(index))
        options = [Option(_is_at(position, place, size), v) for place, v in enumerate(values)]
        return ChosenItems(options, chosen_item)
    columns = [element_at([v[key] for v in values], index) for key in keys_of(first)]
    copied = dict(zip(first, columns, strict=True)) if type(first) is dict else columns
    return FrozenItems(copied, values, chosen_item)


def _check_position(index: Any, size: int, text: str) -> None:
    """Let the program raise an IndexError for a position outside of a list."""

    def fail() -> None:
        raise IndexError(text)

    outside = truth(not_(and_(lambda: index >= -size, lambda: index < size)))
    if isinstance(outside, Tensor):
        raise_in_branch(outside, fail)
    elif outside:
        fail()


def part_of(values: Sequence[Any], key: slice) -> Any:
    """``values[key]`` of a list of numbers, or of arrays of one shape.

    Raises:
        NotStaged: it is a list of others, or a tuple.
    """
    if not len(values):
        return values[:]
    template = functools.reduce(Template.joined, map(Template, values))
    if type(values) is tuple:
        raise template.unlike(values)
    return GrownList.of(values, template).stacked()[key]


def _leaf_at(values: Sequence[Any], index: Any) -> Any:
    if not is_traced(values) and all(v is values[0] for v in values):
        return values[0]
    form = _form(values)
    table = Array(Storage(_table(values, form)))
    found = table[unwrapped_bound(index)]
    if form.kind != ARRAY:
        return form.value(found.tensor)
    if len(values) > _MOST_CHOSEN:
        return Array(CopiedStorage(found.tensor, [v.storage for v in values]))
    position = convert_to_tensor(unwrapped_bound(index))
    options = [
        (_is_at(position, place, len(values)), value) for place, value in enumerate(values)
    ]
    return Array(ChosenStorage(found.tensor, options, complete=True))


def _is_at(position: Tensor, place: int, size: int) -> Any:
    here = equal(position, convert_to_tensor(place, position.dtype))
    if position.dtype.np_dtype.kind == "u":
        return here
    return logical_or(here, equal(position, convert_to_tensor(place - size, position.dtype)))


def _form(values: Sequence[Any]) -> Form:
    """The form that all the values have."""
    found: Form | None = None
    for value in values:
        form = form_of(value)
        if form is None:
            raise _unlike(f"{value!r} is no number and no array")
        try:
            found = form if found is None else joined(found, form)
        except NoForm as problem:
            raise _unlike(str(problem)) from None
    assert found is not None
    shapes = {v.dims for v in values} if found.kind == ARRAY else {()}
    if len(shapes) > 1:
        raise _unlike("they are arrays of different shapes")
    return found


def _table(values: Sequence[Any], form: Form) -> Tensor:
    if not is_traced(values):
        return convert_to_tensor(np.asarray(values, form.dtype.np_dtype))
    return stack([form.of(form.tensor(v)) for v in values])


def _unlike(why: str) -> ConcreteValueError:
    return ConcreteValueError(
        "A list or tuple of Python's is read at a position that only the run knows, which its "
        f"elements do not allow: {why}{at(user_origin())}"
    )


def set_element(values: list[Any], index: Any, value: Any) -> None:
    """``values[index] = value`` of a list of numbers: each element may be the one.

    Raises:
        ConcreteValueError: the list is long, or not of numbers.
        IndexError: there is no such element, when the program runs.
    """
    size = len(values)
    if size > _MOST_WRITTEN:
        raise ConcreteValueError(
            f"An element of a list of {size} is assigned at a position that only the run knows: "
            f"make the list an array{at(user_origin())}"
        )
    form = _form([*values, value])
    if form.kind == ARRAY:
        raise _unlike("an array in a list is replaced by another one")
    _check_position(index, size, "list assignment index out of range")
    position, new = convert_to_tensor(unwrapped_bound(index)), form.of(form.tensor(value))
    for place, old in enumerate(values):
        chosen = _is_at(position, place, size)
        values[place] = form.value(select(chosen, new, form.of(form.tensor(old))))
