"""Placeholders: what runs are given."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.recording import in_graphs, recorded, writes_into
from treadle.compat.v1.shapes import plain
from treadle.compat.v1.values import ANY_RANKS, Tensor, element
from treadle.core.origin import at, user_origin


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor whose value each run is given in its ``feed_dict``.

    Args:
        shape: None where the rank is unknown, too; None in it for sizes that differ.

    Raises:
        RuntimeError: calls are made at once (`enable_eager_execution`).
    """
    if writes_into() is None:
        raise RuntimeError(
            "tf.placeholder() is not compatible with eager execution: give the function an "
            "argument, or call tf.compat.v1.disable_eager_execution() first"
            f"{at(user_origin())}"
        )
    graph, dtype, sizes = get_default_graph(), td.as_dtype(dtype), plain(shape)
    if isinstance(sizes, int):
        sizes = [sizes]
    with graph.at_root():
        if sizes is not None:
            readings = {ANY_RANKS: graph.parameter(dtype, sizes)}
            return graph.source("Placeholder", name or "Placeholder", readings)
        tensor = graph.source("Placeholder", name or "Placeholder", {})
        tensor.readings = graph.unranked(tensor.op, dtype)
    return tensor


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Any:
    """`input`, or what a run is given instead, of a shape that may be more general."""
    if writes_into(input) is None:
        return td.convert_to_tensor(input)
    given = recorded(td.convert_to_tensor)(input) if element(input) is None else element(input)
    found = recorded(_passed_on, "PlaceholderWithDefault", "PlaceholderWithDefault")(
        given, name=name
    )
    graph, sizes = found.graph, plain(shape)
    if sizes is None:
        found.readings = graph.unranked(found.op, found.dtype)
    else:  # not the default's reading: what is known of that is not known of what a run is given
        found.readings = {ANY_RANKS: graph.parameter(found.dtype, sizes)}
    return found


def _passed_on(x: Any) -> Any:
    return td.identity(x)

in_graphs(
    _passed_on,
)
