"""``td.compat.v1.image``: images with TensorFlow 1's arguments; other names are `td.image`'s."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.compat import corner_sampling
from treadle.compat.v1.functions import convert_to_tensor
from treadle.compat.v1.mirrored import fallback, graph_function
from treadle.compat.v1.recording import in_graphs, recorded
from treadle.core.origin import at, user_origin
from treadle.image.resizing import padded_around


class ResizeMethod:
    """How images are resized."""

    BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA = 0, 1, 2, 3


_METHODS = {
    0: "bilinear", 1: "nearest", 2: "bicubic", 3: "area",
    "bilinear": "bilinear", "nearest": "nearest", "bicubic": "bicubic", "area": "area",
}  # fmt: skip

_SAMPLES = {
    "bilinear": corner_sampling.bilinear, "nearest": corner_sampling.nearest,
    "bicubic": corner_sampling.bicubic,
}  # fmt: skip


def _resize(images: Any, size: Any, method: str, align_corners: bool, centres: bool) -> Any:
    x = td.convert_to_tensor(images)
    single = len(x.shape) == 3
    batch = x[None] if single else x
    if centres or method == "area":
        found = td.image.resize(batch, size, method)
    else:
        found = _SAMPLES[method](batch, td.unstack(size, 2), align_corners)
    return found[0] if single else found


_resized = recorded(_resize, "resize", "ResizeBilinear")


def resize_images(
    images: Any, size: Any, method: Any = ResizeMethod.BILINEAR, align_corners: bool = False,
    preserve_aspect_ratio: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """Images of another height and width, sampled as TensorFlow 1 does.

    Args:
        images: [batch, height, width, channels] or [height, width, channels].
        size: the new (height, width).
        method: one of `ResizeMethod`.
        align_corners: whether the pixels of the corners stay those of the corners.
        preserve_aspect_ratio: False only.

    Returns:
        float32, but for the method "nearest" the dtype of the images; the images where they have
        the size already.

    Raises:
        ValueError: another method.
        NotImplementedError: ``preserve_aspect_ratio``, which `td.image.resize` has.
    """
    method = getattr(method, "value", method)
    if method not in _METHODS:
        raise ValueError("Resize method is not implemented.")
    if preserve_aspect_ratio:
        raise NotImplementedError(
            "resize_images: preserve_aspect_ratio is not provided for samples of TensorFlow 1: "
            f"use td.image.resize{at(user_origin())}"
        )
    images = convert_to_tensor(images)
    if images.shape.rank in (3, 4) and images.shape.as_list()[-3:-1] == _listed(size):
        return images
    return _resized(images, size, _METHODS[method], align_corners, False, name=name)


def _listed(size: Any) -> list[int] | None:
    """A size that is known, as a list."""
    static = isinstance(size, list | tuple) and all(isinstance(n, int) for n in size)
    return list(size) if static else None


resize = resize_images


def resize_bilinear(images: Any, size: Any, align_corners: bool = False, name: str | None = None,
                    half_pixel_centers: bool = False) -> Any:  # fmt: skip
    """Images [batch, height, width, channels] of another size, interpolated."""
    return _resized(images, size, "bilinear", align_corners, half_pixel_centers, name=name)


def resize_bicubic(images: Any, size: Any, align_corners: bool = False, name: str | None = None,
                   half_pixel_centers: bool = False) -> Any:  # fmt: skip
    """Images [batch, height, width, channels] of another size, of four pixels along each axis."""
    return _resized(images, size, "bicubic", align_corners, half_pixel_centers, name=name)


def resize_area(images: Any, size: Any, align_corners: bool = False,
                name: str | None = None) -> Any:  # fmt: skip
    """See `resize_images` with the method AREA."""
    return resize_images(images, size, ResizeMethod.AREA, align_corners, name=name)


def resize_nearest_neighbor(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None,
    half_pixel_centers: bool = False,
) -> Any:  # fmt: skip
    """Images [batch, height, width, channels] of another size, of the nearest pixels."""
    return _resized(images, size, "nearest", align_corners, half_pixel_centers, name=name)


def _resize_with_pad(
    image: Any, target_height: Any, target_width: Any, method: str, align_corners: bool
) -> Any:
    def resized(x: Any, size: Any) -> Any:
        return _resize(x, td.stack(size), method, align_corners, False)

    return padded_around(image, target_height, target_width, resized)


_padded = recorded(_resize_with_pad, "resize_image_with_pad")


def resize_image_with_pad(
    image: Any, target_height: Any, target_width: Any, method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Any:  # fmt: skip
    """`td.image.resize_with_pad`, sampled as TensorFlow 1 does (`resize_images`)."""
    method = getattr(method, "value", method)
    if method not in _METHODS:
        raise ValueError("Resize method is not implemented.")
    return _padded(image, target_height, target_width, _METHODS[method], align_corners)


_glimpse = graph_function(td.image.extract_glimpse)


def extract_glimpse(
    input: Any, size: Any, offsets: Any, centered: bool = True, normalized: bool = True,
    uniform_noise: bool = True, name: str | None = None,
) -> Any:  # fmt: skip
    """`td.image.extract_glimpse`, whose noise is uniform or normal here."""
    noise = "uniform" if uniform_noise else "gaussian"
    return _glimpse(input, size, offsets, centered, normalized, noise, name=name)


resize_image_with_crop_or_pad = graph_function(td.image.resize_with_crop_or_pad)

in_graphs(_resize, _resize_with_pad)

__getattr__ = fallback(__name__, "treadle.image")
