"""Models, by Keras's names."""

from treadle.keras.models.model import Model, Sequential

__all__ = ["Model", "Sequential"]
