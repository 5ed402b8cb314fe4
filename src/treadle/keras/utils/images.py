"""Pictures of Pillow as arrays and back, and files of them."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td
from treadle.keras.config import floatx, image_data_format
from treadle.train.atomic import NewFile


def _pillow() -> Any:
    """The module PIL.Image.

    Raises:
        ImportError: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("Pictures are read and written by Pillow: pip install pillow") from None
    return Image


def _is_last(data_format: str | None) -> bool:
    given = data_format or image_data_format()
    if given not in ("channels_last", "channels_first"):
        raise ValueError(f'data_format must be "channels_last" or "channels_first", got {given!r}')
    return given == "channels_last"


def array_to_img(
    x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None
) -> Any:
    """An array as a picture of Pillow.

    Args:
        x: [height, width, channels], or with the channels first.
        scale: stretch the values to 0 to 255.
        dtype: that `scale` computes in, `floatx` when omitted.

    Raises:
        ValueError: it has another rank, or not 1, 3 or 4 channels.
    """
    pillow = _pillow()
    array = np.asarray(x, td.as_dtype(dtype or floatx()).np_dtype)
    if array.ndim != 3:
        raise ValueError(
            "Expected image array to have rank 3 (single image). "
            f"Got array with shape: {array.shape}"
        )
    array = array if _is_last(data_format) else array.transpose(1, 2, 0)
    if scale:
        array = array - np.min(array)
        most = np.max(array)
        array = array / (most or 1) * 255
    channels = array.shape[2]
    if channels not in (1, 3, 4):
        raise ValueError(f"Unsupported channel number: {channels}")
    if channels == 1:
        wide = np.max(array) > 255
        return pillow.fromarray(array[:, :, 0].astype("int32" if wide else "uint8"))
    return pillow.fromarray(array.astype("uint8"))


def img_to_array(img: Any, data_format: str | None = None, dtype: Any = None) -> Any:
    """A picture of Pillow as an array [height, width, channels], or with the channels first.

    Args:
        dtype: of the array, `floatx` when omitted.

    Raises:
        ValueError: it has another rank.
    """
    array = np.asarray(img, td.as_dtype(dtype or floatx()).np_dtype)
    if array.ndim not in (2, 3):
        raise ValueError(f"Unsupported image shape: {array.shape}")
    array = array[:, :, None] if array.ndim == 2 else array
    return array if _is_last(data_format) else array.transpose(2, 0, 1)


def save_img(
    path: Any, x: Any, data_format: str | None = None, file_format: str | None = None,
    scale: bool = True, **kwargs: Any,
) -> None:  # fmt: skip
    """Write an array as a picture. One that is there stays until the new one is whole.

    Args:
        path: of the file, or a file.
        x: [height, width, channels], or with the channels first.
        file_format: such as "png"; that of the path's ending when omitted.
        scale: stretch the values to 0 to 255.
        kwargs: what Pillow takes.
    """
    if file_format is None and isinstance(path, str | os.PathLike):
        file_format = Path(path).suffix[1:].lower()
    file_format = "jpeg" if str(file_format).lower() == "jpg" else file_format
    img = array_to_img(x, data_format, scale)
    if img.mode == "RGBA" and file_format == "jpeg":
        warnings.warn(
            "The JPEG format does not support RGBA images, converting to RGB.", stacklevel=2
        )
        img = img.convert("RGB")
    if not isinstance(path, str | os.PathLike):
        img.save(path, format=file_format, **kwargs)
        return
    new = NewFile(os.fspath(path))
    try:
        img.save(new.file, format=file_format, **kwargs)
        new.close()
    except OSError as error:
        if error.errno is None:
            raise  # what Pillow says of the picture
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        new.discard()


_MODES = {"grayscale": "L", "rgba": "RGBA", "rgb": "RGB"}


def load_img(
    path: Any, color_mode: str = "rgb", target_size: Any = None, interpolation: str = "nearest",
    keep_aspect_ratio: bool = False,
) -> Any:  # fmt: skip
    """A picture of Pillow from a file.

    Args:
        path: of the file, or a ``BytesIO``.
        color_mode: "rgb", "rgba" or "grayscale".
        target_size: (height, width); as it is when omitted.
        interpolation: "nearest", "bilinear", "bicubic", "hamming", "box" or "lanczos".
        keep_aspect_ratio: cut margins off instead of distorting it.

    Raises:
        ValueError: an argument is none of these.
        TypeError: the path is no path.
    """
    pillow = _pillow()
    if color_mode not in _MODES:
        raise ValueError('color_mode must be "grayscale", "rgb", or "rgba"')
    if not isinstance(path, io.BytesIO | str | bytes | os.PathLike):
        raise TypeError(f"path should be path-like or io.BytesIO, not {type(path)}")
    img = pillow.open(path if isinstance(path, io.BytesIO) else os.fsdecode(path))
    img.load()  # the file may be closed
    kept = ("L", "I;16", "I") if color_mode == "grayscale" else (_MODES[color_mode],)
    img = img if img.mode in kept else img.convert(_MODES[color_mode])
    if target_size is None or img.size == (target_size[1], target_size[0]):
        return img
    known = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")
    if interpolation not in known:
        raise ValueError(
            f"Invalid interpolation method {interpolation} specified. Supported methods are "
            f"{', '.join(known)}"
        )
    resample = getattr(pillow.Resampling, interpolation.upper())
    size = int(target_size[1]), int(target_size[0])
    box = None
    if keep_aspect_ratio:
        width, height = img.size
        tall = min(height, width * size[1] // size[0])
        wide = min(width, height * size[0] // size[1])
        left, top = (width - wide) // 2, (height - tall) // 2
        box = (left, top, left + wide, top + tall)
    return img.resize(size, resample, box=box)


def smart_resize(
    x: Any, size: Any, interpolation: str = "bilinear", data_format: str = "channels_last"
) -> Any:
    """Images of another size, with margins cut off instead of distorting them.

    Args:
        x: [height, width, channels] or a batch of such images.
        size: (height, width).
        interpolation: as `td.image.resize` takes it.

    Returns:
        An array for an array, else a tensor.

    Raises:
        ValueError: it is no image, or `size` no pair.
    """
    if len(size) != 2:
        raise ValueError(f"Expected `size` to be a tuple of 2 integers, but got: {size}.")
    images = td.convert_to_tensor(x)
    rank = len(images.shape)
    if rank not in (3, 4):
        raise ValueError(
            "Expected an image array with shape `(height, width, channels)`, or `(batch_size, "
            f"height, width, channels)`, but got an input of shape {images.shape}."
        )
    last = _is_last(data_format)
    batch = images if rank == 4 else images[None]
    batch = batch if last else td.transpose(batch, [0, 2, 3, 1])
    height, width = td.shape(batch)[1], td.shape(batch)[2]
    tall = td.minimum(height, width * size[0] // size[1])
    wide = td.minimum(width, height * size[1] // size[0])
    top, left = (height - tall) // 2, (width - wide) // 2
    part = batch[:, top : top + tall, left : left + wide]
    found = td.image.resize(part, list(size), interpolation)
    found = found if last else td.transpose(found, [0, 3, 1, 2])
    found = found if rank == 4 else found[0]
    return found.numpy() if isinstance(x, np.ndarray) else found
