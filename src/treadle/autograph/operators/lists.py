"""Python lists that become lists of the graph, because they grow in a loop or branch of it."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from treadle.autograph.operators.undefined import Undefined
from treadle.core.context import context
from treadle.core.shapes import ANY, TensorShape
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.ops.graph_list import GraphList, graph_list

# For the graph being traced: lists (by id, kept alive) -> the type of their elements.
_element_types: WeakKeyDictionary[Any, dict[int, tuple[Any, TensorSpec]]] = WeakKeyDictionary()

_MOVED = (
    ": it is in a list that grew in a conditional or loop on tensors, and that is only known under "
    "the name that was used there"
)


class Left(Undefined):
    """What a Python list holds after it became a list of the graph."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("an element", _MOVED)


class TrialList(list[Any]):
    """A list while a loop's body is traced to see what it does with its lists.

    Attributes:
        indexed: whether a position was used that only the running graph knows.
        stored: what was assigned at such positions.
    """

    def __init__(self, values: Any) -> None:
        super().__init__(values)
        self.indexed = False
        self.stored: list[Any] = []

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, Tensor):
            return super().__getitem__(index)
        self.indexed = True
        return super().__getitem__(0)  # all elements are of one type

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, Tensor):
            self.indexed = True
            self.stored.append(value)
        else:
            super().__setitem__(index, value)


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
    """Make the old list unusable: whoever still has it would miss what is appended."""
    values[:] = [Left()]


def has_left(values: Any) -> bool:
    """Whether a Python list became a list of the graph."""
    return len(values) == 1 and isinstance(values[0], Left)


def set_element_type(values: Any, dtype: Any, shape: Any = None) -> None:
    """Tell the type of the elements of an empty list that grows in a loop or branch."""
    if context.recorder is None:
        return
    dims = [ANY if d is None else d for d in TensorShape(shape).dims] if shape is not None else []
    graph = context.recorder.graph  # type: ignore[attr-defined]
    _element_types.setdefault(graph, {})[id(values)] = (values, TensorSpec(dims, dtype))


def element_type(values: list[Any]) -> TensorSpec | None:
    """What `set_element_type` said about this list."""
    if context.recorder is None:
        return None
    graph = context.recorder.graph  # type: ignore[attr-defined]
    found = _element_types.get(graph, {}).get(id(values))
    return found[1] if found is not None else None
