"""``keras.legacy``: what Keras 3 keeps of Keras 2."""

from treadle.keras.utils import legacy as saving
from treadle.names import missing_in

__all__ = ["saving"]

__getattr__ = missing_in(__name__)
