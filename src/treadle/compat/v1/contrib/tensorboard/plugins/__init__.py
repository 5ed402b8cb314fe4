"""``td.compat.v1.contrib.tensorboard.plugins``: `projector`, which shows embeddings."""

from treadle.compat.v1.contrib.tensorboard.plugins import projector as projector
from treadle.names import missing_in

__all__ = ["projector"]
__getattr__ = missing_in(__name__)
