"""The compiler's driver: passes, schedule, code; the interpreter where that is not possible."""

from __future__ import annotations

import os
import time
import warnings

from treadle.core import errors
from treadle.graph.ir import Graph
from treadle.graph.passes import optimize
from treadle.graph.passes.assumed_sizes import tells_sizes
from treadle.graph.rewrite import clone_graph
from treadle.runtime.devices import backend
from treadle.runtime.exclusive import exclusive
from treadle.runtime.executable import Executable, InterpretedExecutable
from treadle.runtime.memory.plan import plan_memory
from treadle.runtime.options import Options
from treadle.runtime.passes import prepare
from treadle.runtime.planned import Planned
from treadle.runtime.schedule.build import build_schedule
from treadle.runtime.schedule.builder import Builder
from treadle.runtime.schedule.facts import Facts, Unsupported
from treadle.runtime.schedule.loop_calls import calls_in_loops
from treadle.runtime.schedule.restarts import note_restarts
from treadle.runtime.stored import program_key, store


def compile_graph(graph: Graph, options: Options | None = None) -> Executable:
    """See `treadle.runtime.compile`."""
    options = options or Options()
    key = program_key(graph, options)
    executable = _executable(graph, options, key)
    executable.exact = graph if tells_sizes(graph) else None
    return exclusive(graph, executable)


def _executable(graph: Graph, options: Options, key: str | None) -> Executable:
    optimized = clone_graph(graph)
    optimize(optimized)
    if options.interpret or options.check_numerics:
        return InterpretedExecutable(optimized, "as asked for", options.check_numerics)
    try:
        return _compile(optimized, graph, key)
    except MemoryError:
        raise
    except Unsupported as unsupported:
        return _interpreted(optimized, unsupported, str(unsupported))
    except ImportError as error:
        return _interpreted(optimized, error, f"no compiler: {error}")
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return _interpreted(optimized, error, reason, " This is a fault of treadle.")


def _interpreted(graph: Graph, cause: Exception, reason: str, fault: str = "") -> Executable:
    """The graph for the interpreter, with a warning; an error where that is asked for.

    Raises:
        UnimplementedError: under TREADLE_STRICT=1, for a graph that no program is made for.
    """
    if _is_strict():
        if not isinstance(cause, Unsupported):
            raise cause
        message = f"{graph.name!r} cannot be compiled: {reason} (TREADLE_STRICT is set)"
        raise errors.UnimplementedError(None, None, message) from None
    warnings.warn(
        f"{graph.name!r} is interpreted, which is slow, as it could not be compiled: {reason}."
        f"{fault} TREADLE_STRICT=1 makes this an error.",
        RuntimeWarning,
        stacklevel=2,
    )
    return InterpretedExecutable(graph, reason)


def compile_native(graph: Graph) -> Executable:
    """See `treadle.runtime.compile_native`. A fault of the compiler is `Unsupported`, too."""
    key = program_key(graph, Options())
    optimized = clone_graph(graph)
    optimize(optimized)
    try:
        executable = _compile(optimized, graph, key)
        executable.exact = graph if tells_sizes(graph) else None
        return exclusive(graph, executable)
    except (MemoryError, Unsupported):
        raise
    except Exception as error:
        if _is_strict():
            raise
        raise Unsupported(f"{type(error).__name__}: {error}") from error


def _is_strict() -> bool:
    return os.environ.get("TREADLE_STRICT", "") not in ("", "0")


def plan_program(graph: Graph, facts: Facts | None = None) -> Planned:
    """The schedule of an optimized graph, and its plan of memory.

    Args:
        facts: of the machine that the program is for; of the device in use when omitted.

    Raises:
        Unsupported: the graph needs the interpreter.
    """
    facts = facts or backend(graph.device).facts()
    work = _prepared(graph, facts)
    builder = Builder(work, facts)
    block = build_schedule(builder)
    if os.environ.get("TREADLE_VERIFY", "") not in ("", "0"):
        from treadle.runtime.verify_bounds import verify_bounds
        from treadle.runtime.verify_residence import verify_residence

        verify_bounds(builder, block)
        verify_residence(builder, block)
    note_restarts(block)
    return Planned(graph, work, builder, block, plan_memory(block))


def _prepared(graph: Graph, facts: Facts) -> Graph:
    work = clone_graph(graph)
    prepare(work, facts)
    return work


def _compile(graph: Graph, traced: Graph, key: str | None) -> Executable:
    """Compile an optimized graph, and store the program under the key of the traced one."""
    started = time.perf_counter()
    planned = plan_program(graph)
    scheduled = time.perf_counter()
    target = backend(graph.device)
    executable = target.build(planned)
    executable.prepared = lambda: str(_prepared(graph, planned.builder.facts))
    executable.calls = calls_in_loops(planned.block)
    if executable.calls:
        slow = f"{graph.name!r} is slow: {executable.calls}"
        warnings.warn(slow, RuntimeWarning, stacklevel=2)
    executable.counters["microseconds_schedule"] = int(1e6 * (scheduled - started))
    executable.counters["microseconds_code"] = int(1e6 * (time.perf_counter() - scheduled))
    record = None if key is None else target.record(executable, traced, planned)
    if key is not None and record is not None:
        store(key, record)
    return executable
