"""Branches of a jitted function in the graph.

Tracing a branch shows its changes: the variables that it gives back, the storages of arrays that it
writes, also through views and in functions that it calls, and the lists and dicts that it changes.
The ``cond`` node gives all of these, merged.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

from treadle.autograph.operators.journal import changes
from treadle.autograph.operators.places import content_place
from treadle.autograph.operators.undefined import RETURN_VALUE, PartlyDefined, Undefined
from treadle.core import nest
from treadle.core.context import context, recording, taping
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted.aliases import both, either
from treadle.jitted.arrays import Array
from treadle.jitted.becoming import Grows
from treadle.jitted.chosen_lists import (
    KINDS,
    ChosenItems,
    FrozenItems,
    Option,
    holders_in,
    keys_of,
)
from treadle.jitted.chosen_texts import is_text, number_of, options_of, text_of
from treadle.jitted.errors import NoForm, NotReached, NotStaged
from treadle.jitted.forms import ARRAY, Form, form_of, joined, same
from treadle.jitted.grown_lists import (
    GrownList,
    Template,
    grown_like,
    template_of,
)
from treadle.jitted.left import is_left
from treadle.jitted.merged_arrays import MergedArray
from treadle.jitted.optional_values import MaybeNone, maybe_none, taking
from treadle.jitted.run_texts import RunText, is_any_text
from treadle.jitted.run_texts import like as text_like
from treadle.jitted.storage import Scope, scope
from treadle.ops.control import control_flow
from treadle.ops.control.marks import marks
from treadle.ops.control.raising import (
    Raised,
    is_raise_statement,
    is_raised_by_user,
    raise_unless,
)
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.logic import logical_not
from treadle.ops.registry import run_with_regions

Made = Callable[[list[Tensor]], Any]  # from a node's outputs to a value after it


class Branch:
    """One traced branch: its region, its results, and the storages that it wrote.

    Attributes:
        held: by id, the elements of the arrays in the result at the end of the branch.
        chosen: by id, the items of the `ChosenItems` in the result at the end of the branch.
        raised: the exception that a ``raise`` of the branch ends it with.
        is_reached: whether a program may take the branch.
    """

    raised: Raised | None = None
    is_reached = True

    def __init__(self, run: Callable[[], Any], state: Any, raises: bool = False) -> None:
        builder: Any = context.recorder

        def body() -> list[Any]:
            with taping(()), marks() as shown:
                try:
                    self.result = run()
                except NotReached:
                    self.is_reached = False
                    return []
                except Exception as error:
                    if not raises and not is_raised_by_user(error, "treadle.jitted.function"):
                        if is_raise_statement(error):
                            raise _in_try(error) from error
                        raise
                    self.raised = Raised(error, shown)
                    return []
                contents = [place.get() for place in self.journal.places.values()]
                self.held = {id(a): a.tensor for a in _arrays([self.result, contents])}
                self.chosen = {
                    id(c): c.get() for c in _leaves([self.result, contents])
                    if isinstance(c, ChosenItems)
                }  # fmt: skip
            return []

        self.scope = Scope()
        with changes(state) as self.journal, scope() as self.scope:
            self.builder = builder.trace_region(body, [])
        self.values: list[Tensor] = []

    def items(self, value: Any) -> Any:
        """The items of a list or dict of the result at the end of the branch."""
        if id(value) in self.chosen:
            return self.chosen[id(value)]
        place = content_place(value)
        return value if place is None else self.journal.after.get(place.identity, value)

    def elements(self, array: Array) -> Tensor:
        """The elements of an array of the result at the end of the branch."""
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


def _in_try(error: Exception) -> NotStaged:
    return NotStaged(
        f"{type(error).__name__} is raised under a condition that only the run knows, in a try "
        f"statement that would catch it: keep in a variable what happened, and ask it"
        f"{at(user_origin())}"
    )


def _arrays(result: Any) -> Iterator[Array]:
    """The arrays among the results of a branch, with the elements that they have at its end."""
    return (leaf for leaf in _leaves(result) if isinstance(leaf, Array))


def _leaves(result: Any) -> Iterator[Any]:
    for leaf in nest.flatten(result):
        if isinstance(leaf, PartlyDefined):
            yield from _leaves(leaf.value)
        else:
            yield leaf


def branch(
    test: Tensor, then: Callable[[], Any], otherwise: Callable[[], Any], state: Any,
    named: Callable[[], Iterable[Any]] = list,
) -> Any:  # fmt: skip
    """The result of ``then()`` or ``otherwise()``, by a bool of the graph, as a ``cond`` node.

    Args:
        state: the variables of the branches.
        named: gives the lists and dicts that they find by name.
    """
    builder: Any = context.recorder
    state = (*state, *holders_in(state))
    with taking(test, True):
        first = Branch(then, state)
    if not first.is_reached:
        return otherwise()
    if first.raised is not None:
        first.raise_unless(logical_not(test))
        return otherwise()
    with taking(test, False):
        second = Branch(otherwise, state)
    if not second.is_reached:
        return then()
    if second.raised is not None:
        second.raise_unless(test)
        return then()
    sides = first, second
    merge = Merge(test, *sides, lambda: {id(h) for h in holders_in([*state, *named()])})
    _check_growth(merge)
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


def _contents(merge: Merge) -> Iterator[tuple[Any, Made]]:
    """The tensors of lists and dicts that a branch changes in place, each with the function that
    puts the merged tensors into it after the node."""
    first, second = (side.journal for side in merge.sides)
    for key, place in {**first.places, **second.places}.items():
        before = place.get()
        a, b = first.after.get(key, before), second.after.get(key, before)
        if is_left(a) or is_left(b):
            left = a if is_left(a) else b
            yield place, lambda _, left=left: left  # type: ignore[misc]
        elif not (_unchanged(before, a) and _unchanged(before, b)):
            is_plain = type(a) is type(b) and type(a) in KINDS
            yield place, merge.contents(a, b) if is_plain else merge.value(a, b)


def _check_growth(merge: Merge) -> None:
    """Raise `Grows` for a list that has another length after one branch than after the other."""
    first, second = (side.journal for side in merge.sides)
    for key, place in {**first.places, **second.places}.items():
        before = place.get()
        a, b = (journal.after.get(key, before) for journal in (first, second))
        if type(before) is not list or len(a) == len(b) or is_left(a) or is_left(b):
            continue
        for side, content in zip(merge.sides, (a, b), strict=True):
            with recording(side.builder):
                template = template_of(before, content)
            if template is not None:
                why = merge.mismatch(a, b, "the lists have different lengths")
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
    """The program raises the exception of `fail()` where `test` is true."""
    side = Branch(fail, (), raises=True)
    side.raise_unless(logical_not(test))


class Merge:
    """Pairs up the results of two branches.

    Args:
        outside: gives the ids of the lists and dicts that were there before the branches.

    Attributes:
        fresh: for each branch, by the id of a list or dict that it has made, what it becomes.
    """

    def __init__(
        self, test: Tensor, then: Branch, otherwise: Branch, outside: Callable[[], set[int]]
    ) -> None:
        self.tests = test, logical_not(test)
        self.sides = then, otherwise
        self.arrays: list[MergedArray] = []
        self.outside = cache(outside)
        self.fresh: tuple[dict[int, Made], dict[int, Made]] = {}, {}
        self.lists: dict[tuple[int, int], Made] = {}

    def pair(self, tensors: Any) -> int:
        numbers = [side.add(t) for side, t in zip(self.sides, tensors, strict=True)]
        return numbers[0]

    def told(self, side: int, test: Tensor) -> int:
        """The number of an output that is a bool of one branch, and false on the other path."""
        false = convert_to_tensor(np.False_)
        return self.pair((test, false) if side == 0 else (false, test))

    def value(self, a: Any, b: Any) -> Made:
        """A function from the node's outputs to the merged value."""
        if a is b:
            return lambda out: a
        if isinstance(a, ChosenItems) or isinstance(b, ChosenItems) or _are_items(a, b):
            return self.items(a, b)
        if type(a) is not set and not nest.is_nested(a) and same(a, b):
            return lambda out: a
        if is_text(a) and is_text(b):
            return self.text(a, b)
        if is_any_text(a) and is_any_text(b):
            return self.run_text(a, b)
        a, b = (v.value if isinstance(v, PartlyDefined) else v for v in (a, b))
        if isinstance(a, Undefined) or isinstance(b, Undefined):
            return self.half_defined(a, b)
        if a is None or b is None or isinstance(a, MaybeNone) or isinstance(b, MaybeNone):
            return self.maybe_none(a, b)
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

    def formed(self, form: Form, a: Any, b: Any) -> Made:
        merged = MergedArray(self, form, (a, b))
        if merged.twin is not None:
            return merged.twin
        merged.number = [side.add(v, form) for side, v in zip(self.sides, (a, b), strict=True)][0]
        if form.kind != ARRAY:
            return lambda out: form.value(out[merged.number])
        self.arrays.append(merged)
        return merged.made

    def alike(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Two structures. Where one has a list of the graph, a list of Python's in the other
        becomes one, too."""
        with recording(self.sides[0].builder):
            a = grown_like(a, b)
        with recording(self.sides[1].builder):
            return a, grown_like(b, a)

    def text(self, a: Any, b: Any) -> Made:
        options, numbers = options_of(a, b), []
        for side, value in zip(self.sides, (a, b), strict=True):
            with recording(side.builder):
                numbers.append(number_of(value, options))
        number = self.pair(numbers)
        return lambda out: text_of(out[number], options)

    def run_text(self, a: Any, b: Any) -> Made:
        """Two texts, of which one is one of the run."""
        made = []
        for side, value, other in ((0, a, b), (1, b, a)):
            with recording(self.sides[side].builder):
                made.append(text_like(value, other))
        if type(made[0]) is not type(made[1]):
            return self.run_text(*made)
        return self.structure(*made)

    def structure(self, a: Any, b: Any) -> Made:
        if type(a) is tuple and type(b) is tuple and len(a) == len(b):
            # Each for itself: a list that both sides name is the one that they change in place.
            return self.parts(a, b)
        try:
            nest.assert_same_structure(a, b)
        except (TypeError, ValueError):
            return self.parts(a, b)
        parts = [self.value(x, y) for x, y in zip(nest.flatten(a), nest.flatten(b), strict=True)]
        return lambda out: nest.pack(a, [p(out) for p in parts])

    def items(self, a: Any, b: Any) -> Made:
        """A list or dict that is one object after one branch and another after the other."""
        if (id(a), id(b)) in self.lists:
            return self.lists[id(a), id(b)]
        first, second = (s.items(v) for s, v in zip(self.sides, (a, b), strict=True))
        if not _are_items(first, second) or keys_of(first) != keys_of(second):
            grown = self.grown(a, b, first, second)
            if grown is None:
                raise self.mismatch(a, b, "the structures differ")
            return grown
        found: list[tuple[Any, Made]] = []
        merged = _once(lambda out: _one_of(found, None if own is None else own(out), out))
        self.lists[id(a), id(b)] = merged
        is_known = [self.options(side, v, found, merged) for side, v in enumerate((a, b))]
        own = None if all(is_known) else self.contents(first, second)
        return merged

    def grown(self, a: Any, b: Any, first: Any, second: Any) -> Made | None:
        """A list that has another length after one branch than after the other, as one of the
        graph: a copy, to be read. None where there is none."""
        if type(first) is not list or type(second) is not list:
            return None
        contents = first, second
        forms: list[Template] = []
        try:
            for side, content in zip(self.sides, contents, strict=True):
                with recording(side.builder):
                    forms += map(Template, content)
        except NotStaged:
            return None
        template = functools.reduce(Template.joined, forms)
        made = []
        for side, content in zip(self.sides, contents, strict=True):
            with recording(side.builder):
                made.append(GrownList.of(content, template))
        merged = self.structure(*made)
        sources = [h for h in holders_in((a, b)) if id(h) in self.outside()]

        def copied(out: list[Tensor]) -> Any:
            found = merged(out)
            others = [fresh[id(v)](out) for fresh, v in zip(self.fresh, (a, b), strict=True)
                      if id(v) in fresh]  # fmt: skip
            found.is_copy_of([*sources, *others])
            return found

        self.lists[id(a), id(b)] = made_once = _once(copied)
        return made_once

    def options(self, side: int, value: Any, found: list[tuple[Any, Made]], merged: Made) -> bool:
        """Whether a list or dict of a branch is one from before the branches, or one that was
        merged before this one, which is told with the bool that says so."""
        if isinstance(value, FrozenItems):
            raise value.refusal("a branch has it in place of another one")
        if isinstance(value, ChosenItems):
            outside = [o for o in value.options if id(o.items) in self.outside()]
            with recording(self.sides[side].builder):
                tests = [convert_to_tensor(o.chosen) for o in outside]
            found += [
                (self.told(side, t), lambda out, o=o: o.items)  # type: ignore[misc]
                for t, o in zip(tests, outside, strict=True)
            ]
            return len(outside) == len(value.options)
        known = self.fresh[side].setdefault(id(value), merged)
        if id(value) in self.outside():
            known = lambda out: value
        if known is not merged:
            found.append((self.tests[side], known))
        return known is not merged

    def contents(self, a: Any, b: Any) -> Made:
        """The items of two lists or dicts."""
        if keys_of(a) != keys_of(b):
            raise self.mismatch(a, b, "the structures differ")
        parts = [self.value(a[key], b[key]) for key in keys_of(a)]
        if isinstance(a, dict):
            return lambda out: dict(zip(a, [p(out) for p in parts], strict=True))
        return lambda out: [p(out) for p in parts]

    def parts(self, a: Any, b: Any) -> Made:
        """Two tuples or lists in which some part may have a value in one branch only."""
        if type(a) is not type(b) or type(a) not in (tuple, list) or len(a) != len(b):
            raise self.mismatch(a, b, "the structures differ")
        parts = [self.value(x, y) for x, y in zip(a, b, strict=True)]
        return lambda out: type(a)([p(out) for p in parts])

    def maybe_none(self, a: Any, b: Any) -> Made:
        """A variable that is None, or may be, after one of the branches."""
        first, second = map(maybe_none, (a, b))
        if first.value is second.value and isinstance(first.value, Undefined):
            raise self.mismatch(a, b, "there is no value in either")
        present = self.value(first.present, second.present)
        value = self.value(first.value, second.value)

        def made(out: list[Tensor]) -> MaybeNone:
            found = value(out)
            if any(isinstance(leaf, Undefined) for leaf in nest.flatten(found)):
                raise self.mismatch(a, b, "the value is no number and no array of a known shape")
            return MaybeNone(present(out), found)

        return made

    def half_defined(self, a: Any, b: Any) -> Made:
        """A variable that one branch assigns: zeros on the other path, where Python has no value
        and correct programs do not read it."""
        missing, value = (a, b) if isinstance(a, Undefined) else (b, a)
        if value is None and missing.name == RETURN_VALUE:
            return lambda out: None  # a `return` that has not happened is not asked for its value
        if type(value) is str or (type(value) in KINDS and id(value) in self.outside()):
            return lambda out: value
        if isinstance(value, RunText):
            return self.run_text("" if missing is a else a, "" if missing is b else b)
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


def _once(make: Made) -> Made:
    """A value after the node that several variables have."""
    made: list[Any] = []

    def call(out: list[Tensor]) -> Any:
        if not made:
            made.append(make(out))
        return made[0]

    return call


def _are_items(a: Any, b: Any) -> bool:
    return type(a) is type(b) and type(a) in KINDS


def _one_of(found: list[tuple[Any, Made]], own: Any, out: list[Tensor]) -> Any:
    """A list or dict that is one of several.

    Args:
        found: those from before the branches, each with a bool or the number of an output.
        own: the items where it is none of these; None: it is one in any case.
    """
    options: dict[int, Option] = {}
    for told, holder in found:
        test, items = out[told] if isinstance(told, int) else told, holder(out)
        inner = items.options if isinstance(items, ChosenItems) else [Option(True, items)]
        for chosen, one in inner:
            known = options.get(id(one), Option(False, one)).chosen
            options[id(one)] = Option(either(known, both(test, chosen)), one)
    every = [*options.values(), *([] if own is None else [Option(True, own)])]
    return every[0].items if len(every) == 1 else ChosenItems(every, chosen_item)


def chosen_item(test: Any, a: Any, b: Any) -> Any:
    """``a if test else b``."""
    if not isinstance(test, Tensor):
        return a if test else b
    return branch(test, lambda: a, lambda: b, (), lambda: [a, b])
