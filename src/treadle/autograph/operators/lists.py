"""Python lists that become lists of the graph, because they grow in a loop or branch of it."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from treadle.autograph.operators.undefined import Undefined
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.core.shapes import ANY, TensorShape
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.ops.collections.graph_list import GraphList, graph_list, template_of

# For the graph being traced: lists (by id, kept alive) -> the type of their elements.
_element_types: WeakKeyDictionary[Any, dict[int, tuple[Any, TensorSpec]]] = WeakKeyDictionary()

_MOVED = (
    ": it is in a list that grew in a conditional or loop on tensors, and that is only known under "
    "the name that was used there"
)


class Left(Undefined):
    """The only item of a Python list that became a list of the graph."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("an element", _MOVED)


class UnknownElementsError(ValueError):
    """An element is read of a list whose elements are not known yet."""


class TrialList(list[Any]):
    """A list while a loop's body is traced to see what it does with its lists.

    Attributes:
        indexed: whether a position was used that only the running graph knows.
        stored: the values that were assigned at such positions.
        template: the elements' type, if it was learned from another branch.
    """

    seen_as = list  # for td.nest

    def __init__(self, values: Any) -> None:
        super().__init__(values)
        self.indexed = False
        self.stored: list[Any] = []
        self.template: Any = None

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, Tensor):
            self.indexed = True
            index = 0  # all elements are of one type
        if self or isinstance(index, slice):
            return super().__getitem__(index)
        return self.in_graph()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, Tensor):
            self.indexed = True
            self.stored.append(value)
        else:
            super().__setitem__(index, value)

    def in_graph(self) -> GraphList:
        """The same as a list of the graph, to read from."""
        if self.template is None and not self:
            raise UnknownElementsError(
                "The list is read before its elements' type is known: append first, or tell with "
                f"td.autograph.experimental.set_element_type(list, dtype, shape){at(user_origin())}"
            )
        return graph_list(self, self.template)

    def stacked(self, axis: int = 0) -> Tensor:
        return self.in_graph().stacked(axis)

    def joined(self, axis: int = 0) -> Tensor:
        return self.in_graph().joined(axis)


def learn(journal: Any) -> None:
    """Note the types of elements that a branch appended to the lists of a trial."""
    for key, place in journal.places.items():
        values = journal.after[key]
        if isinstance(place.owner, TrialList) and values and not has_left(values):
            place.owner.template = template_of(list(values))


def is_plain_list(value: Any) -> bool:
    """Whether a value is a Python list that may become one of the graph."""
    return type(value) in (list, TrialList)


def plain(value: Any) -> Any:
    """A trial's list as an ordinary one; other values as they are."""
    return list(value) if type(value) is TrialList else value


def as_graph_list(values: list[Any], template: Any = None) -> GraphList:
    """A Python list as a list of the graph. Other names of the Python list become unusable."""
    made = graph_list(values, template or element_type(values))
    leave(values)
    return made


def leave(values: list[Any]) -> None:
    """Make the old list unusable: code that still has it would miss appended elements."""
    values[:] = [Left()]


def has_left(values: Any) -> bool:
    """Whether a Python list became a list of the graph."""
    return len(values) == 1 and isinstance(values[0], Left)


def set_element_type(values: Any, dtype: Any, shape: Any = None) -> None:
    """Tell the type of the elements of an empty list that grows in a loop or branch."""
    if context.recorder is None:
        return
    dims = [ANY if d is None else d for d in TensorShape(shape).exact] if shape is not None else []
    graph = context.recorder.graph  # type: ignore[attr-defined]
    _element_types.setdefault(graph, {})[id(values)] = (values, TensorSpec(dims, dtype))


def element_type(values: list[Any]) -> TensorSpec | None:
    """The element type that `set_element_type` gave this list."""
    if context.recorder is None:
        return None
    graph = context.recorder.graph  # type: ignore[attr-defined]
    found = _element_types.get(graph, {}).get(id(values))
    return found[1] if found is not None else None
