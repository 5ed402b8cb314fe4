"""The passes that change nothing in graphs without lists."""

from __future__ import annotations

from treadle.graph.passes.counted_lists import resolve_counted_lists as resolve_counted_lists
from treadle.graph.passes.element_shapes import infer_element_shapes as infer_element_shapes
from treadle.graph.passes.list_sums import add_to_elements as add_to_elements
