"""The memory of a program, counted from its graph and its plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from treadle.core.shapes import Dim, product
from treadle.core.spec import ListSpec, ResourceSpec, Spec, spec_text
from treadle.graph.ir import Graph, Node
from treadle.runtime.memory.plan import MemoryPlan, rounded
from treadle.runtime.memory.use import Array, Maker, MemoryUse
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import Block, Place, Step, node_of

LARGEST = 3  # temporaries of known size that are named, and of other sizes
_FOUND_OUT = ("late", "grown", "buffer", "joined", "element")  # kinds of places


def memory_use(
    graph: Graph, outputs: Iterable[int], constants: Iterable[Any], places: Iterable[Place],
    lists: bool, block: Block, plan: MemoryPlan,
) -> MemoryUse:  # fmt: skip
    """The memory of a program.

    Args:
        outputs: numbers of the results whose memory is made before the call.
        constants: the arrays of its literals and captures.
        places: all temporaries, planned ones and others.
        lists: whether the program has lists.
        block: the schedule.
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
        large=tuple(_large(block, plan)),
    )


def _large(block: Block, plan: MemoryPlan) -> list[Array]:
    """The largest temporaries, and some of those whose size is not known yet."""
    makers: dict[Place, Step] = {}
    for step in all_steps(block):
        for place in step.writes:
            makers.setdefault(place, step)
    sizes = {p: p.room for p in plan.live}
    known = {p: size for p, size in sizes.items() if isinstance(size, int)}
    first = sorted(known, key=lambda p: -known[p])[:LARGEST]
    others = [p for p in sizes if p not in known][:LARGEST]
    found = []
    for place in (*first, *others):
        made_by = makers.get(place)
        node = None if made_by is None else node_of(made_by)
        text = f"{place.dtype.short}[{', '.join(map(str, place.dims))}]"
        if node is not None and place is getattr(made_by, "scratch", None):
            # Bytes tell the user nothing, the array that they serve does.
            text = f"scratch for {spec_text(node.outputs[0].spec)}"
        found.append(Array(place.room, text, maker(node)))
    return found


def maker(node: Node | None) -> Maker | None:
    return None if node is None else Maker(node.op.name, node.origin)


def _size(size: Dim) -> Dim:
    return rounded(size) if isinstance(size, int) else size


def _total(specs: Iterable[Spec]) -> Dim:
    total: Dim = 0
    for spec in specs:
        total = total + product(spec.dims) * spec.dtype.size
    return total
