"""Programs for eager updates: one for each list of variables that an optimizer updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import treadle as td
from treadle.keras.optimizers.schedules import LearningRateSchedule
from treadle.module import BackgroundFunction

_OWN = __name__.rpartition(".")[0]  # the package of the rules that are known
_PLAIN = (bool, int, float, str, type(None))
MOST_LISTS = 8  # of variables, for which there are programs at once
MOST_CHANGES = 8  # of an optimizer's settings, after which its updates remain eager


class UpdatePrograms:
    """The programs of one optimizer. They belong to it alone: a copy of the optimizer has none.

    The rules and schedules of this package are compiled. What those of a user do is not known:
    they are called for each update, and so are functions that an attribute of the optimizer or
    the constraint of a variable holds.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], BackgroundFunction | None] = {}
        self._settings: list[Any] = []  # the values that the programs were made with
        self._are_known = False
        self._changes = 0

    def run(
        self, optimizer: Any, grads: Sequence[Any], variables: Sequence[td.Variable]
    ) -> bool:
        """Do what ``optimizer.update_all(grads, variables)`` does by a program; False where there
        is none, or none yet."""
        settings = list(vars(optimizer).values())
        known = self._settings
        if len(known) != len(settings) or not all(map(_same, known, settings)):
            self._changes += bool(self._made)
            self._made.clear()
            self._settings, self._are_known = settings, _is_known(optimizer)
        if not self._are_known or self._changes >= MOST_CHANGES:
            return False
        key = tuple(map(id, variables))  # which the programs hold
        if key not in self._made:
            if len(self._made) >= MOST_LISTS:
                self._made.clear()
            self._made[key] = _program(optimizer, list(variables))
        program = self._made[key]
        return program is not None and program.run(*grads)

    def __deepcopy__(self, memo: Any) -> UpdatePrograms:
        return UpdatePrograms()

    def __reduce__(self) -> Any:
        return UpdatePrograms, ()


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) in _PLAIN and type(a) is type(b) and a == b)


def _is_known(optimizer: Any) -> bool:
    """Whether a program does what the optimizer does: all code that it calls is of this package,
    and schedules cannot be changed unnoticed."""
    attributes = dict(vars(optimizer))
    schedule = attributes.pop("_schedule", None)
    given = attributes.pop("_start_rate", None)  # of a rate that is a variable by now
    parts = (optimizer, schedule) if schedule is not None else (optimizer,)
    return (
        all(type(part).__module__.startswith(_OWN) for part in parts)
        and (schedule is None or isinstance(schedule, LearningRateSchedule))
        and not any(map(callable, attributes.values()))
        and not callable(given)
    )


def _program(optimizer: Any, variables: list[td.Variable]) -> BackgroundFunction | None:
    """None where a variable is of a class of its own, or has a constraint."""
    if not all(type(v) is td.Variable and v.constraint is None for v in variables):
        return None

    def update(*grads: td.Tensor) -> None:
        optimizer.update_all(list(grads), variables)

    return BackgroundFunction(update, f"{optimizer.name}_update")
