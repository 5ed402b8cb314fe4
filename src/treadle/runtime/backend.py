"""What a kind of device gives to the compiler (`treadle.runtime.devices` has those that exist)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from treadle.graph.ir import Graph
    from treadle.runtime.executable import Executable
    from treadle.runtime.memory.plan import Plan
    from treadle.runtime.schedule.builder import Builder
    from treadle.runtime.schedule.facts import Facts
    from treadle.runtime.schedule.steps import Block


class Storage(Protocol):
    """The memory of programs, as callbacks into Python (`treadle.runtime.callbacks`) use it."""

    def view(self, address: int, dtype: Any, shape: tuple[int, ...]) -> Any:
        """An ndarray with the elements at an address. It may be that memory itself, which the
        program writes again: who keeps the array copies it."""

    def write(self, address: int, array: Any) -> None:
        """Put the elements of an ndarray at an address, in row-major order."""

    def use(self) -> dict[str, int]:
        """Bytes of memory: "current" is in use, "peak" was the most at once, "kept" waits to be
        used again."""

    def reset_peak(self) -> None:
        """Let the peak begin at what is in use now."""


class Backend(Protocol):
    """A kind of device: how programs for it are made, kept and found again."""

    @property
    def storage(self) -> Storage:
        """The memory of its programs."""

    def expect_compilation(self) -> None:
        """A function is about to be traced: begin what any program needs, on another thread."""

    def begin_compilation(self, graph: Graph) -> None:
        """A graph is about to be compiled: begin what its program needs, on another thread."""

    def facts(self) -> Facts:
        """What passes and the schedule must know of the device, as it is set up now."""

    def build(
        self, graph: Graph, work: Graph, builder: Builder, block: Block, plan: Plan
    ) -> Executable:
        """A program for a schedule.

        Args:
            graph: the optimized graph, which is interpreted where shapes broadcast unexpectedly.
            work: the copy of it, prepared by the target's passes, that `block` is the schedule of.
            builder: what made the schedule; it knows the constants, arguments and variables.
            plan: where the temporaries lie.
        """

    def key(self) -> str | None:
        """All that decides what a graph is compiled to, except the graph, treadle's source and
        switches: the device, its settings, the versions of its compiler. None where nothing can be
        compiled here."""

    def record(
        self, executable: Executable, traced: Graph, builder: Builder, block: Block
    ) -> bytes | None:
        """A program as it is kept on disk; None for one that only this process can run.

        Args:
            traced: the graph that the program was made from.
        """

    def load(
        self, data: bytes, graph: Graph, compile: Callable[[Graph], Executable]
    ) -> Executable | None:
        """The program that `record` wrote for an equal graph; None where a part of it is missing
        or damaged.

        Args:
            compile: makes the program of the graph anew, for what a record does not tell.
        """
