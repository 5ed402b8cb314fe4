"""How much memory a run of a program needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from treadle.core.shapes import Dim, product, substitute
from treadle.core.spec import ListSpec, ResourceSpec, Spec
from treadle.graph.ir import Graph
from treadle.runtime.memory.plan import Plan, rounded
from treadle.runtime.schedule.steps import Place

_FOUND_OUT = ("late", "grown", "buffer", "joined", "element")  # kinds of places


@dataclass(frozen=True)
class MemoryUse:
    """Bytes in use during a run; expressions where dims are symbolic.

    Attributes:
        arguments: the arrays passed in.
        variables: those that the program reads or writes.
        constants: captured tensors and literal arrays.
        outputs: the results.
        workspace: the planned memory of all temporaries.
        temporaries: what they would take if they did not share it.
        grows: whether lists and arrays of sizes found out by the program come on top.
    """

    arguments: Dim = 0
    variables: Dim = 0
    constants: Dim = 0
    outputs: Dim = 0
    workspace: Dim = 0
    temporaries: Dim = 0
    grows: bool = False

    @property
    def peak(self) -> Dim:
        """Everything that exists at once when the program runs."""
        named = (self.arguments, self.variables, self.constants, self.outputs, self.workspace)
        return sum(named, start=0)

    def at(self, sizes: Mapping[str, Dim]) -> MemoryUse:
        """The same with values for symbols."""
        known: dict[str, Any] = {
            f.name: substitute(getattr(self, f.name), dict(sizes))
            for f in fields(self)
            if f.name != "grows"
        }
        return replace(self, **known)

    def __str__(self) -> str:
        rows = [f"peak: {_text(self.peak)} bytes"]
        for name in ("arguments", "variables", "constants", "outputs"):
            rows.append(f"  {name}: {_text(getattr(self, name))}")
        saved = f", shared by {_text(self.temporaries)} of temporaries" if self.temporaries else ""
        rows.append(f"  workspace: {_text(self.workspace)}{saved}")
        if self.grows:
            rows.append("  and lists and arrays whose sizes are found out while it runs")
        return "\n".join(rows)


def _text(size: Dim) -> str:
    return f"{size:,}" if isinstance(size, int) else str(size)


def memory_use(
    graph: Graph, outputs: Iterable[int], constants: Iterable[Any], places: Iterable[Place],
    lists: bool, plan: Plan,
) -> MemoryUse:  # fmt: skip
    """The memory of a program.

    Args:
        outputs: numbers of the results whose memory is made before the call.
        constants: the arrays of its literals and captures.
        places: all temporaries, planned ones and others.
        lists: whether the program has lists.
    """
    specs = [p.spec for p in graph.params[: len(graph.params) - len(graph.captures)]]
    held = [p.spec for p in graph.params if isinstance(p.spec, ResourceSpec)]
    given = list(outputs)
    slots: Dim = sum(plan.slot_sizes, start=0)
    return MemoryUse(
        arguments=_total(s for s in specs if not isinstance(s, ResourceSpec | ListSpec)),
        variables=_total(held),
        constants=sum(array.nbytes for array in constants),
        outputs=_total(graph.results[n].spec for n in given),
        workspace=plan.static_bytes + slots,
        temporaries=sum((_size(place.bytes) for place in plan.live), start=0),
        grows=lists
        or len(given) < len(graph.results)
        or any(place.kind in _FOUND_OUT for place in places),
    )


def _size(size: Dim) -> Dim:
    return rounded(size) if isinstance(size, int) else size


def _total(specs: Iterable[Spec]) -> Dim:
    total: Dim = 0
    for spec in specs:
        total = total + product(spec.dims) * spec.dtype.size
    return total
