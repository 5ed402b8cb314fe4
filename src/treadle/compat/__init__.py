"""``td.compat``: TensorFlow 1, and texts for both Pythons."""

from typing import TYPE_CHECKING

from treadle.compat.texts import as_bytes, as_str, as_str_any, as_text, path_to_str
from treadle.names import provided

if TYPE_CHECKING:
    from treadle.compat import v1

__getattr__ = provided(__name__, {"treadle.compat": "v1"})

__all__ = ["as_bytes", "as_str", "as_str_any", "as_text", "path_to_str", "v1"]
