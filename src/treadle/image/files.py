"""Images from files of any kind, and what JPEG files make of images."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.tensor import Tensor
from treadle.image.adjusting import convert_image_dtype, image_dtype
from treadle.image.batches import refusal
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.image.codecs import decode_jpeg, decode_pixels, encode_jpeg
from treadle.ops.indexing.slices import slice_
from treadle.ops.random.distributions import stateless_uniform, uniform


def decode_image(
    contents: Any, channels: int | None = None, dtype: Any = dtypes.uint8, name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:  # fmt: skip
    """The image of a JPEG, PNG, GIF, BMP or WebP file, [height, width, channels].

    Pillow must be installed: ``pip install 'treadle[image]'``.

    Args:
        contents: a scalar string.
        channels: 1 for gray, 3 for RGB, 4 for RGBA, 0 or None for what the file has.
        dtype: what the image is converted to; see `convert_image_dtype`.
        expand_animations: GIF and WebP files give [pictures, height, width, channels]. In a
            function the result then has an unknown rank, which `set_shape` settles. False: their
            first picture.

    Raises:
        AttributeError: a dtype that is neither floating nor an integer.
        InvalidArgumentError: contents that are no such file.
        ImportError: there is no Pillow.
    """
    target = image_dtype(dtype)
    own = target in (dtypes.uint8, dtypes.uint16, dtypes.float32)
    kind = target if own else dtypes.uint16
    found = decode_pixels(contents, channels, kind, expand_animations)
    return found if own else convert_image_dtype(found, target)


def decode_and_crop_jpeg(
    contents: Any, crop_window: Any, channels: int = 0, ratio: int = 1,
    fancy_upscaling: bool = True, try_recover_truncated: bool = False,
    acceptable_fraction: float = 1, dct_method: str = "", name: str | None = None,
) -> Tensor:  # fmt: skip
    """The part (top, left, height, width) of the image of a JPEG file; see `decode_jpeg`.

    Raises:
        InvalidArgumentError: contents that are no such file, a part that is not inside the image.
    """
    image = decode_jpeg(contents, channels, ratio)
    window = convert_to_tensor(crop_window)
    if window.dims != (4,):
        raise refusal(f"decode_and_crop_jpeg: crop_window has four numbers, not {window.shape}")
    return slice_(image, [window[0], window[1], 0], [window[2], window[3], -1])


def adjust_jpeg_quality(
    image: Any, jpeg_quality: Any, dct_method: str = "", name: str | None = None
) -> Tensor:
    """An image as it is after it was a JPEG file of this quality.

    Args:
        image: [height, width, 1 or 3], any dtype.
        jpeg_quality: 0 to 100, an int or an integer scalar.

    Raises:
        InvalidArgumentError: another shape or quality.
        ImportError: there is no Pillow.
    """
    x = convert_to_tensor(image)
    channels = x.dims[-1] if x.ndim else None
    pixels = convert_image_dtype(x, dtypes.uint8, saturate=True)
    file = encode_jpeg(pixels, quality=jpeg_quality)
    found = decode_jpeg(file, channels if isinstance(channels, int) else 0)
    return convert_image_dtype(found, x.dtype, saturate=True)


def _check_qualities(low: int, high: int) -> None:
    if not (0 <= low <= 100 and 0 <= high <= 100):
        raise refusal("jpeg encoding range must be between 0 and 100.")
    if low >= high:
        raise refusal("`min_jpeg_quality` must be less than `max_jpeg_quality`.")


def random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """`adjust_jpeg_quality` with a quality drawn uniformly from [min, max).

    Args:
        seed: a stream of its own, combined with the global seed.

    Raises:
        ValueError: qualities outside of [0, 100], or in the wrong order.
    """
    _check_qualities(min_jpeg_quality, max_jpeg_quality)
    quality = uniform([], min_jpeg_quality, max_jpeg_quality, dtypes.int32, seed)
    return adjust_jpeg_quality(image, quality)


def stateless_random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: Any
) -> Tensor:
    """`random_jpeg_quality` as a pure function of `seed`, two ints, as in TensorFlow."""
    _check_qualities(min_jpeg_quality, max_jpeg_quality)
    quality = stateless_uniform([], seed, min_jpeg_quality, max_jpeg_quality, dtypes.int32)
    return adjust_jpeg_quality(image, quality)
