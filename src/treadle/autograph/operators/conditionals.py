"""if statements and conditional expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.autograph.errors import StagingError, StagingTypeError, StagingValueError
from treadle.autograph.operators.handlers import raised_under
from treadle.autograph.operators.journal import changes
from treadle.autograph.operators.lists import (
    Left,
    UnknownElementsError,
    element_type,
    has_left,
    is_plain_list,
    learn,
    plain,
)
from treadle.autograph.operators.places import (
    MISSING,
    DictContent,
    GraphListContent,
    ListContent,
)
from treadle.autograph.operators.undefined import (
    RETURN_VALUE,
    PartlyDefined,
    Undefined,
    assigned_flag,
    completed,
    with_flag,
)
from treadle.autograph.operators.values import (
    describe,
    filler,
    holds_tensors,
    is_number,
    is_staged,
    is_tensor_like,
    same,
    target_names,
    truth,
)
from treadle.core import nest
from treadle.core.context import context, recording, taping
from treadle.core.origin import at, user_origin
from treadle.core.spec import ListSpec
from treadle.core.tensor import Tensor
from treadle.ops.collections.graph_list import GraphList, graph_list, template_of
from treadle.ops.control.control_flow import COND
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.known_values import known_truth
from treadle.ops.numbers.python_numbers import is_symbolic_number, kind_of, select
from treadle.ops.registry import run_with_regions
from treadle.ops.shaping.unknown_rank import of_parts, parts_of


def if_stmt(
    test: Any,
    then: Callable[..., Any],
    otherwise: Callable[..., Any],
    *state: Any,
    places: Sequence[Any] = (),
    filled: bool = False,
) -> Any:
    """``then(*state)`` or ``otherwise(*state)``; both are traced where `test` is symbolic.

    Args:
        test: the condition.
        then, otherwise: the branches; they return the variables that are read afterwards.
        state: the variables that a branch both reads and assigns.
        places: attributes and items that a branch assigns.
        filled: a variable that only one branch assigns may be read, which the run then checks.

    Raises:
        StagingTypeError: a variable has different types in the branches.
    """
    if not is_staged(test):
        return then(*state) if test else otherwise(*state)
    known = known_truth(test)
    if known is not None:
        return then(*state) if known else otherwise(*state)
    places = [p for p in places if p is not None]
    branches = (lambda: then(*state)), (lambda: otherwise(*state))
    return staged_if(test, *branches, places, target_names, state, filled)


def if_exp(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """``then() if test else otherwise()``."""
    if not is_staged(test):
        return then() if test else otherwise()
    known = known_truth(test)
    if known is not None:
        return then() if known else otherwise()
    return staged_if(test, then, otherwise, (), lambda: ["the conditional expression"])


class _Branch:
    """One traced branch: its region's builder and its result."""

    def __init__(
        self, builder: Any, fn: Callable[[], Any], places: Sequence[Any], state: Sequence[Any]
    ) -> None:
        before = [p.get() for p in places]

        def run() -> list[Any]:
            with taping(()):  # outer tapes see the whole node, not its inner nodes
                self.result = fn()
            return []

        try:
            with changes(state) as self.journal, raised_under("a branch on a tensor"):
                self.builder = builder.trace_region(run, [])
                self.placed = [p.get() for p in places]
        finally:
            for place, value in zip(places, before, strict=True):
                place.set(value)
        self.values: list[Any] = []

    def tensor(self, value: Any, dtype: Any = None) -> Tensor:
        """`value` as a tensor of this branch's region."""
        with recording(self.builder):
            return convert_to_tensor(value, dtype)

    def parts(self, tensor: Tensor) -> tuple[Tensor, Tensor]:
        """The elements and the shape of a tensor, in this branch's region."""
        with recording(self.builder):
            return parts_of(tensor)


class _Merge:
    """Pairs up the results of two branches, variable by variable."""

    def __init__(
        self,
        then: _Branch,
        otherwise: _Branch,
        names: Callable[[], list[str]],
        filled: bool,
        number: Any = None,
    ) -> None:
        """`number`: the condition, where it is a Python bool that only the running program knows.
        Python would run one branch alone, so values must not take a dtype or type from the other
        one."""
        self.then, self.otherwise = then, otherwise
        self.number = number
        self.names = names
        self.filled = filled
        # Lists that grow in a branch -> the function that gives the list of the graph for them.
        self.grown: dict[int, Callable[[list[Any]], Any]] = {}

    def results(self) -> Any:
        a, b = self.then.result, self.otherwise.result
        # One variable that is a named tuple is no tuple of several variables.
        if type(a) is type(b) is tuple and len(a) == len(b):
            parts = [self.value(x, y, i) for i, (x, y) in enumerate(zip(a, b, strict=True))]
            return lambda out: tuple(p(out) for p in parts)
        return self.value(a, b, 0)

    def placed(self) -> list[Any]:
        pairs = zip(self.then.placed, self.otherwise.placed, strict=True)
        return [self.value(a, b, -1) for a, b in pairs]

    def changed(self) -> list[tuple[Any, Callable[[list[Any]], Any]]]:
        """The places inside objects that a branch changes, with functions for merged values."""
        journals = self.then.journal, self.otherwise.journal
        found: list[tuple[Any, Callable[[list[Any]], Any]]] = []
        for key, place in {**journals[0].places, **journals[1].places}.items():
            a, b = (j.after[key] if key in j.after else place.get() for j in journals)
            if self.number is not None:
                self.number.leave_open("a condition on which objects are changed")
            if isinstance(place, DictContent):
                names = list({**a, **b})
                slots = [self.value(a.get(n, MISSING), b.get(n, MISSING), -1) for n in names]
                found.append((place, _dict_of(names, slots)))
            elif isinstance(place, ListContent) and (has_left(a) or has_left(b)):
                found.append((place, lambda out: [Left()]))
            elif isinstance(place, ListContent) and len(a) != len(b):
                self.grown[id(place.owner)] = self.graph_list(a, b, place.owner)
                found.append((place, lambda out: [Left()]))
            elif isinstance(place, GraphListContent):
                found.append((place, self.graph_list(a, b)))
            else:
                found.append((place, self.value(a, b, -1)))
        return found

    def graph_list(self, a: Any, b: Any, old: Any = None) -> Callable[[list[Any]], Any]:
        """Lists of different lengths, as one list of the graph."""
        known = [x.template for x in (a, b) if isinstance(x, GraphList) and x.template is not None]
        values = [v for x in (a, b) if not isinstance(x, GraphList) for v in x]
        template = known[0] if known else element_type(old if old is not None else a)
        if template is None and values:
            template = template_of(values)
        sides = []
        for branch, values in ((self.then, a), (self.otherwise, b)):
            with recording(branch.builder):
                sides.append(_in_graph(values, template).parts)
        parts = [self.pair(x, y) for x, y in zip(*sides, strict=True)]
        made: list[GraphList] = []

        def result(out: list[Any]) -> GraphList:
            if not made:
                made.append(GraphList(template, [p(out) for p in parts]))
            return made[0]

        return result

    def value(self, a: Any, b: Any, index: int) -> Any:
        """A function from the node's outputs to the variable's value."""
        if a is b and id(a) in self.grown:
            return self.grown[id(a)]
        if self.number is not None and not same(a, b) and not self.is_half_defined(a, b):
            found = self.chosen(a, b)
            if found is not None:
                return found
        if _is_list(a) and _is_list(b) and a is not b:
            a, b = plain(self.then.journal.content(a)), plain(self.otherwise.journal.content(b))
            if isinstance(a, GraphList) or isinstance(b, GraphList) or len(a) != len(b):
                return self.graph_list(a, b)
        if isinstance(a, Undefined) or isinstance(b, Undefined):
            return self.half_defined(a, b)
        if same(a, b):
            return lambda out: a
        if nest.is_nested(a) or nest.is_nested(b):
            return self.structure(a, b, index)
        if is_tensor_like(a) and is_tensor_like(b):
            return self.tensors(a, b, index)
        raise self.mismatch(a, b, index)

    def is_half_defined(self, a: Any, b: Any) -> bool:
        """Whether only one of the values is there, and is no number."""
        values = [v for v in (a, b) if not isinstance(v, Undefined)]
        return len(values) < 2 and not any(map(is_number, values))

    def chosen(self, a: Any, b: Any) -> Any:
        """Of values that differ where the condition is a number: numbers of one type stay numbers,
        tensors of one spec are merged as always (None is returned)."""
        numbers = [is_number(v) and not isinstance(v, np.ndarray) for v in (a, b)]
        if all(numbers) and kind_of(a) is kind_of(b):
            made = select(self.number, a, b)
            return lambda out: made
        alike = isinstance(a, Tensor) and isinstance(b, Tensor) and a.spec is b.spec
        if not alike and not (nest.is_nested(a) and type(a) is type(b) is tuple):
            for number in (*filter(is_symbolic_number, (a, b)), self.number):
                number.leave_open("a condition that decides about the type of a value")
        return None

    def half_defined(self, a: Any, b: Any) -> Any:
        a, b = completed(a), completed(b)
        if not isinstance(a, Undefined) and not isinstance(b, Undefined):
            return self.value(a, b, -1)
        if isinstance(a, Undefined) and isinstance(b, Undefined):
            return lambda out: a
        missing, value = (a, b) if isinstance(a, Undefined) else (b, a)
        guarded = isinstance(missing, Placeholder) or missing.name == RETURN_VALUE
        if guarded and holds_tensors(value):  # only read where a flag says that it is set
            return self.filled_up(a, b)
        side = "true" if missing is b else "false"
        why = f": it is assigned only when the condition of the `if` is {side}{at(user_origin())}"
        if not _fits_any_region(value):
            return lambda out: Undefined(missing.name, why)
        slot, flags = self.filled_up(a, b), [_flag_of(v) for v in (a, b)]
        assigned = self.pair(*flags)

        def result(out: list[Any]) -> Any:
            found = slot(out)
            for leaf in nest.flatten(found):
                with_flag(leaf, assigned(out), missing.name)
            return found if self.filled else PartlyDefined(missing.name, why, found)

        return result

    def filled_up(self, a: Any, b: Any) -> Any:
        """As `value`, with zeros for the one that is missing."""
        missing, value = (a, b) if isinstance(a, Undefined) else (b, a)
        branches = (self.otherwise, self.then) if missing is a else (self.then, self.otherwise)
        filler = nest.map_structure(lambda x: _zeros(branches[1], branches[0].tensor(x)), value)
        return self.value(filler, b, -1) if missing is a else self.value(a, filler, -1)

    def structure(self, a: Any, b: Any, index: int) -> Any:
        try:
            nest.assert_same_structure(a, b)
        except (TypeError, ValueError):
            raise self.mismatch(a, b, index) from None
        pairs = zip(nest.flatten(a), nest.flatten(b), strict=True)
        parts = [self.value(x, y, index) for x, y in pairs]
        return lambda out: nest.pack(a, [p(out) for p in parts])

    def tensors(self, a: Any, b: Any, index: int) -> Any:
        if is_number(a) != is_number(b):  # a number takes the dtype of the other branch's tensor
            try:
                if is_number(a):
                    a = self.then.tensor(a, b.dtype)
                else:
                    b = self.otherwise.tensor(b, a.dtype)
            except (TypeError, ValueError):
                raise self.mismatch(a, b, index) from None
        left: Any = self.then.tensor(a)
        right: Any = self.otherwise.tensor(b)
        lists = isinstance(left.spec, ListSpec) and isinstance(right.spec, ListSpec)
        if left.dtype is not right.dtype:
            raise self.mismatch(left, right, index)
        if not lists and left.shape.rank != right.shape.rank or left.shape.rank is None:
            return self.of_any_rank(left, right)
        merged = self.pair(left, right)
        names = [x.assigned[1] for x in (left, right) if assigned_flag(x) is not None]
        if not names:
            return merged
        flags = (assigned_flag(x) for x in (left, right))
        assigned = self.pair(*(True if flag is None else flag for flag in flags))
        return lambda out: with_flag(merged(out), assigned(out), names[0])

    def of_any_rank(self, left: Tensor, right: Tensor) -> Any:
        """A tensor of unknown rank, from tensors of several ranks or of unknown ones."""
        parts = zip(self.then.parts(left), self.otherwise.parts(right), strict=True)
        elements, extents = [self.pair(a, b) for a, b in parts]
        return lambda out: of_parts(elements(out), extents(out))

    def pair(self, left: Any, right: Any) -> Any:
        number = len(self.then.values)
        self.then.values.append(self.then.tensor(left))
        self.otherwise.values.append(self.otherwise.tensor(right))
        return lambda out: out[number]

    def mismatch(self, a: Any, b: Any, index: int) -> StagingError:
        names = self.names()
        name = names[index] if -1 < index < len(names) else "the return value"
        shown = f"the variable {name!r}" if name.isidentifier() else name
        kind = StagingValueError if a is None or b is None else StagingTypeError
        return kind(
            f"The branches of a conditional on a tensor give {shown} different types: "
            f"{describe(a)} when the condition is true, {describe(b)} when it is false. Make both "
            f"the same, with td.cast for instance{at(user_origin())}"
        )


class Placeholder(Undefined):
    """A loop variable without a value on entry, while its type is being found out."""

    __slots__ = ()


def _fits_any_region(value: Any) -> bool:
    """Whether zeros of the same shapes can be made anywhere."""
    return holds_tensors(value) and not any(
        isinstance(leaf, Tensor) and leaf.spec.symbols() for leaf in nest.flatten(value)
    )


def _flag_of(value: Any) -> Any:
    if isinstance(value, Undefined):
        return False
    flags = (assigned_flag(leaf) for leaf in nest.flatten(value))
    return next((flag for flag in flags if flag is not None), True)


def _zeros(branch: _Branch, like: Tensor) -> Any:
    with recording(branch.builder):
        return filler(branch.builder, like.spec)


def staged_if(
    test: Any,
    then: Callable[[], Any],
    otherwise: Callable[[], Any],
    places: Sequence[Any],
    names: Callable[[], list[str]],
    state: Sequence[Any] = (),
    filled: bool = False,
) -> Any:
    """Trace both branches and record a ``cond`` node.

    Changes that the branches make in the objects in `state` are merged as well. `filled`: as in
    `if_stmt`.
    """
    builder: Any = context.recorder
    number = test if is_symbolic_number(test) else None
    test = truth(test)
    branches = _traced(lambda fn: _Branch(builder, fn, places, state), then, otherwise)
    merge = _Merge(branches[0], branches[1], names, filled, number)
    changed = merge.changed()
    results, placed = merge.results(), merge.placed()
    for branch in branches:
        branch.builder.region.results = [branch.builder.use(v).value for v in branch.values]
    outputs = _record(builder, test, branches)
    changed += zip(places, placed, strict=True)
    for place, slot in changed:
        place.set(slot(outputs))
    return results(outputs)


def _traced(trace: Callable[[Any], _Branch], *fns: Callable[[], Any]) -> list[_Branch]:
    """Both branches. One that reads from a list may have to wait for the other to append to it."""
    found: list[_Branch | None] = []
    for fn in fns:
        try:
            found.append(trace(fn))
        except UnknownElementsError:
            found.append(None)
    for branch in found:
        if branch is not None and None in found:
            learn(branch.journal)
    return [trace(fn) if b is None else b for fn, b in zip(fns, found, strict=True)]


def _in_graph(values: Any, template: Any) -> GraphList:
    """A list's elements as a list of the graph for elements of a type."""
    if not isinstance(values, GraphList):
        return graph_list(values, template)
    return values if values.template is not None else graph_list([], template)


def _is_list(value: Any) -> bool:
    return is_plain_list(value) or isinstance(value, GraphList)


def _dict_of(
    names: Sequence[Any], slots: Sequence[Callable[[list[Any]], Any]]
) -> Callable[[list[Any]], dict[Any, Any]]:
    return lambda out: {name: slot(out) for name, slot in zip(names, slots, strict=True)}


def _record(builder: Any, test: Any, branches: list[_Branch]) -> list[Tensor]:
    children = [b.builder for b in branches]
    if not branches[0].values and not any(c.region.nodes for c in children):
        return []
    operands = [test, *builder.align_captures(children)]
    return list(run_with_regions(COND, operands, [c.region for c in children]))
