"""The passes that change nothing in graphs without loops."""

from __future__ import annotations

from treadle.graph.passes.accumulations import gather_accumulations as gather_accumulations
from treadle.graph.passes.batching import batch_products as batch_products
from treadle.graph.passes.equal_sizes import unify_sizes as unify_sizes
from treadle.graph.passes.independent_iterations import (
    do_iterations_at_once as do_iterations_at_once,
)
from treadle.graph.passes.invariants import hoist_invariants as hoist_invariants
from treadle.graph.passes.row_sums import keep_rows_apart as keep_rows_apart
from treadle.graph.passes.transposed_factors import lay_out_factors as lay_out_factors
from treadle.graph.passes.trips import apply_trip_counts as apply_trip_counts
