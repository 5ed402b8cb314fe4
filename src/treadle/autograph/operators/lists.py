"""Python lists that become lists of the graph, because they grow in a loop or branch of it."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from treadle.autograph.operators.undefined import Undefined
from treadle.core.context import context
from treadle.core.shapes import ANY, TensorShape
from treadle.core.spec import TensorSpec
from treadle.ops.graph_list import GraphList, graph_list

# For the graph being traced: lists (by id, kept alive) -> the type of their elements.
_element_types: WeakKeyDictionary[Any, dict[int, tuple[Any, TensorSpec]]] = WeakKeyDictionary()

_MOVED = (
    ": it is in a list that grew in a conditional or loop on tensors, and that is only known under "
    "the name that was used there"
)


def as_graph_list(values: list[Any], template: Any = None) -> GraphList:
    """A Python list as a list of the graph. Other names of the Python list become unusable."""
    made = graph_list(values, template or element_type(values))
    leave(values)
    return made


def leave(values: list[Any]) -> None:
    """Make the old list unusable: whoever still has it would miss what is appended."""
    values[:] = [left()]


def left() -> Undefined:
    """What an old list holds."""
    return Undefined("an element", _MOVED)


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
