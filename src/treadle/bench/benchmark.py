"""`benchmark`: the user's own function, eager against graph."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import treadle as td

from .timing import seconds_per_call


@dataclass(frozen=True)
class BenchmarkResult:
    """What `benchmark` measured; times in seconds.

    `eager` and `graph` are medians of a call. `first_call` is the graph's first call, with
    tracing and compiling in it.
    """

    name: str
    eager: float
    graph: float
    first_call: float

    @property
    def speedup(self) -> float:
        """How many times faster the graph is than eager."""
        return self.eager / self.graph

    @property
    def worthwhile_after(self) -> int | None:
        """The number of calls from which tracing and compiling have paid, or None for never."""
        gain = self.eager - self.graph
        return max(1, round(self.first_call / gain)) if gain > 0 else None

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "eager_us": self.eager * 1e6,
            "graph_us": self.graph * 1e6,
            "speedup": self.speedup,
            "first_call_ms": self.first_call * 1e3,
        }

    def __repr__(self) -> str:
        after = self.worthwhile_after
        pays = f"pays off after {after:,} calls" if after else "does not pay off"
        return "\n".join(
            [
                f"benchmark of {self.name}",
                f"  eager       {duration(self.eager)} a call",
                f"  graph       {duration(self.graph)} a call, {self.speedup:.1f} x as fast",
                f"  first call  {duration(self.first_call)}, tracing and compiling; {pays}",
            ]
        )


def duration(seconds: float) -> str:
    """A time in the unit that suits it, in ten columns."""
    for unit, size in (("s ", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:7.2f} {unit}"
    return f"{seconds * 1e6:7.2f} µs"


def benchmark(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> BenchmarkResult:
    """Time `function(*args, **kwargs)` eagerly and as a graph.

    `function` is a plain Python function or one decorated with `td.function`, whose Python
    function is then what runs eagerly. NumPy arrays are better passed as tensors, as they would
    be in a program that cares about speed. The function is called many times in both modes, so
    its effects (variable updates, prints) happen as often.

    Returns a `BenchmarkResult`: medians over interleaved rounds, shown readably by its repr.
    """
    if not callable(function):
        raise TypeError(f"benchmark needs a function, not {type(function).__name__}")
    python: Callable[..., Any] = getattr(function, "python_function", function)
    # A new function, so that its first call is one even when the user has called theirs.
    graph = td.function(python)
    python(*args, **kwargs)
    td.test.experimental.sync_devices()
    start = time.perf_counter()
    graph(*args, **kwargs)
    td.test.experimental.sync_devices()
    first_call = time.perf_counter() - start
    times = seconds_per_call(
        {"eager": partial(python, *args, **kwargs), "graph": partial(graph, *args, **kwargs)}
    )
    name = getattr(python, "__name__", type(python).__name__)
    return BenchmarkResult(name, times["eager"], times["graph"], first_call)
