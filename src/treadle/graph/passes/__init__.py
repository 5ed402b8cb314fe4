"""The passes over graphs that are the same for every target, and their order.

Each can be switched off by name (`core.switches`). `treadle.runtime.passes` has those that prepare
an optimized graph for its target.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

from treadle.core.spec import ListSpec
from treadle.core.switches import declare
from treadle.core.switches import disabled as disabled
from treadle.graph.ir import Graph
from treadle.graph.passes.algebra import simplify_algebra
from treadle.graph.passes.assumed_sizes import assume_equal_sizes, drop_known_sizes
from treadle.graph.passes.choices import choose_numbers
from treadle.graph.passes.common import merge_common_subexpressions
from treadle.graph.passes.conditionals import inline_conditionals
from treadle.graph.passes.constants import fold_constants
from treadle.graph.passes.custom_gradients import drop_custom_gradients
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.passes.elements import write_elements
from treadle.graph.passes.forwarding import forward_variables
from treadle.graph.passes.joined_columns import join_columns
from treadle.graph.passes.masked import use_masks
from treadle.graph.passes.parts import place_parts
from treadle.graph.passes.powers import reduce_powers
from treadle.graph.passes.product_sums import add_rows_first
from treadle.graph.passes.products import prepare_products
from treadle.graph.passes.repeated_rows import add_repeats_first
from treadle.graph.passes.thin_products import write_thin_products_out
from treadle.graph.passes.unflatten import unflatten_rows
from treadle.graph.pipeline import Pass, Report, Runs, switched_on
from treadle.ops.control.control_flow import COND, WHILE
from treadle.ops.elementwise.powers import POW
from treadle.ops.linalg.matrices import MATMUL
from treadle.ops.reductions.reduction import REDUCE_SUM
from treadle.ops.state import ASSIGN, READ


def of_loops(name: str) -> Callable[[Graph], bool]:
    """A pass over loops, by its name in `loops`, which a process imports with its first loop."""

    def run(graph: Graph) -> bool:
        from treadle.graph.passes import loops

        found: Callable[[Graph], bool] = getattr(loops, name)
        return found(graph)

    run.__name__ = name
    return run


def of_lists(name: str) -> Callable[[Graph], bool]:
    """The same for a pass over lists, by its name in `lists`."""

    def run(graph: Graph) -> bool:
        values = (v for node in graph.walk() for v in (*node.inputs, *node.outputs))
        if not any(isinstance(v.spec, ListSpec) for v in values):
            return False
        from treadle.graph.passes import lists

        found: Callable[[Graph], bool] = getattr(lists, name)
        return found(graph)

    run.__name__ = name
    return run


def of_ops(ops: str, place: str, name: str) -> Callable[[Graph], bool]:
    """A pass over ops of a module of `treadle.ops`, by its place beside this module and its name
    there: a process that has not imported the ops has none in its graphs, and needs no pass."""

    def run(graph: Graph) -> bool:
        if f"treadle.ops.{ops}" not in sys.modules:
            return False
        module = importlib.import_module(f"treadle.graph.passes.{place}")
        found: Callable[[Graph], bool] = getattr(module, name)
        return found(graph)

    run.__name__ = name
    return run


PIPELINE: tuple[Pass, ...] = (
    Pass(
        "assumed_sizes", assume_equal_sizes,
        "takes operands to have one size; first, so that all others see known sizes",
    ),
    Pass(
        "custom_gradients", drop_custom_gradients,
        "drops the marks of custom gradients; early, as they hide how results are computed",
    ),
    Pass(
        "constants", fold_constants,
        "computes nodes whose operands are constants; early, as most passes look for constants",
    ),
    Pass(
        "conditionals", inline_conditionals,
        "puts a branch in place of a cond with a known predicate; after constants",
        rewrites=(COND,),
    ),
    Pass(
        "choices", choose_numbers,
        "computes both sides of a cheap cond and selects; before common, which merges equal ones",
        rewrites=(COND,),
    ),
    Pass(
        "forwarding", forward_variables,
        "gives a read the last assigned value; after conditionals, as branches hide writes",
        rewrites=(READ, ASSIGN),
    ),
    Pass(
        "algebra", simplify_algebra,
        "simplifies arithmetic and moves of elements; before common, which merges normal forms",
    ),
    Pass(
        "powers", reduce_powers,
        "writes small powers as products, which common can merge; after algebra took x ** 1",
        rewrites=(POW,),
    ),
    Pass(
        "complex_parts", of_ops("complex_parts", "complex_parts", "split_complex_numbers"),
        "computes complex tensors as pairs of real ones; passes behind it see real ones only",
    ),
    Pass(
        "magnitudes", of_ops("complex_parts", "magnitudes", "compare_squares"),
        "compares squares instead of magnitudes; after complex_parts, which makes magnitudes",
    ),
    Pass(
        "products", prepare_products,
        "converts operands of products for the library; before common and invariants",
    ),
    Pass(
        "unflatten", unflatten_rows,
        "gives products of flattened rows back their shape; algebra joins its reshapes",
        rewrites=(MATMUL,),
    ),
    Pass(
        "joined_columns", join_columns,
        "computes from columns of products before these are split; after unflatten, which gives "
        "products the dims of their rows",
        rewrites=(MATMUL,),
    ),
    Pass(
        "repeated_rows", add_repeats_first,
        "adds up rows of a product that meet the same row; before common merges sums",
        rewrites=(MATMUL, REDUCE_SUM),
    ),
    Pass(
        "product_sums", add_rows_first,
        "adds up rows before their product; after repeated_rows, which leaves sums fewer readers",
        rewrites=(MATMUL,),
    ),
    Pass(
        "common", merge_common_subexpressions,
        "merges equal values; after the passes that make values equal",
    ),
    Pass(
        "elements", write_elements,
        "makes reads and updates of single elements; after common, which merges equal views",
    ),
    Pass(
        "masked", use_masks,
        "reduces and assigns under a mask without collecting; after common, for equal masks",
    ),
    Pass(
        "pooling", of_ops("image.pooling", "pooling", "mask_winners"),
        "puts masks into the winners of max pooling; after common, for equal images",
    ),
    Pass(
        "dead_code", eliminate_dead_code,
        "removes nodes without use or effect; after the rewrites, which leave such nodes",
    ),
    Pass(
        "invariants", of_loops("hoist_invariants"),
        "moves constant values of a loop before it; after dead_code, as each costs an operand",
        rewrites=(WHILE,),
    ),
    Pass(
        "trips", of_loops("apply_trip_counts"),
        "uses the lengths of counting loops; after constants, which finds their bounds",
        rewrites=(WHILE,),
    ),
    Pass(
        "counted_lists", of_lists("resolve_counted_lists"),
        "makes arrays of lists of known length; after trips, which finds the lengths",
    ),
    Pass(
        "list_sums", of_lists("add_to_elements"),
        "adds to an element instead of a whole list; after counted_lists leaves fewer lists",
    ),
    Pass(
        "batching", of_loops("batch_products"),
        "takes products of slices together before a loop; after invariants took factors out",
        rewrites=(WHILE,),
    ),
    Pass(
        "accumulations", of_loops("gather_accumulations"),
        "takes products that a loop adds up together after it; after trips, for lengths",
        rewrites=(WHILE,),
    ),
    Pass(
        "row_sums", of_loops("keep_rows_apart"),
        "adds totals of loops up row by row until the end; beside accumulations, for sums, too",
        rewrites=(WHILE,),
    ),
    Pass(
        "transposed_factors", of_loops("lay_out_factors"),
        "lays transposed factors out before loops; after the passes that take products out",
        rewrites=(WHILE,),
    ),
    Pass(
        "element_shapes", of_lists("infer_element_shapes"),
        "gives lists the shapes of their elements; at the end of a round, when dims are known",
    ),
    Pass(
        "parts", place_parts,
        "gives parts of arrays symbolic bounds; after the rounds, before passes that need these",
        last=True,
    ),
    Pass(
        "known_sizes", drop_known_sizes,
        "drops checks of sizes that are equal by these bounds, before passes that look for loops",
        last=True,
    ),
    Pass(
        "equal_sizes", of_loops("unify_sizes"),
        "gives sizes that change in step one symbol; after parts, which finds how they grow",
        last=True,
        rewrites=(WHILE,),
    ),
    Pass(
        "thin_products", write_thin_products_out,
        "writes products with vectors as sums; after parts, which finds their sizes",
        last=True,
        rewrites=(MATMUL,),
    ),
    Pass(
        "independent_iterations", of_loops("do_iterations_at_once"),
        "does independent iterations at once; after parts, for positions as symbols",
        last=True,
        rewrites=(WHILE,),
    ),
)  # fmt: skip

# Passes that run again after the last ones, to remove the nodes that those replaced.
CLEANING = frozenset({"algebra", "common", "dead_code"})

# A chance that one pass opens for an earlier one is taken in the next round. More rounds
# find next to nothing, and take time to compile.
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
    if any(v.spec.dtype.is_complex for n in graph.walk() for v in (*n.inputs, *n.outputs)):
        importlib.import_module("treadle.ops.complex_parts")  # what ops do to parts
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
        clean(runs, active, number)
    return runs.reports


def clean(runs: Runs, pipeline: tuple[Pass, ...] | list[Pass] = PIPELINE, number: int = 0) -> None:
    """Run those passes of a pipeline again that take away what others have replaced."""
    for item in switched_on(pipeline):
        if item.name in CLEANING:
            runs.run(item, number)
