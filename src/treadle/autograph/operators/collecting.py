"""The elements of an iterable at once: as a Python list, or as a list or tensor of the graph."""

from __future__ import annotations

import functools
from typing import Any

from treadle.autograph.operators.conditionals import if_stmt
from treadle.autograph.operators.iteration import as_staged, is_graph_iterable
from treadle.autograph.operators.logical import and_
from treadle.autograph.operators.loops import for_stmt
from treadle.autograph.operators.streams import Stream
from treadle.autograph.operators.values import is_staged
from treadle.core import nest
from treadle.core.context import context, taping
from treadle.core.tensor import Tensor
from treadle.ops.collections.graph_list import GraphList, graph_list
from treadle.ops.conversion import convert_to_tensor

UNROLLED = 100  # lists of more elements are made by a loop


def collect(iterable: Any) -> Any:
    """``list(iterable)``; a `GraphList` where the length depends on the graph, or is large."""
    if isinstance(iterable, Stream) and not iterable.in_graph:
        return _from_python(iterable)
    if not is_graph_iterable(iterable):
        return list(iterable)
    found = _unrolled(iterable)
    return _by_loop(iterable) if found is None else found


def as_tensor(iterable: Any) -> Tensor:
    """The elements along a first axis."""
    if isinstance(iterable, Tensor):
        return iterable
    found = collect(iterable)
    if isinstance(found, GraphList):
        return found.stacked()
    return convert_to_tensor(found)


def _unrolled(iterable: Any) -> list[Any] | None:
    """The elements one by one, where their number is known and small."""
    if isinstance(iterable, Stream):
        if iterable.conditions or iterable.flat:
            return None
        items = _unrolled(iterable.source)
        if items is None:
            return None
        iterable.use()
        return [iterable.element(item) for item in items]
    staged = as_staged(iterable)
    if staged is None or staged.size is None or staged.size > UNROLLED:
        return None
    return [staged.item(i) for i in range(staged.size)]


def _by_loop(iterable: Any) -> GraphList:
    def trial() -> Any:
        found: list[Any] = []
        for_stmt(iterable, lambda item: found.append(_specs(item)))
        return found[0]

    empty = graph_list([], _template(trial))
    if isinstance(iterable, Stream):
        iterable.reset()
    made: GraphList = for_stmt(iterable, lambda item, elements: _appended(elements, item), empty)
    return made


def _from_python(stream: Stream) -> Any:
    """A stream over a Python iterable, whose conditions may be tensors all the same."""
    out: Any = []
    stream.use()
    for item in stream.source:
        out = _chosen(out, stream, item)
    return out


def _chosen(out: Any, stream: Stream, item: Any) -> Any:
    """`out` with the elements for `item`, if the conditions hold."""
    tests = [functools.partial(condition, item) for condition in stream.conditions]
    chosen = and_(*tests) if tests else True
    if not is_staged(chosen):
        return _extended(out, stream, item) if chosen else out
    values = _as_graph_list(out, lambda: _specs(stream.element(item)))
    return if_stmt(chosen, lambda: _extended(values, stream, item), lambda: values)


def _extended(out: Any, stream: Stream, item: Any) -> Any:
    """`out` with the elements for `item`; a Python list is changed in place."""
    made = stream.element(item)
    added = collect(made) if stream.flat else [made]
    if isinstance(out, list) and isinstance(added, GraphList):
        out = _as_graph_list(out, lambda: added.template)
    out = out if isinstance(out, list) else out.copy()
    out.extend(added)
    return out


def _as_graph_list(values: Any, trial: Any) -> GraphList:
    if isinstance(values, GraphList):
        return values
    return graph_list(values, None if values else _template(trial))


def _template(trial: Any) -> Any:
    """The result of `trial`, run in a region that is thrown away."""
    builder: Any = context.recorder
    found: list[Any] = []

    def run() -> list[Any]:
        with taping(()):
            found.append(trial())
        return []

    builder.trace_region(run, [])
    return found[0]


def _specs(item: Any) -> Any:
    return nest.map_structure(lambda x: convert_to_tensor(x).spec, item)


def _appended(values: Any, item: Any) -> Any:
    made = values.copy()
    made.append(item)
    return made
