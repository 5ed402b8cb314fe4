"""``td.keras.ops.image``: functions of images."""

from treadle.keras.ops.pictures import (
    affine_transform,
    crop_images,
    elastic_transform,
    extract_patches,
    extract_patches_3d,
    gaussian_blur,
    hsv_to_rgb,
    map_coordinates,
    pad_images,
    perspective_transform,
    resize,
    rgb_to_grayscale,
    rgb_to_hsv,
    scale_and_translate,
    sobel_edges,
    ssim,
)
from treadle.names import missing_in

__all__ = [
    "affine_transform", "crop_images", "elastic_transform", "extract_patches", "extract_patches_3d",
    "gaussian_blur", "hsv_to_rgb", "map_coordinates", "pad_images", "perspective_transform",
    "resize", "rgb_to_grayscale", "rgb_to_hsv", "scale_and_translate", "sobel_edges", "ssim",
]  # fmt: skip

__getattr__ = missing_in(__name__)
