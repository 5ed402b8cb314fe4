"""``in``."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from treadle.autograph.operators.collecting import as_tensor
from treadle.autograph.operators.iteration import is_graph_iterable
from treadle.autograph.operators.logical import or_
from treadle.autograph.operators.values import is_staged, truth
from treadle.core import nest
from treadle.ops.elementwise.comparison import equal
from treadle.ops.reductions import reduction


def in_(item: Any, container: Any) -> Any:
    """``item in container``; a bool of the graph where either is a tensor of it."""
    if is_graph_iterable(container):
        return reduction.reduce_any(equal(as_tensor(container), item))
    if isinstance(container, str | Mapping | AbstractSet) or not hasattr(container, "__iter__"):
        return item in container
    if isinstance(container, list | tuple | range) and any(
        is_staged(x) for x in nest.flatten([item, container])
    ):
        return or_(lambda: False, *(lambda e=e: _same(item, e) for e in container))
    return item in container


def _same(item: Any, element: Any) -> Any:
    if item is element:
        return True
    equal = item == element
    return truth(equal, "in") if is_staged(equal) else bool(equal)
