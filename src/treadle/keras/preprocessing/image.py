"""``td.keras.preprocessing.image``: pictures as arrays, and batches of changed ones."""

from treadle.keras.preprocessing.generators import ImageDataGenerator
from treadle.keras.preprocessing.iterators import DirectoryIterator, Iterator, NumpyArrayIterator
from treadle.keras.preprocessing.transforms import (
    apply_affine_transform,
    apply_brightness_shift,
    apply_channel_shift,
    random_brightness,
    random_channel_shift,
    random_rotation,
    random_shear,
    random_shift,
    random_zoom,
)
from treadle.keras.utils.images import array_to_img, img_to_array, load_img, save_img, smart_resize
from treadle.names import missing_in

__all__ = [
    "DirectoryIterator", "ImageDataGenerator", "Iterator", "NumpyArrayIterator",
    "apply_affine_transform", "apply_brightness_shift", "apply_channel_shift", "array_to_img",
    "img_to_array", "load_img", "random_brightness", "random_channel_shift", "random_rotation",
    "random_shear", "random_shift", "random_zoom", "save_img", "smart_resize",
]  # fmt: skip

__getattr__ = missing_in(__name__)
