"""``td.ragged``: tensors with rows of different lengths."""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.ragged import calls, operators  # noqa: F401  (complete RaggedTensor)
from treadle.ragged.creation import (
    constant,
    row_splits_to_segment_ids,
    segment_ids_to_row_splits,
    stack_dynamic_partitions,
)
from treadle.ragged.creation import (
    ragged_range as range,
)
from treadle.ragged.crossing import cross, cross_hashed
from treadle.ragged.elementwise import (
    map_flat_values,
)
from treadle.ragged.rows import (
    boolean_mask,
)
from treadle.ragged.shaping import (
    stack,
)
from treadle.ragged.tensor import (
    RaggedTensor,
    RaggedTensorSpec,
)

__all__ = [
    "RaggedTensor",
    "RaggedTensorSpec",
    "boolean_mask",
    "constant",
    "cross",
    "cross_hashed",
    "map_flat_values",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
    "stack_dynamic_partitions",
]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
