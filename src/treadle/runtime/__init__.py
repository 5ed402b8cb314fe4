"""Executes graphs: the reference interpreter, and the compiler to native programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from treadle.core import dtypes
from treadle.core.spec import ListSpec
from treadle.ops.registry import Op, set_routines
from treadle.runtime import mechanisms  # noqa: F401  (declares them)
from treadle.runtime.collections_paused import collections_paused

if TYPE_CHECKING:
    from treadle.graph.ir import Graph
    from treadle.runtime.executable import Executable
    from treadle.runtime.options import Options


def _by_routine(
    op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]
) -> tuple[Any, ...] | None:
    """The results of an op in eager execution, where a routine is better than NumPy."""
    from treadle.runtime.devices import backend

    return backend().by_routine(op, arrays, attrs)


set_routines(_by_routine)


def compile(graph: Graph, options: Options | None = None) -> Executable:
    """An executable for a graph: a native program, or an interpreted one where there is none.

    Args:
        graph: a traced graph; it is not changed.
        options: see `treadle.runtime.options.Options`.
    """
    with collections_paused:
        return _on_words(graph, lambda g: _stored(g, options) or _compile_graph(g, options))


def _on_words(graph: Graph, compile: Callable[[Graph], Executable]) -> Executable:
    """The executable of a graph, which may have strings."""
    values = (v for node in graph.walk() for v in node.outputs)
    if not any(v.spec.dtype is dtypes.string for v in (*graph.params, *values)):
        return _on_lists(graph, compile)
    from treadle.runtime.words import StringExecutable

    return StringExecutable(graph, lambda g: _on_lists(g, compile))


def _on_lists(graph: Graph, compile: Callable[[Graph], Executable]) -> Executable:
    """The executable of a graph, which may have lists as arguments and results."""
    if not any(isinstance(v.spec, ListSpec) for v in (*graph.params, *graph.results)):
        return compile(graph)
    from treadle.runtime.passed_lists import ListExecutable

    return ListExecutable(graph, compile)


def _stored(graph: Graph, options: Options | None = None) -> Executable | None:
    """The program of the graph on disk."""
    from treadle.runtime.options import Options
    from treadle.runtime.stored import stored_program

    return stored_program(graph, options or Options(), _compile_again)


def _compile_again(graph: Graph) -> Executable:
    from treadle.runtime.compiler import compile_native

    return compile_native(graph)


def expect_compilation() -> None:
    """Tell that a function is about to be traced, whose program will be needed."""
    from treadle.runtime.devices import backend

    backend().expect_compilation()


def _compile_graph(graph: Graph, options: Options | None) -> Executable:
    if options is None or not (options.interpret or options.check_numerics):
        _begin_compilation(graph)
    with collections_paused:
        from treadle.runtime.compiler import compile_graph

        return compile_graph(graph, options)


def compile_native(graph: Graph) -> Executable:
    """A native program for a graph.

    Raises:
        Unsupported: there is none.
    """
    return _on_words(graph, lambda g: _stored(g) or _compile_native(g))


def stored_native(graph: Graph) -> Executable | None:
    """The program of a graph of arrays, where it is on disk."""
    return _stored(graph)


def _compile_native(graph: Graph) -> Executable:
    _begin_compilation(graph)
    with collections_paused:
        from treadle.runtime.compiler import compile_native

        return compile_native(graph)


def _begin_compilation(graph: Graph) -> None:
    from treadle.runtime.devices import backend

    backend(graph.device).begin_compilation(graph)


def __getattr__(name: str) -> Any:
    if name == "Executable":
        from treadle.runtime.executable import Executable

        return Executable
    if name == "Options":
        from treadle.runtime.options import Options

        return Options
    if name == "Unsupported":
        from treadle.runtime.schedule.facts import Unsupported

        return Unsupported
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
