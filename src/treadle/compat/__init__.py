"""``td.compat``: TensorFlow 1, and what programs for several versions of TensorFlow use."""

from typing import TYPE_CHECKING

from treadle.names import provided

if TYPE_CHECKING:
    from treadle.compat import v1, v2
    from treadle.compat.python_values import (
        as_bytes,
        as_str,
        as_str_any,
        as_text,
        bytes_or_text_types,
        complex_types,
        dimension_at_index,
        dimension_value,
        forward_compatibility_horizon,
        forward_compatible,
        integral_types,
        path_to_str,
        real_types,
    )

__getattr__ = provided(
    __name__,
    {
        "treadle.compat": "v1 v2",
        "treadle.compat.python_values": "as_bytes as_str as_str_any as_text bytes_or_text_types "
        "complex_types dimension_at_index dimension_value forward_compatibility_horizon "
        "forward_compatible integral_types path_to_str real_types",
    },
)

__all__ = [
    "as_bytes",
    "as_str",
    "as_str_any",
    "as_text",
    "bytes_or_text_types",
    "complex_types",
    "dimension_at_index",
    "dimension_value",
    "forward_compatibility_horizon",
    "forward_compatible",
    "integral_types",
    "path_to_str",
    "real_types",
    "v1",
    "v2",
]
