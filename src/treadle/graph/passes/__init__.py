"""The passes over graphs that are the same for every target, and their order.

Each can be switched off by name (`core.switches`). `treadle.runtime.passes` has those that prepare
an optimized graph for its target.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.core.switches import declare
from treadle.core.switches import disabled as disabled
from treadle.graph.ir import Graph
from treadle.graph.passes.accumulations import gather_accumulations
from treadle.graph.passes.algebra import simplify_algebra
from treadle.graph.passes.batching import batch_products
from treadle.graph.passes.carried_elements import carry_elements
from treadle.graph.passes.choices import choose_numbers
from treadle.graph.passes.common import merge_common_subexpressions
from treadle.graph.passes.complex_parts import split_complex_numbers
from treadle.graph.passes.conditionals import inline_conditionals
from treadle.graph.passes.constants import fold_constants
from treadle.graph.passes.counted_lists import resolve_counted_lists
from treadle.graph.passes.custom_gradients import drop_custom_gradients
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.passes.element_shapes import infer_element_shapes
from treadle.graph.passes.elements import write_elements
from treadle.graph.passes.equal_sizes import unify_sizes
from treadle.graph.passes.factors import lay_out_factors
from treadle.graph.passes.forwarding import forward_variables
from treadle.graph.passes.independent_iterations import do_iterations_at_once
from treadle.graph.passes.invariants import hoist_invariants
from treadle.graph.passes.joined_iterations import join_iterations
from treadle.graph.passes.late_operands import order_operands
from treadle.graph.passes.list_sums import add_to_elements
from treadle.graph.passes.magnitudes import compare_squares
from treadle.graph.passes.masked import use_masks
from treadle.graph.passes.parts import place_parts
from treadle.graph.passes.pooling import mask_winners
from treadle.graph.passes.powers import reduce_powers
from treadle.graph.passes.product_sums import add_rows_first
from treadle.graph.passes.products import prepare_products
from treadle.graph.passes.repeats import add_repeats_first
from treadle.graph.passes.row_sums import keep_rows_apart
from treadle.graph.passes.thin_products import write_thin_products_out
from treadle.graph.passes.trips import apply_trip_counts
from treadle.graph.passes.unflatten import unflatten_rows
from treadle.graph.pipeline import Pass, Report, Runs, switched_on

PIPELINE: tuple[Pass, ...] = (
    Pass("custom_gradients", drop_custom_gradients, "first: they hide what results are made of"),
    Pass("constants", fold_constants, "early: the others look for constants"),
    Pass("conditionals", inline_conditionals, "predicates are folded; what it exposes comes next"),
    Pass("choices", choose_numbers, "with the other conditionals; before equal values are merged"),
    Pass("forwarding", forward_variables, "branches are gone; equal reads become equal values"),
    Pass("algebra", simplify_algebra, "before merging, which then sees normal forms"),
    Pass("powers", reduce_powers, "after x ** 1 went; its squares can be merged"),
    Pass("complex_parts", split_complex_numbers, "after powers; what follows sees real tensors"),
    Pass("magnitudes", compare_squares, "after complex_parts, which makes the magnitudes"),
    Pass("products", prepare_products, "what it adds is merged, and leaves loops"),
    Pass("unflatten", unflatten_rows, "the reshapes that it moves meet others in algebra"),
    Pass("repeats", add_repeats_first, "what it adds up is merged with other sums"),
    Pass("product_sums", add_rows_first, "likewise; after repeats, which leaves fewer readers"),
    Pass("common", merge_common_subexpressions, "after all that makes values equal"),
    Pass("elements", write_elements, "equal views are one value; before rows leave loops"),
    Pass("masked", use_masks, "after common; leaves what it replaced"),
    Pass("pooling", mask_winners, "equal images are one value; leaves what it replaced"),
    Pass("dead_code", eliminate_dead_code, "the rewrites above leave what they replaced"),
    Pass("invariants", hoist_invariants, "only what lives is worth an operand of a loop"),
    Pass("trips", apply_trip_counts, "after constants: what loops count to is known"),
    Pass("counted_lists", resolve_counted_lists, "after trips: positions are known"),
    Pass("list_sums", add_to_elements, "after counted_lists, which leaves fewer lists"),
    Pass("batching", batch_products, "after invariants: factors have become operands of the loop"),
    Pass("accumulations", gather_accumulations, "after trips: a loop may run back over a counted"),
    Pass("row_sums", keep_rows_apart, "with the other sums of loops"),
    Pass("factors", lay_out_factors, "after what takes products out of loops"),
    Pass("element_shapes", infer_element_shapes, "last: dims have become known, uses are final"),
    Pass("parts", place_parts, "last of all: others know positions by their counters", last=True),
    Pass("equal_sizes", unify_sizes, "after parts, which tells by how much sizes grow", last=True),
    Pass("thin_products", write_thin_products_out, "sizes of parts are known", last=True),
    Pass("independent_iterations", do_iterations_at_once, "positions move as symbols", last=True),
    Pass("joined_iterations", join_iterations, "positions are symbols that move", last=True),
    Pass("carried_elements", carry_elements, "no loop changes its variables any more", last=True),
    Pass("late_operands", order_operands, "what loops carry on in registers is known", last=True),
)

# What runs again after the last passes: they leave what they replaced.
CLEANING = frozenset({"algebra", "common", "dead_code"})

# What one pass exposes to an earlier one is found in the next round.
MOST_ROUNDS = 4


for _item in PIPELINE:
    declare(_item.name, "graph", _item.reason)


def optimize(
    graph: Graph,
    pipeline: tuple[Pass, ...] = PIPELINE,
    dump: Callable[[str, Graph], None] | None = None,
) -> list[Report]:
    """Run the passes on `graph`, in place, until none of them would change anything more.

    Args:
        dump: called with a label and the graph after every pass that changed it.
    """
    active = switched_on(pipeline)
    runs = Runs(graph, "tracing", dump)
    rounds = [p for p in active if not p.last]
    number = idle = 0  # idle: how many passes one after the other have changed nothing
    for number in range(MOST_ROUNDS):
        for item in rounds:
            if idle == len(rounds):
                break
            idle = 0 if runs.run(item, number) else idle + 1
        if idle == len(rounds):
            break
    final = [runs.run(p, number) for p in active if p.last]
    if any(final):
        for item in rounds:
            if item.name in CLEANING:
                runs.run(item, number)
    return runs.reports
