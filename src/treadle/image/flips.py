"""Images mirrored and turned, at random too."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.tensor import Tensor
from treadle.image.batches import image_tensor
from treadle.ops.control.cases import switch_case
from treadle.ops.dims import as_dim_value
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.random.distributions import stateless_uniform, uniform
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.permuting import reverse as reversed_along
from treadle.ops.shaping.reshaping import reshape_to

_ROWS, _COLUMNS = -3, -2


def _flipped(name: str, image: Any, axis: int) -> Tensor:
    return reversed_along(image_tensor(name, image), [axis])


def flip_left_right(image: Any) -> Tensor:
    """Images with their columns in reverse order.

    Args:
        image: [batch, height, width, channels] or [height, width, channels].

    Raises:
        ValueError: another rank.
    """
    return _flipped("flip_left_right", image, _COLUMNS)


def flip_up_down(image: Any) -> Tensor:
    """Images with their rows in reverse order; see `flip_left_right`."""
    return _flipped("flip_up_down", image, _ROWS)


def transpose(image: Any, name: str | None = None) -> Tensor:
    """Images with rows and columns exchanged: [..., width, height, channels].

    Raises:
        ValueError: images of a rank other than 3 or 4.
    """
    return _transposed(image_tensor("transpose", image))


def _transposed(x: Tensor) -> Tensor:
    order = list(range(x.ndim))
    order[_ROWS], order[_COLUMNS] = order[_COLUMNS], order[_ROWS]
    return permute(x, order)


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """Images turned `k` times by 90 degrees, against the clock.

    Args:
        image: [batch, height, width, channels] or [height, width, channels].
        k: an int, or an integer scalar that may be known late.

    Raises:
        ValueError: another rank.
    """
    x = image_tensor("rot90", image)
    turns = [
        lambda: x,
        lambda: _transposed(reversed_along(x, [_COLUMNS])),
        lambda: reversed_along(x, [_ROWS, _COLUMNS]),
        lambda: reversed_along(_transposed(x), [_COLUMNS]),
    ]
    known = as_dim_value(k, "rot90: k")
    if isinstance(known, int):
        return turns[known % 4]()
    return switch_case(cast(k, dtypes.int32) % 4, turns)  # type: ignore[no-any-return]


def _flipped_at_random(name: str, image: Any, axis: int, draw: Any) -> Tensor:
    """An image is flipped with probability 1/2, each of a batch by itself."""
    x = image_tensor(name, image)
    mirrored = reversed_along(x, [axis])
    if x.ndim == 3:
        return where(draw([]) < 0.5, mirrored, x)
    chosen = reshape_to(draw([x.dims[0]]), (x.dims[0], 1, 1, 1))
    return where(chosen > 0.5, mirrored, x)


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """`flip_left_right` with probability 1/2, for each image of a batch by itself.

    Args:
        image: [batch, height, width, channels] or [height, width, channels].
        seed: a stream of its own, combined with the global seed.
    """
    return _flipped_at_random(
        "random_flip_left_right", image, _COLUMNS, lambda shape: uniform(shape, seed=seed)
    )


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """`flip_up_down` with probability 1/2; see `random_flip_left_right`."""
    return _flipped_at_random(
        "random_flip_up_down", image, _ROWS, lambda shape: uniform(shape, seed=seed)
    )


def stateless_random_flip_left_right(image: Any, seed: Any) -> Tensor:
    """`random_flip_left_right` as a pure function of `seed`, two ints, as in TensorFlow."""
    return _flipped_at_random(
        "stateless_random_flip_left_right", image, _COLUMNS,
        lambda shape: stateless_uniform(shape, seed),
    )  # fmt: skip


def stateless_random_flip_up_down(image: Any, seed: Any) -> Tensor:
    """`random_flip_up_down` as a pure function of `seed`, two ints, as in TensorFlow."""
    return _flipped_at_random(
        "stateless_random_flip_up_down", image, _ROWS, lambda shape: stateless_uniform(shape, seed)
    )


