"""Programs for eager updates: one for each list of variables that an optimizer updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import treadle as td
from treadle.tracing.background_functions import BackgroundFunction

_OWN = __name__.rpartition(".")[0]  # the package of the rules that may be compiled unasked
_RATE = ("_schedule", "_start_rate")  # which programs are given
_PLAIN = (bool, int, float, str, type(None))
MOST_LISTS = 8  # of variables, for which there are programs at once
MOST_CHANGES = 8  # of an optimizer's settings, after which its updates remain eager


class UpdatePrograms:
    """The programs of one optimizer. They belong to it alone: a copy of the optimizer has none.

    The rules of this package are compiled; what a program's own rule does is not known, so it is
    called for each update.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], BackgroundFunction] = {}
        self._settings: list[Any] = []  # the values that the programs were made with
        self._changes = 0

    def run(
        self, optimizer: Any, grads: Sequence[Any], variables: Sequence[td.Variable],
        rate: td.Tensor, step: td.Tensor,
    ) -> bool:  # fmt: skip
        """Update all variables by a program; False where there is none, or none yet."""
        if not type(optimizer).__module__.startswith(_OWN) or not td.executing_eagerly():
            return False
        if not self._knows(optimizer):
            return False
        key = tuple(map(id, variables))  # which the programs hold
        found = self._made.get(key)
        if found is None:
            if not all(type(v) is td.Variable for v in variables):
                return False
            if len(self._made) >= MOST_LISTS:
                self._made.clear()
            found = self._made[key] = _program(optimizer, list(variables))
        return found.run(list(grads), rate, step)

    def _knows(self, optimizer: Any) -> bool:
        """Whether programs are worth making for the optimizer's settings, which may have changed
        since there are programs."""
        settings = [value for name, value in vars(optimizer).items() if name not in _RATE]
        known = self._settings
        if len(known) != len(settings) or not all(map(_same, known, settings)):
            self._changes += bool(self._made)
            self._made.clear()
            self._settings = settings
        return self._changes < MOST_CHANGES and not any(map(callable, settings))

    def __deepcopy__(self, memo: Any) -> UpdatePrograms:
        return UpdatePrograms()

    def __reduce__(self) -> Any:
        return UpdatePrograms, ()


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) in _PLAIN and type(a) is type(b) and a == b)


def _program(optimizer: Any, variables: list[td.Variable]) -> BackgroundFunction:
    def update(grads: list[td.Tensor], rate: td.Tensor, step: td.Tensor) -> None:
        optimizer.update_all(grads, variables, rate, step)

    return BackgroundFunction(update, f"{optimizer.name}_update")
