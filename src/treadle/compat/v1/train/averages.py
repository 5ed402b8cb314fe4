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


def _decay_at(decay: Any, step: Any, dtype: Any) -> Any:
    if step is None:
        return td.cast(decay, dtype)
    count = td.cast(step, dtype)
    return td.minimum(td.cast(decay, dtype), (1.0 + count) / (10.0 + count))


def _averaged(average: Any, value: Any, decay: Any, step: Any) -> None:
    decay = _decay_at(decay, step, average.dtype)
    average.assign_sub((1.0 - decay) * (average - value))


def _corrected(
    average: Any, biased: Any, count: Any, value: Any, decay: Any, step: Any
) -> None:
    """Update an average that began with zeros, whose share is divided out (Kingma and Ba, Adam,
    arXiv:1412.6980, section 3)."""
    decay = _decay_at(decay, step, average.dtype)
    biased.assign_sub((1.0 - decay) * (biased - value))
    count.assign_add(td.ones_like(count))
    average.assign(biased / (1.0 - decay**count))


def _first(var: Any) -> Any:
    """What the average of a variable, or of a tensor, begins with."""
    if isinstance(var, Variable):
        return var.initialized_value()
    return zeros_initializer()(plain(the_tensor(var).shape), var.dtype)


_average = writing(_averaged, "AssignMovingAvg")
_correct = writing(_corrected, "AssignMovingAvg")


class ExponentialMovingAverage:
    """Keeps averages of variables that forget the past exponentially.

    Args:
        decay: the part of the past that stays.
        num_updates: a count of steps, by which it forgets faster in the beginning.
        zero_debias: averages of tensors, which begin with zeros, are divided by the share of the
            values in them; those of variables begin with their values.
    """

    def __init__(self, decay: Any, num_updates: Any = None, zero_debias: bool = False,
                 name: str = "ExponentialMovingAverage") -> None:  # fmt: skip
        self._decay, self._step, self._debias, self.name = decay, num_updates, zero_debias, name
        self._found: dict[Any, Any] = {}
        self._biased: dict[Any, tuple[Any, Any]] = {}  # of tensors: the sum, and its count

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
                if self._debias and not isinstance(var, Variable):
                    self._biased[var] = self._parts_of(var)
            finally:
                graph._scope = scope
            for key in (GraphKeys.MOVING_AVERAGE_VARIABLES,):
                if isinstance(var, Variable):
                    graph.add_to_collection(key, var)
        return group(*map(self._update, chosen), name=self.name)

    def _parts_of(self, var: Any) -> tuple[Any, Any]:
        name = in_scope(self.average_name(var))
        count = functools.partial(zeros_initializer(), [], var.dtype)
        return (
            Variable(functools.partial(_first, var), False, name=f"{name}/biased"),
            Variable(count, False, name=f"{name}/local_step"),
        )

    def _update(self, var: Any) -> Any:
        if var in self._biased:
            return _correct(self._found[var], *self._biased[var], var, self._decay, self._step)
        return _average(self._found[var], var, self._decay, self._step)

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


