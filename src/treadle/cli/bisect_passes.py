"""`treadle bench --bisect-passes`: what each pass over graphs contributes to a workload."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

from rich.table import Table

import treadle as td
from treadle.bench.timing import seconds_per_call
from treadle.passes import PIPELINE, disabled

Job = tuple[Callable[..., Any], Sequence[Any]]


class Contribution(NamedTuple):
    """A workload with passes switched off; times in seconds."""

    off: str  # the pass that was left out, "all", or "" for none
    graph: float
    first_call: float


def contributions(workload: Callable[[], Job]) -> list[Contribution]:
    """The workload with every pass, without each of them in turn, and without any."""
    calls: dict[str, Callable[[], Any]] = {}
    first: dict[str, float] = {}
    for off in ("", *(item.name for item in PIPELINE), "all"):
        python, arguments = workload()
        graph = td.function(python)
        calls[off] = partial(graph, *arguments)
        with ExitStack() as stack:
            if off:
                stack.enter_context(disabled(off))
            start = time.perf_counter()
            calls[off]()
            first[off] = time.perf_counter() - start
    times = seconds_per_call(calls, rounds=3)
    return [Contribution(off, times[off], first[off]) for off in calls]


def table(name: str, found: Sequence[Contribution]) -> Table:
    """How much slower each choice of passes is than all of them together."""
    whole = found[0].graph
    shown = Table(title=f"{name}: passes switched off one by one")
    shown.add_column("without")
    for heading in ("graph (µs)", "times as long", "first call (ms)"):
        shown.add_column(heading, justify="right")
    for off, graph, first_call in found:
        shown.add_row(
            off or "(every pass is on)",
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
