"""What a kind of device gives to the compiler (`treadle.runtime.devices` has those that exist)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from treadle.graph.ir import Graph
    from treadle.ops.registry import Op
    from treadle.runtime.executable import Executable
    from treadle.runtime.planned import Planned
    from treadle.runtime.schedule.facts import Facts


class ProgramMemory(Protocol):
    """The memory of running programs, as callbacks into Python (`treadle.runtime.callbacks`) use
    it. Buffers of tensors are the device's `treadle.core.storage.Storage`."""

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


class Backend:
    """A kind of device: how programs for it are made, kept and found again.

    A backend must have `facts` and `build`. One that also has `key`, `record` and `load` keeps its
    programs on disk.
    """

    @property
    def program_memory(self) -> ProgramMemory:
        """The memory of its programs."""
        raise NotImplementedError(f"{type(self).__name__} counts no memory")

    def facts(self) -> Facts:
        """What passes and the schedule must know of the device, as it is set up now."""
        raise NotImplementedError

    def build(self, planned: Planned) -> Executable:
        """A program for a schedule.

        Where the facts say that the device has memory of its own (not `Facts.unified`), operands
        without a place are registers of the host, which kernels get by value. `Evaluate`,
        conditions and sizes are the host's, and only a `Fetch` or the operands of a Python
        callback bring it something from the device. Places of kind "status" are zero when a call
        begins; the `Verdict` at the end reads them and calls
        `treadle.runtime.schedule.status.raise_noted`. Where the host raises an error before, the
        status is read first: a check that the device made earlier may have failed.

        Raises:
            Unsupported: the backend has no form of one of its steps.
        """
        raise NotImplementedError

    def expect_compilation(self) -> None:
        """A function is about to be traced: begin what any program needs, on another thread."""

    def begin_compilation(self, graph: Graph) -> None:
        """A graph is about to be compiled: begin what its program needs, on another thread."""

    def runs_eagerly(self, op: Op) -> bool:
        """Whether eager operations on its tensors are programs of one operation; else NumPy
        computes them on the host."""
        return False

    @property
    def eager_elements(self) -> int | None:
        """From how many elements on eager operations on the host's arrays may be programs; None
        where this backend makes none for them."""
        return None

    def compile_later(
        self, key: str, compile: Callable[[], None], graph: Graph | None = None
    ) -> None:
        """Let another thread make a program for which nobody waits, unless it is about to.

        Args:
            key: names the program.
            compile: makes it, and does not raise.
            graph: what it is made from, where that is known.
        """

    def by_routine(
        self, op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]
    ) -> tuple[Any, ...] | None:
        """The results of an op (`Rows.eagerly`) in eager execution; None where NumPy is to compute
        them."""
        return None

    def key(self) -> str | None:
        """All that decides what a graph is compiled to, except the graph, treadle's source and
        switches: the device, its settings, the versions of its compiler. None where programs are
        not kept on disk, or nothing can be compiled here."""
        return None

    def record(self, executable: Executable, traced: Graph, planned: Planned) -> bytes | None:
        """A program as it is kept on disk; None for one that only this process can run.

        Args:
            traced: the graph that the program was made from.
        """
        return None

    def load(
        self, data: bytes, graph: Graph, compile: Callable[[Graph], Executable]
    ) -> Executable | None:
        """The program that `record` wrote for an equal graph; None where a part of it is missing
        or damaged.

        Args:
            compile: makes the program of the graph anew, for what a record does not tell.
        """
        return None
