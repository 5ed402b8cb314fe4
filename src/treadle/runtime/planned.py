"""A graph as it is planned for a device: what a backend makes a program of."""

from __future__ import annotations

from collections.abc import Callable

from treadle.core.locks import cached_property
from treadle.core.shapes import Dim
from treadle.core.spec import ListSpec, ResourceSpec
from treadle.graph.ir import Graph
from treadle.runtime.memory.plan import MemoryPlan
from treadle.runtime.memory.report import memory_use
from treadle.runtime.memory.use import MemoryUse
from treadle.runtime.schedule.builder import Builder
from treadle.runtime.schedule.printer import kernels_text, schedule_text
from treadle.runtime.schedule.steps import Block
from treadle.runtime.signature import Signature
from treadle.runtime.symbols import checked_on_entry, symbol_sources


class Planned:
    """A schedule, and all that a backend needs to know beside it.

    Attributes:
        graph: the optimized graph. It is interpreted where sizes differ that the program takes to
            be equal.
        work: the copy of it that the device's passes prepared, and that was scheduled.
        builder: what made the schedule. It knows the constants and the variables.
        block: the steps of the schedule.
        plan: where the temporaries lie in the workspace.
    """

    def __init__(
        self, graph: Graph, work: Graph, builder: Builder, block: Block, plan: MemoryPlan
    ) -> None:
        self.graph, self.work, self.builder = graph, work, builder
        self.block, self.plan = block, plan

    @cached_property
    def signature(self) -> Signature:
        """The order of arguments and results, and the arguments that symbols are sizes of."""
        params, builder = self.work.params, self.builder
        passed = params[: len(params) - len(self.work.captures)]
        cells = [i for i, p in enumerate(passed) if isinstance(p.spec, ResourceSpec)]
        outputs = [n for n in range(len(self.work.results)) if n not in builder.delivered]
        arrays = [place.number for place in builder.arguments]
        return Signature(arrays, cells, outputs, symbol_sources(params))

    @cached_property
    def equal_sizes(self) -> list[tuple[Dim, Dim]]:
        """Dims that the schedule takes to be equal and that are known when a call begins. The
        program compares them before it does anything."""
        known = {source.name for source in self.signature.symbols}
        return checked_on_entry(self.work, known)

    @cached_property
    def uses_lists(self) -> bool:
        """Whether the program has lists."""
        return any(isinstance(v.spec, ListSpec) for n in self.work.walk() for v in n.outputs)

    @cached_property
    def memory(self) -> MemoryUse:
        """How much memory a run needs."""
        builder = self.builder
        return memory_use(
            self.work, self.signature.outputs, builder.constants, builder.temporaries,
            self.uses_lists, self.block, self.plan,
        )  # fmt: skip

    @property
    def texts(self) -> dict[str, Callable[[], str]]:
        """What `inspect` shows of the plan, by the name of the stage."""
        return {
            "schedule": lambda: schedule_text(self.block, self.plan, self.builder.residence.host),
            "memory": lambda: str(self.memory),
            "kernels": lambda: kernels_text(self.block),
        }
