"""Executable: what a graph becomes, and how it is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from treadle.core.list_value import ListValue
from treadle.core.shapes import Dim, substitute
from treadle.core.texts import Texts
from treadle.graph.ir import Graph
from treadle.ops.state import Variable
from treadle.runtime.symbols import broadcast_guards, symbol_sources

if TYPE_CHECKING:
    from treadle.runtime.memory.use import MemoryUse


_KEPT = (Variable, ListValue)  # values that have no buffer


class Executable:
    """Runs one graph.

    Attributes:
        graph: the graph that runs, after passes.
        mode: "native" or "interpreted".
        reason: why it is not native ("" when it is).
        texts: what `inspect` shows beside the graph: writers of texts, by the name of the stage.
        counters: numbers about the compilation, by name.
        note: how it shares a program with other traces, or why it does not ("": not tried).
        calls: which ops call Python in its loops ("" for none).
        prepared: writes the graph as it was scheduled, where one was.
        exact: the graph as it was traced, where the program takes sizes to be equal that results of
            it tell: the interpreter runs it where they differ. None: `graph` is as exact.
        stretched: runs another program where NumPy stretches sizes that this one takes to be equal;
            it gives None where there is none.
    """

    mode = "interpreted"
    check_numerics = False

    def __init__(self, graph: Graph, reason: str = "") -> None:
        self._graph = graph
        self.reason = reason
        self.note = ""
        self.calls = ""
        self.counters: dict[str, int] = {}
        self.texts: dict[str, Callable[[], str]] = {}
        self.prepared: Callable[[], str] | None = None
        self.exact: Graph | None = None
        self.stretched: Callable[[Sequence[Any]], list[Any] | None] | None = None

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """Run on a value for every parameter: buffers of the graph's device, which are C-contiguous
        ndarrays on the host, and Variables for handles.

        Returns:
            A buffer for every result, or a list value.

        Raises:
            InvalidArgumentError and others, as the ops do.
        """
        raise NotImplementedError

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def exact_graph(self) -> Graph:
        """The graph that takes no sizes to be equal."""
        return self.exact or self.graph

    @property
    def guards(self) -> list[tuple[Dim, Dim]]:
        """Dims that the graph takes to be equal."""
        return list(broadcast_guards(self.graph))

    def is_stretched(self, arrays: Sequence[Any]) -> bool:
        """Whether one of two sizes of the arguments that the graph takes to be equal is 1."""
        return is_stretched(self.graph, self.guards, arrays)

    def where_sizes_differ(self, arrays: Sequence[Any]) -> list[Any]:
        """Run on sizes that are not equal where the program takes them to be: by a program for
        these sizes, else by the interpreter, which stretches sizes of 1 or raises the op's error.

        Nothing has run before that counts: a program compares the sizes of its arguments first, and
        leaves for other sizes only while it has changed nothing (`schedule.restarts`).
        """
        found = None
        if self.stretched is not None and self.is_stretched(arrays):
            found = self.stretched(arrays)
        return self.interpreted(arrays) if found is None else found

    def interpreted(self, arrays: Sequence[Any]) -> list[Any]:
        """What the interpreter gives, which runs on the host wherever the buffers are."""
        from treadle.runtime import interpreter

        graph = self.exact_graph
        storage = graph.device.storage
        given = [x if isinstance(x, _KEPT) else storage.to_host(x) for x in arrays]
        found = interpreter.run(graph, given, check_numerics=self.check_numerics)
        return [x if isinstance(x, _KEPT) else storage.from_host(x) for x in found]

    @property
    def stages(self) -> Texts:
        """The graph and the texts behind it, by name; each is written when it is read."""
        prepared = {} if self.prepared is None else {"graph for the target": self.prepared}
        return Texts({"graph": lambda: str(self.graph)} | prepared | self.texts)

    @property
    def memory(self) -> MemoryUse | None:
        """How much memory a run needs; None where that is not planned."""
        return None


def is_stretched(
    graph: Graph, guards: Sequence[tuple[Dim, Dim]], values: Sequence[Any]
) -> bool:
    """Whether one of two sizes of arguments that a graph takes to be equal is 1, and the other not.

    Args:
        guards: pairs of dims that it takes to be equal.
    """
    sources = symbol_sources(graph.params)
    sizes = {s.name: values[s.argument].shape[s.axis] for s in sources}
    pairs = ([substitute(d, sizes) for d in pair] for pair in guards)
    return any(a != b and 1 in (a, b) for a, b in pairs)


class AroundProgram(Executable):
    """Runs a program of another graph, whose arguments and results it makes and reads.

    Args:
        graph: the graph that callers know; program: the other one's.
    """

    def __init__(self, graph: Graph, program: Executable) -> None:
        super().__init__(graph, program.reason)
        self.program, self.mode, self.note = program, program.mode, program.note
        self.calls, self.counters = program.calls, program.counters
        self.texts, self.prepared = program.texts, program.prepared

    @property
    def graph(self) -> Graph:
        return self.program.graph

    @property
    def stages(self) -> Texts:
        return self.program.stages

    @property
    def memory(self) -> MemoryUse | None:
        return self.program.memory


class InterpretedExecutable(Executable):
    """Runs a graph node by node with NumPy, on the host wherever its buffers are."""

    def __init__(self, graph: Graph, reason: str, check_numerics: bool = False) -> None:
        super().__init__(graph, reason)
        self.check_numerics = check_numerics
        self.texts = {"program": lambda: f"interpreted: {reason}"}

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        return self.where_sizes_differ(arrays)  # which is all that it does
