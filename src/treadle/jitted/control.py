"""Branches and loops of a jitted function in the graph.

What a branch or loop body changes is found out by tracing it: the variables that it gives back, and
the storages of arrays that it writes, also through views and in functions that it calls. A loop is
traced again until its variables keep their forms and every storage that is written is carried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.autograph.operators.journal import changes
from treadle.autograph.operators.undefined import PartlyDefined, Undefined
from treadle.core import nest
from treadle.core.context import context, recording, taping
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted.aliases import Known, coincide, reach, set_apart, share_parts
from treadle.jitted.arrays import Array, ChosenStorage, CopiedStorage
from treadle.jitted.forms import ARRAY, Form, NoForm, NotStaged, form_of, joined, same
from treadle.jitted.grown_lists import (
    GrownList,
    Grows,
    Template,
    grown_like,
    is_left,
    leave,
    template_of,
)
from treadle.jitted.placed import Placed, is_placed
from treadle.jitted.replaced import Replaced
from treadle.jitted.storage import Scope, Storage, listed, scope, scopes
from treadle.jitted.views import Positions, View, same_views, view_tensors
from treadle.ops import control_flow
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.creation import zeros
from treadle.ops.logic import logical_not
from treadle.ops.raising import Raised, is_raised_by_user, marks, raise_unless
from treadle.ops.registry import run_with_regions

State = tuple[Any, ...]


# -- branches ------------------------------------------------------------------------------------


class _Branch:
    """One traced branch: its region, what it gave back, and the storages that it wrote.

    Attributes:
        held: by id, the elements of the arrays in the result at the end of the branch.
        raised: the exception that a ``raise`` of the branch ends it with.
    """

    raised: Raised | None = None

    def __init__(self, run: Callable[[], Any], state: Any, raises: bool = False) -> None:
        builder: Any = context.recorder

        def body() -> list[Any]:
            with taping(()), marks() as shown:
                try:
                    self.result = run()
                except Exception as error:
                    if not raises and not is_raised_by_user(error, "treadle.jitted.function"):
                        raise
                    self.raised = Raised(error, shown)
                    return []
                contents = [place.get() for place in self.journal.places.values()]
                self.held = {id(a): a.tensor for a in _arrays([self.result, contents])}
            return []

        self.scope = Scope()
        with changes(state) as self.journal, scope() as self.scope:
            self.builder = builder.trace_region(body, [])
        self.values: list[Tensor] = []

    def elements(self, array: Array) -> Tensor:
        """What an array of the result holds at the end of the branch."""
        held = self.held.get(id(array))
        return array.tensor if held is None else held

    def form_of(self, value: Any) -> Form | None:
        """The form of a value of the result."""
        if isinstance(value, Array):
            tensor = self.elements(value)
            return Form(ARRAY, tensor.dtype, tensor.ndim)
        with recording(self.builder):  # a symbolic number may be computed of numbers made there
            return form_of(value)

    def raise_unless(self, condition: Tensor) -> None:
        """The program raises the branch's exception where it takes the branch, and goes on with the
        other one as if there were no branches."""
        raised: Any = self.raised
        if not self.builder.region.nodes:
            raise_unless(condition, raised)
            return
        builder: Any = context.recorder
        with recording(self.builder), taping(()):
            raise_unless(condition, raised)
        empty = builder.trace_region(list, [])
        operands = [logical_not(condition), *builder.align_captures([self.builder, empty])]
        regions = [self.builder.region, empty.region]
        run_with_regions(control_flow.COND, operands, regions)

    def add(self, value: Any, form: Form | None = None) -> int:
        """One more result of the region, in a form; gives its number."""
        with recording(self.builder):
            if form is not None:
                is_array = isinstance(value, Array)
                value = form.of(self.elements(value)) if is_array else form.tensor(value)
            self.values.append(value)
        return len(self.values) - 1


def _outside(value: Array, inside: Scope) -> Iterator[tuple[Tensor | None, Array]]:
    """The arrays from outside of a branch that an array of it is or may be, each with what tells
    whether it is that one (None: it is)."""
    if value.storage.home is not inside:
        yield None, value
    elif isinstance(value.storage, ChosenStorage):
        for chosen, array in value.storage.options:
            if array.storage.home is not inside:
                yield chosen, array.viewed(*value.views)


def _arrays(result: Any) -> Iterator[Array]:
    """The arrays in what a branch gave back. Their elements are those at its end."""
    for leaf in nest.flatten(result):
        if isinstance(leaf, PartlyDefined):
            yield from _arrays(leaf.value)
        elif isinstance(leaf, Array):
            yield leaf


def branch(test: Tensor, then: Callable[[], Any], otherwise: Callable[[], Any], state: Any) -> Any:
    """What ``then()`` or ``otherwise()`` gives, by a bool of the graph, as a ``cond`` node."""
    builder: Any = context.recorder
    first = _Branch(then, state)
    if first.raised is not None:
        first.raise_unless(logical_not(test))
        return otherwise()
    second = _Branch(otherwise, state)
    if second.raised is not None:
        second.raise_unless(test)
        return then()
    sides = first, second
    merge = _Merge(test, *sides)
    result = merge.value(sides[0].result, sides[1].result)
    contents = [*_contents(merge)]
    written = list({**sides[0].scope.after, **sides[1].scope.after})
    numbers = [merge.pair(s.scope.after.get(w, w.tensor) for s in sides) for w in written]
    for side in sides:
        side.builder.region.results = [side.builder.use(v).value for v in side.values]
    children = [s.builder for s in sides]
    outputs: list[Tensor] = []
    if sides[0].values or any(c.region.nodes for c in children):
        operands = [test, *builder.align_captures(children)]
        outputs = list(
            run_with_regions(control_flow.COND, operands, [c.region for c in children])
        )
    for storage, number in zip(written, numbers, strict=True):
        storage.write(outputs[number])
    found = result(outputs)
    for place, content in contents:
        place.set(content(outputs))
    return found


def _contents(merge: _Merge) -> Iterator[tuple[Any, Callable[[list[Tensor]], Any]]]:
    """The lists and dicts that a branch changes in place, each with what gives its content after
    the node."""
    first, second = (side.journal for side in merge.sides)
    for key, place in {**first.places, **second.places}.items():
        before = place.get()
        a, b = first.after.get(key, before), second.after.get(key, before)
        if is_left(a) or is_left(b):
            left = a if is_left(a) else b
            yield place, lambda _, left=left: left  # type: ignore[misc]
        elif not (_unchanged(before, a) and _unchanged(before, b)):
            _check_growth(merge, place, before, (a, b))
            nested = nest.is_nested(a) and nest.is_nested(b)
            yield place, merge.structure(a, b) if nested else merge.value(a, b)


def _check_growth(merge: _Merge, place: Any, before: Any, after: tuple[Any, Any]) -> None:
    """Raise `Grows` for a list that has another length after one branch than after the other."""
    if type(before) is not list or len(after[0]) == len(after[1]):
        return
    for side, content in zip(merge.sides, after, strict=True):
        with recording(side.builder):
            template = template_of(before, content)
        if template is not None:
            why = merge.mismatch(*after, "the lists have different lengths")
            raise Grows(place.owner, template, str(why))


def _unchanged(before: Any, after: Any) -> bool:
    """Whether a list or dict holds the same objects as before."""
    if not isinstance(before, list | dict):
        return before is after
    if type(before) is not type(after) or len(before) != len(after):
        return False
    if isinstance(before, dict):
        return all(k in after and after[k] is v for k, v in before.items())
    return all(a is b for a, b in zip(before, after, strict=True))


def raise_in_branch(test: Tensor, fail: Callable[[], None]) -> None:
    """The program raises what `fail()` raises where `test` is true."""
    side = _Branch(fail, (), raises=True)
    side.raise_unless(logical_not(test))


class _Merge:
    """Pairs up what two branches gave back."""

    def __init__(self, test: Tensor, then: _Branch, otherwise: _Branch) -> None:
        self.tests = test, logical_not(test)
        self.sides = then, otherwise
        self.arrays: list[_MergedArray] = []

    def pair(self, tensors: Any) -> int:
        numbers = [side.add(t) for side, t in zip(self.sides, tensors, strict=True)]
        return numbers[0]

    def value(self, a: Any, b: Any) -> Callable[[list[Tensor]], Any]:
        """A function from the node's outputs to the merged value."""
        if same(a, b):
            return lambda out: a
        a, b = (v.value if isinstance(v, PartlyDefined) else v for v in (a, b))
        if isinstance(a, Undefined) or isinstance(b, Undefined):
            return self.half_defined(a, b)
        if nest.is_nested(a) and nest.is_nested(b):
            return self.structure(*self.alike(a, b))
        first, second = self.sides[0].form_of(a), self.sides[1].form_of(b)
        if first is None or second is None:
            raise self.mismatch(a, b, "both must be arrays or numbers")
        try:
            form = joined(first, second)
        except NoForm as problem:
            raise self.mismatch(a, b, str(problem)) from None
        return self.formed(form, a, b)

    def formed(self, form: Form, a: Any, b: Any) -> Callable[[list[Tensor]], Any]:
        merged = _MergedArray(self, form, (a, b))
        if merged.twin is not None:
            return merged.twin
        merged.number = [side.add(v, form) for side, v in zip(self.sides, (a, b), strict=True)][0]
        if form.kind != ARRAY:
            return lambda out: form.value(out[merged.number])
        self.arrays.append(merged)
        return merged.made

    def alike(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Two structures, of which one that is Python's list becomes one of the graph where the
        other one is."""
        with recording(self.sides[0].builder):
            a = grown_like(a, b)
        with recording(self.sides[1].builder):
            return a, grown_like(b, a)

    def structure(self, a: Any, b: Any) -> Callable[[list[Tensor]], Any]:
        try:
            nest.assert_same_structure(a, b)
        except (TypeError, ValueError):
            return self.parts(a, b)
        parts = [self.value(x, y) for x, y in zip(nest.flatten(a), nest.flatten(b), strict=True)]
        return lambda out: nest.pack(a, [p(out) for p in parts])

    def parts(self, a: Any, b: Any) -> Callable[[list[Tensor]], Any]:
        """Two tuples or lists in which some part may have a value in one branch only."""
        if type(a) is not type(b) or type(a) not in (tuple, list) or len(a) != len(b):
            raise self.mismatch(a, b, "the structures differ")
        parts = [self.value(x, y) for x, y in zip(a, b, strict=True)]
        return lambda out: type(a)([p(out) for p in parts])

    def half_defined(self, a: Any, b: Any) -> Callable[[list[Tensor]], Any]:
        """A variable that one branch assigns: zeros on the other path, where Python has no value
        and correct programs do not read it."""
        missing, value = (a, b) if isinstance(a, Undefined) else (b, a)
        if nest.is_nested(value):
            parts = [
                self.half_defined(missing, v) if missing is a else self.half_defined(v, missing)
                for v in nest.flatten(value)
            ]
            return lambda out: nest.pack(value, [p(out) for p in parts])
        assigning = self.sides[1] if missing is a else self.sides[0]
        form = assigning.form_of(value)
        is_open = isinstance(value, Array) and assigning.elements(value).spec.symbols()
        if form is None or is_open:
            return lambda out: Undefined(missing.name)
        with recording(assigning.builder):
            given = assigning.elements(value) if isinstance(value, Array) else form.tensor(value)
            spec = given.spec
        blank = form.blank(spec)
        filler = form.value(blank)
        return self.formed(form, filler if missing is a else a, filler if missing is b else b)

    def mismatch(self, a: Any, b: Any, why: str) -> NotStaged:
        return NotStaged(
            "The branches of a conditional that depends on array values give a variable values "
            f"that one variable cannot hold: {a!r} and {b!r} ({why}){at(user_origin())}"
        )


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


class _MergedArray:
    """An array that is one thing after one branch and another after the other.

    Attributes:
        values: what each branch gave.
        options: the arrays that it may be, from outside of the branches or merged before this one,
            each with a bool or the number of an output; an array is given by a function.
        sources: storages of which it may be a part that cannot be told after the branches.
        covered: for each branch, whether its array is one of `options`.
        apart: arrays merged before with which it shares no elements.
        twin: gives the array where it is one that was merged before; None where it is not.
        array: the array after the node.
    """

    def __init__(self, merge: _Merge, form: Form, values: tuple[Any, Any]) -> None:
        self.merge, self.form, self.values = merge, form, values
        self.number = -1
        self.options: list[tuple[Tensor | int, Callable[[list[Tensor]], Array]]] = []
        self.sources: list[Callable[[], Storage]] = []
        self.covered = [False, False]
        self.apart: list[_MergedArray] = []
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
            known = self.merge.tests[side] if chosen is None else self.told(side, chosen)
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

    def compare(self, earlier: _MergedArray) -> None:
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
                test = self.merge.tests[side] if known is True else self.told(side, known)
                self.options.append((test, lambda out, v=suffix: earlier.array.viewed(*v)))  # type: ignore[misc]
                self.covered[side] |= known is True
            elif relation.same is not False or relation.shares:
                self.sources.append(lambda: earlier.array.storage)
        if all(relation.apart for relation in found):
            self.apart.append(earlier)

    def relation(self, side: int, earlier: _MergedArray) -> _Relation:
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

    def told(self, side: int, test: Tensor) -> int:
        """The number of an output that is a bool of one branch, and false on the other path."""
        false = convert_to_tensor(np.False_)
        return self.merge.pair((test, false) if side == 0 else (false, test))

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


# -- loops ---------------------------------------------------------------------------------------


class _Again(Exception):
    """The loop must be traced again with what was found out."""


class Loop:
    """A loop of the graph over a state of Python values.

    The loop carries the numbers and arrays among the state's leaves that the body replaces, and the
    storages that it writes. An array that is replaced by another variable's array (``p, pn = pn,
    p``) is carried with a number that tells which array it was before the loop: changes in place
    reach that array in the end.

    Args:
        test: ``test(state)`` gives whether to go on, a bool tensor or bool.
        body: ``body(state)`` gives the next state.
        state: the values before the loop.
        peels: whether the first iteration can be taken out where it is unlike the others.
        grows: whether lists that grow in the body become lists of the graph.
    """

    def __init__(
        self,
        test: Callable[[State], Any],
        body: Callable[[State], State],
        state: State,
        peels: bool = False,
        grows: bool = False,
    ) -> None:
        self.test, self.body, self.grows = test, body, grows
        self.growing: dict[int, Template] = {}  # variables whose lists are to be of the graph
        self.left: list[Any] = []  # the lists that they were
        self.state = state
        self.leaves = nest.flatten(state)
        self.structure = nest.map_structure(lambda _: None, state)
        self.rebound: set[int] = set()  # variables that become other lists or dicts
        self.forms = _forms_of_numbers(self.leaves)
        self.blanks: dict[int, Any] = {}  # for variables that have no value before the loop
        self.outside: Any = context.recorder
        self.home = scopes.innermost
        self.storages: list[Storage] = []
        self.replaced = Replaced(peels)

    def run(self) -> State:
        """Record the loop; gives the values after it.

        Raises:
            NotStaged: the variables do not keep their structure from one iteration to the next.
        """
        known = set(listed.storages)
        try:
            return self.settled()
        except Exception:
            listed.storages = known
            raise

    def settled(self) -> State:
        for _ in range(_MOST_TRACES):
            try:
                ended = self.record()
            except _Again:
                continue
            for values in self.left:
                leave(values)
            return ended
        raise NotStaged(f"the variables of a loop do not settle{at(user_origin())}")

    def make_grow(self) -> None:
        """Have lists be of the graph that the last trace found to grow."""
        state = list(self.state)
        for i, template in self.growing.items():
            self.left.append(state[i])
            state[i] = GrownList.of(state[i], template)
        self.growing = {}
        self.restart(tuple(state))

    def restart(self, state: State) -> None:
        """Begin again with other variables before the loop."""
        self.state, self.leaves = state, nest.flatten(state)
        self.structure = nest.map_structure(lambda _: None, state)
        self.forms, self.blanks = _forms_of_numbers(self.leaves), {}

    def record(self) -> State:
        if self.growing:
            self.make_grow()
        numbers = sorted(self.forms)
        arrays = [i for i in numbers if self.forms[i].kind == ARRAY]
        self.replaced.begin({i: self.blanks.get(i, self.leaves[i]) for i in arrays})
        start = [self.start(i) for i in numbers] + [s.held for s in self.storages]
        start += self.replaced.start()
        results = control_flow.staged_loop(
            lambda *flat: self.traced_test(numbers, flat),
            lambda *flat: self.traced_body(numbers, flat),
            tuple(start),
            widen=True,
        )
        values = dict(zip(numbers, results, strict=False))
        rest = results[len(numbers) :]
        for storage, tensor in zip(self.storages, rest, strict=False):
            storage.write(tensor)
        leaves = list(self.leaves)
        for i, tensor in values.items():
            leaves[i] = self.forms[i].value(tensor)
        leaves = self.replaced.end(leaves, rest[len(self.storages) :])
        return self.packed(leaves)

    def packed(self, leaves: list[Any]) -> State:
        """The variables with these leaves. Lists and dicts that keep their identity in the body are
        those from before the loop, which other variables may name too."""
        made = nest.pack(self.structure, leaves)
        return tuple(
            new if i in self.rebound else _poured(old, new)
            for i, (old, new) in enumerate(zip(self.state, made, strict=True))
        )

    def start(self, number: int) -> Tensor:
        leaf = self.blanks.get(number, self.leaves[number])
        return self.forms[number].tensor(leaf)

    def inside(self, numbers: Sequence[int], flat: Sequence[Any]) -> State:
        """The state that the user's code sees in an iteration; storages hold what is carried."""
        rest = flat[len(numbers) :]
        for storage, tensor in zip(self.storages, rest, strict=False):
            storage.put_back(tensor)
        values = list(self.leaves)
        for i, tensor in zip(numbers, flat, strict=False):
            values[i] = self.forms[i].value(tensor)
        self.replaced.enter(values, rest[len(self.storages) :])
        return self.packed(values)

    def note_changes(self) -> None:
        """The carried storages are others in an iteration: scopes put them back."""
        for storage in self.storages:
            storage.note_change()

    def traced_test(self, numbers: list[int], flat: Sequence[Any]) -> Any:
        with changes(self.state), scope():
            self.note_changes()
            return self.test(self.inside(numbers, flat))

    def traced_body(self, numbers: list[int], flat: Sequence[Any]) -> Any:
        with changes(self.state), scope() as found:
            self.note_changes()
            before = self.inside(numbers, flat)
            begun = nest.flatten(before)
            after = self.body(before)
            after = tuple(grown_like(x, y) for x, y in zip(after, before, strict=True))
            self.settle(before, begun, after, found)
            leaves = nest.flatten(after)
            given = [self.forms[i].tensor(leaves[i]) for i in numbers]
            return (*given, *(s.tensor for s in self.storages), *self.replaced.leave(leaves))

    def settle(self, state: State, before: list[Any], after: State, found: Scope) -> None:
        """See whether the next iteration begins as this one did.

        Args:
            state, before: the variables and their leaves at the begin of the iteration.

        Raises:
            _Again: not yet; what is to be carried is noted.
            NotStaged: it never will.
        """
        try:
            nest.assert_same_structure(self.structure, nest.map_structure(lambda _: None, after))
        except (TypeError, ValueError) as error:
            self.open_undefined(after)
            self.note_growth(after)
            raise NotStaged(f"{error}{at(user_origin())}") from None
        leaves = nest.flatten(after)
        rebound = {i for i, (a, b) in enumerate(zip(state, after, strict=True)) if _differ(a, b)}
        changed = not rebound <= self.rebound
        self.rebound |= rebound
        for i, (old, new) in enumerate(zip(before, leaves, strict=True)):
            changed |= self.settle_leaf(i, old, new)
        written = [s for s in found.before if s not in self.storages]
        if changed:  # what variables are before the loop was written by their own names: see again
            arrays = [self.leaves[i] for i, form in self.forms.items() if form.kind == ARRAY]
            own = {s for a in arrays if isinstance(a, Array) for s in reach(a)}
            written = [s for s in written if s not in own]
        self.storages += written
        if not changed and not written:
            changed = self.replaced.settle(leaves, found, self.storages)
            for storage in self.replaced.followed_storages():
                if storage not in self.storages:
                    self.storages.append(storage)
        if changed or written:
            raise _Again

    def open_undefined(self, after: State) -> None:
        """Have a variable that has no value before the loop be as many as the body gives it.

        Raises:
            _Again: there is one that the body gives a tuple or another structure.
        """
        state = _with_structure(nest.pack(self.structure, self.leaves), after)
        leaves = nest.flatten(state)
        if len(leaves) > len(self.leaves):
            self.restart(state)
            self.rebound = set(range(len(state)))
            raise _Again

    def note_growth(self, after: State) -> None:
        """Have variables be lists of the graph whose lists the body makes longer or shorter.

        Raises:
            _Again: there is one.
        """
        if not self.grows:
            return
        for i, (old, new) in enumerate(
            zip(nest.pack(self.structure, self.leaves), after, strict=True)
        ):
            template = template_of(old, new)
            if template is not None:
                self.growing[i] = template
        if self.growing:
            raise _Again

    def settle_leaf(self, number: int, old: Any, new: Any) -> bool:
        """Whether a variable needs another form than it has."""
        new = new.value if isinstance(new, PartlyDefined) else new
        form = self.forms.get(number)
        if form is None and same(old, new):
            return False
        found = form_of(new)
        if found is None:
            raise NotStaged(
                f"A variable is {old!r} before an iteration of a loop in the graph and {new!r} "
                f"after it{at(user_origin())}"
            )
        if isinstance(old, Undefined) and form is None:
            # Zeros, which no program reads, of the shape that the body gives.
            self.forms[number], spec = found, found.tensor(new).spec
            with recording(self.outside):
                blank = found.value(found.blank(spec))
            if isinstance(blank, Array):
                blank.storage.home = self.home
            self.blanks[number] = blank
            return True
        try:
            wanted = joined(form or self.form_before(old), found)
        except NoForm as problem:
            raise NotStaged(f"A variable is {problem}{at(user_origin())}") from None
        self.forms[number] = wanted
        return wanted != form

    def form_before(self, old: Any) -> Form:
        form = form_of(old)
        if form is None:
            raise NotStaged(
                f"A variable begins as {old!r} and becomes a number or array in a loop in the "
                f"graph{at(user_origin())}"
            )
        return form


def _poured(old: Any, new: Any) -> Any:
    """`new`, where lists and dicts are those of `old`, which hold the new values."""
    if type(old) is not type(new) or type(old) not in (list, dict, tuple):
        return new
    if type(old) is dict:
        for key, value in new.items():
            old[key] = _poured(old[key], value)
        return old
    if len(old) != len(new):
        return new
    parts = [_poured(x, y) for x, y in zip(old, new, strict=True)]
    if type(old) is tuple:
        return tuple(parts)
    old[:] = parts
    return old


def _differ(a: Any, b: Any) -> bool:
    """Whether two values of one structure are not the same lists and dicts."""
    if type(a) in (list, dict):
        return a is not b
    if type(a) is tuple and type(b) is tuple:
        return any(_differ(x, y) for x, y in zip(a, b, strict=False))
    return False


def _forms_of_numbers(leaves: Sequence[Any]) -> dict[int, Form]:
    forms = {i: form_of(leaf) for i, leaf in enumerate(leaves) if not isinstance(leaf, Array)}
    return {i: form for i, form in forms.items() if form is not None}


def _with_structure(before: Any, after: Any) -> Any:
    """The values before a loop, where one that is undefined is as many as it becomes."""
    if isinstance(before, Undefined) and nest.is_nested(after):
        return nest.pack(after, [before] * len(nest.flatten(after)))
    if type(before) is type(after) and type(before) in (tuple, list) and len(before) == len(after):
        return type(before)([_with_structure(x, y) for x, y in zip(before, after, strict=True)])
    return before


_MOST_TRACES = 12
