"""Lists of numbers, and lists of such lists, of which a loop reads or changes items at positions
that only the run knows: they become arrays before the loop."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from treadle.core import nest
from treadle.core.origin import at, user_origin
from treadle.jitted.arrays import Array, is_traced
from treadle.jitted.becoming import BecomesOther, is_kept
from treadle.jitted.errors import NotStaged
from treadle.jitted.forms import ARRAY, Form
from treadle.jitted.grown_lists import Template
from treadle.jitted.opened import is_from_outside
from treadle.jitted.stacked_lists import StackedList
from treadle.jitted.storage import Storage
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.shaping.joining import stack
from treadle.ops.shaping.reshaping import reshape_to

_FEW = 16  # numbers of a list that stays one of Python's


class NeedsRows(BecomesOther):
    """A list is read or changed at a position that only the run knows.

    Attributes:
        value: what is assigned, a number; None where it is read.
    """

    may_stay = True

    def __init__(self, owner: list[Any], value: Any = None) -> None:
        super().__init__(
            "A list has an item at a position that only the run knows, in a branch or loop in "
            f"which it is no variable of the function: use an array{at(user_origin())}"
        )
        self.owner, self.value = owner, value

    def wants(self, value: Any) -> NeedsRows:
        """The same, where `value` is assigned."""
        self.value = Template(value)
        return self

    def widen(self, value: Any) -> None:
        """Called where the list that was made takes a number which it does not hold.

        Raises:
            WidensRows: it would hold it, made in another form.
        """
        try:
            template = Template(value)
        except NotStaged:
            return
        if type(value) not in _NUMBERS and any(f.kind == ARRAY for f in template.forms):
            return
        if self.value is not None:
            template = template.joined(self.value)
        problem = WidensRows(self.owner)
        problem.value = template
        raise problem

    def made(self) -> StackedList:
        found = stacked(self.owner, self.value)
        if found is None:
            raise NotStaged(
                "A list has an item at a position that only the run knows, and its items are not "
                f"all numbers, or lists of one length: use an array{at(user_origin())}"
            )
        for part in _parts(found):
            part.made_for = self
        return found


class WidensRows(NeedsRows):
    """A list that became arrays gets a number of another kind than it was made for."""

    widens = True


def _parts(found: StackedList) -> Iterator[StackedList]:
    yield found
    if isinstance(found.element, StackedList):
        yield from _parts(found.element)


_NUMBERS = (bool, int, float, complex)


def check_rows(values: Any) -> None:
    """Called where a list is read or changed at a position that only the run knows.

    Raises:
        NeedsRows: it is to be made arrays: a variable of a loop, of lists or of many numbers.
    """
    if type(values) is not list or not is_from_outside(values) or is_kept(values):
        return
    if values and (len(values) > _FEW or type(values[0]) is list) and _depth(values) is not None:
        raise NeedsRows(values)


def _depth(values: Sequence[Any]) -> int | None:
    """How many lists of one length are inside of one another, around numbers; else None."""
    if not all(type(v) is list for v in values):
        return None if any(nest.is_nested(v) for v in values) else 1
    depths = {(len(v), _depth(v) if v else None) for v in values}
    (size, inner), *others = depths
    return None if others or inner is None or not size else inner + 1


def stacked(values: list[Any], value: Template | None) -> StackedList | None:
    """A list as arrays; None where it cannot be.

    Args:
        value: the form of a number that it takes.
    """
    depth = _depth(values)
    if depth is None:
        return None
    leaves: list[Any] = functools.reduce(lambda found, _: [x for v in found for x in v],
                                         range(depth - 1), values)  # fmt: skip
    templates = {f: t for t in map(Template, leaves) for f in t.forms}
    wide = functools.reduce(Template.joined, [*templates.values(), *([value] if value else [])])
    (form,) = wide.forms
    if form.kind == ARRAY:
        return None
    is_shared = _have_two_places(values)
    shape, inner = [], values
    for _ in range(depth):
        shape.append(len(inner))
        inner = inner[0]
    if is_traced(leaves):
        tensor = stack([form.tensor(leaf) for leaf in leaves])
    else:
        tensor = convert_to_tensor(np.array(leaves, form.dtype.np_dtype))
    made = _of(depth, form, Array(Storage(reshape_to(tensor, tuple(shape)))), is_shared)
    made.is_shared = is_shared
    return made


def _have_two_places(values: list[Any]) -> bool:
    """Whether a list is in another one at two places, as in ``[[0] * 3] * 2``."""
    inner = [v for v in values if type(v) is list]
    return len({id(v) for v in inner}) < len(inner) or any(map(_have_two_places, inner))


def _of(depth: int, form: Form, column: Any, is_shared: bool) -> StackedList:
    if depth == 1:
        return StackedList(None, [form], [column])
    element = _of(depth - 1, form, None, is_shared)
    element.is_part, element.is_shared = True, is_shared
    return StackedList(element, [Form(ARRAY, form.dtype, depth - 1)], [column])
