"""Parts of images, and images with pixels added around them."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.shapes import Dim, compound
from treadle.core.tensor import Tensor
from treadle.image.batches import (
    as_batch,
    demand_at_most,
    image_tensor,
    like,
    refusal,
)
from treadle.ops.asserts import assert_greater_equal
from treadle.ops.conversion import convert_to_tensor, has_dtype, is_symbolic
from treadle.ops.dims import dims_tensor, shape, shape_tensor, size_of
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.slices import slice_
from treadle.ops.random.distributions import stateless_uniform, uniform
from treadle.ops.scalars import number
from treadle.ops.shaping.padding import pad
from treadle.ops.shaping.slicing import slice_known


def _offset(what: str, value: Any) -> Dim:
    if isinstance(value, int) and value < 0:
        raise refusal(f"{what} must be >= 0")
    return size_of(value, what)


def _target(what: str, value: Any) -> Dim:
    if isinstance(value, int) and value <= 0:
        raise refusal(f"{what} must be > 0")
    return size_of(value, what, least=1)


def central_crop(image: Any, central_fraction: Any) -> Tensor:
    """The middle of images, with this fraction of their height and width.

    Args:
        image: [batch, height, width, channels] or [height, width, channels].
        central_fraction: in (0, 1]: a Python number, or a floating scalar that may be known late.

    Raises:
        ValueError: another fraction, another rank.
    """
    fraction = number("central_crop: central_fraction", central_fraction)
    if is_symbolic(fraction):
        fraction = cast(fraction, dtypes.float64)
    elif not 0.0 < fraction <= 1.0:
        raise refusal("central_fraction must be within (0, 1]")
    elif fraction == 1.0:
        return convert_to_tensor(image)
    x = image_tensor("central_crop", image)
    begins: list[Dim] = [0] * x.ndim
    sizes = list(x.dims)
    for axis in (x.ndim - 3, x.ndim - 2):
        begins[axis] = _margin(x.dims[axis], fraction)
        sizes[axis] = x.dims[axis] - 2 * begins[axis]
    return slice_known(x, begins, sizes)


def _margin(size: Dim, fraction: Any) -> Dim:
    """How much is left out on each side."""
    if isinstance(size, int) and isinstance(fraction, float):
        return int((size - size * fraction) / 2)
    whole = cast(dims_tensor(size, dtypes.int64), dtypes.float64)
    margin = cast((whole - whole * fraction) / 2.0, dtypes.int64)
    return size_of(margin, "central_crop: central_fraction", most=(size + 1) // 2)


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The part of images that begins at an offset and has the target size.

    Args:
        image: [batch, height, width, channels] or [height, width, channels].
        offset_height, offset_width, target_height, target_width: ints, or integer scalars that
            may be known late.

    Raises:
        ValueError: the part is not inside the images; InvalidArgumentError where a run tells.
    """
    x = image_tensor("crop_to_bounding_box", image)
    top, left = _offset("offset_height", offset_height), _offset("offset_width", offset_width)
    high, wide = _target("target_height", target_height), _target("target_width", target_width)
    x = demand_at_most(x, left + wide, x.dims[-2], "width must be >= target + offset.")
    x = demand_at_most(x, top + high, x.dims[-3], "height must be >= target + offset.")
    batch = as_batch(x)
    sizes = (batch.dims[0], high, wide, batch.dims[3])
    return like(slice_known(batch, (0, top, left, 0), sizes), x)


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Images with zeros around them: they begin at the offset in a result of the target size.

    Args:
        image: [batch, height, width, channels] or [height, width, channels].
        offset_height, offset_width, target_height, target_width: ints, or integer scalars that
            may be known late.

    Raises:
        ValueError: the images do not fit there; InvalidArgumentError where a run tells.
    """
    x = image_tensor("pad_to_bounding_box", image)
    top, left = _offset("offset_height", offset_height), _offset("offset_width", offset_width)
    high = size_of(target_height, "pad_to_bounding_box: target_height", least=-(1 << 62))
    wide = size_of(target_width, "pad_to_bounding_box: target_width", least=-(1 << 62))
    x = demand_at_most(x, left + x.dims[-2], wide, "width must be <= target - offset")
    x = demand_at_most(x, top + x.dims[-3], high, "height must be <= target - offset")
    return _padded(x, top, left, high, wide)


def _padded(x: Tensor, top: Dim, left: Dim, high: Dim, wide: Dim) -> Tensor:
    widths: list[Any] = [[0, 0] for _ in range(x.ndim)]
    widths[-3] = [top, high - top - x.dims[-3]]
    widths[-2] = [left, wide - left - x.dims[-2]]
    return pad(x, widths)


def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Images cropped to their middle, or padded with zeros around them, to have the target size.

    Args:
        image: [batch, height, width, channels] or [height, width, channels].
        target_height, target_width: ints, or integer scalars that may be known late.

    Raises:
        ValueError: a size that is not positive, another rank.
    """
    x = image_tensor("resize_with_crop_or_pad", image)
    wide, high = _target("target_width", target_width), _target("target_height", target_height)
    begins: list[Dim] = [0] * x.ndim
    sizes = list(x.dims)
    for axis, target in ((x.ndim - 3, high), (x.ndim - 2, wide)):
        begins[axis] = compound("max", (x.dims[axis] - target) // 2, 0)
        sizes[axis] = compound("min", x.dims[axis], target)
    top, left = (
        compound("max", (target - size) // 2, 0)
        for target, size in ((high, x.dims[-3]), (wide, x.dims[-2]))
    )
    return _padded(slice_known(x, begins, sizes), top, left, high, wide)


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A part of this size at a place drawn uniformly.

    Args:
        value: a tensor of any rank.
        size: the shape of the result, as long as that of `value`.

    Raises:
        InvalidArgumentError: `value` is smaller, or of another rank.
    """

    def draw(rank: int, dtype: Any) -> Tensor:
        return uniform([rank], maxval=dtype.max, dtype=dtype, seed=seed)

    return _cropped_at(draw, value, size)


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Tensor:
    """`random_crop` as a pure function of `seed`, two ints; the places are TensorFlow's."""

    def draw(rank: int, dtype: Any) -> Tensor:
        return stateless_uniform([rank], seed, maxval=dtype.max, dtype=dtype)

    return _cropped_at(draw, value, size)


def _cropped_at(draw: Any, value: Any, size: Any) -> Tensor:
    x = convert_to_tensor(value)
    dtype = convert_to_tensor(size).dtype if has_dtype(size) else dtypes.int32
    sizes = cast(shape_tensor(size), dtype)
    if sizes.dims != (x.ndim,):
        raise refusal(f"a crop of shape {sizes.shape} needs a number for each axis of {x.shape}")
    room = shape(x, dtype)
    assert_greater_equal(room, sizes, message="Need value.shape >= size")
    limit = room - sizes + 1
    return slice_(x, draw(x.ndim, dtype) % limit, size)


