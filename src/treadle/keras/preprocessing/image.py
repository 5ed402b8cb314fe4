"""``td.keras.preprocessing.image``: pictures as arrays."""

from treadle.keras.utils.images import array_to_img, img_to_array, load_img, save_img, smart_resize
from treadle.names import missing_in

__all__ = ["array_to_img", "img_to_array", "load_img", "save_img", "smart_resize"]

__getattr__ = missing_in(__name__)
