"""The passes that prepare an optimized graph for its target, and their order.

They run after those of `treadle.graph.passes`, on a copy of the graph that is scheduled then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from treadle.core.switches import declare, is_on
from treadle.graph.ir import Graph
from treadle.graph.passes import clean
from treadle.graph.pipeline import Pass, Report, Runs
from treadle.ops.control.control_flow import WHILE
from treadle.runtime.passes.checks import add_checks
from treadle.runtime.passes.moments import take_moments_in_parts
from treadle.runtime.passes.narrow_products import narrow_products
from treadle.runtime.passes.told_sizes import tell_sizes_first
from treadle.runtime.passes.unchanged_variables import read_unchanged
from treadle.runtime.passes.verdicts import add_verdicts
from treadle.runtime.schedule.facts import Facts


class TargetPass(NamedTuple):
    """A pass that knows the target.

    Attributes:
        run: rewrites a graph in place for a target; whether it changed anything.
        reason: what it does and why it stands where it stands.
        required: programs are wrong without it, so it cannot be switched off.
        cleaned: it leaves nodes that nobody needs any more, which passes over graphs then remove.
    """

    name: str
    run: Callable[[Graph, Facts], bool]
    reason: str
    required: bool = False
    cleaned: bool = False


def of_loops(name: str) -> Callable[[Graph, Facts], bool]:
    """A pass over loops, by its name in `loops`: graphs without any are left alone, and a process
    that has no others does not import it."""

    def run(graph: Graph, facts: Facts) -> bool:
        if not any(node.op is WHILE for node in graph.walk()):
            return False
        from treadle.runtime.passes import loops

        found: Callable[[Graph, Facts], bool] = getattr(loops, name)
        return found(graph, facts)

    run.__name__ = name
    return run


PIPELINE: tuple[TargetPass, ...] = (
    TargetPass(
        "joined_iterations", of_loops("join_iterations"),
        "does several iterations in one pass over an array; first, before loops change",
        cleaned=True,
    ),
    TargetPass(
        "carried_elements", of_loops("carry_elements"),
        "carries elements in registers from iteration to iteration; after joined_iterations",
        cleaned=True,
    ),
    TargetPass(
        "late_operands", of_loops("order_operands"),
        "takes the previous iteration's number last in minima; after carried_elements",
        cleaned=True,
    ),
    TargetPass(
        "additions", of_loops("add_in_place"),
        "gradients of parts are added to their sum in place, in loops; their positions get checks",
    ),
    TargetPass(
        "moments", take_moments_in_parts,
        "means and variances of columns read memory once, where blocks share the rows",
        cleaned=True,
    ),
    TargetPass(
        "checks", add_checks, "what eager execution refuses is refused by the program", True
    ),
    TargetPass(
        "verdicts", add_verdicts, "what a library routine refuses of its input is an error", True
    ),
    TargetPass(
        "unchanged_variables", read_unchanged,
        "an array that a loop hands on has one name; after checks, which read loop variables", True,
    ),
    TargetPass(
        "told_sizes", tell_sizes_first,
        "elements of lists that tell sizes are read before those whose sizes follow from them",
        True,
    ),
    TargetPass(
        "narrow_products", narrow_products,
        "products of 16-bit floats are computed without conversions where the target can",
    ),
    TargetPass(
        "factor_panels", of_loops("lay_out_panels"),
        "copies that products begin with are made once a loop; after unchanged_variables, which "
        "finds factors that a loop hands on, and narrow_products, whose products have no panels",
        cleaned=True,
    ),
)  # fmt: skip

for _item in PIPELINE:
    declare(_item.name, "target", _item.reason, _item.required)


def prepare(
    graph: Graph, facts: Facts, dump: Callable[[str, Graph], None] | None = None
) -> list[Report]:
    """Run the passes on a copy of an optimized graph, in place, once each.

    The graph for the interpreter has none of the checks that they add: NumPy's implementations
    check for themselves.

    Args:
        dump: called with a label and the graph after every pass that changed it.
    """
    runs = Runs(graph, "the passes for every target", dump)
    for item in PIPELINE:
        if is_on(item.name) and runs.run(_for(item, facts), 0) and item.cleaned:
            clean(runs)
    return runs.reports


def _for(item: TargetPass, facts: Facts) -> Pass:
    return Pass(item.name, lambda graph: item.run(graph, facts), item.reason)
