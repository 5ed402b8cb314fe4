"""``td.compat``: TensorFlow 1."""

from typing import TYPE_CHECKING

from treadle.names import provided

if TYPE_CHECKING:
    from treadle.compat import v1

__getattr__ = provided(__name__, {"treadle.compat": "v1"})

__all__ = ["v1"]
