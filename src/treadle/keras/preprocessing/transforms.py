"""Changes of single images, which are arrays: turned, moved, sheared, zoomed, brighter."""

# Keras's programs seed NumPy's global generator, which draws here as it does there.
# ruff: noqa: NPY002
from __future__ import annotations

from typing import Any

import numpy as np

from treadle.keras.utils.images import array_to_img, img_to_array


def _interpolation() -> Any:
    """The module scipy.ndimage.

    Raises:
        ImportError: scipy is not installed.
    """
    try:
        from scipy import ndimage
    except ImportError:
        raise ImportError("Images are turned and zoomed by scipy: pip install scipy") from None
    return ndimage


def _steps(theta: float, tx: float, ty: float, shear: float, zx: float, zy: float) -> list[Any]:
    """The matrices of the changes that change something."""
    steps = []
    if theta:
        sin, cos = np.sin(np.deg2rad(theta)), np.cos(np.deg2rad(theta))
        steps.append([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])
    if tx or ty:
        steps.append([[1, 0, tx], [0, 1, ty], [0, 0, 1]])
    if shear:
        sin, cos = np.sin(np.deg2rad(shear)), np.cos(np.deg2rad(shear))
        steps.append([[1, -sin, 0], [0, cos, 0], [0, 0, 1]])
    if zx != 1 or zy != 1:
        steps.append([[zx, 0, 0], [0, zy, 0], [0, 0, 1]])
    return [np.array(step) for step in steps]


def _around_centre(matrix: Any, rows: int, columns: int) -> Any:
    """The change with the middle of the image where it is."""
    x, y = rows / 2 - 0.5, columns / 2 - 0.5
    there = np.array([[1, 0, x], [0, 1, y], [0, 0, 1]])
    back = np.array([[1, 0, -x], [0, 1, -y], [0, 0, 1]])
    return there @ matrix @ back


def apply_affine_transform(
    x: Any, theta: float = 0, tx: float = 0, ty: float = 0, shear: float = 0, zx: float = 1,
    zy: float = 1, row_axis: int = 1, col_axis: int = 2, channel_axis: int = 0,
    fill_mode: str = "nearest", cval: float = 0.0, order: int = 1,
) -> Any:  # fmt: skip
    """An image, turned, moved, sheared and zoomed.

    Args:
        x: of three axes.
        theta, shear: in degrees.
        tx, ty: in pixels.
        zx, zy: parts of the image.
        row_axis, col_axis, channel_axis: of x; channels are the first or the last.
        fill_mode, cval, order: `mode`, `cval` and `order` of ``scipy.ndimage.affine_transform``.

    Raises:
        ValueError: the axes are not three different ones.
        ImportError: scipy is not installed.
    """
    axes = (row_axis, col_axis, channel_axis)
    if len({*axes}) != 3:
        raise ValueError("'row_axis', 'col_axis', and 'channel_axis' must be distinct")
    if {*axes} != {0, 1, 2}:
        raise ValueError(f"Invalid axis' indices: { {*axes} - {0, 1, 2} }")
    if x.ndim != 3:
        raise ValueError("Input arrays must be multi-channel 2D images.")
    if channel_axis == 1:
        raise ValueError("Channels are allowed and the first and last dimensions.")
    steps = _steps(theta, tx, ty, shear, zx, zy)
    if not steps:
        return x
    matrix = steps[0]
    for step in steps[1:]:
        matrix = matrix @ step
    matrix = _around_centre(matrix, x.shape[row_axis], x.shape[col_axis])
    if col_axis > row_axis:  # the matrices have columns first, arrays have rows first
        matrix[:, [0, 1]] = matrix[:, [1, 0]]
        matrix[[0, 1]] = matrix[[1, 0]]
    moved = [
        _interpolation().affine_transform(
            channel, matrix[:2, :2], matrix[:2, 2], order=order, mode=fill_mode, cval=cval
        )
        for channel in np.moveaxis(x, channel_axis, 0)
    ]
    return np.stack(moved, axis=channel_axis)


def apply_channel_shift(x: Any, intensity: float, channel_axis: int = 0) -> Any:
    """An image with the number added, within its smallest and largest value."""
    return np.clip(x + intensity, np.min(x), np.max(x))


def apply_brightness_shift(x: Any, brightness: float, scale: bool = True) -> Any:
    """An image times the number, as Pillow does it.

    Args:
        x: of three axes.
        scale: stretch the values to 0 ... 255 before.

    Raises:
        ImportError: Pillow is not installed.
    """
    least, most = np.min(x), np.max(x)
    beyond = least < 0 or most > 255
    image = array_to_img(x, scale=bool(beyond or scale))
    from PIL import ImageEnhance

    found = img_to_array(ImageEnhance.Brightness(image).enhance(brightness))
    return found / 255 * (most - least) + least if beyond and not scale else found


def random_rotation(
    x: Any, rg: float, row_axis: int = 1, col_axis: int = 2, channel_axis: int = 0,
    fill_mode: str = "nearest", cval: float = 0.0, interpolation_order: int = 1,
) -> Any:  # fmt: skip
    """An image, turned by up to `rg` degrees; other arguments: `apply_affine_transform`."""
    theta = np.random.uniform(-rg, rg)
    return apply_affine_transform(
        x, theta, 0, 0, 0, 1, 1, row_axis, col_axis, channel_axis, fill_mode, cval,
        interpolation_order,
    )  # fmt: skip


def random_shift(
    x: Any, wrg: float, hrg: float, row_axis: int = 1, col_axis: int = 2, channel_axis: int = 0,
    fill_mode: str = "nearest", cval: float = 0.0, interpolation_order: int = 1,
) -> Any:  # fmt: skip
    """An image, moved by up to these parts of its width and height; other arguments:
    `apply_affine_transform`."""
    tx = np.random.uniform(-hrg, hrg) * x.shape[row_axis]
    ty = np.random.uniform(-wrg, wrg) * x.shape[col_axis]
    return apply_affine_transform(
        x, 0, tx, ty, 0, 1, 1, row_axis, col_axis, channel_axis, fill_mode, cval,
        interpolation_order,
    )  # fmt: skip


def random_shear(
    x: Any, intensity: float, row_axis: int = 1, col_axis: int = 2, channel_axis: int = 0,
    fill_mode: str = "nearest", cval: float = 0.0, interpolation_order: int = 1,
) -> Any:  # fmt: skip
    """An image, sheared by up to so many degrees; other arguments: `apply_affine_transform`."""
    shear = np.random.uniform(-intensity, intensity)
    return apply_affine_transform(
        x, 0, 0, 0, shear, 1, 1, row_axis, col_axis, channel_axis, fill_mode, cval,
        interpolation_order,
    )  # fmt: skip


def random_zoom(
    x: Any, zoom_range: Any, row_axis: int = 1, col_axis: int = 2, channel_axis: int = 0,
    fill_mode: str = "nearest", cval: float = 0.0, interpolation_order: int = 1,
) -> Any:  # fmt: skip
    """An image of which parts between two numbers are shown; other arguments:
    `apply_affine_transform`.

    Raises:
        ValueError: `zoom_range` is no pair.
    """
    zx, zy = drawn_zoom(zoom_range)
    return apply_affine_transform(
        x, 0, 0, 0, 0, zx, zy, row_axis, col_axis, channel_axis, fill_mode, cval,
        interpolation_order,
    )  # fmt: skip


def drawn_zoom(zoom_range: Any) -> tuple[float, float]:
    """Parts of the rows and columns between the two numbers.

    Raises:
        ValueError: they are not two.
    """
    if len(zoom_range) != 2:
        raise ValueError(
            f"`zoom_range` should be a tuple or list of two floats. Received: {zoom_range}"
        )
    if zoom_range[0] == 1 and zoom_range[1] == 1:
        return 1, 1
    zx, zy = np.random.uniform(zoom_range[0], zoom_range[1], 2)
    return float(zx), float(zy)


def random_channel_shift(x: Any, intensity_range: float, channel_axis: int = 0) -> Any:
    """`apply_channel_shift` by up to the number."""
    intensity = np.random.uniform(-intensity_range, intensity_range)
    return apply_channel_shift(x, intensity, channel_axis)


def random_brightness(x: Any, brightness_range: Any, scale: bool = True) -> Any:
    """`apply_brightness_shift` by a number between the two.

    Raises:
        ValueError: they are not two.
    """
    if len(brightness_range) != 2:
        raise ValueError(
            "`brightness_range should be tuple or list of two floats. Received: "
            f"{brightness_range}"
        )
    drawn = np.random.uniform(brightness_range[0], brightness_range[1])
    return apply_brightness_shift(x, drawn, scale)
