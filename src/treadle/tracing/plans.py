"""Which plan serves a call: the first few are tried in turn, the others found by the call's form.

The form is cheap to compute and says little: calls that a plan accepts have the plan's form, and
few others do. The plan itself checks the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any

import numpy as np

from treadle.core import locks
from treadle.core.context import placed
from treadle.core.spec import array_spec
from treadle.core.tensor import DeviceTensor, StringTensor, Tensor
from treadle.tracing.python_plans import MISS, Plan

FRONT = 4  # plans tried one after another before the form is computed
MOST_PLANS = 4096
_PLAIN = frozenset({int, float, bool, str, bytes, type(None)})


class Plans:
    """The plans of one function for calls with the same keywords.

    Attributes:
        front: to be tried first, in this order. It is changed in place, and reading it needs no
            lock: a plan that is missed costs time only.
    """

    def __init__(self) -> None:
        self.front: list[Plan] = []
        self._by_form: dict[Hashable, tuple[Plan, ...]] = {}
        self._open: list[Plan] = []  # of traces with open dims, whose calls have many forms
        # By owner, form and scope, the oldest first.
        self._made: dict[tuple[int, tuple[Hashable, Any]], Plan] = {}
        self._lock = locks.lock()

    def call(self, values: tuple[Any, ...]) -> Any:
        """The result of the plan that accepts the values, or MISS."""
        for plan in self.front:
            result = plan(values)
            if result is not MISS:
                return result
        return self.further(values)

    def further(self, values: tuple[Any, ...]) -> Any:
        """The result of a plan that is not at the front, or MISS."""
        for plan in self._open:
            result = plan(values)
            if result is not MISS:
                return result
        if self._by_form:
            for plan in self._by_form.get(form_of(values), ()):
                result = plan(values)
                if result is not MISS:
                    return result
        return MISS

    def add(
        self,
        owner: object,
        values: tuple[Any, ...],
        has_open_dims: bool,
        make: Callable[[], Plan | None],
    ) -> bool:
        """Add the plan that `make` gives, unless `owner` has one for calls of this form in such a
        device scope.

        Returns:
            Whether there is one more plan now.
        """
        form = form_of(values, shapes=not has_open_dims)
        made_for = form, placed()
        if (id(owner), made_for) in self._made:
            return False
        plan = make()
        if plan is None:
            return False
        with self._lock:
            if len(self._made) >= MOST_PLANS:
                self._keep_front()
            self._made[id(owner), made_for] = plan
            if len(self.front) < FRONT:
                self.front.append(plan)
            elif has_open_dims:
                self._open.append(plan)
            else:
                self._by_form[form] = (*self._by_form.get(form, ()), plan)
        return True

    def _keep_front(self) -> None:
        """Begin anew: the plans in use will be made again."""
        self._made = {key: plan for key, plan in self._made.items() if plan in self.front}
        self._open.clear()
        self._by_form.clear()

    def were_called(self, owner: object) -> bool:
        """Whether a plan of the owner was called since this was asked last."""
        with self._lock:
            marks = [p.__globals__ for (a, _), p in self._made.items() if a == id(owner)]
        used = any(marks_of["used"] for marks_of in marks)
        for marks_of in marks:
            marks_of["used"] = False
        return used

    def remove(self, owners: Collection[object]) -> None:
        """Drop all plans of the owners."""
        addresses = {id(owner) for owner in owners}
        with self._lock:
            gone = {key for key in self._made if key[0] in addresses}
            plans = {self._made.pop(key) for key in gone}
            self.front[:] = [p for p in self.front if p not in plans]
            self._open[:] = [p for p in self._open if p not in plans]
            for form in {form for _, (form, _) in gone}.intersection(self._by_form):
                left = tuple(p for p in self._by_form[form] if p not in plans)
                if left:
                    self._by_form[form] = left
                else:
                    del self._by_form[form]

    def __len__(self) -> int:
        return len(self._made)


def form_of(values: tuple[Any, ...], shapes: bool = True) -> Hashable:
    """Something hashable that calls which one plan accepts have in common."""
    return tuple([_part(v, shapes) for v in values])


def _part(value: Any, shapes: bool) -> Any:
    kind = type(value)
    if kind is Tensor or kind is StringTensor:
        return value.spec if shapes else Tensor
    if kind is DeviceTensor:
        return value.spec if shapes else (DeviceTensor, value.spec.device)
    if kind is np.ndarray:
        try:
            return array_spec(value) if shapes else Tensor
        except TypeError:  # a dtype that no tensor has
            return kind
    if kind in _PLAIN:
        return kind, value
    if issubclass(kind, np.generic):
        return kind
    if kind is tuple or kind is list:
        return kind, *[_part(v, shapes) for v in value]
    if kind is dict:
        return frozenset([(k, _part(v, shapes)) for k, v in value.items()])
    return id(value)
