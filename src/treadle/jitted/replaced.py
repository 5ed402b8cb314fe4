"""Arrays that a loop's body puts in place of others: ``p, pn = pn, p``.

The loop carries the elements of each such variable. Which array it is matters where elements are
changed in place: then the arrays from before the loop must hold the changes after it. So the loop
also carries, for each variable, the number of the array that it is (NEW for an array that the body
made); for each array that no variable is any more the elements that it was left with; and for two
variables that may be one array whether they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted.aliases import Known, coincide, either, reach, set_apart, share_parts
from treadle.jitted.arrays import Array, ChosenStorage, CopiedStorage, picked
from treadle.jitted.errors import NotStaged
from treadle.jitted.placed import Placed, is_numbered, is_placed, numbered, places
from treadle.jitted.storage import Scope, Storage
from treadle.jitted.views import View, is_constant, same_views
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.logic import logical_and, logical_not
from treadle.ops.elementwise.selection import where as select

NEW = -1
OTHER = -2  # and below: an array from outside that the loop does not carry


class Replaced:
    """The array variables that a loop carries by value.

    Attributes:
        before: variable (number of its leaf) -> its array before the loop.
        keeps: whether elements of arrays that no variable is any more are carried.
        pairs: two variables that may be one array -> whether they are before the loop.
        others: arrays from outside that variables become.
        followed: those of them that may change in the loop, which carries their elements. A change
            by a variable's name changes the array that the variable is.
        copied: variable -> the storages that it becomes another part of each time.
        complete: whether all variables are arrays from before the loop in any case.
        placed: carries the places of the variables in arrays, where the body changes no array.
        parts: variable -> earlier variables with which it shares elements in other ways.
        views: variable -> another variable, which is a new array after each iteration, and the view
            of that array that it is.
    """

    def __init__(self, peels: bool) -> None:
        self.peels = peels
        self.copied: dict[int, list[Storage]] = {}
        self.parts: dict[int, list[int]] = {}
        self.views: dict[int, tuple[int, tuple[View, ...]]] = {}
        self.others: list[Array] = []
        self.followed: list[Array] = []
        self.before: dict[int, Array] = {}
        self.keeps = False
        self.pairs: dict[tuple[int, int], Known] = {}
        self.inside: dict[int, tuple[Storage, Tensor]] = {}
        self.which: dict[int, Tensor] = {}
        self.left: dict[int, Tensor] = {}
        self.same: dict[tuple[int, int], Tensor] = {}
        self.changes_arrays = False
        self.complete = False
        self.placed: Placed | None = None

    def begin(self, arrays: dict[int, Any]) -> None:
        """Note the variables and their arrays before the loop."""
        self.before = {i: a for i, a in arrays.items() if isinstance(a, Array)}
        for i, j in combinations(self.before, 2):
            known = coincide(self.before[i], self.before[j])
            if known is not False or (i, j) in self.pairs:
                self.pairs[i, j] = known

    # -- tensors carried besides the elements ------------------------------------------------

    def start(self) -> list[Tensor]:
        """The tensors carried besides the elements, before the first iteration."""
        if self.placed is not None:
            return self.placed.carried(list(self.before.values()))
        which: dict[int, Tensor] = {}
        for j in self.before:
            number = numbered(j)
            for i in reversed(self.before):
                known = self.pairs.get((i, j), False)
                if known is not False:
                    number = which[i] if known is True else select(known, which[i], number)
            which[j] = number
        left = [a.tensor for a in self.before.values()] if self.keeps else []
        return [*which.values(), *left, *map(convert_to_tensor, self.pairs.values())]

    def split(self, carried: Sequence[Tensor]) -> list[dict[Any, Tensor]]:
        """The tensors of `start` and `leave` by variable and pair: numbers, elements, flags."""
        size = len(self.before)
        left = carried[size : size * 2] if self.keeps else ()
        flags = carried[size + len(left) :]
        return [
            dict(zip(self.before, carried, strict=False)),
            dict(zip(self.before, left, strict=False)),
            dict(zip(self.pairs, flags, strict=True)),
        ]

    def enter(self, values: list[Any], carried: Sequence[Tensor]) -> None:
        """Begin an iteration on `values`, the leaves that the body sees."""
        if self.placed is not None:
            self.inside = {i: (values[i].storage, values[i].storage.held) for i in self.before}
            self.placed.enter([s for s, _ in self.inside.values()], carried)
            return
        self.which, self.left, self.same = self.split(carried)
        for i in self.before:
            values[i] = self._followed(values[i], self.which[i])
        for (i, j), flag in self.same.items():
            if values[i].tensor.spec is values[j].tensor.spec:
                storage = values[j].storage
                if not isinstance(storage, ChosenStorage):
                    storage = ChosenStorage(storage.tensor, [])
                options = [*storage.options, (flag, values[i])]
                values[j] = Array(ChosenStorage(storage.tensor, options))
        for i, j in combinations(self.before, 2):
            if (i, j) not in self.pairs:
                set_apart(values[i].storage, values[j].storage)
        self.inside = {i: (values[i].storage, values[i].storage.held) for i in self.before}

    def _followed(self, value: Array, which: Tensor) -> Array:
        """A variable's array in an iteration, with the followed arrays that it may be."""
        tensor = value.tensor
        options = [
            (is_numbered(which, OTHER - n), other)
            for n, other in enumerate(self.followed)
            if other.tensor.spec is tensor.spec
        ]
        return Array(ChosenStorage(tensor, options)) if options else value

    def leave(self, leaves: list[Any]) -> list[Tensor]:
        """The tensors carried to the next iteration besides the elements."""
        if self.placed is not None:
            return self.placed.carried([leaves[i] for i in self.before])
        which = [self._which_after(leaves[i]) for i in self.before]
        flags = [convert_to_tensor(coincide(leaves[i], leaves[j])) for i, j in self.pairs]
        if not self.keeps:
            return which + flags
        held = {i: self._held(leaves, i) for i in self.before}
        left = []
        for k, tensor in self.left.items():
            for i, stays in held.items():
                if stays is not True and _may_be(self.inside[i][0].tensor, tensor):
                    here = is_numbered(self.which[i], k)
                    if stays is not False:
                        here = logical_and(here, logical_not(stays))
                    tensor = picked(here, self.inside[i][0].tensor, tensor, tensor)
            left.append(tensor)
        return which + left + flags

    def _held(self, leaves: list[Any], number: int) -> Known:
        """Whether the array that a variable begins an iteration with is one of them after it."""
        found: Known = False
        for i in self.before:
            found = either(found, coincide(leaves[i], Array(self.inside[number][0])))
        return found

    def _which_after(self, value: Array) -> Tensor:
        """The number of the array that a variable is after an iteration."""
        known = [(Array(s), self.which[i]) for i, (s, _) in self.inside.items()]
        known += [(other, numbered(OTHER - n)) for n, other in enumerate(self.others)]
        found = numbered(NEW)
        for array, which in known:
            here = coincide(value, array)
            if here is True:
                return which
            if here is not False:
                found = select(here, which, found)
        return found

    # -- changes by the body --------------------------------------------------------

    def settle(self, leaves: list[Any], found: Scope, carried: Sequence[Storage]) -> bool:
        """Whether the loop must be traced again, to carry more.

        Raises:
            NotStaged: an array is changed that the body reaches in two ways.
        """
        if not self.before:
            return False
        # A storage may be carried only because an earlier trace did not know the variables.
        carried = [s for s in carried if s.held is not found.before[s]]
        self.copied, self.others, self.parts, self.views = {}, [*self.followed], {}, {}
        written = {i for i, (s, t) in self.inside.items() if s.held is not t}
        self.changes_arrays = bool(written)
        if not written and self._has_parts(leaves, found, carried):
            return self._place(leaves, found)
        if self.placed is not None:
            self.placed = None
            return True
        for i in self.before:
            self._check_alias(i, leaves[i], found, carried)
        if self._new_followed(leaves, written, carried):
            return True
        self.complete = all(self._is_old(leaves[i], found) for i in self.before)
        if self._new_pairs(leaves, found):
            return True
        outside = {s for a in self.before.values() for s in reach(a)}
        if outside.intersection(carried) or (written and self._shares(outside, found)):
            raise NotStaged(
                "A loop changes an array in place that it also reaches by another variable"
                f"{at(user_origin())}"
            )
        if not written:
            return False
        becomes = [
            (self.before[i].tensor, self.inside[i][1])
            for i in self.before
            if self.before[i].tensor.spec is not self.inside[i][1].spec
        ]
        if becomes and (self.others or any(a.dtype is not b.dtype for a, b in becomes)):
            raise NotStaged(
                "A loop changes an array in place whose dtype or shape is another one in later "
                f"iterations{at(user_origin())}"
            )
        changing = written | self._reached(leaves, [Array(self.inside[i][0]) for i in written])
        if not self.keeps and any(self._held(leaves, i) is not True for i in changing):
            self.keeps = True
            return True
        return False

    def _reached(self, leaves: list[Any], arrays: Sequence[Array]) -> set[int]:
        """The variables that may be one of some arrays after one iteration or several."""
        found: set[int] = set()
        while arrays:
            more = {
                i
                for i in self.before.keys() - found
                if any(coincide(leaves[i], array) is not False for array in arrays)
            }
            found |= more
            arrays = [Array(self.inside[i][0]) for i in more]
        return found

    def _has_parts(self, leaves: list[Any], found: Scope, carried: Sequence[Storage]) -> bool:
        """Whether the variables become parts of arrays from before the loop, and nothing else,
        while none of these changes."""
        own = {s for s, _ in self.inside.values()}
        arrays = [leaves[i] for i in self.before]
        known = [*arrays, *self.before.values()]
        if all(a.storage in own and not a.views for a in arrays):
            return False
        roots = {root for a in known if a.storage not in own for root in a.storage.roots()}
        return roots.isdisjoint(carried) and all(is_placed(a, own, found) for a in known)

    def _place(self, leaves: list[Any], found: Scope) -> bool:
        """Whether the loop must be traced again, to carry places."""
        placed = self.placed or Placed()
        known = len(placed.roots)
        own = {s for s, _ in self.inside.values()}
        for array in [*self.before.values(), *(leaves[i] for i in self.before)]:
            if array.storage not in own:
                placed.add_roots(array, found)
        is_new = self.placed is None or len(placed.roots) > known
        self.placed = placed
        return is_new

    def followed_storages(self) -> list[Storage]:
        """The storages that the loop carries because a variable may be one of their arrays."""
        return [root for other in self.followed for root in other.storage.roots()]

    def _new_followed(
        self, leaves: list[Any], written: set[int], carried: Sequence[Storage]
    ) -> bool:
        """Whether arrays that variables become may change, which was not known."""
        known = len(self.followed)
        reached = {root for other in self.others for root in other.storage.roots()}
        changed = written & self._reached(leaves, self.others)
        if changed or not reached.isdisjoint(carried):
            self.followed = [*self.others]
        return len(self.followed) > known

    def _new_pairs(self, leaves: list[Any], found: Scope) -> bool:
        """Whether variables may be one array, or share elements, that were not known to be."""
        known = len(self.pairs)
        for i, j in combinations(self.before, 2):
            if coincide(leaves[i], leaves[j]) is not False:
                self.pairs.setdefault((i, j), False)
            elif share_parts(leaves[i], leaves[j]):
                if self.changes_arrays:
                    raise self._part_changes()
                if not self._note_view(leaves, i, j, found):
                    self.parts.setdefault(j, []).append(i)
        return len(self.pairs) > known

    def _note_view(self, leaves: list[Any], i: int, j: int, found: Scope) -> bool:
        """Note where one of two variables is a known view of the other, which the body makes."""
        if leaves[i].storage is not leaves[j].storage or leaves[i].storage.home is not found:
            return False
        whole, part = (i, j) if len(leaves[i].views) < len(leaves[j].views) else (j, i)
        shared, views = leaves[whole].views, leaves[part].views
        own = views[len(shared) :]
        if whole in self.views or part in self.views or not all(map(is_constant, own)):
            return False
        if not same_views(shared, views[: len(shared)]):
            return False
        self.views[part] = whole, own
        return True

    def _shares(self, outside: set[Storage], found: Scope) -> bool:
        """Whether the body reads an array of before the loop by another name, or two of them share
        elements in other ways than being one array."""
        if any(self.inside[i][1].spec is not self.inside[j][1].spec for i, j in self.pairs):
            return True
        return bool(found.reads & outside) or any(
            share_parts(a, b) for a, b in combinations(self.before.values(), 2)
        )

    def _check_alias(
        self, number: int, value: Array, found: Scope, carried: Sequence[Storage]
    ) -> None:
        """A variable that becomes an array from outside, or a part of one, is carried as a copy:
        that is right as long as neither changes."""
        storage = value.storage
        own = {root for s, _ in self.inside.values() for root in s.roots()}
        if storage in {s for s, _ in self.inside.values()}:
            if value.views:
                self._copy(number, [storage], own)
            return
        if storage.home is found:
            if isinstance(storage, CopiedStorage):
                sources = [s for s in storage.sources if s in own or s.home is not found]
                self._copy(number, sources, own)
            if isinstance(storage, ChosenStorage):
                for _, array in storage.options:
                    self._check_alias(number, array.viewed(*value.views), found, carried)
            return
        fixed = all(map(is_constant, value.views))
        if not fixed:
            if self.peels or not set(carried).isdisjoint(storage.roots()):
                raise self._part_changes()
            self._copy(number, [storage], own)
        elif not any(coincide(value, other) is True for other in self.others):
            self.others.append(value)

    def _is_old(self, value: Array, found: Scope) -> bool:
        """Whether an array after an iteration is one from before the loop in any case."""
        storage = value.storage
        if storage in {s for s, _ in self.inside.values()}:
            return not value.views
        if storage.home is not found:
            return all(map(is_constant, value.views))
        if not isinstance(storage, ChosenStorage) or not storage.complete or value.views:
            return False
        return all(self._is_old(option, found) for _, option in storage.options)

    def _copy(self, number: int, sources: Sequence[Storage], own: set[Storage]) -> None:
        """Note that a variable is a part of an array; own: the elements of the loop's variables."""
        for source in sources:
            if source in own or not own.isdisjoint(source.roots()):
                if self.changes_arrays:
                    raise self._part_changes()
                known = [s for a in self.before.values() for s in reach(a)]
            else:
                known = [source]
            self.copied.setdefault(number, []).extend(known)

    def _part_changes(self) -> NotStaged:
        return NotStaged(
            "A variable becomes an array that a loop changes in place, or a part of one"
            f"{at(user_origin())}"
        )

    # -- after the loop ----------------------------------------------------------------------

    def end(self, leaves: list[Any], carried: Sequence[Tensor]) -> list[Any]:
        """The leaves after the loop: arrays that stand for those that they turn out to be."""
        if self.placed is not None:
            made = list(leaves)
            for j, place in zip(self.before, places(carried), strict=True):
                made[j] = self.placed.end(leaves[j].tensor, place)
            return made
        which, left, same = self.split(carried)
        contents = {i: leaves[i].tensor for i in self.before}
        if self.changes_arrays:
            self._write_back(which, left, contents)
        made = list(leaves)
        for j, content in sorted(contents.items(), key=lambda pair: pair[0] in self.views):
            options = [(is_numbered(which[j], k), a) for k, a in self.before.items()]
            options += [
                (is_numbered(which[j], OTHER - n), other) for n, other in enumerate(self.others)
            ]
            options += [(flag, made[i]) for (i, k), flag in same.items() if k == j]
            whole, views = self.views.get(j, (j, ()))
            if j in self.views:
                part = made[whole].viewed(*views)
                options.append((is_numbered(which[j], NEW), part))
                if part.tensor.spec is not content.spec:  # before the loop it has another shape
                    self.copied[j] = [*self.copied.get(j, []), made[whole].storage]
            sources = self.copied.get(j, []) + [made[i].storage for i in self.parts.get(j, ())]
            fitting = [(test, a) for test, a in options if a.tensor.spec is content.spec]
            if self.changes_arrays:  # one of another shape: it is not known by this name any more
                sources += [
                    a.storage
                    for _, a in options
                    if a.tensor.spec is not content.spec and _may_be(content, a.tensor)
                ]
            if sources or j in self.copied or j in self.parts:
                made[j] = Array(CopiedStorage(content, sources))
                continue
            complete = self.complete and len(fitting) == len(options)
            made[j] = Array(ChosenStorage(content, fitting, complete))
        for i, j in combinations(self.before, 2):
            is_view = self.views.get(i, (i, ()))[0] == j or self.views.get(j, (j, ()))[0] == i
            if (i, j) not in self.pairs and i not in self.parts.get(j, ()) and not is_view:
                set_apart(made[i].storage, made[j].storage)
        return made

    def _write_back(
        self, which: dict[int, Tensor], left: dict[int, Tensor], contents: dict[int, Tensor]
    ) -> None:
        """Write the elements after the loop into the arrays from before it."""
        for k, array in self.before.items():
            tensor = left.get(k, array.tensor)
            for i, content in contents.items():
                if _may_be(content, array.tensor):
                    tensor = picked(is_numbered(which[i], k), content, tensor, array.tensor)
            for i in self.before:  # the same array under an earlier number is written already
                known = self.pairs.get((i, k), False)
                if known is not False:
                    tensor = array.tensor if known is True else select(known, array.tensor, tensor)
            array.write(tensor)


def _may_be(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors can be the elements of one array: it keeps its dtype and shape."""
    if one.dtype is not other.dtype or one.ndim != other.ndim:
        return False
    pairs = zip(one.dims, other.dims, strict=True)
    return all(a == b or not (isinstance(a, int) and isinstance(b, int)) for a, b in pairs)
