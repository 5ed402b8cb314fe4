"""Averages of variables over time."""

from __future__ import annotations

import functools
from typing import Any

import treadle as td
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.initializers import zeros_initializer
from treadle.compat.v1.scopes import in_scope
from treadle.compat.v1.shapes import plain
from treadle.compat.v1.values import the_tensor
from treadle.compat.v1.variables import (
    Variable,
    global_variables,
    group,
    moving_average_variables,
    trainable_variables,
    writing,
)


def _averaged(average: Any, value: Any, decay: Any, step: Any, corrects: bool) -> None:
    del corrects
    if step is not None:
        count = td.cast(step, average.dtype)
        decay = td.minimum(td.cast(decay, average.dtype), (1.0 + count) / (10.0 + count))
    average.assign_sub((1.0 - decay) * (average - value))


def _first(var: Any) -> Any:
    """What the average of a variable, or of a tensor, begins with."""
    if isinstance(var, Variable):
        return var.initialized_value()
    return zeros_initializer()(plain(the_tensor(var).shape), var.dtype)


_average = writing(_averaged, "AssignMovingAvg")


class ExponentialMovingAverage:
    """Keeps averages of variables that forget the past exponentially.

    Args:
        decay: the part of the past that stays.
        num_updates: a count of steps, by which it forgets faster in the beginning.
    """

    def __init__(self, decay: Any, num_updates: Any = None, zero_debias: bool = False,
                 name: str = "ExponentialMovingAverage") -> None:  # fmt: skip
        self._decay, self._step, self._debias, self.name = decay, num_updates, zero_debias, name
        self._found: dict[Any, Any] = {}

    def apply(self, var_list: Any = None) -> Any:
        """An operation that brings the averages of variables or tensors up to date."""
        chosen = trainable_variables() if var_list is None else list(var_list)
        graph = get_default_graph()
        for var in chosen:
            if var in self._found:
                continue
            scope, graph._scope = graph._scope, ""
            try:
                # A function is called outside of the branch that this may be in.
                self._found[var] = Variable(
                    functools.partial(_first, var), False, name=in_scope(self.average_name(var))
                )
            finally:
                graph._scope = scope
            for key in (GraphKeys.MOVING_AVERAGE_VARIABLES,):
                if isinstance(var, Variable):
                    graph.add_to_collection(key, var)
        return group(
            *[_average(self._found[v], v, self._decay, self._step, self._debias) for v in chosen],
            name=self.name,
        )

    def average(self, var: Any) -> Any:
        """The variable with the average of another one, or None."""
        return self._found.get(var)

    def average_name(self, var: Any) -> str:
        """The name of the average of a variable."""
        return f"{var.op.name}/{self.name}"

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Any]:
        """For `Saver`: variables by the names of their averages."""
        chosen = moving_avg_variables or [*trainable_variables(), *moving_average_variables()]
        found = {self.average_name(v): v for v in chosen}
        named = set(chosen)
        return found | {v.op.name: v for v in global_variables() if v not in named}


