"""Arrays that are one thing after one branch and another after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from treadle.core.context import recording
from treadle.core.tensor import Tensor
from treadle.jitted.aliases import Known, coincide, reach, set_apart, share_parts
from treadle.jitted.arrays import Array, ChosenStorage, CopiedStorage
from treadle.jitted.forms import ARRAY, Form
from treadle.jitted.placed import Placed, is_placed
from treadle.jitted.storage import Scope, Storage
from treadle.jitted.views import Positions, View, same_views, view_tensors
from treadle.ops.shaping.creation import zeros

if TYPE_CHECKING:
    from treadle.jitted.branches import Merge


def _outside(value: Array, inside: Scope) -> Iterator[tuple[Tensor | None, Array]]:
    """The arrays from outside of a branch that an array of it is or may be, each with the bool that
    says whether it is that one (None: it is)."""
    if value.storage.home is not inside:
        yield None, value
    elif isinstance(value.storage, ChosenStorage):
        for chosen, array in value.storage.options:
            if array.storage.home is not inside:
                yield chosen, array.viewed(*value.views)


class _Relation(NamedTuple):
    """How an array of a branch is related to another one.

    Attributes:
        same: whether it is a view of the other one, which was made in the branch.
        suffix: that view; None where it is only known in the branch.
        shares: whether they share elements in another way, of an array made in the branch.
        apart: whether they share no elements.
    """

    same: Known = False
    suffix: Sequence[View] | None = None
    shares: bool = False
    apart: bool = False


class MergedArray:
    """An array that is one thing after one branch and another after the other.

    Attributes:
        values: the array of each branch.
        options: the arrays that it may be, from outside of the branches or merged before this one,
            each with a bool or the number of an output; an array is given by a function.
        sources: storages of which it may be a part that cannot be told after the branches.
        covered: for each branch, whether its array is one of `options`.
        apart: arrays merged before with which it shares no elements.
        twin: gives the array where it is one that was merged before; None where it is not.
        array: the array after the node.
    """

    def __init__(self, merge: Merge, form: Form, values: tuple[Any, Any]) -> None:
        self.merge, self.form, self.values = merge, form, values
        self.number = -1
        self.options: list[tuple[Tensor | int, Callable[[list[Tensor]], Array]]] = []
        self.sources: list[Callable[[], Storage]] = []
        self.covered = [False, False]
        self.apart: list[MergedArray] = []
        self.twin: Callable[[list[Tensor]], Array] | None = None
        self.array: Any = None
        if form.kind == ARRAY:
            for side, value in enumerate(values):
                if isinstance(value, Array):
                    self.see_outside(side, value)
            for earlier in merge.arrays:
                self.compare(earlier)

    def see_outside(self, side: int, value: Array) -> None:
        """Note the arrays from outside that the array of one branch may be."""
        branch = self.merge.sides[side]
        fits = branch.elements(value).dtype is self.form.dtype
        with recording(branch.builder):
            found = list(_outside(value, branch.scope))
        inner = value.storage
        whole = inner.home is not branch.scope or (
            isinstance(inner, ChosenStorage)
            and inner.complete
            and len(found) == len(inner.options)
        )
        self.covered[side] = fits and whole
        for chosen, array in found:
            known = self.merge.tests[side] if chosen is None else self.merge.told(side, chosen)
            if all(_is_known_outside(v, branch.builder) for v in array.views):
                if fits:
                    self.options.append((known, lambda out, a=array: a))  # type: ignore[misc]
            elif fits and is_placed(array, set(), branch.scope):
                self.options.append((known, self.placed(side, array)))
            else:
                self.sources.append(lambda s=array.storage: s)  # type: ignore[misc]
        for storage in reach(value):
            if isinstance(storage, CopiedStorage):
                outside = [s for s in storage.sources if s.home is not branch.scope]
                self.sources += [lambda s=s: s for s in outside]  # type: ignore[misc]

    def placed(self, side: int, array: Array) -> Callable[[list[Tensor]], Array]:
        """An array from outside, of which only the branch knows the part."""
        branch, other = self.merge.sides[side], self.merge.sides[1 - side]
        with recording(branch.builder):
            places = Placed()
            places.add_roots(array, branch.scope)
            _, positions = places.place(array)
        with recording(other.builder):
            none = zeros(other.elements(self.values[1 - side]).dims, positions.dtype)
        number = self.merge.pair((positions, none) if side == 0 else (none, positions))
        return lambda out: Array(array.storage, (Positions(out[number]),))

    def compare(self, earlier: MergedArray) -> None:
        """Note where this array is an earlier one, or shares elements with it."""
        found = [self.relation(side, earlier) for side in (0, 1)]
        first, second = (r.suffix for r in found)
        is_same = self.form == earlier.form and all(r.same is True for r in found)
        if is_same and first is not None and second is not None and same_views(first, second):
            self.twin = lambda out: earlier.array.viewed(*first)
            return
        for side, relation in enumerate(found):
            suffix, same_dtype = relation.suffix, self.form.dtype is earlier.form.dtype
            if relation.same is not False and suffix is not None and same_dtype:
                known = relation.same
                test = self.merge.tests[side] if known is True else self.merge.told(side, known)
                self.options.append((test, lambda out, v=suffix: earlier.array.viewed(*v)))  # type: ignore[misc]
                self.covered[side] |= known is True
            elif relation.same is not False or relation.shares:
                self.sources.append(lambda: earlier.array.storage)
        if all(relation.apart for relation in found):
            self.apart.append(earlier)

    def relation(self, side: int, earlier: MergedArray) -> _Relation:
        """How this array and an earlier one are related after one branch."""
        a, b = earlier.values[side], self.values[side]
        if not isinstance(a, Array) or not isinstance(b, Array):
            return _Relation(apart=True)
        branch = self.merge.sides[side]
        with recording(branch.builder):
            same, shares = coincide(a, b), share_parts(a, b)
        if not any(s.home is branch.scope for s in reach(a) & reach(b)):
            # Both name the arrays from outside that they may be.
            return _Relation(apart=same is False and not shares)
        suffix = b.views[len(a.views) :]
        if a.storage is b.storage and same_views(a.views, b.views[: len(a.views)]):
            known_outside = all(_is_known_outside(v, branch.builder) for v in suffix)
            return _Relation(True, suffix if known_outside else None)
        return _Relation(same, (), shares, same is False and not shares)

    def made(self, out: list[Tensor]) -> Array:
        """The array after the node, by the node's outputs."""
        content = out[self.number]
        options = [(out[c] if isinstance(c, int) else c, array(out)) for c, array in self.options]
        storage: Storage = Storage(content)
        if self.sources:
            others = [array.storage for _, array in options]
            storage = CopiedStorage(content, [s() for s in self.sources] + others)
        elif options:
            storage = ChosenStorage(content, options, all(self.covered))
        self.array = made = Array(storage)
        for earlier in self.apart:
            set_apart(storage, earlier.array.storage)
        return made


def _is_known_outside(view: View, inside: Any) -> bool:
    """Whether a view of an array in a branch can also be taken after the branch."""
    return not any(x.recorder is inside for x in view_tensors(view))
