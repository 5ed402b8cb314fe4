"""Arrays that a loop's body puts in place of others: ``p, pn = pn, p``.

The loop carries the elements of each such variable. Which array it is matters where elements are
changed in place: then the arrays from before the loop must hold the changes after it. So the loop
also carries, for each variable, the number of the array that it is (NEW for an array that the body
made), and for each array that no variable is any more the elements that it was left with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import Array, ChosenStorage, CopiedStorage
from treadle.jitted.forms import NotStaged
from treadle.jitted.storage import Scope, Storage
from treadle.jitted.views import View, is_constant
from treadle.ops.comparison import equal
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.logic import logical_and, logical_not, logical_or
from treadle.ops.selection import where as select

NEW = -1
OTHER = -2  # and below: an array from outside that the loop does not carry


class Replaced:
    """The array variables that a loop carries by value.

    Attributes:
        before: variable (number of its leaf) -> its array before the loop.
        keeps: whether elements of arrays that no variable is any more are carried.
        others: arrays from outside that variables become.
        copied: variable -> the array from outside of which it becomes another part each time.
    """

    def __init__(self, peels: bool) -> None:
        self.peels = peels
        self.copied: dict[int, Storage] = {}
        self.others: list[Array] = []
        self.before: dict[int, Array] = {}
        self.keeps = False
        self.inside: dict[int, tuple[Storage, Tensor]] = {}
        self.which: dict[int, Tensor] = {}
        self.left: dict[int, Tensor] = {}
        self.changes_arrays = False

    def begin(self, arrays: dict[int, Any]) -> None:
        """The variables, with what they are before the loop."""
        self.before = {i: a for i, a in arrays.items() if isinstance(a, Array)}

    def start(self) -> list[Tensor]:
        """What is carried besides the elements, before the first iteration."""
        which = [convert_to_tensor(np.int64(i)) for i in self.before]
        return which + ([a.tensor for a in self.before.values()] if self.keeps else [])

    def enter(self, values: list[Any], carried: Sequence[Tensor]) -> None:
        """Begin an iteration on `values`, the leaves that the body sees."""
        self.inside = {i: (values[i].storage, values[i].storage.held) for i in self.before}
        self.which = dict(zip(self.before, carried, strict=False))
        self.left = dict(zip(self.before, carried[len(self.before) :], strict=False))

    def settle(self, leaves: list[Any], found: Scope, carried: Sequence[Storage]) -> bool:
        """Whether the loop must be traced again, to carry the elements of arrays that are left.

        Raises:
            NotStaged: an array is changed that the body reaches by two ways.
        """
        if not self.before:
            return False
        self.copied, self.others = {}, []
        written = {i for i, (s, t) in self.inside.items() if s.held is not t}
        self.changes_arrays = bool(written)
        for i in self.before:
            self._check_alias(i, leaves[i], found, carried, bool(written))
        if not written:
            return False
        storages = [a.storage for a in self.before.values()]
        if len(set(storages)) < len(storages) or found.reads.intersection(storages):
            raise NotStaged(
                "A loop changes an array in place that it also reaches by another variable"
                f"{at(user_origin())}"
            )
        if any(self.before[i].tensor.spec is not self.inside[i][1].spec for i in self.before):
            raise NotStaged(
                "A loop changes an array in place whose dtype or shape is another one in later "
                f"iterations{at(user_origin())}"
            )
        if not self.keeps and any(self._held(leaves, i) is not True for i in written):
            self.keeps = True
            return True
        return False

    def _check_alias(
        self, number: int, value: Any, found: Scope, carried: Sequence[Storage], changes: bool
    ) -> None:
        """A variable that becomes an array from outside, or a part of one, is carried as a copy:
        that is right as long as neither changes."""
        storage = value.storage
        own = {s for s, _ in self.inside.values()}
        if storage in own and not value.views:
            return
        if storage.home is found:
            if isinstance(storage, CopiedStorage):
                self.copied[number] = storage.source
            if isinstance(storage, ChosenStorage):
                for _, array in storage.options:
                    self._check_alias(number, array, found, carried, changes)
            return
        outside, fixed = storage not in own, all(map(is_constant, value.views))
        if storage in carried or (self.peels and not fixed if outside else changes):
            raise NotStaged(
                "A variable becomes an array that a loop changes in place, or a part of one"
                f"{at(user_origin())}"
            )
        if outside and fixed:
            if not any(_is_array(value, o.storage, o.views) is True for o in self.others):
                self.others.append(value)
        elif outside:
            self.copied[number] = storage

    def _held(self, leaves: list[Any], number: int) -> bool | Tensor:
        """Whether the array that a variable begins an iteration with is one of them after it."""
        found: bool | Tensor = False
        for i in self.before:
            here = _is_array(leaves[i], self.inside[number][0])
            if here is True:
                return True
            if here is not False:
                found = here if found is False else logical_or(found, here)
        return found

    def leave(self, leaves: list[Any]) -> list[Tensor]:
        """What is carried to the next iteration besides the elements."""
        which = [self._which_after(leaves[i]) for i in self.before]
        if not self.keeps:
            return which
        held = {i: self._held(leaves, i) for i in self.before}
        left = []
        for k, tensor in self.left.items():
            for i, stays in held.items():
                if stays is not True:
                    here = _is(self.which[i], k)
                    if stays is not False:
                        here = logical_and(here, logical_not(stays))
                    tensor = select(here, self.inside[i][0].tensor, tensor)
            left.append(tensor)
        return which + left

    def _which_after(self, value: Array) -> Tensor:
        """The number of the array that a variable is after an iteration."""
        known = [(Array(s), self.which[i]) for i, (s, _) in self.inside.items()]
        known += [(other, _constant(OTHER - n)) for n, other in enumerate(self.others)]
        found = _constant(NEW)
        for array, which in known:
            here = _is_array(value, array.storage, array.views)
            if here is True:
                return which
            if here is not False:
                found = select(here, which, found)
        return found

    def end(self, leaves: list[Any], carried: Sequence[Tensor]) -> list[Any]:
        """The leaves after the loop: arrays that stand for those that they turn out to be."""
        which = dict(zip(self.before, carried, strict=False))
        left = dict(zip(self.before, carried[len(self.before) :], strict=False))
        contents = {i: leaves[i].tensor for i in self.before}
        if self.changes_arrays:
            for k, array in self.before.items():
                tensor = left.get(k, array.tensor)
                for i, content in contents.items():
                    tensor = select(_is(which[i], k), content, tensor)
                array.write(tensor)
        made = list(leaves)
        for i, content in contents.items():
            if i in self.copied:
                made[i] = Array(CopiedStorage(content, self.copied[i]))
                continue
            options = [
                (which[i], k, array)
                for k, array in self.before.items()
                if array.tensor.spec is content.spec
            ]
            options += [
                (which[i], OTHER - number, other)
                for number, other in enumerate(self.others)
                if other.tensor.spec is content.spec
            ]
            made[i] = Array(ChosenStorage(content, [(_is(w, k), a) for w, k, a in options]))
        return made


def _is_array(
    value: Array, storage: Storage, views: tuple[View, ...] = ()
) -> bool | Tensor:
    """Whether an array is a view of a storage; where only the run knows, a bool of the graph."""
    if value.storage is storage and value.views == views:
        return True
    found: bool | Tensor = False
    if isinstance(value.storage, ChosenStorage) and not value.views:
        for chosen, array in value.storage.options:
            inner = _is_array(array, storage, views)
            if inner is not False:
                here = chosen if inner is True else logical_and(chosen, inner)
                found = here if found is False else logical_or(found, here)
    return found


def _is(which: Tensor, number: int) -> Tensor:
    return equal(which, _constant(number))


def _constant(number: int) -> Tensor:
    return convert_to_tensor(np.int64(number))
