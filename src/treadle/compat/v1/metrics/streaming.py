"""Sums over batches that metrics keep, and the operations that add a batch to them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.compat.v1 import initializers, scopes
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.recording import in_graphs, recorded, writes_into
from treadle.compat.v1.values import element
from treadle.compat.v1.variables import Variable, writing
from treadle.core.origin import at, user_origin


def in_graphs_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """A metric that refuses values: what it keeps belongs to a session.

    Raises:
        RuntimeError: functions are called at once.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if writes_into(args, kwargs) is None:
            raise RuntimeError(
                f"tf.metrics.{function.__name__} is not supported when eager execution is enabled: "
                f"use one of td.keras.metrics, which keep their own values{at(user_origin())}"
            )
        return function(*args, **kwargs)

    return call


def kept_variable(name: str, shape: Any = (), dtype: Any = td.float32) -> Any:
    """A variable that a metric keeps."""
    return Variable(
        lambda: initializers.zeros_initializer()(list(shape), dtype), False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES], name=name, dtype=dtype,
    )  # fmt: skip


def _grown(variable: Any, amount: Any) -> Any:
    variable.assign_add(td.cast(amount, variable.dtype))
    return variable.read_value()


grow = writing(_grown, "AssignAdd")


def metric(
    name: str, sums: dict[str, Any], value: Callable[..., Any], collections: Any, updates: Any,
    of_update: Callable[..., Any] | None = None, more: tuple[Any, ...] = (),
) -> tuple[Any, Any]:  # fmt: skip
    """A metric of sums over batches: their value and the operation that adds a batch.

    Args:
        sums: what is added to the variable of each name.
        value: the metric of the sums.
        of_update: what the operation gives for the new sums, where that is not the metric.
        more: further arguments of both.
    """
    with scopes.variable_scope(None, name):
        given = [(n, element(x)) for n, x in sums.items()]
        kept = [kept_variable(n, x.shape.as_list(), x.dtype) for n, x in given]  # type: ignore[union-attr]
        call = recorded(value, "value", "DivNoNan")
        found = call(*kept, *more)
        added = [grow(v, x) for v, x in zip(kept, sums.values(), strict=True)]
        update = recorded(of_update or value, "update_op", "DivNoNan")(*added, *more)
    graph = get_default_graph()
    if collections:
        graph.add_to_collections(collections, found)
    if updates:
        graph.add_to_collections(updates, update)
    return found, update


def ratio(a: Any, b: Any) -> Any:
    return td.math.divide_no_nan(td.convert_to_tensor(a), td.convert_to_tensor(b))


def root(a: Any, b: Any) -> Any:
    return td.sqrt(ratio(a, b))


def itself(a: Any) -> Any:
    return td.identity(a)


def _total(values: Any, weights: Any) -> list[Any]:
    """The weighted sum of values, and of the weights."""
    values = td.cast(values, td.float32)
    if weights is None:
        return [td.reduce_sum(values), td.cast(td.size(values), td.float32)]
    weights = td.cast(weights, td.float32)
    while len(weights.shape) and len(weights.shape) < len(values.shape):
        weights = td.expand_dims(weights, -1)
    weights = weights * td.ones_like(values)
    return [td.reduce_sum(values * weights), td.reduce_sum(weights)]


_sums = recorded(_total, "Sum", "Sum")


def weighted_mean(name: str, values: Any, weights: Any, collections: Any, updates: Any,
          value: Callable[..., Any] = ratio) -> tuple[Any, Any]:  # fmt: skip
    total, count = _sums(values, weights)
    return metric(name, {"total": total, "count": count}, value, collections, updates)


in_graphs(
    _total,
)
