"""Graphs of the functions that run between `trace_on` and `trace_export`."""

from __future__ import annotations

import logging
from typing import Any

from treadle.core import locks
from treadle.core.context import add_watcher, context, remove_watcher
from treadle.core.devices import Device
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.graph.ir import Graph
from treadle.ops.conversion import constant
from treadle.profiler.session import start, stop
from treadle.summary.graphs import graph_def
from treadle.summary.messages import message_module, metadata_for
from treadle.summary.values import summary_scope, write
from treadle.summary.writers import state

_log = logging.getLogger("treadle")


class _Trace:
    """Attributes:
    graphs: those of functions that ran, in order.
    profiles: whether a profile runs beside it.
    """

    def __init__(self, profiles: bool) -> None:
        self.graphs: dict[int, Graph] = {}
        self.profiles = profiles

    def ran(self, name: str, device: Device, since: int, of: Any) -> None:
        if isinstance(of, Graph):
            self.graphs.setdefault(id(of), of)

    def message(self) -> Tensor:
        """The graphs as a message RunMetadata."""
        made = message_module("compat.proto.config_pb2").RunMetadata()
        for graph in list(self.graphs.values()):
            made.function_graphs.add().pre_optimization_graph.CopyFrom(graph_def(graph))
        return constant(made.SerializeToString())


class _Current:
    trace: _Trace | None = None


_lock = locks.lock()


def trace_on(
    graph: bool = True, profiler: bool = False, profiler_outdir: str | None = None
) -> None:
    """Begin to collect the graphs of functions that run, in all threads.

    Args:
        graph: collect graphs.
        profiler: make a profile as well, as `td.profiler.experimental.start` does.
        profiler_outdir: the folder of the profile, without which there is none.
    """
    if context.recorder is not None:
        _log.warning("Cannot enable trace inside a td.function.")
        return
    with _lock:
        if _Current.trace is not None:
            _log.warning("Trace already enabled")
            return
        if profiler and profiler_outdir is None:
            _log.warning("No `profiler_outdir` passed to trace_on(). Profiler won't be enabled.")
            profiler = False
        if profiler:
            start(profiler_outdir)
        _Current.trace = _Trace(profiler)
        if graph or profiler:
            add_watcher(_Current.trace)


def trace_export(name: str, step: Any = None, profiler_outdir: str | None = None) -> None:
    """Stop collecting, and write the graphs to this thread's default writer, if there is one.

    Args:
        name: of the summary.
        step: an integer scalar; None: that of `td.summary.experimental.set_step`.
        profiler_outdir: accepted for TensorFlow programs: `trace_on` says where profiles go.

    Raises:
        ValueError: nothing is collected, or there is a writer but no step.
    """
    if context.recorder is not None:
        _log.warning("Cannot export trace inside a td.function.")
        return
    trace = _Current.trace
    if trace is None:
        raise ValueError(
            f"Must enable trace before export through td.summary.trace_on.{at(user_origin())}"
        )
    if state.writer is not None:
        kind = "graph_run_metadata" if trace.profiles else "graph_run_metadata_graph"
        with summary_scope(name, f"{kind}_summary") as (tag, _):
            write(tag, trace.message, step, metadata_for(kind, b"1"))
    trace_off()


def trace_off() -> None:
    """Stop collecting; nothing where nothing is collected. A profile that `trace_on` began is
    written."""
    with _lock:
        trace, _Current.trace = _Current.trace, None
    if trace is not None:
        remove_watcher(trace)
        if trace.profiles:
            stop()
