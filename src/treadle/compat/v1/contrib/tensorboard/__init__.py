"""``td.compat.v1.contrib.tensorboard``: what TensorBoard is told besides summaries."""

from treadle.compat.v1.contrib.tensorboard import plugins as plugins
from treadle.names import missing_in

__all__ = ["plugins"]
__getattr__ = missing_in(__name__)
