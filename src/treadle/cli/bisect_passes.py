"""`treadle bench --bisect-passes`: what each pass and mechanism contributes to a workload."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

from rich.table import Table

import treadle as td
from treadle.bench.timing import seconds_per_call
from treadle.passes import disabled, switches

WARM = 3

Job = tuple[Callable[..., Any], Sequence[Any]]


class Contribution(NamedTuple):
    """A workload with something switched off; times in seconds."""

    off: str  # the pass or mechanism that was left out, "all", or "" for none
    graph: float
    first_call: float


def contributions(workload: Callable[[], Job]) -> list[Contribution]:
    """The workload with everything, without each pass and mechanism in turn, and without any."""
    calls: dict[str, Callable[[], Any]] = {}
    first: dict[str, float] = {}
    for off in ("", *(s.name for s in switches() if not s.required), "all"):
        python, arguments = workload()
        graph = td.function(python)
        calls[off] = partial(graph, *arguments)
        with ExitStack() as stack:
            if off:
                stack.enter_context(disabled(off))
            start = time.perf_counter()
            calls[off]()
            first[off] = time.perf_counter() - start
            for _ in range(WARM):  # plans of calls are made by the first few
                calls[off]()
    times = seconds_per_call(calls, rounds=3)
    return [Contribution(off, times[off], first[off]) for off in calls]


def table(name: str, found: Sequence[Contribution]) -> Table:
    """How much slower the workload is without each of them than with all."""
    whole, stages = found[0].graph, {s.name: s.stage for s in switches()}
    shown = Table(title=f"{name}: passes and mechanisms switched off one by one")
    shown.add_column("without")
    shown.add_column("of")
    for heading in ("graph (µs)", "times as long", "first call (ms)"):
        shown.add_column(heading, justify="right")
    for off, graph, first_call in found:
        shown.add_row(
            off or "(everything is on)",
            stages.get(off, ""),
            f"{graph * 1e6:,.1f}",
            f"{graph / whole:.2f}",
            f"{first_call * 1e3:,.0f}",
        )
    return shown


def to_json(found: Sequence[Contribution]) -> dict[str, dict[str, float]]:
    """Microseconds a call and milliseconds of the first one, by what was left out."""
    return {
        off or "none": {"graph_us": graph * 1e6, "first_call_ms": first_call * 1e3}
        for off, graph, first_call in found
    }
