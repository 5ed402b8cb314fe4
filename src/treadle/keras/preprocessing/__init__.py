"""``td.keras.preprocessing``: the places where Keras 2 has functions of `keras.utils`."""

from treadle.keras.preprocessing import image, sequence, text
from treadle.keras.utils import (
    image_dataset_from_directory,
    text_dataset_from_directory,
    timeseries_dataset_from_array,
)
from treadle.names import missing_in

__all__ = [
    "image", "image_dataset_from_directory", "sequence", "text",
    "text_dataset_from_directory", "timeseries_dataset_from_array",
]  # fmt: skip

__getattr__ = missing_in(__name__)
