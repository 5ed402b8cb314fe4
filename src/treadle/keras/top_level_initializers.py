"""`td.zeros_initializer` and its like: TensorFlow's initializers, which layers take, too.

They differ from those of Keras: without a seed each call draws other numbers, and a call may
ask for a part of a value. Files of models know them as Keras's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import treadle as td
from treadle.keras.initializers import Constant, Ones, RandomNormal, RandomUniform, Shape, Zeros

_PLACE = "keras.initializers"


def _checked(part: dict[str, Any], may_be_a_part: bool = True) -> None:
    """Raise unless a call's further arguments are those of a part."""
    for name in part:
        if name not in ("partition_shape", "partition_offset"):
            raise TypeError(f"Unknown keyword arguments: {name}")
    if part and not may_be_a_part:
        raise ValueError("Constant initializer doesn't support partition-related arguments")


class _Plain:
    """A value that is the same in all places."""

    def __call__(self, shape: Shape, dtype: Any = td.float32, **part: Any) -> td.Tensor:
        """A tensor of that shape, or of the shape of a part.

        Args:
            part: partition_shape, the shape of the part that is asked for; partition_offset, where
                it begins.

        Raises:
            ValueError: the dtype is neither numeric nor bool.
            TypeError: other arguments.
        """
        _checked(part)
        kind = td.as_dtype(dtype)
        if not (kind.is_floating or kind.is_integer or kind.is_complex or kind is td.bool):
            text = f"Argument `dtype` expected to be numeric or boolean. Received {kind!r}."
            raise ValueError(text)
        return super().__call__(part.get("partition_shape", shape), kind)  # type: ignore[misc,no-any-return]


class zeros_initializer(_Plain, Zeros):
    """`td.zeros_initializer`: zeros."""

    _saved_as = _PLACE, "Zeros"


class ones_initializer(_Plain, Ones):
    """`td.ones_initializer`: ones."""

    _saved_as = _PLACE, "Ones"


class constant_initializer(Constant):
    """`td.constant_initializer`: a value of its own dtype where none is asked for.

    Args:
        value: a scalar, a list, a tuple, or an array of as many elements as the shapes of calls.
        support_partition: whether calls may ask for a part, of which only the shape counts.

    Raises:
        TypeError: the value is something else.
    """

    _saved_as = _PLACE, "Constant"

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, list | tuple | np.ndarray)):
            raise TypeError(
                f"Invalid type for initial value: {type(value).__name__}. Expected Python scalar, "
                "list or tuple of values, or numpy.ndarray."
            )
        super().__init__(value)
        self._support_partition = support_partition

    def __call__(self, shape: Shape, dtype: Any = None, **part: Any) -> td.Tensor:
        """The value in that shape.

        Raises:
            ValueError: a part is asked for, or the value has another number of elements.
        """
        _checked(part, self._support_partition)
        return td.constant(self.value, dtype, list(shape))


class _Drawn:
    """Numbers of two bounds that are the same in all calls where there is a seed, and others in
    each call where there is none. (Those of Keras draw a seed where there is none.)"""

    _by: str  # the function of `td.random`
    _bounds: tuple[str, str]
    seed: int | None

    def _keep(self, first: float, second: float, seed: int | None) -> None:
        for name, value in zip(self._bounds, (first, second), strict=True):
            setattr(self, name, value)
        self._given_seed = self.seed = seed

    def __call__(self, shape: Shape, dtype: Any = td.float32, **part: Any) -> td.Tensor:
        """Numbers in that shape, or in the shape of a part: ``partition_shape=``.

        Raises:
            ValueError: the dtype is none of floats; of uniform ones, none of numbers.
        """
        kind, whole = td.as_dtype(dtype), self._by == "uniform"
        if not (kind.is_floating or (whole and kind.is_integer)):
            expected = "expected to be numeric or boolean" if whole else (
                "is expected to be floating point")  # fmt: skip
            raise ValueError(f"Argument `dtype` {expected}. Received: {kind!r}.")
        _checked(part)
        bounds = [getattr(self, name) for name in self._bounds]
        shape = part.get("partition_shape", shape)
        if self.seed is None:
            return getattr(td.random, self._by)(shape, *bounds, kind)  # type: ignore[no-any-return]
        draw = getattr(td.random, f"stateless_{self._by}")
        return draw(shape, [self.seed, 0], *bounds, kind)  # type: ignore[no-any-return]


class random_normal_initializer(_Drawn, RandomNormal):
    """`td.random_normal_initializer`: normally distributed floats.

    Args:
        mean, stddev: of the distribution.
        seed: an int: all calls give the same numbers; None: each call draws others.
    """

    _saved_as = _PLACE, "RandomNormal"
    _by, _bounds = "normal", ("mean", "stddev")

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        self._keep(mean, stddev, seed)


class random_uniform_initializer(_Drawn, RandomUniform):
    """`td.random_uniform_initializer`: floats or ints, uniform in [minval, maxval).

    Args:
        minval, maxval: the bounds.
        seed: an int: all calls give the same numbers; None: each call draws others.
    """

    _saved_as = _PLACE, "RandomUniform"
    _by, _bounds = "uniform", ("minval", "maxval")

    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None
    ) -> None:
        self._keep(minval, maxval, seed)
