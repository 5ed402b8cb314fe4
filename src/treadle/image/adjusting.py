"""Brightness, contrast, gamma and the dtype of images, at random too; standardization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core import dtypes
from treadle.core.shapes import product
from treadle.core.tensor import Tensor
from treadle.image.batches import image_tensor, refusal
from treadle.image.samples import float_of
from treadle.ops.asserts import assert_greater, assert_less_equal, assert_non_negative
from treadle.ops.composed import composed
from treadle.ops.conversion import convert_to_tensor, has_dtype, is_symbolic
from treadle.ops.elementwise.arithmetic import floordiv, maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.clipping import saturate_cast
from treadle.ops.elementwise.unary import identity, rsqrt
from treadle.ops.random.distributions import stateless_uniform, uniform
from treadle.ops.reductions.reduction import reduce_mean, reduce_std
from treadle.ops.scalars import number


def image_dtype(dtype: Any) -> dtypes.DType:
    """The dtype that images are to have, refused where it has no numbers."""
    target = dtypes.as_dtype(dtype)
    if not (target.is_floating or target.is_integer):
        raise AttributeError("dtype must be either floating point or integer")
    return target


@composed
def convert_image_dtype(
    image: Any, dtype: Any, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Images in another dtype, scaled: floats have values in [0, 1], integers in [0, max].

    Args:
        image: a tensor of any shape of integers or floats.
        dtype: a floating or integer dtype.
        saturate: whether values outside the target's range become its ends.

    Raises:
        AttributeError: one of the dtypes is neither floating nor an integer.
    """
    x, target = convert_to_tensor(image), image_dtype(dtype)
    if not (x.dtype.is_floating or x.dtype.is_integer):
        raise AttributeError("image dtype must be either floating point or integer")
    if target is x.dtype:
        return identity(x)
    convert = saturate_cast if saturate else cast
    if x.dtype.is_integer and target.is_integer:
        most, limit = int(x.dtype.max), int(target.max)
        if most > limit:
            return convert(floordiv(x, (most + 1) // (limit + 1)), target)
        return convert(x, target) * ((limit + 1) // (most + 1))
    if x.dtype.is_integer:
        return cast(x, target) * (1.0 / int(x.dtype.max))
    if target.is_integer:
        return convert(x * (int(target.max) + 0.5), target)
    return cast(x, target)


def in_floats(image: Any, adjust: Callable[[Tensor], Tensor], saturate: bool = True) -> Tensor:
    """An adjustment of floats in [0, 1] for images of any dtype.

    Args:
        saturate: whether integers that would be out of range become the ends of the range.
    """
    x = convert_to_tensor(image)
    floats = x
    if x.dtype not in (dtypes.float16, dtypes.float32):
        floats = convert_image_dtype(x, dtypes.float32)
    return convert_image_dtype(adjust(floats), x.dtype, saturate)


@composed
def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Images with `delta` added to their values in [0, 1].

    Args:
        image: a tensor of any shape; integers are scaled to floats and back, and saturate.
        delta: a scalar.
    """
    return in_floats(image, lambda x: x + cast(delta, x.dtype))


@composed
def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Images with the differences from the mean of each channel multiplied.

    Args:
        images: [..., height, width, channels]; integers are scaled to floats and back.
        contrast_factor: a scalar.

    Raises:
        ValueError: images of a rank below 3, or a factor that is no scalar.
    """

    def adjust(x: Tensor) -> Tensor:
        if x.ndim < 3 or convert_to_tensor(contrast_factor).ndim:
            text = "images have at least rank 3, the factor is a scalar; the shapes are"
            factor = convert_to_tensor(contrast_factor).shape
            raise refusal(f"adjust_contrast: {text} {x.shape} and {factor}")
        mean = reduce_mean(x, [-3, -2], keepdims=True)
        return (x - mean) * cast(contrast_factor, x.dtype) + mean

    return in_floats(images, adjust)


@composed
def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """``gain * image ** gamma`` on values in [0, 1].

    Raises:
        ValueError: a negative gamma; InvalidArgumentError where a run tells.
    """
    if has_dtype(gamma):
        assert_non_negative(gamma, message="Gamma should be a non-negative real number.")
    elif number("adjust_gamma: gamma", gamma) < 0:
        raise refusal("Gamma should be a non-negative real number.")
    return in_floats(image, lambda x: gain * x**gamma)


@composed
def per_image_standardization(image: Any) -> Tensor:
    """Images with mean 0 and standard deviation 1 each, float32.

    The deviation is taken for at least ``1 / sqrt(pixels)``.

    Args:
        image: [..., height, width, channels].

    Raises:
        ValueError: a rank below 3.
    """
    rank = convert_to_tensor(image).ndim
    x = image_tensor("per_image_standardization", image, max(rank, 3))
    x = cast(x, dtypes.float32)
    axes = [-1, -2, -3]
    least = rsqrt(float_of(product(x.dims[-3:])))
    deviation = maximum(reduce_std(x, axes, keepdims=True), least)
    return (x - reduce_mean(x, axes, keepdims=True)) / deviation


# -- at random -------------------------------------------------------------------------------------


def largest_delta(max_delta: Any, most: float | None = None) -> Any:
    """A scalar, checked to be not negative and at most `most`."""
    delta = number("max_delta", max_delta)
    if is_symbolic(delta):
        delta = cast(delta, dtypes.float32)
        assert_non_negative(delta, message="max_delta must be non-negative.")
        if most is not None:
            assert_less_equal(delta, most, message=f"max_delta must be <= {most}.")
    elif most is not None and not delta <= most:
        raise refusal(f"max_delta must be <= {most}.")
    elif not delta >= 0:
        raise refusal("max_delta must be non-negative.")
    return delta


def limits(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Two scalars, checked to be not negative and in order."""
    low, high = number("lower", lower), number("upper", upper)
    if is_symbolic(low) or is_symbolic(high):
        low, high = cast(low, dtypes.float32), cast(high, dtypes.float32)
        assert_greater(high, low, message="upper must be > lower.")
        assert_non_negative(low, message="lower must be non-negative.")
    elif not high > low:
        raise refusal("upper must be > lower.")
    elif not low >= 0:
        raise refusal("lower must be non-negative.")
    return low, high


def random_brightness(image: Any, max_delta: Any, seed: int | None = None) -> Tensor:
    """`adjust_brightness` by a delta drawn uniformly from [-max_delta, max_delta).

    Args:
        seed: a stream of its own, combined with the global seed.

    Raises:
        ValueError: a negative `max_delta`.
    """
    delta = largest_delta(max_delta)
    return adjust_brightness(image, uniform([], -delta, delta, seed=seed))


def stateless_random_brightness(image: Any, max_delta: Any, seed: Any) -> Tensor:
    """`random_brightness` as a pure function of `seed`, two ints, as in TensorFlow."""
    delta = largest_delta(max_delta)
    return adjust_brightness(image, stateless_uniform([], seed, -delta, delta))


def random_contrast(image: Any, lower: Any, upper: Any, seed: int | None = None) -> Tensor:
    """`adjust_contrast` by a factor drawn uniformly from [lower, upper).

    Args:
        seed: a stream of its own, combined with the global seed.

    Raises:
        ValueError: a negative `lower`, or an `upper` that is not greater.
    """
    return adjust_contrast(image, uniform([], *limits(lower, upper), seed=seed))


def stateless_random_contrast(image: Any, lower: Any, upper: Any, seed: Any) -> Tensor:
    """`random_contrast` as a pure function of `seed`, two ints, as in TensorFlow."""
    return adjust_contrast(image, stateless_uniform([], seed, *limits(lower, upper)))
