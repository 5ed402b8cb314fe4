"""Parts of images inside boxes, resized: crop_and_resize; and glimpses around points."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.tensor import Tensor
from treadle.image.batches import refusal
from treadle.image.samples import float_of
from treadle.ops.composed import composed
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.dims import dims_tensor, sizes_of
from treadle.ops.elementwise.arithmetic import maximum, minimum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import ceil, floor
from treadle.ops.indexing.gather import gathered
from treadle.ops.random.distributions import normal, uniform
from treadle.ops.reductions.reduction import reduce_max, reduce_min
from treadle.ops.requirements import require
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.shaping.reshaping import expand_dims, reshape_to, with_dim
from treadle.ops.sizes import may_be


def _numbers(size: Dim, dtype: DType) -> Tensor:
    return cast(number_range(dims_tensor(size, dtypes.int64)), dtype)


def pixels(x: Tensor, image: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Pixels of a batch of images by position: [n, rows, columns, channels].

    Args:
        image: [n] numbers of images.
        rows, columns: [n, rows] and [n, columns] positions, kept inside the images.
    """
    count, height, width, channels = x.dims
    zero = constant(0, dtypes.int64)

    def inside(place: Tensor, size: Dim) -> Tensor:
        return maximum(minimum(cast(place, dtypes.int64), dims_tensor(size - 1, zero.dtype)), zero)

    high, wide = dims_tensor(height, zero.dtype), dims_tensor(width, zero.dtype)
    line = expand_dims(cast(image, dtypes.int64), 1) * high + inside(rows, height)
    place = expand_dims(line, 2) * wide + expand_dims(inside(columns, width), 1)
    return gathered(reshape_to(x, (product((count, height, width)), channels)), place, 0)


@composed
def crop_and_resize(
    image: Any, boxes: Any, box_indices: Any, crop_size: Any, method: str = "bilinear",
    extrapolation_value: float = 0.0, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Parts of images, all resized to one size.

    Args:
        image: [batch, height, width, channels], any real dtype.
        boxes: [n, 4] floats (y1, x1, y2, x2) in units of the image's height - 1 and width - 1;
            y1 > y2 mirrors. They may reach beyond the image.
        box_indices: [n] integers: the image of each box.
        crop_size: (height, width), ints or an integer tensor.
        method: "bilinear" or "nearest".
        extrapolation_value: of the pixels outside of the image.

    Returns:
        [n, crop_height, crop_width, channels], float32.

    Raises:
        InvalidArgumentError: other shapes, sizes that are not positive, an image that is not there.
    """
    x, corners = _real("crop_and_resize", image), cast(boxes, dtypes.float32)
    which = convert_to_tensor(box_indices)
    if method not in ("bilinear", "nearest"):
        raise refusal(f"crop_and_resize: method {method!r} is not bilinear or nearest")
    sizes = sizes_of(crop_size, "crop_and_resize: crop_size")
    if x.ndim != 4 or corners.ndim != 2 or which.ndim != 1 or not may_be(corners.dims[1], 4):
        raise refusal(
            f"crop_and_resize: images of shape {x.shape} with boxes {corners.shape} and indices "
            f"{which.shape}; rank 4, [n, 4] and [n] are needed"
        )
    if len(sizes) != 2 or any(isinstance(s, int) and s <= 0 for s in sizes):
        raise refusal(f"crop_and_resize: crop_size must be two positive ints, not {crop_size}")
    corners = with_dim(corners, 1, 4)
    text = "crop_and_resize: there must be an index for each box"
    which = _checked(_as_many(which, corners.dims[0], text), x.dims[0])
    rows = _places(corners[:, 0], corners[:, 2], x.dims[1], sizes[0])
    columns = _places(corners[:, 1], corners[:, 3], x.dims[2], sizes[1])
    found = _nearest(x, which, rows, columns)
    if method == "bilinear":
        found = _between(x, which, rows, columns)
    inside = _is_inside(rows, x.dims[1])[:, :, None] & _is_inside(columns, x.dims[2])[:, None, :]
    return where(expand_dims(inside, -1), found, float(extrapolation_value))


def _real(name: str, image: Any) -> Tensor:
    """Images of real numbers: float32 results would lose the other part.

    Raises:
        TypeError: the numbers are complex.
    """
    x = convert_to_tensor(image)
    if x.dtype.is_complex:
        text = f"{name}: the images are {x.dtype.name}, not real numbers{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    return x


def _as_many(x: Tensor, count: Dim, text: str) -> Tensor:
    """`x`, which has so many rows; InvalidArgumentError with `text` where it has not."""
    rows = x.dims[0]
    if not may_be(rows, count):
        raise refusal(f"{text}: {rows} for {count}")
    return require(x, [(rows, count)], text)


def _checked(which: Tensor, count: Dim) -> Tensor:
    """Numbers of images, none outside of the batch: gathering from the batch's numbers checks."""
    return gathered(number_range(dims_tensor(count, dtypes.int64)), which, 0)


def _places(first: Tensor, last: Tensor, size: Dim, count: Dim) -> Tensor:
    """Where the pixels of the result are on an axis of the image: [boxes, count]."""
    reach = float_of(size - 1)
    if count == 1:
        return expand_dims(0.5 * (first + last) * reach, 1)
    steps = maximum(float_of(count - 1), 1.0)
    step = (last - first) * reach / steps
    places = expand_dims(first * reach, 1) + _numbers(count, dtypes.float32) * expand_dims(step, 1)
    if isinstance(count, int):
        return places
    middle = expand_dims(0.5 * (first + last) * reach, 1)
    return where(float_of(count) > 1.0, places, middle)


def _is_inside(places: Tensor, size: Dim) -> Tensor:
    return (places >= 0.0) & (places <= float_of(size - 1))


def _nearest(x: Tensor, which: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    found = pixels(x, which, floor(rows + 0.5), floor(columns + 0.5))
    return cast(found, dtypes.float32)


def _between(x: Tensor, which: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Between the four pixels around each place."""
    top, left = floor(rows), floor(columns)
    down, right = (rows - top)[:, :, None, None], (columns - left)[:, None, :, None]

    def line(y: Tensor) -> Tensor:
        first = cast(pixels(x, which, y, left), dtypes.float32)
        return first + (cast(pixels(x, which, y, ceil(columns)), dtypes.float32) - first) * right

    upper = line(top)
    return upper + (line(ceil(rows)) - upper) * down


def extract_glimpse(
    input: Any, size: Any, offsets: Any, centered: bool = True, normalized: bool = True,
    noise: str = "uniform", name: str | None = None,
) -> Tensor:  # fmt: skip
    """A window of each image around a point; what is outside of the image is noise.

    Args:
        input: [batch, height, width, channels], float32.
        size: the windows' (height, width).
        offsets: [batch, 2] floats (y, x).
        centered: offsets count from the middle of the image; else from its upper left corner.
        normalized: offsets are in units of the image's size (of half of it where `centered`), and
            where `centered` they name the middle of the window; else they are pixels, and name the
            window's first pixel.
        noise: "uniform" or "gaussian" numbers of the image's range, or "zero".

    Raises:
        InvalidArgumentError: other shapes.
    """
    x = cast(_real("extract_glimpse", input), dtypes.float32)
    points = cast(offsets, dtypes.float32)
    if x.ndim != 4 or points.ndim != 2 or not may_be(points.dims[1], 2):
        text = f"extract_glimpse: shapes {x.shape} and {points.shape}"
        raise refusal(f"{text}; rank 4 and [batch, 2] are needed")
    if noise not in ("uniform", "gaussian", "zero"):
        raise refusal(f"extract_glimpse: noise {noise!r} is not uniform, gaussian or zero")
    points = with_dim(points, 1, 2)
    sizes = sizes_of(size, "extract_glimpse: size")
    if len(sizes) != 2:
        raise refusal(f"extract_glimpse: size must be two ints, not {size}")
    points = _as_many(points, x.dims[0], "extract_glimpse: there must be an offset for each image")
    rows, columns = (
        _window(points[:, n], x.dims[n + 1], sizes[n], centered, normalized) for n in (0, 1)
    )
    found = pixels(x, number_range(dims_tensor(x.dims[0], dtypes.int64)), rows, columns)
    inside = _is_inside(rows, x.dims[1])[:, :, None] & _is_inside(columns, x.dims[2])[:, None, :]
    return where(expand_dims(inside, -1), found, _noise(noise, x, found))


def _window(point: Tensor, size: Dim, count: Dim, centered: bool, normalized: bool) -> Tensor:
    """The positions of a window on one axis of each image: [batch, count]."""
    extent = float_of(size)
    if normalized:
        point = point * extent
    if centered and normalized:
        point = (point + extent - float_of(count)) / 2.0
    elif centered:
        point = point + extent / 2.0
    first = cast(cast(point, dtypes.int64), dtypes.float32)
    return expand_dims(first, 1) + _numbers(count, dtypes.float32)


def _noise(kind: str, x: Tensor, found: Tensor) -> Any:
    if kind == "zero":
        return 0.0
    low = reduce_min(x, [1, 2, 3], keepdims=True)
    spread = reduce_max(x, [1, 2, 3], keepdims=True) - low
    shape = [dims_tensor(d, dtypes.int64) for d in found.dims]
    return (uniform(shape) if kind == "uniform" else normal(shape)) * spread + low
