"""Lists, dicts and other objects among the variables of a loop over tensors.

An object whose items the body changes stays what it is: what changes is carried by the loop. A list
that changes its length becomes a list of the graph. To see which is which, the body is traced once
for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.autograph.errors import StagingTypeError
from treadle.autograph.operators.conditionals import Placeholder
from treadle.autograph.operators.journal import Journal, changes, is_owner
from treadle.autograph.operators.lists import as_graph_list, element_type
from treadle.autograph.operators.places import MISSING, DictContent, Item, ListContent
from treadle.autograph.operators.undefined import Undefined
from treadle.autograph.operators.values import describe, is_tensor_like
from treadle.core import nest
from treadle.core.context import context, taping
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.graph_list import GraphList, template_of

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
        places: what changes inside of these.
    """

    def __init__(self, names: Sequence[str], state: State, places: list[Any]) -> None:
        self.names = names
        self.state = state
        self.places = places

    def opened(self, values: State) -> State:
        """What the user's code sees."""
        return tuple(v.value if isinstance(v, Fixed) else v for v in values)

    def closed(self, values: State) -> State:
        """What the loop carries."""
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
    journal, result = _trial(state, step, places)
    grown = {id(v): t for v, r in zip(state, result, strict=True)
             if (t := _growth(v, r, journal)) is not None}  # fmt: skip
    found = [p for key, place in journal.places.items() if id(place.owner) not in grown
             for p in _changed(place, journal, key)]  # fmt: skip
    made: dict[int, GraphList] = {}
    for value in state:
        if id(value) in grown and id(value) not in made:
            made[id(value)] = _converted(value, grown[id(value)])
    kept = tuple(
        made[id(v)] if id(v) in made else Fixed(v) if is_owner(v) and v is r else v
        for v, r in zip(state, result, strict=True)
    )
    return Owned(names, kept, found)


def _trial(state: State, step: Step, places: Sequence[Any]) -> tuple[Journal, State]:
    """Run the body on tensors that stand for the variables; all changes are undone."""
    builder: Any = context.recorder
    trial = tuple(Fixed(v) if is_owner(v) else _placeholder(v) for v in state)
    flat = [convert_to_tensor(v) if is_tensor_like(v) else v for v in nest.flatten(trial)]
    moving = [i for i, v in enumerate(flat) if isinstance(v, Tensor)]
    result: list[Any] = []

    def run(*params: Any) -> list[Any]:
        values = dict(zip(moving, params, strict=True))
        inside = nest.pack(trial, [values.get(i, v) for i, v in enumerate(flat)])
        given = [v.value.copy() if isinstance(v, Fixed) and isinstance(v.value, GraphList)
                 else v.value if isinstance(v, Fixed) else v for v in inside]  # fmt: skip
        with taping(()):
            for key, place in journal.places.items():
                journal.started[key] = _with_tensors(place)
            result.extend(step(tuple(given)))
        for i, (value, known) in enumerate(zip(given, result, strict=True)):
            if known is value and not isinstance(value, GraphList):
                result[i] = state[i]
        return []

    outside = [p.get() for p in places]
    with changes(state) as journal:
        try:
            builder.trace_region(run, [flat[i].spec for i in moving])
        finally:
            for place, value in zip(places, outside, strict=True):
                place.set(value)
    return journal, tuple(result)


def _placeholder(value: Any) -> Any:
    return Placeholder(value.name) if isinstance(value, Undefined) else value


def _with_tensors(place: Any) -> Any:
    """Make numbers in a list or dict tensors, which they are inside a loop of the graph."""
    held = place.get()
    if isinstance(place, ListContent):
        place.set([convert_to_tensor(v) if is_tensor_like(v) else v for v in held])
    elif isinstance(place, DictContent):
        place.set({k: convert_to_tensor(v) if is_tensor_like(v) else v for k, v in held.items()})
    return place.get()


def _growth(value: Any, result: Any, journal: Journal) -> Any:
    """The elements' type, for a list that has another length after an iteration."""
    if isinstance(value, GraphList):
        return value.template or (result.template if isinstance(result, GraphList) else None)
    if type(value) is not list:
        return None
    after = journal.content(value) if result is value else result
    if isinstance(after, GraphList):
        return after.template
    if type(after) is not list or len(after) == len(value):
        return None
    started = journal.started[ListContent(value).identity]
    known = element_type(value)
    return known if known is not None else template_of([*started, *after])


def _converted(value: Any, template: Any) -> GraphList:
    if isinstance(value, GraphList):
        return value.moved(template)
    return as_graph_list(value, template)


def _changed(place: Any, journal: Journal, key: Any) -> list[Any]:
    """The places to carry, for an object that was watched."""
    before, after = journal.started.get(key, journal.before[key]), journal.after[key]
    if isinstance(place, ListContent):
        if len(before) != len(after):
            raise StagingTypeError(
                "A list changes its length in a loop over tensors, and it is not a variable of the "
                "function: give it a name of its own before the loop, and append to that"
                f"{at(user_origin())}"
            )
        same = all(a is b for a, b in zip(before, after, strict=True))
        return [] if same else [place]
    if isinstance(place, DictContent):
        return [Item(place.owner, k) for k in {**before, **after}
                if before.get(k, MISSING) is not after.get(k, MISSING)]  # fmt: skip
    return [place]
