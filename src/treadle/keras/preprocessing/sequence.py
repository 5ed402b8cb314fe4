"""``td.keras.preprocessing.sequence``: sequences of one length."""

from treadle.keras.utils import pad_sequences
from treadle.names import missing_in

__all__ = ["pad_sequences"]

__getattr__ = missing_in(__name__)
