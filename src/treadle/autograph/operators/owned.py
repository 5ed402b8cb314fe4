"""Lists, dicts and other objects among the variables of a loop over tensors.

An object whose items the body changes stays the same object: the loop carries these items. A list
that changes its length becomes a list of the graph. To see which is which, the body is traced once
for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.autograph.errors import StagingTypeError
from treadle.autograph.operators.conditionals import Placeholder
from treadle.autograph.operators.journal import Journal, changes, is_owner
from treadle.autograph.operators.lists import (
    TrialList,
    as_graph_list,
    element_type,
    is_plain_list,
    plain,
)
from treadle.autograph.operators.places import (
    MISSING,
    DictContent,
    GraphListContent,
    Item,
    ListContent,
)
from treadle.autograph.operators.undefined import Undefined
from treadle.autograph.operators.values import describe, is_tensor_like
from treadle.core import nest
from treadle.core.context import context, taping
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.collections.graph_list import GraphList, graph_list, template_of
from treadle.ops.conversion import convert_to_tensor

State = tuple[Any, ...]
Step = Callable[[State], State]


class Fixed:
    """An object that stays the same through a loop."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Owned:
    """A loop's state, ready to be recorded.

    Attributes:
        state: the variables, with objects that stay the same wrapped as `Fixed`.
        places: the places inside of these that change.
    """

    def __init__(self, names: Sequence[str], state: State, places: list[Any]) -> None:
        self.names = names
        self.state = state
        self.places = places

    def opened(self, values: State) -> State:
        """The values that the user's code sees."""
        return tuple(v.value if isinstance(v, Fixed) else v for v in values)

    def closed(self, values: State) -> State:
        """The values that the loop carries."""
        return tuple(map(self._closed, self.names, self.state, values))

    def _closed(self, name: str, start: Any, value: Any) -> Any:
        if not isinstance(start, Fixed):
            return value
        if value is not start.value:
            raise StagingTypeError(
                f"The variable {name!r} is {describe(start.value)} before an iteration, and "
                f"another object after it, {describe(value)}{at(user_origin())}"
            )
        return start


def own(names: Sequence[str], state: State, step: Step, places: Sequence[Any]) -> Owned:
    """Find out which objects in `state` the loop's body changes, and how."""
    if not any(map(is_owner, state)):
        return Owned(names, state, [])
    trial = _Trial(state)
    result = trial.run(step, places)
    grown = {id(v): trial.growth(v, r) for v, r in zip(state, result, strict=True)}
    found = [p for place in trial.journal.places.values() if grown.get(id(place.owner)) is None
             for p in trial.changed(place)]  # fmt: skip
    made: dict[int, GraphList] = {}
    for value in state:
        template = grown[id(value)]
        if template is not None and id(value) not in made:
            made[id(value)] = _converted(value, template)
    kept = tuple(
        made[id(v)] if id(v) in made else Fixed(v) if is_owner(v) and v is r else plain(v)
        for v, r in zip(state, result, strict=True)
    )
    return Owned(names, kept, found)


class _Trial:
    """Traces a loop's body on stand-ins for the variables; all changes are undone."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.journal: Journal
        # Lists (by id) -> their stand-ins; places (by identity) -> their values at the beginning.
        self.lists: dict[int, Any] = {}
        self.started: dict[Any, Any] = {}

    def run(self, step: Step, places: Sequence[Any]) -> State:
        """The body's results, with the objects of `state` where they stayed."""
        builder: Any = context.recorder
        trial = tuple(Fixed(v) if is_owner(v) else _placeholder(v) for v in self.state)
        flat = [convert_to_tensor(v) if is_tensor_like(v) else v for v in nest.flatten(trial)]
        moving = [i for i, v in enumerate(flat) if isinstance(v, Tensor)]
        result: list[Any] = []

        def body(*params: Any) -> list[Any]:
            values = dict(zip(moving, params, strict=True))
            inside = nest.pack(trial, [values.get(i, v) for i, v in enumerate(flat)])
            with taping(()):
                self.start()
                given = [self.stand_in(v.value) if isinstance(v, Fixed) else v for v in inside]
                result.extend(step(tuple(given)))
            for i, (before, after) in enumerate(zip(given, result, strict=True)):
                if before is after and isinstance(inside[i], Fixed):
                    result[i] = self.state[i]
            return []

        outside = [p.get() for p in places]
        with changes(self.state) as self.journal:
            try:
                builder.trace_region(body, [flat[i].spec for i in moving])
            finally:
                for place, value in zip(places, outside, strict=True):
                    place.set(value)
        return tuple(result)

    def start(self) -> None:
        """Make numbers in lists and dicts tensors, which they are inside a loop of the graph."""
        for key, place in self.journal.places.items():
            held = place.get()
            if isinstance(place, ListContent):
                place.set([_as_tensor(v) for v in held])
            elif isinstance(place, DictContent):
                place.set({k: _as_tensor(v) for k, v in held.items()})
            self.started[key] = place.get()

    def stand_in(self, value: Any) -> Any:
        """The stand-in that the body gets for a list, which must not be changed itself."""
        if not isinstance(value, GraphList) and not is_plain_list(value):
            return value
        if id(value) not in self.lists:
            known = element_type(value) if is_plain_list(value) else None
            if isinstance(value, GraphList):
                made: Any = value.copy()
            else:
                made = TrialList(value) if known is None else graph_list(value, known)
            self.lists[id(value)] = made
        return self.lists[id(value)]

    def growth(self, value: Any, result: Any) -> Any:
        """The elements' type, for a list that is to become one of the graph; None for others."""
        after = self.lists.get(id(value))
        if after is None:
            return None
        final = after if result is value else result
        for one in (after, final):
            if isinstance(one, GraphList) and one.template is not None:
                return one.template
        before = self.started[ListContent(value).identity] if is_plain_list(value) else []
        if not isinstance(final, list) or (len(final) == len(before) and not after.indexed):
            return None
        return template_of([*before, *after.stored, *final])

    def changed(self, place: Any) -> list[Any]:
        """The places to carry, for an object that was watched."""
        before = self.started.get(place.identity, self.journal.before[place.identity])
        after = self.journal.after[place.identity]
        if isinstance(place, ListContent):
            after = self.lists.get(id(place.owner), after)
            if len(before) != len(after):
                raise StagingTypeError(
                    "A list changes its length in a loop over tensors, and it is not a variable of "
                    "the function: give it a name of its own before the loop, and append to that"
                    f"{at(user_origin())}"
                )
            same = all(a is b for a, b in zip(before, after, strict=True))
            return [] if same else [place]
        if isinstance(place, DictContent):
            return [Item(place.owner, k) for k in {**before, **after}
                    if before.get(k, MISSING) is not after.get(k, MISSING)]  # fmt: skip
        if isinstance(place, GraphListContent):
            same = all(a is b for a, b in zip(before.parts, after.parts, strict=True))
            return [] if same else [place]
        return [place]


def _placeholder(value: Any) -> Any:
    return Placeholder(value.name) if isinstance(value, Undefined) else value


def _as_tensor(value: Any) -> Any:
    return convert_to_tensor(value) if is_tensor_like(value) else value


def _converted(value: Any, template: Any) -> GraphList:
    return value.moved(template) if isinstance(value, GraphList) else as_graph_list(value, template)
