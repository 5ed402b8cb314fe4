"""What a package beside the core needs so that functions can iterate over its objects."""

from treadle.core.arrays import empty
from treadle.core.composite_spec import CompositeTensor, CompositeTensorSpec
from treadle.core.context import context, placed, recording, taping
from treadle.core.nest import children, rebuild, register_node, seen_as, static_part
from treadle.core.origin import at, user_origin
from treadle.core.tensor import NDArray, SymbolicTensor, from_array, from_buffer
from treadle.ops.collections.iterators import (
    HANDLE,
    ElementSource,
    GraphElements,
    GraphIterable,
    Slot,
    close_iterator,
    get_next,
    get_optional,
    handle_of,
    has_next,
    make_iterator,
    number_of,
    object_of,
    source_length,
)
from treadle.ops.collections.optionals import Optional, no_value
from treadle.ops.control.control_flow import staged_loop
from treadle.ops.conversion import is_symbolic
from treadle.ops.python_functions import call_user
from treadle.ops.random.state import Stream, check_seed, drawing_from, streams
from treadle.ops.shaping.unknown_rank import of_parts, specs_of_parts, without_rank
from treadle.ops.variable_creation import making_alone
from treadle.sparse.tensor import SparseTensorValue


def global_seed() -> int | None:
    """What `td.random.set_seed` was given last."""
    return streams.seed


def seedings() -> int:
    """How often `td.random.set_seed` was called."""
    return streams.seedings


__all__ = [
    "CompositeTensor",
    "CompositeTensorSpec",
    "HANDLE",
    "ElementSource",
    "GraphElements",
    "GraphIterable",
    "NDArray",
    "Optional",
    "Slot",
    "SparseTensorValue",
    "Stream",
    "SymbolicTensor",
    "at",
    "call_user",
    "check_seed",
    "children",
    "close_iterator",
    "context",
    "drawing_from",
    "empty",
    "from_array",
    "from_buffer",
    "get_next",
    "get_optional",
    "global_seed",
    "handle_of",
    "has_next",
    "is_symbolic",
    "make_iterator",
    "making_alone",
    "no_value",
    "number_of",
    "object_of",
    "of_parts",
    "placed",
    "rebuild",
    "recording",
    "register_node",
    "seedings",
    "seen_as",
    "source_length",
    "staged_loop",
    "specs_of_parts",
    "static_part",
    "taping",
    "user_origin",
    "without_rank",
]
