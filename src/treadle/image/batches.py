"""What functions on images share: one image as a batch, and the errors of shapes."""

from __future__ import annotations

from typing import Any

from treadle.core import errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.requirements import require
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.sizes import at_least_one, at_most


def refusal(text: str) -> errors.InvalidArgumentError:
    """An InvalidArgumentError, which is a ValueError, that names the line of the caller."""
    return errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")


def image_tensor(name: str, image: Any, *ranks: int) -> Tensor:
    """`image` as a tensor.

    Args:
        name: of the function, for errors.
        ranks: those that it takes, 3 and 4 by default.

    Raises:
        ValueError: another rank, or no pixels.
    """
    x = convert_to_tensor(image)
    if x.ndim not in (ranks or (3, 4)):
        wanted = " or ".join(map(str, ranks or (3, 4)))
        raise refusal(f"{name}: images of rank {wanted} are needed, the shape is {x.shape}")
    return with_pixels(name, x)


def with_pixels(name: str, x: Tensor) -> Tensor:
    """`x`, whose last three dims are not 0."""
    if 0 in x.dims[-3:]:
        raise refusal(f"{name}: the inner dims of an image must be positive: {x.shape}")
    open_dims = [at_least_one(d) for d in x.dims[-3:] if not isinstance(d, int)]
    return require(x, open_dims, f"{name}: the inner dims of an image must be positive")


def as_batch(x: Tensor) -> Tensor:
    """[batch, height, width, channels]; a batch of one for a single image."""
    return x if x.ndim == 4 else reshape_to(x, (1, *x.dims))


def like(y: Tensor, x: Tensor) -> Tensor:
    """The batch `y` as what `x` is: a batch, or one image."""
    return y if x.ndim == 4 else reshape_to(y, y.dims[1:])


def demand_at_most(x: Tensor, small: Dim, large: Dim, text: str) -> Tensor:
    """`x`, where ``small <= large``.

    Raises:
        ValueError: with `text`, where both are known; what a run tells is InvalidArgumentError.
    """
    if isinstance(small, int) and isinstance(large, int):
        if small > large:
            raise refusal(text)
        return x
    return require(x, [at_most(small, large)], text)
