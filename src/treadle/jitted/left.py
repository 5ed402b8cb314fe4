"""Lists, dicts and sets of Python's that became others of the graph, and what they became.

Python's object stays where the program has it under other names, among the arguments, too. It holds
one item that says so, with the object that it became: between branches and loops the other names
mean that one; within them they are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from treadle.autograph.operators.undefined import Undefined
from treadle.core.origin import at, user_origin
from treadle.jitted.errors import NotStaged
from treadle.jitted.storage import scopes

_KINDS = (list, dict, set)


class Left(Undefined):
    """The only item of a list, dict or set of Python's that became one of the graph.

    Attributes:
        other: the one that it became, as it was then.
    """

    __slots__ = ("other",)

    other: Any

    def __init__(self, other: Any, why: str) -> None:
        super().__init__("an element", f": it is in a list or dict that {why}")
        object.__setattr__(self, "other", other)


_GREW = (
    "grew in a loop or branch that depends on array values, and is only known under the name that "
    "was used there"
)


def leave(values: Any, other: Any = None, why: str = _GREW) -> None:
    """Make a list, dict or set unusable that became `other`: it would miss what that one gets.

    Args:
        other: None where no name tells of it any more.
        why: what has become of it, for the error of whoever uses it.
    """
    mark = Left(other, why)
    if not isinstance(values, _KINDS):  # the result of a comprehension
        values.items = [mark]
        return
    _fill(values, {"": mark} if isinstance(values, dict) else [mark])


def _fill(values: Any, content: Any) -> None:
    values.clear()
    if isinstance(values, dict):
        dict.update(values, content)  # a Counter's own adds
    else:
        (values.extend if isinstance(values, list) else values.update)(content)


def _counterparts(values: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """A list, dict or set of Python's, and the lists in it, with what they become."""
    if isinstance(values, _KINDS):
        yield values, other
        if type(values) is list and hasattr(other, "element"):
            for i, inner in enumerate(values):
                if type(inner) is list:
                    yield from _counterparts(inner, other.at(i))
        elif not isinstance(values, set):
            for key, inner in values.items() if isinstance(values, dict) else enumerate(values):
                if type(inner) is list:
                    is_row = isinstance(values, list) and other.template.pool is not None
                    yield inner, other.at(key) if is_row else None


class leaving:
    """Trace a branch or loop that has `other` in place of a list, dict or set, which has been left
    for its other names, and is as before where the trace ends with an error."""

    def __init__(self, values: Any, other: Any) -> None:
        self._pairs = list(_counterparts(values, other))

    def begin(self) -> leaving:
        self._contents = [(held, held.copy()) for held, _ in self._pairs]
        for held, other in self._pairs:
            leave(held, other)
        return self

    def undo(self) -> None:
        for held, content in self._contents:
            _fill(held, content)

    __enter__ = begin

    def __exit__(self, kind: Any, *error: object) -> None:
        if kind is not None:
            self.undo()


def mark_of(values: Any) -> Left | None:
    """The mark of a list, dict or set that became one of the graph.

    Raises:
        NotStaged: it was changed since, under another name.
    """
    if not isinstance(values, _KINDS) or not values:
        return None
    if isinstance(values, dict):
        found = values.get("")
    else:
        found = values[0] if isinstance(values, list) else _of_set(values)
    if not isinstance(found, Left):
        return None
    if len(values) > 1:
        raise NotStaged(
            "A list or dict that changes in a branch or loop that depends on array values is "
            f"changed under another name: use one name for it{at(user_origin())}"
        )
    return found


def _of_set(values: set[Any]) -> Any:
    return next((v for v in values if isinstance(v, Left)), None)


def is_left(values: Any) -> bool:
    """Whether a list, dict or set became one of the graph."""
    return mark_of(values) is not None


def current(values: Any) -> Any:
    """What a list, dict or set became, as it is now; any other value itself.

    Raises:
        UndefinedVariableError: a branch or loop that depends on array values is being traced, in
            which another name has it.
    """
    mark = mark_of(values)
    if mark is None:
        return values
    if mark.other is None or (scopes.open and not _has_rows(mark.other)):
        mark.fail()
    return getattr(mark.other, "latest", mark.other)


def _has_rows(other: Any) -> bool:
    """Whether what a list or dict became is a row of a pool, or has such in it (`pools`), of which
    all names mean one: a branch or loop may use them by another name."""
    if hasattr(type(other), "pool"):
        return True
    template = getattr(getattr(other, "values_", other), "template", None)
    return template is not None and template.pool is not None


def origin_of(value: Any) -> Any:
    """The list or dict of the graph that a variable's is, in whatever branch or loop; else None."""
    return value.origin if hasattr(type(value), "latest") else None


def is_another(value: Any, others: Iterable[Any] = ()) -> None:
    """A branch or loop may have given a variable another list or dict than it had.

    Args:
        others: those that it may be, of the graph.
    """
    if origin_of(value) is not None:
        value.origin = value.latest = value
        value.may_be([o for o in others if o is not None])


def check_names(values: Iterable[Any], owner: Any = None) -> None:
    """Refuse variables of a branch or loop of which two are one list or dict of the graph: each
    would have changes of its own.

    Args:
        owner: a list, dict or set that becomes one.
    """
    seen: set[int] = set()
    for value in values:
        origin = owner if value is owner else origin_of(value)
        if origin is not None and id(origin) in seen:
            raise NotStaged(
                "A list or dict that changes in a branch or loop that depends on array values has "
                f"two names there: use one{at(user_origin())}"
            )
        seen.add(id(origin))


def follow(results: Iterable[Any]) -> None:
    """Note what a branch or loop has made of lists and dicts: their other names mean it, too."""
    if scopes.open:
        return
    for result in results:
        origin = origin_of(result)
        if origin is not None:
            origin.latest = result
