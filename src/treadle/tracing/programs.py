"""The compiled programs of one function: traces that differ only in dims share one.

The first trace of a family is compiled for its shapes. When a second one comes, both are
generalized to a pattern with symbolic dims (`treadle.graph.families`), and the program made from
that serves it and every later trace that the pattern matches exactly. A trace that matches no
pattern is compiled for its own shapes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from treadle.core import locks
from treadle.core.shapes import Dim, substitute
from treadle.core.switches import is_on
from treadle.core.texts import Texts
from treadle.graph.ir import Graph
from treadle.graph.rewrite import clone_graph
from treadle.runtime import compile, compile_native
from treadle.runtime.executable import Executable
from treadle.runtime.memory.use import MemoryUse
from treadle.runtime.symbols import broadcast_guards
from treadle.tracing import settings

if TYPE_CHECKING:
    from treadle.graph.families import Pattern

MOST_SAMPLES = 3  # traces that a pattern is made of, besides the newest
MOST_SHARED = 4  # shared programs of one family that are tried
_FEW_FAMILIES = 64
MOST_FAILURES = 6  # after so many attempts a family's traces are compiled one by one


class SharedExecutable(Executable):
    """A program with symbolic dims as the program of one trace.

    Attributes:
        program: the shared program.
        sizes: the values of its symbols in this trace.
        note: says so in words.
    """

    mode = "native"

    def __init__(self, program: _SharedProgram, sizes: dict[str, Dim], number: int) -> None:
        self.program = program
        super().__init__(program.pattern.graph)
        self.sizes = sizes
        self.note = program.note(number)
        self.calls = program.executable.calls
        self.counters = program.executable.counters
        self.run = program.executable.run  # type: ignore[method-assign]

    @property
    def stretched(self) -> Any:
        return self.program.executable.stretched

    @stretched.setter
    def stretched(self, run: Any) -> None:
        if run is not None:
            self.program.executable.stretched = run

    @property
    def graph(self) -> Graph:
        return self.program.executable.graph

    @property
    def stages(self) -> Texts:
        values = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        here = f" (here {values})" if values else ""
        shared = self.program.executable.stages
        writers = {"shared program": lambda: self.note + here}
        writers |= {name: shared.writer(name) for name in shared}
        return Texts(writers | {"memory": lambda: str(self.memory)})

    @property
    def memory(self) -> MemoryUse | None:
        shared = self.program.executable.memory
        return None if shared is None else shared.at(self.sizes)


class _SharedProgram:
    """A pattern, and its program, which was compiled for trace number `number`."""

    def __init__(self, pattern: Pattern, executable: Executable, number: int) -> None:
        self.pattern = pattern
        self.executable = executable
        self.number = number
        self.guards = executable.guards

    def note(self, number: int) -> str:
        symbols = ", ".join(map(str, self.pattern.symbols)) or "no dims differ"
        if number == self.number:
            return f"compiled with symbolic dims: {symbols}"
        return f"shares the program of trace {self.number}: {symbols}"

    def sizes(self, graph: Graph) -> dict[str, Dim]:
        """The values of the symbols in `graph`.

        Raises:
            Mismatch: the program cannot run it.
        """
        return _sizes(self.pattern, self.guards, graph)


def _sizes(pattern: Pattern, guards: Sequence[tuple[Dim, Dim]], graph: Graph) -> dict[str, Dim]:
    """The match of a pattern, with the dims equal that its program takes to be equal."""
    from treadle.graph.families import Mismatch

    sizes = pattern.match(graph)
    for guard in guards:
        a, b = (substitute(dim, sizes) for dim in guard)
        if isinstance(a, int) and isinstance(b, int) and a != b:
            raise Mismatch(f"the program would take {guard[0]} and {guard[1]} to be equal")
    return sizes


class Programs:
    """Compiles the graphs of one function. Thread-safe.

    Nothing is kept alive: a shared program lives as long as a trace that uses it.
    """

    def __init__(self, compile: Callable[[Graph], Executable] = compile) -> None:
        """
        Args:
            compile: makes the program for the shapes of a graph.
        """
        self._lock = locks.lock()
        self._compile = compile
        self._families: dict[Hashable, _Family] = {}
        self._most = _FEW_FAMILIES  # when to look for families to drop

    def compile(self, graph: Graph, family: Hashable = None, number: int = 0) -> Executable:
        """The program for a graph.

        Args:
            family: the call's arguments up to dims: traces must have them in common, besides
                their graphs, to share programs.
            number: the trace's, for messages.
        """
        if not (settings.share_programs and is_on("shared_programs")):
            return self._compile(graph)
        key = (family, _kind(graph))
        with self._lock:
            found = self._families.get(key)
            if found is None:
                if len(self._families) >= self._most:
                    self._forget()
                found = self._families[key] = _Family(self._compile)
        return found.compile(graph, number)

    def shared(self, graph: Graph, family: Hashable = None) -> Executable | None:
        """The shared program that there is already for a graph. It waits for no compilation."""
        if not (settings.share_programs and is_on("shared_programs")):
            return None
        found = self._families.get((family, _kind(graph)))
        return None if found is None else found.shared(graph, 0)

    def _forget(self) -> None:
        """Drop the families whose traces are gone."""
        self._families = {k: f for k, f in self._families.items() if f.is_alive}
        self._most = max(_FEW_FAMILIES, 2 * len(self._families))


def _kind(graph: Graph) -> Hashable:
    """A key that graphs which share a program have in common."""
    values = (*graph.params, *graph.results)
    return (
        graph.name,
        graph.device,
        len(graph.results),
        *((type(v.spec), v.spec.dtype, v.spec.rank) for v in values),
    )


class _Family:
    """Graphs that may differ only in dims."""

    def __init__(self, compile: Callable[[Graph], Executable]) -> None:
        self._compile = compile
        self._lock = locks.lock()
        self._samples: list[weakref.ref[Graph]] = []  # the newest last
        self._programs: list[weakref.ref[_SharedProgram]] = []
        self._failures = 0
        self._callbacks = 0  # of a program for known shapes
        self._reason = ""  # why the last attempt to share failed

    @property
    def is_alive(self) -> bool:
        """Whether a trace of the family may still exist, or is being compiled."""
        return self._lock.locked() or not self._samples or any(r() for r in self._samples)

    def compile(self, graph: Graph, number: int) -> Executable:
        with self._lock:  # others wait, as they would otherwise compile the same
            executable = self.shared(graph, number) or self._generalized(graph, number)
            executable = executable or self._alone(graph)
            self._samples = [*self._samples, weakref.ref(graph)][-MOST_SAMPLES:]
            return executable

    def _alone(self, graph: Graph) -> Executable:
        """A program for the shapes of this graph."""
        executable = self._compile(graph)
        self._callbacks = executable.counters.get("callbacks", 0)
        if self._reason:
            executable.note = f"shares no program: {self._reason}"
        return executable

    def shared(self, graph: Graph, number: int) -> Executable | None:
        """A shared program that there is already."""
        living = _living(self._programs)
        if not living:
            return None
        from treadle.graph.families import Mismatch

        for program in living:
            try:
                return SharedExecutable(program, program.sizes(graph), number)
            except Mismatch as mismatch:
                self._reason = str(mismatch)
        return None

    def _generalized(self, graph: Graph, number: int) -> Executable | None:
        """A new shared program for the graph and earlier ones, if there is one for them all."""
        samples = _living(self._samples)
        programs = [p for p in self._programs if p() is not None]
        if not samples or len(programs) >= MOST_SHARED or self._failures >= MOST_FAILURES:
            return None
        from treadle.graph.families import Mismatch, NoPattern
        from treadle.runtime.schedule.facts import Unsupported

        try:
            pattern = _pattern(samples, graph)
            _sizes(pattern, _guards(pattern.graph), graph)
            program = self._program(pattern, number)
            executable = SharedExecutable(program, program.sizes(graph), number)
        except (NoPattern, Mismatch) as problem:
            self._failures += 1
            self._reason = str(problem)
            return None
        except Unsupported as problem:
            self._failures = MOST_FAILURES  # it would not be for other samples either
            self._reason = str(problem)
            return None
        self._programs = [weakref.ref(program), *programs]
        return executable

    def _program(self, pattern: Pattern, number: int) -> _SharedProgram:
        """The compiled pattern.

        Raises:
            Unsupported: it needs the sizes.
        """
        from treadle.runtime.schedule.facts import Unsupported

        executable = compile_native(pattern.graph)
        if executable.counters.get("callbacks", 0) > self._callbacks:
            raise Unsupported("with symbolic dims it would call back into Python")
        return _SharedProgram(pattern, executable, number)


def _pattern(samples: Sequence[Graph], graph: Graph) -> Pattern:
    """The pattern of a graph and as many of the samples as it has one with.

    Raises:
        NoPattern: it has none with any.
    """
    from treadle.graph.families import NoPattern, generalize

    chosen, pattern, reason = [graph], None, ""
    for sample in reversed(samples):
        try:
            pattern = generalize([sample, *chosen])
        except NoPattern as problem:
            reason = reason or str(problem)
        else:
            chosen.insert(0, sample)
    if pattern is None:
        raise NoPattern(reason)
    return pattern


def _guards(graph: Graph) -> list[tuple[Dim, Dim]]:
    """The dims that a program for a graph would take to be equal."""
    from treadle.graph.passes.assumed_sizes import assume_equal_sizes

    assumed = clone_graph(graph)
    assume_equal_sizes(assumed)
    return list(broadcast_guards(assumed))


def _living(references: Sequence[weakref.ref[Any]]) -> list[Any]:
    return [found for r in references if (found := r()) is not None]
