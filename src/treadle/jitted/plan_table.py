"""The plans that a jitted function keeps."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from treadle.core.switches import is_on
from treadle.jitted.arguments import Bound
from treadle.jitted.native_plans import native_plan
from treadle.jitted.plan import Plan
from treadle.runtime.cpu.dispatch.native_type import Calls, is_native
from treadle.runtime.cpu.dispatch.self_check import works
from treadle.tracing.concrete import ConcreteFunction


class PlanTable:
    """The plans of a jitted function by the keys of calls, and the native code's records of them.

    Args:
        function: the object that is called.
    """

    def __init__(self, function: Any) -> None:
        self._plans: dict[Any, Plan] = {}
        self._function = function if is_native(function) else None
        self._native: Calls | None = None

    @property
    def native(self) -> Calls | None:
        """The plans that native code tries; None before the first."""
        return self._native

    def find(self, key: Any) -> Plan | None:
        return self._plans.get(key)

    def add(self, key: Any, plan: Plan, varying: Collection[int]) -> None:
        """Keep a plan, unless `key` is None.

        Args:
            varying: the numbers of leaves that came with several ints: no program has them as
                constants any more.
        """
        if key is not None:
            self._plans[key] = plan
        self._drop([p for p in self._plans.values() if not p.constants.isdisjoint(varying)])

    def add_native(self, plan: Plan, bound: Bound, count: int, names: tuple[str, ...]) -> bool:
        """Let native code take such calls from now on, if it can.

        Returns:
            Whether there is a native plan now that was not there before.
        """
        if self._function is None or not is_on("native_calls") or not works():
            return False
        if self._native is None:
            self._native = Calls(self._function)
        form = (count, names)
        if not self._native.wants(plan, form):
            return False
        return self._native.add(plan, native_plan(plan, bound, count, names), form)

    def remove(self, traces: Collection[ConcreteFunction]) -> None:
        """Let go of the plans of traces."""
        gone = {id(trace) for trace in traces}
        self._drop([p for p in self._plans.values() if id(p.concrete) in gone])

    def _drop(self, plans: list[Plan]) -> None:
        addresses = {id(plan) for plan in plans}
        if plans:
            self._plans = {k: p for k, p in self._plans.items() if id(p) not in addresses}
            if self._native is not None:
                self._native.remove(plans)

    def were_called(self, trace: ConcreteFunction) -> bool:
        """Whether a plan of the trace took a call since this was asked last."""
        found = False
        for plan in [p for p in self._plans.values() if p.concrete is trace]:
            found |= plan.used
            plan.used = False
            if self._native is not None:
                found |= self._native.were_called(plan)
        return found
